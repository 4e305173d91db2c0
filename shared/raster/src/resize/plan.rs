//! Computes the size of the result of a resize.
//!
//! The computation uses exact integer arithmetic, so that the gateway, which knows only stored
//! sizes, and the worker, which has the pixels, compute the same result.

use std::num::NonZeroU32;
use std::str::FromStr;

use crate::color::Color;
use crate::geometry::{Anchor, ParseError, Rect, Size};

/// The maximum number of pixels of a result: 100 megapixels.
pub const MAX_OUTPUT_PIXELS: u64 = 100_000_000;

/// The maximum length of a side of a result in pixels.
pub const MAX_OUTPUT_SIDE: u32 = 16_384;

/// The requested sides: one of them, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    width: Option<NonZeroU32>,
    height: Option<NonZeroU32>,
}

impl Bounds {
    /// Creates bounds from the requested sides. `None` if there is none or one is zero.
    pub fn new(width: Option<u32>, height: Option<u32>) -> Option<Self> {
        let side = |side: Option<u32>| side.map_or(Some(None), |side| NonZeroU32::new(side).map(Some));
        let bounds = Self { width: side(width)?, height: side(height)? };
        (bounds.width.is_some() || bounds.height.is_some()).then_some(bounds)
    }
}

/// How the image is fitted into a box of two sides (`docs/reference/actions.md#resize`). If only
/// one side is requested, all values are equivalent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// The largest size that fits into the box. The result has the size of the image.
    #[default]
    Inside,
    /// Covers the box; the excess is cropped.
    Cover,
    /// The largest size that fits into the box, which is filled with the background.
    Contain,
    /// Exactly the size of the box, without keeping the aspect ratio.
    Fill,
    /// The smallest size that covers the box; nothing is cropped.
    Outside,
}

impl FromStr for Fit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "inside" => Ok(Self::Inside),
            "cover" => Ok(Self::Cover),
            "contain" => Ok(Self::Contain),
            "fill" => Ok(Self::Fill),
            "outside" => Ok(Self::Outside),
            _ => Err(ParseError),
        }
    }
}

/// The parameters of the Action `resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resize {
    pub bounds: Bounds,
    /// How the image is fitted into the box.
    pub fit: Fit,
    /// The part that `cover` keeps, and the position of the image in `contain`.
    pub anchor: Anchor,
    /// Color of the padding of `contain`.
    pub background: Color,
    /// `true` if pixels may be scaled up.
    pub enlarge: bool,
}

impl Resize {
    /// A resize into `bounds` with the Action's defaults: inside, centered, transparent, enlarging.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, fit: Fit::Inside, anchor: Anchor::Center, background: Color::TRANSPARENT, enlarge: true }
    }
}

/// The reason why a result is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The source has a side of zero.
    #[error("the image is empty")]
    EmptySource,
    /// It would have more than [`MAX_OUTPUT_PIXELS`] pixels.
    #[error("the result would have more than 100 megapixels")]
    TooManyPixels,
    /// A side would be longer than [`MAX_OUTPUT_SIDE`].
    #[error("a side of the result would be longer than 16384 pixels")]
    SideTooLong,
    /// A crop extends beyond the image.
    #[error("the rectangle extends beyond the image")]
    OutOfBounds,
}

/// The steps of a resize of a source of a certain size: scale the whole, keep a part, put it onto a canvas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Size to which the whole source is scaled.
    pub(crate) scaled: Size,
    /// The part of `scaled` that is kept.
    pub(crate) kept: Rect,
    /// Position of the kept part on the canvas.
    pub(crate) offset: (u32, u32),
    canvas: Size,
}

impl Plan {
    /// The size of the result.
    pub fn output(&self) -> Size {
        self.canvas
    }

    /// The size to which the whole source is scaled, which is the minimum that a decoder must
    /// deliver.
    pub fn scaled(&self) -> Size {
        self.scaled
    }

    /// Returns `true` if the background is visible in a part of the canvas.
    pub fn pads(&self) -> bool {
        self.kept.size != self.canvas
    }

    /// Scales the whole source and keeps a part of it.
    pub(crate) fn part(scaled: Size, kept: Rect) -> Self {
        Self { scaled, kept, offset: (0, 0), canvas: kept.size }
    }

    /// Scales the whole source and keeps all of it.
    pub(crate) fn whole(scaled: Size) -> Self {
        Self { scaled, kept: Rect { x: 0, y: 0, size: scaled }, offset: (0, 0), canvas: scaled }
    }
}

