//! JPEG (ITU-T T.81, annex B). Reads the segments up to the frame header, including an EXIF block
//! in an `APP1` segment before it.

use super::{Header, HeaderError, Step, be16};
use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

const EXIF: &[u8] = b"Exif\0\0";
/// The size of a marker and the segment length.
const SEGMENT_HEAD: usize = 4;

#[derive(Default)]
pub(super) struct Parser {
    orientation: Option<Orientation>,
}

impl Parser {
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        if bytes.len() < 2 {
            return Ok(Step::Need(2));
        }
        if bytes[0] != 0xff {
            return Err(HeaderError::Malformed);
        }
        match bytes[1] {
            // Any marker may be preceded by fill bytes (B.1.1.2).
            0xff => return Ok(Step::Skip(1)),
            // Start of image, TEM and restart markers have no segment.
            0xd8 | 0x01 | 0xd0..=0xd7 => return Ok(Step::Skip(2)),
            // Image data, or the end of the image, without a frame header.
            0x00 | 0xd9 | 0xda => return Err(HeaderError::Malformed),
            _ => {}
        }
        if bytes.len() < SEGMENT_HEAD {
            return Ok(Step::Need(SEGMENT_HEAD));
        }
        let length = usize::from(be16(bytes, 2));
        if length < 2 {
            return Err(HeaderError::Malformed);
        }
        let whole = 2 + length;
        match bytes[1] {
            // Frame headers are C0 to CF without DHT, JPG and DAC.
            marker @ 0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                if bytes.len() < whole {
                    return Ok(Step::Need(whole));
                }
                read_frame(marker, &bytes[SEGMENT_HEAD..whole], self.orientation.unwrap_or_default()).map(Step::Done)
            }
            0xe1 if self.orientation.is_none() && whole >= SEGMENT_HEAD + EXIF.len() => {
                let prefix = SEGMENT_HEAD + EXIF.len();
                if bytes.len() < prefix {
                    return Ok(Step::Need(prefix));
                }
                if &bytes[SEGMENT_HEAD..prefix] == EXIF {
                    if bytes.len() < whole {
                        return Ok(Step::Need(whole));
                    }
                    self.orientation = Orientation::from_exif_block(&bytes[SEGMENT_HEAD..whole]);
                }
                Ok(Step::Skip(whole as u64))
            }
            _ => Ok(Step::Skip(whole as u64)),
        }
    }
}

fn read_frame(marker: u8, frame: &[u8], orientation: Orientation) -> Result<Header, HeaderError> {
    let [_precision, h1, h0, w1, w0, components, specifications @ ..] = frame else {
        return Err(HeaderError::Malformed);
    };
    if specifications.len() != usize::from(*components) * 3 {
        return Err(HeaderError::Malformed);
    }
    let size = Size::new(u32::from(u16::from_be_bytes([*w1, *w0])), u32::from(u16::from_be_bytes([*h1, *h0])));
    let pixels = match components {
        1 => 1 + 3,
        3 => 3,
        4 => 4 + 3,
        _ => return Err(HeaderError::Malformed),
    };
    // All scans of a progressive frame refine 16-bit coefficients, which are kept for the whole
    // picture.
    let progressive = matches!(marker, 0xc2 | 0xca);
    let coefficients = if progressive { 2 * components } else { 0 };
    Header::new(Format::Jpeg, size, orientation, pixels + coefficients)
}
