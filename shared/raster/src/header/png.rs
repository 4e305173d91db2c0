//! PNG (third edition, 5 and 11): `IHDR` comes first, `cICP` and `eXIf` may come before the image data.

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
    /// The header without what may follow.
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
        let header = match &bytes[4..8] {
            b"IDAT" | b"IEND" => return Ok(Step::Done(image)),
            b"eXIf" | b"cICP" if whole <= MAX_KEPT_BYTES as u64 => {
                if (bytes.len() as u64) < whole {
                    return Ok(Step::Need(whole as usize));
                }
                let data = &bytes[CHUNK_HEAD..CHUNK_HEAD + length as usize];
                if &bytes[4..8] == b"eXIf" {
                    let orientation = Orientation::from_exif_block(data).unwrap_or_default();
                    let header = Header::new(Format::Png, image.stored_size(), orientation, image.decoding)?;
                    Header { code_points: image.code_points, ..header }
                } else {
                    let code_points = CodePoints::parse(data).filter(|_| is_intact(&bytes[..whole as usize]));
                    let code_points = code_points.map(CodePoints::check).transpose()?;
                    Header { code_points: code_points.or(image.code_points), ..image }
                }
            }
            _ => image,
        };
        self.image = Some(header);
        Ok(Step::Skip(whole))
    }
}

/// Colors by the numbers of ITU-T H.273.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodePoints {
    /// Color primaries and the white point (table 2).
    pub(crate) primaries: u8,
    /// Transfer function (table 3).
    pub(crate) transfer: u8,
    matrix: u8,
    full_range: u8,
}

impl CodePoints {
    /// Colors whose samples were converted to red, green and blue in full range.
    pub(crate) fn of_rgb(primaries: u8, transfer: u8) -> Result<Self, HeaderError> {
        let points = Self { primaries, transfer, matrix: 0, full_range: 1 };
        points.check().map_err(|_| HeaderError::UnsupportedAvif("a color space"))
    }

    /// Reads the data of a chunk `cICP`. `None` if it says nothing: it is broken, or primaries and transfer function are
    /// "unspecified".
    fn parse(data: &[u8]) -> Option<Self> {
        match *data {
            [2, 2, ..] => None,
            [primaries, transfer, matrix, full_range] => Some(Self { primaries, transfer, matrix, full_range }),
            _ => None,
        }
    }

    /// Not supported are reserved numbers, CIE XYZ, logarithmic curves, and high dynamic range (PQ, HLG), which would need
    /// tone mapping.
    fn check(self) -> Result<Self, HeaderError> {
        let (part, value) = match self {
            Self { primaries: 0 | 2 | 3 | 10 | 13..=21 | 23.., .. } => ("color primaries", self.primaries),
            Self { transfer: 0 | 2 | 3 | 9 | 10 | 16 | 18.., .. } => ("transfer function", self.transfer),
            Self { matrix: 1.., .. } => ("matrix coefficients", self.matrix),
            Self { full_range: 0 | 2.., .. } => ("full range flag", self.full_range),
            _ => return Ok(self),
        };
        Err(HeaderError::UnsupportedColors { part, value })
    }
}

/// Returns `true` if the checksum of a chunk is right.
fn is_intact(chunk: &[u8]) -> bool {
    let (head, stored) = chunk.split_at(chunk.len() - 4);
    let mut checksum = flate2::Crc::new();
    checksum.update(&head[4..]);
    checksum.sum() == be32(stored, 0)
}

fn read_ihdr(chunk: &[u8]) -> Result<Header, HeaderError> {
    const GREY: u8 = 0;
    const GREY_ALPHA: u8 = 4;
    if be32(chunk, 0) != 13 || &chunk[4..8] != b"IHDR" {
        return Err(HeaderError::Malformed);
    }
    let (depth, color, interlaced) = (chunk[16], chunk[17], chunk[20]);
    let depth_fits = match color {
        GREY => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | GREY_ALPHA | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    if !is_intact(&chunk[..IHDR]) || !depth_fits || chunk[18] != 0 || chunk[19] != 0 || interlaced > 1 {
        return Err(HeaderError::Malformed);
    }
    let size = Size::new(be32(chunk, 8), be32(chunk, 12));
    // Rows of 16 bits are narrowed one by one, but an interlaced image is complete only after its
    // last pass. Gray samples are kept in addition to the colors they are converted to.
    let extra = match (depth, interlaced, color) {
        (16, 1, _) => 4,
        (_, _, GREY | GREY_ALPHA) => 2,
        _ => 0,
    };
    let decoding = Decoding { codec_bytes: extra, ..Decoding::usual(Format::Png) };
    Header::new(Format::Png, size, Orientation::Normal, decoding)
}
