//! Operations that end the findings which hold the claim that the work is done (`docs/reference/canvases.md#repairs`).
//!
//! **Guarantee.** The operations are one batch that a dry run on the graph accepts. They delete nothing, and nothing of a person
//! moves or changes size.
//!
//! **Mechanism.** The findings are judged and answered in at most [`ROUNDS`] rounds. Each operation is applied to a copy of the graph
//! and taken back if it leaves an error, so that the batch of those that stay leaves none.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::graph::{Node, Position};
use domain::id::NodeId;
use domain::limits::{BATCH_MOVES_MAX, OPERATIONS_MAX};
use domain::operation::{Arrangement, Operation};
use domain::review::{Finding, FindingCode, StoredAssets};

use crate::apply::{Options, Touched, apply};
use crate::batch::Batch;
use crate::findings::{self, TOUCH, share};
use crate::graph::Graph;
use crate::placement::{Block, Frame, GAP, Side, Wish};

/// Rounds of judging and repairing.
const ROUNDS: usize = 3;
const OPTIONS: Options = Options { agent: true, force: false };

/// What ends findings that hold the claim, and which of them stay.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// At most 200.
    pub operations: Vec<Operation>,
    /// Empty slots of agents, to be deleted.
    pub deletions: Vec<NodeId>,
    /// The findings that hold the claim after operations and deletions.
    pub leaves: Vec<Finding>,
}

/// Repairs a graph.
pub fn repair(graph: Graph, assets: &StoredAssets) -> Repaired {
    let mut repair = Repair { graph, operations: Vec::new(), moves: 0 };
    for _ in 0..ROUNDS {
        let held = held(&repair.graph, assets);
        let before = repair.operations.len();
        repair.fit_sections(&held);
        repair.fit_texts(&held);
        repair.part(&held);
        repair.line_up(&held);
        if repair.operations.len() == before {
            break;
        }
    }
    let Repair { mut graph, operations, .. } = repair;
    let slots = held(&graph, assets).into_iter().filter(|finding| finding.code == FindingCode::EmptySlot);
    let deletions: Vec<NodeId> =
        slots.filter_map(|finding| NodeId::parse(finding.node_handles.first()?).ok()).collect();
    for ids in deletions.chunks(OPERATIONS_MAX) {
        let delete = |id: &NodeId| Operation::NodeDelete { node_id: id.to_string() };
        if let Ok(batch) = Batch::new(ids.iter().map(delete).collect()) {
            // A node that cannot be deleted stays a finding.
            let _ = apply(&mut graph, &batch, OPTIONS);
        }
    }
    Repaired { operations, deletions, leaves: held(&graph, assets) }
}

/// The findings that hold the claim.
fn held(graph: &Graph, assets: &StoredAssets) -> Vec<Finding> {
    let found = findings::find(graph, &Touched::default(), assets).findings;
    found.into_iter().filter(|finding| finding.holds_claim).collect()
}

struct Repair {
    graph: Graph,
    operations: Vec<Operation>,
    /// Nodes that the operations move, each as often as it is moved.
    moves: usize,
}

impl Repair {
    /// Sizes the Sections of agents whose members are too near to an edge or outside. An agent's member of a user's Section, and of a
    /// Section that cannot be sized so without covering another, goes to a free place in it. Where there is none, an agent's Section
    /// moves with its members, which are gathered in it.
    fn fit_sections(&mut self, held: &[Finding]) {
        let (mut fitted, mut gathered): (HashMap<usize, bool>, HashSet<usize>) = Default::default();
        for finding in held {
            let Some((member, section)) = self.pair_of(finding) else { continue };
            if !self.is_member(member, section) || gathered.contains(&section) {
                continue;
            }
            let is_fitted = self.node(section).agent_owned
                && *fitted.entry(section).or_insert_with(|| {
                    let fit = self.fit(section);
                    self.attempt(vec![fit], [section], |_| true)
                });
            if !is_fitted
                && self.node(member).agent_owned
                && !self.move_apart(member, Some(section))
                && self.gather(section)
            {
                gathered.insert(section);
            }
        }
    }

