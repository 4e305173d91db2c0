//! Decodes one frame of an H.264 film ([`decode`]).
//!
//! **Guarantee.** The frame that comes out is the one that was asked for, bit by bit as the standard defines it, or there is an error:
//! nothing is concealed. Equal samples give equal pixels, on every machine.
//!
//! **Mechanism.** The samples from a key frame to the wanted one are decoded. Parameter sets are read first, so that what the decoder
//! lacks is refused with its name. [`color`] converts the picture to sRGB.
//!
//! **Reason.** The decoder is `rusty_h264`, in safe Rust. OpenH264, which encodes the videos of the embedded runtime, decodes some of the
//! B-frames of x264 wrong, and does not notice (`docs/adr/0010-native-codecs.md`). Either reads bytes from anyone, so this runs in a child
//! of the worker (`docs/adr/0018-decoders.md`).

mod color;

use film::avc::Config;
use film::{Color, Turn};
use raster::{Bitmap, Orientation};
use rusty_h264_decoder::Decoder;

/// The samples that lead to a frame.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The content of the film's `avcC`.
    pub config: &'a [u8],
    /// The samples in the order of decoding, from a key frame to the one that is wanted.
    pub samples: &'a [&'a [u8]],
    /// How to turn the frame.
    pub turn: Turn,
    /// Its color, if the film says it outside of its pictures.
    pub color: Option<Color>,
}

/// The reason why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The parameters of the film are damaged.
    #[error("the film is damaged: {0}")]
    Film(#[from] film::Error),
    /// Its form of H.264 is not built in.
    #[error("the film's codec is H.264 {0}, which is not built in")]
    Form(String),
    /// A sample cannot be decoded.
    #[error("the film's H.264 cannot be decoded: {0}")]
    Frame(String),
}

/// The start code of a unit (ITU-T H.264, annex B).
const START: [u8; 4] = [0, 0, 0, 1];

/// The largest number of pixels of a frame: 4096 × 4096.
const PIXELS_MAX: u64 = 4096 * 4096;

/// Upper bound in bytes of the memory to decode frames of this many pixels, from the samples to red, green and blue: 17 pictures that
/// others refer to, one that is converted, and one that is turned.
pub fn memory_bytes(pixels: u64) -> u64 {
    const STATE: u64 = 16 << 20;
    pixels * 40 + STATE
}

/// Decodes the last of the samples, upright.
///
/// # Errors
///
/// [`Error`]. The film is at fault.
pub fn decode(wanted: &Wanted<'_>) -> Result<Bitmap, Error> {
    let (frame, color) = picture(wanted)?;
    let image = color::to_rgb(&frame, color);
    let orientation = match wanted.turn {
        Turn::None => Orientation::Normal,
        Turn::Right => Orientation::Rotate90,
        Turn::Around => Orientation::Rotated180,
        Turn::Left => Orientation::Rotate270,
    };
    Ok(orientation.apply(image))
}

/// The picture of the last sample, and its color.
fn picture(wanted: &Wanted<'_>) -> Result<(Frame, Option<Color>), Error> {
    let config = Config::read(wanted.config)?;
    let sequence = &config.sequence;
    if let Some(form) = sequence.unusual() {
        return Err(Error::Form(form));
    }
    if u64::from(sequence.coded.0) * u64::from(sequence.coded.1) > PIXELS_MAX {
        return Err(Error::Form("with more than 4096 × 4096 pixels".to_owned()));
    }
    let Some((last, before)) = wanted.samples.split_last() else {
        return Err(Error::Frame("it has no frame".to_owned()));
    };
    if !config.is_start(wanted.samples[0]) {
        return Err(Error::Frame("its key frame needs frames before it".to_owned()));
    }
    let mut bytes = Vec::new();
    config.units.iter().for_each(|unit| add(&mut bytes, unit));
    let mut decoder = Decoder::new();
    for sample in before {
        decode_sample(&mut decoder, &config, sample, &mut bytes)?;
    }
    let frame = decode_sample(&mut decoder, &config, last, &mut bytes)?;
    let frame = frame.ok_or_else(|| Error::Frame("the frame is missing".to_owned()))?;
    Ok((frame, sequence.color.or(wanted.color)))
}

fn add(bytes: &mut Vec<u8>, unit: &[u8]) {
    bytes.extend(START);
    bytes.extend_from_slice(unit);
}

/// Decodes a sample, after the units that are in `bytes`, which are removed. `None` if it has no picture.
fn decode_sample(
    decoder: &mut Decoder,
    config: &Config<'_>,
    sample: &[u8],
    bytes: &mut Vec<u8>,
) -> Result<Option<Frame>, Error> {
    let units = config.split(sample).ok_or_else(|| Error::Frame("a sample is damaged".to_owned()))?;
    units.into_iter().for_each(|unit| add(bytes, unit));
    let decoded = decoder.decode(bytes).map_err(|error| Error::Frame(error.to_string()))?;
    bytes.clear();
    let Some(picture) = decoded else { return Ok(None) };
    let (width, height) = (picture.width, picture.height);
    let chroma = width.div_ceil(2) * height.div_ceil(2);
    let is_whole = width * height > 0 && picture.y.len() == width * height;
    if !is_whole || picture.u.len() != chroma || picture.v.len() != chroma {
        return Err(Error::Frame("its picture has an unknown form".to_owned()));
    }
    Ok(Some(Frame { width, height, planes: [picture.y, picture.u, picture.v] }))
}

/// A decoded picture: luma, and two chroma planes with half the columns and rows, rounded up.
struct Frame {
    width: usize,
    height: usize,
    planes: [Vec<u8>; 3],
}

#[cfg(test)]
mod tests;
