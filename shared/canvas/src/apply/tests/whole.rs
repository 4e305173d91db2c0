//! Ids within a batch, and the batch as a whole.

use super::*;

#[test]
fn what_is_gone_is_unknown() {
    let mut graph = graph(vec![image("a"), image("b")], vec![connection("c", "a", "b", Purpose::Flow)]);
    let gone = json!({"type": "connection.delete", "connectionId": "c"});
    assert_eq!(unprocessable(&mut graph, json!([gone, gone])), ["operations[1].connectionId"]);
    assert_eq!(unprocessable(&mut graph, json!([delete("a"), gone])), ["operations[1].connectionId"]);
    assert_eq!(
        unprocessable(&mut graph, json!([create("x", "text"), delete("x"), delete("x"), delete("a"), delete("a")])),
        ["operations[2].nodeId", "operations[4].nodeId"]
    );
}

#[test]
fn a_client_id_is_known_after_the_operation_that_makes_it() {
    let mut graph = graph(vec![], vec![]);
    assert_eq!(
        unprocessable(&mut graph, json!([update("x", json!({"title": "T"})), create("x", "text")])),
        ["operations[0].nodeId"]
    );
}

#[test]
fn a_client_id_goes_before_an_equal_id_which_its_handle_still_names() {
    let mut graph = graph(vec![text("n")], vec![]);
    let applied = run(
        &mut graph,
        json!([create("n", "text"), update("n", json!({"title": "new"})), update("node:n", json!({"title": "old"}))]),
    )
    .expect("applied");
    assert_eq!(graph.node(&id("n")).expect("the node").title, "old");
    assert_eq!(graph.node(&id(&applied.resolved_ids["n"])).expect("the node").title, "new");
}

#[test]
fn a_connections_client_id_does_not_hide_a_node() {
    let mut graph = graph(vec![text("a"), text("b")], vec![]);
    run(
        &mut graph,
        json!([
            {"type": "connection.create", "clientId": "a", "fromNodeId": "a", "toNodeId": "b"},
            update("a", json!({"title": "T"})),
        ]),
    )
    .expect("applied");
    assert_eq!(graph.node(&id("a")).expect("the node").title, "T");
}

#[test]
fn every_violation_is_listed_and_what_depends_on_a_failed_operation_is_not() {
    let mut graph = graph(vec![video("v"), working(image("w"))], vec![connection("c", "v", "w", Purpose::Flow)]);
    assert_eq!(
        unprocessable(
            &mut graph,
            json!([
                {"type": "node.create", "clientId": "x", "node": {"type": "text", "metadata": {"sectionId": "gone"}}},
                update("x", json!({"title": "T"})),
                {"type": "node.duplicate", "clientId": "y", "nodeId": "x", "position": {"x": 0, "y": 0}},
                {"type": "connection.create", "clientId": "z", "fromNodeId": "x", "toNodeId": "lost"},
                {"type": "connection.update", "connectionId": "z", "purpose": "list"},
                delete("y"),
                metadata("v", json!({"sectionId": "x"})),
                delete("w"),
                {"type": "connection.delete", "connectionId": "c"},
            ]),
        ),
        ["operations[0].node.metadata.sectionId", "operations[3].toNodeId", "operations[7].nodeId",]
    );
}

#[test]
fn a_title_is_reported_when_it_differs() {
    let mut graph = graph(vec![], vec![]);
    let applied = run(&mut graph, json!([{"type": "canvas.update", "title": "Other"}])).expect("applied");
    assert_eq!((applied.title.as_deref(), graph.title()), (Some("Other"), "Other"));
    assert_eq!(applied.changes, domain::canvas::Changes::default());
}

#[test]
fn a_canvas_holds_20000_nodes() {
    let full = (0..CANVAS_NODES_MAX - 1).map(|at| text(&format!("n{at}"))).collect();
    let mut graph = graph(full, vec![]);
    assert_eq!(unprocessable(&mut graph, json!([create("x", "text"), create("y", "text")])), ["operations"]);
    run(&mut graph, json!([create("x", "text")])).expect("the last one");
    assert_eq!(unprocessable(&mut graph, json!([create("x", "text")])), ["operations"]);
    run(&mut graph, json!([create("x", "text"), delete("n0")])).expect("one in, one out");
    assert_eq!(graph.node_count(), CANVAS_NODES_MAX);
}

#[test]
fn a_canvas_holds_40000_connections() {
    let nodes = (0..202).map(|at| text(&format!("n{at}"))).collect();
    let mut connections: Vec<Connection> = (0..200)
        .flat_map(|from| (0..202).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .map(|(from, to)| connection(&format!("c{from}-{to}"), &format!("n{from}"), &format!("n{to}"), Purpose::Flow))
        .collect();
    connections.truncate(CANVAS_CONNECTIONS_MAX - 1);
    let mut graph = graph(nodes, connections);
    assert_eq!(
        unprocessable(&mut graph, json!([connect("n201", "n0", "flow"), connect("n201", "n1", "flow")])),
        ["operations"]
    );
    run(&mut graph, json!([connect("n201", "n0", "flow")])).expect("the last one");
    assert_eq!(unprocessable(&mut graph, json!([connect("n201", "n1", "flow")])), ["operations"]);
}

#[test]
fn a_canvas_holds_64_mebibytes() {
    let of = |bytes: i64| Graph::new(String::new(), bytes, vec![text("n")], vec![]);
    let mut probe = of(0);
    let grown = run(&mut probe, json!([update("n", json!({"title": "longer"}))])).expect("applied").bytes_delta;
    assert!(grown > 0);
    let longer = || json!([update("n", json!({"title": "longer"}))]);
    let mut at = of(CANVAS_BYTES_MAX - grown);
    run(&mut at, longer()).expect("applied");
    assert_eq!(at.bytes(), CANVAS_BYTES_MAX);
    assert_eq!(unprocessable(&mut of(CANVAS_BYTES_MAX - grown + 1), longer()), ["operations"]);
    run(&mut of(CANVAS_BYTES_MAX + 1000), json!([update("n", json!({"title": ""}))])).expect("a batch that shrinks");
}

#[test]
fn a_batch_does_no_step_that_grows_with_the_canvas_for_each_operation() {
    let nodes: Vec<Node> = (0..CANVAS_NODES_MAX).map(|at| text(&format!("n{at}"))).collect();
    // Every connection leaves one hub: the worst case for a list of neighbors.
    let connections: Vec<Connection> = (1..CANVAS_NODES_MAX)
        .map(|to| Connection {
            id: ConnectionId::parse(&format!("c{to}")).expect("an id"),
            ..connection("c", "n0", &format!("n{to}"), Purpose::Flow)
        })
        .collect();
    let mut graph = graph(nodes, connections);
    let operations: Vec<Value> = (1..=200).map(|at| delete(&format!("n{at}"))).collect();
    let batch = batch(Value::from(operations));
    let started = std::time::Instant::now();
    let applied = apply(&mut graph, &batch, AGENT).expect("applied");
    assert_eq!((applied.nodes_delta, applied.connections_delta), (-200, -200));
    // Two orders of magnitude above the time of an unoptimized build; a quadratic step would take far longer.
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
}
