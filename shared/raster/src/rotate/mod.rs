//! The Action `rotate`: mirrors, then rotates clockwise (`docs/reference/actions.md#rotate`).
//!
//! **Formulas.** A rotation by a multiple of 90 degrees moves pixels without changing them. Any
//! other angle rotates the image about its center, with pixel centers at half-integer positions
//! (`sample`). With `expand`, the result is the smallest box that contains the rotated image,
//! `ceil(w·|cos| + h·|sin|)` by `ceil(w·|sin| + h·|cos|)`. Without `expand`, the result has the
//! size of the image. A rotation by 90 degrees is then also centered on a canvas of that size,
//! with an odd pixel on the right or at the bottom.

#[cfg(test)]
mod tests;

use std::str::FromStr;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::decode::DecodeError;
use crate::geometry::{Anchor, ParseError, Rect, Size};
use crate::input::Input;
use crate::orientation::Orientation;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{PlanError, check_output};
use crate::sample::{Padded, Rotation, Turning};

/// How the image is mirrored before it is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flip {
    /// Not mirrored.
    #[default]
    None,
    /// Left to right.
    Horizontal,
    /// Top to bottom.
    Vertical,
    /// Both directions, which is a rotation by 180 degrees.
    Both,
}

impl FromStr for Flip {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "none" => Ok(Self::None),
            "horizontal" => Ok(Self::Horizontal),
            "vertical" => Ok(Self::Vertical),
            "both" => Ok(Self::Both),
            _ => Err(ParseError),
        }
    }
}

impl From<Flip> for Orientation {
    fn from(flip: Flip) -> Self {
        match flip {
            Flip::None => Self::Normal,
            Flip::Horizontal => Self::FlippedHorizontally,
            Flip::Vertical => Self::FlippedVertically,
            Flip::Both => Self::Rotated180,
        }
    }
}

/// The parameters of the Action `rotate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotate {
    /// The angle in degrees clockwise, which must be finite.
    pub degrees: f64,
    /// `true` if the result grows to contain the turned image.
    pub expand: bool,
    /// Mirroring before the turn.
    pub flip: Flip,
    /// Color of the area that the turned image does not cover.
    pub background: Color,
}

/// The orientation for a multiple of 90 degrees; `None` for any other angle.
pub(crate) fn quarter_turn(degrees: f64) -> Option<Orientation> {
    let degrees = degrees.rem_euclid(360.0);
    [
        (0.0, Orientation::Normal),
        (90.0, Orientation::Rotate90),
        (180.0, Orientation::Rotated180),
        (270.0, Orientation::Rotate270),
        // A tiny negative angle is rounded to this value.
        (360.0, Orientation::Normal),
    ]
    .into_iter()
    .find_map(|(angle, rotation)| (angle == degrees).then_some(rotation))
}

/// Size of the result for an image with the displayed size `source`.
///
/// # Errors
/// The limits of results.
pub fn plan(source: Size, rotate: &Rotate) -> Result<Size, PlanError> {
    if source.pixels() == 0 {
        return Err(PlanError::EmptySource);
    }
    let size = match (rotate.expand, quarter_turn(rotate.degrees)) {
        (false, _) => source,
        (true, Some(rotation)) => rotation.apply_to_size(source),
        (true, None) => {
            let extent = (f64::from(source.width), f64::from(source.height));
            let (width, height) = Rotation::clockwise(rotate.degrees).bounding(extent);
            // Less than twice the range of a `u32`. Sides above the limit are rejected in any case.
            Size::new(width as u32, height as u32)
        }
    };
    check_output(size)?;
    Ok(size)
}

/// Runs the Action. The result may be written row by row if `rows` says how.
///
/// # Errors
///
/// Any [`Error`]. A result above the limits is rejected before the image is decoded.
pub fn change(image: Input, rotate: &Rotate, rows: Option<Finish>) -> Result<Change, Error> {
    let size = plan(image.size(), rotate)?;
    let Some(rotation) = quarter_turn(rotate.degrees) else {
        let jpeg = rows.filter(|finish| finish.is_jpeg(image.format()));
        return Ok(turning(image, rotate, size)?.change(size, jpeg));
    };
    let turned = image.decode_turned(Orientation::from(rotate.flip).then(rotation))?;
    let image = if turned.size() == size { turned } else { recentred(turned, size, rotate.background) };
    Ok(Change::Pixels { image, background: rotate.background })
}

/// Runs the Action on a file.
///
/// # Errors
///
/// As [`change`].
pub fn transform(bytes: &[u8], rotate: &Rotate, finish: Finish) -> Result<Output, Error> {
    finish.transform(bytes, |image, rows| change(image, rotate, rows))
}

/// The image, mirrored and prepared for rotation onto a canvas of size `size`.
fn turning(image: Input, rotate: &Rotate, size: Size) -> Result<Turning, DecodeError> {
    let whole = Rect { x: 0, y: 0, size: image.size() };
    let source = match rotate.flip {
        Flip::None => image.padded(whole)?,
        flip => Padded::from_bitmap(&image.decode_turned(flip.into())?),
    };
    let canvas = (f64::from(size.width), f64::from(size.height));
    let part = Rect { x: 0, y: 0, size };
    Ok(Turning::new(source, Rotation::clockwise(rotate.degrees), canvas, part, rotate.background))
}

/// An image centered on a canvas that is larger in one direction and smaller in the other.
fn recentred(image: Bitmap, size: Size, background: Color) -> Bitmap {
    let kept = Size::new(size.width.min(image.width()), size.height.min(image.height()));
    let (x, y) = Anchor::Center.place(kept, image.size());
    let mut kept = image.cropped(Rect { x, y, size: kept });
    let channels = match kept.channels() {
        Channels::Rgb if background.is_opaque() => Channels::Rgb,
        _ => {
            kept = kept.into_rgba();
            Channels::Rgba
        }
    };
    let mut canvas = Bitmap::filled(size, channels, background);
    let (x, y) = Anchor::Center.place(kept.size(), size);
    canvas.paste(&kept, x, y);
    canvas
}
