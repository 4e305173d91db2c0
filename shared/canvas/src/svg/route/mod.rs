//! The path of each connection: the curve between its nodes, or a way around the cards in between.
//!
//! **Guarantee.** A route that [`Route::is_free`] passes through no card, and through no title of a Section if there is such a
//! route. If there are straight gutters of at least
//! `2 * STUB` between cards that lead from one node to the other, a free route is found. Each connection is routed by
//! itself and by what is near it: equal input gives equal routes, and a node that moves changes the routes near it only.
//!
//! **Mechanism.** The curve is taken if it is free. Otherwise the candidates are paths of horizontal and vertical lines
//! that leave one side of a node at a right angle and arrive at a side of the other: with one bend, with two, and, if
//! none of these is free, with four. Where a line can be is a gap between the projections of the cards on an axis, so
//! that one search finds the best of all positions. The shortest candidate wins, and every bend counts as a detour.
//! If no candidate is free or the [effort](super::obstacles) is exhausted, the curve is drawn.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;

use domain::graph::{Connection, Node};
use domain::id::NodeId;

use super::card::title_strip;
use super::curve::{Curve, GAP, Point, middle};
use super::obstacles::{Kind, Obstacles, Search};
use crate::placement::Frame;

/// Least distance of a line from the node that it leaves or arrives at to its first bend: room for the arrowhead.
const STUB: f64 = 16.0;
/// Least distance of a line from a card that it passes.
const CLEARANCE: f64 = 8.0;
/// Least distance of a curve from a card that it passes.
const CURVE_CLEARANCE: f64 = 4.0;
/// Distance of a line from the cards beside it, where there is room.
const LANE: f64 = 24.0;
/// How far a path may lead beyond the two nodes.
const DETOUR: f64 = 640.0;
/// The detour that one bend less is worth.
const BEND: f64 = 48.0;
/// How much shorter a later candidate must be, so that a small move does not change the choice between equals.
const PREFERENCE: f64 = 12.0;
/// A card is crossed if the path passes through it further inside than this.
const SLACK: f64 = 1.0;
/// Most cards that a crossing names.
const CROSSED_MAX: usize = 10;

/// The path of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Path {
    Curve(Curve),
    /// Horizontal and vertical lines between these points.
    Lines(Vec<Point>),
}

/// The path of a connection, and whether it passes through no card.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Route {
    pub(super) path: Path,
    pub(super) is_free: bool,
}

/// Finds the routes of a drawing's connections.
pub(crate) struct Router<'a> {
    /// The nodes, by slot.
    nodes: Vec<&'a Node>,
    slots: HashMap<&'a NodeId, usize>,
    obstacles: Obstacles,
}

impl<'a> Router<'a> {
    /// Routes between these nodes. Sections are no obstacles, but their titles are.
    pub(crate) fn new(nodes: impl Iterator<Item = &'a Node>) -> Self {
        let nodes: Vec<&Node> = nodes.collect();
        let slots = nodes.iter().enumerate().map(|(slot, node)| (&node.id, slot)).collect();
        let obstacle = |(slot, node): (usize, &&Node)| match node.is_section() {
            true => Some(((slot, Kind::Title), title_strip(node)?)),
            false => Some(((slot, Kind::Card), Frame::from_node(node))),
        };
        let obstacles = Obstacles::new(nodes.iter().enumerate().filter_map(obstacle).collect());
        Self { nodes, slots, obstacles }
    }

    fn end(&self, id: &NodeId) -> Option<(usize, Frame)> {
        let slot = *self.slots.get(id)?;
        Some((slot, Frame::from_node(self.nodes[slot])))
    }

    /// The route of a connection; `None` if one of its nodes is not drawn.
    pub(super) fn route(&self, connection: &Connection) -> Option<Route> {
        let (from, to) = (self.end(&connection.from)?, self.end(&connection.to)?);
        let search = self.obstacles.search(true);
        let route = way(&search, connection, from, to);
        if route.is_free || !search.has_met_title() {
            return Some(route);
        }
        // Behind a title is better than across a card.
        Some(Route { is_free: false, ..way(&self.obstacles.search(false), connection, from, to) })
    }

