//! Refs (`docs/reference/canvases.md#refs`).

use domain::refs::{NodeRef, RefCounters};

use super::*;

fn refs(graph: &Graph) -> (Vec<String>, Vec<String>) {
    let nodes = graph.nodes().map(|node| node.short.map(|short| short.to_string()).unwrap_or_default());
    let connections = graph.connections().map(|it| it.short.map(|short| short.to_string()).unwrap_or_default());
    (nodes.collect(), connections.collect())
}

#[test]
fn what_a_batch_makes_gets_the_refs_after_all_that_were_given() {
    let mut graph = graph(vec![], vec![]).after_refs(RefCounters { node: 7, connection: 2 });
    let made = json!([
        create("a", "text"), create("b", "text"),
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b"},
        {"type": "node.duplicate", "nodeId": "a", "position": {"x": 0, "y": 900}},
        {"type": "section.create", "title": "S", "nodeIds": ["b"]},
    ]);
    run(&mut graph, made).expect("applied");
    assert_eq!(refs(&graph), (["n8", "n9", "n10", "n11"].map(str::to_owned).to_vec(), vec!["c3".to_owned()]));
}

#[test]
fn a_ref_that_equals_an_id_of_the_canvas_is_skipped() {
    let mut graph = graph(vec![text("n1"), text("n3")], vec![]);
    run(&mut graph, json!([create("a", "text"), create("b", "text")])).expect("applied");
    assert_eq!(refs(&graph).0, ["", "", "n2", "n4"], "what is loaded without a ref gets none here");
}

#[test]
fn a_refused_batch_gives_no_refs() {
    let mut graph = graph(vec![], vec![]);
    assert!(run(&mut graph, json!([create("a", "text"), {"type": "node.delete", "nodeId": "missing"}])).is_err());
    run(&mut graph, json!([create("a", "text")])).expect("applied");
    assert_eq!(refs(&graph).0, ["n1"]);
}

#[test]
fn what_is_restored_keeps_its_ref() {
    let node = Node { short: Some(NodeRef::new(1)), ..text("a") };
    let mut graph = graph(vec![node], vec![]);
    run(
        &mut graph,
        json!([{"type": "node.delete", "nodeId": "a"}, create("b", "text"), {"type": "node.restore", "nodeId": "a"}]),
    )
    .expect("applied");
    assert_eq!(refs(&graph).0, ["n1", "n2"]);
}
