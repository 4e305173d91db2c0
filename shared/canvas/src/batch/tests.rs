//! Rules that a batch is checked for without a graph.

use domain::graph::Node;
use serde_json::json;

use super::*;
use crate::fixture::{asset, batch, fields, graph, image, operations};

fn refused(list: Value) -> Vec<String> {
    let violations = Batch::new(operations(list)).expect_err("violations");
    fields(&violations).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_batch_has_1_to_200_operations() {
    let of = |count| Value::from(vec![json!({"type": "canvas.update", "title": "a"}); count]);
    assert_eq!(batch(of(1)).operation_count(), 1);
    assert_eq!(batch(of(200)).operation_count(), 200);
    assert_eq!(refused(of(0)), ["operations"]);
    assert_eq!(refused(of(201)), ["operations"]);
    let mut many = vec![json!({"type": "canvas.update", "title": "a"}); 200];
    many.push(json!({"type": "node.delete", "nodeId": "a b"}));
    assert_eq!(refused(many.into()), ["operations", "operations[200].nodeId"]);
}

#[test]
fn a_client_id_is_a_plain_id_and_unique_among_nodes_and_connections() {
    let create = |client_id: &str| json!({"type": "node.create", "clientId": client_id, "node": {"type": "text"}});
    let connect = |client_id: &str| json!({"type": "connection.create", "clientId": client_id, "fromNodeId": "a", "toNodeId": "b"});
    let copy = |client_id: &str| json!({"type": "node.duplicate", "clientId": client_id, "nodeId": "n", "position": {"x": 0, "y": 0}});
    batch(json!([create("a"), connect("b"), copy(&"c".repeat(180))]));
    assert_eq!(
        refused(json!([create("a"), connect("a"), copy("a"), create(""), create("node:b"), copy(&"c".repeat(181))])),
        [1, 2, 3, 4, 5].map(|at| format!("operations[{at}].clientId"))
    );
}

#[test]
fn ids_are_plain_ids_or_handles_of_their_kind() {
    batch(json!([
        {"type": "node.delete", "nodeId": "n"},
        {"type": "node.delete", "nodeId": "node:n"},
        {"type": "connection.delete", "connectionId": "connection:c"},
    ]));
    assert_eq!(
        refused(json!([
            {"type": "node.delete", "nodeId": "connection:n"},
            {"type": "node.update", "nodeId": "", "patch": {"title": "a"}},
            {"type": "node.move", "nodeId": "a b", "position": {"x": 0, "y": 0}},
            {"type": "node.duplicate", "nodeId": "node:", "position": {"x": 0, "y": 0}},
            {"type": "connection.create", "fromNodeId": "ä", "toNodeId": "node:node:a"},
            {"type": "connection.update", "connectionId": "node:c"},
            {"type": "connection.delete", "connectionId": "x".repeat(181)},
        ])),
        [
            "operations[0].nodeId",
            "operations[1].nodeId",
            "operations[2].nodeId",
            "operations[3].nodeId",
            "operations[4].fromNodeId",
            "operations[4].toNodeId",
            "operations[5].connectionId",
            "operations[6].connectionId",
        ]
    );
}

#[test]
fn positions_and_sizes_keep_to_their_ranges() {
    let create = |x: f64, y: f64, width: f64, height: f64| {
        json!([{"type": "node.create", "node":
            {"type": "image", "position": {"x": x, "y": y}, "width": width, "height": height}}])
    };
    batch(create(1e7, -1e7, 1.0, 100_000.0));
    assert_eq!(
        refused(create(10_000_000.1, -10_000_000.1, 0.9, 100_000.1)),
        ["position.x", "position.y", "width", "height"].map(|field| format!("operations[0].node.{field}"))
    );
    assert_eq!(
        refused(json!([
            {"type": "node.move", "nodeId": "n", "position": {"x": 1e8, "y": 0}},
            {"type": "node.duplicate", "nodeId": "n", "position": {"x": 0, "y": -1e8}},
            {"type": "node.update", "nodeId": "n", "patch": {"width": 0, "height": 1e6}},
        ])),
        [
            "operations[0].position.x",
            "operations[1].position.y",
            "operations[2].patch.width",
            "operations[2].patch.height",
        ]
    );
}

#[test]
fn a_number_that_is_none_is_out_of_range() {
    let position = Position { x: f64::NAN, y: f64::INFINITY };
    let violations = Batch::new(vec![Operation::NodeMove { node_id: "n".into(), position, with_members: false }])
        .expect_err("violations");
    assert_eq!(fields(&violations), ["operations[0].position.x", "operations[0].position.y"]);
}

#[test]
fn a_title_has_at_most_160_characters() {
    let titles = |title: &str| {
        json!([
            {"type": "node.create", "node": {"type": "text", "title": title}},
            {"type": "node.update", "nodeId": "n", "patch": {"title": title}},
            {"type": "canvas.update", "title": title},
        ])
    };
    batch(titles(""));
    batch(titles(&"ä".repeat(160)));
    for wrong in ["a".repeat(161), "a\0".into()] {
        assert_eq!(
            refused(titles(&wrong)),
            ["operations[0].node.title", "operations[1].patch.title", "operations[2].title"]
        );
    }
}

#[test]
fn an_empty_patch_is_refused() {
    assert_eq!(refused(json!([{"type": "node.update", "nodeId": "n", "patch": {}}])), ["operations[0].patch"]);
    batch(json!([{"type": "node.update", "nodeId": "n", "patch": {"metadata": {}}}]));
}

#[test]
fn a_type_is_patched_to_text_or_sticky_only() {
    let patch = |kind: &str| json!([{"type": "node.update", "nodeId": "n", "patch": {"type": kind}}]);
    batch(patch("text"));
    batch(patch("sticky"));
    assert_eq!(refused(patch("image")), ["operations[0].patch.type"]);
    assert_eq!(refused(patch("video")), ["operations[0].patch.type"]);
}

#[test]
fn content_and_section_are_judged_by_the_type_that_the_request_names() {
    let create =
        |kind: &str, metadata: Value| json!([{"type": "node.create", "node": {"type": kind, "metadata": metadata}}]);
    for kind in ["image", "video"] {
        batch(create(kind, json!({"content": "", "section": false})));
        assert_eq!(refused(create(kind, json!({"content": "a"}))), ["operations[0].node.metadata.content"]);
    }
    for kind in ["text", "sticky"] {
        batch(create(kind, json!({"content": "a"})));
    }
    batch(create("sticky", json!({"section": true})));
    for kind in ["image", "video", "text"] {
        assert_eq!(refused(create(kind, json!({"section": true}))), ["operations[0].node.metadata.section"]);
    }
    let patch =
        json!([{"type": "node.update", "nodeId": "n", "patch": {"type": "text", "metadata": {"section": true}}}]);
    assert_eq!(refused(patch), ["operations[0].patch.metadata.section"]);
}

#[test]
fn a_role_needs_the_purpose_reference() {
    let connect = |more: Value| {
        let mut operation = json!({"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "role": "style"});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([operation])
    };
    batch(connect(json!({"purpose": "reference"})));
    assert_eq!(refused(connect(json!({}))), ["operations[0].role"]);
    assert_eq!(refused(connect(json!({"purpose": "list"}))), ["operations[0].role"]);
    let update = |purpose: Value, role: Value| json!([{"type": "connection.update", "connectionId": "c", "purpose": purpose, "role": role}]);
    batch(update(json!("reference"), json!("fit")));
    batch(update(json!("flow"), Value::Null));
    batch(json!([{"type": "connection.update", "connectionId": "c", "role": "fit"}]));
    assert_eq!(refused(update(json!("flow"), json!("fit"))), ["operations[0].role"]);
}

#[test]
fn metadata_violations_carry_their_path() {
    assert_eq!(
        refused(json!([
            {"type": "canvas.update", "title": "a"},
            {"type": "node.create", "node": {"type": "text", "metadata": {"job": {}, "mood": "x"}}},
            {"type": "node.update", "nodeId": "n", "patch": {"metadata": {"count": 5}}},
        ])),
        ["operations[1].node.metadata.job", "operations[1].node.metadata.mood", "operations[2].patch.metadata.count",]
    );
}

#[test]
fn a_place_is_given_or_hinted_at_and_a_section_is_named_once() {
    let create = |node: Value, near: Option<&str>, section: Option<&str>| {
        let mut operation = json!({"type": "node.create", "node": node});
        for (name, value) in [("near", near), ("sectionId", section)] {
            if let Some(value) = value {
                operation[name] = json!(value);
            }
        }
        operation
    };
    let parse = |list: Value| Batch::new(serde_json::from_value(list).expect("operations"));
    let (free, placed) = (json!({"type": "text"}), json!({"type": "text", "position": {"x": 0, "y": 0}}));
    let member = json!({"type": "text", "metadata": {"sectionId": "s"}});
    let frame = json!({"type": "sticky", "metadata": {"section": true}});
    let right = json!([
        create(free.clone(), None, None),
        create(free.clone(), Some("node:n"), Some("s")),
        create(placed.clone(), None, Some("node:s")),
        create(member.clone(), Some("n"), None),
    ]);
    assert_eq!(parse(right).expect("a batch").operation_count(), 4);
    let wrong = json!([
        create(placed, Some("n"), None),
        create(member, None, Some("s")),
        create(frame, None, Some("s")),
        create(free.clone(), Some("a b"), None),
        create(free, None, Some("connection:s")),
    ]);
    let violations = parse(wrong).expect_err("violations");
    assert_eq!(
        fields(&violations),
        [
            "operations[0].near",
            "operations[1].sectionId",
            "operations[2].sectionId",
            "operations[3].near",
            "operations[4].sectionId",
        ]
    );
}

#[test]
fn an_asset_is_named_by_its_handle_and_shown_by_an_image() {
    let create = |kind: &str, asset: &str| json!({"type": "node.create", "node": {"type": kind, "asset": asset}});
    let named = batch(json!([create("image", "asset:a"), create("image", "asset:me:b")]));
    assert_eq!(named.assets().map(|asset| asset.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let wrong =
        json!([create("text", "asset:a"), create("image", "a"), create("image", "node:a"), create("image", "")]);
    assert_eq!(refused(wrong), [0, 1, 2, 3].map(|at| format!("operations[{at}].node.asset")));
}

#[test]
fn a_masonry_needs_the_images_of_a_section_that_its_batch_makes() {
    let shown = |id: &str| Node { asset: Some(asset(id)), ..image(id) };
    let graph = graph(vec![shown("a"), shown("b"), shown("c")], vec![]);
    let made = |layout: &str| {
        batch(json!([
            {"type": "section.create", "clientId": "board", "title": "Board", "nodeIds": ["a", "b"]},
            {"type": "layout.arrange", "sectionId": "board", "layout": layout},
        ]))
    };
    let mut needed: Vec<_> =
        made("masonry").sizing_images(&graph).into_iter().map(|asset| asset.id.as_str().to_owned()).collect();
    needed.sort();
    assert_eq!(needed, ["a", "b"]);
    assert_eq!(made("grid").sizing_images(&graph).len(), 0);
}

#[test]
fn a_batch_tells_what_it_restores() {
    let restored = batch(json!([
        {"type": "node.restore", "nodeId": "node:n"},
        {"type": "node.delete", "nodeId": "m"},
        {"type": "connection.restore", "connectionId": "c"},
    ]))
    .restored();
    assert_eq!(restored, (vec![crate::fixture::id("n")], vec![crate::fixture::cid("c")]));
    assert_eq!(
        refused(json!([
            {"type": "node.restore", "nodeId": "connection:n"},
            {"type": "connection.restore", "connectionId": "node:c"},
        ])),
        ["operations[0].nodeId", "operations[1].connectionId"]
    );
}
