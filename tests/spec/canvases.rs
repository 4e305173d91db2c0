//! Canvases (docs/reference/canvases.md).

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use serde_json::{Value, json};

#[tokio::test]
async fn a_canvas_is_created_with_an_activity_and_a_location() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let reply = user.send("/canvases", &json!({"title": "Spring"})).await.expect(201);
    let (location, body) = (reply.header("location").expect("a location").to_owned(), reply.json());
    let canvas = &body["canvas"];
    let (id, uid) = (text(canvas, "/id"), &user.uid);
    assert_eq!(uuid::Uuid::parse_str(id).map(|id| id.get_version_num()), Ok(7), "a UUIDv7");
    assert_eq!(text(canvas, "/handle"), format!("canvas:{uid}:{id}"));
    assert_eq!((&canvas["ownerUid"], &canvas["title"]), (&json!(uid), &json!("Spring")));
    assert_eq!((&canvas["nodes"], &canvas["connections"]), (&json!([]), &json!([])));
    assert!(canvas.get("canvasType").is_none_or(Value::is_null));
    assert!(!text(canvas, "/revision").is_empty());
    assert_eq!(canvas["createdAt"], canvas["updatedAt"]);
    let activity = body["activity"].as_array().expect("a list");
    assert_eq!(activity.len(), 1);
    let entry = &activity[0];
    assert_eq!((&entry["type"], &entry["revision"]), (&json!("canvas.created"), &canvas["revision"]));
    assert_eq!(entry["actor"], json!({"ownerUid": uid, "surface": "api", "label": "e2e"}));
    assert_eq!(entry["nodeIds"], json!([]));
    assert!(entry["id"].is_string() && entry["summary"].is_string() && entry["at"].is_string());
    assert_eq!(user.get(&location).await.ok(), body, "the location is the path of the canvas");
    let untitled = user.send("/canvases", &json!({})).await.expect(201).json();
    assert!(untitled["canvas"]["title"].is_string());
}

#[tokio::test]
async fn a_chosen_id_is_kept_and_taken_once() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    for id in ["moodboard", "a-b_C9", &"i".repeat(180)] {
        let made = user.send("/canvases", &json!({"id": id})).await.expect(201).json();
        assert_eq!(made["canvas"]["id"], id);
        user.send("/canvases", &json!({"id": id})).await.expect_error(409, "conflict", &[]);
        // Ids are scoped to the account.
        other.send("/canvases", &json!({"id": id})).await.expect(201);
    }
    for id in ["", "a b", "canvas:x", &"i".repeat(181), "ü"] {
        user.send("/canvases", &json!({"id": id})).await.expect_error(400, "input_validation_error", &["id"]);
    }
    // Of concurrent equal requests, one creates the canvas.
    let body = json!({"id": "contested"});
    let calls =
        futures_util::future::join_all((0..6).map(|_| async { user.send("/canvases", &body).await.status })).await;
    assert_eq!(calls.iter().filter(|status| **status == 201).count(), 1, "{calls:?}");
    assert!(calls.iter().all(|status| matches!(status, 201 | 409)), "{calls:?}");
}

#[tokio::test]
async fn a_title_has_at_most_160_characters() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let longest = "ü".repeat(160);
    let made = user.send("/canvases", &json!({"title": longest})).await.expect(201).json();
    assert_eq!(made["canvas"]["title"], longest);
    for title in [json!("x".repeat(161)), json!(7), Value::Null] {
        user.send("/canvases", &json!({"title": title})).await.expect_error(400, "input_validation_error", &["title"]);
    }
    user.send("/canvases", &json!({"canvasType": "board"})).await.expect_error(
        400,
        "input_validation_error",
        &["canvasType"],
    );
    let refused = user.send("/canvases", &json!({"destination": "moon"})).await;
    refused.expect_error(400, "input_validation_error", &["destination"]);
}

