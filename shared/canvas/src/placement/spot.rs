//! A free place for a node that is to be near another one, in a Section, or neither
//! (`docs/reference/operations.md#placement`).
//!
//! **Search.** A place that is not free leads to the places just beyond what is in the way, on each side. The best of the
//! places found so far is examined next, so that the first free one is the best. The cost depends on what is near; after
//! [`TRIES_MAX`] places the search ends, and the node goes to the right of the content.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use domain::graph::Position;
use domain::id::NodeId;
use domain::limits::{COORDINATE_MAX, NODE_SIDE_MAX};

use super::{Frame, GAP, Index, spot_up_to};
use crate::geometry::head;
use crate::graph::Graph;

/// Places that a search examines.
const TRIES_MAX: usize = 1000;
/// Frames that are nearer than the gap by less than this are not in the way: sums of decimal fractions are not exact.
pub(super) const TOLERANCE: f64 = 1e-3;

/// The hints for placing a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hint {
    /// Slot of the node that it is to be near.
    pub(crate) near: Option<usize>,
    /// Slot of the Section that it is to lie in.
    pub(crate) section: Option<usize>,
    /// Where it is wanted. It goes to the nearest free place, whatever it is near.
    pub(crate) at: Option<Position>,
}

/// A free place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// Top left corner.
    pub position: Position,
    /// The frame that the Section needs, if it must grow.
    pub section: Option<Frame>,
}

impl Hint {
    /// A place near a node and in a Section, where given; `None` when one of them does not exist.
    pub fn new(graph: &Graph, near: Option<&NodeId>, section: Option<&NodeId>) -> Option<Self> {
        let slot = |id: Option<&NodeId>| match id {
            Some(id) => graph.nodes.find(id).map(Some),
            None => Some(None),
        };
        Some(Self { near: slot(near)?, section: slot(section)?, at: None })
    }
}

impl Graph {
    /// A free place for a node of this size, at least [`GAP`] from every other node:
    ///
    /// - in a Section, the first in reading order or the nearest to `at` or `near`. If there is none, the Section grows
    ///   downward, or else to the right, to the left or upward, unless it would cover another node;
    /// - nearest to `at`;
    /// - next to `near`: right, below, left or above, or the nearest place further away;
    /// - otherwise, and if there is no such place, to the right of the content.
    pub fn spot(&mut self, size: (f64, f64), hint: Hint) -> Spot {
        self.spot_of(size, (0.0, 0.0), hint)
    }

    /// [`spot`](Self::spot) for several nodes within an area of this size, the last of which has its top left corner up to `reach`
    /// from that of the area: every one of them lies within the bounds of the canvas.
    pub(crate) fn spot_of(&mut self, size: (f64, f64), reach: (f64, f64), hint: Hint) -> Spot {
        let node = |graph: &Self, slot: Option<usize>| {
            slot.and_then(|slot| graph.nodes.get(slot)).map(|node| (Frame::from_node(node), head(node)))
        };
        let near = node(self, hint.near).map(|(frame, _)| frame);
        let section = node(self, hint.section);
        let (nothing, itself) = (HashSet::new(), hint.section.into_iter().collect());
        let anywhere = Search { index: self.index(), size, reach, within: None, ignored: &nothing };
        let nearest = |search: &Search<'_>, near: Option<Frame>| match hint.at {
            Some(at) => search.nearest_to(at),
            None => search.near(near?),
        };
        let found = match section {
            None => nearest(&anywhere, near).map(Spot::at),
            Some((section, head)) => {
                let inside = Search { within: Some(room(section, head)), ignored: &itself, ..anywhere };
                let nearest = nearest(&inside, near.filter(|near| section.contains(*near)));
                let found = nearest.or_else(|| inside.first()).map(Spot::at);
                found.or_else(|| inside.grown(section, head)).or_else(|| anywhere.near(section).map(Spot::at))
            }
        };
        found.unwrap_or_else(|| Spot::at(self.right_of_content(size, reach)))
    }

    /// The places of the nodes.
    pub(crate) fn index(&mut self) -> &Index {
        self.index
            .get_or_insert_with(|| Index::new(self.nodes.entries().map(|(slot, node)| (slot, Frame::from_node(node)))))
    }

    fn right_of_content(&mut self, (width, height): (f64, f64), reach: (f64, f64)) -> Position {
        let bounds = self.index.as_mut().and_then(Index::bounds);
        let last = Position { x: COORDINATE_MAX - reach.0, y: COORDINATE_MAX - reach.1 };
        let fits = |bounds: &Frame| bounds.right + GAP <= last.x && bounds.top <= last.y;
        match bounds.filter(fits) {
            Some(bounds) => Position { x: bounds.right + GAP, y: bounds.top },
            None => spot_up_to(self.nodes().map(Frame::from_node), width, height, last),
        }
    }
}

