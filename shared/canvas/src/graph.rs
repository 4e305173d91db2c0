//! The graph of a canvas in memory, with indexes that make the cost of an operation proportional to what it touches.
//!
//! Nodes and connections are found by id; the connections of a node and the members of a Section through sets of slots
//! in order of creation; whether two nodes are connected for a purpose through one lookup. A batch of 200 operations on
//! a canvas of 20000 nodes takes no step that grows with the canvas.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::Timestamp;
use domain::canvas::{self, Items};
use domain::graph::{Connection, DeletedConnection, DeletedNode, Node, NodeType, Purpose};
use domain::id::{AssetHandle, AssetRef, ConnectionId, NodeId};
use domain::refs::{ConnectionRef, NodeRef, RefCounters};

use crate::placement::{Frame, Index};
use crate::slots::Slots;

/// Emptied slots that a small graph may have.
const SPARSE_MAX: usize = 1024;

/// Nodes and connections of one canvas, in order of creation.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) title: String,
    pub(crate) bytes: i64,
    pub(crate) nodes: Slots<Node>,
    pub(crate) connections: Slots<Connection>,
    /// Connections of each node, by node slot.
    links: HashMap<usize, Links>,
    /// Slots of the members of each Section, by the Section's id.
    members: HashMap<String, BTreeSet<usize>>,
    ends: HashSet<Ends>,
    /// Videos that have a first or last frame.
    frames: HashSet<(usize, Purpose)>,
    /// The last refs that were given.
    pub(crate) refs: RefCounters,
    /// Places of the nodes, once something is placed.
    pub(crate) index: Option<Index>,
    pub(crate) sources: Sources,
}

/// Stored objects that operations can bring onto a canvas besides what they contain.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Deleted nodes that may be restored, in order of creation.
    pub nodes: Vec<DeletedNode>,
    /// Deleted connections that may be restored, in order of creation.
    pub connections: Vec<DeletedConnection>,
    /// Images that new nodes may show, as the request names them.
    pub assets: HashMap<AssetRef, AssetImage>,
    /// Width and height of the images that nodes take their height from, in pixels.
    pub sizes: HashMap<AssetHandle, (f64, f64)>,
}

/// An image or video that a node may show.
#[derive(Clone, Debug, PartialEq)]
pub struct AssetImage {
    pub asset: AssetHandle,
    /// The type of the nodes that may show it.
    pub shown_by: NodeType,
    /// Width and height in pixels, if they are known.
    pub size: Option<(f64, f64)>,
    /// When it was read, and so when it is placed.
    pub at: Timestamp,
}

/// How a later state of a graph differs from an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Later {
    pub title: String,
    /// Serialized size of all nodes and connections.
    pub bytes: i64,
    /// The last refs that were given.
    pub refs: RefCounters,
    pub nodes: Vec<Node>,
    pub deleted_nodes: Vec<NodeId>,
    pub connections: Vec<Connection>,
    pub deleted_connections: Vec<ConnectionId>,
}

/// Slots of a node's connections.
#[derive(Clone, Debug, Default)]
struct Links {
    incoming: BTreeSet<usize>,
    outgoing: BTreeSet<usize>,
}

/// Unique key of a connection: node slots and purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) purpose: Purpose,
}

impl Graph {
    /// The graph of these nodes and connections, each in order of creation. `bytes` is their serialized size from the
    /// canvas's row, so that it is not measured again. A connection to or from a node that does not exist is dropped:
    /// no read or operation could use it.
    pub fn new(title: String, bytes: i64, nodes: Vec<Node>, connections: Vec<Connection>) -> Self {
        Self::with_sources(title, bytes, nodes, connections, Sources::default())
    }

    /// [`Graph::new`], with what a batch may bring onto the canvas. Each deleted item has an empty slot in its place in
    /// the order of creation.
    pub fn with_sources(
        title: String,
        bytes: i64,
        nodes: Vec<Node>,
        connections: Vec<Connection>,
        sources: Sources,
    ) -> Self {
        let mut graph = Self {
            title,
            bytes,
            nodes: Slots::with_capacity(nodes.len()),
            connections: Slots::with_capacity(connections.len()),
            links: HashMap::with_capacity(nodes.len()),
            members: HashMap::new(),
            ends: HashSet::with_capacity(connections.len()),
            frames: HashSet::new(),
            refs: RefCounters::default(),
            index: None,
            sources,
        };
        for (at, node) in nodes.into_iter().enumerate() {
            graph.nodes.reserve(&graph.sources.nodes, |deleted| deleted.preceding <= at);
            graph.set_node(graph.nodes.end(), Some(node));
        }
        graph.nodes.reserve(&graph.sources.nodes, |_| true);
        for (at, connection) in connections.into_iter().enumerate() {
            graph.connections.reserve(&graph.sources.connections, |deleted| deleted.preceding <= at);
            if graph.ends_of(&connection).is_some() {
                graph.set_connection(graph.connections.end(), Some(connection));
            }
        }
        graph.connections.reserve(&graph.sources.connections, |_| true);
        graph.refs = RefCounters {
            node: graph.nodes.iter().filter_map(|node| node.short).map(NodeRef::number).max().unwrap_or_default(),
            connection: graph
                .connections
                .iter()
                .filter_map(|connection| connection.short)
                .map(ConnectionRef::number)
                .max()
                .unwrap_or_default(),
        };
        graph
    }

