//! Operations on nodes.

use domain::graph::{Node, Position};
use domain::id::NodeId;
use domain::object::Object;

use super::{Made, OperationResult, Run, Skipped};
use crate::batch::{Draft, Patch};
use crate::metadata::{Home, MetadataPatch, SECTION_IN_SECTION, fits, too_large};
use crate::reference::Ref;

impl Run<'_> {
    pub(super) fn create_node(&mut self, draft: &Draft) -> Result<(Made, String), Skipped> {
        let section = self.section("node.metadata.sectionId", &draft.metadata)?;
        let given = &draft.given;
        let mut node = Node {
            id: given.id.clone().unwrap_or_else(NodeId::generate),
            kind: draft.kind,
            title: draft.title.clone(),
            position: draft.position,
            width: draft.width,
            height: draft.height,
            agent_owned: self.options.agent,
            metadata: Object::default(),
            server: given.server.clone().into(),
            asset: given.asset.clone(),
            active_job: None,
        };
        draft.metadata.merge_into(&mut node, section.as_ref());
        if !fits(&node.metadata) {
            return Err(self.invalid("node.metadata", too_large()));
        }
        Ok(self.add_node(node))
    }

    /// A copy has the title, size, writable metadata and asset of its original, but not its job, provenance or
    /// connections. The copy of a Section has no members, because they name the original.
    pub(super) fn duplicate_node(&mut self, node: &Ref<NodeId>, position: Position) -> Result<(Made, String), Skipped> {
        let slot = self.node("nodeId", node)?;
        let original = self.node_at(slot);
        let written = original.server.get_key_value("content").map(|(key, value)| (key.clone(), value.clone()));
        let copy = Node {
            id: NodeId::generate(),
            position,
            agent_owned: self.options.agent,
            server: written.into_iter().collect(),
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

    fn add_node(&mut self, node: Node) -> (Made, String) {
        let id = node.id.to_string();
        let slot = self.graph.nodes.end();
        self.journal.set_node(self.graph, slot, Some(node));
        (Made::Node(slot), id)
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
        after.width = patch.width.unwrap_or(before.width);
        after.height = patch.height.unwrap_or(before.height);
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

    pub(super) fn move_node(&mut self, node: &Ref<NodeId>, position: Position) -> OperationResult {
        let slot = self.node("nodeId", node)?;
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
        let members = self.graph.members_at(&node.id);
        for connection in self.graph.links_at(slot) {
            self.journal.set_connection(self.graph, connection, None);
        }
        self.journal.set_node(self.graph, slot, None);
        for member in members {
            let mut freed = self.node_at(member).clone();
            freed.metadata.remove("sectionId");
            self.journal.set_node(self.graph, member, Some(freed));
        }
        Ok(())
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
    fn replace_node(&mut self, slot: usize, before: Node, after: Node) {
        if before != after {
            self.journal.set_node(self.graph, slot, Some(after));
        }
    }
}