    /// Gives cut texts of agents, and titles of their Sections, the room that they need. In a Section that is not only agents' they are
    /// left.
    fn fit_texts(&mut self, held: &[Finding]) {
        for finding in held.iter().filter(|finding| finding.code == FindingCode::TextTruncated) {
            let Some(slot) = finding.node_handles.first().and_then(|handle| self.slot_of(handle)) else { continue };
            if self.node(slot).is_section() {
                let fit = self.fit(slot);
                self.attempt(vec![fit], [slot], |_| true);
                continue;
            }
            let home = self.graph.section_of(self.node(slot)).map(|section| section.id.clone());
            let home = home.and_then(|section| self.graph.nodes.find(&section));
            if home.is_none_or(|home| self.is_movable(home)) {
                let mut slots = home.map(|home| self.with_members(home)).unwrap_or_default();
                slots.insert(slot);
                let fit = Operation::NodeFit { node_id: self.node(slot).id.to_string() };
                self.attempt(vec![fit], slots, |_| true);
            }
        }
    }

    /// Moves one of two frames that overlap or touch: an agent's, of two the later created, a Section with its members.
    fn part(&mut self, held: &[Finding]) {
        for finding in held {
            let Some((a, b)) = self.pair_of(finding) else { continue };
            let frames = [a, b].map(|slot| Frame::from_node(self.node(slot)));
            if self.is_member(a, b) || !share(frames[0], frames[1], -TOUCH) {
                continue;
            }
            let Some(mover) = [a.max(b), a.min(b)].into_iter().find(|slot| self.is_movable(*slot)) else { continue };
            let home = self.graph.section_of(self.node(mover)).map(|section| section.id.clone());
            let home = home.and_then(|section| self.graph.nodes.find(&section));
            if !self.move_apart(mover, home) && self.node(mover).is_section() {
                // It has members elsewhere.
                self.gather(mover);
            }
        }
    }

    /// Moves a node, or a Section with its members, to the nearest free place, within the Section that it belongs to. One of agents
    /// grows if it has none. Returns whether it does.
    fn move_apart(&mut self, mover: usize, home: Option<usize>) -> bool {
        let block = self.block(mover);
        let at = self.corner(&block);
        if let Some(position) = self.graph.place_apart(&block, at, home) {
            self.move_block(mover, &block, at, position, |_| true)
        } else if let Some(section) = home.filter(|section| self.node(*section).agent_owned)
            && let Some(spot) = self.graph.place_in_section(&block, section, Some(Wish::At(at, GAP)))
        {
            let (moved, fit) = (self.moved(mover, spot.position), self.fit(section));
            self.attempt(vec![moved, fit], [mover, section], |_| true)
        } else {
            false
        }
    }

    /// Arranges the members of a Section in it, where it is if they have room there, or else on the nearest free place. Returns whether
    /// it does.
    fn gather(&mut self, section: usize) -> bool {
        let slots = self.with_members(section);
        if slots.len() == 1 || !self.is_movable(section) || self.moves + slots.len() > BATCH_MOVES_MAX {
            return false;
        }
        let Position { x, y } = self.node(section).position;
        let is_gathered = [None, Some((x, y))].into_iter().any(|at| {
            let arrange = Operation::LayoutArrange {
                node_ids: None,
                section_id: Some(self.node(section).id.to_string()),
                layout: Arrangement::Grid,
                gap: GAP,
                columns: None,
                align: None,
                direction: None,
                near: None,
                x: at.map(|(x, _)| x),
                y: at.map(|(_, y)| y),
            };
            let fit = self.fit(section);
            self.attempt(vec![arrange, fit], slots.iter().copied(), |_| true)
        });
        if is_gathered {
            self.moves += slots.len();
        }
        is_gathered
    }

