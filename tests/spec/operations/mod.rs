//! Operations (docs/reference/operations.md).

mod connections;
mod layout;
mod lenient;
mod lenient_model;
mod placement;
mod restore;

use e2e::api::{key, placed, text, trial};
use e2e::{Stack, images};
use serde_json::{Value, json};

use uuid::Uuid;

fn create(node: Value) -> Value {
    placed(json!([{"type": "node.create", "clientId": "n", "node": node}]))[0].take()
}

#[tokio::test]
async fn each_kind_of_node_is_created_with_its_defaults() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    for (kind, width, height) in [("image", 320, 320), ("video", 480, 270), ("text", 320, 160), ("sticky", 240, 240)] {
        let made = user.apply(text(&canvas, "/id"), json!([create(json!({"type": kind}))])).await;
        assert_eq!(made["replayed"], false);
        let id = text(&made, "/resolvedIds/n");
        assert_eq!(made["changedNodeIds"], json!([id]));
        for empty in ["deletedNodeIds", "changedConnectionIds", "deletedConnectionIds"] {
            assert_eq!(made[empty], json!([]));
        }
        let nodes = made["canvas"]["nodes"].as_array().expect("a list");
        let node = nodes.last().expect("the new one comes last");
        assert_eq!((&node["id"], &node["handle"]), (&json!(id), &json!(format!("node:{id}"))));
        assert_eq!(node["type"], kind);
        assert_eq!((node["width"].as_f64(), node["height"].as_f64()), (Some(width.into()), Some(height.into())));
        assert!(node["position"]["x"].is_number() && node["position"]["y"].is_number());
        assert!(node.get("asset").is_none());
    }
}

#[tokio::test]
async fn a_node_is_updated_moved_and_deleted() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user.apply(id, json!([create(json!({"type": "text", "position": {"x": 1, "y": 2}}))])).await;
    let node = text(&made, "/resolvedIds/n").to_owned();
    let patch = json!({"title": "T", "width": 10.5, "height": 20, "metadata": {"content": "hello"}, "type": "sticky"});
    let updated = user.apply(id, json!([{"type": "node.update", "nodeId": node, "patch": patch}])).await;
    let shown = &updated["canvas"]["nodes"][0];
    assert_eq!(
        (&shown["title"], &shown["type"], &shown["metadata"]["content"]),
        (&json!("T"), &json!("sticky"), &json!("hello"))
    );
    assert_eq!((shown["width"].as_f64(), shown["height"].as_f64()), (Some(10.5), Some(20.0)));
    let to = json!({"x": -10_000_000, "y": 10_000_000});
    let moved = user.apply(id, json!([{"type": "node.move", "nodeId": node, "position": to}])).await;
    let position = &moved["canvas"]["nodes"][0]["position"];
    assert_eq!((position["x"].as_f64(), position["y"].as_f64()), (Some(-1e7), Some(1e7)));
    assert_eq!(moved["changedNodeIds"], json!([node]));
    let deleted = user.apply(id, json!([{"type": "node.delete", "nodeId": node}])).await;
    assert_eq!((&deleted["canvas"]["nodes"], &deleted["deletedNodeIds"]), (&json!([]), &json!([node])));
    assert_eq!(deleted["changedNodeIds"], json!([]));
    assert_eq!(user.canvas(id).await, deleted["canvas"]);
    // A patch must change something, and images and videos keep their type.
    for (patch, status, code) in [
        (json!({}), 400, "input_validation_error"),
        (json!({"type": "image"}), 400, "input_validation_error"),
        (json!({"type": "video"}), 400, "input_validation_error"),
        (json!({"asset": "x"}), 400, "input_validation_error"),
        (json!({"asset": "asset:x"}), 422, "unprocessable_entity"),
    ] {
        let now = user.canvas(id).await;
        let update = json!([{"type": "node.update", "nodeId": "absent", "patch": patch}]);
        let reply = user.batch(id, text(&now, "/revision"), update).await.expect(status);
        assert_eq!(reply.json()["error"]["code"], code, "{patch}");
    }
    let image = user.apply(id, json!([create(json!({"type": "image"}))])).await;
    let update = json!([{"type": "node.update", "nodeId": image["resolvedIds"]["n"], "patch": {"type": "text"}}]);
    let refused = user.batch(id, text(&image, "/canvas/revision"), update).await.expect(422);
    assert_eq!(refused.json()["error"]["code"], "unprocessable_entity");
}

