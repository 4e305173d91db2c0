use domain::graph::{DeletedConnection, DeletedNode};
use serde_json::{Value, json};

use super::*;
use crate::fixture::{batch, cid, connection, id, image, member, section, text, video};
use crate::graph::Sources;

/// Nodes `a` in the Section `s`, `b` and `v` (a video), and connections `k` from `a` to `b` and `f` into `v`. The node `d`, of the
/// Section `s`, the Section `e` with the member `b`, and the connection `l` from `b` to `a` are deleted.
fn graph() -> Graph {
    let deleted =
        |node, members: &[&str]| DeletedNode { node, members: members.iter().copied().map(id).collect(), preceding: 0 };
    let sources = Sources {
        nodes: vec![deleted(member(text("d"), "s"), &[]), deleted(section("e"), &["b"])],
        connections: vec![DeletedConnection { connection: connection("l", "b", "a", Purpose::Flow), preceding: 0 }],
        ..Sources::default()
    };
    let nodes = vec![member(text("a"), "s"), text("b"), section("s"), section("t"), video("v"), image("i")];
    let connections = vec![connection("k", "a", "b", Purpose::Flow), connection("f", "i", "v", Purpose::FirstFrame)];
    Graph::with_sources("Board".into(), 0, nodes, connections, sources)
}

fn node_changed(node: &str) -> ConcurrentChanges {
    ConcurrentChanges { nodes: [id(node)].into(), ..ConcurrentChanges::default() }
}

fn connection_changed(text: &str, from: &str, to: &str) -> ConcurrentChanges {
    ConcurrentChanges { connections: [(cid(text), (id(from), id(to)))].into(), ..ConcurrentChanges::default() }
}

fn regrouped(section: &str) -> ConcurrentChanges {
    ConcurrentChanges { regrouped: [id(section)].into(), ..ConcurrentChanges::default() }
}

/// The nodes of the conflict, if there is one.
fn conflict(footprint: &Footprint, since: &ConcurrentChanges) -> Option<Vec<String>> {
    footprint.conflict(since).map(|nodes| nodes.iter().map(ToString::to_string).collect())
}

/// The nodes that conflict with an operation when they change.
fn nodes_of(operations: Value) -> Vec<&'static str> {
    let footprint = Footprint::from_batch(&batch(operations), &graph());
    let every = ["a", "b", "d", "e", "i", "n", "s", "t", "v"];
    every.into_iter().filter(|node| conflict(&footprint, &node_changed(node)).is_some()).collect()
}

/// The changed connections that conflict with an operation, of all that are possible between some nodes.
fn links_of(operations: Value) -> Vec<String> {
    let footprint = Footprint::from_batch(&batch(operations), &graph());
    let every = [("a", "b"), ("b", "a"), ("a", "v"), ("i", "v"), ("i", "b")];
    let is_in = |(from, to): &(&str, &str)| conflict(&footprint, &connection_changed("other", from, to)).is_some();
    every.into_iter().filter(is_in).map(|(from, to)| format!("{from}{to}")).collect()
}

fn one(operation: Value) -> Value {
    json!([operation])
}

