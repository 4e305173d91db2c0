//! JPEG (ITU-T T.81, annex B). Reads the segments up to the first scan, including an EXIF block in
//! an `APP1` segment before the frame header. The frame header suffices if the file ends after it.

use super::{Decoding, Header, HeaderError, Step, be16};
use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

const EXIF: &[u8] = b"Exif\0\0";
/// The size of a marker and the segment length.
const SEGMENT_HEAD: usize = 4;

#[derive(Default)]
pub(super) struct Parser {
    orientation: Option<Orientation>,
    /// The frame header, and its number of components.
    frame: Option<(Header, u8)>,
}

impl Parser {
    /// The header, whether the first scan was reached or not.
    pub(super) fn known(&self) -> Option<Header> {
        self.frame.map(|(header, _)| header)
    }

    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        match (self.segment(bytes), self.known()) {
            // Damage after the frame header is left to the decoder.
            (Err(_), Some(header)) => Ok(Step::Done(header)),
            (step, _) => step,
        }
    }

    fn segment(&mut self, bytes: &[u8]) -> Result<Step, HeaderError> {
        if bytes.len() < 2 {
            return Ok(Step::Need(2));
        }
        if bytes[0] != 0xff {
            // Bytes between segments have no meaning.
            return Ok(Step::Skip(1));
        }
        match bytes[1] {
            // Any marker may be preceded by fill bytes (B.1.1.2).
            0xff => return Ok(Step::Skip(1)),
            // Start of image, TEM and restart markers have no segment.
            0xd8 | 0x01 | 0xd0..=0xd7 => return Ok(Step::Skip(2)),
            // A stuffed byte is one between segments, too.
            0x00 => return Ok(Step::Skip(2)),
            // The end of the image, without a scan.
            0xd9 => return Err(HeaderError::Malformed),
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
            marker @ 0xc0..=0xcf if self.frame.is_none() && !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                if bytes.len() < whole {
                    return Ok(Step::Need(whole));
                }
                let frame = &bytes[SEGMENT_HEAD..whole];
                self.frame = Some(read_frame(marker, frame, self.orientation.unwrap_or_default())?);
                Ok(Step::Skip(whole as u64))
            }
            // Start of scan.
            0xda => {
                let (header, components) = self.frame.ok_or(HeaderError::Malformed)?;
                match bytes.get(SEGMENT_HEAD) {
                    None => Ok(Step::Need(SEGMENT_HEAD + 1)),
                    Some(count) if *count < components => Ok(Step::Done(header.with_coefficients(components))),
                    Some(_) => Ok(Step::Done(header)),
                }
            }
            0xe1 if self.orientation.is_none() && self.frame.is_none() && whole >= SEGMENT_HEAD + EXIF.len() => {
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

/// The frame header, and its number of components.
fn read_frame(marker: u8, frame: &[u8], orientation: Orientation) -> Result<(Header, u8), HeaderError> {
    let [_precision, h1, h0, w1, w0, components, specifications @ ..] = frame else {
        return Err(HeaderError::Malformed);
    };
    if specifications.len() != usize::from(*components) * 3 {
        return Err(HeaderError::Malformed);
    }
    let size = Size::new(u32::from(u16::from_be_bytes([*w1, *w0])), u32::from(u16::from_be_bytes([*h1, *h0])));
    let pixel_bytes = match components {
        1 => 1 + 3,
        3 => 3,
        4 => 4 + 3,
        _ => return Err(HeaderError::Malformed),
    };
    let header = Header::new(Format::Jpeg, size, orientation, Decoding { pixel_bytes, codec_bytes: 0 })?;
    let header = match marker {
        0xc2 | 0xca => header.with_coefficients(*components),
        // A lossless frame has no transform, so it is never decoded at a reduced scale.
        0xc3 => Header { decoding: Decoding { pixel_bytes: 0, codec_bytes: pixel_bytes }, ..header },
        _ => header,
    };
    Ok((header, *components))
}

impl Header {
    /// A JPEG of several scans, progressive or with some components in each. The decoder keeps the 16-bit coefficients of the whole
    /// image until the last scan.
    fn with_coefficients(self, components: u8) -> Self {
        let decoding = Decoding { codec_bytes: 2 * components, ..self.decoding };
        Self { decoding, ..self }
    }
}
