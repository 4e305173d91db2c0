//! What a batch has touched so far, each as it was before.
//!
//! The journal makes a batch atomic without copying the graph: taking everything back costs what was touched. Compared
//! with the graph afterwards it is also the report, so that a step which another one undid is no change (decisions 4.2,
//! 4.4).

use std::collections::HashSet;

use domain::graph::{Connection, Node};

use crate::graph::Graph;
use crate::slots::{Keyed, Slots};

/// The state of a graph before a batch, as far as the batch has touched it.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) nodes: Originals<Node>,
    pub(crate) connections: Originals<Connection>,
    title: Option<String>,
}

impl Journal {
    /// Sets a node, or none, in a slot of the graph.
    pub(crate) fn set_node(&mut self, graph: &mut Graph, slot: usize, node: Option<Node>) {
        let old = graph.set_node(slot, node);
        self.nodes.note(slot, old);
    }

    /// Sets a connection, or none, in a slot of the graph.
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

    /// Takes everything back. Connections leave first and return last, because the indexes of a connection need the
    /// nodes at its ends.
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
    }
}

/// Touched items of one kind, once each in first-touch order, as they were before; `None` for what was not there.
pub(crate) struct Originals<T> {
    touched: Vec<(usize, Option<T>)>,
    seen: HashSet<usize>,
}

impl<T> Default for Originals<T> {
    fn default() -> Self {
        Self { touched: Vec::new(), seen: HashSet::new() }
    }
}

/// What became of one item.
pub(crate) enum Fate<'a, T> {
    Created(&'a T),
    Changed { before: &'a T, after: &'a T },
    Deleted(&'a T),
}

impl<T: Keyed + PartialEq> Originals<T> {
    fn note(&mut self, slot: usize, original: Option<T>) {
        if self.seen.insert(slot) {
            self.touched.push((slot, original));
        }
    }

    /// What became of every item that differs from before, in first-touch order.
    pub(crate) fn fates<'a>(&'a self, now: &'a Slots<T>) -> impl Iterator<Item = Fate<'a, T>> {
        self.touched.iter().filter_map(|(slot, original)| match (original, now.get(*slot)) {
            (None, Some(after)) => Some(Fate::Created(after)),
            (Some(before), None) => Some(Fate::Deleted(before)),
            (Some(before), Some(after)) if before != after => Some(Fate::Changed { before, after }),
            _ => None,
        })
    }
}