#[test]
fn operations_on_nodes_touch_what_they_name_and_the_section_of_what_they_place() {
    let at = json!({"x": 0, "y": 0});
    let update = |node: &str, patch: Value| one(json!({"type": "node.update", "nodeId": node, "patch": patch}));
    let new = json!({"type": "text"});
    for (operations, nodes) in [
        (update("a", json!({"title": "T"})), vec!["a"]),
        (update("node:a", json!({"width": 9})), vec!["a", "s"]),
        (update("a", json!({"height": 9})), vec!["a", "s"]),
        (update("b", json!({"metadata": {"sectionId": "s"}})), vec!["b", "s"]),
        (one(json!({"type": "node.move", "nodeId": "a", "position": at})), vec!["a", "s"]),
        (one(json!({"type": "node.move", "nodeId": "b", "position": at})), vec!["b"]),
        (one(json!({"type": "node.duplicate", "nodeId": "a", "position": at})), vec!["a", "s"]),
        (one(json!({"type": "node.delete", "nodeId": "a"})), vec!["a"]),
        (one(json!({"type": "node.delete", "nodeId": "s"})), vec!["a", "s"]),
        (one(json!({"type": "node.restore", "nodeId": "d"})), vec!["d", "s"]),
        (one(json!({"type": "node.restore", "nodeId": "e"})), vec!["b", "e"]),
        (one(json!({"type": "node.create", "node": new})), vec![]),
        (one(json!({"type": "node.create", "node": new, "sectionId": "t"})), vec!["t"]),
        (one(json!({"type": "node.create", "node": {"type": "text", "metadata": {"sectionId": "t"}}})), vec!["t"]),
        (one(json!({"type": "node.update", "nodeId": "n", "patch": {"title": "T"}})), vec!["n"]),
        (
            one(json!({"type": "node.move", "nodeId": "s", "position": {"x": 9, "y": 0}, "withMembers": true})),
            vec!["a", "s"],
        ),
        (one(json!({"type": "node.move", "nodeId": "s", "position": at, "withMembers": true})), vec!["s"]),
        (
            json!([
                {"type": "node.move", "nodeId": "s", "position": {"x": 9, "y": 0}},
                {"type": "node.move", "nodeId": "s", "position": at, "withMembers": true},
            ]),
            vec!["a", "s"],
        ),
        (one(json!({"type": "layout.arrange", "nodeIds": ["a", "b"], "layout": "row"})), vec!["a", "b", "s"]),
        (
            one(json!({"type": "layout.arrange", "nodeIds": ["b", "s"], "layout": "row", "near": "i"})),
            vec!["a", "b", "i", "s"],
        ),
        (one(json!({"type": "layout.arrange", "sectionId": "s", "layout": "row"})), vec!["a", "s"]),
        (one(json!({"type": "section.fit", "nodeId": "s"})), vec!["a", "s"]),
        (
            one(json!({"type": "section.create", "title": "S", "nodeIds": ["a", "b"], "near": "t"})),
            vec!["a", "b", "s", "t"],
        ),
    ] {
        assert_eq!(nodes_of(operations.clone()), nodes, "{operations}");
    }
    let near = serde_json::from_value(json!([{"type": "node.create", "node": new, "near": "b"}])).expect("operations");
    let near = Footprint::from_batch(&Batch::new(near).expect("a batch"), &graph());
    assert_eq!(conflict(&near, &node_changed("b")), Some(vec!["b".into()]));
}

#[test]
fn operations_on_connections_touch_their_ends_and_what_the_rules_read() {
    let create = |purpose: &str, from: &str, to: &str| {
        one(json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to, "purpose": purpose}))
    };
    let update = |more: Value| {
        let mut operation = json!({"type": "connection.update", "connectionId": "k"});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        one(operation)
    };
    for (operations, nodes, links) in [
        (create("flow", "a", "b"), vec!["a", "b"], vec!["ab"]),
        (create("first-frame", "i", "v"), vec!["i", "v"], vec!["av", "iv"]),
        (update(json!({"role": null})), vec![], vec![]),
        (update(json!({"purpose": "list"})), vec![], vec!["ab"]),
        (one(json!({"type": "connection.delete", "connectionId": "k"})), vec![], vec![]),
        (one(json!({"type": "connection.restore", "connectionId": "l"})), vec!["a", "b"], vec!["ba"]),
        (one(json!({"type": "node.delete", "nodeId": "a"})), vec!["a"], vec!["ab", "ba", "av"]),
        (one(json!({"type": "node.update", "nodeId": "a", "patch": {"title": "T"}})), vec!["a"], vec![]),
    ] {
        assert_eq!(
            (nodes_of(operations.clone()), links_of(operations.clone())),
            (nodes, links.into_iter().map(str::to_owned).collect()),
            "{operations}"
        );
    }
    let named = Footprint::from_batch(&batch(one(json!({"type": "connection.delete", "connectionId": "k"}))), &graph());
    assert_eq!(conflict(&named, &connection_changed("k", "a", "b")), Some(vec!["a".into(), "b".into()]));
    let deleted = Footprint::from_batch(&batch(one(json!({"type": "node.delete", "nodeId": "a"}))), &graph());
    assert_eq!(conflict(&deleted, &connection_changed("x", "b", "a")), Some(vec!["a".into()]), "only what is touched");
}

