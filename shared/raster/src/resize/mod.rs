//! Resampling: the Action `resize` (`docs/reference/actions.md#resize`).
//!
//! **Guarantee.** Lanczos-3 with premultiplied alpha, to exactly the sizes of [`plan()`]. A source
//! that already has its size is copied unchanged.
//!
//! **Mechanism.** The plan consists of a scale for the whole, a part to keep and a position on a
//! canvas. The part is mapped back to the stored pixels, whatever their orientation and reduction,
//! and only this part is resampled. The kernel also reads the pixels around it, so the result
//! equals scaling the whole and cropping. The small result is then transformed to the displayed
//! orientation and placed on the canvas.

mod plan;

#[cfg(test)]
mod tests;

use fast_image_resize as fir;
use fir::images::{TypedImage, TypedImageRef};
use fir::pixels::{U8x3, U8x4};

use crate::color::Color;
use crate::decode::Decoded;
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::header::Header;
use crate::orientation::Orientation;
use crate::picture::{Channels, Picture};

pub(crate) use plan::rounded_ratio;
pub use plan::{Bounds, Fit, MAX_OUTPUT_PIXELS, MAX_OUTPUT_SIDE, Plan, PlanError, Resize, check_output, plan};

/// Resizes an upright picture.
///
/// # Errors
///
/// [`PlanError`], as for [`plan()`].
pub fn resize(picture: &Picture, resize: &Resize) -> Result<Picture, PlanError> {
    let plan = plan(picture.size(), resize)?;
    let extent = (f64::from(picture.width()), f64::from(picture.height()));
    Ok(run(picture, extent, Orientation::Normal, &plan, resize.background))
}

/// Upper bound in bytes of the memory for a resize of a picture with this header, from its decoded pixels to the encoded result,
/// without the file.
pub fn memory_bytes(header: &Header, plan: &Plan) -> u64 {
    /// Bytes of a pixel with alpha.
    const PIXEL: u64 = 4;
    let decoded = header.reduced_size(plan.scaled);
    let (source, kept, output) = (decoded.pixels(), plan.kept.size.pixels(), plan.output().pixels());
    // With alpha, the source is copied to be premultiplied; JPEGs have none. The picture between the passes of the convolution is
    // at most as large as the larger of the others, and has one side of each.
    let premultiplied = if header.format == Format::Jpeg { 0 } else { PIXEL * source };
    let crossed = Size::new(decoded.width, plan.kept.size.height).pixels();
    let crossed = crossed.max(Size::new(plan.kept.size.width, decoded.height).pixels());
    let resampled = PIXEL * (source.max(kept).min(crossed) + kept);
    // The result and its file.
    header.reduced_bytes(plan.scaled) + premultiplied + resampled + 2 * PIXEL * output
}

/// Executes a plan that was made for the displayed size of `decoded`.
pub fn apply(decoded: &Decoded, plan: &Plan, background: Color) -> Picture {
    let (picture, extent, orientation) = decoded.stored();
    run(picture, extent, orientation, plan, background)
}

fn run(picture: &Picture, extent: (f64, f64), orientation: Orientation, plan: &Plan, background: Color) -> Picture {
    let scaled = orientation.apply_to_size(plan.scaled);
    let kept = orientation.rect_in_stored(plan.kept, scaled);
    let (left, width) = span(kept.x, kept.size.width, scaled.width, extent.0, picture.width());
    let (top, height) = span(kept.y, kept.size.height, scaled.height, extent.1, picture.height());
    let part = fir::CropBox { left, top, width, height };
    let resampled = orientation.apply(resample(picture, part, kept.size));
    if !plan.pads() {
        return resampled;
    }
    let (resampled, channels) = match resampled.channels() {
        Channels::Rgb if background.is_opaque() => (resampled, Channels::Rgb),
        _ => (resampled.into_rgba(), Channels::Rgba),
    };
    let mut canvas = Picture::filled(plan.output(), channels, background);
    let (x, y) = plan.offset;
    canvas.paste(&resampled, x, y);
    canvas
}

/// Transforms `decoded` by `orientation` (which includes its own), scales it to `scaled`, and
/// returns a part of the result.
pub(crate) fn part(decoded: &Decoded, orientation: Orientation, scaled: Size, kept: Rect) -> Picture {
    let (picture, extent, _) = decoded.stored();
    let plan = Plan::part(scaled, kept);
    run(picture, extent, orientation, &plan, Color::TRANSPARENT)
}

/// Scales a picture with Lanczos-3 to another size, whatever its aspect ratio.
pub(crate) fn stretched(picture: &Picture, size: Size) -> Picture {
    let extent = (f64::from(picture.width()), f64::from(picture.height()));
    run(picture, extent, Orientation::Normal, &Plan::whole(size), Color::TRANSPARENT)
}

/// Maps `length` of `scaled` pixels from `start` onwards to a side of which the source fills
/// `extent`. Returns the start and the length there, limited to the `available` pixels despite
/// rounding errors.
fn span(start: u32, length: u32, scaled: u32, extent: f64, available: u32) -> (f64, f64) {
    let at = f64::from(start) * extent / f64::from(scaled);
    let length = f64::from(length) * extent / f64::from(scaled);
    (at, length.min(f64::from(available) - at))
}

/// A part of a picture, scaled to `size`.
///
/// The convolution first changes the height. If that grows and the width shrinks, the picture between the two passes could be a
/// thousand times larger than both others, so the width is changed before.
fn resample(picture: &Picture, part: fir::CropBox, size: Size) -> Picture {
    if f64::from(size.width) < part.width && f64::from(size.height) > part.height {
        let columns = fir::CropBox { top: 0.0, height: picture.height().into(), ..part };
        let narrow = convolve(picture, columns, Size::new(size.width, picture.height()));
        return convolve(&narrow, fir::CropBox { left: 0.0, width: size.width.into(), ..part }, size);
    }
    convolve(picture, part, size)
}

fn convolve(picture: &Picture, part: fir::CropBox, size: Size) -> Picture {
    let options = fir::ResizeOptions::new()
        .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Lanczos3))
        .crop(part.left, part.top, part.width, part.height)
        .use_alpha(!picture.is_opaque());
    let mut pixels = vec![0; size.pixels() as usize * picture.channels().count()];
    let resizer = &mut fir::Resizer::new();
    match picture.channels() {
        Channels::Rgb => run_resizer::<U8x3>(resizer, picture, &mut pixels, size, &options),
        Channels::Rgba => run_resizer::<U8x4>(resizer, picture, &mut pixels, size, &options),
    }
    Picture::made(size, picture.channels(), pixels)
}

/// Runs `resizer` from `source` to `target`, the pixels of a picture of `size`, both with pixels of the kind `P`. It is generic because
/// the library's choice at run time would compile its code for every kind of pixel into this crate.
///
/// # Panics
///
/// If a buffer does not fit its size, or the part to keep is not within the source.
pub(crate) fn run_resizer<P: fir::PixelTrait>(
    resizer: &mut fir::Resizer,
    source: &Picture,
    target: &mut [u8],
    size: Size,
    options: &fir::ResizeOptions,
) {
    let source = TypedImageRef::<P>::from_buffer(source.width(), source.height(), source.pixels())
        .expect("a picture's buffer fits its size");
    let mut target =
        TypedImage::<P>::from_buffer(size.width, size.height, target).expect("the buffer was made for this size");
    resizer.resize_typed(&source, &mut target, options).expect("the part is within the source");
}
