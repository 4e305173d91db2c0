//! Short names: refs of nodes and connections, slugs of canvases (docs/reference/canvases.md#refs).

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

/// The ref of the node or connection that a batch made as `name`.
fn made<'a>(result: &'a Value, name: &str) -> &'a str {
    text(&result["refs"], &format!("/{}", text(&result["resolvedIds"], &format!("/{name}"))))
}

/// A canvas with the text `n1`, the Section `n2` that it is a member of, the text `n3`, and `c1` from `n1` to `n3`.
async fn board(user: &User) -> (String, Value) {
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id").to_owned();
    let made = user
        .apply(&id, json!([
            {"type": "node.create", "clientId": "a", "node": {"type": "text", "title": "A", "position": {"x": 100, "y": 100}}},
            {"type": "section.create", "clientId": "s", "title": "S", "nodeIds": ["a"]},
            {"type": "node.create", "clientId": "b", "node": {"type": "text", "title": "B", "position": {"x": 2000, "y": 0}}},
            {"type": "connection.create", "clientId": "c", "fromNodeId": "a", "toNodeId": "b"},
        ]))
        .await;
    (id, made)
}

async fn send(user: &User, id: &str, operations: Value) -> e2e::Reply {
    let revision = user.canvas(id).await["revision"].clone();
    let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": operations});
    user.send(&format!("/canvases/{id}/operations"), &body).await
}

#[tokio::test]
async fn nodes_and_connections_are_numbered_in_the_order_of_creation() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, result) = board(&user).await;
    assert_eq!(["a", "s", "b", "c"].map(|name| made(&result, name)), ["n1", "n2", "n3", "c1"]);
    let canvas = user.canvas(&id).await;
    let refs = |items: &Value| items.as_array().expect("a list").iter().map(|it| it["ref"].clone()).collect::<Vec<_>>();
    assert_eq!(refs(&canvas["nodes"]), ["n1", "n2", "n3"]);
    assert_eq!(refs(&canvas["connections"]), ["c1"]);
    let node = user.get(&format!("/canvases/{id}/nodes/n1")).await.ok();
    assert_eq!((&node["node"]["title"], &node["outgoing"][0]["ref"]), (&json!("A"), &json!("c1")));
    assert_eq!(user.get(&format!("/canvases/{id}/nodes/node:n1")).await.ok(), node);
}

#[tokio::test]
async fn a_ref_stays_and_is_not_used_again() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, _) = board(&user).await;
    let copied = user
        .apply(
            &id,
            json!([{"type": "node.duplicate", "nodeId": "n3", "clientId": "d", "position": {"x": 2000, "y": 900}}]),
        )
        .await;
    assert_eq!(made(&copied, "d"), "n4", "a copy has its own");
    user.apply(&id, json!([{"type": "node.delete", "nodeId": "n4"}, {"type": "node.delete", "nodeId": "n3"}])).await;
    send(&user, &id, json!([{"type": "node.update", "nodeId": "n3", "patch": {"title": "x"}}])).await.expect_error(
        422,
        "unprocessable_entity",
        &["operations[0].nodeId"],
    );
    let later = user
        .apply(&id, json!([{"type": "node.create", "clientId": "e", "node": {"type": "text", "position": {"x": 5000, "y": 0}}}]))
        .await;
    assert_eq!(made(&later, "e"), "n5");
    user.apply(
        &id,
        json!([{"type": "node.restore", "nodeId": "n3"}, {"type": "connection.restore", "connectionId": "c1"}]),
    )
    .await;
    let canvas = user.canvas(&id).await;
    let of = |title: &str| {
        let nodes = canvas["nodes"].as_array().expect("a list");
        nodes.iter().find(|node| node["title"] == title).expect(title)["ref"].clone()
    };
    assert_eq!((of("B"), &canvas["connections"][0]["ref"]), (json!("n3"), &json!("c1")));
}

