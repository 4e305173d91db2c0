//! The rotation of an image, and its bounding box.

/// The fixed-point value of one pixel in positions.
pub(super) const ONE: i64 = 1 << 32;

/// A similarity transformation from result pixels to source pixels: a rotation about both centers,
/// and a scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rotation {
    /// The cosine of the clockwise angle.
    pub cos: f64,
    /// The sine of the clockwise angle.
    pub sin: f64,
    /// Result pixels per source pixel, horizontally and vertically.
    pub scale: (f64, f64),
}

impl Rotation {
    /// A rotation by `degrees` clockwise without scaling. Sine and cosine are rounded, so that
    /// differences between mathematics libraries in the last bit have no effect.
    pub(crate) fn clockwise(degrees: f64) -> Self {
        let rounded = |value: f64| (value * ONE as f64).round() / ONE as f64;
        let radians = degrees.to_radians();
        Self { cos: rounded(radians.cos()), sin: rounded(radians.sin()), scale: (1.0, 1.0) }
    }

    /// The smallest box of whole pixels that contains a rotated `size`. It may be exceeded by a
    /// ten-thousandth of a pixel.
    pub(crate) fn bounding(self, (width, height): (f64, f64)) -> (f64, f64) {
        const SLACK: f64 = 1e-4;
        let (cos, sin) = (self.cos.abs(), self.sin.abs());
        let side = |length: f64| (length - SLACK).ceil().max(1.0);
        (side(width * cos + height * sin), side(width * sin + height * cos))
    }
}
