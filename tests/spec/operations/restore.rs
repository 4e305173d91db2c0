//! Restoring what was deleted (docs/reference/operations.md#noderestore).

use e2e::api::{key, text, trial};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

/// A canvas with an image in a Section, a text that refers to it, and the ids of the Section, the image, the text and the
/// connection.
async fn board(user: &User) -> (String, [String; 4]) {
    let id = text(&user.make_canvas().await, "/id").to_owned();
    user.upload_into(&id, "image/png", images::png(64, 48)).await;
    let image = text(&user.canvas(&id).await, "/nodes/0/id").to_owned();
    let section = json!({"type": "sticky", "position": {"x": -100, "y": -200}, "width": 2000, "height": 2000, "metadata": {"section": true}});
    let made = user
        .apply(&id, json!([
            {"type": "node.create", "clientId": "s", "node": section},
            {"type": "node.update", "nodeId": image, "patch": {"title": "Shot", "metadata": {"sectionId": "s", "prompt": "p"}}},
            {"type": "node.create", "clientId": "t", "node": {"type": "text", "position": {"x": 3000, "y": 0}}},
            {"type": "connection.create", "clientId": "c", "fromNodeId": image, "toNodeId": "t", "purpose": "reference", "role": "style"},
        ]))
        .await;
    let id_of = |name: &str| text(&made, &format!("/resolvedIds/{name}")).to_owned();
    (id, [id_of("s"), image, id_of("t"), id_of("c")])
}

fn delete(node: &str) -> Value {
    json!({"type": "node.delete", "nodeId": node})
}

fn restore(node: &str) -> Value {
    json!({"type": "node.restore", "nodeId": node})
}

fn reconnect(connection: &str) -> Value {
    json!({"type": "connection.restore", "connectionId": connection})
}

/// Nodes and connections of a canvas.
async fn graph(user: &User, canvas: &str) -> (Value, Value) {
    let canvas = user.canvas(canvas).await;
    (canvas["nodes"].clone(), canvas["connections"].clone())
}

#[tokio::test]
async fn what_was_deleted_comes_back_exactly_as_it_was() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, _, connection]) = board(&user).await;
    let before = graph(&user, &id).await;
    assert_eq!(before.0[0]["metadata"]["provenance"]["kind"], "upload");
    user.apply(&id, json!([delete(&image)])).await;
    user.apply(&id, json!([{"type": "canvas.update", "title": "Later"}])).await;
    let restored = user
        .apply(&id, json!([restore(&format!("node:{image}")), reconnect(&format!("connection:{connection}"))]))
        .await;
    assert_eq!(restored["changedNodeIds"], json!([image]));
    assert_eq!(restored["changedConnectionIds"], json!([connection]));
    assert_eq!((&restored["deletedNodeIds"], &restored["resolvedIds"]), (&json!([]), &json!({})));
    assert_eq!(graph(&user, &id).await, before, "image, provenance, Section, connection and order");
    let read = user.get(&format!("/canvases/{id}/nodes/{image}")).await.ok();
    let preview = text(&read, "/previewUrl").to_owned();
    let path = format!("/{}", preview.splitn(4, '/').nth(3).expect("a path"));
    assert!(path.contains("/assets/preview"), "{path}");
    // Again, with the connection deleted by itself.
    user.apply(&id, json!([{"type": "connection.delete", "connectionId": connection}])).await;
    user.apply(&id, json!([reconnect(&connection)])).await;
    assert_eq!(graph(&user, &id).await, before);
}

#[tokio::test]
async fn what_one_batch_changed_and_deleted_comes_back_as_it_was_before() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [section, image, text_node, connection]) = board(&user).await;
    let before = graph(&user, &id).await;
    let change = |node: &str| {
        [
            json!({"type": "node.update", "nodeId": node, "patch": {"title": "Changed"}}),
            json!({"type": "node.move", "nodeId": node, "position": {"x": 7, "y": 7}}),
            delete(node),
        ]
    };
    let purpose = json!({"type": "connection.update", "connectionId": connection, "purpose": "list"});
    let batch = [vec![purpose], [&image, &section, &text_node].iter().flat_map(|node| change(node)).collect()].concat();
    user.apply(&id, json!(batch)).await;
    let back = json!([restore(&image), restore(&section), restore(&text_node), reconnect(&connection)]);
    let restored = user.apply(&id, back).await;
    assert_eq!(graph(&user, &id).await, before);
    let mut changed: Vec<&str> =
        restored["changedNodeIds"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let mut expected = [&section, &image, &text_node].map(String::as_str);
    changed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(changed, expected);
}

