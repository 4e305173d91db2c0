//! Resampling with an affine map: rotation by any angle, and optional scaling.
//!
//! **Formulas.** The center of a result pixel maps to a point of the source. Its color is computed
//! by Lanczos-3 over 6 × 6 pixels around this point, `sinc(x)·sinc(x/3)` in each direction (C.
//! Duchon, "Lanczos Filtering in One and Two Dimensions", 1979), with normalized weights,
//! premultiplied alpha, and repeated source edges. The coverage determines how much of it is
//! visible: at each edge of the source it is a ramp of the width of a result pixel, centered on the
//! edge; the rest is background. Because color and coverage are separate, edges are smooth, and
//! neither the background nor ringing affects the image.
//!
//! **Exactness.** All computations use integers: positions in units of 2^-32 of a pixel, phases in
//! 256ths, weights in 2048ths. The result is the same on every machine.

mod convolve;
mod draw;
mod map;
mod padded;
mod rotation;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::decode::BAND;
use crate::encode::jpeg_encoder;
use crate::geometry::{Rect, Size};
use crate::pipeline::{Change, Finish, Output};

use convolve::Convolve;
use map::Map;
pub(crate) use padded::Padded;
pub(crate) use rotation::Rotation;

/// The `part` of a rotated image, which is centered on a canvas of size `whole`.
///
/// The result has an alpha channel if the source or the background is not opaque.
pub(crate) fn turned(source: &Bitmap, rotation: Rotation, whole: (f64, f64), part: Rect, background: Color) -> Bitmap {
    let turning = Turning::new(Padded::from_bitmap(source), rotation, whole, part, background);
    let mut result = Bitmap::filled(part.size, turning.channels(), background);
    turning.fill(0, result.pixels_mut());
    result
}

/// A rotated image whose rows can be computed in any order.
pub(crate) struct Turning {
    source: Padded,
    map: Map,
    background: Color,
}

impl Turning {
    /// Prepares an image. The parameters are those of [`turned`].
    pub(crate) fn new(source: Padded, rotation: Rotation, whole: (f64, f64), part: Rect, background: Color) -> Self {
        Self { map: Map::new(source.size, rotation, whole, part), source, background }
    }

    /// Prepares a result of size `size` whose center is the point `center` of an image. Its pixels lie inside the image, whose edges
    /// are repeated and do not fade out.
    pub(crate) fn inside(source: Padded, rotation: Rotation, center: (f64, f64), size: Size) -> Self {
        Self { map: Map::inside(center, rotation, size), source, background: Color::WHITE }
    }

    /// The result of this size, which is written row by row as a JPEG if it has no alpha and `jpeg` says how.
    pub(crate) fn change(&self, size: Size, jpeg: Option<Finish>) -> Change {
        let (channels, background) = (self.channels(), self.background);
        if let (Channels::Rgb, Some(finish)) = (channels, jpeg) {
            let mut encoder = jpeg_encoder(size, channels, finish.quality);
            for first in (0..size.height).step_by(BAND as usize) {
                let count = BAND.min(size.height - first);
                let mut band = Bitmap::filled(Size::new(size.width, count), channels, background);
                self.fill(first as usize, band.pixels_mut());
                encoder.write(band.pixels());
            }
            return Change::Written(Output::jpeg(encoder, size));
        }
        let mut image = Bitmap::filled(size, channels, background);
        self.fill(0, image.pixels_mut());
        Change::Pixels { image, background }
    }

    /// The channels of the result.
    pub(crate) fn channels(&self) -> Channels {
        if self.source.is_opaque && self.background.is_opaque() { Channels::Rgb } else { Channels::Rgba }
    }

    /// Draws rows from `first` onwards over pixels of the background.
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
