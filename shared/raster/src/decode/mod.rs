//! Decodes foreign bytes to 8-bit sRGB pixels.
//!
//! **Guarantee.** The output is the whole image as its file describes it, or an error: never a
//! panic, and never a part of a truncated file. The size, the number of scans of a JPEG and the
//! frame of a GIF are checked before anything is allocated for them.
//!
//! **Mechanism.** The header is read by [`crate::header`], which the gateway also uses for uploads,
//! and each codec must deliver the size that it returned. Codecs return samples as stored (gray,
//! CMYK, RGB, with or without alpha). The module `srgb` converts them to sRGB by the code points of a
//! PNG or the embedded ICC profile, or by simple formulas without these.
//!
//! **Strictness.** Damage that loses samples is an error. What a file states or lacks beside its
//! samples does not matter: a JPEG may have scan parameters, a version or a color transform that no
//! standard knows, bytes between its segments, and no end marker. A damaged EXIF block or ICC
//! profile is ignored as well, because the pixels are still good.

mod bands;
mod gif;
mod jpeg;
mod jpeg_segments;
mod png;
mod srgb;
mod webp;

#[cfg(test)]
mod tests;

use crate::bitmap::Bitmap;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::header::{Header, HeaderError};
use crate::orientation::Orientation;

pub(crate) use bands::{BAND, Bands, decode_part, decode_turned};
pub use jpeg::JpegError;
pub use jpeg_segments::MAX_SCANS;
pub(crate) use srgb::convert as convert_coded;

/// The reason why an image cannot be decoded. Every message may be shown to the person who sent the image.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The header is unusable or exceeds the limits.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The PNG decoder reported an error.
    #[error("the PNG data is broken or cut short")]
    Png(#[source] ::png::DecodingError),
    /// The JPEG decoder reported an error.
    #[error("the JPEG data is broken, cut short or of an unsupported kind")]
    Jpeg(#[source] JpegError),
    /// The WebP decoder reported an error.
    #[error("the WebP data is broken or cut short")]
    Webp {
        /// The `VP8StatusCode` of libwebp, or 0 for an error in the container.
        status: u32,
    },
    /// The GIF decoder reported an error.
    #[error("the GIF data is broken or cut short")]
    Gif(#[source] ::gif::DecodingError),
    /// The AV1 decoder reported an error.
    #[error("the AVIF data is broken or cut short")]
    Avif {
        /// Its error number, negative; 0 if there is no memory.
        code: i32,
    },
    /// The file or its structure ends before the image is complete.
    #[error("the image is cut short")]
    CutShort,
    /// A JPEG has more than [`MAX_SCANS`] scans, each of which requires processing the whole
    /// image.
    #[error("the JPEG has too many scans")]
    TooManyScans,
    /// The size of the pixels differs from that in the header.
    #[error("the image contradicts its own header")]
    SizeMismatch,
}

/// The kind of a sample, named by the order of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Amounts of ink: 255 is full ink.
    Cmyk,
}

impl Samples {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// All pixels of an image, as returned by a codec.
pub(crate) struct Raw {
    pub(crate) size: Size,
    pub(crate) samples: Samples,
    pub(crate) data: Vec<u8>,
    pub(crate) icc: Option<Vec<u8>>,
}

/// Decodes an image of any accepted format as displayed.
///
/// # Errors
///
/// Any [`DecodeError`]. All of them are caused by the image.
pub fn decode(bytes: &[u8]) -> Result<Bitmap, DecodeError> {
    decode_turned(bytes, Orientation::Normal)
}

/// Decodes an image as stored, whatever its orientation.
pub(crate) fn decode_stored(bytes: &[u8], header: &Header) -> Result<Bitmap, DecodeError> {
    let size = header.stored_size();
    let raw = match header.format {
        Format::Png => png::decode(bytes, size)?,
        Format::Jpeg => return Bands::stored(bytes, size, Rect { x: 0, y: 0, size })?.into_image(),
        Format::Webp => webp::decode(bytes, size)?,
        Format::Gif => gif::decode(bytes, size)?,
    };
    Ok(srgb::convert(raw, header.code_points))
}
