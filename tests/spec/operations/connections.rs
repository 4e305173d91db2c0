//! Connections: creation, the rules of the graph, and removal with their nodes (docs/reference/operations.md#rules-of-the-graph).

use e2e::Stack;
use e2e::api::text;
use serde_json::json;

#[tokio::test]
async fn connections_are_made_and_deleted_and_go_with_their_nodes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user
        .apply(id, json!([
            {"type": "node.create", "clientId": "a", "node": {"type": "image"}},
            {"type": "node.create", "clientId": "b", "node": {"type": "video"}},
            {"type": "connection.create", "clientId": "flow", "fromNodeId": "a", "toNodeId": "b"},
            {"type": "connection.create", "clientId": "first", "fromNodeId": "a", "toNodeId": "b", "purpose": "first-frame"},
            {"type": "connection.create", "clientId": "last", "fromNodeId": "a", "toNodeId": "b", "purpose": "last-frame"},
            {"type": "connection.create", "clientId": "list", "fromNodeId": "a", "toNodeId": "b", "purpose": "list"},
            {"type": "connection.create", "clientId": "ref", "fromNodeId": "a", "toNodeId": "b", "purpose": "reference", "role": "identity"},
        ]))
        .await;
    let resolved = |name: &str| text(&made["resolvedIds"], &format!("/{name}")).to_owned();
    let (a, b, flow) = (resolved("a"), resolved("b"), resolved("flow"));
    let connections = made["canvas"]["connections"].as_array().expect("a list");
    assert_eq!(connections.len(), 5);
    let shown = &connections[0];
    assert_eq!(shown["id"], flow.as_str());
    assert_eq!(shown["handle"], format!("connection:{flow}"));
    assert_eq!((&shown["fromNodeId"], &shown["toNodeId"]), (&json!(a), &json!(b)));
    assert_eq!((text(shown, "/from"), text(shown, "/to")), (&*format!("node:{a}"), &*format!("node:{b}")));
    assert_eq!(shown["purpose"], "flow");
    assert_eq!(made["changedConnectionIds"].as_array().map(Vec::len), Some(5));
    let deleted =
        user.apply(id, json!([{"type": "connection.delete", "connectionId": format!("connection:{flow}")}])).await;
    assert_eq!((&deleted["deletedConnectionIds"], &deleted["changedNodeIds"]), (&json!([flow]), &json!([])));
    let gone = user.apply(id, json!([{"type": "node.delete", "nodeId": a}])).await;
    assert_eq!(gone["deletedNodeIds"], json!([a]));
    assert_eq!(gone["deletedConnectionIds"].as_array().map(Vec::len), Some(4), "its connections are listed");
    assert_eq!(gone["canvas"]["connections"], json!([]));
}

#[tokio::test]
async fn connections_obey_the_graph() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user
        .apply(
            id,
            json!([
                {"type": "node.create", "clientId": "image", "node": {"type": "image"}},
                {"type": "node.create", "clientId": "other", "node": {"type": "image"}},
                {"type": "node.create", "clientId": "video", "node": {"type": "video"}},
                {"type": "node.create", "clientId": "text", "node": {"type": "text"}},
                {"type": "connection.create", "fromNodeId": "text", "toNodeId": "image"},
                {"type": "connection.create", "fromNodeId": "image", "toNodeId": "video", "purpose": "first-frame"},
            ]),
        )
        .await;
    let node = |name: &str| made["resolvedIds"][name].clone();
    let revision = text(&made, "/canvas/revision");
    let connect = |from: &str, to: &str, purpose: &str| json!([{"type": "connection.create", "fromNodeId": node(from), "toNodeId": node(to), "purpose": purpose}]);
    for refused in [
        connect("text", "text", "flow"),
        connect("text", "image", "flow"),
        connect("text", "video", "first-frame"),
        connect("image", "text", "last-frame"),
        connect("other", "video", "first-frame"),
        connect("video", "image", "reference"),
    ] {
        let reply = user.batch(id, revision, refused).await.expect(422);
        assert_eq!(reply.json()["error"]["code"], "unprocessable_entity");
    }
    for wrong in [
        json!([{"type": "connection.create", "fromNodeId": node("text"), "toNodeId": node("other"), "role": "style"}]),
        json!([{"type": "connection.create", "fromNodeId": node("text"), "toNodeId": node("other"), "purpose": "flow", "role": "style"}]),
    ] {
        user.batch(id, revision, wrong).await.expect_error(400, "input_validation_error", &["operations[0].role"]);
    }
    let unknown = connect("text", "other", "love");
    user.batch(id, revision, unknown).await.expect_error(400, "input_validation_error", &["operations[0].purpose"]);
    // The same pair in the other direction or for another purpose is a different connection.
    for allowed in [
        connect("image", "text", "list"),
        connect("text", "image", "reference"),
        connect("other", "video", "last-frame"),
    ] {
        user.apply(id, allowed).await;
    }
}
