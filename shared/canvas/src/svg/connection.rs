//! Connections: paths along their [routes](super::route), styled by purpose.
//!
//! Each connection is one path. Paths are grouped by purpose under their shared attributes, so that forty thousand
//! ([`CANVAS_CONNECTIONS_MAX`](domain::limits::CANVAS_CONNECTIONS_MAX)) fit a document.

use std::fmt;

use domain::graph::{Connection, Purpose};

use super::advance::Face;
use super::curve::Point;
use super::look::{Palette, legible};
use super::route::{Path, length};
use super::text;
use super::xml::{Num, put};
use super::{Frame, MARGIN};

/// Most labels of a document. More would not be legible.
const LABELS_MAX: usize = 4000;

const LABEL: Face = Face::regular(11.0);

/// Largest radius of a bend.
const RADIUS: f64 = 20.0;
/// Length of an arrowhead.
const ARROWHEAD: f64 = 9.0;

/// `stroke-dasharray` of the connections of a purpose, or empty.
fn dash(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Flow | Purpose::FirstFrame => "",
        Purpose::Reference => "7 5",
        Purpose::List => "1 6",
        Purpose::LastFrame => "12 4",
    }
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
pub(super) fn markers(out: &mut String, palette: &Palette) {
    for purpose in Purpose::ALL {
        let color = palette.purpose(*purpose);
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
    palette: &'static Palette,
    by_purpose: Vec<String>,
    labels: String,
    label_count: usize,
}

impl Curves {
    pub(super) fn new(palette: &'static Palette) -> Self {
        Self { palette, by_purpose: vec![String::new(); Purpose::ALL.len()], labels: String::new(), label_count: 0 }
    }

    /// Adds a connection with its path, drawn relative to `origin`.
    pub(super) fn add(&mut self, connection: &Connection, path: &Path, origin: Frame) {
        let index = Purpose::ALL.iter().position(|purpose| *purpose == connection.purpose).unwrap_or_default();
        let out = &mut self.by_purpose[index];
        let relative = |(x, y): Point| (x - origin.x, y - origin.y);
        let middle = match path {
            Path::Curve(curve) => {
                let [a, b, c, d] = curve.0.map(relative);
                put!(out, "<path d=\"M{}C{} {} {}\"/>", Place(a), Place(b), Place(c), Place(d));
                relative(curve.middle())
            }
            Path::Lines(points) => {
                let points: Vec<Point> = points.iter().copied().map(relative).collect();
                rounded(out, &points);
                middle_of_longest(&points)
            }
        };
        if self.label_count < LABELS_MAX
            && let Some(label) = label(connection)
        {
            self.label_count += 1;
            self.label(label, connection.purpose, middle, origin);
        }
    }

    /// Adds a label centered at a point, or beside it where the drawing, whose nodes are within `origin`, ends.
    fn label(&mut self, label: &str, purpose: Purpose, (x, y): Point, origin: Frame) {
        let Some(line) = text::single(label, LABEL, f64::INFINITY) else { return };
        let width = line.width + 12.0;
        let x = x.max(width / 2.0 - MARGIN).min(origin.width + MARGIN - width / 2.0);
        put!(
            &mut self.labels,
            "<g fill=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"18\" rx=\"9\" fill=\"{}\"/>",
            legible(self.palette.purpose(purpose), self.palette.ground),
            Num(x - width / 2.0),
            Num(y - 9.0),
            Num(width),
            self.palette.ground
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
            let (color, dash) = (self.palette.purpose(*purpose), dash(*purpose));
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

/// A point in path data.
struct Place(Point);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Num(self.0.0), Num(self.0.1))
    }
}

/// Appends a path along lines, with round bends.
fn rounded(out: &mut String, points: &[Point]) {
    let lines: Vec<f64> = points.windows(2).map(|ends| length(ends[0], ends[1])).collect();
    // Two bends share a line in the middle; the arrowhead needs the end of the last one.
    let room = |line: usize| match line {
        0 => lines[0],
        line if line + 1 == lines.len() => (lines[line] - ARROWHEAD).max(0.0),
        line => lines[line] / 2.0,
    };
    put!(out, "<path d=\"M{}", Place(points[0]));
    for (line, bend) in points.windows(3).enumerate() {
        let radius = RADIUS.min(room(line)).min(room(line + 1));
        let [start, end] = [bend[0], bend[2]].map(|other| toward(bend[1], other, radius));
        // The line is horizontal or vertical.
        let is_level = bend[0].1 == bend[1].1;
        let (command, length) = if is_level { ('H', start.0) } else { ('V', start.1) };
        put!(out, "{command}{}Q{} {}", Num(length), Place(bend[1]), Place(end));
    }
    put!(out, "L{}\"/>", Place(points[points.len() - 1]));
}

/// The point at this distance from `from` on the line to `to`.
fn toward(from: Point, to: Point, distance: f64) -> Point {
    let share = distance / length(from, to).max(f64::MIN_POSITIVE);
    (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
}

/// The middle of the first of the longest lines.
fn middle_of_longest(points: &[Point]) -> Point {
    let lines = points.windows(2).map(|ends| (ends[0], ends[1]));
    let longest = lines.reduce(|a, b| if length(b.0, b.1) > length(a.0, a.1) { b } else { a });
    longest.map_or((0.0, 0.0), |(a, b)| ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0))
}