    /// Cards, and Sections with their title, that the path of a connection crosses, at most [`CROSSED_MAX`], in the order of the nodes.
    pub(crate) fn crossed(&self, connection: &Connection) -> Vec<&'a Node> {
        let Some(Route { path: Path::Curve(curve), is_free: false }) = self.route(connection) else {
            return Vec::new();
        };
        let is_end = |slot: usize| [&connection.from, &connection.to].contains(&&self.nodes[slot].id);
        let mut crossed = Vec::new();
        let _ = self.obstacles.search(true).visit(
            |frame| curve.meets(frame.widened(-SLACK)),
            |slot, _| {
                if !is_end(slot) {
                    crossed.push(slot);
                }
                if crossed.len() < CROSSED_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
        );
        crossed.sort_unstable();
        crossed.into_iter().map(|slot| self.nodes[slot]).collect()
    }
}

/// The best way between two nodes, given by their slots and frames, through what is in the way of the search.
fn way(search: &Search<'_>, connection: &Connection, from: (usize, Frame), to: (usize, Frame)) -> Route {
    let curve = Curve::between(from.1, to.1);
    let mut is_free = true;
    let _ = search.visit(
        |frame| curve.meets(frame.widened(CURVE_CLEARANCE)),
        |slot, _| {
            is_free = slot == from.0 || slot == to.0;
            if is_free { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    );
    let mut route = Route { path: Path::Curve(curve), is_free };
    if !is_free && let Some(lines) = (Detour { search, lane: lane_of(&connection.from), from, to }).find() {
        route = Route { path: Path::Lines(lines), is_free: true };
    }
    route.is_free &= !search.is_exhausted();
    route
}

/// The direction of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Horizontal,
    Vertical,
}

impl Axis {
    fn other(self) -> Self {
        match self {
            Self::Horizontal => Self::Vertical,
            Self::Vertical => Self::Horizontal,
        }
    }

    /// The coordinates of a point along and across the axis; the reverse is the same.
    fn turn(self, (x, y): Point) -> Point {
        match self {
            Self::Horizontal => (x, y),
            Self::Vertical => (y, x),
        }
    }

    /// The interval of a frame along the axis.
    fn along(self, frame: Frame) -> Span {
        match self {
            Self::Horizontal => Span(frame.left, frame.right),
            Self::Vertical => Span(frame.top, frame.bottom),
        }
    }

    /// The frame of these intervals along and across the axis.
    fn frame(self, Span(start, end): Span, Span(low, high): Span) -> Frame {
        match self {
            Self::Horizontal => Frame { left: start, right: end, top: low, bottom: high },
            Self::Vertical => Frame { left: low, right: high, top: start, bottom: end },
        }
    }
}

/// A closed interval; empty if it ends before it starts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span(f64, f64);

impl Span {
    fn between(a: f64, b: f64) -> Self {
        Self(a.min(b), a.max(b))
    }

    fn and(self, other: Self) -> Self {
        Self(self.0.max(other.0), self.1.min(other.1))
    }

    fn is_empty(self) -> bool {
        self.0 > self.1
    }

    /// The place in the interval that is nearest to `wanted` and, if there is room, a lane's distance from its ends.
    fn place(self, wanted: f64) -> f64 {
        let margin = (LANE - CLEARANCE).min((self.1 - self.0) / 2.0);
        wanted.max(self.0 + margin).min(self.1 - margin)
    }
}

/// A side of a node at which a path leaves or arrives at a right angle.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// Direction of the line there.
    axis: Axis,
    /// 1 if the line leads right or down from the node, -1 if left or up.
    way: f64,
    /// Where the line ends at the node.
    point: Point,
    /// The middle of the line's side on the frame, along the axis.
    edge: f64,
    /// Where, along the axis, the line can bend.
    reach: Span,
}

impl Port {
    /// Where the line bends if nothing else decides.
    fn bend(self, lane: f64) -> f64 {
        self.reach.place(self.edge + self.way * LANE + lane)
    }

    /// Position across the axis.
    fn level(self) -> f64 {
        self.axis.turn(self.point).1
    }
}

/// The search for a path around cards.
struct Detour<'a> {
    search: &'a Search<'a>,
    /// Moves the lines of each node a little, so that those of different nodes do not coincide in a gutter.
    lane: f64,
    from: (usize, Frame),
    to: (usize, Frame),
}