#[tokio::test]
async fn the_agent_canvas_is_one_however_often_it_is_asked_for() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let first =
        user.send("/canvases", &json!({"destination": "agent-canvas", "title": "Mine"})).await.expect(201).json();
    assert_eq!((&first["canvas"]["canvasType"], &first["canvas"]["title"]), (&json!("agent"), &json!("Mine")));
    for again in [
        json!({"destination": "agent-canvas", "title": "Other"}),
        json!({"canvasType": "agent"}),
        json!({"canvasType": "agent", "destination": "agent-canvas"}),
    ] {
        let reply = user.send("/canvases", &again).await.expect(201);
        assert!(reply.header("location").is_some());
        assert_eq!(reply.json(), first, "only the first title is used");
    }
    let with_id = json!({"destination": "agent-canvas", "id": "x"});
    user.send("/canvases", &with_id).await.expect(400);
    // An account that is a viewer of that canvas gets an Agent Canvas of its own.
    let other = stack.user().await;
    let theirs = other.send("/canvases", &json!({"destination": "agent-canvas"})).await.expect(201).json();
    assert_ne!(theirs["canvas"]["handle"], first["canvas"]["handle"]);
}

#[tokio::test]
async fn equal_concurrent_calls_find_the_same_agent_canvas() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let elsewhere = user.at(stack, 1);
    let body = json!({"destination": "agent-canvas"});
    let calls = (0..10).map(|call| {
        let user = if call % 2 == 0 { &user } else { &elsewhere };
        async { text(&user.send("/canvases", &body).await.expect(201).json(), "/canvas/handle").to_owned() }
    });
    let mut handles = futures_util::future::join_all(calls).await;
    handles.dedup();
    assert_eq!(handles.len(), 1, "{handles:?}");
    assert_eq!(user.get("/canvases").await.ok()["canvases"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_agent_canvas_can_be_made_under_a_chosen_id_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let made = user.send("/canvases", &json!({"canvasType": "agent", "id": "hq"})).await.expect(201).json();
    assert_eq!((&made["canvas"]["id"], &made["canvas"]["canvasType"]), (&json!("hq"), &json!("agent")));
    user.send("/canvases", &json!({"canvasType": "agent", "id": "hq-2"})).await.expect_error(409, "conflict", &[]);
    user.send("/canvases", &json!({"canvasType": "agent", "id": "hq"})).await.expect_error(409, "conflict", &[]);
    let resolved = user.send("/canvases", &json!({"destination": "agent-canvas"})).await.expect(201).json();
    assert_eq!(resolved["canvas"]["id"], "hq");
}

#[tokio::test]
async fn a_canvas_is_read_by_every_form_of_its_id() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, uid) = (text(&canvas, "/id"), &user.uid);
    for path in [
        id.to_owned(),
        format!("canvas:{id}"),
        format!("canvas:{uid}:{id}"),
        format!("canvas%3A{uid}%3A{id}"),
        format!("{id}?ownerUid={uid}"),
        format!("canvas:{id}?ownerUid={uid}"),
    ] {
        assert_eq!(user.canvas(&path).await, canvas, "{path}");
    }
}

#[tokio::test]
async fn a_read_carries_an_etag_and_honours_if_none_match() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let path = format!("/canvases/{id}");
    let etag = format!("W/\"{revision}\"");
    let read = user.get(&path).await.expect(200);
    assert_eq!(read.header("etag"), Some(etag.as_str()));
    assert_eq!(read.header("cache-control"), Some("private, no-cache"));
    let vary = read.header("vary").expect("varies").to_ascii_lowercase();
    assert!(["authorization", "accept", "accept-encoding"].iter().all(|name| vary.contains(name)), "{vary}");
    for matching in [etag.clone(), format!("\"{revision}\""), format!("\"x\", {etag}"), "*".to_owned()] {
        let unchanged = user.get(&path).header("if-none-match", &matching).await.expect(304);
        assert!(unchanged.body.is_empty());
        assert_eq!(unchanged.header("etag"), Some(etag.as_str()));
    }
    user.get(&path).header("if-none-match", "W/\"other\"").await.expect(200);
    user.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await;
    user.get(&path).header("if-none-match", &etag).await.expect(200);
    // The credential is checked before the validator.
    stack.anonymous().get(&path).header("if-none-match", &etag).await.expect(401);
    stack
        .user()
        .await
        .get(&format!("/canvases/{}", text(&canvas, "/handle")))
        .header("if-none-match", "*")
        .await
        .expect(404);
}

