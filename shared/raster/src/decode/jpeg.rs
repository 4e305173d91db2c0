//! JPEG through libjpeg-turbo, at a reduced scale where the caller allows it.

use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat, ScalingFactor};

use super::jpeg_segments::{self, MAX_SCANS};
use super::{DecodeError, Raw, Samples};
use crate::geometry::Size;

/// Decodes to at least `at_least` (in stored orientation) and tells by how much each side was reduced.
pub(super) fn decode(bytes: &[u8], stored: Size, at_least: Option<Size>) -> Result<(Raw, u8), DecodeError> {
    let segments = jpeg_segments::read(bytes)?;
    let mut decompressor = Decompressor::new().map_err(DecodeError::Jpeg)?;
    let header = decompressor.read_header(bytes).map_err(DecodeError::Jpeg)?;
    if (header.width, header.height) != (stored.width as usize, stored.height as usize) {
        return Err(DecodeError::SizeMismatch);
    }
    let reduction = match at_least {
        Some(at_least) if !header.is_lossless => reduction(stored, at_least),
        _ => 1,
    };
    let scale = ScalingFactor::new(1, usize::from(reduction));
    decompressor.set_scaling_factor(scale).map_err(DecodeError::Jpeg)?;
    decompressor.set_scan_limit(MAX_SCANS).map_err(DecodeError::Jpeg)?;

    let (format, samples) = layout(header.colorspace);
    let (width, height) = (scale.scale(header.width), scale.scale(header.height));
    let pitch = width * samples.count();
    let mut data = vec![0; pitch * height];
    let image = Image { pixels: data.as_mut_slice(), width, pitch, height, format };
    decompressor.decompress(bytes, image).map_err(DecodeError::Jpeg)?;
    if samples == Samples::Cmyk && segments.adobe {
        data.iter_mut().for_each(|sample| *sample = 255 - *sample);
    }
    let size = Size::new(width as u32, height as u32);
    Ok((Raw { size, samples, data, icc: segments.icc }, reduction))
}

/// What samples of a colour space are decoded to.
pub(super) fn layout(colorspace: Colorspace) -> (PixelFormat, Samples) {
    match colorspace {
        Colorspace::Gray => (PixelFormat::GRAY, Samples::Grey),
        Colorspace::RGB | Colorspace::YCbCr => (PixelFormat::RGB, Samples::Rgb),
        Colorspace::CMYK | Colorspace::YCCK => (PixelFormat::CMYK, Samples::Cmyk),
    }
}

/// The largest reduction that leaves both sides at least as long as asked.
///
/// Only the powers of two: libjpeg-turbo has SIMD transforms for these, and the others are slower than full size.
fn reduction(stored: Size, at_least: Size) -> u8 {
    let fits = |by: u32| stored.width / by >= at_least.width && stored.height / by >= at_least.height;
    [8, 4, 2].into_iter().find(|by| fits(u32::from(*by))).unwrap_or(1)
}