#[tokio::test]
async fn ids_are_taken_as_plain_ids_handles_and_client_ids() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user.apply(id, json!([create(json!({"type": "text"}))])).await;
    let node = text(&made, "/resolvedIds/n").to_owned();
    let moved = user
        .apply(id, json!([
            {"type": "node.move", "nodeId": node, "position": {"x": 1, "y": 0}},
            {"type": "node.move", "nodeId": format!("node:{node}"), "position": {"x": 2, "y": 0}},
            {"type": "node.create", "clientId": "other", "node": {"type": "text"}},
            {"type": "node.move", "nodeId": "other", "position": {"x": 3, "y": 5000}},
            {"type": "connection.create", "clientId": "c", "fromNodeId": format!("node:{node}"), "toNodeId": "other"},
            {"type": "connection.delete", "connectionId": "c"},
        ]))
        .await;
    assert_eq!(moved["changedNodeIds"], json!([node, moved["resolvedIds"]["other"]]), "once each, first touch first");
    let revision = text(&moved, "/canvas/revision");
    for (client_id, field) in [("a b", "operations[0].clientId"), ("", "operations[0].clientId")] {
        let node = json!({"type": "node.create", "clientId": client_id, "node": {"type": "text"}});
        user.batch(id, revision, json!([node])).await.expect_error(400, "input_validation_error", &[field]);
    }
    let twice = json!([create(json!({"type": "text"})), create(json!({"type": "text"}))]);
    user.batch(id, revision, twice).await.expect_error(400, "input_validation_error", &["operations[1].clientId"]);
    for wrong in ["connection:x", "node:", "a b"] {
        let batch = json!([{"type": "node.delete", "nodeId": wrong}]);
        user.batch(id, revision, batch).await.expect_error(400, "input_validation_error", &["operations[0].nodeId"]);
    }
    // A node that is created later in the batch does not exist yet.
    let early = json!([{"type": "node.delete", "nodeId": "n"}, create(json!({"type": "text"}))]);
    user.batch(id, revision, early).await.expect_error(422, "unprocessable_entity", &["operations[0].nodeId"]);
}

#[tokio::test]
async fn ownership_follows_the_surface_of_the_token() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    for (surface, owner) in [("api", "agent"), ("cli", "agent"), ("tool", "agent"), ("browser", "user")] {
        let user = stack.user_by(&account, "all", surface).await;
        let canvas = user.make_canvas().await;
        let made = user.apply(text(&canvas, "/id"), json!([create(json!({"type": "text"}))])).await;
        assert_eq!(made["canvas"]["nodes"][0]["metadata"]["createdBy"], owner, "{surface}");
    }
}

#[tokio::test]
async fn a_stale_revision_is_a_conflict_that_tells_the_current_one() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, first) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let made = user.batch(id, first, json!([create(json!({"type": "text"}))])).await.ok();
    let refused = user.batch(id, first, json!([create(json!({"type": "text"}))])).await.expect(409).json();
    assert_eq!(refused["error"]["code"], "conflict");
    assert_eq!(refused["error"]["details"]["currentRevision"], made["canvas"]["revision"]);
    user.batch(id, "never", json!([create(json!({"type": "text"}))])).await.expect_error(409, "conflict", &[]);
    assert_eq!(user.canvas(id).await, made["canvas"]);
}

