//! Maps the pixels of a result to points of the source.

use std::ops::Range;

use super::rotation::{ONE, Rotation};
use crate::geometry::{Rect, Size};

/// The value of full coverage.
pub(super) const FULL: i64 = 1 << 16;

/// The positions in the source of the result's pixels, in units of 1 / [`ONE`] pixel.
pub(super) struct Map {
    /// The position of the first pixel.
    origin: (i64, i64),
    /// The step from one column to the next.
    pub(super) across: (i64, i64),
    /// The step from one row to the next.
    down: (i64, i64),
    /// Result pixels per source pixel, in units of 2^-16.
    pub(super) scale: (i64, i64),
    /// How far the edges of the source are repeated, in units of 1 / [`ONE`] pixel.
    pub(super) margin: i64,
    pub(super) columns: usize,
}

impl Map {
    /// Maps the `part` of a canvas of size `whole` on whose center the source is centered and rotated.
    pub(super) fn new(source: Size, rotation: Rotation, whole: (f64, f64), part: Rect) -> Self {
        let center = (f64::from(source.width) / 2.0, f64::from(source.height) / 2.0);
        // The center of the first pixel, relative to the center of the canvas.
        let first = (f64::from(part.x) + 0.5 - whole.0 / 2.0, f64::from(part.y) + 0.5 - whole.1 / 2.0);
        Self::about(center, rotation, first, part.size.width)
    }

    /// Maps a result of size `size` whose center is the point `center` of the source.
    pub(super) fn inside(center: (f64, f64), rotation: Rotation, size: Size) -> Self {
        let first = (0.5 - f64::from(size.width) / 2.0, 0.5 - f64::from(size.height) / 2.0);
        Self { margin: ONE, ..Self::about(center, rotation, first, size.width) }
    }

    /// Maps the center of the result to `center`. `first` is the center of the first pixel, relative to that.
    fn about(center: (f64, f64), rotation: Rotation, (x, y): (f64, f64), columns: u32) -> Self {
        let Rotation { cos, sin, scale } = rotation;
        let fixed = |value: f64| (value * ONE as f64).round() as i64;
        let u = (cos * x + sin * y) / scale.0 + center.0 - 0.5;
        let v = (cos * y - sin * x) / scale.1 + center.1 - 0.5;
        Self {
            origin: (fixed(u), fixed(v)),
            across: (fixed(cos / scale.0), fixed(-sin / scale.1)),
            down: (fixed(sin / scale.0), fixed(cos / scale.1)),
            scale: ((scale.0 * 65_536.0) as i64, (scale.1 * 65_536.0) as i64),
            margin: 0,
            columns: columns as usize,
        }
    }

    /// The position at which row `y` begins, and the range of columns that map to within one pixel
    /// of the source.
    pub(super) fn row(&self, y: usize, size: Size) -> ((i64, i64), Range<usize>) {
        let y = y as i64;
        let start = (self.origin.0 + self.down.0 * y, self.origin.1 + self.down.1 * y);
        let (mut first, mut last) = (0.0, self.columns as f64);
        for (start, step, length) in [(start.0, self.across.0, size.width), (start.1, self.across.1, size.height)] {
            let (start, end) = (start as f64 + ONE as f64, f64::from(length) * ONE as f64 - start as f64);
            // A column maps to the source if -start < step × x < end.
            let step = step as f64;
            let (low, high) = if step > 0.0 {
                (-start / step, end / step)
            } else if step < 0.0 {
                (end / step, -start / step)
            } else if start > 0.0 && end > 0.0 {
                continue;
            } else {
                return ((0, 0), 0..0);
            };
            first = low.max(first);
            last = high.min(last);
        }
        // Two columns are added on both sides because of rounding. Points outside of the source
        // have no coverage.
        let first = ((first - 2.0).max(0.0) as usize).min(self.columns);
        let last = ((last + 2.0).max(0.0) as usize).min(self.columns);
        (start, first..last.max(first))
    }
}

/// The coverage of a point by the source and its margin, 0 to [`FULL`]. It is zero more than one pixel outside of
/// them.
#[inline(always)]
pub(super) fn coverage(u: i64, v: i64, size: Size, map: &Map) -> i64 {
    let ramp = |at: i64, length: u32, scale: i64| {
        // The distance inwards from the nearer edge, in units of 2^-24 source pixels. More than one
        // pixel away, the point is completely inside or outside.
        let inwards = (at + ONE / 2).min(i64::from(length) * ONE - ONE / 2 - at);
        let inwards = (inwards + map.margin).clamp(-ONE, ONE) >> 8;
        // Converted to result pixels in units of 2^-16. One half of the ramp is outside of the
        // source.
        (((inwards * scale) >> 24) + FULL / 2).clamp(0, FULL) >> 8
    };
    ramp(u, size.width, map.scale.0) * ramp(v, size.height, map.scale.1)
}
