//! What a batch did, read off the journal.

use std::collections::{BTreeMap, HashSet};

use domain::Violation;
use domain::canvas::Changes;
use domain::graph::{Connection, Node};
use domain::id::{AssetHandle, ConnectionId, NodeId};
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_CONNECTIONS_MAX, CANVAS_NODES_MAX};

use super::{Refused, Run};
use crate::graph::Graph;
use crate::journal::{Fate, Journal};
use crate::size::serialized_size;

/// What an applied batch did to its graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// What differs from before, in first-touch order. What the batch made and deleted again, or changed and changed
    /// back, is in no list.
    pub changes: Changes,
    /// From each `clientId` to the plain id that was made.
    pub resolved_ids: BTreeMap<String, String>,
    /// The new title, when it differs.
    pub title: Option<String>,
    /// Nodes made less nodes deleted.
    pub nodes_delta: i32,
    /// Connections made less connections deleted.
    pub connections_delta: i32,
    /// Growth of the serialized graph, in bytes.
    pub bytes_delta: i64,
    /// Assets of deleted nodes that no node shows any more (decisions 4.5).
    pub detached_assets: Vec<AssetHandle>,
    /// What findings are judged by.
    pub touched: Touched,
}

/// What a batch touched, as far as findings ask (decisions 5.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    /// Nodes created, moved or resized.
    pub placed: HashSet<NodeId>,
    /// Nodes that belong to another Section than before, or to one for the first time, or to none any more.
    pub rehomed: HashSet<NodeId>,
    /// Sections created or changed, in whatever way.
    pub sections: HashSet<NodeId>,
    /// Connections created or changed.
    pub connections: HashSet<ConnectionId>,
}

/// The rows that an applied batch makes or changes and those that it deletes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes<'a> {
    /// Nodes to make or to change; those to make in the order of creation.
    pub nodes: Vec<&'a Node>,
    /// Nodes to delete.
    pub deleted_nodes: Vec<&'a NodeId>,
    /// Connections to make or to change; those to make in the order of creation.
    pub connections: Vec<&'a Connection>,
    /// Connections to delete, before others are written: one that is made may take the place of one deleted.
    pub deleted_connections: Vec<&'a ConnectionId>,
}

impl Applied {
    /// What is to be written so that the stored graph becomes `graph`, the one that the batch was applied to.
    pub fn writes<'a>(&'a self, graph: &'a Graph) -> Writes<'a> {
        Writes {
            nodes: self.changes.changed_node_ids.iter().filter_map(|id| graph.node(id)).collect(),
            deleted_nodes: self.changes.deleted_node_ids.iter().collect(),
            connections: self.changes.changed_connection_ids.iter().filter_map(|id| graph.connection(id)).collect(),
            deleted_connections: self.changes.deleted_connection_ids.iter().collect(),
        }
    }

    fn note_nodes(&mut self, graph: &Graph, journal: &Journal) {
        for fate in journal.nodes.fates(&graph.nodes) {
            match fate {
                Fate::Created(node) => {
                    self.nodes_delta += 1;
                    self.bytes_delta += serialized_size(node);
                    self.changes.changed_node_ids.push(node.id.clone());
                    self.touched.placed.insert(node.id.clone());
                    if node.section_id().is_some() {
                        self.touched.rehomed.insert(node.id.clone());
                    }
                    if node.is_section() {
                        self.touched.sections.insert(node.id.clone());
                    }
                }
                Fate::Changed { before, after } => {
                    self.bytes_delta += serialized_size(after) - serialized_size(before);
                    self.changes.changed_node_ids.push(after.id.clone());
                    if (before.position, before.width, before.height) != (after.position, after.width, after.height) {
                        self.touched.placed.insert(after.id.clone());
                    }
                    if before.section_id() != after.section_id() {
                        self.touched.rehomed.insert(after.id.clone());
                    }
                    if after.is_section() {
                        self.touched.sections.insert(after.id.clone());
                    }
                }
                Fate::Deleted(node) => {
                    self.nodes_delta -= 1;
                    self.bytes_delta -= serialized_size(node);
                    self.changes.deleted_node_ids.push(node.id.clone());
                    if let Some(asset) = node.asset.as_ref().filter(|asset| !self.detached_assets.contains(asset)) {
                        self.detached_assets.push(asset.clone());
                    }
                }
            }
        }
        if !self.detached_assets.is_empty() {
            let shown: HashSet<&AssetHandle> = graph.nodes().filter_map(|node| node.asset.as_ref()).collect();
            self.detached_assets.retain(|asset| !shown.contains(asset));
        }
    }

    fn note_connections(&mut self, graph: &Graph, journal: &Journal) {
        for fate in journal.connections.fates(&graph.connections) {
            match fate {
                Fate::Created(connection) => {
                    self.connections_delta += 1;
                    self.bytes_delta += serialized_size(connection);
                    self.changes.changed_connection_ids.push(connection.id.clone());
                    self.touched.connections.insert(connection.id.clone());
                }
                Fate::Changed { before, after } => {
                    self.bytes_delta += serialized_size(after) - serialized_size(before);
                    self.changes.changed_connection_ids.push(after.id.clone());
                    self.touched.connections.insert(after.id.clone());
                }
                Fate::Deleted(connection) => {
                    self.connections_delta -= 1;
                    self.bytes_delta -= serialized_size(connection);
                    self.changes.deleted_connection_ids.push(connection.id.clone());
                }
            }
        }
    }
}

impl Run<'_> {
    /// Ends the batch: as a whole, or not at all.
    pub(super) fn finish(mut self) -> Result<Applied, Refused> {
        if self.violations() == 0 {
            let mut applied = Applied { resolved_ids: self.resolved_ids, ..Applied::default() };
            applied.title =
                self.journal.title().filter(|before| *before != self.graph.title).map(|_| self.graph.title.clone());
            applied.note_nodes(self.graph, &self.journal);
            applied.note_connections(self.graph, &self.journal);
            self.unprocessable = beyond_limits(self.graph, &applied);
            if self.unprocessable.is_empty() {
                self.graph.bytes += applied.bytes_delta;
                return Ok(applied);
            }
        }
        self.journal.roll_back(self.graph);
        if self.invalid.is_empty() {
            return Err(Refused::Unprocessable(self.unprocessable));
        }
        self.invalid.append(&mut self.unprocessable);
        Err(Refused::Invalid(self.invalid))
    }
}

/// The limits of a canvas (decisions 3.2, 3.7) judge what a batch leaves, not the way there; a batch that does not
/// grow what is beyond its limit passes, so that a canvas which the service itself filled up can be cleared.
fn beyond_limits(graph: &Graph, applied: &Applied) -> Vec<Violation> {
    let mut violations = Vec::new();
    if applied.nodes_delta > 0 && graph.node_count() > CANVAS_NODES_MAX {
        violations.push(Violation::new("operations", format!("a canvas holds at most {CANVAS_NODES_MAX} nodes")));
    }
    if applied.connections_delta > 0 && graph.connection_count() > CANVAS_CONNECTIONS_MAX {
        let message = format!("a canvas holds at most {CANVAS_CONNECTIONS_MAX} connections");
        violations.push(Violation::new("operations", message));
    }
    if applied.bytes_delta > 0 && graph.bytes() + applied.bytes_delta > CANVAS_BYTES_MAX {
        violations.push(Violation::new("operations", format!("a canvas holds at most {CANVAS_BYTES_MAX} bytes")));
    }
    violations
}
