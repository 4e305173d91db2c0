//! New nodes that show an asset, and those that the service places (docs/reference/operations.md#nodecreate).

use e2e::api::{key, text};
use e2e::{Reply, Stack, User, images};
use serde_json::{Value, json};

/// Sends a batch whose nodes keep their missing positions.
async fn send(user: &User, canvas: &str, operations: &Value) -> Reply {
    let revision = user.canvas(canvas).await["revision"].clone();
    let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": operations});
    user.send(&format!("/canvases/{canvas}/operations"), &body).await
}

async fn tried(user: &User, canvas: &str, operations: &Value) -> Reply {
    let body = json!({"validateOnly": true, "operations": operations});
    user.send(&format!("/canvases/{canvas}/operations"), &body).await
}

fn place(node: &Value) -> [f64; 4] {
    let number = |pointer: &str| node.pointer(pointer).and_then(Value::as_f64).expect("a number");
    [number("/position/x"), number("/position/y"), number("/width"), number("/height")]
}

fn last(reply: &Value) -> [f64; 4] {
    place(reply["canvas"]["nodes"].as_array().and_then(|nodes| nodes.last()).expect("a node"))
}

#[tokio::test]
async fn a_node_without_a_position_is_placed_to_the_right_of_the_content() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let create = json!([{"type": "node.create", "node": {"type": "image"}}]);
    for x in [0.0, 360.0, 720.0] {
        tried(&user, &id, &create).await.ok();
        assert_eq!(last(&send(&user, &id, &create).await.ok()), [x, 0.0, 320.0, 320.0]);
    }
}

#[tokio::test]
async fn a_node_is_placed_next_to_another_one() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let far = json!({"type": "text", "position": {"x": 9000, "y": 0}});
    let first = json!({"type": "image", "position": {"x": 0, "y": 0}});
    let creates = json!([
        {"type": "node.create", "node": far},
        {"type": "node.create", "clientId": "a", "node": first},
        {"type": "node.create", "node": {"type": "image"}, "near": "a"},
    ]);
    let made = send(&user, &id, &creates).await.ok();
    assert_eq!(last(&made), [360.0, 0.0, 320.0, 320.0], "right of it");
    let near = format!("node:{}", text(&made, "/resolvedIds/a"));
    for at in [[0.0, 360.0], [-360.0, 0.0], [0.0, -360.0]] {
        let next = json!([{"type": "node.create", "node": {"type": "image"}, "near": near}]);
        assert_eq!(last(&send(&user, &id, &next).await.ok())[..2], at, "below, left, above");
    }
}

#[tokio::test]
async fn a_node_is_placed_in_its_section_which_grows_if_it_must() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let section = json!({"type": "sticky", "position": {"x": 100, "y": 100}, "width": 760, "height": 500, "metadata": {"section": true}});
    let made = send(&user, &id, &json!([{"type": "node.create", "clientId": "s", "node": section}])).await.ok();
    let section = text(&made, "/resolvedIds/s").to_owned();
    let by_operation =
        json!([{"type": "node.create", "node": {"type": "image"}, "sectionId": format!("node:{section}")}]);
    let by_metadata = json!([{"type": "node.create", "node": {"type": "image", "metadata": {"sectionId": section}}}]);
    let first = send(&user, &id, &by_operation).await.ok();
    assert_eq!(last(&first)[..2], [140.0, 196.0]);
    assert_eq!(first["canvas"]["nodes"][1]["metadata"]["sectionId"], section.as_str());
    let second = send(&user, &id, &by_metadata).await.ok();
    assert_eq!(last(&second)[..2], [500.0, 196.0]);
    assert_eq!(second["changedNodeIds"].as_array().map(Vec::len), Some(1));
    // Full: it grows downward, and the growth is a change.
    let third = send(&user, &id, &by_operation).await.ok();
    assert_eq!(last(&third)[..2], [140.0, 556.0]);
    assert_eq!(place(&third["canvas"]["nodes"][0]), [100.0, 100.0, 760.0, 816.0]);
    assert_eq!(third["changedNodeIds"].as_array().map(Vec::len), Some(2));
    assert!(third["changedNodeIds"].as_array().expect("a list").contains(&json!(section)));
    // A node that is in the way below: it grows to the right.
    let below = json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 100, "y": 950}}}]);
    send(&user, &id, &below).await.ok();
    send(&user, &id, &by_operation).await.ok();
    let wide = json!([{"type": "node.create", "node": {"type": "image"}, "sectionId": section}]);
    let grown = send(&user, &id, &wide).await.ok();
    assert_eq!(last(&grown)[..2], [860.0, 196.0]);
    assert_eq!(place(&grown["canvas"]["nodes"][0]), [100.0, 100.0, 1120.0, 816.0]);
    // Another one on the right: it grows to the left, and its members stay.
    let beside = json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 1260, "y": 100}}}]);
    send(&user, &id, &beside).await.ok();
    assert_eq!(last(&send(&user, &id, &by_operation).await.ok())[..2], [860.0, 556.0]);
    let grown = send(&user, &id, &by_operation).await.ok();
    assert_eq!(last(&grown)[..2], [-220.0, 196.0]);
    assert_eq!(place(&grown["canvas"]["nodes"][0]), [-260.0, 100.0, 1480.0, 816.0]);
    assert_eq!(place(&grown["canvas"]["nodes"][1])[..2], [140.0, 196.0]);
}

