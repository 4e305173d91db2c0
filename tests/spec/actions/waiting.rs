//! Queued Actions, which no worker claims (docs/reference/actions.md#target-node,
//! docs/reference/jobs.md#cap-on-active-jobs).

use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::json;

use super::setting::Setting;

/// A stack without workers, on which an account may have three active jobs.
async fn few_jobs() -> Stack {
    Stack::builder().env("CANVAS_ACTIVE_JOBS", 3).shared().await
}

#[tokio::test]
async fn a_node_with_an_active_job_is_taken_and_kept() {
    let stack = &few_jobs().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    user.send("/actions/resize/runs", &setting.request(&user).await).await.expect(202);
    user.send("/actions/resize/runs", &setting.request(&user).await).await.expect_error(409, "conflict", &[]);
    let now = user.canvas(&setting.canvas).await;
    let delete = json!([{"type": "node.delete", "nodeId": setting.target}]);
    let refused = user.batch(&setting.canvas, text(&now, "/revision"), delete).await;
    refused.expect_error(422, "unprocessable_entity", &["operations[0].nodeId"]);
    let node = setting.target_of(&now);
    assert!(node["metadata"]["job"].is_object(), "the node shows its job: {node}");
}

#[tokio::test]
async fn a_node_of_another_type_with_an_active_job_is_taken_first() {
    let stack = &few_jobs().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let input = json!({"key": "a", "label": "A", "type": "text", "value": "v", "useAsDefault": true});
    let output = json!({"key": "b", "label": "B", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]});
    let workflow = json!({"name": "w", "idempotencyKey": key(), "inputs": [input], "outputs": [output]});
    let made = user.send(&format!("/canvases/{}/workflows", setting.canvas), &workflow).await.expect(201).json();
    let now = user.canvas(&setting.canvas).await;
    let run = json!({"canvasId": setting.canvas, "baseRevision": now["revision"], "idempotencyKey": key()});
    let path = format!("/recipes/{}/runs", text(&made, "/workflow/id"));
    let run = user.send(&path, &run).await.expect(202).json();
    let written = text(&run, "/outputs/0/nodeId");
    // A text node that a Recipe step will fill: the conflict is reported before the wrong type and before the missing input.
    for input in [setting.asset.as_str(), "asset:absent"] {
        let request = user.resize_request(&setting.canvas, written, input).await;
        user.send("/actions/resize/runs", &request).await.expect_error(409, "conflict", &[]);
    }
    // Once the node is free, the wrong type and every other violation are reported.
    user.delete(text(&run, "/pollUrl")).await.ok();
    let request = user.resize_request(&setting.canvas, written, "asset:absent").await;
    let refused = user.send("/actions/resize/runs", &request).await;
    refused.expect_error(422, "unprocessable_entity", &["targetNodeId", "inputs[0]"]);
}

#[tokio::test]
async fn an_account_has_a_cap_on_active_jobs() {
    let stack = &few_jobs().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let mut started = Vec::new();
    for _ in 0..3 {
        let setting = Setting::new(&user, images::png(64, 48)).await;
        let request = setting.request(&user).await;
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        started.push((request, job));
    }
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let over = setting.request(&user).await;
    let refused = user.send("/actions/resize/runs", &over).await;
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    // A replay still succeeds, and so does a start of another account.
    let (request, job) = &started[0];
    assert_eq!(user.send("/actions/resize/runs", request).await.expect(202).json()["id"], job["id"]);
    other.start_resize(text(&other.make_canvas().await, "/id"), json!({})).await;
    // A job that ends makes room. The rejected start did not consume its key.
    user.delete(text(job, "/pollUrl")).await.ok();
    user.send("/actions/resize/runs", &over).await.expect(202);
}
