//! Layout operations: what they come to are moves and resizes (`docs/reference/operations.md#layout-operations`).
//!
//! An operation that places nodes covers nothing with them, and repeated it changes nothing.

use std::collections::{HashMap, HashSet};

use domain::graph::{Node, NodeType, Position};
use domain::id::NodeId;
use domain::limits::{BATCH_MOVES_MAX, COORDINATE_MAX, NODE_SIDE_MAX};
use domain::metadata::WritableMetadata;
use domain::operation::{Alignment, Arrangement};

use super::{NamedItem, OperationResult, Run, Skipped};
use crate::batch::{Arranged, Goal};
use crate::geometry::{HEAD, head};
use crate::metadata::{fits, too_large};
use crate::placement::{
    Block, Frame, GAP, Hint, KEPT_GAP, Masonry, Moved, Style, Tile, Wish, cells, flow, masonry, order,
};
use crate::reference::Ref;
use crate::svg::{FONT_MIN, smaller_font, text_height, title_width};

/// Shorter moves of an arrangement are none: sums of decimal fractions are not exact.
const STEP_MIN: f64 = 1e-6;

const NO_ROOM: &str = "the nodes have no free place on the canvas";
const NO_ROOM_THERE: &str = "the nodes have no room there in their Section, which cannot grow over others";

/// A unit of an arrangement: a node, or a Section with its members.
struct Item {
    slots: Vec<usize>,
    frame: Frame,
    /// Exact, unlike the difference of the edges.
    size: (f64, f64),
    /// How far the last top left corner of its nodes is from that of the frame.
    reach: (f64, f64),
}

/// Where the items of an arrangement lie in it, and the sizes that they get.
struct Plan {
    block: Block,
    corners: Vec<(f64, f64)>,
    sizes: Option<Vec<(f64, f64)>>,
}

