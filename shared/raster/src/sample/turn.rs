//! How a picture is turned, and the box that it then takes.

/// One pixel in positions.
pub(super) const ONE: i64 = 1 << 32;

/// A similarity from the pixels of the result to those of the source: a turn about both centres, and a scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turn {
    /// Cosine and sine of the clockwise angle.
    pub cos: f64,
    /// See `cos`.
    pub sin: f64,
    /// Result pixels per source pixel, across and down.
    pub scale: (f64, f64),
}

impl Turn {
    /// A turn by `degrees` clockwise, not scaled. Cosine and sine are rounded, so that it does not matter to the last
    /// bit whose mathematics library computed them.
    pub(crate) fn clockwise(degrees: f64) -> Self {
        let rounded = |value: f64| (value * ONE as f64).round() / ONE as f64;
        let radians = degrees.to_radians();
        Self { cos: rounded(radians.cos()), sin: rounded(radians.sin()), scale: (1.0, 1.0) }
    }

    /// The smallest box of whole pixels that holds a turned `size`; a ten-thousandth of a pixel may stick out.
    pub(crate) fn bounding(self, (width, height): (f64, f64)) -> (f64, f64) {
        const SLACK: f64 = 1e-4;
        let (cos, sin) = (self.cos.abs(), self.sin.abs());
        let side = |length: f64| (length - SLACK).ceil().max(1.0);
        (side(width * cos + height * sin), side(width * sin + height * cos))
    }
}
