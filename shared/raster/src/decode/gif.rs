//! The first frame of a GIF on its logical screen. Later bytes are ignored.

use std::io::{self, Read};
use std::num::NonZeroU64;

use ::gif::{ColorOutput, DecodeOptions, MemoryLimit};

use super::{DecodeError, Raw, Samples};
use crate::format::color_table;
use crate::geometry::Size;
use crate::header::{MAX_PIXELS, check_limits};

/// The size in pixels that a frame may always have, however small the screen.
const CLIPPED_PIXELS_MAX: u64 = 1 << 20;

/// Decodes the first frame. The part of the screen that it does not cover is transparent, as in
/// browsers, which all ignore the background color of the header.
pub(super) fn decode(bytes: &[u8], screen: Size) -> Result<Raw, DecodeError> {
    let first_frame = FirstFrame::find(bytes).ok_or(DecodeError::CutShort)?;
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(NonZeroU64::new(MAX_PIXELS).map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes));
    let mut decoder = options.read_info(first_frame).map_err(DecodeError::Gif)?;
    let frame = decoder.next_frame_info().map_err(DecodeError::Gif)?.ok_or(DecodeError::CutShort)?;
    let (left, top, transparent) = (usize::from(frame.left), usize::from(frame.top), frame.transparent);
    let size = Size::new(u32::from(frame.width), u32::from(frame.height));
    // A frame may be larger than the screen to which it is clipped. Memory is reserved for the
    // screen, so the frame must not be much larger.
    check_limits(size)?;
    if size.pixels() > screen.pixels().max(CLIPPED_PIXELS_MAX) {
        return Err(DecodeError::SizeMismatch);
    }
    let mut indices = vec![0; size.pixels() as usize];
    decoder.read_into_buffer(&mut indices).map_err(DecodeError::Gif)?;
    let palette = decoder.palette().map_err(DecodeError::Gif)?;
    let mut colors = [[0; 4]; 256];
    for (color, rgb) in colors.iter_mut().zip(palette.chunks_exact(3)) {
        *color = [rgb[0], rgb[1], rgb[2], 255];
    }
    if let Some(index) = transparent {
        colors[usize::from(index)] = [0; 4];
    }

    let (width, height) = (screen.width as usize, screen.height as usize);
    let covers = left == 0 && top == 0 && size.width >= screen.width && size.height >= screen.height;
    let rows = indices.chunks_exact(size.width as usize);
    let opaque = covers
        && rows.clone().take(height).all(|row| row[..width].iter().all(|index| colors[usize::from(*index)][3] == 255));
    let samples = if opaque { Samples::Rgb } else { Samples::Rgba };
    let count = samples.count();
    let mut data = vec![0; width * height * count];
    for (target, row) in data.chunks_exact_mut(width * count).skip(top).zip(rows) {
        for (pixel, index) in target.chunks_exact_mut(count).skip(left).zip(row) {
            pixel.copy_from_slice(&colors[usize::from(*index)][..count]);
        }
    }
    Ok(Raw { size: screen, samples, data, icc: decoder.icc_profile().map(<[u8]>::to_vec) })
}

/// The bytes of a file up to the end of its first frame, without the NUL bytes that some encoders write between
/// blocks, and a trailer.
struct FirstFrame<'a> {
    /// The rest of the current block.
    block: &'a [u8],
    /// The data after the block.
    rest: &'a [u8],
}

impl<'a> FirstFrame<'a> {
    const TRAILER: &'static [u8] = b";";

    /// Parses the blocks of the file up to its first frame without decoding them. `None` if the file ends before the
    /// end of the frame (GIF89a, 12).
    fn find(bytes: &'a [u8]) -> Option<Self> {
        let (block, rest) = bytes.split_at_checked(13 + color_table(*bytes.get(10)?))?;
        let mut blocks = rest;
        while next_block(&mut blocks)?.first() != Some(&IMAGE) {}
        Some(Self { block, rest })
    }
}

impl Read for FirstFrame<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.is_empty() {
            self.block = next_block(&mut self.rest).unwrap_or_default();
            if self.block.first() == Some(&IMAGE) {
                self.rest = Self::TRAILER;
            }
        }
        self.block.read(buffer)
    }
}

/// The first byte of an image descriptor.
const IMAGE: u8 = 0x2c;

/// Takes the next block from `rest`, and the NUL bytes before it. `None` if it is not complete.
fn next_block<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = rest.iter().position(|byte| *byte != 0)?;
    let bytes = &rest[start..];
    let end = match bytes[0] {
        0x3b => 1,
        // The label, followed by data.
        0x21 => after_data(bytes, 2)?,
        // The descriptor, its palette and the code size, followed by data.
        IMAGE => after_data(bytes, 10 + color_table(*bytes.get(9)?) + 1)?,
        _ => return None,
    };
    let (block, after) = bytes.split_at(end);
    *rest = after;
    Some(block)
}

/// The position after the sub-blocks from `at` onwards.
fn after_data(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            0 => return Some(at + 1),
            length => at += 1 + usize::from(*length),
        }
    }
}
