//! Nodes of a batch without a place: those of one Section, and those of none, are placed as one
//! (`docs/reference/operations.md#placement`).
//!
//! A look ahead finds them and the connections among them. With the first of a block, one place is searched for the whole; each then
//! takes its cell, or the nearest free place if something is there by now.

use std::collections::{HashMap, HashSet};

use domain::graph::{Node, Position};
use domain::operation::Arrangement;

use super::{Run, Skipped};
use crate::batch::{Aim, Batch, Draft, Step};
use crate::geometry::{HEAD, SECTION_SIZE};
use crate::metadata::Home;
use crate::placement::{Block, Cells, Frame, GAP, NO_ROOM, Style, Wish, block_cells, flow};

/// The blocks of a batch.
#[derive(Default)]
pub(super) struct Blocks<'a> {
    blocks: Vec<Members<'a>>,
    /// The block of a step, and which of its nodes the step creates.
    steps: HashMap<usize, (usize, usize)>,
    /// The block of the nodes in a Section that the batch creates, by its `clientId`.
    sections: HashMap<&'a str, usize>,
    aim: Option<&'a Aim>,
}

/// The nodes of a block.
#[derive(Default)]
struct Members<'a> {
    drafts: Vec<(&'a Draft, Option<&'a str>)>,
    /// Connections among them.
    edges: Vec<(usize, usize)>,
    sizes: Vec<(f64, f64)>,
    /// Where they go, once a place is searched; none where there is none.
    places: Option<Option<Vec<Position>>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(batch: &'a Batch) -> Self {
        let mut blocks = Self { aim: batch.aim.as_ref(), ..Self::default() };
        // What each `clientId` names so far: a node of a block, or something else.
        let mut made: HashMap<&str, Option<(usize, usize)>> = HashMap::new();
        let mut homes = HashMap::new();
        for (at, step) in batch.steps.iter().enumerate() {
            match step {
                Step::CreateNode { client_id, draft } => {
                    let mut member = None;
                    if draft.is_bare() {
                        let home = match &draft.metadata.home {
                            Home::Join(section) => {
                                let is_made = !section.is_handle && made.contains_key(section.id.as_str());
                                Some((section.id.as_str(), is_made))
                            }
                            Home::Keep | Home::Leave => None,
                        };
                        let block = *homes.entry(home).or_insert(blocks.blocks.len());
                        if block == blocks.blocks.len() {
                            blocks.blocks.push(Members::default());
                            blocks
                                .sections
                                .extend(home.filter(|(_, is_made)| *is_made).map(|(section, _)| (section, block)));
                        }
                        let drafts = &mut blocks.blocks[block].drafts;
                        member = Some((block, drafts.len()));
                        drafts.push((draft, client_id.as_deref()));
                        blocks.steps.extend(member.map(|member| (at, member)));
                    }
                    made.extend(client_id.as_deref().map(|client_id| (client_id, member)));
                }
                Step::CreateConnection { client_id, from, to, .. } => {
                    let ends =
                        [from, to].map(|end| (!end.is_handle).then(|| made.get(end.id.as_str()).copied().flatten())?);
                    if let [Some((from, first)), Some((to, second))] = ends
                        && from == to
                    {
                        blocks.blocks[from].edges.push((first, second));
                    }
                    made.extend(client_id.as_deref().map(|client_id| (client_id, None)));
                }
                Step::DuplicateNode { client_id, .. } | Step::CreateSection { client_id, .. } => {
                    made.extend(client_id.as_deref().map(|client_id| (client_id, None)));
                }
                _ => {}
            }
        }
        blocks
    }
}