#[tokio::test]
async fn the_members_of_a_section_come_back_with_it() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [section, image, ..]) = board(&user).await;
    let before = graph(&user, &id).await;
    let freed = user.apply(&id, json!([delete(&section)])).await;
    assert_eq!(freed["changedNodeIds"], json!([image]));
    let restored = user.apply(&id, json!([restore(&section)])).await;
    assert_eq!(restored["changedNodeIds"], json!([section, image]));
    assert_eq!(graph(&user, &id).await, before);
    // A member that belongs to another Section now stays there.
    user.apply(&id, json!([delete(&section)])).await;
    let other = json!({"type": "sticky", "position": {"x": -100, "y": -200}, "width": 2000, "height": 2000, "metadata": {"section": true}});
    let made = user.apply(
        &id,
        json!([
            {"type": "node.create", "clientId": "o", "node": other},
            {"type": "node.update", "nodeId": image, "patch": {"metadata": {"sectionId": "o"}}},
        ]),
    );
    let other = text(&made.await, "/resolvedIds/o").to_owned();
    let restored = user.apply(&id, json!([restore(&section)])).await;
    assert_eq!(restored["changedNodeIds"], json!([section]));
    let home = |section: &str| json!([{"type": "node.update", "nodeId": image, "patch": {"metadata": {"sectionId": section}}}]);
    assert_eq!(user.apply(&id, home(&other)).await["changedNodeIds"], json!([]), "it is there");
    user.apply(&id, json!([home(&section)[0], delete(&other)])).await;
    // A Section that is gone is dropped from a member that comes back.
    user.apply(&id, json!([delete(&image)])).await;
    user.apply(&id, json!([delete(&section)])).await;
    let restored = user.apply(&id, json!([restore(&image)])).await;
    assert_eq!(restored["changedNodeIds"], json!([image]));
    assert!(restored["canvas"]["nodes"][0]["metadata"].get("sectionId").is_none());
}

#[tokio::test]
async fn changes_report_what_was_restored() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, _, connection]) = board(&user).await;
    let first = text(&user.canvas(&id).await, "/revision").to_owned();
    let deleted = text(&user.apply(&id, json!([delete(&image)])).await, "/canvas/revision").to_owned();
    user.apply(&id, json!([restore(&image), reconnect(&connection)])).await;
    for since in [&first, &deleted] {
        let changes = user.get(&format!("/canvases/{id}/changes?since={since}")).await.ok();
        assert_eq!(changes["changedNodeIds"], json!([image]), "since {since}");
        assert_eq!(changes["changedConnectionIds"], json!([connection]));
        assert_eq!((&changes["deletedNodeIds"], &changes["deletedConnectionIds"]), (&json!([]), &json!([])));
    }
    user.apply(&id, json!([delete(&image)])).await;
    let changes = user.get(&format!("/canvases/{id}/changes?since={first}")).await.ok();
    assert_eq!(changes["deletedNodeIds"], json!([image]), "it was there at first");
    let changes = user.get(&format!("/canvases/{id}/changes?since={deleted}")).await.ok();
    assert_eq!(changes["deletedNodeIds"], json!([]), "it was gone before");
    assert_eq!(changes["changedNodeIds"], json!([]));
}

