//! Layout operations: what they come to are moves and resizes (`docs/reference/operations.md#layout-operations`).
//!
//! An operation that places nodes covers nothing with them, and repeated it changes nothing.

use std::collections::HashSet;

use domain::graph::{Node, NodeType, Position};
use domain::id::NodeId;
use domain::limits::{BATCH_MOVES_MAX, COORDINATE_MAX, NODE_SIDE_MAX};
use domain::metadata::WritableMetadata;
use domain::operation::Arrangement;

use super::{NamedItem, OperationResult, Run, Skipped};
use crate::batch::{Arranged, Goal};
use crate::geometry::{HEAD, head};
use crate::metadata::{fits, too_large};
use crate::placement::{Block, Frame, GAP, Hint, Wish, cells};
use crate::reference::Ref;

/// Shorter moves of an arrangement are none: sums of decimal fractions are not exact.
const STEP_MIN: f64 = 1e-6;

const NO_ROOM: &str = "the nodes have no free place on the canvas";

/// A unit of an arrangement: a node, or a Section with its members.
struct Item {
    slots: Vec<usize>,
    frame: Frame,
    /// Exact, unlike the difference of the edges.
    size: (f64, f64),
    /// How far the last top left corner of its nodes is from that of the frame.
    reach: (f64, f64),
}

/// How an arrangement arranges.
#[derive(Clone, Copy)]
pub(super) struct Style {
    pub(super) layout: Arrangement,
    pub(super) gap: f64,
    pub(super) columns: Option<usize>,
}

