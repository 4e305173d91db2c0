//! Decodes PNG of every color type, bit depth and interlacing.

use std::io::Cursor;

use ::png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::{DecodeError, Raw, Samples};
use crate::geometry::Size;

/// The maximum that the decoder may allocate in addition to the pixels, for rows and the
/// decompressed ICC profile.
const AUXILIARY_BYTES: usize = 32 << 20;

pub(super) fn decode(bytes: &[u8], stored: Size) -> Result<Raw, DecodeError> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: AUXILIARY_BYTES });
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

/// Rounds a 16-bit sample to 8 bits. 65535 / 255 is exactly 257.
fn narrowed(sample: &[u8; 2]) -> u8 {
    ((u32::from(u16::from_be_bytes(*sample)) + 128) / 257) as u8
}
