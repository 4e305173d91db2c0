//! Retention (specification, States; decisions 9.3, 1.12).

use e2e::api::text;
use e2e::{Stack, pictures, suite};
use serde_json::{Value, json};
use testkit::wait_for;

suite! {
    retention on Stack::builder()
        .image_workers(1)
        .env("CANVAS_SWEEP_SECONDS", 0.1)
        .env("CANVAS_RETENTION_UNREAD_SECONDS", 3600)
        .env("CANVAS_RETENTION_FINALIZED_SECONDS", 1)
        .env("CANVAS_RETENTION_TOMBSTONE_SECONDS", 3)
        .env("CANVAS_RETENTION_FAILED_SECONDS", 1);
    a_read_success_expires_and_leaves_a_tombstone_then_nothing,
    a_failed_and_a_canceled_job_are_forgotten,
    an_unread_success_is_kept_for_long,
}

suite! {
    retention_unread on Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_SWEEP_SECONDS", 0.1)
        .env("CANVAS_RETENTION_UNREAD_SECONDS", 5)
        .env("CANVAS_RETENTION_FINALIZED_SECONDS", 3600);
    an_unread_success_expires,
    a_webhook_attempt_counts_as_the_first_read,
}

/// Polls until the record is gone.
async fn gone(user: &e2e::User, path: &str) {
    wait_for(&format!("{path} to be forgotten"), e2e::PATIENCE, async || {
        let reply = user.get(path).await;
        (reply.status == 404).then_some(())
    })
    .await;
}

async fn a_read_success_expires_and_leaves_a_tombstone_then_nothing(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", pictures::png(64, 48)).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let path = text(&job, "/pollUrl");
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded");
    let expired = user.until(&job, |record| record["status"] == "expired").await;
    let failure = &expired["failure"];
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("result_expired"), &json!(false)));
    assert!(expired.get("images").is_none());
    for kept in ["id", "run", "rawId", "kind", "actionId", "canvasId", "targets"] {
        assert_eq!(expired[kept], done[kept], "{kept}");
    }
    assert_eq!(user.delete(path).await.ok(), expired, "unchanged");
    // The asset and the node outlive the record.
    let image = &done["images"][0];
    user.get(&format!("/assets/{}", text(image, "/assetId"))).await.ok();
    let node = user.get(&format!("/canvases/{canvas}/nodes/{target}")).await.ok();
    assert_eq!(node["node"]["asset"], image["assetId"]);
    gone(&user, path).await;
    user.delete(path).await.expect_error(404, "not_found", &[]);
    user.get(&format!("{path}/events")).await.expect_error(404, "not_found", &[]);
    // The key is remembered longer than the record: the stored snapshot, without images, and no new work.
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    assert!(replay.get("images").is_none() && matches!(text(&replay, "/status"), "succeeded" | "expired"), "{replay}");
    user.get(path).await.expect(404);
}

async fn a_failed_and_a_canceled_job_are_forgotten(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", pictures::broken_png(64, 48)).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    gone(&user, text(&job, "/pollUrl")).await;
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["status"]), (&job["id"], &json!("failed")));
    assert_eq!(replay["failure"]["code"], "action_input_invalid");
}

async fn an_unread_success_is_kept_for_long(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    // Its end is seen on the canvas, without reading the job.
    wait_for("the output", e2e::PATIENCE, async || {
        let nodes = user.canvas(&canvas).await["nodes"].as_array().expect("a list").clone();
        nodes.iter().any(|node| node.get("asset").is_some()).then_some(())
    })
    .await;
    let kept: Vec<Value> = sqlx::query_scalar(
        "SELECT to_jsonb(retain_until - completed_at > interval '59 minutes') FROM jobs WHERE id = $1::uuid AND finalized_at IS NULL",
    )
    .bind(text(&job, "/rawId"))
    .fetch_all(stack.pool())
    .await
    .expect("reads the window");
    assert_eq!(kept, [json!(true)]);
    assert_eq!(user.get(text(&job, "/pollUrl")).await.ok()["status"], "succeeded");
}

async fn an_unread_success_expires(stack: &Stack) {
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    wait_for("the record to expire", e2e::PATIENCE, async || {
        let status: String = sqlx::query_scalar("SELECT status FROM jobs WHERE id = $1::uuid")
            .bind(text(&job, "/rawId"))
            .fetch_one(stack.pool())
            .await
            .expect("reads the status");
        (status == "expired").then_some(())
    })
    .await;
    let expired = user.get(text(&job, "/pollUrl")).await.ok();
    assert_eq!((&expired["status"], &expired["failure"]["code"]), (&json!("expired"), &json!("result_expired")));
}

async fn a_webhook_attempt_counts_as_the_first_read(stack: &Stack) {
    let user = stack.user().await;
    let receiver = stack.take_receiver();
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let webhook = json!({"webhook": {"url": receiver.url("/hook"), "secret": "s".repeat(32)}});
    let job = user.start_resize(&canvas, webhook).await;
    receiver.wait_for(1, e2e::PATIENCE).await;
    wait_for("the first finalization", e2e::PATIENCE, async || {
        let finalized: i64 =
            sqlx::query_scalar("SELECT count(*) FROM jobs WHERE id = $1::uuid AND finalized_at IS NOT NULL")
                .bind(text(&job, "/rawId"))
                .fetch_one(stack.pool())
                .await
                .expect("looks");
        (finalized == 1).then_some(())
    })
    .await;
    // Its long window holds now, not the short one of the unread.
    assert_eq!(user.get(text(&job, "/pollUrl")).await.ok()["status"], "succeeded");
    assert_eq!(receiver.requests().len(), 1);
}
