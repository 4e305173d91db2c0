//! The video model, `animatic` (docs/reference/models.md#animatic). It makes an H.264 MP4 that moves
//! from the first to the last frame, with the prompt as a caption and the references as insets.
//!
//! **Guarantee.** The same order gives the same bytes from the same build, whatever the load.
//! Browsers can play the file: constrained baseline profile, 4:2:0, signaled as BT.709 in the
//! limited range, index before data. The video has exactly the requested duration. It begins with
//! the order's first frame and ends with its last frame, both without a caption. Frames are made
//! one at a time, so memory use does not depend on the duration, except for the encoded data, whose
//! bit rate is limited.
//!
//! **Mechanism.** [`scene`] determines what each frame shows and paints it with `raster::motion`.
//! [`h264`] encodes the frames on the calling thread. [`mp4`] writes the file when all frames are
//! encoded.
//!
//! **Reason.** Video jobs must work end to end on a machine without a provider key, network or GPU.
//! An animatic (an animated storyboard) is also useful before a model is chosen.

mod backdrop;
mod caption;
mod h264;
mod insets;
mod mp4;
mod scene;
mod still;

use bytes::Bytes;
use raster::motion::{Planes, frame};
use raster::{Color, DecodeError, Size};

pub use h264::EncoderError;
use scene::Scene;

/// Frames per second: the rate of cinema, which every browser supports.
pub const FRAMES_PER_SECOND: u32 = 24;

/// The defaults of a brief.
const DEFAULT_SECONDS: u32 = 5;
const DEFAULT_RATIO: &str = "16:9";
const DEFAULT_RESOLUTION: &str = "720p";

/// The maximum duration of a video of this runtime in seconds.
const SECONDS_MAX: u32 = 120;

/// The permitted length of the shorter side in pixels. The encoder also accepts these at the widest
/// ratio, 2.4 : 1.
const SHORT_SIDES: std::ops::RangeInclusive<u32> = 144..=1080;

/// The input of a video.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The prompt, shown as the caption; may be empty.
    pub prompt: String,
    /// The file of the first frame.
    pub first: Option<Bytes>,
    /// The file of the last frame.
    pub last: Option<Bytes>,
    /// The files of the references, shown as insets.
    pub references: Vec<Bytes>,
    /// The duration in seconds, 1 to 120.
    pub seconds: u32,
    /// The width and height in pixels, both even.
    pub size: Size,
}

/// An input image of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    First,
    Last,
    /// A reference image, numbered from 1.
    Reference(usize),
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::First => f.write_str("the first frame"),
            Self::Last => f.write_str("the last frame"),
            Self::Reference(number) => write!(f, "reference {number}"),
        }
    }
}

/// The reason why a video could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The size, ratio or duration is not supported.
    #[error("unsupported video size")]
    Shape,
    /// An input image cannot be decoded. The message may be shown to its owner.
    #[error("{which} cannot be read")]
    Image { which: Which, source: DecodeError },
    #[error("the encoder failed")]
    Encoder(#[from] EncoderError),
}

impl Brief {
    /// A brief without images. The defaults are the first values of the catalog entry.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if the size or the duration is not supported. The catalog permits no such order.
    pub fn new(
        prompt: String,
        seconds: Option<u32>,
        ratio: Option<&str>,
        resolution: Option<&str>,
    ) -> Result<Self, Error> {
        let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
        let size = frame_size(ratio.unwrap_or(DEFAULT_RATIO), resolution.unwrap_or(DEFAULT_RESOLUTION));
        let size = size.ok_or(Error::Shape)?;
        if !(1..=SECONDS_MAX).contains(&seconds) {
            return Err(Error::Shape);
        }
        Ok(Self { prompt, first: None, last: None, references: Vec::new(), seconds, size })
    }

    /// An upper estimate of the memory that [`render`] needs, including the input files, in bytes.
    ///
    /// Images are decoded one after another, so only the largest is counted with its pixels and a
    /// working copy of them.
    pub fn memory_bytes(&self) -> u64 {
        let files = self.first.iter().chain(&self.last).chain(&self.references);
        let file_bytes: u64 = files.clone().map(|file| file.len() as u64).sum();
        let largest = files.filter_map(|file| raster::probe(file).ok()).map(|header| header.size().pixels()).max();
        let decoded = largest.unwrap_or(0) * DECODED_BYTES;
        file_bytes + decoded + scene::LAYERS * 4 * self.size.pixels() + self.encoded_bytes() + FIXED_BYTES
    }

