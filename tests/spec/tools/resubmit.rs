//! Batches that are named instead of written again (docs/reference/tools.md#resubmit, docs/reference/operations.md#batches-that-are-set-aside).

use e2e::api::{key, text};
use e2e::{Stack, User};
use serde_json::{Value, json};

use super::{board, tools_of};

/// A batch of `count` operations, of which the first one changes `node`.
fn batch(node: &Value, count: usize) -> Value {
    let rename = json!({"type": "node.update", "nodeId": node, "patch": {"title": "mine"}});
    let notes =
        (1..count).map(|at| json!({"type": "node.create", "node": {"type": "sticky", "title": format!("note {at}")}}));
    std::iter::once(rename).chain(notes).collect()
}

fn id(canvas: &Value) -> &str {
    canvas.as_str().expect("a handle").rsplit(':').next().expect("an id")
}

async fn nodes(user: &User, canvas: &Value) -> usize {
    user.canvas(id(canvas)).await["nodes"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_batch_in_conflict_is_named_and_applied_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let theirs = json!([{"type": "node.update", "nodeId": node, "patch": {"title": "theirs"}}]);
    let present = tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": theirs})).await;
    let mine = json!({"canvas": canvas, "revision": revision, "operations": batch(&node, 24)});
    let stale = tools.call("canvas_edit", mine).await.fails("conflict");
    let again = &stale["next"].as_array().expect("steps").last().expect("one").clone();
    let resubmit = text(again, "/arguments/resubmit");
    assert!(resubmit.len() == 6 && resubmit.bytes().all(|byte| byte.is_ascii_lowercase()), "{stale}");
    let expected = json!({"canvas": canvas, "revision": present["revision"], "resubmit": resubmit});
    assert_eq!(again["arguments"], expected);
    assert!(text(again, "/why").ends_with("23 × sticky"), "{again}");
    // Of which the ids of canvas and request are a third.
    assert!(stale.to_string().len() <= 1000, "{} bytes: {stale}", stale.to_string().len());
    let dry = tools
        .ok(
            "canvas_edit",
            json!({"canvas": canvas, "revision": present["revision"], "resubmit": resubmit, "dryRun": true}),
        )
        .await;
    assert_eq!((&dry["dryRun"], nodes(&user, &canvas).await), (&json!(true), 1));
    let done = tools.ok("canvas_edit", expected.clone()).await;
    assert_eq!(done["replayed"], false);
    assert!(text(&done, "/did").contains("makes 23 × sticky"), "{done}");
    let twice = tools.ok("canvas_edit", expected.clone()).await;
    assert_eq!((&twice["replayed"], &twice["revision"]), (&json!(true), &done["revision"]));
    assert_eq!(nodes(&user, &canvas).await, 24);
    // It is not applied at another revision either.
    let mut later = expected;
    later["revision"] = done["revision"].clone();
    tools.call("canvas_edit", later).await.fails("conflict");
    assert_eq!(nodes(&user, &canvas).await, 24);
}

#[tokio::test]
async fn a_deletion_in_conflict_is_named_and_applied_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let edit =
        |revision: &Value, operations: Value| json!({"canvas": canvas, "revision": revision, "operations": operations});
    let made = tools.ok("canvas_edit", edit(&revision, batch(&node, 121))).await;
    let named = made["changedNodes"].as_array().expect("nodes").clone();
    let notes: Vec<&Value> = named.iter().filter(|name| **name != node).collect();
    // The caller's own change.
    let rename = json!([{"type": "node.update", "nodeId": notes[0], "patch": {"title": "kept?"}}]);
    let present = tools.ok("canvas_edit", edit(&made["revision"], rename)).await;
    let delete = json!({"canvas": canvas, "revision": made["revision"], "nodes": notes});
    let stale = tools.call("canvas_delete", delete).await.fails("conflict");
    assert!(!text(&stale, "/error/message").contains("others"), "{stale}");
    let again = stale["next"].as_array().expect("steps").last().expect("one").clone();
    let resubmit = text(&again, "/arguments/resubmit");
    let expected = json!({"canvas": canvas, "revision": present["revision"], "resubmit": resubmit});
    assert_eq!((&again["tool"], &again["arguments"]), (&json!("canvas_delete"), &expected));
    assert!(text(&again, "/why").contains(": deletes n"), "{again}");
    let mut dry = expected.clone();
    dry["dryRun"] = true.into();
    let tried = tools.ok("canvas_delete", dry).await;
    assert_eq!((tried["deletedNodes"].as_array().map(Vec::len), nodes(&user, &canvas).await), (Some(120), 121));
    let done = tools.ok("canvas_delete", expected.clone()).await;
    assert_eq!((&done["replayed"], &done["deletedNodes"]), (&json!(false), &json!(notes)));
    assert!(text(&done, "/did").ends_with("and 114 more"), "{done}");
    let twice = tools.ok("canvas_delete", expected).await;
    assert_eq!((&twice["replayed"], &twice["revision"]), (&json!(true), &done["revision"]));
    assert_eq!(nodes(&user, &canvas).await, 1);
}

