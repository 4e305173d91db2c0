//! The report of a batch, derived from the journal.

use std::collections::{BTreeMap, HashMap, HashSet};

use domain::Violation;
use domain::canvas::Changes;
use domain::graph::{GraphWrites, Node};
use domain::id::{AssetHandle, ConnectionId, NodeId};
use domain::limits::{CANVAS_BYTES_MAX, CANVAS_CONNECTIONS_MAX, CANVAS_NODES_MAX};

use super::{Refused, Run};
use crate::graph::Graph;
use crate::journal::{ItemChange, Journal};
use crate::size::serialized_size;

/// The effects of an applied batch on its graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The differences, in first-touch order. Items that the batch created and deleted, or changed and changed back,
    /// are not listed.
    pub changes: Changes,
    /// Created plain id for each `clientId`.
    pub resolved_ids: BTreeMap<String, String>,
    /// The new title, if it differs.
    pub title: Option<String>,
    /// Created nodes minus deleted nodes.
    pub nodes_delta: i32,
    /// Created connections minus deleted connections.
    pub connections_delta: i32,
    /// Growth of the serialized graph, in bytes.
    pub bytes_delta: i64,
    /// `true` if it adds something: a new node or connection, or more content of one. Moves, deletions and restored items add nothing.
    pub grows: bool,
    /// Assets of deleted nodes that no node shows anymore.
    pub detached_assets: Vec<AssetHandle>,
    /// Deleted nodes that were restored.
    pub restored_nodes: Vec<NodeId>,
    /// Deleted connections that were restored.
    pub restored_connections: Vec<ConnectionId>,
    /// Members of deleted Sections: Section and member.
    pub freed: Vec<(NodeId, NodeId)>,
    /// Sections that gained or lost members.
    pub regrouped: Vec<NodeId>,
    /// Input of the search for findings.
    pub touched: Touched,
}

/// The records that a batch touched, as far as findings depend on them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    /// Nodes created, moved or resized. A node that is restored where it was is not among them: its overlaps do not
    /// block.
    pub placed: HashSet<NodeId>,
    /// Nodes whose Section changed, including nodes that joined their first Section or left their Section.
    pub rehomed: HashSet<NodeId>,
    /// Sections created or changed in any way.
    pub sections: HashSet<NodeId>,
    /// Connections created or changed.
    pub connections: HashSet<ConnectionId>,
}

impl Applied {
    /// The writes that turn the stored graph into `graph`, to which the batch was applied.
    pub fn writes<'a>(&'a self, graph: &'a Graph) -> GraphWrites<'a> {
        GraphWrites {
            nodes: self.changes.changed_node_ids.iter().filter_map(|id| graph.node(id)).collect(),
            deleted_nodes: self.changes.deleted_node_ids.iter().collect(),
            connections: self.changes.changed_connection_ids.iter().filter_map(|id| graph.connection(id)).collect(),
            deleted_connections: self.changes.deleted_connection_ids.iter().collect(),
            restored_nodes: self.restored_nodes.iter().collect(),
            restored_connections: self.restored_connections.iter().collect(),
            freed: self.freed.iter().map(|(section, member)| (section, member)).collect(),
        }
    }

    fn note_nodes(&mut self, graph: &Graph, journal: &Journal, (restored, returned): (&Restored, &Returned)) {
        let mut deleted_sections = HashSet::new();
        for change in journal.nodes.item_changes(&graph.nodes) {
            self.note_sections(&change);
            match change {
                ItemChange::Created(node) => {
                    self.nodes_delta += 1;
                    self.bytes_delta += serialized_size(node);
                    self.changes.changed_node_ids.push(node.id.clone());
                    let before = restored.get(node.id.as_str());
                    self.grows |= before.is_none();
                    self.restored_nodes.extend(before.map(|before| before.id.clone()));
                    self.touched.note(before, node, (restored, returned));
                }
                ItemChange::Changed { before, after } => {
                    let growth = serialized_size(after) - serialized_size(before);
                    self.bytes_delta += growth;
                    self.grows |= growth > 0 && !is_moved(before, after);
                    self.changes.changed_node_ids.push(after.id.clone());
                    self.touched.note(Some(before), after, (restored, returned));
                }
                ItemChange::Deleted(node) => {
                    self.nodes_delta -= 1;
                    self.bytes_delta -= serialized_size(node);
                    self.changes.deleted_node_ids.push(node.id.clone());
                    if node.is_section() {
                        deleted_sections.insert(node.id.as_str());
                    }
                    if let Some(asset) = node.asset.as_ref().filter(|asset| !self.detached_assets.contains(asset)) {
                        self.detached_assets.push(asset.clone());
                    }
                }
            }
        }
        if !deleted_sections.is_empty() {
            let section =
                |member: &Node| Some(NodeId::from_stored(deleted_sections.get(member.section_id()?)?.to_string()));
            let freed = journal.nodes.originals().filter_map(|member| Some((section(member)?, member.id.clone())));
            self.freed = freed.collect();
        }
        if !self.detached_assets.is_empty() {
            let shown: HashSet<&AssetHandle> = graph.nodes().filter_map(|node| node.asset.as_ref()).collect();
            self.detached_assets.retain(|asset| !shown.contains(asset));
        }
    }

