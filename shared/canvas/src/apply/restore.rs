//! Operations that restore what was deleted, in its place in the order of creation
//! (`docs/reference/operations.md#noderestore`).
//!
//! Something that an earlier revision had is restored as the last such revision had it, whether a previous batch or this
//! one deleted it.

use domain::graph::{Connection, Node};
use domain::id::{ConnectionId, NodeId};

use super::connections::RESTORED;
use super::{NamedItem, OperationResult, Run, Skipped};
use crate::metadata::fits;
use crate::reference::Ref;

const PRESENT: &str = "is on the canvas: only what was deleted can be restored";
const NOT_DELETED: &str = "names nothing that was deleted within the last 1000 revisions and 64 MiB of deletions";

impl Run<'_> {
    /// Its former members belong to a restored Section again, unless they belong to another one now.
    pub(super) fn restore_node(&mut self, node: &Ref<NodeId>) -> OperationResult {
        let (slot, mut node, members) = self.deleted_node(node)?;
        if node.active_job.take().is_some() {
            node.server.job = None;
        }
        let section = node.metadata.section_id.as_ref();
        if section.is_some_and(|section| !self.graph.node(section).is_some_and(Node::is_section)) {
            node.metadata.section_id = None;
        }
        self.graph.give_node_ref(&mut node);
        let id = node.id.clone();
        self.count_regrouped(members.len())?;
        self.restored.insert(id.to_string(), node.clone());
        self.journal.set_node(self.graph, slot, Some(node));
        for member in members {
            self.return_to_section(&id, &member);
        }
        Ok(())
    }

    /// The slot of a deleted node, its last state, and its members then.
    fn deleted_node(&mut self, node: &Ref<NodeId>) -> Result<(usize, Node, Vec<NodeId>), Skipped> {
        match self.made_as(node.id.as_str(), node.is_handle) {
            Some(NamedItem::Nothing) => return Err(Skipped),
            Some(NamedItem::Node(slot)) if self.graph.nodes.get(slot).is_some() => {
                return Err(self.unprocessable("nodeId", PRESENT));
            }
            _ if self.graph.nodes.find(&node.id).is_some() => return Err(self.unprocessable("nodeId", PRESENT)),
            _ => {}
        }
        if let Some((slot, at)) = self.graph.nodes.find_deleted(&node.id) {
            let deleted = &self.graph.sources.nodes[at];
            return Ok((slot, deleted.node.clone(), deleted.members.clone()));
        }
        let slot = self.deleted_nodes.get(&node.id).copied();
        let original = slot.and_then(|slot| Some((slot, self.journal.nodes.original(slot)?.clone())));
        let (slot, original) = original.ok_or_else(|| self.unprocessable("nodeId", NOT_DELETED))?;
        let members = match original.is_section() {
            true => {
                let is_member = |node: &&Node| node.section_id() == Some(original.id.as_str());
                self.journal.nodes.originals().filter(is_member).map(|node| node.id.clone()).collect()
            }
            false => Vec::new(),
        };
        Ok((slot, original, members))
    }

    fn return_to_section(&mut self, section: &NodeId, member: &NodeId) {
        let Some(slot) = self.graph.nodes.find(member) else { return };
        let node = self.node_at(slot);
        if node.section_id().is_some() || node.is_section() {
            return;
        }
        let mut node = node.clone();
        node.metadata.section_id = Some(section.clone());
        if fits(&node.metadata) {
            self.journal.set_node(self.graph, slot, Some(node));
            self.returned.insert(member.clone(), section.clone());
        }
    }

    pub(super) fn restore_connection(&mut self, connection: &Ref<ConnectionId>) -> OperationResult {
        let (slot, mut connection) = self.deleted_connection(connection)?;
        let Some(ends) = self.graph.ends_of(&connection) else {
            return Err(self.unprocessable("connectionId", "connected a node that is not on the canvas"));
        };
        self.may_connect(ends, &RESTORED)?;
        self.graph.give_connection_ref(&mut connection);
        self.journal.set_connection(self.graph, slot, Some(connection));
        Ok(())
    }

    /// The slot of a deleted connection, and its last state.
    fn deleted_connection(&mut self, connection: &Ref<ConnectionId>) -> Result<(usize, Connection), Skipped> {
        match self.made_as(connection.id.as_str(), connection.is_handle) {
            Some(NamedItem::Nothing) => return Err(Skipped),
            Some(NamedItem::Connection(slot)) if self.graph.connections.get(slot).is_some() => {
                return Err(self.unprocessable("connectionId", PRESENT));
            }
            _ if self.graph.connections.find(&connection.id).is_some() => {
                return Err(self.unprocessable("connectionId", PRESENT));
            }
            _ => {}
        }
        if let Some((slot, at)) = self.graph.connections.find_deleted(&connection.id) {
            return Ok((slot, self.graph.sources.connections[at].connection.clone()));
        }
        let slot = self.deleted_connections.get(&connection.id).copied();
        let original = slot.and_then(|slot| Some((slot, self.journal.connections.original(slot)?.clone())));
        original.ok_or_else(|| self.unprocessable("connectionId", NOT_DELETED))
    }
}
