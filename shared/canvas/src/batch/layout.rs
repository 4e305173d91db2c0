//! The parts of layout operations.

use std::collections::HashSet;

use domain::graph::Position;
use domain::id::NodeId;
use domain::limits::{ARRANGED_MAX, GAP_MAX};
use domain::operation::{Alignment, Arrangement, Direction};

use super::{Arranged, Check, Goal};
use crate::placement::Style;
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

    pub(super) fn style(
        &mut self,
        layout: Arrangement,
        gap: f64,
        columns: Option<u32>,
        align: Option<Alignment>,
        direction: Option<Direction>,
    ) -> Style {
        use Arrangement::{Column, Flow, Grid, Masonry, Row};
        self.distance("gap", gap);
        let columns = columns.map(|columns| usize::try_from(columns).unwrap_or(usize::MAX));
        if columns.is_some() && !matches!(layout, Grid | Masonry) {
            self.refuse("columns", "must be omitted unless the layout is `grid` or `masonry`");
        } else if columns.is_some_and(|columns| !(1..=ARRANGED_MAX).contains(&columns)) {
            self.refuse("columns", format!("must be an integer from 1 to {ARRANGED_MAX}"));
        }
        if align.is_some() && !matches!(layout, Row | Column | Grid) {
            self.refuse("align", "must be omitted unless the layout is `row`, `column` or `grid`");
        }
        if direction.is_some() && layout != Flow {
            self.refuse("direction", "must be omitted unless the layout is `flow`");
        }
        let default = Style::new(layout, gap);
        Style {
            columns,
            align: align.unwrap_or(default.align),
            direction: direction.unwrap_or(default.direction),
            ..default
        }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Batch;
    use crate::fixture::{fields, operations};

    /// The fields of an operation that are refused.
    fn refused(operation: Value) -> Vec<String> {
        let list = Batch::new(operations(json!([operation]))).err().unwrap_or_default();
        fields(&list).into_iter().map(|field| field.trim_start_matches("operations[0].").to_owned()).collect()
    }

    fn arrange(more: Value) -> Value {
        let mut operation = json!({"type": "layout.arrange", "layout": "grid", "nodeIds": ["a", "b"]});
        let members = more.as_object().expect("an object").clone();
        operation.as_object_mut().expect("an object").extend(members);
        operation.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        operation
    }

    fn some(count: usize) -> Vec<String> {
        (0..count).map(|at| format!("n{at}")).collect()
    }

    #[test]
    fn gap_padding_columns_and_lists_keep_to_their_ranges() {
        for (within, beyond, field) in [
            (json!({"gap": 0}), json!({"gap": -0.1}), "gap"),
            (json!({"gap": 1000}), json!({"gap": 1000.1}), "gap"),
            (json!({"columns": 1}), json!({"columns": 0}), "columns"),
            (json!({"columns": 200}), json!({"columns": 201}), "columns"),
            (json!({"nodeIds": some(1)}), json!({"nodeIds": []}), "nodeIds"),
            (json!({"nodeIds": some(200)}), json!({"nodeIds": some(201)}), "nodeIds"),
            (json!({"x": 10_000_000, "y": 0}), json!({"x": 10_000_000.5, "y": 0}), "x"),
            (json!({"x": 0, "y": -10_000_000}), json!({"x": 0, "y": -10_000_000.5}), "y"),
        ] {
            assert_eq!(refused(arrange(within.clone())), [""; 0], "{within}");
            assert_eq!(refused(arrange(beyond.clone())), [field], "{beyond}");
        }
        let fit = |padding: f64| json!({"type": "section.fit", "nodeId": "s", "padding": padding});
        assert_eq!([0.0, 1000.0].map(|padding| refused(fit(padding)).len()), [0, 0]);
        assert_eq!([-1.0, 1001.0].map(|padding| refused(fit(padding))), [["padding"], ["padding"]]);
        let create = |count| json!({"type": "section.create", "title": "S", "nodeIds": some(count)});
        assert_eq!([1, 200].map(|count| refused(create(count)).len()), [0, 0]);
        assert_eq!([0, 201].map(|count| refused(create(count))), [["nodeIds"], ["nodeIds"]]);
    }

    #[test]
    fn fields_that_exclude_or_need_each_other_are_named() {
        for (operation, expected) in [
            (arrange(json!({"sectionId": "s"})), &["sectionId"][..]),
            (arrange(json!({"nodeIds": null})), &["nodeIds"]),
            (arrange(json!({"nodeIds": null, "sectionId": "node:s"})), &[]),
            (arrange(json!({"layout": "row", "columns": 2})), &["columns"]),
            (arrange(json!({"layout": "column", "columns": 2})), &["columns"]),
            (arrange(json!({"layout": "flow", "columns": 2})), &["columns"]),
            (arrange(json!({"layout": "masonry", "columns": 2})), &[]),
            (arrange(json!({"layout": "flow", "direction": "down"})), &[]),
            (arrange(json!({"layout": "row", "direction": "right"})), &["direction"]),
            (arrange(json!({"layout": "masonry", "direction": "down"})), &["direction"]),
            (arrange(json!({"align": "end"})), &[]),
            (arrange(json!({"layout": "flow", "align": "start"})), &["align"]),
            (arrange(json!({"layout": "masonry", "align": "center"})), &["align"]),
            (arrange(json!({"x": 1})), &["y"]),
            (arrange(json!({"y": 1})), &["x"]),
            (arrange(json!({"x": 1, "y": 1, "near": "c"})), &["near"]),
            (arrange(json!({"near": "not a node"})), &["near"]),
            (arrange(json!({"nodeIds": ["a", "b", "a"]})), &["nodeIds[2]"]),
            (arrange(json!({"nodeIds": ["a", "node:a", "a b"]})), &["nodeIds[1]", "nodeIds[2]"]),
            (json!({"type": "section.create", "title": "x".repeat(160)}), &[]),
            (json!({"type": "section.create", "title": "x".repeat(161), "clientId": "a b"}), &["clientId", "title"]),
            (json!({"type": "section.create", "title": "", "y": 1, "near": "n"}), &["x", "near"]),
        ] {
            assert_eq!(refused(operation.clone()), expected, "{operation}");
        }
    }
}