impl Spot {
    fn at(position: Position) -> Self {
        Self { position, section: None }
    }
}

/// Where something is, as seen from an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Right,
    Below,
    Left,
    Above,
}

impl Side {
    /// In the order in which equally near places are taken.
    const ALL: [Self; 4] = [Self::Right, Self::Below, Self::Left, Self::Above];
}

/// The room of a Section for its members.
pub(super) fn room(section: Frame, head: f64) -> Frame {
    let Frame { left, top, right, bottom } = section;
    Frame { left: left + GAP, top: top + head, right: right - GAP, bottom: bottom - GAP }
}

/// A place to examine: how good it is (less is better), when it was found, and where it is.
type Candidate = Reverse<([u64; 2], usize, [u64; 2])>;

/// Everything in the way of a place.
#[derive(Clone, Copy)]
pub(super) struct Obstacle {
    /// The smallest frame that contains all of it.
    frame: Frame,
    /// The least bottom edge of it.
    first_bottom: f64,
}

/// A search for a free place.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    pub(super) index: &'a Index,
    pub(super) size: (f64, f64),
    /// How far the last top left corner of what is placed is from the first.
    pub(super) reach: (f64, f64),
    pub(super) within: Option<Frame>,
    /// Slots that are not in the way: the Section that the search is in, and what is placed.
    pub(super) ignored: &'a HashSet<usize>,
}