#[tokio::test]
async fn the_list_is_newest_first_and_merges_what_is_shared() {
    let stack = &Stack::without_workers().await;
    let (user, friend) = (stack.user().await, stack.user().await);
    let first = user.make_canvas().await;
    let theirs = friend.make_canvas().await;
    let second = user.make_canvas().await;
    stack.share(&friend, text(&theirs, "/id"), &user.uid, "viewer").await;
    let list = async || user.get("/canvases").await.ok()["canvases"].as_array().expect("a list").clone();
    let handles = |items: &[Value]| items.iter().map(|item| text(item, "/handle").to_owned()).collect::<Vec<_>>();
    let handle = |canvas: &Value| text(canvas, "/handle").to_owned();
    assert_eq!(handles(&list().await), [handle(&second), handle(&theirs), handle(&first)]);
    // A write moves a canvas to the top of the list.
    user.apply(text(&first, "/id"), json!([{"type": "node.create", "node": {"type": "text"}}])).await;
    let items = list().await;
    assert_eq!(handles(&items), [handle(&first), handle(&second), handle(&theirs)]);
    let (top, shared) = (&items[0], &items[2]);
    assert_eq!(
        (&top["accessRole"], &top["nodeCount"], &top["connectionCount"]),
        (&json!("owner"), &json!(1), &json!(0))
    );
    assert_eq!((&shared["accessRole"], &shared["ownerUid"]), (&json!("viewer"), &json!(friend.uid)));
    assert!(top.get("nodes").is_none(), "a summary");
}

