//! Reads the parts of a JPEG that libjpeg-turbo does not report: the ICC profile, the number of
//! scans, and which samples they hold.

use super::DecodeError;

/// The maximum number of scans of a JPEG. Encoders write about ten. Each additional scan costs a
/// few bytes of input and makes the decoder process the whole image again (libjpeg-turbo, "Two
/// Issues with the JPEG Standard").
pub const MAX_SCANS: u32 = 100;

#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The ICC profile, assembled from its segments (ICC.1:2022, B.4).
    pub icc: Option<Vec<u8>>,
    /// `true` if the file is lossless (T.81, annex H). Lossless JPEG has no transform, so neither
    /// scaled nor partial decoding is possible.
    pub is_lossless: bool,
    /// The number of scans, counted up to [`MAX_SCANS`] + 1.
    pub scans: u32,
}

/// Scans the whole file.
///
/// # Errors
///
/// `CutShort` if a segment extends beyond the file, or if the end marker is missing before all scans are there;
/// `TooManyScans`.
pub(super) fn parse(bytes: &[u8]) -> Result<Segments, DecodeError> {
    const ICC: &[u8] = b"ICC_PROFILE\0";
    let mut segments = Segments::default();
    let mut profile: Vec<(u8, &[u8])> = Vec::new();
    let mut image = Dimensions::default();
    let mut at = 2;
    loop {
        match next_marker(bytes, at) {
            Some(next) => at = next,
            // Only the decoder can tell if the last scan is complete.
            None if image.is_complete() => break,
            None => return Err(DecodeError::CutShort),
        }
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
                image.scan(data);
            }
            0xe2 => {
                if let Some([number, _count, part @ ..]) = data.strip_prefix(ICC) {
                    profile.push((*number, part));
                }
            }
            // Frame headers are C0 to CF without DHT, JPG and DAC.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                segments.is_lossless |= marker == 0xc3;
                image.frame(marker, data);
            }
            _ => {}
        }
    }
    if !profile.is_empty() {
        profile.sort_by_key(|(number, _)| *number);
        segments.icc = Some(profile.iter().flat_map(|(_, part)| part.iter().copied()).collect());
    }
    Ok(segments)
}

/// The samples of an image that its scans hold.
#[derive(Default)]
struct Dimensions {
    is_progressive: bool,
    /// The identifier of each component, and for each of its coefficients how many of the low bits are missing.
    components: Vec<(u8, [u8; 64])>,
}

impl Dimensions {
    /// Reads a frame header (T.81, B.2.2). The first one counts; the decoder refuses another.
    fn frame(&mut self, marker: u8, data: &[u8]) {
        if self.components.is_empty() {
            self.is_progressive = matches!(marker, 0xc2 | 0xca);
            let specifications = data.get(6..).unwrap_or_default().as_chunks::<3>().0;
            self.components = specifications.iter().map(|[id, ..]| (*id, [u8::MAX; 64])).collect();
        }
    }

    /// Reads a scan header (T.81, B.2.3). Outside of a progressive image, a scan holds its components as a whole, whatever
    /// coefficients it states.
    fn scan(&mut self, data: &[u8]) {
        let Some((count, rest)) = data.split_first() else { return };
        let (selectors, parameters) = rest.split_at(rest.len().min(2 * usize::from(*count)));
        let (first, last, missing) = match parameters {
            [first, last, bits, ..] if self.is_progressive => (*first, *last, bits & 15),
            _ => (0, 63, 0),
        };
        for [id, _tables] in selectors.as_chunks::<2>().0 {
            for (_, coefficients) in self.components.iter_mut().filter(|(component, _)| component == id) {
                if let Some(held) = coefficients.get_mut(usize::from(first)..=usize::from(last)) {
                    held.fill(missing);
                }
            }
        }
    }

    /// Returns `true` if scans began for all samples.
    fn is_complete(&self) -> bool {
        !self.components.is_empty() && self.components.iter().all(|(_, missing)| *missing == [0; 64])
    }
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
