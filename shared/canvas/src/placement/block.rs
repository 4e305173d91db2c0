//! A place for nodes that move together (`docs/reference/operations.md#layoutarrange`).

use std::collections::HashSet;

use domain::graph::Position;
use domain::limits::{COORDINATE_MAX, NODE_SIDE_MAX};

use super::spot::{Hint, Search, Side, TOLERANCE, room};
use super::{Frame, GAP, Index, KEPT_GAP, Spot, spot_up_to};
use crate::geometry::head;
use crate::graph::Graph;

/// Nodes that are placed as one.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) size: (f64, f64),
    /// How far a node's top left corner is from that of the block at most.
    pub(crate) reach: (f64, f64),
    /// Their slots. Where they are now is free for them.
    pub(crate) slots: HashSet<usize>,
}

/// Where a block is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wish {
    /// With its top left corner here if that is so far from everything else, or as near to it as possible.
    At(Position, f64),
    /// The same for what is here already: it goes to the right or down rather than back.
    Stay(Position, f64),
    /// Next to this frame.
    Near(Frame),
    /// With its top left corner here, or as near to it as possible; to the left of this frame or above it only if nothing else is free.
    Beside(Position, Frame),
    /// With its top left corner here, below a source that ends at the first of these and its row at the second; or else further along,
    /// or further down.
    Below(Position, (f64, f64)),
}

/// For what is on the canvas, a way to the left or up is so many times as long: what is read first stays first.
const BACK: f64 = 8.0;
/// How far a place beside a source is from the wanted one before the places to the left and above are considered.
const BESIDE_MAX: f64 = 4000.0;
/// A place below another source of the row is as good as one so much further down.
const BELOW_OTHER: f64 = 1000.0;
/// Further down counts as so many times further along.
const DOWN: f64 = 1e4;

/// A Section that moves with its members to a place where it has room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moved {
    /// Its frame there.
    pub(crate) section: Frame,
    /// How far its members move.
    pub(crate) by: (f64, f64),
    /// Where the block is there.
    pub(crate) position: Position,
}

impl Graph {
    /// A place for a block where it covers no other node: the one that is wished, or else the nearest that is [`GAP`]
    /// from every other node, or else to the right of the content. `None` when there is no room on the canvas.
    pub(crate) fn place_block(&mut self, block: &Block, wish: Wish) -> Option<Position> {
        if let Some(position) = block.search(self.index()).wished(wish) {
            return Some(position);
        }
        let others = self.nodes.entries().filter(|(slot, _)| !block.slots.contains(slot));
        let last = Position { x: COORDINATE_MAX - block.reach.0, y: COORDINATE_MAX - block.reach.1 };
        let beside = spot_up_to(others.map(|(_, node)| Frame::from_node(node)), block.size.0, block.size.1, last);
        let search = block.search(self.index());
        (search.is_allowed(beside) && search.is_clear(beside, 0.0)).then_some(beside)
    }

    /// A place for a block as near as possible to the right of the content, level with its top.
    pub(crate) fn place_after_content(&mut self, block: &Block) -> Position {
        self.spot_of(block.size, block.reach, Hint::default()).position
    }

    /// A place for a Section with its members and a block below them, as near as possible to where it is. `None` when it would be
    /// larger than a node may be, or when there is no room on the canvas.
    pub(crate) fn move_for(&mut self, block: &Block, section: usize) -> Option<Moved> {
        let node = self.nodes.get(section)?;
        let (frame, head) = (Frame::from_node(node), head(node));
        let members: Vec<usize> =
            self.members_at(&node.id).into_iter().filter(|member| !block.slots.contains(member)).collect();
        let frames = members.iter().filter_map(|member| self.nodes.get(*member)).map(Frame::from_node);
        let content = frames.clone().reduce(Frame::union);
        let room = room(frame, head);
        let top = content.map_or(room.top, |content| room.top.max(content.bottom + GAP));
        let position = Position { x: room.left, y: top };
        let grown = frame.union(Frame::new(position, block.size.0, block.size.1).widened(GAP));
        if (grown.right - grown.left).max(grown.bottom - grown.top) > NODE_SIDE_MAX {
            return None;
        }
        // Members that lie outside of their Section move with it.
        let whole = content.map_or(grown, |content| grown.union(content));
        let corners = frames.map(|member| (member.left, member.top));
        let last = (position.x + block.reach.0, position.y + block.reach.1);
        let last = corners.fold(last, |last, (left, top)| (last.0.max(left), last.1.max(top)));
        let moved = Block {
            size: (whole.right - whole.left, whole.bottom - whole.top),
            reach: (last.0.max(frame.left) - whole.left, last.1.max(frame.top) - whole.top),
            slots: members.into_iter().chain([section]).chain(block.slots.iter().copied()).collect(),
        };
        let from = Position { x: whole.left, y: whole.top };
        let place = self.place_block(&moved, Wish::Stay(from, GAP))?;
        let by = (place.x - from.x, place.y - from.y);
        let section = Frame {
            left: grown.left + by.0,
            top: grown.top + by.1,
            right: grown.right + by.0,
            bottom: grown.bottom + by.1,
        };
        Some(Moved { section, by, position: Position { x: position.x + by.0, y: position.y + by.1 } })
    }