#[tokio::test]
async fn a_ref_is_taken_wherever_an_id_is() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, result) = board(&user).await;
    send(
        &user,
        &id,
        json!([
            {"type": "node.move", "nodeId": "node:n3", "position": {"x": 3000, "y": 0}},
            {"type": "node.update", "nodeId": "n3", "patch": {"title": "Moved", "metadata": {"sectionId": null}}},
            {"type": "node.create", "clientId": "new", "near": "n3", "node": {"type": "text"}},
            {"type": "connection.update", "connectionId": "c1", "purpose": "list"},
            {"type": "connection.create", "fromNodeId": "n3", "toNodeId": "new"},
            {"type": "section.fit", "nodeId": "n2"},
            {"type": "node.update", "nodeId": "new", "patch": {"metadata": {"sectionId": "n2"}}},
            {"type": "layout.arrange", "layout": "row", "sectionId": "node:n2"},
        ]),
    )
    .await
    .ok();
    let canvas = user.canvas(&id).await;
    assert_eq!(canvas["connections"][0]["purpose"], "list");
    assert_eq!(canvas["nodes"][3]["metadata"]["sectionId"], result["resolvedIds"]["s"], "stored is the id");
    for query in ["section=n2", "nodes=n1,node:n3"] {
        user.get(&format!("/canvases/{id}/render?{query}")).await.expect(200);
    }
    // A start.
    let asset = user.upload_into(&id, "image/png", images::png(8, 8)).await;
    let shown = text(&asset, "/node").rsplit(':').next().expect("an id").to_owned();
    let revision = |canvas: &Value| canvas["revision"].clone();
    let canvas = user.canvas(&id).await;
    let node = canvas["nodes"].as_array().expect("a list").iter().find(|node| node["id"] == shown).expect("the image");
    let start = |input: String, near: &str| {
        json!({"canvasId": id, "baseRevision": revision(&canvas), "idempotencyKey": "start-by-ref", "inputs": [input],
               "place": {"near": near}, "params": {"width": 4}})
    };
    let by_ref = start(format!("node:{}", text(node, "/ref")), "n3");
    let by_ref = user.send("/actions/resize/runs", &by_ref).await.expect(202).json();
    let by_id = start(format!("node:{shown}"), text(&result["resolvedIds"], "/b"));
    let by_id = user.send("/actions/resize/runs", &by_id).await.expect(202).json();
    assert_eq!((&by_ref["id"], &by_ref["inputs"]), (&by_id["id"], &by_id["inputs"]), "one fingerprint");
}

#[tokio::test]
async fn equal_batches_are_one_whatever_names_they_use() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, result) = board(&user).await;
    let revision = user.canvas(&id).await["revision"].clone();
    let body = |node: &str| {
        json!({"baseRevision": revision, "idempotencyKey": "named-twice", "operations": [
            {"type": "node.update", "nodeId": node, "patch": {"title": "New"}}]})
    };
    let path = format!("/canvases/{id}/operations");
    let first = user.send(&path, &body("n1")).await.expect(200).json();
    assert_eq!(first["refs"], json!({text(&result["resolvedIds"], "/a"): "n1"}));
    let again = user.send(&path, &body(text(&result["resolvedIds"], "/a"))).await.expect(200).json();
    assert_eq!((&again["replayed"], &again["refs"]), (&json!(true), &first["refs"]));
}

#[tokio::test]
async fn what_is_no_ref_of_the_canvas_is_an_unknown_id() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, _) = board(&user).await;
    for name in ["n0", "n01", "N1", "n4", "n99999999999", "node:c1"] {
        send(&user, &id, json!([{"type": "node.update", "nodeId": name, "patch": {"title": "x"}}])).await.expect_error(
            422,
            "unprocessable_entity",
            &["operations[0].nodeId"],
        );
    }
    for name in ["c0", "c2", "n1", "connection:n1"] {
        send(&user, &id, json!([{"type": "connection.delete", "connectionId": name}])).await.expect_error(
            422,
            "unprocessable_entity",
            &["operations[0].connectionId"],
        );
    }
    user.get(&format!("/canvases/{id}/nodes/n4")).await.expect_error(404, "not_found", &[]);
    let frame = json!({"model": "m", "prompt": "p", "idempotencyKey": key(), "firstFrame": "node:n1"});
    user.send("/videos/generate", &frame).await.expect_error(400, "input_validation_error", &["canvasId"]);
}

#[tokio::test]
async fn a_node_is_named_once_by_id_and_ref() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, result) = board(&user).await;
    let nodes = json!([text(&result["resolvedIds"], "/a"), "n1"]);
    send(&user, &id, json!([{"type": "layout.arrange", "layout": "row", "nodeIds": nodes}])).await.expect_error(
        400,
        "input_validation_error",
        &["operations[0].nodeIds[1]"],
    );
}

#[tokio::test]
async fn a_client_id_of_the_form_of_a_ref_wins_within_its_batch() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, _) = board(&user).await;
    send(&user, &id, json!([
        {"type": "node.create", "clientId": "n1", "node": {"type": "text", "title": "New", "position": {"x": 0, "y": 4000}}},
        {"type": "node.update", "nodeId": "n1", "patch": {"title": "By clientId"}},
        {"type": "node.update", "nodeId": "node:n1", "patch": {"title": "By ref"}},
    ]))
    .await
    .ok();
    let titles: Vec<Value> =
        user.canvas(&id).await["nodes"].as_array().expect("a list").iter().map(|node| node["title"].clone()).collect();
    assert_eq!(titles, ["By ref", "S", "B", "By clientId"]);
}

