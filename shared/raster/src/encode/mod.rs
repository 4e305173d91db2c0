//! Encodes images as files.
//!
//! **Guarantee.** Equal images and settings give equal bytes. Files have no metadata; an untagged
//! file is sRGB, like the pixels.
//!
//! **Mechanism.** JPEG uses the crate `jpeg` with 4:2:0 and optimized Huffman tables
//! (`docs/adr/0009-own-jpeg-encoder.md`), PNG adaptive filters and zlib-rs, and WebP libwebp. An
//! alpha channel that is opaque everywhere is not written.

mod webp;

#[cfg(test)]
mod tests;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::format::{Format, OutputFormat};
use crate::geometry::Size;

pub use webp::MAX_SIDE as MAX_WEBP_SIDE;

/// The deflate level of PNG. Compared with level 1, a noisy photo is 35 % smaller and takes half as
/// much time again; flat art is half as large and takes no more time. Level 3 takes another fifth
/// of time for 6 % of the photo, level 4 half for 9 % (`examples/measure.rs`, 512 and 2048 pixels
/// per side).
pub(crate) const PNG_LEVEL: u8 = 2;

/// Settings of an encoded image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    pub format: OutputFormat,
    /// The quality of JPEG and WebP, clamped to 1 to 100.
    pub quality: u8,
    /// The background of the Action. A transparent image is flattened on it for a JPEG if it is
    /// opaque, otherwise on white.
    pub flatten: Color,
}

/// The reason why an image cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A side is longer than [`MAX_WEBP_SIDE`], the limit of WebP.
    #[error("a side of a WebP image is at most 16383 pixels long")]
    WebpSideTooLong,
    /// The WebP encoder failed.
    #[error("the WebP encoder failed with code {code}")]
    Webp {
        /// The `WebPEncodingError` of libwebp.
        code: u32,
    },
    /// The PNG encoder failed.
    #[error("the PNG encoder failed")]
    Png(#[source] image::ImageError),
}

/// Encodes an image.
///
/// # Errors
///
/// [`EncodeError`]. Callers can only cause `WebpSideTooLong`.
pub fn encode(image: &Bitmap, encoding: &Encoding) -> Result<Vec<u8>, EncodeError> {
    let opaque = image.is_opaque();
    let quality = encoding.quality.clamp(1, 100);
    match encoding.format {
        OutputFormat::Jpeg if opaque => Ok(jpeg(image, quality)),
        OutputFormat::Jpeg => Ok(jpeg(&image.flattened(encoding.flatten.flattening()), quality)),
        OutputFormat::Png if opaque && image.channels() == Channels::Rgba => png(&image.flattened(Color::WHITE)),
        OutputFormat::Png => png(image),
        OutputFormat::Webp => webp::encode(image, webp::Coding::Lossy(quality)),
    }
}

/// Encodes an image of which every sample is kept, also those of transparent pixels: as WebP if its source is WebP, otherwise as
/// PNG.
///
/// # Errors
///
/// [`EncodeError`]. Callers can only cause `WebpSideTooLong`.
pub(crate) fn encode_lossless(image: &Bitmap, source: Format) -> Result<(Vec<u8>, OutputFormat), EncodeError> {
    match source {
        Format::Webp => Ok((webp::encode(image, webp::Coding::Lossless)?, OutputFormat::Webp)),
        Format::Png | Format::Jpeg | Format::Gif => Ok((png(image)?, OutputFormat::Png)),
    }
}

fn jpeg(image: &Bitmap, quality: u8) -> Vec<u8> {
    let mut encoder = jpeg_encoder(image.size(), image.channels(), quality);
    encoder.write(image.pixels());
    encoder.finish()
}

/// Starts a JPEG that is written row by row. An alpha channel is ignored.
pub(crate) fn jpeg_encoder(size: Size, channels: Channels, quality: u8) -> jpeg::Encoder {
    let format = match channels {
        Channels::Rgb => jpeg::PixelFormat::Rgb,
        Channels::Rgba => jpeg::PixelFormat::Rgba,
    };
    // Sides of results are at most 16384, those of renditions at most 30000.
    jpeg::Encoder::new(size.width as u16, size.height as u16, format, quality)
}

pub(crate) fn png(bitmap: &Bitmap) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Level(PNG_LEVEL), FilterType::Adaptive);
    match bitmap {
        Bitmap::Rgb(image) => image.write_with_encoder(encoder),
        Bitmap::Rgba(image) => image.write_with_encoder(encoder),
    }
    .map_err(EncodeError::Png)?;
    Ok(bytes)
}
