//! What is refused says what can be done: each row of the table in docs/reference/tools.md#next-steps.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::tools::Tools;
use e2e::{Stack, images};
use serde_json::{Value, json};

use super::{board, tools_of};

/// A refusal and its first step, which is a call of `tool`.
async fn step(tools: &Tools, call: (&str, Value), tool: &str) -> (Value, Value) {
    let refused = tools.call(call.0, call.1.clone()).await;
    assert!(refused.failed, "{call:?}: {}", refused.value);
    let step = refused.value["next"][0].clone();
    assert_eq!(step["tool"], tool, "{call:?}: {}", refused.value);
    (refused.value, step["arguments"].clone())
}

/// The answer to the first step of a refusal.
async fn mended(tools: &Tools, call: (&str, Value), tool: &str) -> Value {
    let (refused, arguments) = step(tools, call, tool).await;
    assert!(!refused["next"][0]["why"].as_str().expect("a reason").contains("<>"), "{refused}");
    tools.ok(tool, arguments).await
}

/// A call of `canvas_edit` with one operation.
fn edit(canvas: &Value, revision: &Value, operation: &Value) -> (&'static str, Value) {
    ("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": [operation]}))
}

fn text(title: &str) -> Value {
    json!({"type": "node.create", "clientId": "t", "node": {"type": "text", "title": title}})
}

#[tokio::test]
async fn every_refusal_has_a_step_or_says_when_to_retry() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let edit = |operation: Value| edit(&canvas, &revision, &operation).1;
    let action = |more: Value| {
        let steps = json!([{"action": "rotate", "params": {"degrees": 90}}]);
        let mut call = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": steps});
        call.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        call
    };
    let image = |more: Value| {
        let mut call =
            json!({"canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a pier"});
        call.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        call
    };
    for (tool, arguments) in [
        ("canvas_edit", json!({"canvas": canvas, "operations": [text("t")]})),
        (
            "canvas_edit",
            json!({"canvas": canvas, "revision": "r0", "operations": [{"type": "node.update", "nodeId": node, "patch": {"title": "t"}}], "rebase": false}),
        ),
        ("canvas_edit", json!({"canvas": canvas, "revision": revision})),
        ("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": []})),
        ("canvas_edit", json!({"canvas": canvas, "revision": revision, "resubmit": "zzzzzz"})),
        ("canvas_edit", edit(json!({"type": "node.move", "nodeId": "n99", "position": {"x": 0, "y": 0}}))),
        ("canvas_edit", edit(json!({"type": "node.restore", "nodeId": node}))),
        ("canvas_edit", edit(json!({"type": "node.paint", "nodeId": node}))),
        ("canvas_edit", edit(json!({"type": "node.create", "node": {"type": "text", "metadata": {"color": "navy"}}}))),
        ("canvas_edit", edit(json!({"type": "node.create", "clientId": "n1", "node": {"type": "text"}}))),
        ("canvas_read", json!({"canvas": "No such board"})),
        ("canvas_read", json!({"canvas": canvas, "nodes": ["n99"]})),
        ("canvas_read", json!({"canvas": canvas, "maxChars": 1})),
        ("canvas_read", json!({})),
        ("canvas_view", json!({"canvas": canvas, "section": "n99"})),
        ("action_run", action(json!({"inputs": ["boots.png"]}))),
        ("action_run", action(json!({"steps": [{"action": "rotate", "params": {"angle": 1}}]}))),
        ("action_run", action(json!({"steps": [{"action": "spin"}]}))),
        ("action_run", action(json!({"targets": [node]}))),
        ("image_generate", image(json!({"count": 99}))),
        ("image_generate", image(json!({"seed": 1}))),
        ("image_generate", image(json!({"size": "huge"}))),
        ("image_generate", image(json!({"model": "model:none"}))),
        ("image_generate", image(json!({}))),
        ("run_wait", json!({"runs": ["run:none"]})),
        ("run_cancel", json!({"run": "run:none"})),
        ("describe", json!({"handle": "boots"})),
        ("find", json!({"kind": "board"})),
        ("asset_upload", json!({"data": "!"})),
        ("asset_download", json!({"items": ["n1"]})),
        ("element_save", json!({"name": "Calm"})),
        ("element_manage", json!({"do": "archive", "target": "element:none", "confirm": true})),
        ("recipe_run", json!({"canvas": canvas, "revision": revision, "recipe": "recipe:none", "inputs": {}})),
        ("workflow_create", json!({"canvas": canvas})),
        ("video_generate", json!({"model": "model:none", "prompt": "p"})),
    ] {
        let refused = tools.call(tool, arguments.clone()).await;
        assert!(refused.failed, "{tool} {arguments}: {}", refused.value);
        let steps = refused.value["next"].as_array().expect("steps");
        let is_final = refused.value["retry"]["when"] == "never";
        assert!(is_final || !steps.is_empty(), "{tool} {arguments}: {}", refused.value);
        for step in steps {
            assert!(step["tool"].is_string() && step["arguments"].is_object() && step["why"].is_string(), "{step}");
        }
    }
}

