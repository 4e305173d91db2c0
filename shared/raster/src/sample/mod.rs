//! Resampling along an affine map: rotation by any angle, with a scale where a picture is also enlarged.
//!
//! **Formulas.** The colour of a result pixel is that of the source at the point that its centre comes from, by Lanczos-3 over
//! 6 × 6 pixels, `sinc(x)·sinc(x/3)` a side (C. Duchon, "Lanczos Filtering in One and Two Dimensions", 1979; decisions 8.1),
//! weights made to add up, alpha premultiplied, the source's edge repeated. How much of it is seen is the coverage: each edge of the
//! source is a ramp as wide as a pixel of the result, at its middle on the edge itself; the rest is background.
//! Colour and coverage apart, the edge is smooth, and neither the background nor ringing gets into the picture.
//!
//! **Exactness.** All in whole numbers: positions in 2^-32 of a pixel, phases in 256ths, weights in 2048ths. The same
//! on every machine.

mod convolve;
mod draw;
mod map;
mod padded;
mod turn;

use crate::color::Color;
use crate::geometry::Rect;
use crate::picture::{Channels, Picture};

use convolve::Convolve;
use map::Map;
pub(crate) use padded::Padded;
pub(crate) use turn::Turn;

/// The `part` of a turned picture that lies centred on a canvas of the size `whole`.
///
/// The result has an alpha channel when the source is not opaque or the background is not.
pub(crate) fn turned(source: &Picture, turn: Turn, whole: (f64, f64), part: Rect, background: Color) -> Picture {
    let turning = Turning::new(Padded::of(source), turn, whole, part, background);
    let mut result = Picture::filled(part.size, turning.channels(), background);
    turning.fill(0, result.pixels_mut());
    result
}

/// A turned picture, of which any rows can be had.
pub(crate) struct Turning {
    source: Padded,
    map: Map,
    background: Color,
}

impl Turning {
    /// See [`turned`].
    pub(crate) fn new(source: Padded, turn: Turn, whole: (f64, f64), part: Rect, background: Color) -> Self {
        Self { map: Map::new(source.size, turn, whole, part), source, background }
    }

    /// What the result is made of.
    pub(crate) fn channels(&self) -> Channels {
        if self.source.is_opaque && self.background.is_opaque() { Channels::Rgb } else { Channels::Rgba }
    }

    /// Draws the rows from `first` on onto pixels of the background.
    pub(crate) fn fill(&self, first: usize, pixels: &mut [u8]) {
        let convolve = Convolve::get();
        match self.channels() {
            Channels::Rgb => convolve.fill_rgb(&self.source, &self.map, self.background, first, pixels),
            Channels::Rgba => convolve.fill_rgba(&self.source, &self.map, self.background, first, pixels),
        }
    }
}

#[cfg(test)]
mod tests;