#[tokio::test]
async fn what_cannot_be_restored_is_named() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [section, image, text_node, connection]) = board(&user).await;
    let other = board(&user).await;
    user.apply(&other.0, json!([delete(&other.1[0])])).await;
    let refused = async |operations: Value, fields: &[&str]| {
        let now = user.canvas(&id).await;
        user.batch(&id, text(&now, "/revision"), operations.clone()).await.expect_error(
            422,
            "unprocessable_entity",
            fields,
        );
        let tried = user.send(&format!("/canvases/{id}/operations"), &trial(operations)).await;
        tried.expect_error(422, "unprocessable_entity", fields);
    };
    let batch =
        json!([restore(&section), restore("never"), restore(&other.1[0]), reconnect(&connection), reconnect("never")]);
    let fields = [0, 1, 2].map(|at| format!("operations[{at}].nodeId"));
    let links = [3, 4].map(|at| format!("operations[{at}].connectionId"));
    let all: Vec<&str> = fields.iter().chain(&links).map(String::as_str).collect();
    refused(batch, &all).await;
    user.apply(&id, json!([delete(&image)])).await;
    refused(json!([reconnect(&connection)]), &["operations[0].connectionId"]).await;
    // An equal connection was made meanwhile, or the node of this batch was made and deleted in it.
    user.apply(&id, json!([restore(&image)])).await;
    let again =
        json!({"type": "connection.create", "fromNodeId": image, "toNodeId": text_node, "purpose": "reference"});
    user.apply(&id, json!([again])).await;
    refused(json!([reconnect(&connection)]), &["operations[0].connectionId"]).await;
    let brief = json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "text"}}, delete("n"), restore("n"),
    ]);
    refused(brief, &["operations[2].nodeId"]).await;
    // Ids must be well formed, and other accounts see nothing.
    let now = user.canvas(&id).await;
    let malformed = json!([restore("connection:x"), reconnect("node:x"), restore("")]);
    let fields = ["operations[0].nodeId", "operations[1].connectionId", "operations[2].nodeId"];
    user.batch(&id, text(&now, "/revision"), malformed).await.expect_error(400, "input_validation_error", &fields);
    let stranger = stack.user().await;
    let handle = format!("canvas:{}:{id}", user.uid);
    let reply = stranger.batch(&handle, "r", json!([restore(&image)])).await;
    reply.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn what_was_deleted_1000_revisions_ago_can_be_restored_and_no_earlier() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, _, connection]) = board(&user).await;
    user.apply(&id, json!([delete(&image)])).await;
    // 999 more changes, of which 998 are inserted directly: the deletion is the oldest of the last 1000.
    sqlx::query(
        "WITH later AS (
             UPDATE canvases SET sequence = sequence + 998 WHERE id = $1 RETURNING key, sequence
         )
         INSERT INTO canvas_changes (canvas_key, sequence, revision)
         SELECT key, s, 'made-' || s FROM later, generate_series(later.sequence - 997, later.sequence) AS s",
    )
    .bind(&id)
    .execute(stack.pool())
    .await
    .expect("ages the canvas");
    let rename = |title: &str| json!([{"type": "canvas.update", "title": title}]);
    user.apply(&id, rename("999")).await;
    let path = format!("/canvases/{id}/operations");
    user.send(&path, &trial(json!([restore(&image), reconnect(&connection)]))).await.ok();
    user.apply(&id, rename("1000")).await;
    let late = user.send(&path, &trial(json!([restore(&image), reconnect(&connection)]))).await;
    let fields = ["operations[0].nodeId", "operations[1].connectionId"];
    late.expect_error(422, "unprocessable_entity", &fields);
    for number in 1001..1032 {
        user.apply(&id, rename(&number.to_string())).await;
    }
    let kept = "SELECT (SELECT count(*) FROM deleted_nodes d JOIN canvases c ON c.key = d.canvas_key WHERE c.id = $1)
                     + (SELECT count(*) FROM deleted_connections d JOIN canvases c ON c.key = d.canvas_key WHERE c.id = $1)";
    let kept: i64 = sqlx::query_scalar(kept).bind(&id).fetch_one(stack.pool()).await.expect("counts");
    assert_eq!(kept, 0, "what cannot be restored is deleted soon");
}