#[tokio::test]
async fn a_call_without_a_revision_is_offered_with_the_present_one() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let call = ("canvas_edit", json!({"canvas": canvas, "operations": [text("one")]}));
    let (_, again) = step(&tools, call.clone(), "canvas_edit").await;
    assert_eq!(again["revision"], revision);
    assert_eq!(mended(&tools, call, "canvas_edit").await["created"]["t"], "n2");
    // As the contract calls it.
    let call = ("canvas_edit", json!({"canvas": canvas, "baseRevision": revision, "operations": [text("two")]}));
    mended(&tools, call, "canvas_edit").await;
}

#[tokio::test]
async fn a_title_or_name_is_offered_as_what_it_names() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let other = tools.ok("canvas_create", json!({"title": "Spring shoot"})).await;
    for title in ["Spring shoot", "spring"] {
        let read = mended(&tools, ("canvas_read", json!({"canvas": title})), "canvas_read").await;
        assert_eq!(read["canvas"], other["canvas"], "{title}");
    }
    // Two boards have the word.
    tools.ok("canvas_create", json!({"title": "Spring look"})).await;
    let found = mended(&tools, ("canvas_read", json!({"canvas": "spring"})), "find").await;
    assert_eq!(found["items"].as_array().map(Vec::len), Some(2));
    // Without a canvas, the account's own assets are searched.
    let own = STANDARD.encode(images::png(8, 8));
    tools.ok("asset_upload", json!({"data": own, "name": "clog.png"})).await;
    let facts = mended(&tools, ("describe", json!({"handle": "clog.png"})), "describe").await;
    assert_eq!(facts["kind"], "asset");
    let rotate = json!({
        "canvas": canvas, "revision": revision, "inputs": ["boot.png"],
        "steps": [{"action": "rotate", "params": {"degrees": 90}}], "wait": 0,
    });
    let run = mended(&tools, ("action_run", rotate), "action_run").await;
    assert!(run["runs"][0]["run"].is_string(), "{run}");
    // A node by its title.
    let update = |node: &Value, title: &str| json!({"type": "node.update", "nodeId": node, "patch": {"title": title}});
    let named = tools.ok("canvas_edit", edit(&canvas, &revision, &update(&node, "Hero")).1).await;
    let call = edit(&canvas, &named["revision"], &update(&json!("Hero"), "Boot"));
    let changed = mended(&tools, call, "canvas_edit").await;
    assert_eq!(changed["changedNodes"][0], named["changedNodes"][0]);
}

#[tokio::test]
async fn a_deleted_node_is_offered_as_restored() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let made = tools.ok("canvas_edit", edit(&canvas, &revision, &text("brief")).1).await;
    let node = made["created"]["t"].clone();
    let id = canvas.as_str().expect("a handle").rsplit(':').next().expect("an id");
    user.apply(id, json!([{"type": "node.delete", "nodeId": node}])).await;
    let present = tools.ok("canvas_read", json!({"canvas": canvas})).await["revision"].clone();
    let rename = json!({"type": "node.update", "nodeId": node, "patch": {"title": "late"}});
    let restored = mended(&tools, edit(&canvas, &present, &rename), "canvas_edit").await;
    let call = edit(&canvas, &restored["revision"], &rename).1;
    assert_eq!(tools.ok("canvas_edit", call).await["changedNodes"], json!([node]));
    // One that never was is not.
    let rename = json!({"type": "node.update", "nodeId": "n99", "patch": {"title": "late"}});
    mended(&tools, edit(&canvas, &present, &rename), "canvas_read").await;
}

