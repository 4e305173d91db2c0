//! The Action `overlay-image`: an image over another image
//! (`docs/reference/actions.md#overlay-image`).
//!
//! **Formulas.** The overlay is scaled to `round(image width · scale / 100)` columns, half up and
//! at least 1, and its rows in proportion likewise. It is rotated clockwise about its center, which
//! determines its bounding box (`rotate`). The box is placed at the anchor and moved by the
//! offsets. Only the part within the image is computed, so that an overlay of any scale costs no
//! more than the image. Blending is W3C Compositing and Blending Level 1, source-over, in sRGB
//! (`blend`).

mod blend;

#[cfg(test)]
mod tests;

use crate::bitmap::Bitmap;
use crate::color::Color;
use crate::decode::{DecodeError, decode};
use crate::geometry::{Anchor, Rect, Size};
use crate::header::probe;
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{Plan, PlanError, check_output, decode_resized, decode_turned_and_resized, rounded_ratio};
use crate::rotate::quarter_turn;
use crate::sample::{Rotation, turned};

pub use blend::Blend;

/// The parameters of the Action `overlay-image`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlay {
    /// The position of the overlay.
    pub anchor: Anchor,
    /// The offset in columns to the right and rows down.
    pub offset: (i64, i64),
    /// The width of the overlay in percent of the image's width.
    pub scale: f64,
    /// The opacity in percent.
    pub opacity: f64,
    /// The angle in degrees clockwise.
    pub rotate: f64,
    pub blend: Blend,
}

/// The size of the result for an image with the displayed size `image`, which is the same.
///
/// # Errors
///
/// [`PlanError`] if the result would exceed the limits.
pub fn plan(image: Size) -> Result<Size, PlanError> {
    check_output(image)?;
    Ok(image)
}

/// The size to which the overlay is scaled. Its height can be far above the image's.
fn scaled_size(image: Size, overlay: Size, scale: f64) -> Size {
    // At most four times 16384.
    let width = ((f64::from(image.width) * scale / 100.0 + 0.5).floor() as u32).max(1);
    let height = rounded_ratio(overlay.height, width, overlay.width);
    // At most 30000 times as high as wide, which is less than 2^31.
    Size::new(width, u32::try_from(height).unwrap_or(u32::MAX))
}

/// Runs the Action. The size and the format `auto` follow the base image. The result may be written row by row if `rows` says how.
///
/// # Errors
///
/// Any [`Error`]. An image above the limits of results is rejected before it is decoded.
pub fn change(image: Input, overlay: &[u8], params: &Overlay, rows: Option<Finish>) -> Result<Change, Error> {
    let size = plan(image.size())?;
    // The layer is computed before the base image is decoded, so that only one file's pixels and
    // the layer are in memory at once.
    let layer = layer(size, overlay, params)?;
    let lay = |bitmap: &mut Bitmap, first: u32| {
        if let Some((layer, x, y)) = &layer {
            blend::mix(bitmap, first, layer, (*x, *y), params.opacity, params.blend);
        }
    };
    if let Some((bands, finish)) = image.bands(rows, Rect { x: 0, y: 0, size })? {
        return finish.stream(bands, lay);
    }
    let mut bitmap = image.decode()?;
    lay(&mut bitmap, 0);
    Ok(Change::Pixels { image: bitmap, background: Color::WHITE })
}

/// Runs the Action on files.
///
/// # Errors
///
/// As [`change`].
pub fn transform(image: &[u8], overlay: &[u8], params: &Overlay, finish: Finish) -> Result<Output, Error> {
    finish.transform(image, |image, rows| change(image, overlay, params, rows))
}

/// The visible part of the overlay, ready to be drawn, and its position; `None` when nothing is visible.
fn layer(image: Size, overlay: &[u8], params: &Overlay) -> Result<Option<(Bitmap, u32, u32)>, Error> {
    let header = probe(overlay).map_err(DecodeError::from)?;
    let scaled = scaled_size(image, header.size(), params.scale);
    let quarter = quarter_turn(params.rotate);
    let rotation = Rotation::clockwise(params.rotate);
    let extent = (f64::from(scaled.width), f64::from(scaled.height));
    let bounding = match quarter {
        Some(quarter) => {
            let size = quarter.apply_to_size(scaled);
            (f64::from(size.width), f64::from(size.height))
        }
        None => rotation.bounding(extent),
    };
    let Some((place, visible)) = visible(image, bounding, params) else {
        // A damaged overlay is refused wherever it is placed.
        decode(overlay)?;
        return Ok(None);
    };
    let bitmap = match quarter {
        Some(quarter) => {
            let plan = Plan::part(quarter.apply_to_size(scaled), visible);
            decode_turned_and_resized(overlay, quarter, &plan, Color::TRANSPARENT)?
        }
        None => {
            let (source, rotation) = ready_to_turn(overlay, header.size(), scaled, rotation)?;
            turned(&source, rotation, bounding, visible, Color::TRANSPARENT)
        }
    };
    Ok(Some((bitmap, place.0, place.1)))
}

/// The position in the image of the visible part of the overlay's box, and that part.
fn visible(image: Size, bounding: (f64, f64), params: &Overlay) -> Option<((u32, u32), Rect)> {
    let (width, height) = (bounding.0 as i64, bounding.1 as i64);
    let (left, top) = params.anchor.place_any((width, height), image);
    let span = |start: i64, length: i64, of: u32| {
        let first = start.max(0);
        let last = start.saturating_add(length).min(i64::from(of));
        // The start is within the image and fits a `u32`. The box begins no further to the left
        // than its own length.
        (first < last).then(|| (first as u32, first.abs_diff(start) as u32, (last - first) as u32))
    };
    let (x, inner_x, columns) = span(left.saturating_add(params.offset.0), width, image.width)?;
    let (y, inner_y, rows) = span(top.saturating_add(params.offset.1), height, image.height)?;
    Some(((x, y), Rect { x: inner_x, y: inner_y, size: Size::new(columns, rows) }))
}

/// The overlay before rotation. It is scaled if that makes it smaller than its file; otherwise it
/// keeps its original size and is enlarged while it is rotated.
fn ready_to_turn(
    overlay: &[u8],
    source: Size,
    scaled: Size,
    rotation: Rotation,
) -> Result<(Bitmap, Rotation), DecodeError> {
    if scaled.width <= source.width && scaled.height <= source.height {
        return Ok((decode_resized(overlay, &Plan::whole(scaled), Color::TRANSPARENT)?, rotation));
    }
    let scale = |to: u32, from: u32| f64::from(to) / f64::from(from);
    let scale = (scale(scaled.width, source.width), scale(scaled.height, source.height));
    Ok((decode(overlay)?, Rotation { scale, ..rotation }))
}