#[tokio::test]
async fn the_list_breaks_ties_of_time_by_handle_descending() {
    let stack = &Stack::without_workers().await;
    let (user, friend) = (stack.user().await, stack.user().await);
    for id in ["a", "B", "c"] {
        user.send("/canvases", &json!({"id": id})).await.expect(201);
        friend.send("/canvases", &json!({"id": id})).await.expect(201);
        stack.share(&friend, id, &user.uid, "viewer").await;
    }
    sqlx::query("UPDATE canvases SET updated_at = '2026-01-01T00:00:00Z' WHERE owner_uid IN ($1, $2)")
        .bind(&user.uid)
        .bind(&friend.uid)
        .execute(stack.pool())
        .await
        .expect("makes them equally old");
    let mut expected: Vec<String> =
        [&user, &friend].iter().flat_map(|who| ["a", "B", "c"].map(|id| format!("canvas:{}:{id}", who.uid))).collect();
    expected.sort_by(|one, other| other.as_bytes().cmp(one.as_bytes()));
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = user.get(&format!("/canvases?limit=2{cursor}")).await.ok();
        walked.extend(page["canvases"].as_array().expect("a list").iter().map(|item| text(item, "/handle").to_owned()));
        match page["page"]["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(walked, expected);
}

#[tokio::test]
async fn a_walk_meets_every_canvas_that_nobody_touches() {
    let stack = &Stack::without_workers().await;
    let (user, friend) = (stack.user().await, stack.user().await);
    let busy = user.make_canvas().await;
    let mut still = std::collections::BTreeSet::new();
    for _ in 0..5 {
        still.insert(text(&user.make_canvas().await, "/handle").to_owned());
        let theirs = friend.make_canvas().await;
        stack.share(&friend, text(&theirs, "/id"), &user.uid, "viewer").await;
        still.insert(text(&theirs, "/handle").to_owned());
    }
    let writing = async {
        for _ in 0..15 {
            user.make_canvas().await;
            user.apply(text(&busy, "/id"), json!([{"type": "canvas.update", "title": "Busy"}])).await;
        }
    };
    let walking = async {
        for limit in [1, 2, 4] {
            let (mut walked, mut cursor, mut last) = (Vec::new(), String::new(), String::from("9999"));
            loop {
                let page = user.get(&format!("/canvases?limit={limit}{cursor}")).await.ok();
                for item in page["canvases"].as_array().expect("a list") {
                    let updated = text(item, "/updatedAt").to_owned();
                    assert!(updated <= last, "newest first, across pages as well");
                    last = updated;
                    walked.push(text(item, "/handle").to_owned());
                }
                match page["page"]["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            for handle in &still {
                assert_eq!(walked.iter().filter(|walked| *walked == handle).count(), 1, "{handle} of {walked:?}");
            }
        }
    };
    tokio::join!(writing, walking);
}

async fn shared(stack: &Stack, role: &str) -> (User, User, Value) {
    let (owner, member) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &member.uid, role).await;
    (owner, member, canvas)
}

#[tokio::test]
async fn a_stranger_sees_nothing_of_a_canvas() {
    let stack = &Stack::without_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let asset = owner.upload_into(id, "image/png", images::png(2, 2)).await;
    for path in [
        format!("/canvases/{handle}"),
        format!("/canvases/{id}"),
        format!("/canvases/{id}?ownerUid={}", owner.uid),
        format!("/canvases/{handle}/nodes/absent"),
        format!("/assets?canvasId={handle}"),
        format!("/assets/{}", text(&asset, "/handle")),
    ] {
        stranger.get(&path).await.expect_error(404, "not_found", &[]);
    }
    let operations = json!([{"type": "node.create", "node": {"type": "text"}}]);
    stranger.batch(handle, text(&canvas, "/revision"), operations).await.expect_error(404, "not_found", &[]);
    let upload = stranger.post(&format!("/assets?canvasId={handle}")).body("image/png", images::png(2, 2)).await;
    upload.expect_error(404, "not_found", &[]);
    let run = json!({"canvasId": handle, "baseRevision": "r", "idempotencyKey": key(), "targetNodeId": "t",
        "inputs": ["node:n"], "params": {"width": 1}});
    stranger.send("/actions/resize/runs", &run).await.expect_error(404, "not_found", &[]);
    assert_eq!(stranger.get("/canvases").await.ok()["canvases"], json!([]));
}

#[tokio::test]
async fn a_viewer_reads_and_never_writes() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer, canvas) = shared(stack, "viewer").await;
    let handle = text(&canvas, "/handle");
    assert_eq!(viewer.canvas(handle).await, canvas);
    let by_owner = viewer.get(&format!("/canvases/{}?ownerUid={}", text(&canvas, "/id"), owner.uid)).await.ok();
    assert_eq!(by_owner["canvas"], canvas);
    viewer.get(&format!("/canvases/{}", text(&canvas, "/id"))).await.expect_error(404, "not_found", &[]);
    let operations = json!([{"type": "node.create", "node": {"type": "text"}}]);
    let revision = text(&canvas, "/revision");
    viewer.batch(handle, revision, operations.clone()).await.expect_error(403, "forbidden", &[]);
    // A stale revision does not hide the missing role, because the role is checked before the state.
    viewer.batch(handle, "stale", operations).await.expect_error(403, "forbidden", &[]);
    let upload = viewer.post(&format!("/assets?canvasId={handle}")).body("image/png", images::png(2, 2)).await;
    upload.expect_error(403, "forbidden", &[]);
    let run = json!({"canvasId": handle, "baseRevision": revision, "idempotencyKey": key(), "targetNodeId": "t",
        "inputs": ["node:n"], "params": {"width": 1}});
    viewer.send("/actions/resize/runs", &run).await.expect_error(403, "forbidden", &[]);
    assert_eq!(owner.canvas(handle).await, canvas, "nothing was written partially");
    assert_eq!(viewer.get(&format!("/assets?canvasId={handle}")).await.ok()["assets"], json!([]));
}

#[tokio::test]
async fn an_editor_writes_and_what_it_makes_belongs_to_the_owner() {
    let stack = &Stack::without_workers().await;
    let (owner, editor, canvas) = shared(stack, "editor").await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    editor.apply(handle, json!([{"type": "node.create", "node": {"type": "text"}}])).await;
    let asset = editor.upload_into(handle, "image/png", images::png(2, 2)).await;
    assert_eq!(asset["ownerUid"], owner.uid.as_str());
    assert!(text(&asset, "/handle").starts_with(&format!("asset:{}:", owner.uid)));
    for who in [&owner, &editor] {
        assert_eq!(who.get(&format!("/assets/{}", text(&asset, "/handle"))).await.ok()["asset"]["id"], asset["id"]);
    }
    let listed = owner.get(&format!("/assets?canvasId={id}")).await.ok();
    assert_eq!(listed["assets"][0]["handle"], asset["handle"]);
    assert_eq!(editor.get("/assets").await.ok()["assets"], json!([]), "not the editor's own");
    let activity = owner.get(&format!("/canvases/{id}")).await.ok()["activity"].clone();
    assert_eq!(activity[0]["actor"]["ownerUid"], editor.uid.as_str());
    assert_eq!(editor.get("/canvases").await.ok()["canvases"][0]["accessRole"], "editor");
}