#[test]
fn only_operations_that_depend_on_all_members_conflict_with_a_new_one() {
    let update = |patch: Value| json!({"type": "node.update", "nodeId": "t", "patch": patch});
    for (operation, is_conflict) in [
        (json!({"type": "node.delete", "nodeId": "t"}), true),
        (update(json!({"metadata": {"section": null}})), true),
        (update(json!({"title": "T"})), false),
        (json!({"type": "node.move", "nodeId": "t", "position": {"x": 1, "y": 1}}), false),
        (json!({"type": "node.create", "node": {"type": "text"}, "sectionId": "t"}), false),
        (json!({"type": "node.move", "nodeId": "t", "position": {"x": 1, "y": 1}, "withMembers": true}), true),
        (json!({"type": "layout.arrange", "nodeIds": ["b", "t"], "layout": "row"}), true),
        (json!({"type": "layout.arrange", "sectionId": "t", "layout": "row"}), true),
        (json!({"type": "section.fit", "nodeId": "t"}), true),
        (json!({"type": "section.create", "title": "S", "nodeIds": ["b"]}), false),
    ] {
        let footprint = Footprint::from_batch(&batch(json!([operation])), &graph());
        assert_eq!(conflict(&footprint, &regrouped("t")).is_some(), is_conflict, "{operation}");
    }
}

#[test]
fn what_the_batch_creates_was_changed_by_nobody() {
    let operations = json!([
        {"type": "node.create", "clientId": "b", "node": {"type": "video"}},
        {"type": "node.move", "nodeId": "b", "position": {"x": 1, "y": 1}},
        {"type": "connection.create", "clientId": "k", "fromNodeId": "i", "toNodeId": "b"},
        {"type": "connection.update", "connectionId": "k", "purpose": "first-frame"},
        {"type": "connection.create", "clientId": "m", "fromNodeId": "b", "toNodeId": "v"},
        {"type": "connection.delete", "connectionId": "m"},
    ]);
    assert_eq!(nodes_of(operations.clone()), ["i", "v"]);
    assert_eq!(links_of(operations), Vec::<String>::new());
    // The handle names the one on the canvas.
    let operations = json!([
        {"type": "node.create", "clientId": "b", "node": {"type": "text"}},
        {"type": "node.move", "nodeId": "node:b", "position": {"x": 1, "y": 1}},
    ]);
    assert_eq!(nodes_of(operations), ["b"]);
    // A connection that the batch creates into a video may become its first frame.
    let operations = json!([
        {"type": "connection.create", "clientId": "c", "fromNodeId": "i", "toNodeId": "v"},
        {"type": "connection.update", "connectionId": "c", "purpose": "first-frame"},
    ]);
    assert_eq!(links_of(operations), ["av", "iv"]);
}

#[test]
fn the_title_conflicts_with_a_title_and_names_no_node() {
    let renamed = ConcurrentChanges { renamed: true, ..ConcurrentChanges::default() };
    let footprint = Footprint::named_by(&batch(json!([{"type": "canvas.update", "title": "T"}])));
    assert_eq!(conflict(&footprint, &renamed), Some(vec![]));
    assert_eq!(conflict(&footprint, &node_changed("a")), None);
    let other = Footprint::named_by(&batch(json!([{"type": "node.delete", "nodeId": "b"}])));
    assert_eq!(conflict(&other, &renamed), None);
}

#[test]
fn a_start_touches_its_nodes_and_the_connections_into_its_target() {
    let footprint = Footprint::of_nodes([&id("a")]).with_links_into([&id("b")]);
    assert_eq!(conflict(&footprint, &node_changed("a")), Some(vec!["a".into()]));
    assert_eq!(conflict(&footprint, &node_changed("b")), None);
    assert_eq!(conflict(&footprint, &connection_changed("x", "a", "b")), Some(vec!["a".into()]));
    assert_eq!(conflict(&footprint, &connection_changed("x", "b", "a")), None);
}
