//! Foreign bytes to 8-bit sRGB pixels.
//!
//! **Guarantee.** What comes out is the whole picture as its file describes it, or an error: never a panic, never
//! the upper half of a truncated file. The size, the number of scans of a JPEG and the frame of a GIF are checked
//! before anything is allocated for them.
//!
//! **Mechanism.** The header is read by [`crate::header`], the same reader the gateway trusts at upload, and each
//! codec is held to the size it gave. Codecs hand over samples as stored (grey, CMYK, RGB, with or without alpha);
//! the module `srgb` makes them sRGB by the embedded ICC profile, or by plain arithmetic where there is none.
//!
//! **Strictness.** Whatever a codec warns about counts as broken, as in sharp's default `failOn: warning`.
//! Metadata is another matter: a broken EXIF block or ICC profile is ignored, for the pixels are still good.

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

/// What the caller can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeOptions {
    /// The size, as displayed, that the result will be resized to. A JPEG may then be decoded at a half, a quarter
    /// or an eighth, as long as it stays at least this large on both sides; entropy decoding remains, but the
    /// inverse transform, colour conversion and memory shrink. `None` asks for full size.
    pub at_least: Option<Size>,
}

/// A decoded picture, still turned as it was stored.
///
/// Turning moves every pixel, so it is left to whoever knows whether the picture becomes small first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    picture: Picture,
    header: Header,
    /// The picture is the source at 1 / `reduction` of its size, rounded up: 1, 2, 4 or 8.
    reduction: u8,
}

impl Decoded {
    /// The header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many times smaller than the source each side is: 1, 2, 4 or 8.
    pub fn reduction(&self) -> u8 {
        self.reduction
    }

    /// Whether no pixel is transparent.
    pub fn is_opaque(&self) -> bool {
        self.picture.is_opaque()
    }

    /// The picture as displayed.
    pub fn into_picture(self) -> Picture {
        self.header.orientation.apply(self.picture)
    }

    /// The pixels as stored, with what is needed to understand them: columns and rows that the source fills (the
    /// last ones of a reduced picture may be filled in part only) and the turn that is still to be made.
    pub(crate) fn stored(&self) -> (&Picture, (f64, f64), Orientation) {
        let Size { width, height } = self.header.stored_size();
        let reduction = f64::from(self.reduction);
        (&self.picture, (f64::from(width) / reduction, f64::from(height) / reduction), self.header.orientation)
    }
}

/// Why a picture cannot be decoded. Every message is fit for whoever sent the picture.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The header is not usable or over the limits.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The PNG decoder refused the data.
    #[error("the PNG data is broken or cut short")]
    Png(#[source] ::png::DecodingError),
    /// The JPEG decoder refused the data.
    #[error("the JPEG data is broken, cut short or of an unsupported kind")]
    Jpeg(#[source] JpegError),
    /// The WebP decoder refused the data, with its status code.
    #[error("the WebP data is broken or cut short")]
    Webp {
        /// `VP8StatusCode` of libwebp; 0 where the container around the data is at fault.
        status: u32,
    },
    /// The GIF decoder refused the data.
    #[error("the GIF data is broken or cut short")]
    Gif(#[source] ::gif::DecodingError),
    /// The file ends, or its structure breaks off, before the picture does.
    #[error("the picture is cut short")]
    CutShort,
    /// A JPEG has more scans than [`MAX_SCANS`], each of which costs a pass over the whole picture.
    #[error("the JPEG has too many scans")]
    TooManyScans,
    /// The pixels measure otherwise than the header.
    #[error("the picture contradicts its own header")]
    SizeMismatch,
}

/// What a sample is, in the order of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Ink amounts: 255 is full ink.
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

/// Pixels as a codec hands them over.
struct Raw {
    size: Size,
    samples: Samples,
    data: Vec<u8>,
    icc: Option<Vec<u8>>,
}

/// Decodes a picture of any accepted format.
///
/// # Errors
/// Any [`DecodeError`]; all of them are the picture's fault.
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
    Ok(Decoded { picture: srgb::convert(raw), header, reduction })
}
