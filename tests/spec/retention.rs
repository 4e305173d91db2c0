//! Retention of job records and keys (docs/reference/jobs.md#retention, docs/reference/conventions.md#key-retention).

use e2e::api::text;
use e2e::{Stack, User, images};
use serde_json::{Value, json};
use testkit::wait_for;

/// A finished job is kept for a second, an unread success for an hour.
async fn swept() -> Stack {
    Stack::builder()
        .image_workers(1)
        .env("CANVAS_SWEEP_SECONDS", 0.1)
        .env("CANVAS_RETENTION_UNREAD_SECONDS", 3600)
        .env("CANVAS_RETENTION_FINALIZED_SECONDS", 1)
        .env("CANVAS_RETENTION_TOMBSTONE_SECONDS", 3)
        .env("CANVAS_RETENTION_FAILED_SECONDS", 1)
        .shared()
        .await
}

/// An unread success is kept for seconds, what was read for an hour.
async fn unread() -> Stack {
    Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_SWEEP_SECONDS", 0.1)
        .env("CANVAS_RETENTION_UNREAD_SECONDS", 5)
        .env("CANVAS_RETENTION_FINALIZED_SECONDS", 3600)
        .shared()
        .await
}

/// The sweeper does not run during the test.
async fn unswept() -> Stack {
    Stack::builder()
        .image_workers(1)
        .video_workers(1)
        .env("CANVAS_SWEEP_SECONDS", 3600)
        .env("CANVAS_RETENTION_UNREAD_SECONDS", UNREAD)
        .env("CANVAS_RETENTION_TOMBSTONE_SECONDS", TOMBSTONE)
        .env("CANVAS_RETENTION_FAILED_SECONDS", FAILED)
        .env("CANVAS_RETENTION_VIDEO_SECONDS", VIDEO)
        .shared()
        .await
}

/// Windows in seconds, each longer than the test runs.
const UNREAD: u32 = 7200;
const TOMBSTONE: u32 = 10_800;
const FAILED: u32 = 14_400;
const VIDEO: u32 = 18_000;

/// Moves the record of a finished job into the past without reading it.
async fn pass(stack: &Stack, job: &Value, seconds: u32) {
    wait_for("the end of the job", e2e::PATIENCE, async || {
        let aged = sqlx::query("UPDATE jobs SET retain_until = retain_until - make_interval(secs => $2) WHERE id = $1::uuid AND retain_until IS NOT NULL")
            .bind(text(job, "/rawId"))
            .bind(f64::from(seconds))
            .execute(stack.pool())
            .await
            .expect("passes");
        (aged.rows_affected() == 1).then_some(())
    })
    .await;
}

/// A request to resize this image on a new canvas, and its job.
async fn resize(user: &User, image: Vec<u8>) -> (Value, Value) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", image).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    (request, job)
}

/// The stored row of a job, which a sweep would change.
async fn stored(stack: &Stack, job: &Value) -> String {
    sqlx::query_scalar("SELECT status FROM jobs WHERE id = $1::uuid")
        .bind(text(job, "/rawId"))
        .fetch_one(stack.pool())
        .await
        .expect("is stored")
}

#[tokio::test]
async fn a_success_whose_time_is_over_reads_expired_and_then_404_before_any_sweep() {
    let stack = &unswept().await;
    let user = stack.user().await;
    let (request, job) = resize(&user, images::png(64, 48)).await;
    let path = text(&job, "/pollUrl");
    pass(stack, &job, UNREAD).await;
    let expired = user.get(path).await.ok();
    assert_eq!((&expired["status"], &expired["failure"]["code"]), (&json!("expired"), &json!("result_expired")));
    assert!(expired.get("images").is_none(), "{expired}");
    // Every way of reading returns the same, and reading restores nothing.
    assert_eq!(user.get(path).header("prefer", "wait=30").await.ok(), expired);
    assert_eq!(user.delete(path).await.ok(), expired);
    let events = crate::jobs::events(&user, &job).await;
    assert_eq!(events, [("run".to_owned(), expired.clone())]);
    let mut replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!(replay["replayed"].take(), true);
    replay.as_object_mut().expect("an object").remove("replayed");
    assert_eq!(replay, expired);
    pass(stack, &job, TOMBSTONE).await;
    user.get(path).await.expect_error(404, "not_found", &[]);
    user.get(path).header("prefer", "wait=30").await.expect_error(404, "not_found", &[]);
    user.delete(path).await.expect_error(404, "not_found", &[]);
    user.get(&format!("{path}/events")).await.expect_error(404, "not_found", &[]);
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["status"]), (&job["id"], &json!("expired")));
    assert!(replay.get("images").is_none() && replay["replayed"] == true, "{replay}");
    assert_eq!(stored(stack, &job).await, "succeeded", "the record expired without a sweep");
}

