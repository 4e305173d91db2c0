//! A canvas's graph in memory, with the indexes that make each operation cost what it touches.
//!
//! Nodes and connections are found by id, a node's connections and a Section's members through sets of slots in the
//! order of creation, and whether two nodes are already connected for a purpose through one lookup: a batch of 200 on
//! a canvas of 20000 nodes does no step that grows with the canvas.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::graph::{Connection, Node, Purpose};
use domain::id::{ConnectionId, NodeId};

use crate::slots::Slots;

/// Nodes and connections of one canvas, in the order of creation.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) title: String,
    pub(crate) bytes: i64,
    pub(crate) nodes: Slots<Node>,
    pub(crate) connections: Slots<Connection>,
    /// By node slot.
    links: HashMap<usize, Links>,
    /// From a Section's id to the slots of its members.
    members: HashMap<String, BTreeSet<usize>>,
    ends: HashSet<Ends>,
    /// Videos that have a first or last frame.
    frames: HashSet<(usize, Purpose)>,
}

/// A node's connections, by slot.
#[derive(Clone, Debug, Default)]
struct Links {
    incoming: BTreeSet<usize>,
    outgoing: BTreeSet<usize>,
}

/// What no two connections of a canvas have in common (decisions 4.3): node slots and purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) purpose: Purpose,
}

impl Graph {
    /// The graph of these nodes and connections, each in the order of creation. `bytes` is their serialized size as
    /// the canvas's record keeps it, so that it need not be measured again. A connection one end of which is no node
    /// is left out: no read or operation could make sense of it.
    pub fn new(title: String, bytes: i64, nodes: Vec<Node>, connections: Vec<Connection>) -> Self {
        let mut graph = Self {
            title,
            bytes,
            nodes: Slots::with_capacity(nodes.len()),
            connections: Slots::with_capacity(connections.len()),
            links: HashMap::with_capacity(nodes.len()),
            members: HashMap::new(),
            ends: HashSet::with_capacity(connections.len()),
            frames: HashSet::new(),
        };
        for node in nodes {
            graph.set_node(graph.nodes.end(), Some(node));
        }
        for connection in connections {
            if graph.ends_of(&connection).is_some() {
                graph.set_connection(graph.connections.end(), Some(connection));
            }
        }
        graph
    }

    /// Its nodes and connections, each in the order of creation: to be served without a copy of each.
    pub fn into_parts(self) -> (Vec<Node>, Vec<Connection>) {
        (self.nodes.into_items(), self.connections.into_items())
    }

    /// The canvas's title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Serialized size of nodes and connections.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// How many connections there are.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Every node, in the order of creation.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// Every connection, in the order of creation.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter()
    }

    /// One node.
    pub fn node(&self, id: &NodeId) -> Option<&Node> {
        self.nodes.get(self.nodes.find(id)?)
    }

    /// One connection.
    pub fn connection(&self, id: &ConnectionId) -> Option<&Connection> {
        self.connections.get(self.connections.find(id)?)
    }

    /// The connections into a node, in the order of creation; none for a node that is not there.
    pub fn incoming(&self, id: &NodeId) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links_of(id).map(|links| &links.incoming))
    }

    /// The connections out of a node, in the order of creation; none for a node that is not there.
    pub fn outgoing(&self, id: &NodeId) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links_of(id).map(|links| &links.outgoing))
    }

    /// The nodes that belong to a Section, in the order of creation (decisions 3.4).
    pub fn members(&self, section: &NodeId) -> impl Iterator<Item = &Node> {
        self.members.get(section.as_str()).into_iter().flatten().filter_map(|slot| self.nodes.get(*slot))
    }

    fn links_of(&self, id: &NodeId) -> Option<&Links> {
        self.links.get(&self.nodes.find(id)?)
    }

    fn connections_in<'a>(&'a self, slots: Option<&'a BTreeSet<usize>>) -> impl Iterator<Item = &'a Connection> {
        slots.into_iter().flatten().filter_map(|slot| self.connections.get(*slot))
    }

    /// The slots of every connection into or out of the node in `slot`, in the order of creation.
    pub(crate) fn links_at(&self, slot: usize) -> BTreeSet<usize> {
        self.links.get(&slot).map(|links| &links.incoming | &links.outgoing).unwrap_or_default()
    }

    /// The connections out of the node in `slot`, in the order of creation.
    pub(crate) fn outgoing_at(&self, slot: usize) -> impl Iterator<Item = &Connection> {
        self.connections_in(self.links.get(&slot).map(|links| &links.outgoing))
    }

    /// The slots of a Section's members, in the order of creation.
    pub(crate) fn members_at(&self, section: &NodeId) -> BTreeSet<usize> {
        self.members.get(section.as_str()).cloned().unwrap_or_default()
    }

    pub(crate) fn has_members(&self, section: &NodeId) -> bool {
        self.members.contains_key(section.as_str())
    }

    pub(crate) fn is_connected(&self, ends: Ends) -> bool {
        self.ends.contains(&ends)
    }

    /// Whether the node in slot `video` has its first or last frame already.
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

    /// Puts a node, or nothing, into a slot and keeps the index of members true; what was there. A node is taken out
    /// after its connections.
    pub(crate) fn set_node(&mut self, slot: usize, node: Option<Node>) -> Option<Node> {
        let old = self.nodes.set(slot, node);
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

    /// Puts a connection between nodes that are there, or nothing, into a slot and keeps the indexes true; what was
    /// there.
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
    use crate::fixture::{connection, id, image, member, section, text};

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
    fn a_connection_with_an_end_that_is_no_node_is_left_out() {
        let graph = Graph::new(String::new(), 0, vec![image("a")], vec![connection("c", "a", "gone", Purpose::Flow)]);
        assert_eq!(graph.connection_count(), 0);
    }
}
