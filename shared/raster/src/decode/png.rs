//! Decodes PNG of every color type, bit depth and interlacing. Of an animation, only the still image is read.

use std::io::{self, BufRead, Chain, Read, Seek, SeekFrom};

use ::png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::{DecodeError, Raw, Samples};
use crate::geometry::Size;

/// The maximum that the decoder may allocate in addition to the pixels, for rows and the
/// decompressed ICC profile.
const AUXILIARY_BYTES: usize = 32 << 20;

pub(super) fn decode(bytes: &[u8], stored: Size) -> Result<Raw, DecodeError> {
    let file = match still_length(bytes) {
        Some(length) => Parts(bytes[..length].chain(END)),
        None => Parts(bytes.chain(&[])),
    };
    let mut decoder = Decoder::new_with_limits(file, Limits { bytes: AUXILIARY_BYTES });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().map_err(DecodeError::Png)?;
    if (reader.info().width, reader.info().height) != (stored.width, stored.height) {
        return Err(DecodeError::SizeMismatch);
    }
    let (color, depth) = reader.output_color_type();
    let samples = match color {
        ColorType::Grayscale => Samples::Grey,
        ColorType::GrayscaleAlpha => Samples::GreyAlpha,
        ColorType::Rgb | ColorType::Indexed => Samples::Rgb,
        ColorType::Rgba => Samples::Rgba,
    };
    let count = stored.pixels() as usize * samples.count();
    let data = match depth {
        BitDepth::Sixteen if !reader.info().interlaced => {
            let mut data = Vec::with_capacity(count);
            while let Some(row) = reader.next_row().map_err(DecodeError::Png)? {
                data.extend(row.data().as_chunks().0.iter().map(narrowed));
            }
            data
        }
        BitDepth::Sixteen => {
            let mut wide = vec![0; count * 2];
            reader.next_frame(&mut wide).map_err(DecodeError::Png)?;
            for at in 0..count {
                wide[at] = narrowed(&[wide[at * 2], wide[at * 2 + 1]]);
            }
            wide.truncate(count);
            wide.shrink_to_fit();
            wide
        }
        _ => {
            let mut data = vec![0; count];
            reader.next_frame(&mut data).map_err(DecodeError::Png)?;
            data
        }
    };
    if data.len() != count {
        return Err(DecodeError::SizeMismatch);
    }
    // Reads to the end chunk, so that a file that is truncated within its last bytes is rejected
    // too.
    reader.finish().map_err(DecodeError::Png)?;
    let icc = reader.info().icc_profile.as_ref().map(|profile| profile.to_vec());
    Ok(Raw { size: stored, samples, data, icc })
}

/// The end chunk.
const END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";

/// The number of bytes of an animation up to the end of its still image, the chunks `IDAT`. `None` if the file is no
/// animation, or has no complete still image.
fn still_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut is_animated, mut in_image) = (8, false, false);
    loop {
        let name = bytes.get(at + 4..at + 8).unwrap_or_default();
        if in_image && name != b"IDAT" {
            return is_animated.then_some(at);
        }
        is_animated |= name == b"acTL";
        in_image = name == b"IDAT";
        let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
        // The length, the name and the checksum.
        at = at.checked_add(length as usize)?.checked_add(12).filter(|end| *end <= bytes.len())?;
    }
}

/// A file in two parts. It can be searched for the decoder's type alone, which never does that.
struct Parts<'a>(Chain<&'a [u8], &'a [u8]>);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl BufRead for Parts<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}

impl Seek for Parts<'_> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Rounds a 16-bit sample to 8 bits. 65535 / 255 is exactly 257.
fn narrowed(sample: &[u8; 2]) -> u8 {
    ((u32::from(u16::from_be_bytes(*sample)) + 128) / 257) as u8
}