#[tokio::test]
async fn a_batch_is_named_by_the_tool_that_takes_it() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let path = format!("/canvases/{}/set-aside", id(&canvas));
    let delete = json!({"type": "node.delete", "nodeId": node});
    let rename = json!({"type": "canvas.update", "title": "Renamed"});
    let call = |kept: &Value| json!({"canvas": canvas, "revision": revision, "resubmit": kept["id"]});
    for (operations, refusing, offered) in [
        (json!([delete]), "canvas_edit", vec!["canvas_delete"]),
        (json!([rename]), "canvas_delete", vec!["canvas_edit"]),
        (json!([delete, rename]), "canvas_edit", vec!["canvas_delete", "canvas_edit"]),
        (json!([delete, rename]), "canvas_delete", vec!["canvas_delete", "canvas_edit"]),
    ] {
        let kept = user.send(&path, &json!({"operations": operations})).await.expect(201).json();
        let refused = tools.call(refusing, call(&kept)).await.fails("input_validation_error");
        assert_eq!(refused["error"]["fields"][0]["field"], "resubmit");
        let steps = refused["next"].as_array().expect("steps");
        assert_eq!(steps.iter().map(|step| &step["tool"]).collect::<Vec<_>>(), offered, "{refused}");
        for step in steps {
            let mut tried = step["arguments"].clone();
            tried["dryRun"] = true.into();
            tools.ok(step["tool"].as_str().expect("a tool"), tried).await;
        }
    }
    let kept = user.send(&path, &json!({"operations": [delete]})).await.expect(201).json();
    let mut both = call(&kept);
    both["nodes"] = json!([node]);
    let refused = tools.call("canvas_delete", both).await.fails("input_validation_error");
    assert_eq!(refused["error"]["fields"][0]["field"], "resubmit");
    assert_eq!(nodes(&user, &canvas).await, 1);
}

#[tokio::test]
async fn a_short_batch_is_written_again() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let theirs = json!([{"type": "node.update", "nodeId": node, "patch": {"title": "theirs"}}]);
    tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": theirs})).await;
    // A batch of the given number of bytes.
    for (bytes, is_named) in [(599, false), (600, false), (601, true)] {
        let mut operations =
            json!([{"type": "node.update", "nodeId": node, "patch": {"title": "m", "metadata": {"altText": ""}}}]);
        let missing = bytes - operations.to_string().len();
        operations[0]["patch"]["metadata"]["altText"] = "x".repeat(missing).into();
        let mine = json!({"canvas": canvas, "revision": revision, "operations": operations});
        let stale = tools.call("canvas_edit", mine).await.fails("conflict");
        let again = &stale["next"].as_array().expect("steps").last().expect("one")["arguments"];
        assert_eq!(again.get("resubmit").is_some(), is_named, "{bytes}: {again}");
        assert_eq!(again.get("operations").is_some(), !is_named, "{bytes}: {again}");
    }
}