impl Run<'_> {
    pub(super) fn arrange(&mut self, what: &Arranged, style: Style, goal: &Goal) -> OperationResult {
        match what {
            Arranged::Nodes(nodes) => self.arrange_nodes(nodes, style, goal),
            Arranged::Section(section) => self.arrange_members(section, style, goal),
        }
    }

    /// Nodes of one Section stay in it, unless they are to be elsewhere.
    fn arrange_nodes(&mut self, nodes: &[Ref<NodeId>], style: Style, goal: &Goal) -> OperationResult {
        let slots = self.all_nodes(nodes)?;
        let named: HashSet<usize> = slots.iter().copied().collect();
        for (at, slot) in slots.iter().enumerate() {
            if self.home(*slot).is_some_and(|section| named.contains(&section)) {
                self.unprocessable(&format!("nodeIds[{at}]"), "belongs to a Section that is arranged, too");
                return Err(Skipped);
            }
        }
        let items: Vec<Item> = slots.iter().map(|slot| self.item(*slot)).collect();
        let (block, corners) = block_of(&items, style);
        self.count_moves(block.slots.len(), "nodeIds")?;
        let wish = self.wish(goal, &block)?;
        let home = self.home(slots[0]).filter(|home| slots.iter().all(|slot| self.home(*slot) == Some(*home)));
        let home = home.filter(|home| {
            let section = Frame::from_node(self.node_at(*home));
            match wish {
                None => true,
                Some(Wish::Near(near)) => section.contains(near),
                Some(Wish::At(Position { x, y })) => section.contains(Frame::new(Position { x, y }, 0.0, 0.0)),
            }
        });
        let wish = wish.unwrap_or(Wish::At(corner(items.iter().map(|item| item.frame))));
        let position = match home {
            Some(section) => self.place_members(&block, section, Some(wish), "nodeIds")?,
            None => self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("nodeIds", NO_ROOM))?,
        };
        self.move_items(&items, &corners, position);
        Ok(())
    }

    /// The members of a Section stay in it. Where the whole is to be elsewhere, the Section moves with them.
    fn arrange_members(&mut self, section: &Ref<NodeId>, style: Style, goal: &Goal) -> OperationResult {
        let section = self.section_at("sectionId", section)?;
        let members = self.members_of(section, "sectionId")?;
        let items: Vec<Item> = self.reading_order(members).into_iter().map(|slot| self.item(slot)).collect();
        let (mut block, corners) = block_of(&items, style);
        self.count_moves(block.slots.len() + 1, "sectionId")?;
        if let Goal::Unset = goal {
            let position = self.place_members(&block, section, None, "sectionId")?;
            self.move_items(&items, &corners, position);
            return Ok(());
        }
        let node = self.node_at(section);
        let (left, top) = (GAP, head(node));
        let size = (node.width.max(block.size.0 + 2.0 * GAP), node.height.max(top + block.size.1 + GAP));
        self.require_size("sectionId", size)?;
        block.slots.insert(section);
        block.reach = (left + block.reach.0, top + block.reach.1);
        block.size = size;
        let wish = self.wish(goal, &block)?.expect("a goal is a wish");
        let place = self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("sectionId", NO_ROOM))?;
        self.reframe(section, place, size);
        self.move_items(&items, &corners, Position { x: place.x + left, y: place.y + top });
        Ok(())
    }

    /// A place for members in their Section, which grows if it must.
    fn place_members(
        &mut self,
        block: &Block,
        section: usize,
        wish: Option<Wish>,
        field: &str,
    ) -> Result<Position, Skipped> {
        let spot = self.graph.place_in_section(block, section, wish).ok_or_else(|| {
            self.unprocessable(field, "the nodes have no room in their Section, which cannot grow over others")
        })?;
        if let Some(grown) = spot.section {
            self.grow(section, grown);
        }
        Ok(spot.position)
    }

    /// Sizes a Section to its members: `padding` around them, and room for its title above.
    pub(super) fn fit_section(&mut self, section: &Ref<NodeId>, padding: f64) -> OperationResult {
        let section = self.section_at("nodeId", section)?;
        let members = self.members_of(section, "nodeId")?;
        let content = self.bounds(&members);
        let frame = around(content, padding, head(self.node_at(section)));
        let size = (frame.right - frame.left, frame.bottom - frame.top);
        self.require_size("nodeId", size)?;
        self.reframe(section, Position { x: frame.left, y: frame.top }, size);
        Ok(())
    }

    /// A Section around nodes, which become its members; it takes them along to a free place if it would cover others.
    pub(super) fn create_section(
        &mut self,
        title: &str,
        nodes: &[Ref<NodeId>],
        goal: &Goal,
    ) -> Result<(NamedItem, String), Skipped> {
        let slots = self.all_nodes(nodes)?;
        let violations = self.violations();
        for (at, slot) in slots.iter().enumerate() {
            if self.node_at(*slot).is_section() {
                self.unprocessable(&format!("nodeIds[{at}]"), "is a Section, and a Section belongs to none");
            }
        }
        if self.violations() > violations {
            return Err(Skipped);
        }
        let mut block = Block { size: NodeType::Sticky.default_size(), reach: (0.0, 0.0), slots: HashSet::new() };
        let mut from = None;
        if !slots.is_empty() {
            let frame = around(self.bounds(&slots), GAP, HEAD);
            block.reach = self.reach(&slots, frame);
            block.size = (frame.right - frame.left, frame.bottom - frame.top);
            block.slots = slots.iter().copied().collect();
            self.require_size("nodeIds", block.size)?;
            from = Some(Position { x: frame.left, y: frame.top });
        }
        let place = match self.wish(goal, &block)?.or(from.map(Wish::At)) {
            Some(wish) => self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("nodeIds", NO_ROOM))?,
            None => self.graph.spot(block.size, Hint::default()).position,
        };
        let id = NodeId::generate();
        let made = self.add_node(Node {
            id: id.clone(),
            kind: NodeType::Sticky,
            title: title.to_owned(),
            position: place,
            width: block.size.0,
            height: block.size.1,
            agent_owned: self.options.agent,
            metadata: WritableMetadata { section: Some(true), ..WritableMetadata::default() }.into(),
            server: Default::default(),
            asset: None,
            active_job: None,
        });
        for (at, slot) in slots.iter().enumerate() {
            let mut member = self.node_at(*slot).clone();
            member.metadata.section_id = Some(id.clone());
            if !fits(&member.metadata) {
                return Err(self.invalid(&format!("nodeIds[{at}]"), too_large()));
            }
            self.journal.set_node(self.graph, *slot, Some(member));
        }
        if let Some(from) = from {
            self.shift(&slots, (place.x - from.x, place.y - from.y));
        }
        Ok(made)
    }

    /// Moves a Section with its members.
    pub(super) fn move_with_members(&mut self, slot: usize, position: Position) -> OperationResult {
        let section = self.node_at(slot);
        if !section.is_section() {
            return Err(self.unprocessable("withMembers", "must be omitted unless the node is a Section"));
        }
        let by = (position.x - section.position.x, position.y - section.position.y);
        let mut slots = self.graph.members_at(&section.id);
        slots.insert(slot);
        self.count_moves(slots.len(), "nodeId")?;
        let is_beyond = |slot: &usize| {
            let Position { x, y } = self.node_at(*slot).position;
            (x + by.0).abs() > COORDINATE_MAX || (y + by.1).abs() > COORDINATE_MAX
        };
        if slots.iter().any(is_beyond) {
            return Err(self.unprocessable("position", "takes a member of the Section beyond the edge of the canvas"));
        }
        for moved in slots {
            if moved == slot {
                self.set_position(slot, position);
            } else {
                self.shift(&[moved], by);
            }
        }
        Ok(())
    }

    /// The slots of the nodes that `nodeIds` names.
    fn all_nodes(&mut self, nodes: &[Ref<NodeId>]) -> Result<Vec<usize>, Skipped> {
        let slots: Vec<_> =
            nodes.iter().enumerate().map(|(at, node)| self.node(&format!("nodeIds[{at}]"), node)).collect();
        slots.into_iter().collect()
    }

    /// The slot of the Section that a field names.
    fn section_at(&mut self, field: &str, section: &Ref<NodeId>) -> Result<usize, Skipped> {
        let slot = self.node(field, section)?;
        match self.node_at(slot).is_section() {
            true => Ok(slot),
            false => Err(self.unprocessable(field, "must name a Section of the canvas")),
        }
    }

    fn members_of(&mut self, section: usize, field: &str) -> Result<Vec<usize>, Skipped> {
        let members: Vec<usize> = self.graph.members_at(&self.node_at(section).id).into_iter().collect();
        if members.is_empty() {
            Err(self.unprocessable(field, "must name a Section that has members"))
        } else {
            Ok(members)
        }
    }

    /// The slot of the Section that a node belongs to.
    fn home(&self, slot: usize) -> Option<usize> {
        let section = self.node_at(slot).section_id()?;
        self.graph.nodes.find(&NodeId::from_stored(section.to_owned()))
    }

    fn item(&self, slot: usize) -> Item {
        let node = self.node_at(slot);
        let mut slots = vec![slot];
        if node.is_section() {
            slots.extend(self.graph.members_at(&node.id));
        }
        let frame = self.bounds(&slots);
        let size = match slots.len() {
            1 => (node.width, node.height),
            _ => (frame.right - frame.left, frame.bottom - frame.top),
        };
        Item { reach: self.reach(&slots, frame), frame, size, slots }
    }

    /// The smallest frame that contains nodes, of which there is at least one.
    fn bounds(&self, slots: &[usize]) -> Frame {
        let frames = slots.iter().map(|slot| Frame::from_node(self.node_at(*slot)));
        frames.reduce(Frame::union).expect("there is a node")
    }

    /// How far the top left corners of nodes are from that of a frame at most.
    fn reach(&self, slots: &[usize], frame: Frame) -> (f64, f64) {
        let corners = slots.iter().map(|slot| self.node_at(*slot).position);
        corners.fold((0.0, 0.0), |(x, y), at| (x.max(at.x - frame.left), y.max(at.y - frame.top)))
    }

    /// Nodes from top to bottom, those of a row from left to right. A node is in the row of the first node whose middle
    /// is below its top.
    fn reading_order(&self, mut slots: Vec<usize>) -> Vec<usize> {
        let frame = |slot: &usize| Frame::from_node(self.node_at(*slot));
        let by = |slots: &mut [usize], edge: fn(Frame) -> f64| {
            slots.sort_by(|a, b| edge(frame(a)).total_cmp(&edge(frame(b))));
        };
        by(&mut slots, |frame| frame.top);
        let mut rest = slots.as_mut_slice();
        while let Some(first) = rest.first() {
            let first = frame(first);
            let middle = f64::midpoint(first.top, first.bottom);
            let count = rest.partition_point(|slot| frame(slot).top < middle);
            let (row, below) = std::mem::take(&mut rest).split_at_mut(count);
            by(row, |frame| frame.left);
            rest = below;
        }
        slots
    }

    /// Where the operation is to put a block.
    fn wish(&mut self, goal: &Goal, block: &Block) -> Result<Option<Wish>, Skipped> {
        match goal {
            Goal::Unset => Ok(None),
            Goal::At(position) => Ok(Some(Wish::At(*position))),
            Goal::Near(near) => {
                let near = self.node("near", near)?;
                if block.slots.contains(&near) {
                    return Err(self.unprocessable("near", "must not be one of the nodes that are placed"));
                }
                Ok(Some(Wish::Near(Frame::from_node(self.node_at(near)))))
            }
        }
    }

    fn require_size(&mut self, field: &str, (width, height): (f64, f64)) -> OperationResult {
        match width.max(height) > NODE_SIDE_MAX {
            true => {
                Err(self.unprocessable(field, format!("needs a Section of more than {NODE_SIDE_MAX} units a side")))
            }
            false => Ok(()),
        }
    }

    /// Keeps the work of a batch within its limit.
    fn count_moves(&mut self, count: usize, field: &str) -> OperationResult {
        self.moves += count;
        match self.moves > BATCH_MOVES_MAX {
            true => {
                Err(self
                    .unprocessable(field, format!("the operations of a batch arrange at most {BATCH_MOVES_MAX} nodes")))
            }
            false => Ok(()),
        }
    }

    /// Moves the items of a block that is placed at `position` into its cells.
    fn move_items(&mut self, items: &[Item], corners: &[(f64, f64)], position: Position) {
        for (item, (left, top)) in items.iter().zip(corners) {
            let corner = Position { x: position.x + left, y: position.y + top };
            let by = (corner.x - item.frame.left, corner.y - item.frame.top);
            match item.slots.as_slice() {
                _ if by.0.abs().max(by.1.abs()) < STEP_MIN => {}
                [slot] => self.set_position(*slot, corner),
                slots => self.shift(slots, by),
            }
        }
    }

    fn shift(&mut self, slots: &[usize], (x, y): (f64, f64)) {
        for slot in slots {
            let at = self.node_at(*slot).position;
            self.set_position(*slot, Position { x: at.x + x, y: at.y + y });
        }
    }

    fn set_position(&mut self, slot: usize, position: Position) {
        let before = self.node_at(slot).clone();
        let after = Node { position, ..before.clone() };
        self.replace_node(slot, before, after);
    }

    /// Gives a Section the frame that a place in it needs.
    pub(super) fn grow(&mut self, section: usize, frame: Frame) {
        let position = Position { x: frame.left, y: frame.top };
        self.reframe(section, position, (frame.right - frame.left, frame.bottom - frame.top));
    }

    /// Moves and resizes a Section.
    fn reframe(&mut self, section: usize, position: Position, (width, height): (f64, f64)) {
        let before = self.node_at(section).clone();
        let after = Node { position, width, height, ..before.clone() };
        self.replace_node(section, before, after);
    }
}