#[tokio::test]
async fn rows_of_the_previous_release_get_refs_when_they_are_loaded() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, _) = board(&user).await;
    let slug = text(&user.canvas(&id).await, "/slug").to_owned();
    // What it writes: a row without a ref, and a revision.
    sqlx::query(
        "WITH canvas AS (
             UPDATE canvases SET sequence = sequence + 1, revision = 'r-older', slug = NULL WHERE id = $1 RETURNING key, sequence
         ), noted AS (
             INSERT INTO canvas_changes (canvas_key, sequence, revision, changed_nodes, made_nodes)
             SELECT key, sequence, 'r-older', '{older}', '{older}' FROM canvas
         )
         INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned, metadata, server)
         SELECT key, 'older', 'text', 'Older', 0, 6000, 320, 160, false, '{}', '{}' FROM canvas",
    )
    .bind(&id)
    .execute(stack.pool())
    .await
    .expect("writes like the previous release");
    let canvas = user.canvas(&id).await;
    assert_eq!(canvas["revision"], "r-older", "refs make no revision");
    let node = canvas["nodes"].as_array().expect("a list").iter().find(|node| node["id"] == "older").expect("the node");
    assert_eq!(node["ref"], "n4");
    assert_ne!(text(&canvas, "/slug"), slug);
    let near = json!([{"type": "node.create", "clientId": "e", "near": "n4", "node": {"type": "text"}}]);
    let later = send(&user, &id, near).await.ok();
    assert_eq!(made(&later, "e"), "n5");
}

#[tokio::test]
async fn a_slug_names_its_canvas_everywhere() {
    let stack = &Stack::without_workers().await;
    let (user, stranger) = (stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    let (slug, handle) = (text(&canvas, "/slug"), text(&canvas, "/handle"));
    assert!(slug.len() == 9 && slug.starts_with('~'), "{slug}");
    let read = user.get(&format!("/canvases/{slug}")).await.ok();
    assert_eq!(read, user.get(&format!("/canvases/{handle}")).await.ok());
    let listed = user.get("/canvases").await.ok();
    assert_eq!(listed["canvases"][0]["slug"], slug);
    for list in ["assets", "runs", "campaigns"] {
        user.get(&format!("/{list}?canvasId={slug}")).await.ok();
    }
    let made = user.apply(slug, json!([{"type": "node.create", "clientId": "a", "node": {"type": "image"}}])).await;
    assert_eq!(made["canvas"]["handle"], handle);
    let asset = user.upload_into(slug, "image/png", images::png(8, 8)).await;
    let revision = user.canvas(slug).await["revision"].clone();
    let start = |canvas: &str| {
        json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": "by-slug-or-handle", "targetNodeId": "n1",
               "inputs": [text(&asset, "/handle")], "params": {"width": 4}})
    };
    let first = user.send("/actions/resize/runs", &start(slug)).await.expect(202).json();
    let again = user.send("/actions/resize/runs", &start(handle)).await.expect(202).json();
    assert_eq!(first["id"], again["id"], "one fingerprint");
    assert_eq!(user.get(&format!("/runs?canvasId={slug}")).await.ok()["runs"][0]["canvasId"], handle);
    let (status, _, page) = stack.anonymous().fetch(&format!("/c/{slug}")).await;
    assert!(status == 200 || status == 404 && page.starts_with("The console is not part"), "{status} {page}");
    // It opens nothing.
    for path in ["", "/outline", "/review", "/render"] {
        stranger.get(&format!("/canvases/{slug}{path}")).await.expect_error(404, "not_found", &[]);
    }
    stranger.get(&format!("/runs?canvasId={slug}")).await.expect_error(404, "not_found", &[]);
    stranger.send("/actions/resize/runs", &start(slug)).await.expect_error(404, "not_found", &[]);
    for wrong in [&slug[..8], &slug.to_uppercase(), &format!("canvas:{slug}")] {
        user.get(&format!("/canvases/{wrong}")).await.expect_error(400, "input_validation_error", &["canvasId"]);
    }
    let wrong = start(&format!("canvas:{slug}"));
    user.send("/actions/resize/runs", &wrong).await.expect_error(400, "input_validation_error", &["canvasId"]);
}

#[tokio::test]
async fn a_shared_canvas_is_named_by_its_slug() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer) = (stack.user().await, stack.user().await);
    let (id, _) = board(&owner).await;
    let canvas = owner.canvas(&id).await;
    stack.share(&owner, &id, &viewer.uid, "viewer").await;
    let read = viewer.get(&format!("/canvases/{}/nodes/n1", text(&canvas, "/slug"))).await.ok();
    assert_eq!((&read["node"]["title"], &read["canvas"]["accessRole"]), (&json!("A"), &json!("viewer")));
}
