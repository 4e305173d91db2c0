//! PNG (third edition, 5 and 11): `IHDR` comes first, `eXIf` may come before the image data.

use super::{Decoding, Header, HeaderError, MAX_KEPT_BYTES, Step, be32};
use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

const SIGNATURE: usize = 8;
/// The length and the type of a chunk.
const CHUNK_HEAD: usize = 8;
/// The length, the type, 13 bytes of data, and the checksum.
const IHDR: usize = CHUNK_HEAD + 13 + 4;

#[derive(Default)]
pub(super) struct Parser {
    image: Option<Header>,
}

impl Parser {
    /// The header without the EXIF block that may follow.
    pub(super) fn known(&self) -> Option<Header> {
        self.image
    }

    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        let Some(image) = self.image else {
            if bytes.len() < SIGNATURE + IHDR {
                return Ok(Step::Need(SIGNATURE + IHDR));
            }
            self.image = Some(read_ihdr(&bytes[SIGNATURE..])?);
            return Ok(Step::Skip((SIGNATURE + IHDR) as u64));
        };
        if bytes.len() < CHUNK_HEAD {
            return Ok(Step::Need(CHUNK_HEAD));
        }
        let length = be32(bytes, 0);
        let whole = CHUNK_HEAD as u64 + u64::from(length) + 4;
        match &bytes[4..8] {
            b"IDAT" | b"IEND" => Ok(Step::Done(image)),
            b"eXIf" if whole <= MAX_KEPT_BYTES as u64 => {
                if (bytes.len() as u64) < whole {
                    return Ok(Step::Need(whole as usize));
                }
                let block = &bytes[CHUNK_HEAD..CHUNK_HEAD + length as usize];
                let orientation = Orientation::from_exif_block(block).unwrap_or_default();
                Header::new(Format::Png, image.stored_size(), orientation, image.decoding).map(Step::Done)
            }
            _ => Ok(Step::Skip(whole)),
        }
    }
}

fn read_ihdr(chunk: &[u8]) -> Result<Header, HeaderError> {
    const GREY: u8 = 0;
    const GREY_ALPHA: u8 = 4;
    if be32(chunk, 0) != 13 || &chunk[4..8] != b"IHDR" {
        return Err(HeaderError::Malformed);
    }
    let mut checksum = flate2::Crc::new();
    checksum.update(&chunk[4..21]);
    let (depth, color, interlaced) = (chunk[16], chunk[17], chunk[20]);
    let depth_fits = match color {
        GREY => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | GREY_ALPHA | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    if checksum.sum() != be32(chunk, 21) || !depth_fits || chunk[18] != 0 || chunk[19] != 0 || interlaced > 1 {
        return Err(HeaderError::Malformed);
    }
    let size = Size::new(be32(chunk, 8), be32(chunk, 12));
    // Rows of 16 bits are narrowed one by one, but an interlaced picture is complete only after its
    // last pass. Gray samples are kept in addition to the colors they are converted to.
    let extra = match (depth, interlaced, color) {
        (16, 1, _) => 4,
        (_, _, GREY | GREY_ALPHA) => 2,
        _ => 0,
    };
    let decoding = Decoding { codec_bytes: extra, ..Decoding::usual(Format::Png) };
    Header::new(Format::Png, size, Orientation::Normal, decoding)
}