    /// The graph of a canvas that has given these refs, also to what was deleted since.
    #[must_use]
    pub fn after_refs(mut self, given: RefCounters) -> Self {
        self.refs = self.refs.max(given);
        self
    }

    /// Gives a new node its ref. One that is restored has it.
    pub(crate) fn give_node_ref(&mut self, node: &mut Node) {
        let nodes = &self.nodes;
        let is_id = |text| nodes.find(&NodeId::from_stored(text)).is_some();
        if node.short.is_none() {
            node.short = Some(self.refs.next_node(is_id));
        }
    }

    /// Gives a new connection its ref. One that is restored has it.
    pub(crate) fn give_connection_ref(&mut self, connection: &mut Connection) {
        let connections = &self.connections;
        let is_id = |text| connections.find(&ConnectionId::from_stored(text)).is_some();
        if connection.short.is_none() {
            connection.short = Some(self.refs.next_connection(is_id));
        }
    }

    /// Sets the images that the next batch needs: those that its new nodes show, as it names them, and the sizes of those
    /// that nodes take their height from.
    pub fn set_images(&mut self, assets: HashMap<AssetRef, AssetImage>, sizes: HashMap<AssetHandle, (f64, f64)>) {
        self.sources.assets = assets;
        self.sources.sizes = sizes;
    }

    /// The node of this id, or the deleted one that may be restored.
    pub(crate) fn present_or_deleted(&self, id: &NodeId) -> Option<&Node> {
        let deleted = || self.sources.nodes.iter().map(|deleted| &deleted.node).find(|node| node.id == *id);
        self.node(id).or_else(deleted)
    }

    /// Returns `true` if further batches may be applied to the graph. Otherwise it has empty slots of deleted items, or more that were
    /// emptied than are in use, and is to be made anew.
    pub fn is_dense(&self) -> bool {
        let is_dense = |end: usize, len: usize| end <= 2 * len + SPARSE_MAX;
        self.sources.nodes.is_empty()
            && self.sources.connections.is_empty()
            && is_dense(self.nodes.end(), self.nodes.len())
            && is_dense(self.connections.end(), self.connections.len())
    }

    /// Brings the graph to a later state. `nodes` and `connections` are those that were changed or made since, the made ones in
    /// order of creation, after all others. The cost is that of the difference. A connection to or from a node that does not
    /// exist is dropped.
    pub fn advance(&mut self, later: Later) {
        for id in &later.deleted_connections {
            self.connections.find(id).map(|slot| self.set_connection(slot, None));
        }
        for id in &later.deleted_nodes {
            let Some(slot) = self.nodes.find(id) else { continue };
            for link in self.links_at(slot) {
                self.set_connection(link, None);
            }
            self.set_node(slot, None);
        }
        for node in later.nodes {
            self.set_node(self.nodes.find(&node.id).unwrap_or(self.nodes.end()), Some(node));
        }
        // All are removed before any is set: one may have now what another had, such as the purpose between two nodes.
        let slots: Vec<Option<usize>> = later.connections.iter().map(|it| self.connections.find(&it.id)).collect();
        for slot in slots.iter().flatten() {
            self.set_connection(*slot, None);
        }
        for (connection, slot) in later.connections.into_iter().zip(slots) {
            if self.ends_of(&connection).is_some() {
                self.set_connection(slot.unwrap_or(self.connections.end()), Some(connection));
            }
        }
        self.title = later.title;
        self.bytes = later.bytes;
        self.refs = self.refs.max(later.refs);
    }

    /// Puts these nodes in the places of those of the same ids, and returns the previous ones.
    pub fn replace(&mut self, nodes: Vec<Node>) -> Vec<Node> {
        nodes.into_iter().filter_map(|node| self.set_node(self.nodes.find(&node.id)?, Some(node))).collect()
    }

