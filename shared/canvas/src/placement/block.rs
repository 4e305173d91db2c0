//! A place for nodes that move together (`docs/reference/operations.md#layoutarrange`).

use std::collections::HashSet;

use domain::graph::Position;
use domain::limits::COORDINATE_MAX;

use super::spot::{Search, TOLERANCE, room};
use super::{Frame, Index, Spot, spot_up_to};
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
    /// With its top left corner here, or as near to it as possible.
    At(Position),
    /// Next to this frame.
    Near(Frame),
}

impl Graph {
    /// A place for a block where it covers no other node: the one that is wished, or else the nearest that is [`super::GAP`]
    /// from every other node, or else to the right of the content. `None` when there is no room on the canvas.
    pub(crate) fn place_block(&mut self, block: &Block, wish: Wish) -> Option<Position> {
        if let Some(position) = block.search(self.index()).wished(wish) {
            return Some(position);
        }
        let others = self.nodes.entries().filter(|(slot, _)| !block.slots.contains(slot));
        let last = Position { x: COORDINATE_MAX - block.reach.0, y: COORDINATE_MAX - block.reach.1 };
        let beside = spot_up_to(others.map(|(_, node)| Frame::from_node(node)), block.size.0, block.size.1, last);
        let search = block.search(self.index());
        (search.is_allowed(beside) && search.is_clear(beside)).then_some(beside)
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
            Wish::At(position) => self.at(position),
        }
    }

    /// This place if nothing is covered there, or else the nearest free one.
    fn at(&self, position: Position) -> Option<Position> {
        let position = self.nearest_allowed(position);
        if self.is_allowed(position) && self.is_clear(position) {
            return Some(position);
        }
        let distance = |other: Position| {
            let (x, y) = (other.x - position.x, other.y - position.y);
            [x * x + y * y, 0.0]
        };
        self.best([position], distance, |obstacle, at| self.around(obstacle, at))
    }

    /// Returns `true` if a node at this position covers nothing.
    fn is_clear(&self, position: Position) -> bool {
        self.others(self.frame(position).widened(-TOLERANCE)).next().is_none()
    }
}