impl Search<'_> {
    pub(super) fn frame(&self, position: Position) -> Frame {
        Frame::new(position, self.size.0, self.size.1)
    }

    /// The obstacle to a node at this position.
    fn obstacle(&self, position: Position) -> Option<Obstacle> {
        let others = self.others(self.frame(position).widened(GAP - TOLERANCE));
        let obstacles = others.map(|frame| Obstacle { frame, first_bottom: frame.bottom });
        obstacles.reduce(|one, other| Obstacle {
            frame: one.frame.union(other.frame),
            first_bottom: one.first_bottom.min(other.first_bottom),
        })
    }

    /// The frames that overlap `area`.
    pub(super) fn others(&self, area: Frame) -> impl Iterator<Item = Frame> {
        let others = self.index.overlapping(area).filter(|(slot, _)| !self.ignored.contains(slot));
        others.map(|(_, frame)| frame)
    }

    pub(super) fn is_allowed(&self, position: Position) -> bool {
        let is_within = self.within.is_none_or(|within| within.widened(TOLERANCE).contains(self.frame(position)));
        is_within && self.is_on_canvas(position)
    }

    fn is_on_canvas(&self, Position { x, y }: Position) -> bool {
        x.min(y) >= -COORDINATE_MAX && x + self.reach.0 <= COORDINATE_MAX && y + self.reach.1 <= COORDINATE_MAX
    }

    /// The allowed position that is nearest to one, if any is allowed.
    pub(super) fn nearest_allowed(&self, Position { x, y }: Position) -> Position {
        let mut last = (COORDINATE_MAX - self.reach.0, COORDINATE_MAX - self.reach.1);
        let mut first = (-COORDINATE_MAX, -COORDINATE_MAX);
        if let Some(within) = self.within {
            first = (first.0.max(within.left), first.1.max(within.top));
            last = (last.0.min(within.right - self.size.0), last.1.min(within.bottom - self.size.1));
        }
        Position { x: x.min(last.0).max(first.0), y: y.min(last.1).max(first.1) }
    }

    /// The places just beyond an obstacle: right of it, below, left, above.
    pub(super) fn around(&self, obstacle: Obstacle, at: Position) -> [Position; 4] {
        Side::ALL.map(|side| self.beyond(obstacle, at, side))
    }

    /// The place just beyond an obstacle on one side of it.
    pub(super) fn beyond(&self, Obstacle { frame: obstacle, .. }: Obstacle, at: Position, side: Side) -> Position {
        let (width, height) = self.size;
        match side {
            Side::Right => Position { x: obstacle.right + GAP, y: at.y },
            Side::Below => Position { x: at.x, y: obstacle.bottom + GAP },
            Side::Left => Position { x: obstacle.left - GAP - width, y: at.y },
            Side::Above => Position { x: at.x, y: obstacle.top - GAP - height },
        }
    }

    /// The free place nearest to a position, which is moved into the area of the search first.
    pub(super) fn nearest_to(&self, at: Position) -> Option<Position> {
        let at = self.nearest_allowed(at);
        let distance = |position: Position| [(position.x - at.x).powi(2) + (position.y - at.y).powi(2), 0.0];
        self.best([at], distance, |obstacle, at| self.around(obstacle, at))
    }

    /// The nearest free place next to a frame: right of it, below, left, above, and then further away.
    pub(super) fn near(&self, near: Frame) -> Option<Position> {
        let distance = |position: Position| {
            let frame = self.frame(position);
            let x = (frame.left - near.right).max(near.left - frame.right).max(0.0);
            let y = (frame.top - near.bottom).max(near.top - frame.bottom).max(0.0);
            [x * x + y * y, 0.0]
        };
        let itself = Obstacle { frame: near, first_bottom: near.bottom };
        let start = self.around(itself, Position { x: near.left, y: near.top });
        self.best(start, distance, |obstacle, at| self.around(obstacle, at))
    }

    /// The first free place in reading order, within the area of the search.
    pub(super) fn first(&self) -> Option<Position> {
        let within = self.within?;
        let start = Position { x: within.left, y: within.top };
        let next = |obstacle: Obstacle, at: Position| {
            let (beside, below) = (obstacle.frame.right + GAP, obstacle.first_bottom + GAP);
            [Position { x: beside, y: at.y }, Position { x: within.left, y: below }]
        };
        self.best([start], |position| [position.y - within.top, position.x - within.left], next)
    }

    /// The free place of least `cost`, which is not negative; `next` are the places beyond an obstacle.
    pub(super) fn best<const N: usize>(
        &self,
        start: impl IntoIterator<Item = Position>,
        cost: impl Fn(Position) -> [f64; 2],
        next: impl Fn(Obstacle, Position) -> [Position; N],
    ) -> Option<Position> {
        let mut candidates: BinaryHeap<Candidate> = BinaryHeap::new();
        let mut known = HashSet::new();
        let mut add = |candidates: &mut BinaryHeap<Candidate>, position: Position| {
            let bits = [position.x, position.y].map(f64::to_bits);
            if self.is_allowed(position) && known.insert(bits) {
                // Numbers that are not negative are in the order of their bits. Equally good places cost the same up to a rounding error,
                // which must not choose among them: it differs when what is placed was moved.
                let cost = cost(position).map(|cost| (cost / TOLERANCE).round().to_bits());
                candidates.push(Reverse((cost, known.len(), bits)));
            }
        };
        for position in start {
            add(&mut candidates, position);
        }
        for _ in 0..TRIES_MAX {
            let Reverse((_, _, bits)) = candidates.pop()?;
            let [x, y] = bits.map(f64::from_bits);
            let Some(obstacle) = self.obstacle(Position { x, y }) else { return Some(Position { x, y }) };
            for position in next(obstacle, Position { x, y }) {
                add(&mut candidates, position);
            }
        }
        None
    }

    /// A place in a Section that grows: below everything in it, or else to the right, to the left or above of everything in it. Its
    /// members stay where they are.
    pub(super) fn grown(&self, section: Frame, head: f64) -> Option<Spot> {
        let (room, (width, height)) = (room(section, head), self.size);
        let content = self.others(section).reduce(Frame::union);
        let beyond = |edge: fn(Frame) -> f64, otherwise: f64| content.map_or(otherwise, edge);
        let (right, bottom) = (room.right - width, room.bottom - height);
        let below = beyond(|content| content.bottom + GAP, room.top).max(room.top);
        let beside = beyond(|content| content.right + GAP, room.left).max(room.left);
        let before = beyond(|content| content.left - GAP, room.right).min(room.right) - width;
        let above = beyond(|content| content.top - GAP, room.bottom).min(room.bottom) - height;
        let places = [(room.left, below), (beside, room.top), (before, room.top), (room.left, above)];
        // What is larger than the room may be blocked at one end of it.
        let at_the_other_end = [(right, below), (beside, bottom), (before, bottom), (right, above)];
        places.into_iter().chain(at_the_other_end).find_map(|(x, y)| {
            let position = Position { x, y };
            let frame = self.frame(position);
            let grown = section.union(Frame {
                left: frame.left - GAP,
                top: frame.top - head,
                right: frame.right + GAP,
                bottom: frame.bottom + GAP,
            });
            let is_small = grown.right - grown.left <= NODE_SIDE_MAX && grown.bottom - grown.top <= NODE_SIDE_MAX;
            let is_on_canvas = self.is_on_canvas(position) && grown.left.min(grown.top) >= -COORDINATE_MAX;
            (is_small && is_on_canvas && self.may_grow(section, grown))
                .then_some(Spot { position, section: Some(grown) })
        })
    }

    /// Returns `true` if a Section can grow without covering, or coming too near to, what it did not before.
    fn may_grow(&self, section: Frame, grown: Frame) -> bool {
        [0.0, GAP - TOLERANCE].into_iter().all(|margin| {
            let before = section.widened(margin);
            self.others(grown.widened(margin)).all(|frame| frame.overlaps(before))
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::graph::Node;

    use super::*;
    use crate::fixture::{at, graph, id, image, section, text};

    fn spot(nodes: Vec<Node>, near: Option<&str>, section: Option<&str>) -> Spot {
        let mut graph = graph(nodes, Vec::new());
        let (near, section) = (near.map(id), section.map(id));
        let hint = Hint::new(&graph, near.as_ref(), section.as_ref()).expect("they are there");
        graph.spot((320.0, 320.0), hint)
    }

    fn place(spot: Spot) -> (f64, f64) {
        (spot.position.x, spot.position.y)
    }

    fn frame(width: f64, height: f64) -> Node {
        Node { width, height, ..at(section("s"), 0.0, 0.0) }
    }

    #[test]
    fn without_a_hint_a_node_is_to_the_right_of_the_content() {
        assert_eq!(place(spot(vec![], None, None)), (0.0, 0.0));
        let nodes = vec![at(image("a"), 10.0, 50.0), at(text("b"), -900.0, -20.0)];
        assert_eq!(place(spot(nodes, None, None)), (370.0, -20.0));
        let edge = at(image("a"), COORDINATE_MAX, 0.0);
        assert_eq!(place(spot(vec![edge], None, None)), (COORDINATE_MAX, 360.0), "as uploads are placed");
    }

    #[test]
    fn a_node_is_beside_the_one_that_it_is_near() {
        let mut nodes = vec![at(image("a"), 0.0, 0.0), at(image("far"), 5000.0, 0.0)];
        for (name, expected) in [
            ("b", (360.0, 0.0)),
            ("c", (0.0, 360.0)),
            ("d", (-360.0, 0.0)),
            ("e", (0.0, -360.0)),
            ("f", (360.0, 360.0)),
            ("g", (360.0, -360.0)),
        ] {
            let found = place(spot(nodes.clone(), Some("a"), None));
            assert_eq!(found, expected, "{name}");
            nodes.push(at(image(name), found.0, found.1));
        }
    }

    #[test]
    fn a_node_near_a_member_is_outside_of_a_section_that_it_does_not_belong_to() {
        let nodes = vec![frame(1000.0, 1000.0), at(image("a"), 100.0, 100.0)];
        assert_eq!(place(spot(nodes, Some("a"), None)), (-360.0, 100.0));
    }

    #[test]
    fn a_section_is_filled_in_reading_order_or_near_a_member() {
        let nodes = vec![frame(1120.0, 816.0), at(image("a"), 40.0, 96.0)];
        assert_eq!(place(spot(nodes.clone(), None, Some("s"))), (400.0, 96.0));
        assert_eq!(place(spot(nodes.clone(), Some("a"), Some("s"))), (400.0, 96.0));
        let more = [nodes, vec![at(image("b"), 400.0, 96.0), at(image("c"), 760.0, 96.0)]].concat();
        assert_eq!(place(spot(more.clone(), None, Some("s"))), (40.0, 456.0));
        assert_eq!(place(spot(more, Some("c"), Some("s"))), (760.0, 456.0));
    }

    #[test]
    fn rows_of_different_heights_leave_no_gap_unused() {
        let low = Node { height: 100.0, ..at(image("low"), 400.0, 96.0) };
        let nodes = vec![frame(800.0, 700.0), at(image("high"), 40.0, 96.0), low];
        assert_eq!(place(spot(nodes, None, Some("s"))), (400.0, 236.0));
    }

    #[test]
    fn a_full_section_grows_where_it_is_free_in_a_fixed_order_or_not_at_all() {
        let mut nodes = vec![frame(400.0, 456.0), at(image("a"), 40.0, 96.0)];
        let grown = |left, top, right, bottom| Some(Frame { left, top, right, bottom });
        for (blocked, expected, section) in [
            (at(text("below"), 0.0, 496.0), (40.0, 456.0), grown(0.0, 0.0, 400.0, 816.0)),
            (at(text("beside"), 440.0, 0.0), (400.0, 96.0), grown(0.0, 0.0, 760.0, 456.0)),
            (at(text("before"), -360.0, 0.0), (-320.0, 96.0), grown(-360.0, 0.0, 400.0, 456.0)),
            (at(text("above"), 0.0, -200.0), (40.0, -264.0), grown(0.0, -360.0, 400.0, 456.0)),
        ] {
            let spot = spot(nodes.clone(), None, Some("s"));
            assert_eq!((place(spot), spot.section), (expected, section), "before {}", blocked.id);
            nodes.push(blocked);
        }
        let enclosed = spot(nodes, None, Some("s"));
        assert_eq!(enclosed.section, None, "enclosed on all sides");
    }

    #[test]
    fn a_section_that_is_too_small_and_blocked_at_one_end_grows_at_the_other() {
        // The room is 320 × 100. The image needs 320 × 320, and what is in the way leaves the height only above.
        let nodes = vec![
            Node { height: 236.0, ..frame(400.0, 236.0) },
            Node { height: 100.0, ..at(image("a"), 40.0, 96.0) },
            at(text("below"), 0.0, 276.0),
            at(text("above"), 0.0, -420.0),
        ];
        let spot = spot(nodes, None, Some("s"));
        assert_eq!(
            (place(spot), spot.section),
            ((400.0, -124.0), Some(Frame { left: 0.0, top: -220.0, right: 760.0, bottom: 236.0 }))
        );
    }

    #[test]
    fn a_section_does_not_grow_beyond_the_canvas_or_the_largest_size() {
        let edge = -COORDINATE_MAX;
        let blocked = |left: f64, top: f64| {
            let nodes = vec![
                Node { width: 400.0, height: 456.0, ..at(section("s"), left, top) },
                at(image("a"), left + 40.0, top + 96.0),
                at(text("below"), left, top + 496.0),
                at(text("beside"), left + 440.0, top),
            ];
            spot(nodes, None, Some("s")).section.map(|grown| (grown.left - left, grown.top - top))
        };
        assert_eq!(blocked(edge + 360.0, 0.0), Some((-360.0, 0.0)));
        assert_eq!(blocked(edge + 359.0, edge + 360.0), Some((0.0, -360.0)));
        assert_eq!(blocked(edge + 359.0, edge + 359.0), None);
        let most = |height: f64| {
            let nodes = vec![
                Node { height, ..frame(400.0, height) },
                Node { height: height - 136.0, ..at(image("a"), 40.0, 96.0) },
                at(text("beside"), 440.0, 0.0),
                at(text("before"), -360.0, 0.0),
            ];
            spot(nodes, None, Some("s")).section.is_some()
        };
        assert!(most(NODE_SIDE_MAX - 360.0) && !most(NODE_SIDE_MAX - 359.0));
    }

    #[test]
    fn a_wanted_position_is_taken_or_the_nearest_free_one() {
        let wanted = |nodes: Vec<Node>, section: Option<&str>, x: f64, y: f64| {
            let mut graph = graph(nodes, Vec::new());
            let section = section.map(id);
            let hint = Hint::new(&graph, None, section.as_ref()).expect("is there");
            place(graph.spot((320.0, 320.0), Hint { at: Some(Position { x, y }), ..hint }))
        };
        assert_eq!(wanted(vec![], None, -7.5, 90.0), (-7.5, 90.0));
        let one = vec![at(image("a"), 0.0, 0.0)];
        assert_eq!(wanted(one.clone(), None, 360.0, 10.0), (360.0, 10.0), "free");
        assert_eq!(wanted(one.clone(), None, 300.0, 10.0), (360.0, 10.0), "right of it");
        assert_eq!(wanted(one.clone(), None, 10.0, -300.0), (10.0, -360.0), "above it");
        assert_eq!(wanted(one, None, COORDINATE_MAX, COORDINATE_MAX), (COORDINATE_MAX, COORDINATE_MAX));
        let section = vec![frame(1120.0, 816.0), at(image("a"), 40.0, 96.0)];
        assert_eq!(wanted(section.clone(), Some("s"), 500.0, 300.0), (500.0, 300.0));
        assert_eq!(wanted(section.clone(), Some("s"), 9000.0, 9000.0), (760.0, 456.0), "its last corner");
        assert_eq!(wanted(section, Some("s"), 40.0, 96.0), (400.0, 96.0), "right of the member");
        let full = vec![frame(400.0, 456.0), at(image("a"), 40.0, 96.0)];
        assert_eq!(wanted(full, Some("s"), 40.0, 96.0), (40.0, 456.0), "the Section grows");
    }

    #[test]
    fn a_search_among_very_many_nodes_ends() {
        let nodes =
            (0..10_000).map(|n| at(image(&format!("n{n}")), f64::from(n % 100) * 360.0, f64::from(n / 100) * 360.0));
        let mut graph = graph(nodes.collect(), Vec::new());
        let hint = Hint::new(&graph, Some(&id("n5050")), None).expect("is there");
        assert_eq!(graph.spot((320.0, 320.0), hint).position, Position { x: 36_000.0, y: 0.0 });
    }
}