#[tokio::test]
async fn placed_nodes_never_overlap() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let kinds = ["image", "text", "sticky", "video"];
    let create = |at: usize| {
        let mut operation =
            json!({"type": "node.create", "clientId": format!("n{at}"), "node": {"type": kinds[at % 4]}});
        if !at.is_multiple_of(3) {
            operation["near"] = json!(format!("n{}", at / 2));
        }
        operation
    };
    let made = send(&user, &id, &(0..200).map(create).collect()).await.ok();
    let nodes: Vec<[f64; 4]> = made["canvas"]["nodes"].as_array().expect("a list").iter().map(place).collect();
    assert_eq!(nodes.len(), 200);
    for (at, a) in nodes.iter().enumerate() {
        for b in &nodes[at + 1..] {
            let apart = a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
            assert!(apart, "{a:?} {b:?}");
        }
    }
}

#[tokio::test]
async fn a_place_has_rules() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let note = json!({"type": "text"});
    let placed = json!({"type": "text", "position": {"x": 0, "y": 0}});
    let member = json!({"type": "text", "metadata": {"sectionId": "s"}});
    let section = json!({"type": "sticky", "metadata": {"section": true}});
    let invalid = json!([
        {"type": "node.create", "node": placed, "near": "n"},
        {"type": "node.create", "node": member, "sectionId": "s"},
        {"type": "node.create", "node": section, "sectionId": "s"},
    ]);
    for reply in [send(&user, &id, &invalid).await, tried(&user, &id, &invalid).await] {
        let fields = ["operations[0].near", "operations[1].sectionId", "operations[2].sectionId"];
        reply.expect_error(400, "input_validation_error", &fields);
    }
    let malformed = json!([
        {"type": "node.create", "node": note, "near": "connection:n"},
        {"type": "node.create", "node": note, "sectionId": "a b"},
    ]);
    for reply in [send(&user, &id, &malformed).await, tried(&user, &id, &malformed).await] {
        reply.expect_error(400, "input_validation_error", &["operations[0].near", "operations[1].sectionId"]);
    }
    let absent = json!([
        {"type": "node.create", "clientId": "n", "node": note, "near": "absent", "sectionId": "absent"},
        {"type": "node.create", "node": note},
        {"type": "node.create", "node": note, "near": "n", "sectionId": "n"},
        {"type": "node.create", "clientId": "t", "node": note},
        {"type": "node.create", "node": placed, "sectionId": "t"},
    ]);
    let fields = ["operations[0].near", "operations[0].sectionId", "operations[4].sectionId"];
    tried(&user, &id, &absent).await.expect_error(422, "unprocessable_entity", &fields);
}