#[tokio::test]
async fn of_concurrent_batches_on_one_revision_one_is_applied() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let batches = (0..100).map(|_| async { user.batch(id, revision, json!([create(json!({"type": "text"}))])).await });
    let (won, lost): (Vec<_>, Vec<_>) =
        futures_util::future::join_all(batches).await.into_iter().partition(|reply| reply.status == 200);
    let [winner] = &won[..] else { panic!("{} were applied", won.len()) };
    let now = user.canvas(id).await;
    assert_eq!((&winner.json()["canvas"], now["nodes"].as_array().map(Vec::len)), (&now, Some(1)));
    assert_eq!(lost.len(), 99);
    for reply in lost {
        let error = reply.expect(409).json()["error"].clone();
        assert_eq!((&error["code"], &error["details"]["currentRevision"]), (&json!("conflict"), &now["revision"]));
    }
}

#[tokio::test]
async fn an_equal_batch_is_replayed_and_not_applied_again() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let path = format!("/canvases/{id}/operations");
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [create(json!({"type": "text"}))]});
    let first = user.send(&path, &batch).await.ok();
    // The canvas changes in the meantime.
    let later = user.apply(id, json!([{"type": "node.create", "node": {"type": "sticky"}}])).await;
    let mut replay = user.send(&path, &batch).await.ok();
    assert_eq!((&replay["replayed"], &first["replayed"]), (&json!(true), &json!(false)));
    assert_eq!(replay["canvas"], later["canvas"], "the canvas as it is now");
    replay["replayed"] = json!(false);
    replay["canvas"] = first["canvas"].clone();
    assert_eq!(replay, first, "the original ids and lists");
    assert_eq!(user.canvas(id).await, later["canvas"], "nothing was done");
    // Neither the order of members, whitespace nor the form of ids makes a different request.
    let node = text(&first, "/resolvedIds/n");
    let revision = text(&later, "/canvas/revision");
    let name = key();
    let one = format!(
        r#"{{"baseRevision":"{revision}","idempotencyKey":"{name}","operations":[{{"type":"node.delete","nodeId":"{node}"}}]}}"#
    );
    let two = format!(
        r#"{{ "operations": [ {{"nodeId": "node:{node}", "type": "node.delete"}} ], "idempotencyKey": "{name}", "baseRevision": "{revision}" }}"#
    );
    let owned = format!("/canvases/{}/operations", text(&canvas, "/handle"));
    user.post(&path).body("application/json", one).await.ok();
    let again = user.post(&owned).body("application/json", two).await.ok();
    assert_eq!((&again["replayed"], &again["deletedNodeIds"]), (&json!(true), &json!([node])));
}

#[tokio::test]
async fn a_batch_that_spells_defaults_replays_one_that_leaves_them_out() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let at = |x: i32| json!({"x": x, "y": 0});
    let mut revision = text(&canvas, "/revision").to_owned();
    let batch = |operations: Value| json!({"force": true, "operations": operations});
    let plain = batch(json!([
        {"type": "node.create", "clientId": "a", "node": {"type": "text", "position": at(0)}},
        {"type": "node.create", "clientId": "b", "node": {"type": "image", "position": at(1000)}},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b"},
    ]));
    let mut spelled = batch(json!([
        {"type": "node.create", "clientId": "a", "node":
            {"type": "text", "title": "text", "position": at(0), "width": 320, "height": 160.0, "metadata": {}}},
        {"type": "node.create", "clientId": "b", "node":
            {"type": "image", "title": "image", "position": at(1000), "width": 320, "height": 320,
             "metadata": {"section": false, "prompt": null}}},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "flow"},
    ]));
    spelled["validateOnly"] = json!(false);
    for (first, second) in [(&plain, &spelled), (&spelled, &plain)] {
        let name = key();
        let named = |body: &Value| {
            let mut body = body.clone();
            body["idempotencyKey"] = json!(name);
            body["baseRevision"] = json!(revision);
            body
        };
        let made = user.send(&path, &named(first)).await.ok();
        let replay = user.send(&path, &named(second)).await.ok();
        assert_eq!((&made["replayed"], &replay["replayed"]), (&json!(false), &json!(true)));
        let mut other = named(second);
        other["operations"][0]["node"]["width"] = json!(321);
        user.send(&path, &other).await.expect_error(409, "conflict", &[]);
        revision = text(&made, "/canvas/revision").to_owned();
    }
}

