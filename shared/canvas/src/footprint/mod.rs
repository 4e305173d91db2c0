//! The parts of a canvas that a request reads and writes, so that it may be based on an earlier revision
//! (`docs/reference/conventions.md#stale-revisions`).
//!
//! **Guarantee.** When nothing in a batch's footprint changed since the base revision, the batch does to the present graph what it
//! would have done to that of the base revision, except that the service may choose other places.
//!
//! **Mechanism.** A footprint names nodes, connections and Sections by id, and so do the changes. What it takes from the present
//! graph, such as the Section of a node that moves, is as it was at the base revision, or the node itself is among the changes.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::canvas::ConcurrentChanges;
use domain::graph::{Connection, Node, Purpose};
use domain::id::{ConnectionId, NodeId};
use domain::operation::Arrangement;

use crate::batch::{Arranged, Batch, Goal, Step};
use crate::graph::Graph;
use crate::metadata::{Home, MetadataPatch};
use crate::reference::Ref;

/// The parts of a canvas that a request reads and writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    nodes: BTreeSet<NodeId>,
    connections: BTreeSet<ConnectionId>,
    /// Connections by their ends, from and to; `None` stands for any node.
    links: HashSet<(Option<NodeId>, Option<NodeId>)>,
    /// Sections whose members count.
    sections: BTreeSet<NodeId>,
    title: bool,
}

impl Footprint {
    /// The footprint of a request that reads these nodes.
    pub fn of_nodes<'a>(nodes: impl IntoIterator<Item = &'a NodeId>) -> Self {
        Self { nodes: nodes.into_iter().cloned().collect(), ..Self::default() }
    }

    /// The part of a batch's footprint that follows from the batch alone.
    pub fn named_by(batch: &Batch) -> Self {
        Walk::over(batch, None)
    }

    /// The footprint of a batch on the present graph, which is loaded with what the batch restores.
    pub fn from_batch(batch: &Batch, graph: &Graph) -> Self {
        Walk::over(batch, Some(graph))
    }

    /// The footprint with these nodes, too.
    pub fn with_nodes<'a>(mut self, nodes: impl IntoIterator<Item = &'a NodeId>) -> Self {
        self.nodes.extend(nodes.into_iter().cloned());
        self
    }

    /// The footprint with the connections into these nodes.
    pub fn with_links_into<'a>(mut self, nodes: impl IntoIterator<Item = &'a NodeId>) -> Self {
        self.links.extend(nodes.into_iter().map(|node| (None, Some(node.clone()))));
        self
    }

    /// The nodes in the footprint that changed, or of which connections or members in the footprint did; `None` when nothing in
    /// the footprint changed. The list is empty when only the title did.
    pub fn conflict(&self, since: &ConcurrentChanges) -> Option<Vec<NodeId>> {
        let mut nodes: BTreeSet<&NodeId> = self.nodes.iter().filter(|node| since.nodes.contains(node)).collect();
        nodes.extend(self.sections.iter().filter(|section| since.regrouped.contains(section)));
        let mut has_changed = self.title && since.renamed;
        for (id, (from, to)) in &since.connections {
            let is_named = self.connections.contains(id);
            if is_named || self.reads_link(from, to) {
                has_changed = true;
                nodes.extend([from, to].into_iter().filter(|end| is_named || self.nodes.contains(end)));
            }
        }
        (has_changed || !nodes.is_empty()).then(|| nodes.into_iter().cloned().collect())
    }

    fn reads_link(&self, from: &NodeId, to: &NodeId) -> bool {
        let (from, to) = (Some(from.clone()), Some(to.clone()));
        [(from.clone(), to.clone()), (from, None), (None, to)].iter().any(|ends| self.links.contains(ends))
    }
}

/// Collects the footprint of a batch.
struct Walk<'a> {
    footprint: Footprint,
    graph: Option<&'a Graph>,
    /// The `clientId`s so far; that of a connection with the node that it leads to, unless the batch created that one, too.
    made: HashMap<&'a str, Option<NodeId>>,
}

