//! Reads the parts of a JPEG that libjpeg-turbo does not report: the ICC profile, the Adobe marker,
//! and the number of scans.

use super::DecodeError;

/// The maximum number of scans of a JPEG. Encoders write about ten. Each additional scan costs a
/// few bytes of input and makes the decoder process the whole picture again (libjpeg-turbo, "Two
/// Issues with the JPEG Standard").
pub const MAX_SCANS: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The ICC profile, assembled from its segments (ICC.1:2022, B.4).
    pub icc: Option<Vec<u8>>,
    /// Whether the file has an Adobe marker. The encoders that write it store CMYK inverted.
    pub is_adobe: bool,
    /// Whether the file is lossless (T.81, annex H). Lossless JPEG has no transform, so neither
    /// scaled nor partial decoding is possible.
    pub is_lossless: bool,
    /// The number of scans, counted up to [`MAX_SCANS`] + 1.
    pub scans: u32,
}

/// Scans the whole file.
///
/// # Errors
///
/// `CutShort` if a segment extends beyond the file or the end marker is missing; `TooManyScans`.
pub(super) fn read(bytes: &[u8]) -> Result<Segments, DecodeError> {
    const ICC: &[u8] = b"ICC_PROFILE\0";
    let mut segments = Segments::default();
    let mut profile: Vec<(u8, &[u8])> = Vec::new();
    let mut at = 2;
    loop {
        at = next_marker(bytes, at).ok_or(DecodeError::CutShort)?;
        let marker = bytes[at];
        at += 1;
        if marker == 0xd9 {
            break;
        }
        if matches!(marker, 0x01 | 0xd0..=0xd8) {
            continue;
        }
        let length = bytes.get(at..at + 2).ok_or(DecodeError::CutShort)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let data = bytes.get(at + 2..at + length.max(2)).ok_or(DecodeError::CutShort)?;
        at += length.max(2);
        match marker {
            0xda => {
                segments.scans += 1;
                if segments.scans > MAX_SCANS {
                    return Err(DecodeError::TooManyScans);
                }
            }
            0xe2 => {
                if let Some([number, _count, part @ ..]) = data.strip_prefix(ICC) {
                    profile.push((*number, part));
                }
            }
            0xc3 => segments.is_lossless = true,
            0xee => segments.is_adobe |= data.len() >= 12 && data.starts_with(b"Adobe"),
            _ => {}
        }
    }
    if !profile.is_empty() {
        profile.sort_by_key(|(number, _)| *number);
        segments.icc = Some(profile.iter().flat_map(|(_, part)| part.iter().copied()).collect());
    }
    Ok(segments)
}

/// The position of the next marker's code, after entropy-coded data and fill bytes (T.81, B.1.1.2
/// and B.1.1.5).
fn next_marker(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr(0xff, bytes.get(at..)?)? + 1;
        match bytes.get(at)? {
            // In entropy-coded data, a byte of 255 is followed by a stuffed zero. Restart markers
            // are part of the data.
            0x00 | 0xd0..=0xd7 => at += 1,
            // The previous byte was a fill byte. This one may begin the marker.
            0xff => {}
            _ => return Some(at),
        }
    }
}
