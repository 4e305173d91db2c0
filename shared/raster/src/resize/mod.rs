//! Resampling: the Action `resize` (`docs/reference/actions.md#resize`).
//!
//! **Guarantee.** Lanczos-3 with premultiplied alpha, to exactly the sizes of [`plan()`]. A source
//! that already has its size is copied unchanged.
//!
//! **Mechanism.** The plan consists of a scale for the whole, a part to keep and a position on a
//! canvas. The part is mapped back to the stored pixels, whatever their orientation and reduction,
//! and only this part is resampled. The kernel also reads the pixels around it, so the result
//! equals scaling the whole and cropping. The small result is then transformed to the displayed
//! orientation and placed on the canvas. A JPEG is resampled while it is decoded (`rows`).

mod plan;
mod rows;

#[cfg(test)]
mod tests;

use fast_image_resize as fir;
use fir::images::{TypedImage, TypedImageRef};
use fir::pixels::{U8x3, U8x4};

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::decode::{Bands, DecodeError, decode_stored};
use crate::format::Format;
use crate::geometry::Size;
use crate::header::{Header, probe, reduction};
use crate::input::Input;
use crate::orientation::Orientation;
use crate::pipeline::{Change, Error};

pub(crate) use plan::rounded_ratio;
pub use plan::{Bounds, Fit, MAX_OUTPUT_PIXELS, MAX_OUTPUT_SIDE, Plan, PlanError, Resize, check_output, plan};

/// Resizes an upright image.
///
/// # Errors
///
/// [`PlanError`], as for [`plan()`].
pub fn resize(image: &Bitmap, resize: &Resize) -> Result<Bitmap, PlanError> {
    let plan = plan(image.size(), resize)?;
    Ok(planned(image, &plan, resize.background))
}

/// The Action on an image.
///
/// # Errors
///
/// Any [`Error`]. A result above the limits is rejected before the source is decoded.
pub fn change(image: Input, resize: &Resize) -> Result<Change, Error> {
    let plan = plan(image.size(), resize)?;
    let image = image.decode_resized(&plan, resize.background)?;
    Ok(Change::Pixels { image, background: resize.background })
}

/// Executes a plan on an upright image, as [`decode_resized`] does on a file of it.
pub(crate) fn planned(image: &Bitmap, plan: &Plan, background: Color) -> Bitmap {
    run(image, Orientation::Normal, plan, background)
}

/// Upper bound in bytes of the memory for a resize of an image with this header, from its decoded pixels to the encoded result,
/// without the file.
pub fn memory_bytes(header: &Header, plan: &Plan) -> u64 {
    /// Bytes of a pixel with alpha.
    const PIXEL: u64 = 4;
    let (stored, scaled) = (header.stored_size(), header.orientation.apply_to_size(plan.scaled));
    let kept = header.orientation.rect_in_stored(plan.kept, scaled).size;
    let is_streamed = can_stream(header.format, stored, scaled);
    let by = if is_streamed { u32::from(reduction(stored, scaled)) } else { 1 };
    let source = Size::new(stored.width.div_ceil(by), stored.height.div_ceil(by));
    let decoded = if is_streamed {
        let window = rows::window_rows(source.height, scaled.height);
        header.codec_bytes() + PIXEL * Size::new(source.width, window).pixels()
    } else {
        // With alpha, the source is copied to be premultiplied; JPEGs have none.
        let premultiplied = if header.format == Format::Jpeg { 0 } else { PIXEL * source.pixels() };
        header.decoded_bytes() + premultiplied
    };
    // The image between the passes of the convolution is at most as large as the larger of the others, and has one side of each.
    let crossed = Size::new(source.width, kept.height).pixels().max(Size::new(kept.width, source.height).pixels());
    let resampled = PIXEL * (source.pixels().max(kept.pixels()).min(crossed) + kept.pixels());
    // The result and its file.
    decoded + resampled + 2 * PIXEL * plan.output().pixels()
}

/// Returns `true` if a source of size `stored` is resized while it is decoded. One that becomes taller is smaller than its result.
fn can_stream(format: Format, stored: Size, scaled: Size) -> bool {
    format == Format::Jpeg && scaled.height <= stored.height
}

/// Decodes an image and executes a plan that was made for its displayed size.
///
/// A JPEG is decoded at a half, a quarter or an eighth of its size if both sides stay at least four times as long as
/// requested. This does not speed up entropy decoding, but the inverse transform, the color conversion and the resampling.
///
/// # Errors
///
/// Any [`DecodeError`].
pub fn decode_resized(bytes: &[u8], plan: &Plan, background: Color) -> Result<Bitmap, DecodeError> {
    decode_turned_and_resized(bytes, Orientation::Normal, plan, background)
}

/// Like [`decode_resized`], for an image that is transformed by `turn` before the plan is executed.
pub(crate) fn decode_turned_and_resized(
    bytes: &[u8],
    turn: Orientation,
    plan: &Plan,
    background: Color,
) -> Result<Bitmap, DecodeError> {
    let header = probe(bytes)?;
    let (stored, orientation) = (header.stored_size(), header.orientation.then(turn));
    let scaled = orientation.apply_to_size(plan.scaled);
    if !can_stream(header.format, stored, scaled) {
        return Ok(run(&decode_stored(bytes, &header)?, orientation, plan, background));
    }
    let mut bands = Bands::reduced(bytes, stored, reduction(stored, scaled))?;
    let extent = (stored, bands.reduction());
    let part = part_of_source(orientation, plan, extent, bands.size());
    let kept = orientation.rect_in_stored(plan.kept, scaled).size;
    let resampled = rows::resample(&mut bands, part, kept)?;
    bands.finish()?;
    Ok(place(resampled, orientation, plan, background))
}