impl<'a> Walk<'a> {
    fn over(batch: &'a Batch, graph: Option<&'a Graph>) -> Footprint {
        let mut walk = Self { footprint: Footprint::default(), graph, made: HashMap::new() };
        for step in &batch.steps {
            walk.step(step);
        }
        walk.footprint
    }

    fn step(&mut self, step: &'a Step) {
        match step {
            Step::CreateNode { client_id, draft } => {
                self.join(&draft.metadata);
                if let Some(near) = &draft.near {
                    self.node(near);
                }
                self.name(client_id.as_deref(), None);
            }
            Step::UpdateNode { node, patch } => {
                self.join(&patch.metadata);
                let node = self.node(node);
                if patch.width.is_some() || patch.height.is_some() {
                    self.section_of(node.as_ref());
                }
                if patch.metadata.unmakes_section() {
                    self.footprint.sections.extend(node);
                }
            }
            Step::MoveNode { node, position, with_members } => {
                // Members stay where they are when their Section does, which an earlier operation may have moved.
                let is_named = self.footprint.nodes.contains(&node.id);
                let stays = |node: &Node| node.position == *position;
                if *with_members && (is_named || !self.stored_node(&node.id).is_some_and(stays)) {
                    self.group(node);
                } else {
                    let node = self.node(node);
                    self.section_of(node.as_ref());
                }
            }
            Step::Arrange { what, goal, style } => {
                let named: &[Ref<NodeId>] = match what {
                    Arranged::Nodes(nodes) => nodes,
                    Arranged::Section(section) => std::slice::from_ref(section),
                };
                named.iter().for_each(|node| self.group(node));
                if style.layout == Arrangement::Flow {
                    self.links_of(named);
                }
                self.goal(goal);
            }
            Step::FitNode { node } => {
                let node = self.node(node);
                self.section_of(node.as_ref());
            }
            Step::FitSection { section, .. } => self.group(section),
            Step::CreateSection { client_id, nodes, goal, .. } => {
                for node in nodes {
                    let node = self.node(node);
                    self.section_of(node.as_ref());
                }
                self.goal(goal);
                self.name(client_id.as_deref(), None);
            }
            Step::DuplicateNode { node, client_id, .. } => {
                let node = self.node(node);
                self.section_of(node.as_ref());
                self.name(client_id.as_deref(), None);
            }
            Step::DeleteNode { node } => self.delete_node(node),
            Step::RestoreNode { node } => self.restore_node(node),
            Step::CreateConnection { client_id, from, to, purpose, .. } => {
                let (from, to) = (self.node(from), self.node(to));
                self.connect(from.as_ref(), to.as_ref(), *purpose);
                self.name(client_id.as_deref(), to);
            }
            Step::UpdateConnection { connection, purpose, .. } => self.update_connection(connection, *purpose),
            Step::DeleteConnection { connection } => {
                self.connection(connection);
            }
            Step::RestoreConnection { connection } => self.restore_connection(connection),
            Step::RenameCanvas { .. } => self.footprint.title = true,
        }
    }

    fn name(&mut self, client_id: Option<&'a str>, leads_to: Option<NodeId>) {
        self.made.extend(client_id.map(|client_id| (client_id, leads_to)));
    }

    /// Adds a node that the batch names, and returns it, unless the batch created it.
    fn node(&mut self, node: &Ref<NodeId>) -> Option<NodeId> {
        if !node.is_handle && self.made.contains_key(node.id.as_str()) {
            return None;
        }
        self.footprint.nodes.insert(node.id.clone());
        Some(node.id.clone())
    }

    /// [`Walk::node`] for a connection.
    fn connection(&mut self, connection: &Ref<ConnectionId>) -> Option<ConnectionId> {
        if !connection.is_handle && self.made.contains_key(connection.id.as_str()) {
            return None;
        }
        self.footprint.connections.insert(connection.id.clone());
        Some(connection.id.clone())
    }

    /// Adds the Section that metadata joins.
    fn join(&mut self, metadata: &MetadataPatch) {
        if let Home::Join(section) = &metadata.home {
            self.node(section);
        }
    }

    /// Adds the Section of a node: a position and a size are chosen with it in view.
    fn section_of(&mut self, node: Option<&NodeId>) {
        let section = self.graph.zip(node).and_then(|(graph, node)| graph.node(node)?.section_id());
        self.footprint.nodes.extend(section.map(|section| NodeId::from_stored(section.to_owned())));
    }

