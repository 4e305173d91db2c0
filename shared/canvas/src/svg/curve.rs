//! The cubic curve between the facing sides of two nodes.

use crate::placement::Frame;

/// A point in canvas units.
pub(super) type Point = (f64, f64);

/// Distance between an arrow's tip and the frame that it points to.
pub(super) const GAP: f64 = 3.0;
/// Least distance between two columns of cards for a curve to pass.
const GUTTER: f64 = 48.0;
/// Length of a piece of a curve that is as good as a point.
const PIECE: f64 = 1.0;

/// A cubic curve: start, two control points, end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Curve(pub [Point; 4]);

/// The middle of a frame.
pub(super) fn middle(frame: Frame) -> Point {
    ((frame.left + frame.right) / 2.0, (frame.top + frame.bottom) / 2.0)
}

impl Curve {
    /// From the side of `from` that faces `to` to the side of `to` that faces `from`, perpendicular to both. Columns
    /// usually run from left to right: if there is a gutter between the two frames, the curve passes through it,
    /// whatever the vertical distance, instead of behind the cards of a column.
    pub(super) fn between(from: Frame, to: Frame) -> Self {
        // Distance of the frames in each axis; negative where they overlap.
        let across = (to.left - from.right).max(from.left - to.right);
        let down = (to.top - from.bottom).max(from.top - to.bottom);
        let (from_middle, to_middle) = (middle(from), middle(to));
        if across >= down.min(GUTTER) {
            let is_ahead = to_middle.0 >= from_middle.0;
            let (way, start, end) =
                if is_ahead { (1.0, from.right, to.left - GAP) } else { (-1.0, from.left, to.right + GAP) };
            let (start, end) = ((start, from_middle.1), (end, to_middle.1));
            let reach = reach((end.0 - start.0) * way, (end.1 - start.1).abs());
            Self([start, (start.0 + way * reach, start.1), (end.0 - way * reach, end.1), end])
        } else {
            let is_below = to_middle.1 >= from_middle.1;
            let (way, start, end) =
                if is_below { (1.0, from.bottom, to.top - GAP) } else { (-1.0, from.top, to.bottom + GAP) };
            let (start, end) = ((from_middle.0, start), (to_middle.0, end));
            let reach = reach((end.1 - start.1) * way, (end.0 - start.0).abs());
            Self([start, (start.0, start.1 + way * reach), (end.0, end.1 - way * reach), end])
        }
    }

    pub(super) fn middle(self) -> Point {
        self.halves().0.0[3]
    }

    /// Returns `true` if the curve passes through a frame.
    pub(super) fn meets(self, frame: Frame) -> bool {
        let [(first_x, first_y), rest @ ..] = self.0;
        let [mut left, mut right, mut top, mut bottom] = [first_x, first_x, first_y, first_y];
        for (x, y) in rest {
            (left, right) = (left.min(x), right.max(x));
            (top, bottom) = (top.min(y), bottom.max(y));
        }
        // A curve lies within the hull of its points.
        let is_apart = right <= frame.left || left >= frame.right || bottom <= frame.top || top >= frame.bottom;
        if is_apart {
            return false;
        }
        let is_inside = |(x, y): Point| x > frame.left && x < frame.right && y > frame.top && y < frame.bottom;
        if is_inside(self.0[0]) || is_inside(self.0[3]) || (right - left).max(bottom - top) <= PIECE {
            return true;
        }
        let (first, second) = self.halves();
        first.meets(frame) || second.meets(frame)
    }

    /// The two halves of the curve (de Casteljau).
    fn halves(self) -> (Self, Self) {
        let half = |a: Point, b: Point| ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0);
        let [a, b, c, d] = self.0;
        let (ab, bc, cd) = (half(a, b), half(b, c), half(c, d));
        let (abc, bcd) = (half(ab, bc), half(bc, cd));
        let middle = half(abc, bcd);
        (Self([a, ab, abc, middle]), Self([middle, bcd, cd, d]))
    }
}

/// Distance of the control points from their ends: half the way for a gentle S; more when the ends are close and
/// offset; a loop when the end is behind the start.
fn reach(ahead: f64, aside: f64) -> f64 {
    if ahead > 0.0 { (ahead / 2.0).max((aside / 4.0).min(90.0)) } else { 60.0 + (aside / 4.0).min(180.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(left: f64, top: f64) -> Frame {
        Frame { left, top, right: left + 100.0, bottom: top + 60.0 }
    }

    fn ends(from: Frame, to: Frame) -> (Point, Point) {
        let Curve([start, .., end]) = Curve::between(from, to);
        (start, end)
    }

    #[test]
    fn a_curve_joins_the_sides_that_face_each_other() {
        let middle = frame(0.0, 0.0);
        assert_eq!(ends(middle, frame(300.0, 40.0)), ((100.0, 30.0), (297.0, 70.0)));
        assert_eq!(ends(middle, frame(-300.0, 40.0)), ((0.0, 30.0), (-197.0, 70.0)));
        assert_eq!(ends(middle, frame(20.0, 300.0)), ((50.0, 60.0), (70.0, 297.0)));
        assert_eq!(ends(middle, frame(20.0, -300.0)), ((50.0, 0.0), (70.0, -237.0)));
    }

    #[test]
    fn a_curve_to_another_column_goes_through_the_gutter_however_far_down() {
        let left = frame(0.0, 0.0);
        assert_eq!(ends(left, frame(100.0 + GUTTER, 900.0)), ((100.0, 30.0), (97.0 + GUTTER, 930.0)));
        assert_eq!(ends(left, frame(99.0 + GUTTER, 900.0)), ((50.0, 60.0), (149.0 + GUTTER, 897.0)));
    }

    #[test]
    fn a_curve_leaves_and_arrives_at_right_angles() {
        let Curve([a, b, c, d]) = Curve::between(frame(0.0, 0.0), frame(300.0, 200.0));
        assert!(b.1 == a.1 && b.0 > a.0 && c.1 == d.1 && c.0 < d.0);
    }

    #[test]
    fn frames_in_the_same_place_are_joined_by_a_loop() {
        let Curve(points) = Curve::between(frame(0.0, 0.0), frame(0.0, 0.0));
        assert!(points.iter().all(|(x, y)| x.is_finite() && y.is_finite()));
        assert!(points[1].1 > points[0].1 && points[2].1 < points[3].1);
    }

    #[test]
    fn a_curve_meets_what_it_passes_through_and_not_what_only_its_hull_touches() {
        let curve = Curve::between(frame(0.0, 0.0), frame(900.0, 600.0));
        assert_eq!(curve.middle(), (498.5, 330.0));
        assert!(curve.meets(frame(450.0, 300.0)));
        assert!(!curve.meets(frame(700.0, 40.0)) && !curve.meets(frame(200.0, 560.0)), "beside the S");
        let level = Curve::between(frame(0.0, 0.0), frame(900.0, 0.0));
        assert!(level.meets(frame(450.0, -29.0)) && !level.meets(frame(450.0, 30.0)), "on the edge is outside");
    }
}
