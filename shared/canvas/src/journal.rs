//! The original state of everything that a batch has touched.
//!
//! The journal makes a batch atomic without a copy of the graph: a roll-back costs what was touched. Compared with the
//! graph afterwards it is also the report, so that a change which a later operation reverses is not reported.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use domain::graph::{Connection, Node};
use domain::refs::RefCounters;

use crate::graph::Graph;
use crate::slots::{Keyed, Slots};

/// The state of a graph before a batch, as far as the batch has touched it.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) nodes: Originals<Node>,
    pub(crate) connections: Originals<Connection>,
    title: Option<String>,
    /// The last refs that were given before the batch.
    refs: RefCounters,
}

impl Journal {
    pub(crate) fn new(graph: &Graph) -> Self {
        Self { refs: graph.refs, ..Self::default() }
    }

    /// Sets or removes the node in a slot of the graph. The graph holds metadata as text: a batch may touch any number of nodes, and
    /// parsed metadata may take a hundred times the memory.
    pub(crate) fn set_node(&mut self, graph: &mut Graph, slot: usize, mut node: Option<Node>) {
        if let Some(node) = &mut node {
            node.metadata.compact();
            node.server.compact();
        }
        let old = graph.set_node(slot, node);
        self.nodes.note(slot, old);
    }

    /// Sets or removes the connection in a slot of the graph.
    pub(crate) fn set_connection(&mut self, graph: &mut Graph, slot: usize, connection: Option<Connection>) {
        let old = graph.set_connection(slot, connection);
        self.connections.note(slot, old);
    }

    /// Renames the canvas.
    pub(crate) fn set_title(&mut self, graph: &mut Graph, title: String) {
        let old = std::mem::replace(&mut graph.title, title);
        self.title.get_or_insert(old);
    }

    /// The title before the batch, if it was touched.
    pub(crate) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Restores the graph. Connections are removed first and restored last, because the indexes of a connection need
    /// the nodes at its ends.
    pub(crate) fn roll_back(self, graph: &mut Graph) {
        for (slot, _) in &self.connections.touched {
            graph.set_connection(*slot, None);
        }
        for (slot, node) in self.nodes.touched {
            graph.set_node(slot, node);
        }
        for (slot, connection) in self.connections.touched {
            graph.set_connection(slot, connection);
        }
        if let Some(title) = self.title {
            graph.title = title;
        }
        graph.refs = self.refs;
    }
}

/// Touched items of one kind, each once in first-touch order, in their original state; `None` for an item that did not
/// exist.
pub(crate) struct Originals<T> {
    touched: Vec<(usize, Option<T>)>,
    /// Positions in `touched`, by slot.
    seen: HashMap<usize, usize>,
}

impl<T> Default for Originals<T> {
    fn default() -> Self {
        Self { touched: Vec::new(), seen: HashMap::new() }
    }
}

/// How one item changed.
pub(crate) enum ItemChange<'a, T> {
    Created(&'a T),
    Changed { before: &'a T, after: &'a T },
    Deleted(&'a T),
}

impl<T: Keyed + PartialEq> Originals<T> {
    fn note(&mut self, slot: usize, original: Option<T>) {
        if let Entry::Vacant(vacant) = self.seen.entry(slot) {
            vacant.insert(self.touched.len());
            self.touched.push((slot, original));
        }
    }

    /// The original item in a touched slot; `None` if there was none.
    pub(crate) fn original(&self, slot: usize) -> Option<&T> {
        self.touched[*self.seen.get(&slot)?].1.as_ref()
    }

    /// The original items that were touched.
    pub(crate) fn originals(&self) -> impl Iterator<Item = &T> {
        self.touched.iter().filter_map(|(_, original)| original.as_ref())
    }

    /// The change of every item that differs from its original state, in first-touch order.
    pub(crate) fn item_changes<'a>(&'a self, now: &'a Slots<T>) -> impl Iterator<Item = ItemChange<'a, T>> {
        self.touched.iter().filter_map(|(slot, original)| match (original, now.get(*slot)) {
            (None, Some(after)) => Some(ItemChange::Created(after)),
            (Some(before), None) => Some(ItemChange::Deleted(before)),
            (Some(before), Some(after)) if before != after => Some(ItemChange::Changed { before, after }),
            _ => None,
        })
    }
}