/// How many times higher than wide a text is fitted at most.
const FIT_RATIO_MAX: f64 = 4.0;
/// Greatest width that a Section takes on for its title, in canvas units.
const TITLE_WIDTH_MAX: f64 = 1200.0;

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
            if self.graph.home_at(*slot).is_some_and(|section| named.contains(&section)) {
                self.unprocessable(&format!("nodeIds[{at}]"), "belongs to a Section that is arranged, too");
                return Err(Skipped);
            }
            if style.layout == Arrangement::Masonry && self.node_at(*slot).is_section() {
                self.unprocessable(&format!("nodeIds[{at}]"), "is a Section, which a masonry does not size");
                return Err(Skipped);
            }
        }
        let items: Vec<Item> = slots.iter().map(|slot| self.item(*slot)).collect();
        let plan = self.plan(&items, style);
        let block = &plan.block;
        self.count_moves(block.slots.len(), "nodeIds")?;
        let wish = self.wish(goal, block)?;
        let home = self
            .graph
            .home_at(slots[0])
            .filter(|home| slots.iter().all(|slot| self.graph.home_at(*slot) == Some(*home)));
        let home = home.filter(|home| {
            let section = Frame::from_node(self.node_at(*home));
            match wish {
                None => true,
                Some(Wish::Near(near)) => section.contains(near),
                Some(Wish::At(at, _) | Wish::Stay(at, _) | Wish::Beside(at, _) | Wish::Below(at, _)) => {
                    section.contains(Frame::new(at, 0.0, 0.0))
                }
            }
        });
        let stays = Wish::Stay(corner(items.iter().map(|item| item.frame)), KEPT_GAP);
        let wish = wish.unwrap_or(stays);
        let position = match home {
            Some(section) => match self.graph.place_in_section(block, section, Some(wish)) {
                Some(spot) => {
                    if let Some(grown) = spot.section {
                        self.grow(section, grown);
                    }
                    spot.position
                }
                // A place by coordinates would not be in the Section any more.
                None if self.moves_along(goal, section) => self.place_in_moved(block, section, "nodeIds")?,
                None => return Err(self.unprocessable("nodeIds", NO_ROOM_THERE)),
            },
            None => self.graph.place_block(block, wish).ok_or_else(|| self.unprocessable("nodeIds", NO_ROOM))?,
        };
        self.move_items(&items, &plan, position);
        if let Some(section) = home {
            self.fit_made(section);
        }
        Ok(())
    }

    /// Returns `true` if a goal is the same in a Section that moves.
    fn moves_along(&self, goal: &Goal, section: usize) -> bool {
        match goal {
            Goal::Unset => true,
            Goal::At(_) => false,
            Goal::Near(near) => {
                let near = self.graph.nodes.find(&near.id);
                near.and_then(|near| self.graph.home_at(near)) == Some(section)
            }
        }
    }

    /// The members of a Section stay in it. Where the whole is to be elsewhere, or has no room, the Section moves with them.
    fn arrange_members(&mut self, section: &Ref<NodeId>, style: Style, goal: &Goal) -> OperationResult {
        let section = self.section_at("sectionId", section)?;
        let members = self.members_of(section, "sectionId")?;
        let items: Vec<Item> = self.in_order(members, style).into_iter().map(|slot| self.item(slot)).collect();
        let mut plan = self.plan(&items, style);
        self.count_moves(plan.block.slots.len() + 1, "sectionId")?;
        if let Goal::Unset = goal
            && let Some(spot) = self.graph.place_in_section(&plan.block, section, None)
        {
            if let Some(grown) = spot.section {
                self.grow(section, grown);
            }
            self.move_items(&items, &plan, spot.position);
            self.fit_made(section);
            return Ok(());
        }
        let block = &mut plan.block;
        let node = self.node_at(section);
        let stays = Wish::Stay(node.position, GAP);
        let (left, top) = (GAP, head(node));
        let size = (node.width.max(block.size.0 + 2.0 * GAP), node.height.max(top + block.size.1 + GAP));
        self.require_size("sectionId", size)?;
        block.slots.insert(section);
        block.reach = (left + block.reach.0, top + block.reach.1);
        block.size = size;
        let wish = self.wish(goal, block)?.unwrap_or(stays);
        let place = self.graph.place_block(block, wish).ok_or_else(|| self.unprocessable("sectionId", NO_ROOM))?;
        self.reframe(section, place, size);
        self.move_items(&items, &plan, Position { x: place.x + left, y: place.y + top });
        self.fit_made(section);
        Ok(())
    }

    /// Takes away what a Section that the batch makes has beyond its members on the right and below, unless the batch sizes it.
    fn fit_made(&mut self, section: usize) {
        let node = self.node_at(section);
        let members: Vec<usize> = self.graph.members_at(&node.id).into_iter().collect();
        if !self.fitted.contains(&section) || members.is_empty() {
            return;
        }
        let (content, Position { x, y }) = (self.bounds(&members), node.position);
        let width = (content.right + GAP - x).max(title_width(node).min(TITLE_WIDTH_MAX)).min(node.width);
        let height = (content.bottom + GAP - y).min(node.height);
        self.reframe(section, Position { x, y }, (width, height));
    }

    /// A place for a block in a Section that has no room for it and moves with its members.
    pub(super) fn place_in_moved(&mut self, block: &Block, section: usize, field: &str) -> Result<Position, Skipped> {
        let Some(Moved { section: frame, by, position }) = self.graph.move_for(block, section) else {
            return Err(self.unprocessable(field, NO_ROOM));
        };
        let members = self.graph.members_at(&self.node_at(section).id);
        let members: Vec<usize> = members.into_iter().filter(|member| !block.slots.contains(member)).collect();
        self.count_moves(members.len() + 1, field)?;
        self.shift(&members, by);
        self.grow(section, frame);
        Ok(position)
    }

    /// The places of items in their arrangement.
    fn plan(&self, items: &[Item], style: Style) -> Plan {
        let sizes: Vec<(f64, f64)> = items.iter().map(|item| item.size).collect();
        let (cells, sizes) = match style.layout {
            Arrangement::Masonry => {
                let tiles: Vec<Tile<'_>> = items.iter().map(|item| self.tile(item.slots[0])).collect();
                let Masonry { cells, sizes } = masonry(&tiles, style.gap, style.columns);
                (cells, Some(sizes))
            }
            Arrangement::Flow => (flow(style, &sizes, &self.edges(items)), None),
            Arrangement::Row | Arrangement::Column | Arrangement::Grid => (cells(style, &sizes), None),
        };
        let ends = cells.corners.iter().zip(items).map(|((x, y), item)| (x + item.reach.0, y + item.reach.1));
        let reach = ends.fold((0.0, 0.0), |reach: (f64, f64), end| (reach.0.max(end.0), reach.1.max(end.1)));
        let slots = items.iter().flat_map(|item| &item.slots).copied().collect();
        Plan { block: Block { size: cells.size, reach, slots }, corners: cells.corners, sizes }
    }

    fn tile(&self, slot: usize) -> Tile<'_> {
        let node = self.node_at(slot);
        let image = node.asset.as_ref().and_then(|asset| self.graph.sources.sizes.get(asset)).copied();
        Tile { title: &node.title, left: node.position.x, size: (node.width, node.height), image }
    }

    /// The connections between items, by their indexes.
    fn edges(&self, items: &[Item]) -> Vec<(usize, usize)> {
        let owners: HashMap<usize, usize> = items
            .iter()
            .enumerate()
            .flat_map(|(index, item)| item.slots.iter().map(move |slot| (*slot, index)))
            .collect();
        let owner = |id: &NodeId| owners.get(&self.graph.nodes.find(id)?).copied();
        let from = items.iter().enumerate().flat_map(|(index, item)| item.slots.iter().map(move |slot| (index, *slot)));
        let links = from.flat_map(|(index, slot)| self.graph.outgoing_at(slot).map(move |link| (index, link)));
        links.filter_map(|(index, link)| Some((index, owner(&link.to)?))).collect()
    }

    /// Members in the order in which they are arranged: reading order, or for a flow the order of creation. Columns of a masonry that
    /// are there are read as they were filled.
    fn in_order(&self, members: Vec<usize>, style: Style) -> Vec<usize> {
        match style.layout {
            Arrangement::Flow => members,
            Arrangement::Masonry => {
                let tiles: Vec<(Tile<'_>, f64)> =
                    members.iter().map(|slot| (self.tile(*slot), self.node_at(*slot).position.y)).collect();
                let filled: Vec<usize> = order(&tiles, style.gap).into_iter().map(|index| members[index]).collect();
                let is_there = self.is_arranged(&filled, style);
                if is_there { filled } else { self.reading_order(members, style.align) }
            }
            Arrangement::Row | Arrangement::Column | Arrangement::Grid => self.reading_order(members, style.align),
        }
    }

    /// Returns `true` if nodes in this order are where and as large as their arrangement makes them.
    fn is_arranged(&self, slots: &[usize], style: Style) -> bool {
        let items: Vec<Item> = slots.iter().map(|slot| self.item(*slot)).collect();
        let plan = self.plan(&items, style);
        let from = corner(items.iter().map(|item| item.frame));
        let sizes = plan.sizes.unwrap_or_default();
        items.iter().zip(plan.corners.iter().zip(sizes)).all(|(item, ((x, y), size))| {
            let (dx, dy) = (item.frame.left - from.x - x, item.frame.top - from.y - y);
            dx.abs().max(dy.abs()) < STEP_MIN && item.size == size
        })
    }

    /// Gives a text the height at which all of it is shown, and a smaller font where that is too high; it moves if it would cover others.
    pub(super) fn fit_node(&mut self, node: &Ref<NodeId>) -> OperationResult {
        let slot = self.node("nodeId", node)?;
        let before = self.node_at(slot).clone();
        if !before.kind.holds_text() || before.is_section() {
            return Err(self.unprocessable("nodeId", "must name a text or sticky that is no Section"));
        }
        if before.content().is_none_or(|content| content.trim().is_empty()) {
            return Err(self.unprocessable("nodeId", "must name a node that has a text"));
        }
        let most = (FIT_RATIO_MAX * before.width).min(NODE_SIDE_MAX);
        let mut after = before.clone();
        after.height = match text_height(&before, None, most) {
            Some(height) => height,
            None => {
                let (font, height) = smaller_font(&before, most).unwrap_or((FONT_MIN, most));
                after.metadata.font_size = Some(font.into());
                height
            }
        };
        if before.kind == NodeType::Sticky && before.metadata.font_size.is_none() {
            // A note in a font that follows its size stays about square.
            after.height = after.height.max(before.width.min(NodeType::Sticky.default_size().1));
        }
        if !fits(&after.metadata) {
            return Err(self.invalid("nodeId", too_large()));
        }
        if (after.height, &after.metadata) == (before.height, &before.metadata) {
            return Ok(());
        }
        let block = Block { size: (after.width, after.height), reach: (0.0, 0.0), slots: [slot].into() };
        let wish = Wish::Stay(before.position, 0.0);
        let home = self.graph.home_at(slot).filter(|home| {
            let section = Frame::from_node(self.node_at(*home));
            section.contains(Frame::new(before.position, 0.0, 0.0))
        });
        after.position = match home {
            None => self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("nodeId", NO_ROOM))?,
            Some(section) => match self.graph.place_in_section(&block, section, Some(wish)) {
                Some(spot) => {
                    if let Some(grown) = spot.section {
                        self.grow(section, grown);
                    }
                    spot.position
                }
                None if self.node_at(section).agent_owned => self.place_in_moved(&block, section, "nodeId")?,
                None => self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("nodeId", NO_ROOM))?,
            },
        };
        self.replace_node(slot, before, after);
        Ok(())
    }

    /// Sizes a Section to its members: `padding` around them, and room for its title above and beside it.
    pub(super) fn fit_section(&mut self, section: &Ref<NodeId>, padding: f64) -> OperationResult {
        let section = self.section_at("nodeId", section)?;
        let members = self.members_of(section, "nodeId")?;
        let content = self.bounds(&members);
        let node = self.node_at(section);
        let frame = around(content, padding, head(node));
        let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
        let size = (width.max(title_width(&Node { height, ..node.clone() }).min(TITLE_WIDTH_MAX)), height);
        self.require_size("nodeId", size)?;
        self.reframe(section, Position { x: frame.left, y: frame.top }, size);
        Ok(())
    }

    /// A Section around nodes, which become its members; it takes them along to a free place if it would cover others.
    pub(super) fn create_section(
        &mut self,
        client_id: Option<&str>,
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
        let mut block = Block { size: self.section_size(client_id), reach: (0.0, 0.0), slots: HashSet::new() };
        let mut from = None;
        if !slots.is_empty() {
            let frame = around(self.bounds(&slots), GAP, HEAD);
            block.reach = self.reach(&slots, frame);
            block.size = (frame.right - frame.left, frame.bottom - frame.top);
            block.slots = slots.iter().copied().collect();
            self.require_size("nodeIds", block.size)?;
            from = Some(Position { x: frame.left, y: frame.top });
        }
        let place = match self.wish(goal, &block)?.or(from.map(|from| Wish::Stay(from, KEPT_GAP))) {
            Some(wish) => self.graph.place_block(&block, wish).ok_or_else(|| self.unprocessable("nodeIds", NO_ROOM))?,
            None => self.graph.spot(block.size, Hint::default()).position,
        };
        let id = NodeId::generate();
        let made = self.add_node(Node {
            id: id.clone(),
            short: None,
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
        if let (NamedItem::Node(section), _) = made {
            self.fitted.insert(section);
        }
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
    /// is below its top. Nodes that are aligned at the end are read in the same way from the bottom.
    fn reading_order(&self, mut slots: Vec<usize>, align: Alignment) -> Vec<usize> {
        let frame = |slot: &usize| {
            let frame = Frame::from_node(self.node_at(*slot));
            match align {
                Alignment::End => Frame { top: -frame.bottom, bottom: -frame.top, ..frame },
                Alignment::Start | Alignment::Center => frame,
            }
        };
        let by = |slots: &mut [usize], edge: fn(Frame) -> f64| {
            slots.sort_by(|a, b| edge(frame(a)).total_cmp(&edge(frame(b))));
        };
        by(&mut slots, |frame| frame.top);
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut rest = slots.as_mut_slice();
        while let Some(first) = rest.first() {
            let first = frame(first);
            let middle = f64::midpoint(first.top, first.bottom);
            let count = rest.partition_point(|slot| frame(slot).top < middle);
            let (row, below) = std::mem::take(&mut rest).split_at_mut(count);
            by(row, |frame| frame.left);
            rows.push(row.to_vec());
            rest = below;
        }
        if align == Alignment::End {
            rows.reverse();
        }
        rows.concat()
    }

    /// Where the operation is to put a block.
    fn wish(&mut self, goal: &Goal, block: &Block) -> Result<Option<Wish>, Skipped> {
        match goal {
            Goal::Unset => Ok(None),
            Goal::At(position) => Ok(Some(Wish::At(*position, 0.0))),
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

    /// Moves the items of a block that is placed at `position` into their places, and gives them their sizes.
    fn move_items(&mut self, items: &[Item], plan: &Plan, position: Position) {
        for (index, (item, (left, top))) in items.iter().zip(&plan.corners).enumerate() {
            let corner = Position { x: position.x + left, y: position.y + top };
            let by = (corner.x - item.frame.left, corner.y - item.frame.top);
            let stays = by.0.abs().max(by.1.abs()) < STEP_MIN;
            match (plan.sizes.as_ref().map(|sizes| sizes[index]), item.slots.as_slice()) {
                (Some((width, height)), [slot]) => {
                    let before = self.node_at(*slot).clone();
                    let position = if stays { before.position } else { corner };
                    self.replace_node(*slot, before.clone(), Node { position, width, height, ..before });
                }
                _ if stays => {}
                (_, [slot]) => self.set_position(*slot, corner),
                (_, slots) => self.shift(slots, by),
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