#[tokio::test]
async fn an_image_node_shows_an_asset() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let asset = user.upload("image/png", images::png(640, 480)).await;
    let handle = text(&asset, "/handle").to_owned();
    let short = format!("asset:{}", text(&asset, "/id"));
    let create = |asset: &str, more: Value| {
        let mut node = json!({"type": "image", "asset": asset});
        node.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!([{"type": "node.create", "clientId": "n", "node": node}])
    };
    let made = send(&user, &id, &create(&short, json!({"title": "Shot"}))).await.ok();
    let node = &made["canvas"]["nodes"][0];
    assert_eq!((&node["asset"], &node["title"]), (&json!(handle), &json!("Shot")));
    assert_eq!(last(&made)[2..], [320.0, 240.0 + 28.0], "the image and its caption");
    let read = user.get(&format!("/canvases/{id}/nodes/{}", text(node, "/id"))).await.ok();
    assert!(read["previewUrl"].is_string());
    let sized = send(&user, &id, &create(&handle, json!({"width": 100, "height": 50}))).await.ok();
    assert_eq!(last(&sized)[2..], [100.0, 50.0]);
    // An asset of another canvas of the owner, and one of this canvas.
    let other = text(&user.make_canvas().await, "/id").to_owned();
    for canvas in [&other, &id] {
        let stored = user.upload_into(canvas, "image/png", images::png(30, 30)).await;
        let made = send(&user, &id, &create(text(&stored, "/handle"), json!({}))).await.ok();
        assert_eq!(last(&made)[2..], [320.0, 348.0]);
    }
}

#[tokio::test]
async fn an_asset_has_rules() {
    let stack = &Stack::without_workers().await;
    let (user, stranger) = (stack.user().await, stack.user().await);
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let asset = text(&user.upload("image/png", images::png(20, 20)).await, "/handle").to_owned();
    let foreign = text(&stranger.upload("image/png", images::png(20, 21)).await, "/handle").to_owned();
    let create = |kind: &str, asset: &str| json!({"type": "node.create", "node": {"type": kind, "asset": asset}});
    let fields = ["operations[0].node.asset", "operations[1].node.asset"];
    for invalid in [
        json!([create("text", &asset), create("sticky", &asset)]),
        json!([create("image", "plain"), create("image", "node:n")]),
    ] {
        for reply in [send(&user, &id, &invalid).await, tried(&user, &id, &invalid).await] {
            reply.expect_error(400, "input_validation_error", &fields);
        }
    }
    let absent = json!([create("image", "asset:absent"), create("image", &foreign), create("image", &asset)]);
    for reply in [send(&user, &id, &absent).await, tried(&user, &id, &absent).await] {
        reply.expect_error(422, "unprocessable_entity", &fields);
    }
}

#[tokio::test]
async fn an_editor_names_the_assets_of_the_canvas_alone() {
    let stack = &Stack::without_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let id = text(&owner.make_canvas().await, "/id").to_owned();
    stack.share(&owner, &id, &editor.uid, "editor").await;
    let canvas = format!("canvas:{}:{id}", owner.uid);
    let stored = text(&owner.upload_into(&id, "image/png", images::png(20, 22)).await, "/handle").to_owned();
    let owners = text(&owner.upload("image/png", images::png(20, 23)).await, "/handle").to_owned();
    let own = text(&editor.upload("image/png", images::png(20, 24)).await, "/handle").to_owned();
    let create = |asset: &str| json!([{"type": "node.create", "node": {"type": "image", "asset": asset}}]);
    send(&editor, &canvas, &create(&stored)).await.ok();
    for refused in [&owners, &own] {
        let reply = send(&editor, &canvas, &create(refused)).await;
        reply.expect_error(422, "unprocessable_entity", &["operations[0].node.asset"]);
    }
    send(&owner, &id, &create(&owners)).await.ok();
    send(&owner, &id, &create(&own)).await.expect_error(422, "unprocessable_entity", &["operations[0].node.asset"]);
}

#[tokio::test]
async fn equal_spellings_of_a_creation_are_one_request() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let asset = user.upload("image/png", images::png(40, 20)).await;
    let first =
        user.apply(text(&canvas, "/id"), json!([{"type": "node.create", "clientId": "a", "node": {"type": "text"}}]));
    let first = first.await;
    let (near, name) = (text(&first, "/resolvedIds/a").to_owned(), key());
    let body = |asset: &str, near: &str| {
        json!({"baseRevision": first["canvas"]["revision"], "idempotencyKey": name,
               "operations": [{"type": "node.create", "node": {"type": "image", "asset": asset}, "near": near}]})
    };
    let made = user.send(&path, &body(&format!("asset:{}", text(&asset, "/id")), &near)).await.ok();
    assert_eq!(made["replayed"], false);
    let again = user.send(&path, &body(text(&asset, "/handle"), &format!("node:{near}"))).await.ok();
    assert_eq!(again["replayed"], true);
    let mut sized = body(text(&asset, "/handle"), &near);
    sized["operations"][0]["node"]["width"] = json!(320);
    sized["operations"][0]["node"]["height"] = json!(320);
    user.send(&path, &sized).await.expect_error(409, "conflict", &[]);
}