    /// Notes the Sections of which a change made or unmade a member.
    fn note_sections(&mut self, change: &ItemChange<'_, Node>) {
        let (before, after) = match change {
            ItemChange::Created(node) => (None, node.section_id()),
            ItemChange::Changed { before, after } => (before.section_id(), after.section_id()),
            ItemChange::Deleted(node) => (node.section_id(), None),
        };
        let sections = [before, after].into_iter().flatten().filter(|_| before != after);
        self.regrouped.extend(sections.map(|section| NodeId::from_stored(section.to_owned())));
    }

    fn note_connections(&mut self, graph: &Graph, journal: &Journal) {
        for change in journal.connections.item_changes(&graph.connections) {
            match change {
                ItemChange::Created(connection) => {
                    self.connections_delta += 1;
                    self.bytes_delta += serialized_size(connection);
                    self.changes.changed_connection_ids.push(connection.id.clone());
                    self.touched.connections.insert(connection.id.clone());
                    match graph.connections.find_deleted(&connection.id) {
                        Some(_) => self.restored_connections.push(connection.id.clone()),
                        None => self.grows = true,
                    }
                }
                ItemChange::Changed { before, after } => {
                    self.bytes_delta += serialized_size(after) - serialized_size(before);
                    self.changes.changed_connection_ids.push(after.id.clone());
                    self.touched.connections.insert(after.id.clone());
                }
                ItemChange::Deleted(connection) => {
                    self.connections_delta -= 1;
                    self.bytes_delta -= serialized_size(connection);
                    self.changes.deleted_connection_ids.push(connection.id.clone());
                }
            }
        }
    }
}

/// Returns `true` if only the frame of a node changed.
fn is_moved(before: &Node, after: &Node) -> bool {
    before.title == after.title
        && before.metadata == after.metadata
        && before.server == after.server
        && before.asset == after.asset
}

/// Deleted nodes as they were restored, by id.
type Restored = HashMap<String, Node>;
/// Members that a restored Section got back, with the Section.
type Returned = HashMap<NodeId, NodeId>;

impl Touched {
    /// Notes how a node differs from its state before the batch, or from the state in which it was restored.
    fn note(&mut self, before: Option<&Node>, after: &Node, (restored, returned): (&Restored, &Returned)) {
        let frame = |node: &Node| (node.position, node.width, node.height);
        if before.map(frame) != Some(frame(after)) {
            self.placed.insert(after.id.clone());
        }
        let section = after.section_id();
        let is_back = section.is_some() && returned.get(&after.id).map(NodeId::as_str) == section;
        if before.and_then(Node::section_id) != section && !is_back {
            self.rehomed.insert(after.id.clone());
        }
        if after.is_section() && restored.get(after.id.as_str()).map(frame) != Some(frame(after)) {
            self.sections.insert(after.id.clone());
        }
    }
}

impl Run<'_> {
    /// Ends the batch: it is applied as a whole or not at all.
    pub(super) fn finish(mut self) -> Result<Applied, Refused> {
        if self.violations() == 0 {
            let mut applied = Applied { resolved_ids: self.resolved_ids, ..Applied::default() };
            applied.title =
                self.journal.title().filter(|before| *before != self.graph.title).map(|_| self.graph.title.clone());
            applied.note_nodes(self.graph, &self.journal, (&self.restored, &self.returned));
            applied.note_connections(self.graph, &self.journal);
            applied.regrouped.sort_unstable();
            applied.regrouped.dedup();
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

/// Checks the limits of a canvas against the state after the batch, not against intermediate states. A batch passes if
/// it does not grow what exceeds its limit, so that a canvas that the service itself filled up can be cleared.
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