    /// Adds a node that is placed with its Section in view, and with its members if it is a Section itself.
    fn group(&mut self, node: &Ref<NodeId>) {
        let Some(node) = self.node(node) else { return };
        self.section_of(Some(&node));
        if let Some(graph) = self.graph.filter(|graph| graph.node(&node).is_some_and(Node::is_section)) {
            self.footprint.nodes.extend(graph.members(&node).map(|member| member.id.clone()));
            self.footprint.sections.insert(node);
        }
    }

    /// Adds the connections out of nodes that are arranged along them, and of those that they take along.
    fn links_of(&mut self, nodes: &[Ref<NodeId>]) {
        for Ref { id, .. } in nodes {
            let members = self.graph.into_iter().flat_map(|graph| graph.members(id)).map(|member| member.id.clone());
            self.footprint.links.extend(members.chain([id.clone()]).map(|node| (Some(node), None)));
        }
    }

    fn goal(&mut self, goal: &Goal) {
        if let Goal::Near(near) = goal {
            self.node(near);
        }
    }

    /// A deletion takes connections along, and frees members.
    fn delete_node(&mut self, node: &Ref<NodeId>) {
        let Some(node) = self.node(node) else { return };
        if let Some(graph) = self.graph {
            self.footprint.nodes.extend(graph.members(&node).map(|member| member.id.clone()));
        }
        self.footprint.links.extend([(Some(node.clone()), None), (None, Some(node.clone()))]);
        self.footprint.sections.insert(node);
    }

    /// A restored node returns to its Section, and its former members to it.
    fn restore_node(&mut self, node: &Ref<NodeId>) {
        let Some(node) = self.node(node) else { return };
        self.section_of(Some(&node));
        let Some(graph) = self.graph else { return };
        if let Some((_, at)) = graph.nodes.find_deleted(&node) {
            let deleted = &graph.sources.nodes[at];
            let section = deleted.node.section_id().map(|section| NodeId::from_stored(section.to_owned()));
            self.footprint.nodes.extend(section.into_iter().chain(deleted.members.iter().cloned()));
        }
    }

    /// Adds what the rules of the graph read for a connection between these nodes, unless the batch created them.
    fn connect(&mut self, from: Option<&NodeId>, to: Option<&NodeId>, purpose: Purpose) {
        let Some(to) = to else { return };
        if purpose.is_frame() {
            self.footprint.links.insert((None, Some(to.clone())));
        } else if let Some(from) = from {
            self.footprint.links.insert((Some(from.clone()), Some(to.clone())));
        }
    }

    fn update_connection(&mut self, connection: &Ref<ConnectionId>, purpose: Option<Purpose>) {
        let named = self.connection(connection);
        let Some(purpose) = purpose else { return };
        match named {
            Some(id) => {
                if let Some(Connection { from, to, .. }) = self.stored(&id) {
                    self.connect(Some(from), Some(to), purpose);
                }
            }
            None => {
                let to = self.made.get(connection.id.as_str()).cloned().flatten();
                self.connect(None, to.as_ref(), purpose);
            }
        }
    }

    /// A restored connection needs its ends.
    fn restore_connection(&mut self, connection: &Ref<ConnectionId>) {
        let Some(id) = self.connection(connection) else { return };
        if let Some(Connection { from, to, purpose, .. }) = self.stored(&id) {
            self.footprint.nodes.extend([from.clone(), to.clone()]);
            self.connect(Some(from), Some(to), *purpose);
        }
    }

    fn stored_node(&self, id: &NodeId) -> Option<&'a Node> {
        self.graph?.node(id)
    }

    /// A connection on the canvas, or a deleted one that the batch restores.
    fn stored(&self, id: &ConnectionId) -> Option<&'a Connection> {
        let graph = self.graph?;
        let deleted = |(_, at): (usize, usize)| &graph.sources.connections[at].connection;
        graph.connection(id).or_else(|| graph.connections.find_deleted(id).map(deleted))
    }
}

#[cfg(test)]
mod tests;
