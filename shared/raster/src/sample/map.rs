//! Which points of the source a result is made of.

use std::ops::Range;

use super::turn::{ONE, Turn};
use crate::geometry::{Rect, Size};

/// Full coverage.
pub(super) const FULL: i64 = 1 << 16;

/// Where in the source the pixels of the result come from, in [`ONE`]s.
pub(super) struct Map {
    /// Of the first pixel.
    origin: (i64, i64),
    /// From one column to the next.
    pub(super) across: (i64, i64),
    /// From one row to the next.
    down: (i64, i64),
    /// Pixels of the result per pixel of the source, in 2^-16.
    pub(super) scale: (i64, i64),
    pub(super) columns: usize,
}

impl Map {
    pub(super) fn new(source: Size, turn: Turn, whole: (f64, f64), part: Rect) -> Self {
        let Turn { cos, sin, scale } = turn;
        let fixed = |value: f64| (value * ONE as f64).round() as i64;
        // The first pixel's centre, from the centre of the canvas.
        let (x, y) = (f64::from(part.x) + 0.5 - whole.0 / 2.0, f64::from(part.y) + 0.5 - whole.1 / 2.0);
        let u = (cos * x + sin * y) / scale.0 + f64::from(source.width) / 2.0 - 0.5;
        let v = (cos * y - sin * x) / scale.1 + f64::from(source.height) / 2.0 - 0.5;
        Self {
            origin: (fixed(u), fixed(v)),
            across: (fixed(cos / scale.0), fixed(-sin / scale.1)),
            down: (fixed(sin / scale.0), fixed(cos / scale.1)),
            scale: ((scale.0 * 65_536.0) as i64, (scale.1 * 65_536.0) as i64),
            columns: part.size.width as usize,
        }
    }

    /// Where row `y` begins, and which of its columns come from within a pixel of the source.
    pub(super) fn row(&self, y: usize, size: Size) -> ((i64, i64), Range<usize>) {
        let y = y as i64;
        let start = (self.origin.0 + self.down.0 * y, self.origin.1 + self.down.1 * y);
        let (mut first, mut last) = (0.0, self.columns as f64);
        for (start, step, length) in [(start.0, self.across.0, size.width), (start.1, self.across.1, size.height)] {
            let (start, end) = (start as f64 + ONE as f64, f64::from(length) * ONE as f64 - start as f64);
            // Within: -start < step × x < end.
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
        // Two more on both sides, for rounding; what is outside has no coverage.
        let first = ((first - 2.0).max(0.0) as usize).min(self.columns);
        let last = ((last + 2.0).max(0.0) as usize).min(self.columns);
        (start, first..last.max(first))
    }
}

/// How much of a point the source covers: of [`FULL`]; nothing further than a pixel outside.
#[inline(always)]
pub(super) fn coverage(u: i64, v: i64, size: Size, scale: (i64, i64)) -> i64 {
    let ramp = |at: i64, length: u32, scale: i64| {
        // From the nearer edge inwards, in 2^-24 pixels of the source; whoever is a pixel away is all in, or all out.
        let inwards = (at + ONE / 2).min(i64::from(length) * ONE - ONE / 2 - at).clamp(-ONE, ONE) >> 8;
        // In pixels of the result, 2^-16; half of the ramp lies outside.
        (((inwards * scale) >> 24) + FULL / 2).clamp(0, FULL) >> 8
    };
    ramp(u, size.width, scale.0) * ramp(v, size.height, scale.1)
}