fn run(image: &Bitmap, orientation: Orientation, plan: &Plan, background: Color) -> Bitmap {
    let part = part_of_source(orientation, plan, (image.size(), 1), image.size());
    let kept = orientation.rect_in_stored(plan.kept, orientation.apply_to_size(plan.scaled)).size;
    place(resample(image, part, kept), orientation, plan, background)
}

/// The part of a source from which the kept part of the plan is resampled. The source has `available` pixels and was reduced from
/// the `stored` ones, so its last column and row may be filled only in part.
fn part_of_source(
    orientation: Orientation,
    plan: &Plan,
    (stored, reduction): (Size, u8),
    available: Size,
) -> fir::CropBox {
    let scaled = orientation.apply_to_size(plan.scaled);
    let kept = orientation.rect_in_stored(plan.kept, scaled);
    let extent = |side: u32| f64::from(side) / f64::from(reduction);
    let (left, width) = span(kept.x, kept.size.width, scaled.width, extent(stored.width), available.width);
    let (top, height) = span(kept.y, kept.size.height, scaled.height, extent(stored.height), available.height);
    fir::CropBox { left, top, width, height }
}

/// Transforms a resampled part to its displayed orientation and places it on the canvas of the plan.
fn place(resampled: Bitmap, orientation: Orientation, plan: &Plan, background: Color) -> Bitmap {
    let resampled = orientation.apply(resampled);
    if !plan.pads() {
        return resampled;
    }
    let (resampled, channels) = match resampled.channels() {
        Channels::Rgb if background.is_opaque() => (resampled, Channels::Rgb),
        _ => (resampled.into_rgba(), Channels::Rgba),
    };
    let mut canvas = Bitmap::filled(plan.output(), channels, background);
    let (x, y) = plan.offset;
    canvas.paste(&resampled, x, y);
    canvas
}

/// Scales an image with Lanczos-3 to another size, whatever its aspect ratio.
pub(crate) fn stretched(image: &Bitmap, size: Size) -> Bitmap {
    planned(image, &Plan::whole(size), Color::TRANSPARENT)
}

/// Maps `length` of `scaled` pixels from `start` onwards to a side of which the source fills
/// `extent`. Returns the start and the length there, limited to the `available` pixels despite
/// rounding errors.
fn span(start: u32, length: u32, scaled: u32, extent: f64, available: u32) -> (f64, f64) {
    let at = f64::from(start) * extent / f64::from(scaled);
    let length = f64::from(length) * extent / f64::from(scaled);
    (at, length.min(f64::from(available) - at))
}

/// A part of an image, scaled to `size`.
///
/// The convolution first changes the height. If that grows and the width shrinks, the image between the two passes could be a
/// thousand times larger than both others, so the width is changed before.
fn resample(image: &Bitmap, part: fir::CropBox, size: Size) -> Bitmap {
    if f64::from(size.width) < part.width && f64::from(size.height) > part.height {
        let columns = fir::CropBox { top: 0.0, height: image.height().into(), ..part };
        let narrow = convolve(image, columns, Size::new(size.width, image.height()));
        return convolve(&narrow, fir::CropBox { left: 0.0, width: size.width.into(), ..part }, size);
    }
    convolve(image, part, size)
}

fn convolve(image: &Bitmap, part: fir::CropBox, size: Size) -> Bitmap {
    let options = fir::ResizeOptions::new()
        .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Lanczos3))
        .crop(part.left, part.top, part.width, part.height)
        .use_alpha(!image.is_opaque());
    let mut pixels = vec![0; size.pixels() as usize * image.channels().count()];
    let resizer = &mut fir::Resizer::new();
    match image.channels() {
        Channels::Rgb => run_resizer::<U8x3>(resizer, image, &mut pixels, size, &options),
        Channels::Rgba => run_resizer::<U8x4>(resizer, image, &mut pixels, size, &options),
    }
    Bitmap::made(size, image.channels(), pixels)
}

/// Runs `resizer` from `source` to `target`, the pixels of an image of `size`, both with pixels of the kind `P`. It is generic because
/// the library's choice at run time would compile its code for every kind of pixel into this crate.
///
/// # Panics
///
/// If a buffer does not fit its size, or the part to keep is not within the source.
pub(crate) fn run_resizer<P: fir::PixelTrait>(
    resizer: &mut fir::Resizer,
    source: &Bitmap,
    target: &mut [u8],
    size: Size,
    options: &fir::ResizeOptions,
) {
    let source = TypedImageRef::<P>::from_buffer(source.width(), source.height(), source.pixels())
        .expect("an image's buffer fits its size");
    let mut target =
        TypedImage::<P>::from_buffer(size.width, size.height, target).expect("the buffer was made for this size");
    resizer.resize_typed(&source, &mut target, options).expect("the part is within the source");
}