    /// Moves Sections of agents that are out of line into a row or column with one of their nearest neighbours: to the nearest place
    /// on a line of it that puts no other Section out of line.
    fn line_up(&mut self, held: &[Finding]) {
        for finding in held.iter().filter(|finding| finding.code == FindingCode::SectionsStaggered) {
            let mut slots = finding.node_handles.iter().filter_map(|handle| self.slot_of(handle));
            let Some(section) = slots.next() else { continue };
            let neighbours: Vec<usize> = slots.collect();
            let before = findings::out_of_line(&self.graph);
            if !self.is_movable(section) || !before.contains(&section) {
                continue;
            }
            let block = self.block(section);
            let at = self.corner(&block);
            for position in self.in_line(section, &neighbours, &block) {
                let is_better = |graph: &Graph| {
                    let after = findings::out_of_line(graph);
                    !after.contains(&section) && after.is_subset(&before)
                };
                if self.move_block(section, &block, at, position, is_better) {
                    break;
                }
            }
        }
    }

    /// Places for the block of a Section, the nearest first, at which the Section shares a line with a neighbour.
    fn in_line(&mut self, section: usize, neighbours: &[usize], block: &Block) -> Vec<Position> {
        let at = self.corner(block);
        let frame = Frame::from_node(self.node(section));
        let (width, height) = (frame.right - frame.left, frame.bottom - frame.top);
        let mut places = Vec::new();
        for neighbour in neighbours {
            let other = Frame::from_node(self.node(*neighbour));
            let rows = [other.top, other.bottom - height, (other.top + other.bottom - height) / 2.0];
            let columns = [other.left, other.right - width, (other.left + other.right - width) / 2.0];
            let rows = rows.map(|top| (Position { x: at.x, y: at.y + top - frame.top }, [Side::Right, Side::Left]));
            let columns =
                columns.map(|left| (Position { x: at.x + left - frame.left, y: at.y }, [Side::Below, Side::Above]));
            for (line, sides) in rows.into_iter().chain(columns) {
                places.extend(sides.into_iter().filter_map(|side| self.graph.place_along(block, line, side)));
            }
        }
        let distance = |place: &Position| (place.x - at.x).powi(2) + (place.y - at.y).powi(2);
        places.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        places
    }

    /// Moves a node, or a Section with its members, so that its block goes from one corner to another, if it is better there. Returns
    /// whether it does.
    fn move_block(
        &mut self,
        slot: usize,
        block: &Block,
        from: Position,
        to: Position,
        is_better: impl Fn(&Graph) -> bool,
    ) -> bool {
        let Position { x, y } = self.node(slot).position;
        let moved = self.moved(slot, Position { x: x + to.x - from.x, y: y + to.y - from.y });
        if self.moves + block.slots.len() > BATCH_MOVES_MAX {
            return false;
        }
        let is_moved = self.attempt(vec![moved], block.slots.iter().copied(), is_better);
        if is_moved {
            self.moves += block.slots.len();
        }
        is_moved
    }

    /// Applies operations that change these nodes alone, unless that leaves an error, changes nothing or is not better. Returns whether
    /// they are applied.
    fn attempt(
        &mut self,
        operations: Vec<Operation>,
        slots: impl IntoIterator<Item = usize>,
        is_better: impl Fn(&Graph) -> bool,
    ) -> bool {
        if self.operations.len() + operations.len() > OPERATIONS_MAX {
            return false;
        }
        let before: Vec<Node> = slots.into_iter().filter_map(|slot| self.graph.nodes.get(slot).cloned()).collect();
        let Ok(batch) = Batch::new(operations.clone()) else { return false };
        let Ok(applied) = apply(&mut self.graph, &batch, OPTIONS) else { return false };
        let is_refused = applied.touched.placed.is_empty() || findings::has_error(&mut self.graph, &applied.touched);
        if is_refused || !is_better(&self.graph) {
            self.graph.replace(before);
            return false;
        }
        self.operations.extend(operations);
        true
    }

    fn moved(&self, slot: usize, position: Position) -> Operation {
        let node = self.node(slot);
        Operation::NodeMove { node_id: node.id.to_string(), position, with_members: node.is_section() }
    }

    fn fit(&self, section: usize) -> Operation {
        Operation::SectionFit { node_id: self.node(section).id.to_string(), padding: GAP }
    }

