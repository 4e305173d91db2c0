//! WebP (RFC 9649): a RIFF file of chunks. The extended format declares the EXIF chunk at the
//! beginning and stores it at the end.

use super::{Decoding, Header, HeaderError, MAX_KEPT_BYTES, Step, le16, le24, le32};
use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

const RIFF_HEAD: usize = 12;
const CHUNK_HEAD: usize = 8;
const EXIF_FLAG: u8 = 0x08;

#[derive(Default)]
pub(super) struct Parser {
    image: Option<Header>,
    /// The number of bytes of the RIFF data after the current position.
    left: u64,
}

impl Parser {
    /// The header without the EXIF chunk that may follow.
    pub(super) fn known(&self) -> Option<Header> {
        self.image
    }

    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        match self.image {
            None => self.first_chunk(bytes),
            Some(image) => self.later_chunk(bytes, image),
        }
    }

    fn first_chunk(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        if bytes.len() < RIFF_HEAD + CHUNK_HEAD {
            return Ok(Step::Need(RIFF_HEAD + CHUNK_HEAD));
        }
        let chunk = &bytes[RIFF_HEAD..];
        // The part of the first chunk that contains the size. A whole lossless file can be shorter
        // than this part of the other formats.
        let part = if &chunk[..4] == b"VP8L" { 5 } else { 10 };
        if bytes.len() < RIFF_HEAD + CHUNK_HEAD + part {
            return Ok(Step::Need(RIFF_HEAD + CHUNK_HEAD + part));
        }
        let data = &chunk[CHUNK_HEAD..];
        // Four bytes per pixel for the output; the codecs need up to the same amount internally.
        let header = |size| Header::new(Format::Webp, size, Orientation::Normal, Decoding::usual(Format::Webp));
        match &chunk[..4] {
            // A key frame (bit 0 clear) with its start code, then 14 bits a side (RFC 6386, 9.1).
            b"VP8 " if data[0] & 1 == 0 && data[3..6] == [0x9d, 0x01, 0x2a] => {
                let side = |at| u32::from(le16(data, at) & 0x3fff);
                header(Size::new(side(6), side(8))).map(Step::Done)
            }
            // A signature byte, then 14 bits per side, each minus one.
            b"VP8L" if data[0] == 0x2f => {
                let bits = le32(data, 1);
                header(Size::new((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)).map(Step::Done)
            }
            b"VP8X" => {
                let image = header(Size::new(le24(data, 4) + 1, le24(data, 7) + 1))?;
                if data[0] & EXIF_FLAG == 0 {
                    return Ok(Step::Done(image));
                }
                self.image = Some(image);
                let first = CHUNK_HEAD as u64 + padded(le32(chunk, 4));
                // The length in the RIFF header does not include the first eight bytes.
                self.left = (u64::from(le32(bytes, 4)) + 8).saturating_sub(RIFF_HEAD as u64 + first);
                Ok(Step::Skip(RIFF_HEAD as u64 + first))
            }
            _ => Err(HeaderError::Malformed),
        }
    }

    fn later_chunk(&mut self, bytes: &[u8], image: Header) -> Result<Step, HeaderError> {
        if self.left < CHUNK_HEAD as u64 {
            return Ok(Step::Done(image));
        }
        if bytes.len() < CHUNK_HEAD {
            return Ok(Step::Need(CHUNK_HEAD));
        }
        let length = le32(bytes, 4);
        let unpadded = CHUNK_HEAD as u64 + u64::from(length);
        if &bytes[..4] != b"EXIF" {
            let whole = CHUNK_HEAD as u64 + padded(length);
            self.left = self.left.saturating_sub(whole);
            return Ok(Step::Skip(whole));
        }
        if unpadded > MAX_KEPT_BYTES as u64 {
            return Ok(Step::Done(image));
        }
        if (bytes.len() as u64) < unpadded {
            return Ok(Step::Need(unpadded as usize));
        }
        let orientation = Orientation::from_exif_block(&bytes[CHUNK_HEAD..unpadded as usize]).unwrap_or_default();
        Header::new(Format::Webp, image.stored_size(), orientation, image.decoding).map(Step::Done)
    }
}

/// Chunks are padded to an even length.
fn padded(length: u32) -> u64 {
    u64::from(length) + u64::from(length & 1)
}
