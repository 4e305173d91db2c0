//! Operations on connections.

use domain::graph::{Connection, NodeType, Purpose, Role};
use domain::id::{ConnectionId, NodeId};

use super::{NamedItem, OperationResult, Run, Skipped};
use crate::graph::Ends;
use crate::reference::Ref;

/// The fields under which a broken rule is reported. An update can only break rules by its purpose.
pub(super) struct Fields {
    from: &'static str,
    to: &'static str,
}

const CREATED: Fields = Fields { from: "fromNodeId", to: "toNodeId" };
const UPDATED: Fields = Fields { from: "purpose", to: "purpose" };
pub(super) const RESTORED: Fields = Fields { from: "connectionId", to: "connectionId" };

impl Run<'_> {
    pub(super) fn create_connection(
        &mut self,
        from: &Ref<NodeId>,
        to: &Ref<NodeId>,
        purpose: Purpose,
        role: Option<Role>,
    ) -> Result<(NamedItem, String), Skipped> {
        let from = self.node(CREATED.from, from);
        let to = self.node(CREATED.to, to);
        let ends = Ends { from: from?, to: to?, purpose };
        if ends.from == ends.to {
            return Err(self.unprocessable(CREATED.to, "must name another node than `fromNodeId`"));
        }
        self.may_connect(ends, &CREATED)?;
        let mut connection = Connection {
            id: ConnectionId::generate(),
            short: None,
            from: self.node_at(ends.from).id.clone(),
            to: self.node_at(ends.to).id.clone(),
            purpose,
            role,
        };
        self.graph.give_connection_ref(&mut connection);
        let id = connection.id.to_string();
        let slot = self.graph.connections.end();
        self.journal.set_connection(self.graph, slot, Some(connection));
        Ok((NamedItem::Connection(slot), id))
    }

    /// Changing the purpose to anything but `reference` removes the role.
    pub(super) fn update_connection(
        &mut self,
        connection: &Ref<ConnectionId>,
        purpose: Option<Purpose>,
        role: Option<Option<Role>>,
    ) -> OperationResult {
        let slot = self.connection("connectionId", connection)?;
        let before = self.connection_at(slot).clone();
        let purpose = purpose.unwrap_or(before.purpose);
        let is_reference = purpose == Purpose::Reference;
        if !is_reference && role.flatten().is_some() {
            return Err(self.invalid("role", "must be omitted unless the purpose is `reference`"));
        }
        let role = if is_reference { role.unwrap_or(before.role) } else { None };
        let after = Connection { purpose, role, ..before.clone() };
        if after.purpose != before.purpose
            && let Some(ends) = self.graph.ends_of(&after)
        {
            self.may_connect(ends, &UPDATED)?;
        }
        if before != after {
            self.journal.set_connection(self.graph, slot, Some(after));
        }
        Ok(())
    }

    pub(super) fn delete_connection(&mut self, connection: &Ref<ConnectionId>) -> OperationResult {
        let slot = self.connection("connectionId", connection)?;
        self.remove_connection(slot);
        Ok(())
    }

    pub(super) fn remove_connection(&mut self, slot: usize) {
        let id = self.connection_at(slot).id.clone();
        self.journal.set_connection(self.graph, slot, None);
        self.deleted_connections.insert(id, slot);
    }

    /// Checks a new connection against the rules of the graph (`docs/reference/operations.md#rules-of-the-graph`) and
    /// records every violation.
    pub(super) fn may_connect(&mut self, ends: Ends, fields: &Fields) -> OperationResult {
        let violations = self.violations();
        let (from, to) = (self.node_at(ends.from).kind, self.node_at(ends.to).kind);
        let purpose = ends.purpose;
        if purpose == Purpose::Reference && from == NodeType::Video {
            self.unprocessable(fields.from, "a reference comes from an image, text or sticky node");
        }
        if purpose.is_frame() && from != NodeType::Image {
            self.unprocessable(fields.from, format!("a {purpose} comes from an image node"));
        }
        if purpose.is_frame() && to != NodeType::Video {
            self.unprocessable(fields.to, format!("a {purpose} goes to a video node"));
        }
        if self.graph.is_connected(ends) {
            self.unprocessable(fields.to, format!("these nodes are already connected with purpose {purpose}"));
        } else if self.graph.has_frame(ends.to, purpose) {
            self.unprocessable(fields.to, format!("this video already has a {purpose}"));
        }
        if self.violations() > violations { Err(Skipped) } else { Ok(()) }
    }

    fn connection_at(&self, slot: usize) -> &Connection {
        self.graph.connections.get(slot).expect("slots of connections are looked up in the operation that uses them")
    }
}