#[tokio::test]
async fn a_failure_whose_time_is_over_is_404_before_any_sweep() {
    let stack = &unswept().await;
    let user = stack.user().await;
    let (request, job) = resize(&user, images::broken_png(64, 48)).await;
    let path = text(&job, "/pollUrl");
    assert_eq!(user.finished(&job).await["status"], "failed");
    pass(stack, &job, FAILED).await;
    user.get(path).await.expect_error(404, "not_found", &[]);
    user.delete(path).await.expect_error(404, "not_found", &[]);
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["status"]), (&job["id"], &json!("failed")));
    assert_eq!(stored(stack, &job).await, "failed", "the record expired without a sweep");
}

#[tokio::test]
async fn a_video_whose_time_is_over_is_404_with_its_file_before_any_sweep() {
    let stack = &unswept().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1).await;
    let body = json!({
        "model": "animatic", "prompt": "a kite over the sea", "durationSeconds": 1, "resolution": "480p",
        "idempotencyKey": e2e::api::key(),
    });
    let job = user.send("/videos/generate", &body).await.expect(202).json();
    let done = user.finished(&job).await;
    let (path, file) = (text(&job, "/pollUrl"), text(&done, "/video/downloadUrl"));
    user.get(file).await.expect(200);
    // The record is kept for its whole window, whatever was read. The margin of a minute is longer than the test takes.
    pass(stack, &job, VIDEO - 60).await;
    assert_eq!(user.get(path).await.ok(), done);
    user.get(file).await.expect(200);
    pass(stack, &job, 60).await;
    for gone in [path, file] {
        user.get(gone).await.expect_error(404, "not_found", &[]);
    }
    user.delete(path).await.expect_error(404, "not_found", &[]);
    assert_eq!(stored(stack, &job).await, "succeeded", "the record expired without a sweep");
}

/// Polls until the record is removed.
async fn gone(user: &User, path: &str) {
    wait_for(&format!("{path} to be removed"), e2e::PATIENCE, async || {
        let reply = user.get(path).await;
        (reply.status == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_read_success_expires_and_leaves_a_tombstone_then_nothing() {
    let stack = &swept().await;
    let user = stack.user().await;
    let (request, job) = resize(&user, images::png(64, 48)).await;
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
    let (canvas, target) = (text(&request, "/canvasId"), text(&request, "/targetNodeId"));
    let node = user.get(&format!("/canvases/{canvas}/nodes/{target}")).await.ok();
    assert_eq!(node["node"]["asset"], image["assetId"]);
    gone(&user, path).await;
    user.delete(path).await.expect_error(404, "not_found", &[]);
    user.get(&format!("{path}/events")).await.expect_error(404, "not_found", &[]);
    // The key is kept longer than the record. A replay returns the stored snapshot without images and starts nothing.
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    assert!(replay.get("images").is_none() && matches!(text(&replay, "/status"), "succeeded" | "expired"), "{replay}");
    user.get(path).await.expect(404);
}

#[tokio::test]
async fn a_failed_and_a_canceled_job_are_forgotten() {
    let stack = &swept().await;
    let user = stack.user().await;
    let (request, job) = resize(&user, images::broken_png(64, 48)).await;
    gone(&user, text(&job, "/pollUrl")).await;
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["status"]), (&job["id"], &json!("failed")));
    assert_eq!(replay["failure"]["code"], "action_input_invalid");
}

#[tokio::test]
async fn an_unread_success_is_kept_for_long() {
    let stack = &swept().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    // The end of the job is visible on the canvas without reading the job.
    wait_for("the output", e2e::PATIENCE, async || {
        let nodes = user.canvas(&canvas).await["nodes"].as_array().expect("a list").clone();
        nodes.iter().any(|node| node.get("asset").is_some()).then_some(())
    })
    .await;
    // A HEAD shows no result.
    for path in [text(&job, "/pollUrl").to_owned(), format!("{}/events", text(&job, "/pollUrl"))] {
        user.call(reqwest::Method::HEAD, &path).await.expect(200);
    }
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

#[tokio::test]
async fn an_unread_success_expires() {
    let stack = &unread().await;
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

#[tokio::test]
async fn a_webhook_attempt_counts_as_the_first_read() {
    let stack = &unread().await;
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
    // The long window of finalized jobs now applies instead of the short one for unread results.
    assert_eq!(user.get(text(&job, "/pollUrl")).await.ok()["status"], "succeeded");
    assert_eq!(receiver.requests().len(), 1);
}