impl Detour<'_> {
    /// The best free path: between the sides that face each other if possible.
    fn find(&self) -> Option<Vec<Point>> {
        let [from, to] = [(self.from, 0.0), (self.to, GAP)].map(|end| self.ports(end, true));
        let mut best = Best::default();
        for (a, b) in pairs(&from, &to) {
            if a.axis == b.axis {
                best.offer(a, b, 2, || self.two_bends(a, b));
            } else {
                best.offer(a, b, 1, || one_bend(a, b));
            }
        }
        if best.path.is_none() {
            let [from_away, to_away] = [(self.from, 0.0), (self.to, GAP)].map(|end| self.ports(end, false));
            let ways = || {
                let others = pairs(&from, &to_away).chain(pairs(&from_away, &to)).chain(pairs(&from_away, &to_away));
                others.filter(|(a, b)| a.axis == b.axis)
            };
            for (a, b) in ways() {
                best.offer(a, b, 2, || self.two_bends(a, b));
            }
            if best.path.is_none() {
                for (a, b) in pairs(&from, &to).filter(|(a, b)| a.axis == b.axis) {
                    best.offer(a, b, 4, || self.four_bends(a, b));
                }
            }
            if best.path.is_none() {
                for (a, b) in ways() {
                    best.offer(a, b, 4, || self.four_bends(a, b));
                }
            }
        }
        best.path.filter(|_| !self.search.is_exhausted())
    }

    /// The sides of a node at which there is room, of those that face the other node or of those that do not.
    fn ports(&self, ((slot, frame), gap): ((usize, Frame), f64), is_facing: bool) -> Vec<Port> {
        let other = if slot == self.from.0 { self.to.1 } else { self.from.1 };
        let mut ports = Vec::with_capacity(2);
        for axis in [Axis::Horizontal, Axis::Vertical] {
            let (center, Span(start, end)) = (axis.turn(middle(frame)), axis.along(frame));
            let is_ahead = axis.turn(middle(other)).0 > center.0;
            let (way, edge) = if is_ahead == is_facing { (1.0, end) } else { (-1.0, start) };
            // Nothing is gained by a line that leads past a node that lies ahead as a whole.
            let Span(other_start, other_end) = axis.along(other);
            let is_apart = other_start >= end || other_end <= start;
            let window = if is_facing && is_apart { frame.union(other) } else { self.window() };
            let limit = self.limit(axis, way, (edge, center.1), axis.along(window), Some(slot));
            let near = edge + way * STUB;
            let reach = if way > 0.0 { Span(near, limit) } else { Span(limit, near) };
            if !reach.is_empty() {
                ports.push(Port { axis, way, point: axis.turn((edge + way * gap, center.1)), edge, reach });
            }
        }
        ports
    }

    /// Where paths lead.
    fn window(&self) -> Frame {
        self.from.1.union(self.to.1).widened(DETOUR)
    }

    /// How far a line leads along an axis before it comes near a card other than `own`.
    fn limit(&self, axis: Axis, way: f64, (start, level): Point, window: Span, own: Option<usize>) -> f64 {
        let area = |limit| axis.frame(Span::between(start, limit), Span(level - CLEARANCE, level + CLEARANCE));
        let mut limit = if way > 0.0 { window.1 } else { window.0 };
        let ahead = Cell::new(area(limit));
        // The nearest first, after which hardly any other is met.
        let _ = self.search.visit_along(
            way,
            |frame| frame.overlaps(ahead.get()),
            |slot, frame| {
                if own != Some(slot) {
                    let Span(near, far) = axis.along(frame);
                    limit = if way > 0.0 { near - CLEARANCE } else { far + CLEARANCE };
                    // Only nearer cards matter from here on.
                    ahead.set(area(if (limit - start) * way > 0.0 { limit } else { start }));
                }
                ControlFlow::Continue(())
            },
        );
        limit
    }

    /// The place nearest to `wanted` within `room` along the axis at which a line across it, over the whole of `band`,
    /// is free.
    fn gap(&self, axis: Axis, room: Span, band: Span, wanted: f64) -> Option<f64> {
        if room.is_empty() {
            return None;
        }
        let wanted = wanted + self.lane;
        let place = room.place(wanted);
        if self.is_free(axis.frame(Span(place - LANE, place + LANE), band)) {
            return Some(place);
        }
        let mut taken = Vec::new();
        let area = axis.frame(room, band).widened(CLEARANCE);
        let _ = self.search.visit(
            |frame| frame.overlaps(area),
            |_, frame| {
                taken.push(axis.along(frame.widened(CLEARANCE)));
                ControlFlow::Continue(())
            },
        );
        taken.sort_unstable_by(|a: &Span, b| a.0.total_cmp(&b.0));
        let mut free = room;
        let mut best: Option<f64> = None;
        for Span(start, end) in taken.into_iter().chain([Span(f64::INFINITY, f64::INFINITY)]) {
            let gap = Span(free.0, start.min(room.1));
            if !gap.is_empty() {
                let place = gap.place(wanted);
                if best.is_none_or(|best| (place - wanted).abs() + PREFERENCE < (best - wanted).abs()) {
                    best = Some(place);
                }
            }
            free.0 = free.0.max(end);
        }
        best
    }

    fn is_free(&self, area: Frame) -> bool {
        self.search.visit(|frame| frame.overlaps(area), |_, _| ControlFlow::Break(())).is_continue()
    }

    /// Out of `a`, across, and into `b`, where both lines run along the same axis.
    fn two_bends(&self, a: Port, b: Port) -> Option<Vec<Point>> {
        let axis = a.axis;
        let wanted = match a.way == b.way {
            true if a.way > 0.0 => a.edge.max(b.edge) + LANE,
            true => a.edge.min(b.edge) - LANE,
            false => (a.edge + b.edge) / 2.0,
        };
        let at = self.gap(axis, a.reach.and(b.reach), Span::between(a.level(), b.level()), wanted)?;
        Some(vec![a.point, axis.turn((at, a.level())), axis.turn((at, b.level())), b.point])
    }

    /// Out of `a`, across, along a corridor, across, and into `b`.
    fn four_bends(&self, a: Port, b: Port) -> Option<Vec<Point>> {
        let axis = a.axis;
        let across = axis.other();
        let (first, second) = (a.bend(self.lane), b.bend(self.lane));
        let window = across.along(self.window());
        let extent = |at: f64, level: f64| {
            Span(
                self.limit(across, -1.0, (level, at), window, None),
                self.limit(across, 1.0, (level, at), window, None),
            )
        };
        let room = extent(first, a.level()).and(extent(second, b.level()));
        let wanted = (a.level() + b.level()) / 2.0;
        let at = self.gap(across, room, Span::between(first, second), wanted)?;
        let corners = [(first, a.level()), (first, at), (second, at), (second, b.level())];
        Some([a.point].into_iter().chain(corners.map(|corner| axis.turn(corner))).chain([b.point]).collect())
    }
}