#[tokio::test]
async fn a_role_that_is_withdrawn_ends_access_at_once() {
    let stack = &Stack::without_workers().await;
    let (owner, member, canvas) = shared(stack, "editor").await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [
        {"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}
    ]});
    let path = format!("/canvases/{handle}/operations");
    member.send(&path, &batch).await.ok();
    stack.share(&owner, id, &member.uid, "viewer").await;
    // A replay is rejected for a caller that lost access.
    member.send(&path, &batch).await.expect_error(403, "forbidden", &[]);
    stack.share(&owner, id, &member.uid, "none").await;
    member.send(&path, &batch).await.expect_error(404, "not_found", &[]);
    member.get(&format!("/canvases/{handle}")).await.expect_error(404, "not_found", &[]);
    member.at(stack, 1).get(&format!("/canvases/{handle}")).await.expect(404);
}

#[tokio::test]
async fn a_node_is_read_with_its_connections_and_image() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(20, 10)).await;
    let image = text(&asset, "/node").strip_prefix("node:").expect("a node handle").to_owned();
    let applied = user
        .apply(id, json!([
            {"type": "node.create", "clientId": "t", "node": {"type": "text"}},
            {"type": "connection.create", "clientId": "in", "fromNodeId": "t", "toNodeId": image, "purpose": "list"},
            {"type": "connection.create", "clientId": "out", "fromNodeId": image, "toNodeId": "t", "purpose": "reference", "role": "style"},
        ]))
        .await;
    for form in [image.clone(), format!("node:{image}"), format!("node%3A{image}")] {
        let read = user.get(&format!("/canvases/{id}/nodes/{form}")).await.ok();
        assert_eq!(read["node"]["id"], image.as_str());
        assert_eq!(read["node"]["asset"], asset["handle"]);
        assert_eq!(read["incoming"][0]["id"], applied["resolvedIds"]["in"]);
        assert_eq!(read["outgoing"][0]["id"], applied["resolvedIds"]["out"]);
        assert_eq!(
            (&read["outgoing"][0]["purpose"], &read["outgoing"][0]["role"]),
            (&json!("reference"), &json!("style"))
        );
        assert_eq!((&read["canvas"]["id"], &read["canvas"]["nodeCount"]), (&json!(id), &json!(2)));
        assert!(read["previewExpiresInSeconds"].as_i64() >= Some(1));
        stack.anonymous().get(text(&read, "/previewUrl")).await.expect(200);
    }
    let bare = user.get(&format!("/canvases/{id}/nodes/{}", text(&applied, "/resolvedIds/t"))).await.ok();
    assert!(bare.get("previewUrl").is_none() && bare["node"].get("asset").is_none());
}

#[tokio::test]
async fn activity_shows_the_newest_50_entries() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user.apply(id, json!([{"type": "node.create", "clientId": "n", "node": {"type": "text"}}])).await;
    let node = text(&made, "/resolvedIds/n").to_owned();
    let mut revision = text(&made, "/canvas/revision").to_owned();
    for x in 0..50 {
        let moves = json!([{"type": "node.move", "nodeId": node, "position": {"x": x, "y": 1}}]);
        revision = text(&user.batch(id, &revision, moves).await.ok(), "/canvas/revision").to_owned();
    }
    let read = user.get(&format!("/canvases/{id}")).await.ok();
    let activity = read["activity"].as_array().expect("a list");
    assert_eq!(activity.len(), 50);
    assert!(activity.iter().all(|entry| entry["type"] == "operations.applied"), "the oldest entries are not listed");
    assert_eq!(activity[0]["revision"], revision.as_str(), "newest first");
    assert_eq!(activity[0]["nodeIds"], json!([node]));
}

#[tokio::test]
async fn a_canvas_read_sees_every_write_of_any_gateway() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let elsewhere = user.at(stack, 1);
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for _ in 0..5 {
        let made = user.apply(id, json!([{"type": "node.create", "node": {"type": "text"}}])).await["canvas"].clone();
        assert_eq!(elsewhere.canvas(id).await, made);
        let made =
            elsewhere.apply(id, json!([{"type": "node.create", "node": {"type": "sticky"}}])).await["canvas"].clone();
        assert_eq!(user.canvas(id).await, made);
    }
}