#[tokio::test]
async fn no_section_is_spelled_false_or_null() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let made = user.apply(text(&canvas, "/id"), json!([create(json!({"type": "sticky"}))])).await;
    let node = &made["canvas"]["nodes"][0]["id"];
    let body = |section: Value| {
        json!({"baseRevision": made["canvas"]["revision"], "idempotencyKey": "no-section", "operations": [
            {"type": "node.update", "nodeId": node, "patch": {"title": "t", "metadata": {"section": section}}}]})
    };
    assert_eq!(user.send(&path, &body(json!(false))).await.ok()["replayed"], false);
    assert_eq!(user.send(&path, &body(Value::Null)).await.ok()["replayed"], true);
    user.send(&path, &body(json!(true))).await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn equal_batches_at_one_moment_give_one_effect() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [create(json!({"type": "text"}))]});
    let replies = futures_util::future::join_all((0..40).map(|_| async { user.send(&path, &batch).await.ok() })).await;
    assert_eq!(replies.iter().filter(|reply| reply["replayed"] == false).count(), 1);
    assert!(replies.iter().all(|reply| reply["resolvedIds"] == replies[0]["resolvedIds"]));
    assert_eq!(user.canvas(text(&canvas, "/id")).await["nodes"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_key_names_one_request() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, colleague, other) =
        (stack.user_of(&account, "all").await, stack.user_of(&account, "all").await, stack.user().await);
    let (canvas, second) = (user.make_canvas().await, user.make_canvas().await);
    let path = |canvas: &Value| format!("/canvases/{}/operations", text(canvas, "/id"));
    let name = key();
    let batch = |canvas: &Value, kind: &str| json!({"baseRevision": canvas["revision"], "idempotencyKey": name, "operations": [create(json!({"type": kind, "position": {"x": 0, "y": 0}}))]});
    user.send(&path(&canvas), &batch(&canvas, "text")).await.ok();
    // Another body, another canvas and another endpoint.
    user.send(&path(&canvas), &batch(&canvas, "sticky")).await.expect_error(409, "conflict", &[]);
    user.send(&path(&second), &batch(&second, "text")).await.expect_error(409, "conflict", &[]);
    let run = json!({"canvasId": second["id"], "baseRevision": second["revision"], "idempotencyKey": name,
        "targetNodeId": "t", "inputs": ["node:n"], "params": {"width": 1}});
    user.send("/actions/resize/runs", &run).await.expect_error(409, "conflict", &[]);
    // Keys are scoped to the account, not to the token.
    assert_eq!(colleague.send(&path(&canvas), &batch(&canvas, "text")).await.ok()["replayed"], true);
    let theirs = other.make_canvas().await;
    assert_eq!(other.send(&path(&theirs), &batch(&theirs, "text")).await.ok()["replayed"], false);
}

#[tokio::test]
async fn a_refused_batch_takes_no_key_and_leaves_nothing() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let path = format!("/canvases/{id}/operations");
    let name = key();
    let batch = |operations: Value, revision: &str| json!({"baseRevision": revision, "idempotencyKey": name, "operations": operations});
    let revision = text(&canvas, "/revision");
    let half = json!([create(json!({"type": "text"})), {"type": "node.delete", "nodeId": "absent"}]);
    user.send(&path, &batch(half, revision)).await.expect_error(422, "unprocessable_entity", &["operations[1].nodeId"]);
    user.send(&path, &batch(json!([]), revision)).await.expect(400);
    user.send(&path, &batch(json!([create(json!({"type": "text"}))]), "stale")).await.expect(409);
    assert_eq!(user.canvas(id).await, canvas);
    let done = user.send(&path, &batch(json!([create(json!({"type": "text"}))]), revision)).await.ok();
    assert_eq!(done["replayed"], false);
}

#[tokio::test]
async fn a_batch_that_changes_nothing_is_a_write() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user.apply(id, json!([create(json!({"type": "text", "position": {"x": 7, "y": 7}}))])).await;
    let stay = json!([{"type": "node.move", "nodeId": made["resolvedIds"]["n"], "position": {"x": 7, "y": 7}}]);
    let same = user.apply(id, stay).await;
    assert_ne!(same["canvas"]["revision"], made["canvas"]["revision"]);
    assert_eq!((&same["changedNodeIds"], &same["canvas"]["nodes"]), (&json!([]), &made["canvas"]["nodes"]));
}

