//! Connections.

use domain::refs::ConnectionRef;

use super::*;

#[test]
fn a_connection_defaults_to_flow_and_is_named_by_its_client_id() {
    let mut graph = graph(vec![image("a")], vec![]);
    let applied = run(
        &mut graph,
        json!([
            create("b", "text"),
            {"type": "connection.create", "clientId": "c", "fromNodeId": "node:a", "toNodeId": "b"},
            {"type": "connection.update", "connectionId": "c", "purpose": "reference", "role": "style"},
        ]),
    )
    .expect("applied");
    let expected = Connection {
        id: cid(&applied.resolved_ids["c"]),
        short: Some(ConnectionRef::new(1)),
        from: id("a"),
        to: id(&applied.resolved_ids["b"]),
        purpose: Purpose::Reference,
        role: Some(Role::Style),
    };
    assert_eq!(graph.connections().cloned().collect::<Vec<_>>(), [expected]);
    assert_eq!(applied.touched.connections.len(), 1);
    assert_eq!(applied.connections_delta, 1);
}

#[test]
fn a_connection_joins_two_nodes_once_for_a_purpose() {
    let mut graph = graph(vec![image("a"), image("b")], vec![connection("c", "a", "b", Purpose::Flow)]);
    assert_eq!(unprocessable(&mut graph, json!([connect("a", "a", "flow")])), ["operations[0].toNodeId"]);
    assert_eq!(unprocessable(&mut graph, json!([connect("a", "b", "flow")])), ["operations[0].toNodeId"]);
    assert_eq!(
        unprocessable(&mut graph, json!([connect("gone", "lost", "flow")])),
        ["operations[0].fromNodeId", "operations[0].toNodeId"]
    );
    run(&mut graph, json!([connect("b", "a", "flow"), connect("a", "b", "list")])).expect("applied");
    assert_eq!(
        unprocessable(&mut graph, json!([{"type": "connection.update", "connectionId": "c", "purpose": "list"}])),
        ["operations[0].purpose"]
    );
    run(&mut graph, json!([{"type": "connection.delete", "connectionId": "c"}, connect("a", "b", "flow")]))
        .expect("applied");
}

#[test]
fn a_frame_joins_an_image_to_a_video_that_has_none_of_its_kind() {
    for purpose in ["first-frame", "last-frame"] {
        let mut graph = graph(vec![image("i"), image("j"), video("v"), text("t")], vec![]);
        assert_eq!(unprocessable(&mut graph, json!([connect("t", "v", purpose)])), ["operations[0].fromNodeId"]);
        assert_eq!(unprocessable(&mut graph, json!([connect("i", "t", purpose)])), ["operations[0].toNodeId"]);
        assert_eq!(
            unprocessable(&mut graph, json!([connect("v", "t", purpose)])),
            ["operations[0].fromNodeId", "operations[0].toNodeId"]
        );
        run(&mut graph, json!([connect("i", "v", purpose)])).expect("applied");
        assert_eq!(unprocessable(&mut graph, json!([connect("j", "v", purpose)])), ["operations[0].toNodeId"]);
        assert_eq!(unprocessable(&mut graph, json!([connect("i", "v", purpose)])), ["operations[0].toNodeId"]);
        let applied = run(
            &mut graph,
            json!([{"type": "connection.create", "clientId": "f", "fromNodeId": "j", "toNodeId": "v"}]),
        )
        .expect("applied");
        assert_eq!(
            unprocessable(
                &mut graph,
                json!([{"type": "connection.update", "connectionId": applied.resolved_ids["f"], "purpose": purpose}])
            ),
            ["operations[0].purpose"]
        );
        run(&mut graph, json!([delete("i"), connect("j", "v", purpose)])).expect("the place is free again");
    }
}

#[test]
fn a_reference_comes_from_an_image_text_or_sticky() {
    let mut graph = graph(
        vec![image("i"), text("t"), sticky("n"), video("v"), image("to")],
        vec![connection("c", "v", "to", Purpose::Flow)],
    );
    assert_eq!(unprocessable(&mut graph, json!([connect("v", "to", "reference")])), ["operations[0].fromNodeId"]);
    assert_eq!(
        unprocessable(&mut graph, json!([{"type": "connection.update", "connectionId": "c", "purpose": "reference"}])),
        ["operations[0].purpose"]
    );
    run(&mut graph, json!(["i", "t", "n"].map(|from| connect(from, "to", "reference")))).expect("applied");
}

#[test]
fn a_role_lives_and_leaves_with_the_purpose_reference() {
    let mut graph = graph(vec![image("a"), image("b")], vec![connection("c", "a", "b", Purpose::Reference)]);
    let update = |more: Value| {
        let mut operation = object(json!({"type": "connection.update", "connectionId": "connection:c"}));
        operation.extend(object(more));
        json!([Value::from(operation)])
    };
    let role = |graph: &Graph| graph.connection(&cid("c")).expect("the connection").role;
    run(&mut graph, update(json!({"role": "identity"}))).expect("applied");
    assert_eq!(role(&graph), Some(Role::Identity));
    run(&mut graph, update(json!({"purpose": "reference"}))).expect("applied");
    assert_eq!(role(&graph), Some(Role::Identity));
    run(&mut graph, update(json!({"role": null}))).expect("applied");
    assert_eq!(role(&graph), None);
    run(&mut graph, update(json!({"role": "fit"}))).expect("applied");
    run(&mut graph, update(json!({"purpose": "list"}))).expect("applied");
    assert_eq!(role(&graph), None);
    assert_eq!(invalid(&mut graph, update(json!({"role": "fit"}))), ["operations[0].role"]);
    run(&mut graph, update(json!({"role": null}))).expect("applied");
}