    /// Drops the parsed form of what the service has written to nodes, which a review makes and which takes more memory than all
    /// else. It is parsed again when it is looked into.
    pub fn forget_parsed(&mut self) {
        self.nodes.for_each_unserved(|node| node.server.compact());
    }

    /// Nodes and connections, each in order of creation, without copying them.
    pub fn into_parts(self) -> (Vec<Node>, Vec<Connection>) {
        (self.nodes.into_items(), self.connections.into_items())
    }

    /// Title of the canvas.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Serialized size of nodes and connections.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Every node, in order of creation.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Every connection, in order of creation.
    pub fn connections(&self) -> impl DoubleEndedIterator<Item = &Connection> {
        self.connections.iter()
    }

    /// The nodes as they are served. The cost is that of a copy of the list and of serializing what changed since the last call.
    pub fn served_nodes(&self) -> Items<canvas::Node> {
        self.nodes.served()
    }

    /// The connections in the same way.
    pub fn served_connections(&self) -> Items<canvas::Connection> {
        self.connections.served()
    }

    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.get(self.nodes.find(id)?)
    }

    pub fn connection(&self, id: &ConnectionId) -> Option<&Connection> {
        self.connections.get(self.connections.find(id)?)
    }

    /// The connections into a node, in order of creation; empty if the node does not exist.
    pub fn incoming(&self, id: &NodeId) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links_of(id).map(|links| &links.incoming))
    }

    /// The connections out of a node, in order of creation; empty if the node does not exist.
    pub fn outgoing(&self, id: &NodeId) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links_of(id).map(|links| &links.outgoing))
    }

    /// The members of a Section, in order of creation.
    pub fn members(&self, section: &NodeId) -> impl Iterator<Item = &Node> {
        self.members.get(section.as_str()).into_iter().flatten().filter_map(|slot| self.nodes.get(*slot))
    }

    /// The Section that a node belongs to.
    pub(crate) fn section_of(&self, node: &Node) -> Option<&Node> {
        self.nodes.get(self.nodes.find(&NodeId::from_stored(node.section_id()?.to_owned()))?)
    }

    fn links_of(&self, id: &NodeId) -> Option<&Links> {
        self.links.get(&self.nodes.find(id)?)
    }

    fn connections_in<'a>(&'a self, slots: Option<&'a BTreeSet<usize>>) -> impl Iterator<Item = &'a Connection> {
        slots.into_iter().flatten().filter_map(|slot| self.connections.get(*slot))
    }

    /// The slots of every connection into or out of the node in `slot`, in order of creation.
    pub(crate) fn links_at(&self, slot: usize) -> BTreeSet<usize> {
        self.links.get(&slot).map(|links| &links.incoming | &links.outgoing).unwrap_or_default()
    }

    /// The connections out of the node in `slot`, in order of creation.
    pub(crate) fn outgoing_at(&self, slot: usize) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links.get(&slot).map(|links| &links.outgoing))
    }

    /// The slots of a Section's members, in order of creation.
    pub(crate) fn members_at(&self, section: &NodeId) -> BTreeSet<usize> {
        self.members.get(section.as_str()).cloned().unwrap_or_default()
    }

    pub(crate) fn has_members(&self, section: &NodeId) -> bool {
        self.members.contains_key(section.as_str())
    }

    pub(crate) fn is_connected(&self, ends: Ends) -> bool {
        self.ends.contains(&ends)
    }

    /// Returns `true` if the video in slot `video` already has a frame of this purpose.
    pub(crate) fn has_frame(&self, video: usize, purpose: Purpose) -> bool {
        self.frames.contains(&(video, purpose))
    }

    pub(crate) fn ends_of(&self, connection: &Connection) -> Option<Ends> {
        Some(Ends {
            from: self.nodes.find(&connection.from)?,
            to: self.nodes.find(&connection.to)?,
            purpose: connection.purpose,
        })
    }

    /// Replaces or removes the node in a slot, updates the index of members, and returns the previous node. The
    /// connections of a node must be removed before it.
    pub(crate) fn set_node(&mut self, slot: usize, node: Option<Node>) -> Option<Node> {
        let old = self.nodes.set(slot, node);
        if let Some(index) = &mut self.index {
            index.replace(slot, old.as_ref().map(Frame::from_node), self.nodes.get(slot).map(Frame::from_node));
        }
        if let Some(section) = old.as_ref().and_then(Node::section_id)
            && let Some(members) = self.members.get_mut(section)
        {
            members.remove(&slot);
            if members.is_empty() {
                self.members.remove(section);
            }
        }
        if let Some(section) = self.nodes.get(slot).and_then(Node::section_id) {
            self.members.entry(section.to_owned()).or_default().insert(slot);
        }
        old
    }

    /// Replaces or removes the connection in a slot, updates the indexes, and returns the previous connection. Both its
    /// nodes must exist.
    pub(crate) fn set_connection(&mut self, slot: usize, connection: Option<Connection>) -> Option<Connection> {
        let old = self.connections.set(slot, connection);
        if let Some(ends) = old.as_ref().and_then(|old| self.ends_of(old)) {
            self.ends.remove(&ends);
            self.frames.remove(&(ends.to, ends.purpose));
            if let Some(links) = self.links.get_mut(&ends.from) {
                links.outgoing.remove(&slot);
            }
            if let Some(links) = self.links.get_mut(&ends.to) {
                links.incoming.remove(&slot);
            }
        }
        if let Some(ends) = self.connections.get(slot).and_then(|new| self.ends_of(new)) {
            self.ends.insert(ends);
            if ends.purpose.is_frame() {
                self.frames.insert((ends.to, ends.purpose));
            }
            self.links.entry(ends.from).or_default().outgoing.insert(slot);
            self.links.entry(ends.to).or_default().incoming.insert(slot);
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{connection, id, image, member, section, text, video};

    #[test]
    fn nodes_connections_and_members_are_found_in_the_order_of_creation() {
        let nodes = vec![section("s"), member(text("b"), "s"), member(text("a"), "s")];
        let connections = vec![connection("c2", "b", "a", Purpose::Flow), connection("c1", "b", "a", Purpose::List)];
        let graph = Graph::new("Board".into(), 7, nodes.clone(), connections.clone());
        assert_eq!((graph.title(), graph.bytes(), graph.node_count(), graph.connection_count()), ("Board", 7, 3, 2));
        assert_eq!(graph.nodes().cloned().collect::<Vec<_>>(), nodes);
        assert_eq!(graph.connections().cloned().collect::<Vec<_>>(), connections);
        assert_eq!(graph.outgoing(&id("b")).cloned().collect::<Vec<_>>(), connections);
        assert_eq!(graph.incoming(&id("a")).cloned().collect::<Vec<_>>(), connections);
        assert_eq!(graph.members(&id("s")).map(|node| node.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(graph.incoming(&id("b")).count() + graph.outgoing(&id("gone")).count(), 0);
        assert_eq!(graph.node(&id("b")), Some(&nodes[1]));
        assert!(graph.node(&id("gone")).is_none());
        assert_eq!(graph.into_parts(), (nodes, connections));
    }

    #[test]
    fn an_advanced_graph_knows_what_connections_have_taken_from_each_other() {
        let nodes = vec![image("a"), image("b"), video("v")];
        let frames = |first: &str, last: &str| {
            vec![connection(first, "a", "v", Purpose::FirstFrame), connection(last, "b", "v", Purpose::LastFrame)]
        };
        let two =
            |one: Purpose, other: Purpose| vec![connection("c1", "a", "v", one), connection("c2", "a", "v", other)];
        for (before, after) in [
            (two(Purpose::FirstFrame, Purpose::LastFrame), two(Purpose::LastFrame, Purpose::FirstFrame)),
            (two(Purpose::Flow, Purpose::List), two(Purpose::List, Purpose::Flow)),
            (frames("c1", "c2"), frames("c2", "c1")),
        ] {
            let mut advanced = Graph::new(String::new(), 0, nodes.clone(), before);
            advanced.advance(Later { connections: after.clone(), ..Later::default() });
            let fresh = Graph::new(String::new(), 0, nodes.clone(), after);
            assert_eq!((&advanced.ends, &advanced.frames), (&fresh.ends, &fresh.frames));
        }
    }

    #[test]
    fn a_graph_is_dense_up_to_the_limit_of_emptied_slots() {
        let mut graph = Graph::new(String::new(), 0, Vec::new(), Vec::new());
        for (made, is_dense) in [(SPARSE_MAX - 1, true), (SPARSE_MAX, true), (SPARSE_MAX + 1, false)] {
            for slot in graph.nodes.end()..made {
                graph.set_node(slot, Some(text("a")));
                graph.set_node(slot, None);
            }
            assert_eq!(graph.is_dense(), is_dense, "{made} emptied slots");
        }
    }

    #[test]
    fn a_connection_with_an_end_that_is_no_node_is_left_out() {
        let graph = Graph::new(String::new(), 0, vec![image("a")], vec![connection("c", "a", "gone", Purpose::Flow)]);
        assert_eq!(graph.connection_count(), 0);
    }
}