#[tokio::test]
async fn the_batch_on_free_places_is_named() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let over = |at: u32| json!({"type": "node.create", "node": {"type": "text", "title": format!("over {at}"), "position": {"x": 10, "y": at}}});
    let operations: Vec<Value> = (0..8).map(over).collect();
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let blocked = tools.call("canvas_edit", edit).await.fails("unprocessable_entity");
    let fitting = blocked["next"][0]["arguments"].clone();
    assert!(fitting["resubmit"].is_string() && fitting.get("operations").is_none(), "{blocked}");
    let done = tools.ok("canvas_edit", fitting).await;
    assert!(text(&done, "/did").starts_with("makes 8 × text; arranges "), "{done}");
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!(review["findings"], json!([]));
}

#[tokio::test]
async fn a_batch_that_is_not_there_is_written_again() {
    let stack = &Stack::without_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let body = json!({"operations": batch(&node, 3)});
    let kept = user.send(&format!("/canvases/{}/set-aside", id(&canvas)), &body).await.expect(201).json();
    let second = tools.ok("canvas_create", json!({"title": "Other"})).await;
    let read = user.canvas(id(&canvas)).await;
    stack.share(&user, text(&read, "/id"), &other.uid, "editor").await;
    let call = |canvas: &Value, revision: &Value, resubmit: &Value| json!({"canvas": canvas, "revision": revision, "resubmit": resubmit});
    for (tools, call) in [
        (&tools, call(&canvas, &revision, &json!("zzzzzz"))),
        (&tools, call(&canvas, &revision, &json!("No Id"))),
        (&tools, call(&second["canvas"], &second["revision"], &kept["id"])),
        (&tools.with(&other), call(&canvas, &revision, &kept["id"])),
    ] {
        let refused = tools.call("canvas_edit", call).await.fails("not_found");
        assert!(text(&refused, "/error/message").ends_with("write the batch again"), "{refused}");
        assert_eq!(refused["next"][0]["tool"], "canvas_read");
    }
    let both = json!({"canvas": canvas, "revision": revision, "resubmit": kept["id"], "operations": batch(&node, 1)});
    let refused = tools.call("canvas_edit", both).await.fails("input_validation_error");
    assert_eq!(refused["error"]["fields"][0]["field"], "resubmit");
    tools.ok("canvas_edit", call(&canvas, &revision, &kept["id"])).await;
}

#[tokio::test]
async fn an_account_keeps_twenty_batches_of_at_most_256_kib() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/set-aside", text(&canvas, "/id"));
    let rename = |title: String| json!({"operations": [{"type": "canvas.update", "title": title}]});
    let first = user.send(&path, &rename("0".into())).await.expect(201);
    assert_eq!(
        first.header("location"),
        Some(
            format!(
                "/api/canvas-agent/v1/canvases/{}/set-aside/{}",
                text(&canvas, "/handle"),
                text(&first.json(), "/id")
            )
            .as_str()
        )
    );
    let first = format!("{path}/{}", text(&first.json(), "/id"));
    let read = user.get(&first).await.ok();
    assert_eq!(read["operations"], rename("0".into())["operations"]);
    for at in 1..20 {
        user.send(&path, &rename(at.to_string())).await.expect(201);
    }
    user.get(&first).await.ok();
    user.send(&path, &rename("20".into())).await.expect(201);
    user.get(&first).await.expect_error(404, "not_found", &[]);
    let empty = rename(String::new()).to_string().len();
    for (bytes, status) in [(256 * 1024 - 1, 201), (256 * 1024, 201), (256 * 1024 + 1, 413)] {
        user.send(&path, &rename("x".repeat(bytes - empty))).await.expect(status);
    }
    for operations in [json!([]), json!(vec![json!({}); 201]), json!(["x"]), json!(null)] {
        user.send(&path, &json!({"operations": operations})).await.expect(400);
    }
    for count in [1, 200] {
        user.send(&path, &json!({"operations": vec![json!({}); count]})).await.expect(201);
    }
    for id in ["abcde", "abcdefg", "ABCDEF", "abc1ef"] {
        user.get(&format!("{path}/{id}")).await.expect_error(400, "input_validation_error", &["batchId"]);
    }
    // What is kept is sent as any other batch.
    let present =
        json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": read["operations"]});
    user.send(&format!("/canvases/{}/operations", text(&canvas, "/id")), &present).await.ok();
}
