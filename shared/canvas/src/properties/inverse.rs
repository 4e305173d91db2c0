//! A batch and the batch that undoes it: what was created is deleted, and what was deleted is restored.

use std::collections::HashMap;

use super::restore::Store;
use super::*;
use crate::fixture::members;

/// Operations that restore these nodes and connections on `graph`, as a client that remembers them would write them.
fn inverse(applied: &Applied, title: &str, nodes: &[Node], connections: &[Connection]) -> Value {
    let old_nodes: HashMap<&NodeId, &Node> = nodes.iter().map(|node| (&node.id, node)).collect();
    let old_connections: HashMap<_, &Connection> = connections.iter().map(|link| (&link.id, link)).collect();
    let update = |node: &Node, patch: Value| json!({"type": "node.update", "nodeId": node.id, "patch": patch});
    let mut made = Vec::new();
    // Only a Section has members: all members leave, then Sections change, then members join.
    let (mut leave, mut change, mut join) = (Vec::new(), Vec::new(), Vec::new());
    for id in &applied.changes.changed_connection_ids {
        match old_connections.get(id) {
            None => made.push(json!({"type": "connection.delete", "connectionId": id})),
            Some(old) => change.push(json!(
                {"type": "connection.update", "connectionId": id, "purpose": old.purpose, "role": old.role}
            )),
        }
    }
    let mut gone = Vec::new();
    let nodes_back = applied.changes.deleted_node_ids.iter();
    let nodes_back: Vec<Value> = nodes_back.map(|id| json!({"type": "node.restore", "nodeId": id})).collect();
    let links_back = applied.changes.deleted_connection_ids.iter();
    let links_back: Vec<Value> =
        links_back.map(|id| json!({"type": "connection.restore", "connectionId": id})).collect();
    for id in &applied.changes.changed_node_ids {
        let Some(old) = old_nodes.get(id) else {
            gone.push(json!({"type": "node.delete", "nodeId": id}));
            continue;
        };
        leave.push(update(old, json!({"metadata": {"sectionId": null}})));
        let mut metadata: Map<String, Value> =
            ["content", "zIndex", "custom", "section"].map(|key| (key.to_owned(), Value::Null)).into_iter().collect();
        metadata.extend(members(&old.metadata).into_iter().filter(|(key, _)| key != "sectionId"));
        let mut patch = json!({"title": old.title, "width": old.width, "height": old.height, "metadata": metadata});
        if old.kind.holds_text() {
            patch["type"] = json!(old.kind);
        }
        change.push(update(old, patch));
        change.push(json!({"type": "node.move", "nodeId": id, "position": old.position}));
        if let Some(section) = old.section_id() {
            join.push(update(old, json!({"metadata": {"sectionId": section}})));
        }
    }
    let rename = vec![json!({"type": "canvas.update", "title": title})];
    [made, leave, gone, change, nodes_back, join, links_back, rename].concat().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_batch_and_its_inverse_leave_the_graph_as_it_was(operations in operations(), agent in any::<bool>()) {
        let (mut nodes, connections) = start();
        let mut store = Store::start();
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let options = Options { agent, force: true };
        let Ok(applied) = store.apply(&batch, options) else { return Ok(()) };
        let changes = &applied.changes;
        // Two parallel connections that swapped purposes need a third purpose to swap back, hence more than one step.
        let changed = connections.iter().filter(|link| changes.changed_connection_ids.contains(&link.id));
        let mut ends: Vec<_> = changed.map(|link| (&link.from, &link.to)).collect();
        let count = ends.len();
        ends.sort();
        ends.dedup();
        prop_assume!(ends.len() == count);
        let undo = crate::fixture::batch(inverse(&applied, "Board", &nodes, &connections));
        let undone = store.apply(&undo, options);
        prop_assert!(undone.is_ok(), "{:?}", undone);
        // A node that waited for a job is restored without it.
        for node in nodes.iter_mut().filter(|node| changes.deleted_node_ids.contains(&node.id)) {
            node.active_job = None;
        }
        prop_assert_eq!(store.present(), (nodes, connections));
        consistent(&store.load(&undo))?;
    }
}
