//! A list in order of creation whose items have stable positions and are found by id.
//!
//! The slot of an item is its position in the list and is never reused: a removed item leaves a hole. Slots are thus
//! cheap, stable names for the indexes of the graph, and putting an item back restores the order.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::OnceLock;

use domain::canvas::{self, Items, Text};
use domain::graph::{Connection, DeletedConnection, DeletedNode, Node};
use domain::id::{ConnectionId, NodeId};
use serde::Serialize;

/// An item that is found by its own id.
pub(crate) trait Keyed {
    /// The id.
    type Key: Clone + Eq + Hash;
    /// The served form.
    type Served: Serialize + for<'a> From<&'a Self>;

    fn key(&self) -> &Self::Key;
}

impl Keyed for Node {
    type Key = NodeId;
    type Served = canvas::Node;

    fn key(&self) -> &NodeId {
        &self.id
    }
}

impl Keyed for Connection {
    type Key = ConnectionId;
    type Served = canvas::Connection;

    fn key(&self) -> &ConnectionId {
        &self.id
    }
}

/// A deleted item of a list of `T`.
pub(crate) trait Deleted<T: Keyed> {
    /// The item.
    fn item(&self) -> &T;
}

impl Deleted<Node> for DeletedNode {
    fn item(&self) -> &Node {
        &self.node
    }
}

impl Deleted<Connection> for DeletedConnection {
    fn item(&self) -> &Connection {
        &self.connection
    }
}

/// An item, and its served form once it was asked for.
#[derive(Debug)]
struct Slot<T> {
    item: T,
    served: OnceLock<Text>,
}

/// Without the served form: what is tried on a copy is not served.
impl<T: Clone> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self { item: self.item.clone(), served: OnceLock::new() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Slots<T: Keyed> {
    slots: Vec<Option<Slot<T>>>,
    index: HashMap<T::Key, usize>,
    /// Slots of deleted items, by id: the slot and the position in the list of deleted items.
    reserved: HashMap<T::Key, (usize, usize)>,
}

impl<T: Keyed> Slots<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), index: HashMap::with_capacity(capacity), reserved: HashMap::new() }
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
        Some(&self.slots.get(slot)?.as_ref()?.item)
    }

    /// Replaces the item in a slot up to [`Slots::end`], or removes it, and returns the previous one.
    pub(crate) fn set(&mut self, slot: usize, item: Option<T>) -> Option<T> {
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        let new = item.map(|item| Slot { item, served: OnceLock::new() });
        let old = std::mem::replace(&mut self.slots[slot], new).map(|old| old.item);
        if let Some(old) = &old {
            self.index.remove(old.key());
        }
        if let Some(new) = &self.slots[slot] {
            self.index.insert(new.item.key().clone(), slot);
        }
        old
    }

    /// Adds empty slots for the next of the deleted items, as long as `is_next` holds.
    pub(crate) fn reserve<D: Deleted<T>>(&mut self, deleted: &[D], is_next: impl Fn(&D) -> bool) {
        while let Some(next) = deleted.get(self.reserved.len()).filter(|next| is_next(next)) {
            let at = self.reserved.len();
            self.reserved.insert(next.item().key().clone(), (self.slots.len(), at));
            self.slots.push(None);
        }
    }

    /// The slot of a deleted item, and its position in the list of deleted items.
    pub(crate) fn find_deleted(&self, key: &T::Key) -> Option<(usize, usize)> {
        self.reserved.get(key).copied()
    }

    /// The items with their slots, in order of creation.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &T)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, &slot.as_ref()?.item)))
    }

    /// The items, in order of creation.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.slots.into_iter().flatten().map(|slot| slot.item).collect()
    }

    /// The items, in order of creation.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.slots.iter().flatten().map(|slot| &slot.item)
    }

    /// Calls `change` on every item. It must not change what is served or the key.
    pub(crate) fn for_each_unserved(&mut self, mut change: impl FnMut(&mut T)) {
        self.slots.iter_mut().flatten().for_each(|slot| change(&mut slot.item));
    }

    /// The items as they are served, in order of creation. Serializes those that were set since they were last served.
    pub(crate) fn served(&self) -> Items<T::Served> {
        let text = |slot: &Slot<T>| slot.served.get_or_init(|| Items::text(&T::Served::from(&slot.item))).clone();
        Items::of_texts(self.slots.iter().flatten().map(text))
    }
}
