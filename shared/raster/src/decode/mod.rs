//! Decodes foreign bytes to 8-bit sRGB pixels.
//!
//! **Guarantee.** The output is the whole picture as its file describes it, or an error: never a
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

use crate::format::Format;
use crate::geometry::Size;
use crate::header::{Header, HeaderError, probe};
use crate::orientation::Orientation;
use crate::picture::Picture;

pub(crate) use bands::{BAND, Bands, decode_part, decode_turned};
pub use jpeg::JpegError;
pub use jpeg_segments::MAX_SCANS;

/// Options that allow less than a full decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeOptions {
    /// The displayed size that the result will be resized to. A JPEG may then be decoded at a half,
    /// a quarter or an eighth of its size, as long as both sides stay at least four times as large:
    /// the transform aliases fine patterns, so that a part is left to the resampling. This does
    /// not speed up entropy decoding, but reduces the inverse transform, the color conversion and
    /// the memory. `None` requests full size.
    pub at_least: Option<Size>,
}

/// A decoded picture in its stored orientation.
///
/// The transformation for display moves every pixel, so it is left to the caller, who may reduce
/// the picture first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    picture: Picture,
    header: Header,
    /// The factor by which each side is reduced, rounded up: 1, 2, 4 or 8.
    reduction: u8,
}

impl Decoded {
    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The factor by which each side is smaller than the source: 1, 2, 4 or 8.
    pub fn reduction(&self) -> u8 {
        self.reduction
    }

    /// Whether no pixel is transparent.
    pub fn is_opaque(&self) -> bool {
        self.picture.is_opaque()
    }

    /// Transforms the picture to its displayed form.
    pub fn into_picture(self) -> Picture {
        self.header.orientation.apply(self.picture)
    }

    /// The pixels as stored; the number of columns and rows that the source fills, because the last
    /// ones of a reduced picture may be filled only in part; and the transformation that is still
    /// required.
    pub(crate) fn stored(&self) -> (&Picture, (f64, f64), Orientation) {
        let Size { width, height } = self.header.stored_size();
        let reduction = f64::from(self.reduction);
        (&self.picture, (f64::from(width) / reduction, f64::from(height) / reduction), self.header.orientation)
    }
}

/// Why a picture cannot be decoded. Every message may be shown to the person who sent the picture.
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
    /// The file or its structure ends before the picture is complete.
    #[error("the picture is cut short")]
    CutShort,
    /// A JPEG has more than [`MAX_SCANS`] scans, each of which requires processing the whole
    /// picture.
    #[error("the JPEG has too many scans")]
    TooManyScans,
    /// The size of the pixels differs from that in the header.
    #[error("the picture contradicts its own header")]
    SizeMismatch,
}

/// The kind of a sample, named by the order of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Amounts of ink: 255 is full ink.
    Cmyk,
}

impl Samples {
    fn count(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// Pixels as returned by a codec.
struct Raw {
    size: Size,
    samples: Samples,
    data: Vec<u8>,
    icc: Option<Vec<u8>>,
}

/// Decodes a picture of any accepted format.
///
/// # Errors
///
/// Any [`DecodeError`]. All of them are caused by the picture.
pub fn decode(bytes: &[u8], options: DecodeOptions) -> Result<Decoded, DecodeError> {
    let header = probe(bytes)?;
    let stored = header.stored_size();
    let (raw, reduction) = match header.format {
        Format::Png => (png::decode(bytes, stored)?, 1),
        Format::Jpeg => {
            let at_least = options.at_least.map(|size| header.orientation.apply_to_size(size));
            jpeg::decode(bytes, stored, at_least)?
        }
        Format::Webp => (webp::decode(bytes, stored)?, 1),
        Format::Gif => (gif::decode(bytes, stored)?, 1),
    };
    Ok(Decoded { picture: srgb::convert(raw, header.code_points), header, reduction })
}
