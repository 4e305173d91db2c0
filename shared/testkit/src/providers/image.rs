//! The images that the simulators return: real PNGs that depend only on the prompt, with the id
//! of the request as metadata.

use sha2::{Digest, Sha256};

/// The maximum length of a side, whatever was requested: large enough to tell sizes apart, small
/// enough to be fast.
const SIDE_MAX: u32 = 4096;

/// Draws an indexed PNG of this size: stripes in four colors derived from the prompt. A prompt with `[[parameters]]` has the
/// parameters of a generator in the file.
pub(super) fn draw(prompt: &str, id: &str, (width, height): (u32, u32)) -> Vec<u8> {
    let (width, height) = (width.clamp(1, SIDE_MAX), height.clamp(1, SIDE_MAX));
    let colors: Vec<u8> = Sha256::digest(prompt).iter().copied().take(12).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(colors);
    encoder.set_compression(png::Compression::Fast);
    encoder.add_text_chunk("Request".to_owned(), id.to_owned()).expect("an id is Latin-1");
    // As inference servers do.
    if prompt.contains("[[parameters]]") {
        encoder.add_text_chunk("parameters".to_owned(), "PRIVATE-7731".to_owned()).expect("is Latin-1");
    }
    let mut writer = encoder.write_header().expect("writes into memory");
    let row: Vec<u8> = (0..width).map(|x| (x * 4 / width) as u8).collect();
    let pixels = row.repeat(height as usize);
    writer.write_image_data(&pixels).expect("as many pixels as the header says");
    writer.finish().expect("writes into memory");
    file
}

/// Builds an MP4 without tracks of at least `bytes_min` bytes: a file type box, the id of the
/// request, free space, and a movie header.
pub(super) fn video(id: &str, bytes_min: usize) -> Vec<u8> {
    let boxed = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len() + 8).expect("a few bytes");
        [&length.to_be_bytes(), &kind[..], content].concat()
    };
    // Version 0, times 0, 1000 units per second, duration 8 seconds, rate 1.0, volume 1.0, the unit
    // matrix, next track 1.
    let mut header = vec![0; 100];
    header[12..16].copy_from_slice(&1000u32.to_be_bytes());
    header[16..20].copy_from_slice(&8000u32.to_be_bytes());
    header[20..24].copy_from_slice(&0x0001_0000u32.to_be_bytes());
    header[24..26].copy_from_slice(&0x0100u16.to_be_bytes());
    for (at, value) in [(36, 0x0001_0000u32), (52, 0x0001_0000), (68, 0x4000_0000), (96, 1)] {
        header[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    let movie = boxed(b"moov", &boxed(b"mvhd", &header));
    let mut free = id.as_bytes().to_vec();
    // The bytes vary, so that a misplaced chunk is detected.
    free.extend((free.len()..bytes_min).map(|at| (at / 251) as u8));
    [boxed(b"ftyp", b"isom\0\0\x02\0isomiso2mp41"), boxed(b"free", &free), movie].concat()
}

/// The width and height of `WxH`, or of a ratio `W:H` with a long side of 1024.
pub(super) fn size_of(text: &str) -> Option<(u32, u32)> {
    if let Some((width, height)) = text.split_once('x') {
        return Some((width.parse().ok()?, height.parse().ok()?));
    }
    let (width, height) = text.split_once(':')?;
    let (width, height): (u32, u32) = (width.parse().ok()?, height.parse().ok()?);
    if width > 64 {
        return Some((width, height));
    }
    let long = width.max(height).max(1);
    Some((1024 * width / long, 1024 * height / long))
}

/// The width and height in the header of a PNG, JPEG or WebP file.
pub(super) fn sides(bytes: &[u8]) -> Option<(u32, u32)> {
    let be = |at: usize, length: usize| {
        Some(bytes.get(at..at + length)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    };
    let le = |at: usize, length: usize| {
        Some(bytes.get(at..at + length)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    };
    if bytes.starts_with(b"\x89PNG") {
        return Some((be(16, 4)?, be(20, 4)?));
    }
    if bytes.starts_with(b"RIFF") {
        return match bytes.get(12..16)? {
            b"VP8X" => Some((le(24, 3)? + 1, le(27, 3)? + 1)),
            b"VP8L" => Some(((le(21, 4)? & 0x3fff) + 1, (le(21, 4)? >> 14 & 0x3fff) + 1)),
            _ => Some((le(26, 2)? & 0x3fff, le(28, 2)? & 0x3fff)),
        };
    }
    let mut at = 2;
    loop {
        match be(at, 2)? {
            // A frame header, unless it is a table of Huffman codes, an extension or arithmetic coding.
            marker @ 0xffc0..=0xffcf if !matches!(marker, 0xffc4 | 0xffc8 | 0xffcc) => {
                return Some((be(at + 7, 2)?, be(at + 5, 2)?));
            }
            0xff01..=0xffff => at += 2 + be(at + 2, 2)? as usize,
            _ => return None,
        }
    }
}

/// Returns `true` if the bytes begin with the signature of an image format.
pub(super) fn is_image(bytes: &[u8]) -> bool {
    let jpeg = bytes.starts_with(&[0xff, 0xd8, 0xff]);
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    jpeg || webp || bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}