    /// The place nearest to `at` for a block that keeps [`super::GAP`] to every other node, in a Section if one is given.
    pub(crate) fn place_apart(&mut self, block: &Block, at: Position, section: Option<usize>) -> Option<Position> {
        let within = match section {
            Some(section) => self.nodes.get(section).map(|node| Some(room(Frame::from_node(node), head(node))))?,
            None => None,
        };
        let ignored: HashSet<usize> = block.slots.iter().copied().chain(section).collect();
        let anywhere = block.search(self.index());
        Search { within, ignored: &ignored, ..anywhere }.nearest_to(at)
    }

    /// The place nearest to `at` on a side of it, straight on: the first one that is [`GAP`] from every other node, or `at` itself if
    /// it is [`KEPT_GAP`] from them.
    pub(crate) fn place_along(&mut self, block: &Block, at: Position, side: Side) -> Option<Position> {
        block.search(self.index()).along(at, side)
    }

    /// A place for a block of members in their Section: the one that is wished, or else the first in reading order. If there is
    /// none, the Section grows. `None` when it cannot grow.
    pub(crate) fn place_in_section(&mut self, block: &Block, section: usize, wish: Option<Wish>) -> Option<Spot> {
        let node = self.nodes.get(section)?;
        let (frame, head) = (Frame::from_node(node), head(node));
        let ignored: HashSet<usize> = block.slots.iter().copied().chain([section]).collect();
        let anywhere = block.search(self.index());
        let within = |section| Search { within: Some(room(section, head)), ignored: &ignored, ..anywhere };
        let find = |section: Frame| {
            let search = within(section);
            wish.and_then(|wish| search.wished(wish)).or_else(|| search.first())
        };
        if let Some(position) = find(frame) {
            return Some(Spot { position, section: None });
        }
        let grown = within(frame).grown(frame, head)?;
        // The place that the same operation finds when it is repeated.
        let position = grown.section.and_then(find).unwrap_or(grown.position);
        Some(Spot { position, section: grown.section })
    }
}

impl Block {
    fn search<'a>(&'a self, index: &'a Index) -> Search<'a> {
        Search { index, size: self.size, reach: self.reach, within: None, ignored: &self.slots }
    }
}

impl Search<'_> {
    fn wished(&self, wish: Wish) -> Option<Position> {
        match wish {
            Wish::Near(frame) => self.near(frame),
            Wish::At(position, distance) => self.at(position, distance, 1.0),
            Wish::Stay(position, distance) => self.at(position, distance, BACK),
            Wish::Beside(position, frame) => self.beside(position, frame),
            Wish::Below(position, end) => self.below(position, end),
        }
    }

    /// This place if nothing is nearer than `distance` there, or else the nearest free one, where the way to the left or up is so many
    /// times as long.
    fn at(&self, position: Position, distance: f64, back: f64) -> Option<Position> {
        let allowed = self.nearest_allowed(position);
        if self.is_allowed(allowed) && self.is_clear(allowed, distance) {
            return Some(allowed);
        }
        let way = |length: f64| if length < 0.0 { back * length } else { length };
        let cost = |at: Position| [way(at.x - allowed.x).powi(2) + way(at.y - allowed.y).powi(2), 0.0];
        self.best([allowed], cost, |obstacle, at| self.around(obstacle, at))
    }

    fn along(&self, at: Position, side: Side) -> Option<Position> {
        if self.is_allowed(at) && self.is_clear(at, KEPT_GAP) {
            return Some(at);
        }
        let distance = |position: Position| [(position.x - at.x).abs() + (position.y - at.y).abs(), 0.0];
        self.best([at], distance, |obstacle, at| [self.beyond(obstacle, at, side)])
    }

    fn beside(&self, position: Position, frame: Frame) -> Option<Position> {
        let wanted = self.nearest_allowed(position);
        let cost = |at: Position| {
            let other = self.frame(at);
            let is_behind = other.right <= frame.left || other.bottom <= frame.top;
            let distance = (at.x - wanted.x).powi(2) + (at.y - wanted.y).powi(2);
            let class = if is_behind {
                1.0
            } else if distance > BESIDE_MAX.powi(2) {
                2.0
            } else {
                0.0
            };
            [class, distance]
        };
        self.best([wanted], cost, |obstacle, at| self.around(obstacle, at))
    }

    fn below(&self, position: Position, (own_end, end): (f64, f64)) -> Option<Position> {
        let wanted = self.nearest_allowed(position);
        let cost = |at: Position| {
            let (along, down) = (at.x - wanted.x, at.y - wanted.y);
            let is_below_other = (own_end..end).contains(&at.x);
            let distance = along.abs() + DOWN * (down.abs() + if is_below_other { BELOW_OTHER } else { 0.0 });
            let class = if along < 0.0 || down < 0.0 {
                1.0
            } else if along.max(down) > BESIDE_MAX {
                2.0
            } else {
                0.0
            };
            [class, distance]
        };
        let beyond = Position { x: wanted.x.max(end + GAP), y: wanted.y };
        self.best([wanted, beyond], cost, |obstacle, at| self.around(obstacle, at))
    }

    /// Returns `true` if nothing is nearer than this to a node at this position.
    fn is_clear(&self, position: Position, distance: f64) -> bool {
        self.others(self.frame(position).widened(distance - TOLERANCE)).next().is_none()
    }
}