/// The lane of the lines that leave a node, from -8 to 8: the same for all of them.
fn lane_of(node: &NodeId) -> f64 {
    let hash = node.as_str().bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    4.0 * (f64::from(hash % 5) - 2.0)
}

/// Out of `a` and into `b` at a right angle.
fn one_bend(a: Port, b: Port) -> Option<Vec<Point>> {
    let corner = (b.level(), a.level());
    let is_reached = |port: Port, at: f64| !Span(at, at).and(port.reach).is_empty();
    let path = || vec![a.point, a.axis.turn(corner), b.point];
    (is_reached(a, corner.0) && is_reached(b, corner.1)).then(path)
}

fn pairs<'a>(from: &'a [Port], to: &'a [Port]) -> impl Iterator<Item = (Port, Port)> + 'a {
    from.iter().flat_map(|a| to.iter().map(|b| (*a, *b)))
}

/// The best of several paths.
#[derive(Default)]
struct Best {
    path: Option<Vec<Point>>,
    cost: f64,
}

impl Best {
    /// Takes the path from `a` to `b` if it is clearly shorter than the best so far. A path that cannot be is not
    /// searched for.
    fn offer(&mut self, a: Port, b: Port, bends: u8, path: impl FnOnce() -> Option<Vec<Point>>) {
        let bends = BEND * f64::from(bends);
        let limit = if self.path.is_some() { self.cost - PREFERENCE } else { f64::INFINITY };
        if length(a.point, b.point) + bends >= limit {
            return;
        }
        let Some(path) = path() else { return };
        let cost = path.windows(2).map(|ends| length(ends[0], ends[1])).sum::<f64>() + bends;
        if cost < limit {
            *self = Self { path: Some(path), cost };
        }
    }
}

/// Length of a way from one point to another along horizontal and vertical lines.
pub(super) fn length(a: Point, b: Point) -> f64 {
    (a.0 - b.0).abs() + (a.1 - b.1).abs()
}

#[cfg(test)]
mod tests;
