//! Tells images of several frames from others, without decoding them (`docs/reference/assets.md#animation`).
//!
//! **Guarantee.** Foreign bytes never cause a panic, a few bytes are held at a time, and the result is the same whether the bytes
//! arrive at once or one by one.
//!
//! **Mechanism.** Frames are counted up to the second: chunks `ANMF` of a WebP (RFC 9649), image descriptors of a GIF (GIF89a,
//! section 20). A PNG states their number in front of its pixels (`acTL`, PNG third edition, 11.3.6.1).

use crate::format::{Format, color_table};

/// The longest beginning of a block that is looked at: the chunk `acTL` of a PNG up to its number of frames.
const HEAD_MAX: usize = 16;

/// What comes next in a file.
#[derive(Debug, Clone, Copy)]
enum Place {
    Start,
    /// A chunk of a PNG.
    PngChunk,
    /// A chunk of a WebP.
    WebpChunk,
    /// A block of a GIF.
    GifBlock,
    /// Sub-blocks of a GIF.
    GifData,
    /// Nothing that matters.
    End,
}

enum Step {
    /// Call again with this many bytes.
    Need(usize),
    /// This many bytes, available or still to come, are done, and this comes next.
    Skip(u64, Place),
}

/// Counts the frames of a passing file.
#[derive(Debug)]
pub struct FrameCounter {
    place: Place,
    held: Vec<u8>,
    skip: u64,
    frames: u32,
}

impl Default for FrameCounter {
    fn default() -> Self {
        Self { place: Place::Start, held: Vec::new(), skip: 0, frames: 0 }
    }
}

impl FrameCounter {
    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !matches!(self.place, Place::End) {
            let skipped = self.skip.min(rest.len() as u64);
            self.skip -= skipped;
            rest = &rest[skipped as usize..];
            let Some((first, after)) = rest.split_first() else { return };
            self.held.push(*first);
            rest = after;
            if let Step::Skip(count, next) = self.step() {
                self.skip = count - self.held.len() as u64;
                self.held.clear();
                self.place = if self.is_animated() { Place::End } else { next };
            }
        }
    }

    /// Returns `true` if there is more than one frame in what was pushed.
    pub fn is_animated(&self) -> bool {
        self.frames > 1
    }

    /// Looks at the held bytes, of which there is one more than in the call before. What is skipped is at least as long.
    fn step(&mut self) -> Step {
        let bytes = self.held.as_slice();
        debug_assert!(bytes.len() <= HEAD_MAX);
        let step = match self.place {
            Place::Start => start(bytes),
            Place::PngChunk => png_chunk(bytes, &mut self.frames),
            Place::WebpChunk => webp_chunk(bytes, &mut self.frames),
            Place::GifBlock => gif_block(bytes, &mut self.frames),
            // A length, and as many bytes. The last sub-block is empty.
            Place::GifData => match bytes[0] {
                0 => Step::Skip(1, Place::GifBlock),
                length => Step::Skip(1 + u64::from(length), Place::GifData),
            },
            Place::End => Step::Skip(bytes.len() as u64, Place::End),
        };
        match step {
            Step::Need(count) if bytes.len() < count => Step::Need(count),
            Step::Need(_) => Step::Skip(bytes.len() as u64, Place::End),
            skip => skip,
        }
    }
}

fn start(bytes: &[u8]) -> Step {
    if bytes.len() < Format::SNIFF_BYTES {
        return Step::Need(Format::SNIFF_BYTES);
    }
    match Format::sniff(bytes) {
        // More than the signature is held: the first chunk, `IHDR`, has 25 bytes.
        Some(Format::Png) => Step::Skip(8 + 25, Place::PngChunk),
        Some(Format::Webp) => Step::Skip(12, Place::WebpChunk),
        Some(Format::Gif) if bytes.len() < 13 => Step::Need(13),
        Some(Format::Gif) => Step::Skip((13 + color_table(bytes[10])) as u64, Place::GifBlock),
        Some(Format::Jpeg) | None => Step::Skip(bytes.len() as u64, Place::End),
    }
}

fn png_chunk(bytes: &[u8], frames: &mut u32) -> Step {
    if bytes.len() < 8 {
        return Step::Need(8);
    }
    let number = |at: usize| bytes[at..].first_chunk().map_or(0, |four| u32::from_be_bytes(*four));
    match &bytes[4..8] {
        b"acTL" if bytes.len() < 12 => Step::Need(12),
        b"acTL" => {
            *frames = number(8);
            Step::Skip(12, Place::End)
        }
        b"IDAT" => Step::Skip(8, Place::End),
        _ => Step::Skip(12 + u64::from(number(0)), Place::PngChunk),
    }
}

