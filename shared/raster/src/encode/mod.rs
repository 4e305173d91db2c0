//! Pixels to files.
//!
//! **Guarantee.** The same picture and settings give the same bytes (decisions 8.3), with no metadata in them: what
//! is not tagged is sRGB, which the pixels are.
//!
//! **Mechanism.** JPEG by an encoder of our own, 4:2:0 with Huffman tables made for the picture; PNG with adaptive
//! filters and zlib-rs; WebP by libwebp. An alpha channel that hides nothing is not written.

mod jpeg;
mod webp;

#[cfg(test)]
mod tests;

use crate::color::Color;
use crate::format::OutputFormat;
use crate::picture::{Channels, Picture};

pub(crate) use jpeg::Writer as JpegWriter;
pub use webp::MAX_SIDE as MAX_WEBP_SIDE;

/// The deflate level of PNGs. Against level 1 it takes 35 % off a noisy photo and half off flat art, which costs half
/// as much time again on the photo and none on the art; level 3 costs another fifth of time for 6 % of the photo, level
/// 4 half for 9 % (`examples/measure.rs`, 512 and 2048 pixels a side).
const PNG_LEVEL: u8 = 2;

/// How a picture is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// The format.
    pub format: OutputFormat,
    /// 1 to 100, of JPEG and WebP; clamped.
    pub quality: u8,
    /// The Action's background: a JPEG of a transparent picture is flattened on it when it is opaque, else on
    /// white (decisions 8.1).
    pub flatten: Color,
}

/// Why a picture cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// WebP cannot hold a side longer than [`MAX_WEBP_SIDE`].
    #[error("a side of a WebP picture is at most 16383 pixels long")]
    WebpSideTooLong,
    /// The WebP encoder failed, with its error code.
    #[error("the WebP encoder failed with code {code}")]
    Webp {
        /// `WebPEncodingError` of libwebp.
        code: u32,
    },
    /// The PNG encoder failed.
    #[error("the PNG encoder failed")]
    Png(#[source] png::EncodingError),
}

/// Writes a picture.
///
/// # Errors
/// [`EncodeError`]; only `WebpSideTooLong` is within a caller's reach.
pub fn encode(picture: &Picture, encoding: &Encoding) -> Result<Vec<u8>, EncodeError> {
    let opaque = picture.is_opaque();
    let quality = encoding.quality.clamp(1, 100);
    match encoding.format {
        OutputFormat::Jpeg if opaque => Ok(jpeg(picture, quality)),
        OutputFormat::Jpeg => Ok(jpeg(&picture.flattened(encoding.flatten.flattening()), quality)),
        OutputFormat::Png if opaque && picture.channels() == Channels::Rgba => png(&picture.flattened(Color::WHITE)),
        OutputFormat::Png => png(picture),
        OutputFormat::Webp => webp::encode(picture, quality),
    }
}

fn jpeg(picture: &Picture, quality: u8) -> Vec<u8> {
    let mut writer = JpegWriter::new(picture.size(), picture.channels(), quality);
    writer.write(picture.pixels());
    writer.finish()
}

fn png(picture: &Picture) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width(), picture.height());
    encoder.set_color(match picture.channels() {
        Channels::Rgb => png::ColorType::Rgb,
        Channels::Rgba => png::ColorType::Rgba,
    });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_deflate_compression(png::DeflateCompression::Level(PNG_LEVEL));
    encoder.set_filter(png::Filter::Adaptive);
    let mut writer = encoder.write_header().map_err(EncodeError::Png)?;
    writer.write_image_data(picture.pixels()).map_err(EncodeError::Png)?;
    writer.finish().map_err(EncodeError::Png)?;
    Ok(bytes)
}