#[tokio::test]
async fn what_a_batch_makes_and_deletes_is_in_no_list() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let done = user
        .apply(
            text(&canvas, "/id"),
            json!([
                {"type": "node.create", "clientId": "a", "node": {"type": "text"}},
                {"type": "node.create", "clientId": "b", "node": {"type": "text"}},
                {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
                {"type": "node.delete", "nodeId": "a"},
            ]),
        )
        .await;
    assert_eq!(done["changedNodeIds"], json!([done["resolvedIds"]["b"]]));
    for empty in ["deletedNodeIds", "changedConnectionIds", "deletedConnectionIds"] {
        assert_eq!(done[empty], json!([]), "{empty}");
    }
}

#[tokio::test]
async fn a_batch_holds_1_to_200_operations() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let many = |count: usize| {
        json!((0..count).map(|_| json!({"type": "node.create", "node": {"type": "text"}})).collect::<Vec<_>>())
    };
    for count in [0, 201] {
        user.batch(id, revision, many(count)).await.expect_error(400, "input_validation_error", &["operations"]);
    }
    let full = user.batch(id, revision, many(200)).await.ok();
    assert_eq!(full["canvas"]["nodes"].as_array().map(Vec::len), Some(200));
    let unknown = json!([{"type": "node.paint"}]);
    user.batch(id, "r", unknown).await.expect_error(400, "input_validation_error", &["operations[0].type"]);
    user.batch(id, "r", json!([{}])).await.expect(400);
    user.batch(id, "r", json!(["node.create"])).await.expect(400);
}

#[tokio::test]
async fn a_canvas_holds_20000_nodes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.send("/canvases", &json!({"id": "crowded"})).await.expect(201).json()["canvas"].clone();
    stack
        .execute(
            "INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned)
             SELECT key, 'n' || n, 'text', '', 400 * (n % 200), 400 * (n / 200), 320, 160, true
             FROM canvases, generate_series(1, 19999) n WHERE id = 'crowded'",
        )
        .await;
    stack.execute("UPDATE canvases SET node_count = 19999 WHERE id = 'crowded'").await;
    let more = |count: i64| {
        json!((0..count).map(|at| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 400 * at, "y": -9000}}})).collect::<Vec<_>>())
    };
    let revision = text(&canvas, "/revision");
    user.batch("crowded", revision, more(2)).await.expect_error(422, "unprocessable_entity", &["operations"]);
    let full = user.batch("crowded", revision, more(1)).await.ok();
    assert_eq!(full["canvas"]["nodes"].as_array().map(Vec::len), Some(20_000));
    let body = trial(json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": -99_000}}}]));
    let over = user.send("/canvases/crowded/operations", &body).await;
    over.expect_error(422, "unprocessable_entity", &["operations"]);
}

#[tokio::test]
async fn keys_and_revisions_have_their_lengths() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let body = |name: Value, revision: Value| json!({"baseRevision": revision, "idempotencyKey": name, "operations": [create(json!({"type": "text"}))]});
    for name in ["1234567".to_owned(), "k".repeat(201)] {
        let refused = user.send(&path, &body(json!(name), json!("r"))).await;
        refused.expect_error(400, "input_validation_error", &["idempotencyKey"]);
    }
    for revision in [String::new(), "r".repeat(201)] {
        let refused = user.send(&path, &body(json!(key()), json!(revision))).await;
        refused.expect_error(400, "input_validation_error", &["baseRevision"]);
    }
    let unique = Uuid::new_v4().simple().to_string();
    for name in [unique[..8].to_owned(), format!("{unique}{}", "k".repeat(168))] {
        let now = user.canvas(text(&canvas, "/id")).await;
        user.send(&path, &body(json!(name), now["revision"].clone())).await.ok();
    }
    user.send(&path, &body(json!(key()), json!("r".repeat(200)))).await.expect(409);
    let refused = user.send(&path, &json!({"operations": [create(json!({"type": "text"}))]})).await;
    refused.expect_error(400, "input_validation_error", &["baseRevision", "idempotencyKey"]);
}