/// The frame of a Section around members, which begins within the bounds of the canvas.
fn around(content: Frame, padding: f64, head: f64) -> Frame {
    Frame {
        left: (content.left - padding).max(-COORDINATE_MAX),
        top: (content.top - head.max(padding)).max(-COORDINATE_MAX),
        ..content.widened(padding)
    }
}

/// The top left corner of the smallest frame that contains all.
fn corner(frames: impl Iterator<Item = Frame>) -> Position {
    let bounds = frames.reduce(Frame::union).expect("there is a node");
    Position { x: bounds.left, y: bounds.top }
}

/// The block of arranged items, and their corners in it.
fn block_of(items: &[Item], Style { layout, gap, columns }: Style) -> (Block, Vec<(f64, f64)>) {
    let sizes: Vec<(f64, f64)> = items.iter().map(|item| item.size).collect();
    let cells = cells(layout, &sizes, gap, columns);
    let ends = cells.corners.iter().zip(items).map(|((x, y), item)| (x + item.reach.0, y + item.reach.1));
    let reach = ends.fold((0.0, 0.0), |reach: (f64, f64), end| (reach.0.max(end.0), reach.1.max(end.1)));
    let slots = items.iter().flat_map(|item| &item.slots).copied().collect();
    (Block { size: cells.size, reach, slots }, cells.corners)
}
