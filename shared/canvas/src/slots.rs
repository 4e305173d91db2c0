//! A list in order of creation whose items have stable positions and are found by id.
//!
//! The slot of an item is its position in the list and is never reused: a removed item leaves a hole. Slots are thus
//! cheap, stable names for the indexes of the graph, and putting an item back restores the order.

use std::collections::HashMap;
use std::hash::Hash;

use domain::graph::{Connection, Node};
use domain::id::{ConnectionId, NodeId};

/// An item that is found by its own id.
pub(crate) trait Keyed {
    /// The id.
    type Key: Clone + Eq + Hash;

    fn key(&self) -> &Self::Key;
}

impl Keyed for Node {
    type Key = NodeId;

    fn key(&self) -> &NodeId {
        &self.id
    }
}

impl Keyed for Connection {
    type Key = ConnectionId;

    fn key(&self) -> &ConnectionId {
        &self.id
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slots<T: Keyed> {
    slots: Vec<Option<T>>,
    index: HashMap<T::Key, usize>,
}

impl<T: Keyed> Slots<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), index: HashMap::with_capacity(capacity) }
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// The slot after the last.
    pub(crate) fn end(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn find(&self, key: &T::Key) -> Option<usize> {
        self.index.get(key).copied()
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        self.slots.get(slot)?.as_ref()
    }

    /// Replaces the item in a slot up to [`Slots::end`], or removes it, and returns the previous one.
    pub(crate) fn set(&mut self, slot: usize, item: Option<T>) -> Option<T> {
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let old = std::mem::replace(&mut self.slots[slot], item);
        if let Some(old) = &old {
            self.index.remove(old.key());
        }
        if let Some(new) = &self.slots[slot] {
            self.index.insert(new.key().clone(), slot);
        }
        old
    }

    /// The items with their slots, in order of creation.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, item)| Some((slot, item.as_ref()?)))
    }

    /// The items, in order of creation.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.slots.into_iter().flatten().collect()
    }

    /// The items, in order of creation.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }
}