#[tokio::test]
async fn of_more_than_64_mib_of_deletions_the_oldest_cannot_be_restored() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [section, image, text_node, connection]) = board(&user).await;
    user.apply(&id, json!([delete(&image)])).await;
    // As if 64 MiB were deleted between the two.
    sqlx::query("UPDATE canvases SET deleted_bytes = deleted_bytes + 67108864 WHERE id = $1")
        .bind(&id)
        .execute(stack.pool())
        .await
        .expect("counts deletions");
    user.apply(&id, json!([delete(&text_node)])).await;
    let path = format!("/canvases/{id}/operations");
    let late = user.send(&path, &trial(json!([restore(&image), reconnect(&connection)]))).await;
    let message =
        late.expect_error(422, "unprocessable_entity", &["operations[0].nodeId", "operations[1].connectionId"]);
    assert!(message.contains("64 MiB"), "{message}");
    // What the same batch deletes and restores is none of them.
    user.apply(&id, json!([restore(&text_node), delete(&section), restore(&section)])).await;
}

#[tokio::test]
async fn a_dry_run_of_a_restore_writes_nothing() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, _, connection]) = board(&user).await;
    user.apply(&id, json!([delete(&image)])).await;
    let before = user.canvas(&id).await;
    let body = trial(json!([restore(&image), reconnect(&connection)]));
    let path = format!("/canvases/{id}/operations");
    for _ in 0..2 {
        let tried = user.send(&path, &body).await.ok();
        assert_eq!(tried["proposal"]["changedNodeIds"], json!([image]));
        assert_eq!(tried["proposal"]["changedConnectionIds"], json!([connection]));
        assert_eq!(tried["destructiveImpact"]["destructive"], false);
    }
    assert_eq!(user.canvas(&id).await, before);
}

#[tokio::test]
async fn an_equal_restore_is_replayed() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, ..]) = board(&user).await;
    let deleted = user.apply(&id, json!([delete(&image)])).await;
    let batch = |node: &str, key: &str| json!({"baseRevision": deleted["canvas"]["revision"], "idempotencyKey": key, "operations": [restore(node)]});
    let (path, name) = (format!("/canvases/{id}/operations"), key());
    let first = user.send(&path, &batch(&image, &name)).await.ok();
    let again = user.send(&path, &batch(&format!("node:{image}"), &name)).await.ok();
    assert_eq!((&first["replayed"], &again["replayed"]), (&json!(false), &json!(true)));
    assert_eq!(again["changedNodeIds"], json!([image]));
    // Of two writers on one revision, one restores.
    user.send(&path, &batch(&image, &key())).await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn a_restore_is_not_refused_for_an_overlap() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, _, node, _]) = board(&user).await;
    user.apply(&id, json!([delete(&node)])).await;
    user.apply(&id, json!([{"type": "node.create", "node": {"type": "text", "position": {"x": 3000, "y": 0}}}])).await;
    let tried = user.send(&format!("/canvases/{id}/operations"), &trial(json!([restore(&node)]))).await.ok();
    assert_eq!(tried["validation"]["status"], "advisory");
    assert_eq!(tried["validation"]["findings"][0]["code"], "agent_overlap");
    user.apply(&id, json!([restore(&node)])).await;
    // A move to the same place in the same batch is a placement like any other.
    user.apply(&id, json!([delete(&node)])).await;
    let now = user.canvas(&id).await;
    let moved = json!([restore(&node), {"type": "node.move", "nodeId": node, "position": {"x": 3001, "y": 0}}]);
    user.batch(&id, text(&now, "/revision"), moved).await.expect(422);
}

#[tokio::test]
async fn a_deletion_and_its_restore_in_one_batch_change_nothing() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [section, image, _, connection]) = board(&user).await;
    let before = graph(&user, &id).await;
    let both = json!([delete(&section), delete(&image), restore(&image), reconnect(&connection), restore(&section),]);
    let changed = user.apply(&id, both).await;
    for list in ["changedNodeIds", "deletedNodeIds", "changedConnectionIds", "deletedConnectionIds"] {
        assert_eq!(changed[list], json!([]), "{list}");
    }
    assert_eq!(graph(&user, &id).await, before);
}

