//! Operations on nodes.

use std::collections::HashSet;

use domain::graph::{Node, NodeType, Position};
use domain::id::{AssetRef, NodeId};
use domain::limits::{BATCH_REGROUPED_MAX, NODE_SIDE_MAX};
use domain::metadata::ServerMetadata;
use domain::stored::Stored;

use super::{NamedItem, OperationResult, Run, Skipped};
use crate::batch::{Draft, Patch};
use crate::geometry::{fitted_as, height_for};
use crate::graph::AssetImage;
use crate::metadata::{Home, MetadataPatch, SECTION_IN_SECTION, fits, too_large};
use crate::placement::{Block, Frame, Hint};
use crate::reference::Ref;
use crate::svg::{self, cuts_text};

/// Most height that a new node takes on for its text, in canvas units.
const TEXT_HEIGHT_MAX: f64 = 800.0;
/// The same for a sticky note.
const STICKY_HEIGHT_MAX: f64 = 480.0;

impl Run<'_> {
    pub(super) fn create_node(
        &mut self,
        draft: &Draft,
        client_id: Option<&str>,
    ) -> Result<(NamedItem, String), Skipped> {
        let section = self.section(draft.section_field, &draft.metadata);
        let near = draft.near.as_ref().map(|near| self.node("near", near)).transpose();
        let image = self.image(draft);
        let (section, near, image) = (section?, near?, image?);
        let given = &draft.given;
        let (width, height) = self.placed_size().unwrap_or_else(|| self.draft_size(draft, client_id));
        if draft.height.is_none() && image.is_some() {
            self.require_height(height, "node.width")?;
        }
        let mut node = Node {
            id: given.id.clone().unwrap_or_else(NodeId::generate),
            short: None,
            kind: draft.kind,
            title: draft.title.clone(),
            position: draft.position.unwrap_or(Position { x: 0.0, y: 0.0 }),
            width,
            height,
            agent_owned: self.options.agent,
            metadata: Stored::default(),
            server: given.server.clone().into(),
            asset: image.map(|image| image.asset).or_else(|| given.asset.clone()),
            active_job: None,
        };
        draft.metadata.merge_into(&mut node, section.as_ref());
        if !fits(&node.metadata) {
            return Err(self.invalid("node.metadata", too_large()));
        }
        if draft.position.is_none() {
            let section = section.as_ref().and_then(|section| self.graph.nodes.find(section));
            node.position = match self.place_in_block(draft, (width, height), section)? {
                Some(position) => position,
                None => self.place((width, height), near, section, draft)?,
            };
        }
        Ok(self.add_node(node))
    }

    /// The image or video that a new node shows, if any.
    fn image(&mut self, draft: &Draft) -> Result<Option<AssetImage>, Skipped> {
        let Some(asset) = &draft.asset else { return Ok(None) };
        match self.graph.sources.assets.get(asset).filter(|asset| asset.shown_by == draft.kind) {
            Some(image) => Ok(Some(image.clone())),
            None => Err(self.unprocessable("node.asset", format!("names no {} that this canvas may show", draft.kind))),
        }
    }

    /// A free place for a new node (`docs/reference/operations.md#placement`). A Section without room for it grows, or moves.
    fn place(
        &mut self,
        size: (f64, f64),
        near: Option<usize>,
        section: Option<usize>,
        draft: &Draft,
    ) -> Result<Position, Skipped> {
        let spot = self.graph.spot(size, Hint { near, section, at: None });
        let Some(section) = section else { return Ok(spot.position) };
        if let Some(frame) = spot.section {
            self.grow(section, frame);
        } else if !Frame::from_node(self.node_at(section)).contains(Frame::new(spot.position, size.0, size.1)) {
            return self.place_without_room(&Block { size, reach: (0.0, 0.0), slots: HashSet::new() }, section, draft);
        }
        Ok(spot.position)
    }

    /// A copy has the title, size, writable metadata and asset of its original, but not its job, provenance or
    /// connections. The copy of a Section has no members, because they name the original.
    pub(super) fn duplicate_node(
        &mut self,
        node: &Ref<NodeId>,
        position: Position,
    ) -> Result<(NamedItem, String), Skipped> {
        let slot = self.node("nodeId", node)?;
        let original = self.node_at(slot);
        let content = original.written_content().map(str::to_owned);
        let copy = Node {
            id: NodeId::generate(),
            short: None,
            position,
            agent_owned: self.options.agent,
            server: ServerMetadata { content, ..ServerMetadata::default() }.into(),
            active_job: None,
            kind: original.kind,
            title: original.title.clone(),
            width: original.width,
            height: original.height,
            metadata: original.metadata.clone(),
            asset: original.asset.clone(),
        };
        Ok(self.add_node(copy))
    }

    pub(super) fn add_node(&mut self, mut node: Node) -> (NamedItem, String) {
        self.graph.give_node_ref(&mut node);
        let id = node.id.to_string();
        let slot = self.graph.nodes.end();
        self.journal.set_node(self.graph, slot, Some(node));
        (NamedItem::Node(slot), id)
    }

    pub(super) fn update_node(&mut self, node: &Ref<NodeId>, patch: &Patch) -> OperationResult {
        let slot = self.node("nodeId", node)?;
        let section = self.section("patch.metadata.sectionId", &patch.metadata);
        let violations = self.violations();
        let before = self.node_at(slot).clone();
        let mut after = before.clone();
        if let Some(title) = &patch.title {
            after.title.clone_from(title);
        }
        if patch.width.is_some() || patch.height.is_some() {
            self.fitted.remove(&slot);
        }
        after.width = patch.width.unwrap_or(before.width);
        after.height = patch.height.unwrap_or(before.height);
        if patch.follows_image()
            && let Some(image) = self.shown(&before)
            && let Ok(height) = self.height_for(image, &after.title, after.width, "patch.width")
        {
            after.height = height;
        }
        if let Some(kind) = patch.kind.filter(|kind| *kind != before.kind) {
            if !before.kind.holds_text() {
                self.unprocessable("patch.type", format!("the type of a node of type {} cannot change", before.kind));
            } else {
                after.kind = kind;
                if before.active_job.is_some() {
                    self.unprocessable("patch.type", "the type of a node with an active job cannot change");
                }
            }
        }
        if let Some(asset) = &patch.asset {
            self.show_video(&mut after, asset);
        }
        for (key, message) in patch.metadata.unfit_for(after.kind) {
            self.invalid(&format!("patch.metadata.{key}"), message);
        }
        patch.metadata.merge_into(&mut after, section.as_ref().ok().and_then(Option::as_ref));
        self.keep_section_rules(&before, &after, patch);
        if !patch.metadata.is_empty() && !fits(&after.metadata) {
            self.invalid("patch.metadata", too_large());
        }
        section?;
        if self.violations() > violations {
            return Err(Skipped);
        }
        self.replace_node(slot, before, after);
        Ok(())
    }

    /// Makes a video node show another video. What was made for the node says nothing of it.
    fn show_video(&mut self, node: &mut Node, asset: &AssetRef) {
        const FIELD: &str = "patch.asset";
        if node.kind != NodeType::Video {
            self.unprocessable(FIELD, format!("a node of type {} keeps what it shows", node.kind));
        } else if node.active_job.is_some() {
            self.unprocessable(FIELD, "what a node with an active job shows cannot change");
        } else if let Some(video) = self.graph.sources.assets.get(asset).filter(|it| it.shown_by == NodeType::Video) {
            let AssetImage { asset, at, .. } = video.clone();
            if node.asset.as_ref() != Some(&asset) {
                node.replace_asset(asset, at, None);
                node.server.provenance = None;
            }
        } else {
            self.unprocessable(FIELD, "names no video that this canvas may show");
        }
    }

    /// A Section belongs to no Section (400). It is a sticky note, stops being a Section only without members, and
    /// cannot name itself as its Section when it stops (422).
    fn keep_section_rules(&mut self, before: &Node, after: &Node, patch: &Patch) {
        let metadata = &patch.metadata;
        let has_home = match metadata.home {
            Home::Keep => before.section_id().is_some(),
            Home::Leave => false,
            Home::Join(_) => true,
        };
        if after.is_section() && has_home {
            let joins = matches!(metadata.home, Home::Join(_));
            self.invalid(if joins { "patch.metadata.sectionId" } else { "patch.metadata.section" }, SECTION_IN_SECTION);
        }
        if !before.is_section() || after.is_section() {
            return;
        }
        if !metadata.unmakes_section() {
            self.unprocessable("patch.type", "a Section needs `section: null` in the same patch to become a text");
        } else if self.graph.has_members(&before.id) {
            self.unprocessable("patch.metadata.section", "a Section with members cannot stop being one");
        }
        if after.section_id() == Some(before.id.as_str()) {
            self.unprocessable(
                "patch.metadata.sectionId",
                "must name another Section, because this one stops being a Section",
            );
        }
    }

    pub(super) fn move_node(&mut self, node: &Ref<NodeId>, position: Position, with_members: bool) -> OperationResult {
        let slot = self.node("nodeId", node)?;
        if with_members {
            return self.move_with_members(slot, position);
        }
        let before = self.node_at(slot).clone();
        let after = Node { position, ..before.clone() };
        self.replace_node(slot, before, after);
        Ok(())
    }

    /// Deletes a node with its connections. The members of a deleted Section stay and belong to none.
    pub(super) fn delete_node(&mut self, node: &Ref<NodeId>) -> OperationResult {
        let slot = self.node("nodeId", node)?;
        let node = self.node_at(slot);
        if node.active_job.is_some() && !self.options.force {
            return Err(self.unprocessable("nodeId", "has an active job: deleting it requires `force`"));
        }
        let id = node.id.clone();
        let members = self.graph.members_at(&id);
        self.count_regrouped(members.len())?;
        for connection in self.graph.links_at(slot) {
            self.remove_connection(connection);
        }
        self.journal.set_node(self.graph, slot, None);
        self.deleted_nodes.insert(id, slot);
        for member in members {
            let mut freed = self.node_at(member).clone();
            freed.metadata.section_id = None;
            self.journal.set_node(self.graph, member, Some(freed));
        }
        Ok(())
    }

    /// Counts members that a deleted Section loses or a restored one gets back.
    pub(super) fn count_regrouped(&mut self, count: usize) -> OperationResult {
        self.regrouped += count;
        match self.regrouped > BATCH_REGROUPED_MAX {
            true => Err(self.unprocessable(
                "nodeId",
                format!("the Sections that a batch deletes and restores have at most {BATCH_REGROUPED_MAX} members"),
            )),
            false => Ok(()),
        }
    }

    /// The Section that metadata joins, if any.
    fn section(&mut self, field: &str, metadata: &MetadataPatch) -> Result<Option<NodeId>, Skipped> {
        let Home::Join(section) = &metadata.home else { return Ok(None) };
        let slot = self.node(field, section)?;
        let node = self.node_at(slot);
        if node.is_section() {
            Ok(Some(node.id.clone()))
        } else {
            Err(self.unprocessable(field, "must name a Section of the canvas"))
        }
    }

    /// Replaces a node. Writing an equal node changes and touches nothing.
    pub(super) fn replace_node(&mut self, slot: usize, before: Node, after: Node) {
        if before != after {
            self.journal.set_node(self.graph, slot, Some(after));
        }
    }

    /// Width and height of a new node. Without a height, it shows its image whole, or all its text.
    pub(super) fn draft_size(&self, draft: &Draft, client_id: Option<&str>) -> (f64, f64) {
        let image = draft.asset.as_ref().and_then(|asset| self.graph.sources.assets.get(asset)?.size);
        match (draft.width, draft.height, image) {
            (None, None, Some(size)) => fitted_as(draft.kind, size, &draft.title),
            (Some(width), None, Some(size)) => (width, height_for(size, &draft.title, width)),
            (width, height, _) => {
                let is_section = draft.metadata.makes_section();
                let default = if is_section { self.section_size(client_id) } else { draft.kind.default_size() };
                let size = (width.unwrap_or(default.0), height.unwrap_or(default.1));
                match height {
                    None if draft.kind.holds_text() && !is_section => (size.0, text_height(draft, size)),
                    _ => size,
                }
            }
        }
    }

    /// Width and height of the image that a node shows.
    fn shown(&self, node: &Node) -> Option<(f64, f64)> {
        let asset = node.asset.as_ref().filter(|_| node.kind == NodeType::Image)?;
        self.graph.sources.sizes.get(asset).copied()
    }

    /// The height at which a node of this width shows an image whole.
    fn height_for(&mut self, image: (f64, f64), title: &str, width: f64, field: &str) -> Result<f64, Skipped> {
        let height = height_for(image, title, width);
        self.require_height(height, field)?;
        Ok(height)
    }

    fn require_height(&mut self, height: f64, field: &str) -> OperationResult {
        match height > NODE_SIDE_MAX {
            true => {
                Err(self.unprocessable(field, format!("needs a height of more than {NODE_SIDE_MAX} for the image")))
            }
            false => Ok(()),
        }
    }
}

/// The height of a new text or sticky without one: as high as its text needs, its default at least.
fn text_height(draft: &Draft, (width, height): (f64, f64)) -> f64 {
    if draft.metadata.has_no_text() {
        return height;
    }
    let mut node = Node {
        id: NodeId::from_stored(String::new()),
        kind: draft.kind,
        title: draft.title.clone(),
        position: Position { x: 0.0, y: 0.0 },
        width,
        height,
        short: None,
        agent_owned: false,
        metadata: Stored::default(),
        server: Stored::default(),
        asset: None,
        active_job: None,
    };
    draft.metadata.merge_into(&mut node, None);
    if !cuts_text(&node) {
        return height;
    }
    let most = if draft.kind == NodeType::Sticky { STICKY_HEIGHT_MAX } else { TEXT_HEIGHT_MAX };
    svg::text_height(&node, None, most).unwrap_or(most).max(height)
}