    /// An upper limit of the size of the encoded samples and the file, in bytes.
    fn encoded_bytes(&self) -> u64 {
        2 * h264::bytes_max(self.size, f64::from(self.seconds))
    }

    fn frame_count(&self) -> u32 {
        self.seconds * FRAMES_PER_SECOND
    }
}

/// Bytes per decoded pixel, including a copy in another layout.
const DECODED_BYTES: u64 = 12;

/// Memory that every video needs: glyphs and the encoder's tables.
const FIXED_BYTES: u64 = 24 << 20;

/// The frame size for a ratio such as `16:9` and a resolution such as `720p`. The resolution is the
/// shorter side; the longer one is rounded up to an even number. `None` if a text is invalid or the
/// encoder does not support the size.
fn frame_size(ratio: &str, resolution: &str) -> Option<Size> {
    let (across, down) = ratio.split_once(':')?;
    let (across, down): (u32, u32) = (across.parse().ok()?, down.parse().ok()?);
    let short: u32 = resolution.strip_suffix('p')?.parse().ok()?;
    let (less, more) = (across.min(down), across.max(down));
    if less == 0 || !SHORT_SIDES.contains(&short) || u64::from(more) * 10 > u64::from(less) * 24 {
        return None;
    }
    let short = short.next_multiple_of(2);
    let long = (short * more).div_ceil(less).next_multiple_of(2);
    Some(if across >= down { Size::new(long, short) } else { Size::new(short, long) })
}

/// Makes a video and returns the bytes of its MP4 file. `before_frame` is called before each frame.
///
/// # Errors
///
/// Any [`Error`] except `Shape`.
pub fn render(brief: &Brief, mut before_frame: impl FnMut()) -> Result<Vec<u8>, Error> {
    let mut scene = Scene::new(brief, brief.frame_count())?;
    for quantizer in h264::QUANTIZERS {
        let is_coarsest = Some(&quantizer) == h264::QUANTIZERS.last();
        if let Some(track) = encode(brief, &mut scene, quantizer, is_coarsest, &mut before_frame)? {
            return track.into_file().ok_or(Error::Encoder(EncoderError::NoParameters));
        }
    }
    Err(Error::Shape)
}

/// Encodes a scene with one QP. Returns `None` if the result is too large, as with noise, and
/// `may_be_large` is false. Noise shows in the first frames, so little time is lost.
fn encode(
    brief: &Brief,
    scene: &mut Scene,
    quantizer: u8,
    may_be_large: bool,
    before_frame: &mut impl FnMut(),
) -> Result<Option<mp4::Track>, Error> {
    let mut encoder = h264::Encoder::new(brief.size, FRAMES_PER_SECOND, quantizer)?;
    let mut image = frame(brief.size, Color::WHITE);
    let mut planes = Planes::new(brief.size).ok_or(Error::Shape)?;
    let mut track = mp4::Track::new(brief.size, FRAMES_PER_SECOND);
    for index in 0..brief.frame_count() {
        before_frame();
        scene.paint(index, &mut image);
        planes.fill(&image);
        encoder.encode(&planes, index, &mut track)?;
        let seconds = f64::from(index + 1) / f64::from(FRAMES_PER_SECOND);
        if track.bytes() > h264::bytes_max(brief.size, seconds) && !may_be_large {
            return Ok(None);
        }
    }
    Ok(Some(track))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_side_is_the_resolution_and_the_longer_one_is_even() {
        let size = |ratio, resolution| frame_size(ratio, resolution).map(|size| (size.width, size.height));
        assert_eq!(size("16:9", "720p"), Some((1280, 720)));
        assert_eq!(size("9:16", "720p"), Some((720, 1280)));
        assert_eq!(size("1:1", "720p"), Some((720, 720)));
        assert_eq!(size("16:9", "480p"), Some((854, 480)));
        assert_eq!(size("9:16", "480p"), Some((480, 854)));
        assert_eq!(size("1:1", "480p"), Some((480, 480)));
        assert_eq!(size("12:5", "1080p"), Some((2592, 1080)));
        for (ratio, resolution) in [
            ("16x9", "720p"),
            ("0:1", "720p"),
            ("1:0", "720p"),
            ("49:20", "720p"),
            ("4294967295:1", "720p"),
            ("16:9", "720"),
            ("16:9", "p"),
            ("16:9", "142p"),
            ("16:9", "1082p"),
            ("16:9", "-720p"),
        ] {
            assert_eq!(size(ratio, resolution), None, "{ratio} {resolution}");
        }
    }
}