    /// The two nodes of a finding on frames, a Section last.
    fn pair_of(&self, finding: &Finding) -> Option<(usize, usize)> {
        let codes = [FindingCode::AgentOverlap, FindingCode::FramesTouch, FindingCode::SectionOverflow];
        let [first, second] = finding.node_handles.as_slice() else { return None };
        let is_pair = codes.iter().any(|code| finding.code == *code);
        is_pair.then(|| Some((self.slot_of(first)?, self.slot_of(second)?))).flatten()
    }

    fn slot_of(&self, handle: &str) -> Option<usize> {
        self.graph.nodes.find(&NodeId::parse(handle).ok()?)
    }

    fn node(&self, slot: usize) -> &Node {
        self.graph.nodes.get(slot).expect("no operation deletes a node")
    }

    fn is_member(&self, node: usize, section: usize) -> bool {
        self.node(node).section_id() == Some(self.node(section).id.as_str())
    }

    /// Returns `true` if the node, and of a Section each member, is an agent's.
    fn is_movable(&self, slot: usize) -> bool {
        self.with_members(slot).into_iter().all(|slot| self.node(slot).agent_owned)
    }

    fn with_members(&self, slot: usize) -> BTreeSet<usize> {
        let node = self.node(slot);
        let mut slots = if node.is_section() { self.graph.members_at(&node.id) } else { BTreeSet::new() };
        slots.insert(slot);
        slots
    }

    /// A node, or a Section with its members, to place as one.
    fn block(&self, slot: usize) -> Block {
        let slots: HashSet<usize> = self.with_members(slot).into_iter().collect();
        let frames = || slots.iter().map(|slot| Frame::from_node(self.node(*slot)));
        let own = Frame::from_node(self.node(slot));
        let frame = frames().fold(own, Frame::union);
        let reach =
            frames().fold((0.0_f64, 0.0_f64), |(x, y), of| (x.max(of.left - frame.left), y.max(of.top - frame.top)));
        Block { size: (frame.right - frame.left, frame.bottom - frame.top), reach, slots }
    }

    /// The top left corner of a block where it is.
    fn corner(&self, block: &Block) -> Position {
        let positions = block.slots.iter().map(|slot| self.node(*slot).position);
        let least = |a: Position, b: Position| Position { x: a.x.min(b.x), y: a.y.min(b.y) };
        positions.reduce(least).expect("a block has a node")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{agents, at, graph, member, section, sticky};

    #[test]
    fn more_than_a_batch_can_repair_is_left() {
        let pair = |at_row: u32| {
            ["a", "b"].map(|name| agents(at(sticky(&format!("{name}{at_row}")), 0.0, 1000.0 * f64::from(at_row))))
        };
        let Repaired { operations, leaves, .. } =
            repair(graph((0..300).flat_map(pair).collect(), vec![]), &StoredAssets::new());
        assert_eq!((operations.len(), leaves.len()), (OPERATIONS_MAX, 300 - OPERATIONS_MAX));
        assert!(leaves.iter().all(|finding| finding.code == FindingCode::AgentOverlap));
        let one_spot = (0..2000).map(|number| agents(sticky(&format!("n{number}")))).collect();
        let Repaired { operations, leaves, .. } = repair(graph(one_spot, vec![]), &StoredAssets::new());
        assert!(operations.len() <= OPERATIONS_MAX && !leaves.is_empty());
    }

    #[test]
    fn members_on_both_sides_of_another_section_go_into_their_own() {
        let large = |id: &str, x: f64| agents(at(Node { width: 700.0, height: 600.0, ..section(id) }, x, 0.0));
        let outside = |id: &str, x: f64, y: f64| agents(at(member(sticky(id), "a"), x, y));
        let nodes =
            vec![large("a", 2000.0), large("b", 1000.0), outside("left", 0.0, 0.0), outside("below", 1500.0, 800.0)];
        let Repaired { operations, leaves, .. } = repair(graph(nodes, vec![]), &StoredAssets::new());
        assert_eq!(leaves, []);
        let moved = operations.iter().map(|operation| match operation {
            Operation::NodeMove { node_id, .. } => node_id.as_str(),
            other => panic!("{other:?}"),
        });
        assert_eq!(moved.collect::<Vec<_>>(), ["left", "below"]);
    }
}
