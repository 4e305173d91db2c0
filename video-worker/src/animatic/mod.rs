//! The embedded video runtime (decisions 12.2): an H.264 MP4 that moves from the first to the last frame, with the prompt as
//! its caption and references as inserts.
//!
//! **Guarantee.** The same order gives the same bytes from the same build, whatever the load. The file plays in a browser:
//! constrained baseline profile, 4:2:0, BT.709 in the limited range and said so, the index before the data. It lasts exactly
//! as long as was asked, its first frame is the first frame of the order and its last one the last, both without caption.
//! Frames are made one at a time: memory does not grow with the duration, but for the encoded bytes, which a bit rate bounds.
//!
//! **Mechanism.** A [`scene`] knows what is seen at each moment and paints it by `raster::motion`; [`h264`] encodes on the
//! calling thread alone; [`mp4`] puts the samples into a file when all are there.
//!
//! **Reason.** The whole path of a video job has to be real on a machine without key, network or processor for graphics; and
//! an animatic, a storyboard set in motion, is of use to people while a model is still to be chosen.

mod backdrop;
mod caption;
mod cards;
mod h264;
mod mp4;
mod scene;
mod stage;

use bytes::Bytes;
use providers::{Order, Shape};
use raster::motion::{Planes, frame};
use raster::{Color, DecodeError, Size};

pub use h264::EncoderError;
use scene::Scene;

/// Frames a second: cinema's, and every browser's.
pub const FRAMES_PER_SECOND: u32 = 24;

/// What an order leaves open: the first of what the catalogue's entry offers.
const DEFAULT_SECONDS: u32 = 5;
const DEFAULT_RATIO: &str = "16:9";
const DEFAULT_RESOLUTION: &str = "720p";

/// The longest of them (specification, Limits).
const SECONDS_MAX: u32 = 120;

/// Rows, or columns of upright video: what the encoder takes at the widest ratio, 2.4 : 1, too.
const SHORT_SIDES: std::ops::RangeInclusive<u32> = 144..=1080;

/// What a film is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The caption; may be empty.
    pub prompt: String,
    /// The file of what it begins with.
    pub first: Option<Bytes>,
    /// The file of what it ends with.
    pub last: Option<Bytes>,
    /// Files of what is inserted.
    pub references: Vec<Bytes>,
    /// How long it lasts, 1 to 120.
    pub seconds: u32,
    /// Columns and rows, both even.
    pub size: Size,
}

/// Which picture of a brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first frame.
    First,
    /// The last frame.
    Last,
    /// A reference, from 1.
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

/// Why there is no film.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The order is not one for this runtime.
    #[error("no video of this shape can be made")]
    Shape,
    /// A picture cannot be decoded. The message is fit for its owner.
    #[error("{which} cannot be read")]
    Picture {
        /// Which one.
        which: Which,
        /// Why.
        source: DecodeError,
    },
    /// The encoder failed.
    #[error("the encoder failed")]
    Encoder(#[from] EncoderError),
    /// Whoever waits for it gave up.
    #[error("the film was given up")]
    Stopped,
}

impl Brief {
    /// What an order asks for.
    ///
    /// # Errors
    /// [`Error::Shape`] when it asks for a picture, or for a shape that cannot be: the catalogue admits no such order.
    pub fn of(order: &Order) -> Result<Self, Error> {
        let Shape::Video { first_frame, last_frame, duration_seconds, aspect_ratio, resolution, .. } = &order.shape
        else {
            return Err(Error::Shape);
        };
        let file = |picture: &providers::Picture| picture.bytes.clone();
        let seconds = duration_seconds.unwrap_or(DEFAULT_SECONDS);
        let ratio = aspect_ratio.as_deref().unwrap_or(DEFAULT_RATIO);
        let size = frame_size(ratio, resolution.as_deref().unwrap_or(DEFAULT_RESOLUTION)).ok_or(Error::Shape)?;
        if !(1..=SECONDS_MAX).contains(&seconds) {
            return Err(Error::Shape);
        }
        Ok(Self {
            prompt: order.prompt.clone(),
            first: first_frame.as_ref().map(file),
            last: last_frame.as_ref().map(file),
            references: order.references.iter().map(file).collect(),
            seconds,
            size,
        })
    }

    /// An upper estimate of the memory that [`film`] takes, the brief's own files included, in bytes.
    ///
    /// Pictures are decoded one after another, so that only the largest counts with its pixels, and a working copy of them.
    pub fn memory_bytes(&self) -> u64 {
        let files = self.first.iter().chain(&self.last).chain(&self.references);
        let file_bytes: u64 = files.clone().map(|file| file.len() as u64).sum();
        let largest = files.filter_map(|file| raster::probe(file).ok()).map(|header| header.size().pixels()).max();
        let decoded = largest.unwrap_or(0) * DECODED_BYTES;
        file_bytes + decoded + scene::LAYERS * 4 * self.size.pixels() + self.encoded_bytes() + FIXED_BYTES
    }

    /// What the encoded samples come to at most, and the file beside them.
    fn encoded_bytes(&self) -> u64 {
        2 * h264::bytes_max(self.size, f64::from(self.seconds))
    }

    fn frame_count(&self) -> u32 {
        self.seconds * FRAMES_PER_SECOND
    }
}

/// A decoded pixel and its copy in another layout.
const DECODED_BYTES: u64 = 12;

/// What a film takes however small it is: letters, the encoder's tables.
const FIXED_BYTES: u64 = 24 << 20;

/// The size of frames of a ratio such as `16:9` and a resolution such as `720p`, which is the shorter side: the longer one is
/// rounded up to an even number. `None` for what is no such text, or out of what the encoder takes.
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

/// Makes the film of a brief: the bytes of an MP4 file. `is_wanted` is asked before each frame.
///
/// # Errors
/// Any [`Error`] but a `Shape`; `Stopped` when it was not wanted any more.
pub fn film(brief: &Brief, is_wanted: impl Fn() -> bool) -> Result<Vec<u8>, Error> {
    let mut scene = Scene::new(brief, brief.frame_count())?;
    for quantiser in h264::QUANTISERS {
        let is_coarsest = Some(&quantiser) == h264::QUANTISERS.last();
        if let Some(track) = shot(brief, &mut scene, quantiser, is_coarsest, &is_wanted)? {
            return track.into_file().ok_or(Error::Encoder(EncoderError::NoParameters));
        }
    }
    Err(Error::Shape)
}

/// Codes a scene with one quantiser; nothing when it takes too many bytes, as noise does, and `may_be_large` does not allow
/// that. Noise shows in the first frames, so that little is lost.
fn shot(
    brief: &Brief,
    scene: &mut Scene,
    quantiser: u8,
    may_be_large: bool,
    is_wanted: &impl Fn() -> bool,
) -> Result<Option<mp4::Track>, Error> {
    let mut encoder = h264::Encoder::new(brief.size, FRAMES_PER_SECOND, quantiser)?;
    let mut picture = frame(brief.size, Color::WHITE);
    let mut planes = Planes::new(brief.size).ok_or(Error::Shape)?;
    let mut track = mp4::Track::new(brief.size, FRAMES_PER_SECOND);
    for index in 0..brief.frame_count() {
        if !is_wanted() {
            return Err(Error::Stopped);
        }
        scene.paint(index, &mut picture);
        planes.fill(&picture);
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