#[tokio::test]
async fn what_a_rule_says_is_corrected() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let colored =
        json!({"type": "node.create", "clientId": "t", "node": {"type": "sticky", "metadata": {"color": "Navy"}}});
    let made = mended(&tools, edit(&canvas, &revision, &colored), "canvas_edit").await;
    let id = canvas.as_str().expect("a handle").rsplit(':').next().expect("an id");
    let read = user.get(&format!("/canvases/{id}/nodes/{}", made["created"]["t"].as_str().expect("a ref"))).await.ok();
    assert_eq!(read["node"]["metadata"]["color"], "#000080");
    let read = mended(&tools, ("canvas_read", json!({"canvas": canvas, "maxchars": 4096})), "canvas_read").await;
    assert!(read["outline"].is_string());
    mended(&tools, ("find", json!({"kind": "canvas", "order": "newest"})), "find").await;
    mended(&tools, ("canvas_view", json!({"canvas": canvas, "width": 4000})), "canvas_view").await;
    let resize = json!({
        "canvas": canvas, "revision": revision, "inputs": [node],
        "steps": [{"action": "resize", "params": {"widht": 100, "fit": "squeeze"}}], "wait": 0,
    });
    let (refused, again) = step(&tools, ("action_run", resize), "action_run").await;
    assert_eq!(again["steps"][0]["params"]["width"], 100, "{refused}");
    assert_eq!(refused["error"]["details"]["parameters"].as_array().map(Vec::len), Some(2), "{refused}");
    tools.ok("action_run", again).await;
    // More than a call can make is two calls.
    let images = json!({
        "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a pier", "count": 9, "wait": 0,
    });
    let (refused, first) = step(&tools, ("image_generate", images), "image_generate").await;
    let (first_count, rest) = (first["count"].as_u64().expect("a count"), &refused["next"][1]["arguments"]["count"]);
    assert_eq!(*rest, json!((9 - first_count).min(first_count)), "{refused}");
    tools.ok("image_generate", first).await;
}

#[tokio::test]
async fn an_action_beside_its_inputs_is_offered_as_a_step() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let slot = json!({"type": "node.create", "clientId": "s", "node": {"type": "image"}});
    let made = tools.ok("canvas_edit", edit(&canvas, &revision, &slot).1).await;
    let target = &made["created"]["s"];
    let rotate = json!({
        "canvas": canvas, "revision": made["revision"], "inputs": [node], "action": "rotate", "params": {"degrees": 90},
        "target": target,
    });
    let run = mended(&tools, ("action_run", rotate), "action_run").await;
    assert_eq!(run["runs"][0]["outputs"][0]["node"], *target, "{run}");
    // Without a revision, and with the second image among the inputs.
    let overlay = json!({"canvas": canvas, "inputs": [node, target], "action": "overlay-image"});
    let run = mended(&tools, ("action_run", overlay), "action_run").await;
    assert_eq!(run["runs"].as_array().map(Vec::len), Some(1), "{run}");
}

#[tokio::test]
async fn a_busy_target_is_waited_for() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, node) = board(&tools).await;
    let slot = json!({"type": "node.create", "clientId": "s", "node": {"type": "image"}});
    let made = tools.ok("canvas_edit", edit(&canvas, &revision, &slot).1).await;
    let target = made["created"]["s"].clone();
    let call = |degrees: u32, revision: &Value| {
        let steps = json!([{"action": "rotate", "params": {"degrees": degrees}}]);
        json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": steps, "targets": [target], "wait": 0})
    };
    let run = tools.ok("action_run", call(90, &made["revision"])).await;
    let present = tools.ok("canvas_read", json!({"canvas": canvas})).await["revision"].clone();
    let (_, wait) = step(&tools, ("action_run", call(180, &present)), "run_wait").await;
    assert_eq!(wait["runs"], json!([run["runs"][0]["run"]]));
    let delete = json!({"type": "node.update", "nodeId": target, "patch": {"asset": "asset:none"}});
    let refused = tools.call("canvas_edit", edit(&canvas, &present, &delete).1).await;
    assert!(refused.failed && !refused.value["next"].as_array().expect("steps").is_empty(), "{}", refused.value);
    // A target that shows something already is left out.
    let mut shown = call(270, &present);
    shown["targets"] = json!([node]);
    let (_, again) = step(&tools, ("action_run", shown), "action_run").await;
    assert!(again.get("targets").is_none(), "{again}");
}
