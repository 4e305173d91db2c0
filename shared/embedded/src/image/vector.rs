//! Filled basic shapes. Curves use the usual cubic approximation of an arc, which needs no
//! trigonometric functions.

use kurbo::{BezPath, Point};

use raster::text::lay_clipped;
use raster::{Bitmap, Rect, Size};

/// The length of the control handles for a quarter of a circle, relative to the radius.
const HANDLE: f64 = 0.552_284_749_8;

/// A rectangle in pixels at any position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self { x, y, width, height }
    }

    pub(super) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(self) -> f64 {
        self.y + self.height
    }

    /// Shrinks the rectangle by `margin` on every side. If nothing is left, the result is a point
    /// or line at its center.
    pub(super) fn inset(self, margin: f64) -> Self {
        let (x, y) = (margin.min(self.width / 2.0), margin.min(self.height / 2.0));
        Self::new(self.x + x, self.y + y, self.width - 2.0 * x, self.height - 2.0 * y)
    }

    /// The nearest rectangle of whole pixels with sides of at least one, within an image of size
    /// `width` by `height`.
    pub(super) fn pixels(self, width: u32, height: u32) -> Rect {
        let span = |start: f64, length: f64, available: u32| {
            let first = (start.round().max(0.0) as u32).min(available - 1);
            let last = ((start + length).round().max(0.0) as u32).clamp(first + 1, available);
            (first, last - first)
        };
        let ((x, width), (y, height)) = (span(self.x, self.width, width), span(self.y, self.height, height));
        Rect { x, y, size: Size::new(width, height) }
    }
}

/// A quarter of an ellipse around `corner`, which extends by `across` and `down`, either of which
/// may be negative.
pub(super) fn quarter(corner: (f64, f64), across: f64, down: f64) -> BezPath {
    let (x, y) = corner;
    let mut path = BezPath::new();
    path.move_to((x, y));
    path.line_to((x + across, y));
    path.curve_to((x + across, y + down * HANDLE), (x + across * HANDLE, y + down), (x, y + down));
    path.close_path();
    path
}

/// A circle.
pub(super) fn disc(center: (f64, f64), radius: f64) -> BezPath {
    let square = Area::new(center.0 - radius, center.1 - radius, 2.0 * radius, 2.0 * radius);
    rounded(square, radius)
}

/// A rectangle with rounded corners.
pub(super) fn rounded(area: Area, radius: f64) -> BezPath {
    let r = radius.min(area.width / 2.0).min(area.height / 2.0);
    let (left, top, right, bottom) = (area.x, area.y, area.right(), area.bottom());
    let rest = r * (1.0 - HANDLE);
    let mut path = BezPath::new();
    path.move_to((left + r, top));
    path.line_to((right - r, top));
    path.curve_to((right - rest, top), (right, top + rest), (right, top + r));
    path.line_to((right, bottom - r));
    path.curve_to((right, bottom - rest), (right - rest, bottom), (right - r, bottom));
    path.line_to((left + r, bottom));
    path.curve_to((left + rest, bottom), (left, bottom - rest), (left, bottom - r));
    path.line_to((left, top + r));
    path.curve_to((left, top + rest), (left + rest, top), (left + r, top));
    path.close_path();
    path
}

/// The area between a smooth line through `points`, which are ordered from left to right, and
/// `floor` below it.
pub(super) fn ground(points: &[(f64, f64)], floor: f64) -> BezPath {
    let mut path = BezPath::new();
    let [first, .., last] = points else { return path };
    path.move_to((first.0, floor));
    path.line_to(*first);
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        let middle = (x0 + x1) / 2.0;
        path.curve_to(Point::new(middle, y0), Point::new(middle, y1), Point::new(x1, y1));
    }
    path.line_to((last.0, floor));
    path.close_path();
    path
}

/// Draws `inner` without transparency over `image`, with its top left pixel at `place` and
/// rounded corners.
pub(super) fn lay(image: &mut Bitmap, inner: &Bitmap, place: (u32, u32), radius: f64) {
    let area = Area::new(f64::from(place.0), f64::from(place.1), f64::from(inner.width()), f64::from(inner.height()));
    lay_clipped(image, inner, place, rounded(area, radius));
}

#[cfg(test)]
mod tests {
    use super::*;
    use raster::text::fill_path;
    use raster::{Channels, Color};

    use crate::testing::photo;

    const INK: Color = Color { r: 0, g: 0, b: 0, a: 255 };

    /// The black area of a white image in pixels after `path` is filled.
    fn covered(path: BezPath) -> f64 {
        let mut image = Bitmap::filled(Size::new(100, 100), Channels::Rgb, Color::WHITE);
        fill_path(&mut image, path, INK);
        image.pixels().chunks_exact(3).map(|pixel| 1.0 - f64::from(pixel[0]) / 255.0).sum()
    }

    #[test]
    fn shapes_cover_their_area() {
        let pi = std::f64::consts::PI;
        let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < wanted * 0.005, "{got}, not {wanted}");
        near(covered(disc((50.0, 50.0), 30.0)), pi * 900.0);
        near(covered(quarter((90.0, 90.0), -60.0, -40.0)), pi * 600.0);
        near(covered(rounded(Area::new(10.0, 20.0, 60.0, 40.0), 10.0)), 2400.0 - (4.0 - pi) * 100.0);
        near(covered(ground(&[(0.0, 40.0), (50.0, 60.0), (100.0, 40.0)], 100.0)), 5000.0);
        assert_eq!(covered(ground(&[], 100.0)), 0.0);
    }

    #[test]
    fn a_laid_image_is_itself_but_for_its_corners() {
        let mut image = Bitmap::filled(Size::new(60, 50), Channels::Rgb, Color::WHITE);
        let inner = photo(40, 30);
        lay(&mut image, &inner, (20, 20), 8.0);
        assert_eq!(image.pixel(40, 35), inner.pixel(20, 15));
        assert_eq!(image.pixel(20, 35), inner.pixel(0, 15));
        for corner in [(20, 20), (59, 20), (20, 49), (59, 49), (19, 35)] {
            assert_eq!(image.pixel(corner.0, corner.1), Some([255; 4]));
        }
    }

    #[test]
    fn areas_become_whole_pixels_within_the_image() {
        let rect = |x, y, width, height| Area::new(x, y, width, height).pixels(100, 50);
        let is = |rect: Rect| (rect.x, rect.y, rect.size.width, rect.size.height);
        assert_eq!(is(rect(10.4, 10.6, 20.2, 20.2)), (10, 11, 21, 20));
        assert_eq!(is(rect(-5.0, 40.0, 300.0, 300.0)), (0, 40, 100, 10));
        assert_eq!(is(rect(99.9, 7.2, 0.0, 0.0)), (99, 7, 1, 1));
        assert_eq!(Area::new(0.0, 0.0, 4.0, 40.0).inset(10.0), Area::new(2.0, 10.0, 0.0, 20.0));
    }
}