impl Run<'_> {
    /// The place of a node of a block with others; `None` for one that is placed by itself.
    pub(super) fn place_in_block(
        &mut self,
        draft: &Draft,
        size: (f64, f64),
        section: Option<usize>,
    ) -> Result<Option<Position>, Skipped> {
        let Some((block, index)) = self.blocks.steps.get(&self.at).copied() else { return Ok(None) };
        if self.blocks.blocks[block].drafts.len() < 2 && self.blocks.aim.is_none() {
            return Ok(None);
        }
        if self.blocks.blocks[block].places.is_none() {
            // A violation is recorded once, for the first.
            let places = self.place_block(block, draft, section).ok();
            self.blocks.blocks[block].places = Some(places);
        }
        let places = self.blocks.blocks[block].places.as_ref().and_then(Option::as_ref);
        let cell = places.ok_or(Skipped)?[index];
        let itself = Block { size, reach: (0.0, 0.0), slots: HashSet::new() };
        let place = match section {
            None => self.graph.place_block(&itself, Wish::At(cell, GAP)),
            Some(section) => Some(self.place_into(&itself, section, Some(Wish::At(cell, GAP)), draft)?),
        };
        Ok(Some(place.unwrap_or_else(|| self.graph.place_after_content(&itself))))
    }

    /// The places of the nodes of a block.
    fn place_block(&mut self, block: usize, draft: &Draft, section: Option<usize>) -> Result<Vec<Position>, Skipped> {
        let (sizes, cells) = self.block_cells(block);
        let (cells, wish) = match self.blocks.aim {
            Some(aim) => {
                let sources = aim.sources.iter().filter_map(|source| self.graph.nodes.find(source)).collect::<Vec<_>>();
                self.graph.results(aim.at, &sources, &sizes, section).unwrap_or((cells, None))
            }
            None => (cells, None),
        };
        self.blocks.blocks[block].sizes = sizes;
        let reach = cells.corners.iter().fold((0.0_f64, 0.0_f64), |reach, (x, y)| (reach.0.max(*x), reach.1.max(*y)));
        let whole = Block { size: cells.size, reach, slots: HashSet::new() };
        let at = match (section, wish) {
            (Some(section), wish) => Some(self.place_into(&whole, section, wish, draft)?),
            (None, Some(wish)) => self.graph.place_block(&whole, wish),
            (None, None) => None,
        };
        let at = at.unwrap_or_else(|| self.graph.place_after_content(&whole));
        Ok(cells.corners.into_iter().map(|(x, y)| Position { x: at.x + x, y: at.y + y }).collect())
    }

    /// The sizes of the nodes of a block and their cells: a row, a grid, or, where they are connected, a flow.
    fn block_cells(&self, block: usize) -> (Vec<(f64, f64)>, Cells) {
        let Members { drafts, edges, .. } = &self.blocks.blocks[block];
        let sizes: Vec<(f64, f64)> = drafts.iter().map(|(draft, name)| self.draft_size(draft, *name)).collect();
        let cells = match edges.as_slice() {
            [] => block_cells(&sizes),
            edges => flow(Style::new(Arrangement::Flow, GAP), &sizes, edges),
        };
        (sizes, cells)
    }

    /// The size that a node of a block was placed with.
    pub(super) fn placed_size(&self) -> Option<(f64, f64)> {
        let (block, index) = self.blocks.steps.get(&self.at)?;
        self.blocks.blocks[*block].sizes.get(*index).copied()
    }

    /// The size of a Section that the batch creates without nodes: with room for those that it places in it.
    pub(super) fn section_size(&self, client_id: Option<&str>) -> (f64, f64) {
        let block = client_id.and_then(|client_id| self.blocks.sections.get(client_id));
        let (width, height) = block.map(|block| self.block_cells(*block).1.size).unwrap_or_default();
        (SECTION_SIZE.0.max(width + 2.0 * GAP), SECTION_SIZE.1.max(HEAD + height + GAP))
    }

    /// A place in a Section, which grows if it must. Without room an agent's Section moves with its members; what need not lie in
    /// another one is placed next to it.
    pub(super) fn place_into(
        &mut self,
        block: &Block,
        section: usize,
        wish: Option<Wish>,
        draft: &Draft,
    ) -> Result<Position, Skipped> {
        if let Some(spot) = self.graph.place_in_section(block, section, wish) {
            if let Some(frame) = spot.section {
                self.grow(section, frame);
            }
            return Ok(spot.position);
        }
        self.place_without_room(block, section, draft)
    }

    /// [`place_into`](Self::place_into) for a Section that has no room and cannot grow.
    pub(super) fn place_without_room(
        &mut self,
        block: &Block,
        section: usize,
        draft: &Draft,
    ) -> Result<Position, Skipped> {
        let node: &Node = self.node_at(section);
        let frame = Frame::from_node(node);
        if node.agent_owned {
            return self.place_in_moved(block, section, draft.section_field);
        }
        if draft.given.contained {
            return Err(self.unprocessable(draft.section_field, NO_ROOM));
        }
        let beside = self.graph.place_block(block, Wish::Near(frame));
        Ok(beside.unwrap_or_else(|| self.graph.place_after_content(block)))
    }
}