#[tokio::test]
async fn positions_and_sizes_have_their_ranges() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for good in [
        json!({"type": "text", "position": {"x": -10_000_000, "y": 10_000_000}, "width": 1, "height": 100_000}),
        json!({"type": "text", "position": {"x": 0.25, "y": 1e-9}, "width": 1.5, "height": 1.0}),
    ] {
        user.apply(id, json!([create(good)])).await;
    }
    for (bad, field) in [
        (json!({"type": "text", "position": {"x": -10_000_000.5, "y": 0}}), "operations[0].node.position.x"),
        (json!({"type": "text", "position": {"x": 0, "y": 10_000_001}}), "operations[0].node.position.y"),
        (json!({"type": "text", "position": {"x": 0}}), "operations[0].node.position.y"),
        (json!({"type": "text", "width": 0.999}), "operations[0].node.width"),
        (json!({"type": "text", "height": 100_000.5}), "operations[0].node.height"),
        (json!({"type": "text", "width": "10"}), "operations[0].node.width"),
        (json!({"type": "cube"}), "operations[0].node.type"),
        (json!({}), "operations[0].node.type"),
    ] {
        user.batch(id, "r", json!([create(bad)])).await.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn titles_are_limited_and_default_to_the_type() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user.apply(id, json!([create(json!({"type": "sticky"}))])).await;
    assert!(text(&made, "/canvas/nodes/0/title").eq_ignore_ascii_case("sticky"));
    let longest = "ü".repeat(160);
    let made = user.apply(id, json!([create(json!({"type": "text", "title": longest}))])).await;
    assert_eq!(made["canvas"]["nodes"][1]["title"], longest);
    let over = json!([create(json!({"type": "text", "title": "x".repeat(161)}))]);
    user.batch(id, "r", over).await.expect_error(400, "input_validation_error", &["operations[0].node.title"]);
}

#[tokio::test]
async fn references_that_do_not_resolve_are_422() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    for (operation, field) in [
        (json!({"type": "node.update", "nodeId": "absent", "patch": {"title": "t"}}), "nodeId"),
        (json!({"type": "node.move", "nodeId": "node:absent", "position": {"x": 0, "y": 0}}), "nodeId"),
        (json!({"type": "node.delete", "nodeId": "absent"}), "nodeId"),
        (json!({"type": "connection.delete", "connectionId": "absent"}), "connectionId"),
    ] {
        let refused = user.batch(id, revision, json!([operation])).await;
        refused.expect_error(422, "unprocessable_entity", &[&format!("operations[0].{field}")]);
    }
    let connect = json!([create(json!({"type": "text"})),
        {"type": "connection.create", "fromNodeId": "absent", "toNodeId": "n"}]);
    user.batch(id, revision, connect).await.expect_error(422, "unprocessable_entity", &["operations[1].fromNodeId"]);
}

#[tokio::test]
async fn a_revision_is_opaque_and_never_comes_back() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let mut seen = vec![text(&canvas, "/revision").to_owned()];
    for x in [0, 1, 0, 1] {
        let change = match seen.len() {
            1 => json!([create(json!({"type": "text"}))]),
            _ => {
                let node = user.canvas(id).await["nodes"][0]["id"].clone();
                json!([{"type": "node.move", "nodeId": node, "position": {"x": x, "y": 0}}])
            }
        };
        seen.push(text(&user.apply(id, change).await, "/canvas/revision").to_owned());
    }
    let asset = user.upload_into(id, "image/png", images::png(2, 2)).await;
    assert!(asset["node"].is_string());
    seen.push(text(&user.canvas(id).await, "/revision").to_owned());
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "{seen:?}");
    assert!(seen.iter().all(|revision| (16..=200).contains(&revision.len())), "unguessable: {seen:?}");
}
