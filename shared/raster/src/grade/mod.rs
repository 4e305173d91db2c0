//! The Action `color-grade` (`docs/reference/actions.md#color-grade`).
//!
//! **Formulas**, in this order, on sRGB samples `v` from 0 to 1 unless said otherwise; `p` is a parameter's hundredth:
//!
//! 1. light, in linear light (IEC 61966-2-1): `exposure` multiplies by `2^EV`; `temperature` multiplies red by
//!    `2^(p/2)` and blue by `2^(-p/2)`; `tint` multiplies green by `2^(-p/2)`, so that positive is magenta;
//! 2. `brightness`: `v·(1 + p)` and 3. `contrast`: `(v - 1/2)·(1 + p) + 1/2` (W3C Filter Effects Level 1, `brightness()`
//!    and `contrast()`), clamped after both;
//! 4. `highlights` and `shadows`: `v + h·v²·(1 - v) + s·v·(1 - v)²`, which keeps black and white and never
//!    reverses the order of two tones;
//! 5. `gamma`: `v^(1/γ)`;
//! 6. `saturation`: `L + (v - L)·(1 + p)`, with `L` the luma of `saturate()` (ibid.; weights 54, 183 and 19 of 256), and
//!    `vibrance`, which multiplies that factor by `1 + p·(1 - (max - min))`: gray gets all of it, a fully
//!    saturated color none;
//! 7. the `preset` ([`Preset`]), an affine map of colors, mixed in by `intensity`: `v + (M(v) - v)·i`.
//!
//! Steps 1 to 5 are one table for each channel, in sixteenths of a level; 6 and 7 use whole numbers, too. With everything at its
//! neutral value no table is applied. Alpha is unchanged.

mod kernel;
mod tone;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use crate::bitmap::Bitmap;
use crate::color::Color;
use crate::geometry::{ParseError, Rect, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::{PlanError, check_output};

use kernel::Kernel;

/// A preset look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// No preset.
    #[default]
    None,
    /// Black and white, with `contrast(1.3)`.
    Noir,
    /// `sepia(1)` of W3C Filter Effects.
    Sepia,
    /// Red × 1.08, green × 1.02, blue × 0.88.
    Warm,
    /// Red × 0.90, green × 1.00, blue × 1.10.
    Cool,
    /// `saturate(1.35)`, then `contrast(1.1)`.
    Vivid,
    /// `saturate(0.75)`, then from black at 0.10 to white at 0.94.
    Faded,
}

impl FromStr for Preset {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "none" => Ok(Self::None),
            "noir" => Ok(Self::Noir),
            "sepia" => Ok(Self::Sepia),
            "warm" => Ok(Self::Warm),
            "cool" => Ok(Self::Cool),
            "vivid" => Ok(Self::Vivid),
            "faded" => Ok(Self::Faded),
            _ => Err(ParseError),
        }
    }
}

/// The parameters of the Action `color-grade`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grade {
    /// Exposure in stops, -5 to 5.
    pub exposure: f64,
    /// Brightness in percent, -100 to 100, like the parameters below.
    pub brightness: f64,
    /// The contrast. See the formulas of the module.
    pub contrast: f64,
    /// The saturation. See the formulas of the module.
    pub saturation: f64,
    /// The vibrance. See the formulas of the module.
    pub vibrance: f64,
    /// The temperature. See the formulas of the module.
    pub temperature: f64,
    /// The tint. See the formulas of the module.
    pub tint: f64,
    /// The highlights. See the formulas of the module.
    pub highlights: f64,
    /// The shadows. See the formulas of the module.
    pub shadows: f64,
    /// The gamma value, greater than 0.
    pub gamma: f64,
    /// The preset look.
    pub preset: Preset,
    /// The intensity of the preset in percent, 0 to 100.
    pub intensity: f64,
}

impl Grade {
    /// A grade that changes nothing.
    pub const NEUTRAL: Self = Self {
        exposure: 0.0,
        brightness: 0.0,
        contrast: 0.0,
        saturation: 0.0,
        vibrance: 0.0,
        temperature: 0.0,
        tint: 0.0,
        highlights: 0.0,
        shadows: 0.0,
        gamma: 1.0,
        preset: Preset::None,
        intensity: 100.0,
    };
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

/// Grades an image in place.
pub fn grade(image: &mut Bitmap, grade: &Grade) {
    Kernel::new(grade).apply(image);
}

/// Runs the Action. The result may be written row by row if `rows` says how.
///
/// # Errors
///
/// Any [`Error`]. An image above the limits of results is rejected before it is decoded.
pub fn change(image: Input, params: &Grade, rows: Option<Finish>) -> Result<Change, Error> {
    let size = plan(image.size())?;
    let kernel = Kernel::new(params);
    if let Some((bands, finish)) = image.bands(rows, Rect { x: 0, y: 0, size })? {
        return finish.stream(bands, |band, _| kernel.apply(band));
    }
    let mut image = image.decode()?;
    kernel.apply(&mut image);
    Ok(Change::Pixels { image, background: Color::WHITE })
}

/// Runs the Action on a file.
///
/// # Errors
///
/// As [`change`].
pub fn transform(bytes: &[u8], params: &Grade, finish: Finish) -> Result<Output, Error> {
    finish.transform(bytes, |image, rows| change(image, params, rows))
}
