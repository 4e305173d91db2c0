//! Connections: cubic curves between the facing sides of two nodes, styled by purpose.
//!
//! Each connection is one path. Paths are grouped by purpose under their shared attributes, so that forty thousand
//! ([`CANVAS_CONNECTIONS_MAX`](domain::limits::CANVAS_CONNECTIONS_MAX)) fit a document.

use domain::graph::{Connection, Purpose};

use super::Frame;
use super::advance::Face;
use super::look::palette;
use super::text;
use super::xml::{Num, Rgb, put};

/// Most labels of a document. More would not be legible.
const LABELS_MAX: usize = 4000;

const LABEL: Face = Face::regular(11.0);

/// Distance between an arrow's tip and the frame that it points to.
const GAP: f64 = 3.0;
/// Least distance between two columns of cards for a curve to pass.
const GUTTER: f64 = 48.0;

/// Style of the connections of a purpose.
struct Stroke {
    color: Rgb,
    /// `stroke-dasharray`, or empty.
    dash: &'static str,
}

fn stroke(purpose: Purpose) -> Stroke {
    let (color, dash) = match purpose {
        Purpose::Flow => (Rgb(0x8a, 0x94, 0xa1), ""),
        Purpose::Reference => (Rgb(0x7a, 0x4f, 0xe0), "7 5"),
        Purpose::List => (Rgb(0x0b, 0x96, 0x6b), "1 6"),
        Purpose::FirstFrame => (Rgb(0x1f, 0x7a, 0xe0), ""),
        Purpose::LastFrame => (Rgb(0xe0, 0x66, 0x1a), "12 4"),
    };
    Stroke { color, dash }
}

/// Label of a connection: what its color does not already say.
fn label(connection: &Connection) -> Option<&'static str> {
    match (connection.role, connection.purpose) {
        (Some(role), _) => Some(role.as_str()),
        (None, Purpose::FirstFrame) => Some("first frame"),
        (None, Purpose::LastFrame) => Some("last frame"),
        _ => None,
    }
}

/// Appends the arrowheads of each purpose.
pub(super) fn markers(out: &mut String) {
    for purpose in Purpose::ALL {
        let color = stroke(*purpose).color;
        put!(
            out,
            "<marker id=\"arrow-{purpose}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"10\" \
             markerHeight=\"10\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
             <path d=\"M0.5 1L9.5 5L0.5 9L2.5 5Z\" fill=\"{color}\"/></marker>"
        );
    }
}

/// Connections to be drawn.
pub(super) struct Curves {
    by_purpose: Vec<String>,
    labels: String,
    label_count: usize,
}

impl Curves {
    pub(super) fn new() -> Self {
        Self { by_purpose: vec![String::new(); Purpose::ALL.len()], labels: String::new(), label_count: 0 }
    }

    /// Adds a connection between two frames.
    pub(super) fn add(&mut self, connection: &Connection, from: Frame, to: Frame) {
        let curve = Curve::between(from, to);
        let index = Purpose::ALL.iter().position(|purpose| *purpose == connection.purpose).unwrap_or_default();
        let [a, b, c, d] = curve.0;
        put!(
            &mut self.by_purpose[index],
            "<path d=\"M{} {}C{} {} {} {} {} {}\"/>",
            Num(a.0),
            Num(a.1),
            Num(b.0),
            Num(b.1),
            Num(c.0),
            Num(c.1),
            Num(d.0),
            Num(d.1)
        );
        if self.label_count < LABELS_MAX
            && let Some(label) = label(connection)
        {
            self.label_count += 1;
            self.label(label, connection.purpose, curve.middle());
        }
    }

    fn label(&mut self, label: &str, purpose: Purpose, (x, y): (f64, f64)) {
        let Some(line) = text::single(label, LABEL, f64::INFINITY) else { return };
        let width = line.width + 12.0;
        put!(
            &mut self.labels,
            "<g fill=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"9\" fill=\"{}\"/>",
            stroke(purpose).color,
            Num(x - width / 2.0),
            Num(y - 9.0),
            Num(width),
            palette::GROUND
        );
        text::draw(&mut self.labels, &line, text::Align::Center, x, x, y + 4.0);
        self.labels.push_str("</g>");
    }

    /// The part of the document with the connections.
    pub(super) fn finish(self) -> String {
        let mut out = String::new();
        for (purpose, paths) in Purpose::ALL.iter().zip(self.by_purpose) {
            if paths.is_empty() {
                continue;
            }
            let Stroke { color, dash } = stroke(*purpose);
            put!(&mut out, "<g fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" stroke-linecap=\"round\"");
            if !dash.is_empty() {
                put!(&mut out, " stroke-dasharray=\"{dash}\"");
            }
            put!(&mut out, " marker-end=\"url(#arrow-{purpose})\">{paths}</g>");
        }
        if !self.labels.is_empty() {
            put!(&mut out, "<g font-size=\"{}\">{}</g>", Num(LABEL.size), self.labels);
        }
        out
    }
}

type Point = (f64, f64);

/// A cubic curve: start, two control points, end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve([Point; 4]);

impl Curve {
    /// From the side of `from` that faces `to` to the side of `to` that faces `from`, perpendicular to both. Columns
    /// usually run from left to right: if there is a gutter between the two frames, the curve passes through it,
    /// whatever the vertical distance, instead of behind the cards of a column.
    fn between(from: Frame, to: Frame) -> Self {
        // Distance of the frames in each axis; negative where they overlap.
        let apart = |a: f64, a_size: f64, b: f64, b_size: f64| (b - (a + a_size)).max(a - (b + b_size));
        let across = apart(from.x, from.width, to.x, to.width);
        let down = apart(from.y, from.height, to.y, to.height);
        let (from_middle, to_middle) = (from.middle(), to.middle());
        if across >= down.min(GUTTER) {
            let way = if to_middle.0 >= from_middle.0 { 1.0 } else { -1.0 };
            let start = (from_middle.0 + way * from.width / 2.0, from_middle.1);
            let end = (to_middle.0 - way * (to.width / 2.0 + GAP), to_middle.1);
            let reach = reach((end.0 - start.0) * way, (end.1 - start.1).abs());
            Self([start, (start.0 + way * reach, start.1), (end.0 - way * reach, end.1), end])
        } else {
            let way = if to_middle.1 >= from_middle.1 { 1.0 } else { -1.0 };
            let start = (from_middle.0, from_middle.1 + way * from.height / 2.0);
            let end = (to_middle.0, to_middle.1 - way * (to.height / 2.0 + GAP));
            let reach = reach((end.1 - start.1) * way, (end.0 - start.0).abs());
            Self([start, (start.0, start.1 + way * reach), (end.0, end.1 - way * reach), end])
        }
    }

    fn middle(self) -> Point {
        let [a, b, c, d] = self.0;
        let at = |a: f64, b: f64, c: f64, d: f64| (a + 3.0 * (b + c) + d) / 8.0;
        (at(a.0, b.0, c.0, d.0), at(a.1, b.1, c.1, d.1))
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

    fn frame(x: f64, y: f64) -> Frame {
        Frame { x, y, width: 100.0, height: 60.0 }
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
}
