//! Computes exactly how much of each pixel a shape covers.
//!
//! **Mechanism.** In each row, every edge contributes the change, from one pixel to the next, of
//! the area to its right. The running sum of these changes along the row is the signed area, that
//! is the winding number averaged over the pixel. Its magnitude, limited to 1, is the coverage
//! under the nonzero rule, except in pixels where edges cross, where it is an approximation. (This
//! is the accumulation buffer of Raph Levien's font-rs.) Rows are processed in bands, so that
//! memory does not grow with the shape.

use kurbo::{PathEl, Point};

use crate::geometry::Size;

/// The number of cells in a band: a quarter of a megabyte, which fits the cache.
const BAND_CELLS: usize = 1 << 16;

/// The maximum error of a flattened curve in pixels. It is below the resolution of 8-bit coverage.
pub(super) const FLATNESS: f64 = 0.05;

/// A shape of closed polygons, in pixels from the top left corner of the image.
#[derive(Default)]
pub(super) struct Shape {
    /// Edges as x and y of the start and x and y of the end.
    edges: Vec<[f32; 4]>,
}

impl Shape {
    /// Adds an edge.
    pub(super) fn line(&mut self, from: Point, to: Point) {
        // A horizontal edge has no area to its right.
        if from.y != to.y {
            self.edges.push([from.x as f32, from.y as f32, to.x as f32, to.y as f32]);
        }
    }

    /// Adds a path of closed curves, flattened to lines.
    pub(super) fn add(&mut self, path: impl IntoIterator<Item = PathEl>) {
        let mut at = Point::ZERO;
        let mut start = at;
        kurbo::flatten(path, FLATNESS, |element| match element {
            PathEl::MoveTo(point) => (at, start) = (point, point),
            PathEl::LineTo(point) => {
                self.line(at, point);
                at = point;
            }
            PathEl::ClosePath => {
                self.line(at, start);
                at = start;
            }
            PathEl::QuadTo(..) | PathEl::CurveTo(..) => unreachable!("a flattened path has no curves"),
        });
    }

    /// The maximum distance from the origin in either dimension.
    #[cfg(test)]
    pub(super) fn reach(&self) -> f64 {
        self.edges.iter().flatten().fold(0.0, |reach, value| reach.max(f64::from(value.abs())))
    }

    /// Calls `paint` with the column, the row and the coverages (0 to 1) of each run of pixels
    /// within `clip`, from top to bottom.
    pub(super) fn cover(&self, clip: Size, mut paint: impl FnMut(u32, u32, &[f32])) {
        let Some((left, right)) = self.extent(0, clip.width) else { return };
        let Some((top, bottom)) = self.extent(1, clip.height) else { return };
        let width = (right - left) as usize;
        // The last column collects what lies to the right of the others.
        let columns = width + 1;
        let rows = (BAND_CELLS / columns).clamp(1, (bottom - top) as usize);
        let mut cells = vec![0.0; columns * rows];
        for first in (top..bottom).step_by(rows) {
            let rows = rows.min((bottom - first) as usize);
            let cells = &mut cells[..columns * rows];
            cells.fill(0.0);
            let (x, y) = (left as f32, first as f32);
            for &[x0, y0, x1, y1] in &self.edges {
                accumulate([x0 - x, y0 - y, x1 - x, y1 - y], cells, columns, rows);
            }
            for (row, y) in cells.chunks_exact_mut(columns).zip(first..) {
                let mut sum = 0.0;
                for cell in &mut *row {
                    sum += *cell;
                    *cell = f32::min(sum.abs(), 1.0);
                }
                paint(left, y, &row[..width]);
            }
        }
    }

    /// The range of whole pixels that the shape touches in one dimension (0 is x), limited to
    /// `length`.
    fn extent(&self, dimension: usize, length: u32) -> Option<(u32, u32)> {
        let values = self.edges.iter().flat_map(|edge| [edge[dimension], edge[dimension + 2]]);
        let (least, most) =
            values.fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        // The casts saturate.
        let (start, end) = (least.floor().max(0.0) as u32, (most.ceil().max(0.0) as u32).min(length));
        (start < end).then_some((start, end))
    }
}

/// Adds the contribution of an edge to `rows` rows of `columns` cells.
fn accumulate(edge: [f32; 4], cells: &mut [f32], columns: usize, rows: usize) {
    let [ax, ay, bx, by] = edge;
    let (direction, x0, y0, x1, y1) = if ay < by { (1.0, ax, ay, bx, by) } else { (-1.0, bx, by, ax, ay) };
    if y1 <= 0.0 || y0 >= rows as f32 {
        return;
    }
    let slope = (x1 - x0) / (y1 - y0);
    let mut x = if y0 < 0.0 { x0 - y0 * slope } else { x0 };
    let end = rows.min(y1.ceil() as usize);
    for (row, y) in cells.chunks_exact_mut(columns).zip(0..end).skip(y0.max(0.0) as usize) {
        let height = f32::min((y + 1) as f32, y1) - f32::max(y as f32, y0);
        let next = x + slope * height;
        accumulate_row(x.min(next), x.max(next), direction * height, row);
        x = next;
    }
}

