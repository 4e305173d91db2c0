//! A batch and the batch that undoes it. A deleted record cannot be created again under its id: such batches have no
//! inverse.

use std::collections::HashMap;

use super::*;

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
    for id in &applied.changes.changed_node_ids {
        let Some(old) = old_nodes.get(id) else {
            gone.push(json!({"type": "node.delete", "nodeId": id}));
            continue;
        };
        leave.push(update(old, json!({"metadata": {"sectionId": null}})));
        let mut metadata: Map<String, Value> =
            ["content", "zIndex", "custom", "section"].map(|key| (key.to_owned(), Value::Null)).into_iter().collect();
        metadata.extend(old.metadata.clone().into_iter().filter(|(key, _)| key != "sectionId"));
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
    [made, leave, gone, change, join, rename].concat().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_batch_and_its_inverse_leave_the_graph_as_it_was(operations in operations(), agent in any::<bool>()) {
        let (nodes, connections) = start();
        let mut graph = graph();
        let before = seen(&graph);
        let batch = Batch::new(operations).expect("only batches without violations are generated");
        let Ok(applied) = apply(&mut graph, &batch, Options { agent, force: true }) else { return Ok(()) };
        let changes = &applied.changes;
        prop_assume!(changes.deleted_node_ids.is_empty() && changes.deleted_connection_ids.is_empty());
        // Two parallel connections that swapped purposes need a third purpose to swap back, hence more than one step.
        let changed = connections.iter().filter(|link| changes.changed_connection_ids.contains(&link.id));
        let mut ends: Vec<_> = changed.map(|link| (&link.from, &link.to)).collect();
        let count = ends.len();
        ends.sort();
        ends.dedup();
        prop_assume!(ends.len() == count);
        let undo = crate::fixture::batch(inverse(&applied, &before.0, &nodes, &connections));
        let undone = apply(&mut graph, &undo, Options { agent, force: true });
        prop_assert!(undone.is_ok(), "{:?}", undone);
        prop_assert_eq!(seen(&graph), before);
        consistent(&graph)?;
    }
}