fn webp_chunk(bytes: &[u8], frames: &mut u32) -> Step {
    let (Some(kind), Some(length)) = (bytes.get(..4), bytes.get(4..).and_then(|rest| rest.first_chunk())) else {
        return Step::Need(8);
    };
    *frames += u32::from(kind == b"ANMF");
    let length = u64::from(u32::from_le_bytes(*length));
    // Chunks are padded to an even length.
    Step::Skip(8 + length + (length & 1), Place::WebpChunk)
}

fn gif_block(bytes: &[u8], frames: &mut u32) -> Step {
    match bytes {
        [b','] => Step::Need(10),
        [b',', .., flags] if bytes.len() == 10 => {
            *frames += 1;
            // The color table and the size of the first code precede the sub-blocks.
            Step::Skip((11 + color_table(*flags)) as u64, Place::GifData)
        }
        [b',', ..] => Step::Need(10),
        [b'!', ..] => Step::Skip(2, Place::GifData),
        _ => Step::Skip(bytes.len() as u64, Place::End),
    }
}

/// Returns `true` if a file in memory has more than one frame.
pub fn is_animated(bytes: &[u8]) -> bool {
    let mut counter = FrameCounter::default();
    counter.push(bytes);
    counter.is_animated()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(frames: Option<u32>) -> Vec<u8> {
        let chunk = |kind: &[u8; 4], data: &[u8]| [&(data.len() as u32).to_be_bytes(), kind, data, &[0; 4]].concat();
        let actl = frames.map(|count| chunk(b"acTL", &[count.to_be_bytes(), [0; 4]].concat())).unwrap_or_default();
        let signature = b"\x89PNG\r\n\x1a\n".to_vec();
        [signature, chunk(b"IHDR", &[1; 13]), chunk(b"gAMA", &[0; 4]), actl, chunk(b"IDAT", b"acTL\0\0\0\x09")].concat()
    }

    fn webp(frames: usize) -> Vec<u8> {
        let chunk = |kind: &[u8; 4], data: &[u8]| [kind, &(data.len() as u32).to_le_bytes()[..], data].concat();
        let frame = [chunk(b"ANMF", b"odd"), vec![0]].concat();
        [b"RIFF\0\0\0\0WEBP".to_vec(), chunk(b"VP8X", &[0; 10]), chunk(b"ANIM", &[0; 6]), frame.repeat(frames)].concat()
    }

    fn gif(frames: usize) -> Vec<u8> {
        let head = [&b"GIF89a\x01\0\x01\0\x80\0\0"[..], &[0; 6]].concat();
        let comment = b"!\xfe\x05,,,,,\0";
        // A local table of four colors, and data that holds image separators.
        let image = [&b",\0\0\0\0\x01\0\x01\0\x81"[..], &[0; 12], b"\x02\x03,,,\x02,,\0"].concat();
        [head, comment.to_vec(), image.repeat(frames), b";".to_vec()].concat()
    }

    #[test]
    fn a_second_frame_makes_an_animation() {
        for (name, file, expected) in [
            ("PNG", png(None), false),
            ("PNG of one frame", png(Some(1)), false),
            ("PNG of two frames", png(Some(2)), true),
            ("WebP", webp(0), false),
            ("WebP of one frame", webp(1), false),
            ("WebP of two frames", webp(2), true),
            ("WebP of three frames", webp(3), true),
            ("GIF without a frame", gif(0), false),
            ("GIF", gif(1), false),
            ("GIF of two frames", gif(2), true),
            ("JPEG", b"\xff\xd8\xff\xe0\0\x04,,\xff\xd9".repeat(3), false),
            ("nothing", Vec::new(), false),
        ] {
            assert_eq!(is_animated(&file), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic_and_pieces_do_not_matter(
            file in prop::sample::select(vec![png(Some(2)), webp(2), gif(2)]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            piece in 1..20_usize,
        ) {
            let mut file = file;
            for (place, value) in changes {
                let at = place.index(file.len());
                file[at] = value;
            }
            let mut counter = FrameCounter::default();
            file.chunks(piece).for_each(|piece| counter.push(piece));
            prop_assert_eq!(counter.is_animated(), is_animated(&file));
        }
    }
}