#[tokio::test]
async fn a_full_canvas_takes_no_restored_node() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, _, node, _]) = board(&user).await;
    let deleted = user.apply(&id, json!([delete(&node)])).await;
    assert_eq!(deleted["deletedNodeIds"], json!([node]));
    // As many nodes as a canvas holds, inserted directly.
    sqlx::query(
        "WITH filled AS (
             INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned)
             SELECT key, 'f-' || n, 'text', '', 400 * n, -9000, 320, 160, false
             FROM canvases, generate_series(1, 20000 - node_count) AS n WHERE id = $1 RETURNING canvas_key
         )
         UPDATE canvases SET node_count = 20000 WHERE id = $1 AND EXISTS (SELECT FROM filled)",
    )
    .bind(&id)
    .execute(stack.pool())
    .await
    .expect("fills the canvas");
    let path = format!("/canvases/{id}/operations");
    user.send(&path, &trial(json!([restore(&node)]))).await.expect_error(422, "unprocessable_entity", &["operations"]);
    user.send(&path, &trial(json!([delete("f-1"), restore(&node)]))).await.ok();
}

#[tokio::test]
async fn a_job_that_lost_its_target_is_not_brought_back() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&id, json!({})).await;
    let now = user.canvas(&id).await;
    let node = &now["nodes"][0];
    assert!(node["metadata"]["job"].is_object());
    let node = text(node, "/id").to_owned();
    let body =
        json!({"baseRevision": now["revision"], "idempotencyKey": key(), "force": true, "operations": [delete(&node)]});
    user.send(&format!("/canvases/{id}/operations"), &body).await.ok();
    let restored = user.apply(&id, json!([restore(&node)])).await;
    assert!(restored["canvas"]["nodes"][0]["metadata"].get("job").is_none(), "{restored}");
    // It is free for other work, and the end of the job does not touch it.
    user.delete(text(&job, "/pollUrl")).await.ok();
    let asset = user.upload("image/png", images::png(64, 48)).await;
    let request = user.resize_request(&id, &node, text(&asset, "/handle")).await;
    user.send("/actions/resize/runs", &request).await.expect(202);
}

#[tokio::test]
async fn deletions_end_with_their_canvas() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (id, [_, image, ..]) = board(&user).await;
    user.apply(&id, json!([delete(&image)])).await;
    let key: i64 = sqlx::query_scalar("SELECT key FROM canvases WHERE id = $1")
        .bind(&id)
        .fetch_one(stack.pool())
        .await
        .expect("reads the key");
    let handle = format!("canvas:{}:{id}", user.uid);
    stack.admin(&["admin", "canvas", "purge", "--canvas", &handle, "--yes"]).await.expect_success();
    let kept = "SELECT (SELECT count(*) FROM deleted_nodes WHERE canvas_key = $1)
                     + (SELECT count(*) FROM deleted_connections WHERE canvas_key = $1)";
    let kept: i64 = sqlx::query_scalar(kept).bind(key).fetch_one(stack.pool()).await.expect("counts");
    assert_eq!(kept, 0);
}

/// The job ends after its target was restored: its output becomes an asset, which no node shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_does_not_fill_a_target_that_was_restored() {
    let stack = Stack::builder().image_workers(1).hold("action.loaded").start().await;
    let user = stack.user().await;
    let id = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&id, json!({})).await;
    stack.hold("action.loaded").reached().await;
    let now = user.canvas(&id).await;
    let node = text(&now, "/nodes/0/id").to_owned();
    let body =
        json!({"baseRevision": now["revision"], "idempotencyKey": key(), "force": true, "operations": [delete(&node)]});
    user.send(&format!("/canvases/{id}/operations"), &body).await.ok();
    user.apply(&id, json!([restore(&node)])).await;
    stack.hold("action.loaded").release();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded");
    let shown = &user.canvas(&id).await["nodes"][0];
    assert!(shown.get("asset").is_none() && shown["metadata"].get("provenance").is_none(), "{shown}");
    let review = &done["completionReview"]["delivery"]["nonDurableOutputHandles"];
    assert_eq!(*review, json!([format!("node:{node}")]), "no node shows the output");
}