/// Plans the resize of a source with a displayed size.
///
/// # Errors
///
/// [`PlanError`] if the result would exceed the limits or the source has no pixels.
pub fn plan(source: Size, resize: &Resize) -> Result<Plan, PlanError> {
    if source.pixels() == 0 {
        return Err(PlanError::EmptySource);
    }
    let plan = unchecked(source, resize)?;
    check_output(plan.canvas)?;
    Ok(plan)
}

fn unchecked(source: Size, resize: &Resize) -> Result<Plan, PlanError> {
    let grown = |size: Size| size.width > source.width || size.height > source.height;
    let asked = match (resize.bounds.width, resize.bounds.height) {
        (Some(width), Some(height)) => Size::new(width.get(), height.get()),
        (width, height) => {
            // If only one side is given, the other follows the aspect ratio, whatever the fit.
            let scaled = match (width, height) {
                (Some(width), _) => with_width(source, width.get())?,
                (None, Some(height)) => with_width(source.transposed(), height.get())?.transposed(),
                (None, None) => source,
            };
            return Ok(Plan::whole(if !resize.enlarge && grown(scaled) { source } else { scaled }));
        }
    };
    Ok(match resize.fit {
        Fit::Inside | Fit::Outside => {
            let scaled = with_ratio(source, asked, resize.fit == Fit::Outside)?;
            Plan::whole(if !resize.enlarge && grown(scaled) { source } else { scaled })
        }
        Fit::Fill => Plan::whole(if resize.enlarge { asked } else { shrunk_into(asked, source) }),
        Fit::Cover => {
            let canvas = if resize.enlarge { asked } else { shrunk_into(asked, source) };
            let scaled = with_ratio(source, canvas, true)?;
            let (x, y) = resize.anchor.place(canvas, scaled);
            Plan { scaled, kept: Rect { x, y, size: canvas }, offset: (0, 0), canvas }
        }
        Fit::Contain => {
            let fitted = with_ratio(source, asked, false)?;
            let scaled = if !resize.enlarge && grown(fitted) { source } else { fitted };
            let offset = resize.anchor.place(scaled, asked);
            Plan { scaled, kept: Rect { x: 0, y: 0, size: scaled }, offset, canvas: asked }
        }
    })
}

/// Rejects a result above the limits.
///
/// # Errors
///
/// [`PlanError::SideTooLong`] or [`PlanError::TooManyPixels`].
pub fn check_output(size: Size) -> Result<(), PlanError> {
    if size.width.max(size.height) > MAX_OUTPUT_SIDE {
        Err(PlanError::SideTooLong)
    } else if size.pixels() > MAX_OUTPUT_PIXELS {
        Err(PlanError::TooManyPixels)
    } else {
        Ok(())
    }
}

/// The size with this width and the source's aspect ratio. The height is rounded half up and at
/// least 1.
fn with_width(source: Size, width: u32) -> Result<Size, PlanError> {
    let height = rounded_ratio(source.height, width, source.width);
    Ok(Size::new(width, u32::try_from(height).map_err(|_| PlanError::SideTooLong)?))
}

/// `side` × `by` / `of`, rounded half up and at least 1.
pub(crate) fn rounded_ratio(side: u32, by: u32, of: u32) -> u64 {
    let (numerator, denominator) = (u64::from(side) * u64::from(by), u64::from(of));
    // At most 2^64 / 1.
    (((2 * u128::from(numerator) + u128::from(denominator)) / (2 * u128::from(denominator))) as u64).max(1)
}

/// The largest size with the source's aspect ratio within the box or, if `outside`, the smallest
/// one that covers it.
fn with_ratio(source: Size, within: Size, outside: bool) -> Result<Size, PlanError> {
    let by_width = u64::from(within.width) * u64::from(source.height);
    let by_height = u64::from(within.height) * u64::from(source.width);
    if (by_width <= by_height) != outside {
        with_width(source, within.width)
    } else {
        Ok(with_width(source.transposed(), within.height)?.transposed())
    }
}

/// The box, reduced with a constant aspect ratio until `source` covers it, rounded down and at
/// least 1.
fn shrunk_into(asked: Size, source: Size) -> Size {
    if asked.width <= source.width && asked.height <= source.height {
        return asked;
    }
    let scaled = |side: u32, by: u32, of: u32| ((u64::from(side) * u64::from(by) / u64::from(of)) as u32).max(1);
    let by_width = u64::from(source.width) * u64::from(asked.height);
    let by_height = u64::from(source.height) * u64::from(asked.width);
    if by_width <= by_height {
        Size::new(source.width, scaled(asked.height, source.width, asked.width))
    } else {
        Size::new(scaled(asked.width, source.height, asked.height), source.height)
    }
}
