//! A call that is repeated takes effect once.

use e2e::{Kind, Part, Stack};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{board, tools_of};

fn generate(canvas: &Value, revision: &Value) -> Value {
    json!({"canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a harbor"})
}

#[tokio::test]
async fn ten_calls_are_one_run_and_one_charge() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let call = generate(&canvas, &revision);
    let at_once = join_all((0..5).map(|_| tools.ok("image_generate", call.clone()))).await;
    let mut later = Vec::new();
    for wait in [0, 1, 2, 3, 45] {
        let mut again = call.clone();
        again["wait"] = json!(wait);
        later.push(tools.ok("image_generate", again).await);
    }
    let first = &at_once[0];
    assert!(at_once.iter().chain(&later).all(|made| made["run"] == first["run"] && made["status"] == "succeeded"));
    assert_eq!(at_once.iter().filter(|made| made["replayed"] == false).count(), 1);
    let spent = 100 - tools.ok("status", json!({})).await["credit"].as_i64().expect("credit");
    assert_eq!(Some(spent), first["creditCost"].as_i64());
    assert_eq!(tools.ok("find", json!({"kind": "run"})).await["items"].as_array().map(Vec::len), Some(1));
    let nodes = user.canvas(canvas.as_str().expect("a slug")).await["nodes"].as_array().map(Vec::len);
    assert_eq!(nodes, Some(2), "one target");
}

#[tokio::test]
async fn a_call_is_the_same_at_another_gateway_and_after_a_restart() {
    let stack = &Stack::builder().gateways(2).image_workers(1).start().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let call = generate(&canvas, &revision);
    let first = tools.ok("image_generate", call.clone()).await;
    let other = tools.with(&user.at(stack, 1));
    assert_eq!(other.ok("image_generate", call.clone()).await["run"], first["run"]);
    stack.restart(Part(Kind::Gateway, 1)).await;
    let again = other.ok("image_generate", call).await;
    assert_eq!((&again["run"], &again["replayed"]), (&first["run"], &json!(true)));
}

#[tokio::test]
async fn a_repeated_edit_is_one_revision() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let operations = json!([{"type": "node.create", "clientId": "n", "node": {"type": "text"}}]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let first = tools.ok("canvas_edit", edit.clone()).await;
    let second = tools.ok("canvas_edit", edit).await;
    assert_eq!((&second["created"], &second["revision"]), (&first["created"], &first["revision"]));
    assert_eq!((&first["replayed"], &second["replayed"]), (&json!(false), &json!(true)));
}

#[tokio::test]
async fn another_argument_is_another_call() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let first = tools.ok("image_generate", generate(&canvas, &revision)).await;
    let mut other = generate(&canvas, &revision);
    other["prompt"] = json!("a pier");
    assert_ne!(tools.ok("image_generate", other).await["run"], first["run"]);
    // A new attempt has the new revision.
    assert_ne!(tools.ok("image_generate", generate(&canvas, &first["revision"])).await["run"], first["run"]);
}

#[tokio::test]
async fn an_ended_wait_leaves_the_work_alone() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = tools_of(&user).await;
    let (canvas, revision, _) = board(&tools).await;
    let call = generate(&canvas, &revision);
    // Whoever asks goes away.
    let abandoned =
        tokio::time::timeout(std::time::Duration::from_millis(300), tools.ok("image_generate", call.clone())).await;
    let made = tools.ok("image_generate", call).await;
    assert_eq!(made["status"], "succeeded");
    if let Ok(ended) = abandoned {
        assert_eq!(ended["run"], made["run"]);
    }
    assert_eq!(tools.ok("find", json!({"kind": "run"})).await["items"].as_array().map(Vec::len), Some(1));
}
