//! The parts of layout operations.

use std::collections::HashSet;

use domain::graph::Position;
use domain::id::NodeId;
use domain::limits::{ARRANGED_MAX, GAP_MAX};
use domain::operation::Arrangement;

use super::{Arranged, Check, Goal};
use crate::reference::Ref;

impl Check {
    pub(super) fn arranged(&mut self, node_ids: Option<Vec<String>>, section_id: Option<String>) -> Option<Arranged> {
        let nodes = node_ids.map(|ids| self.nodes(&ids));
        let section = section_id.map(|section| self.reference("sectionId", &section));
        match (nodes, section) {
            (Some(nodes), None) => Some(Arranged::Nodes(nodes?)),
            (None, Some(section)) => Some(Arranged::Section(section?)),
            (Some(_), Some(_)) => {
                self.refuse("sectionId", "must be omitted when `nodeIds` is given");
                None
            }
            (None, None) => {
                self.refuse("nodeIds", "is required unless `sectionId` is given");
                None
            }
        }
    }

    /// Distinct nodes. A plain id and a handle are the same node, unless the plain id is a `clientId` of the batch.
    pub(super) fn nodes(&mut self, ids: &[String]) -> Option<Vec<Ref<NodeId>>> {
        if !(1..=ARRANGED_MAX).contains(&ids.len()) {
            self.refuse("nodeIds", format!("must hold 1 to {ARRANGED_MAX} nodes"));
            return None;
        }
        let mut named = HashSet::new();
        let mut nodes = Vec::with_capacity(ids.len());
        for (at, id) in ids.iter().enumerate() {
            let field = format!("nodeIds[{at}]");
            let Some(node) = self.reference::<NodeId>(&field, id) else { continue };
            let is_made = !node.is_handle && self.client_ids.contains(node.id.as_str());
            if named.insert((node.id.clone(), is_made)) {
                nodes.push(node);
            } else {
                self.refuse(&field, "is there twice");
            }
        }
        (nodes.len() == ids.len()).then_some(nodes)
    }

    pub(super) fn distance(&mut self, field: &str, distance: f64) {
        if !(0.0..=GAP_MAX).contains(&distance) {
            self.refuse(field, format!("must be a number from 0 to {GAP_MAX}"));
        }
    }

    pub(super) fn columns(&mut self, layout: Arrangement, columns: Option<u32>) -> Option<usize> {
        let columns = usize::try_from(columns?).unwrap_or(usize::MAX);
        if layout != Arrangement::Grid {
            self.refuse("columns", "must be omitted unless the layout is `grid`");
        } else if !(1..=ARRANGED_MAX).contains(&columns) {
            self.refuse("columns", format!("must be an integer from 1 to {ARRANGED_MAX}"));
        }
        Some(columns)
    }

    pub(super) fn goal(&mut self, near: Option<String>, x: Option<f64>, y: Option<f64>) -> Option<Goal> {
        let is_placed = x.is_some() || y.is_some();
        let position = Position { x: x.unwrap_or_default(), y: y.unwrap_or_default() };
        self.coordinates("", position);
        match (x, y) {
            (Some(_), None) => self.refuse("y", "is required with `x`"),
            (None, Some(_)) => self.refuse("x", "is required with `y`"),
            _ => {}
        }
        let Some(near) = near else {
            return Some(if is_placed { Goal::At(position) } else { Goal::Unset });
        };
        if is_placed {
            self.refuse("near", "must be omitted when `x` and `y` are given");
        }
        self.reference("near", &near).map(Goal::Near)
    }
}