/// Adds the contribution of a part of an edge within one row, from `left` to `right`, with the
/// signed height `height`.
fn accumulate_row(mut left: f32, mut right: f32, mut height: f32, row: &mut [f32]) {
    let end = (row.len() - 1) as f32;
    if right <= 0.0 {
        row[0] += height;
        return;
    }
    if left >= end {
        return;
    }
    // A part to the left of the row affects all its pixels; a part to the right affects none.
    if left < 0.0 {
        let outside = height * (-left / (right - left));
        row[0] += outside;
        height -= outside;
        left = 0.0;
    }
    if right > end {
        height *= (end - left) / (right - left);
        right = end;
    }
    let (first, last) = (left as usize, right.ceil() as usize);
    if last <= first + 1 {
        let middle = 0.5 * (left + right) - first as f32;
        row[first] += height * (1.0 - middle);
        row[first + 1] += height * middle;
        return;
    }
    // The areas of a trapezoid: a triangle in the first pixel, a triangle in the last, and equal
    // steps in between.
    let step = 1.0 / (right - left);
    let in_first = 1.0 - (left - first as f32);
    let in_last = right - (last - 1) as f32;
    let area_first = 0.5 * step * in_first * in_first;
    let area_last = 0.5 * step * in_last * in_last;
    row[first] += height * area_first;
    if last == first + 2 {
        row[first + 1] += height * (1.0 - area_first - area_last);
    } else {
        let area_second = step * (in_first + 0.5);
        row[first + 1] += height * (area_second - area_first);
        for cell in &mut row[first + 2..last - 1] {
            *cell += height * step;
        }
        let area_before_last = area_second + (last - first - 3) as f32 * step;
        row[last - 1] += height * (1.0 - area_before_last - area_last);
    }
    row[last] += height * area_last;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(points: &[(f64, f64)]) -> Shape {
        let mut shape = Shape::default();
        for (from, to) in points.iter().zip(points.iter().cycle().skip(1)) {
            shape.line(Point::new(from.0, from.1), Point::new(to.0, to.1));
        }
        shape
    }

    /// The coverages of the pixels of an image of size `width` by `height`.
    fn covered(shape: &Shape, width: u32, height: u32) -> Vec<f32> {
        let mut all = vec![0.0; (width * height) as usize];
        shape.cover(Size::new(width, height), |x, y, row| {
            let start = (y * width + x) as usize;
            all[start..start + row.len()].copy_from_slice(row);
        });
        all
    }

    fn assert_near(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        assert!(got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 1e-5), "{got:?} is not {wanted:?}");
    }

    #[test]
    fn a_rectangle_covers_its_share_of_each_pixel() {
        let rectangle = shape(&[(0.5, 0.25), (2.25, 0.25), (2.25, 2.0), (0.5, 2.0)]);
        assert_near(&covered(&rectangle, 3, 2), &[0.375, 0.75, 0.1875, 0.5, 1.0, 0.25]);
    }

    #[test]
    fn a_triangle_is_exact_in_every_pixel() {
        // The part of a 4 × 4 image below its diagonal.
        let triangle = shape(&[(0.0, 0.0), (4.0, 4.0), (0.0, 4.0)]);
        let wanted: Vec<f32> = (0..4)
            .flat_map(|y| (0..4).map(move |x| if x < y { 1.0 } else { f32::from(u8::from(x == y)) / 2.0 }))
            .collect();
        assert_near(&covered(&triangle, 4, 4), &wanted);
        // A shallow edge that crosses five pixels in one row: 1/10, 3/10, ...
        let shallow = shape(&[(0.0, 0.0), (5.0, 1.0), (0.0, 1.0)]);
        assert_near(&covered(&shallow, 5, 1), &[0.9, 0.7, 0.5, 0.3, 0.1]);
    }

    #[test]
    fn what_is_cut_off_is_as_it_is_within() {
        let points = [(-7.3, -3.1), (9.7, 4.4), (3.2, 13.9), (-2.2, 8.8)];
        let moved: Vec<_> = points.iter().map(|(x, y)| (x + 10.0, y + 10.0)).collect();
        let whole = covered(&shape(&moved), 30, 30);
        let cut = covered(&shape(&points), 6, 5);
        let part: Vec<f32> = (10..15).flat_map(|y| whole[y * 30 + 10..y * 30 + 16].to_vec()).collect();
        assert_near(&cut, &part);
    }

    #[test]
    fn overlaps_cover_once_and_holes_stay_open() {
        let square = [(1.0, 1.0), (5.0, 1.0), (5.0, 5.0), (1.0, 5.0)];
        let mut twice = shape(&square);
        twice.edges.extend(shape(&square).edges);
        assert_near(&covered(&twice, 6, 6), &covered(&shape(&square), 6, 6));
        let mut ring = shape(&square);
        ring.edges.extend(shape(&[(2.0, 2.0), (2.0, 4.0), (4.0, 4.0), (4.0, 2.0)]).edges);
        let ring = covered(&ring, 6, 6);
        assert_eq!((ring[6 + 1], ring[2 * 6 + 2], ring[3 * 6 + 3], ring[4 * 6 + 4]), (1.0, 0.0, 0.0, 1.0));
    }

    #[test]
    fn bands_leave_no_trace() {
        let (width, height) = (600, 400);
        let diamond = shape(&[(300.0, 1.5), (598.0, 200.25), (300.0, 399.0), (1.0, 200.75)]);
        assert!(BAND_CELLS < width * height, "several bands");
        let area: f32 = covered(&diamond, width as u32, height as u32).iter().sum();
        let exact = 0.5 * (598.0 - 1.0) * (399.0 - 1.5);
        assert!((area - exact).abs() < exact * 1e-4, "{area} of {exact}");
    }

    #[test]
    fn nothing_and_what_lies_outside_cover_nothing() {
        assert_near(&covered(&Shape::default(), 2, 2), &[0.0; 4]);
        for (x, y) in [(-5.0, 0.0), (5.0, 0.0), (0.0, -5.0), (0.0, 5.0)] {
            let beside = shape(&[(x, y), (x + 2.0, y), (x + 2.0, y + 2.0), (x, y + 2.0)]);
            assert_near(&covered(&beside, 2, 2), &[0.0; 4]);
        }
    }
}
