//! Videos whose worker dies, or the gateway that keeps or receives them (docs/reference/jobs.md#crash-guarantees,
//! docs/reference/models.md#embedded-runtime, docs/reference/assets.md#idempotent-uploads).

use std::future::IntoFuture;

use bytes::Bytes;
use e2e::api::{key, text};
use e2e::{PATIENCE, Part, SETTLING, Stack, User, checker, films};
use serde_json::{Value, json};
use testkit::wait_for;

use super::{mortal, start};

/// The failpoints of a video, in order: claimed, about to be made, made, stored, with its poster, committed, task completed.
const FAILPOINTS: [&str; 7] = [
    "task.claimed",
    "generation.submitting",
    "generation.accepted",
    "generation.stored",
    "video.described",
    "job.committed",
    "task.finished",
];

/// The credit of the account.
const GRANT: i64 = 100;

/// Starts a video with the same parameters each time.
async fn video(user: &User) -> Value {
    let request = json!({
        "model": "animatic", "prompt": "a kite over the sea", "durationSeconds": 1, "resolution": "480p",
        "idempotencyKey": key(),
    });
    user.send("/videos/generate", &request).await.expect(202).json()
}

/// Starts a video with the same parameters each time, into a new node of a canvas.
async fn video_on(user: &User, canvas: &str) -> Value {
    let revision = user.canvas(canvas).await["revision"].clone();
    let request = json!({
        "model": "animatic", "prompt": "a kite over the sea", "durationSeconds": 1, "resolution": "480p",
        "idempotencyKey": key(), "canvasId": canvas, "baseRevision": revision, "place": {},
    });
    user.send("/videos/generate", &request).await.expect(202).json()
}

/// The file of a video that succeeded.
async fn shown(user: &User, job: &Value, what: &str) -> Bytes {
    let end = user.finished(job).await;
    let reported = (&end["status"], &end["progress"], &end["creditCost"]);
    assert_eq!(reported, (&json!("succeeded"), &json!(100.0), &json!(1)), "{what}: {end}");
    user.get(text(&end, "/video/downloadUrl")).await.expect(200).body
}

async fn balance(user: &User) -> i64 {
    user.get("/auth/status").await.ok()["creditBalance"].as_i64().expect("a balance")
}

/// Starts a video and restarts the worker so that it stops at a failpoint. When the worker reaches it, runs `meanwhile` and then
/// kills the worker.
async fn dies_with_a_video(stack: &Stack, user: &User, failpoint: &str, meanwhile: impl AsyncFnOnce(&Value)) -> Value {
    let (hold, held) = stack.make_hold(failpoint);
    stack.restart_with(Part::VIDEO_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
    let job = video(user).await;
    hold.reached().await;
    meanwhile(&job).await;
    stack.kill(Part::VIDEO_WORKER);
    stack.restart(Part::VIDEO_WORKER).await;
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_whose_worker_dies_anywhere_is_shown_and_charged_once() {
    let stack = start(mortal().video_workers(1)).await;
    let user = stack.user().await;
    stack.grant(&user.uid, GRANT).await;
    let undisturbed = shown(&user, &video(&user).await, "undisturbed").await;
    for failpoint in FAILPOINTS {
        let job = dies_with_a_video(&stack, &user, failpoint, async |_| {}).await;
        let video = shown(&user, &job, failpoint).await;
        assert!(video == undisturbed, "{failpoint}: the same request gives the same video");
    }
    let videos = 1 + FAILPOINTS.len() as i64;
    assert_eq!(balance(&user).await, GRANT - videos);
    assert_eq!(stack.count("SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL").await, videos);
    assert_eq!(stack.count("SELECT count(DISTINCT video_blob) FROM jobs WHERE video_blob IS NOT NULL").await, 1);
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_of_a_canvas_whose_worker_dies_anywhere_is_one_asset_that_is_charged_once() {
    let stack = start(mortal().video_workers(1)).await;
    let user = stack.user().await;
    stack.grant(&user.uid, GRANT).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for failpoint in FAILPOINTS {
        let (hold, held) = stack.make_hold(failpoint);
        stack.restart_with(Part::VIDEO_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
        let job = video_on(&user, id).await;
        hold.reached().await;
        stack.kill(Part::VIDEO_WORKER);
        stack.restart(Part::VIDEO_WORKER).await;
        let end = user.finished(&job).await;
        assert_eq!((&end["status"], &end["creditCost"]), (&json!("succeeded"), &json!(1)), "{failpoint}: {end}");
        let asset = text(&end, "/video/assetId");
        let node = user.get(&format!("/canvases/{id}/nodes/{}", text(&end, "/targets/0"))).await.ok();
        assert_eq!(node["node"]["asset"], asset, "{failpoint}");
        let file = user.get(&format!("/assets/{asset}/content")).await.expect(200);
        assert_eq!(file.header("content-type"), Some("video/mp4"), "{failpoint}");
    }
    let videos = FAILPOINTS.len() as i64;
    assert_eq!(balance(&user).await, GRANT - videos);
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE kind = 'video'").await, videos, "none is stored twice");
    assert_eq!(stack.count("SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL").await, 0, "each is the asset's");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_video_whose_worker_dies_is_canceled_and_paid_back() {
    let stack = start(mortal().video_workers(1)).await;
    let user = stack.user().await;
    stack.grant(&user.uid, GRANT).await;
    // Before the video is made, and when it is made but not committed.
    for failpoint in ["generation.submitting", "generation.accepted", "generation.stored"] {
        let cancel = async |job: &Value| {
            user.delete(text(job, "/pollUrl")).await.expect(202);
        };
        let job = dies_with_a_video(&stack, &user, failpoint, cancel).await;
        let end = user.finished(&job).await;
        assert_eq!((&end["status"], &end["creditCost"]), (&json!("canceled"), &json!(0)), "{failpoint}: {end}");
        user.get(&format!("{}/output", text(&job, "/pollUrl"))).await.expect_error(404, "not_found", &[]);
    }
    assert_eq!(balance(&user).await, GRANT);
    assert_eq!(stack.count("SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL").await, 0);
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_is_kept_once_whoever_asks_and_whatever_dies() {
    let stack = start(mortal().gateways(2).video_workers(1)).await;
    let user = stack.user().await;
    let elsewhere = user.at(&stack, 1);
    stack.grant(&user.uid, GRANT).await;
    let path = |job: &Value| format!("/jobs/{}/asset", text(job, "/rawId"));
    let keep = |job: &Value| user.send(&path(job), &json!({}));
    // The gateway dies between the commit and its answer.
    let job = video(&user).await;
    shown(&user, &job, "to be kept").await;
    stack.restart_with(Part::GATEWAY, &[("CANVAS_FAILPOINTS", "keep.committed=kill")]).await;
    keep(&job).attempt().await.expect_err("is not answered");
    assert_eq!(stack.ended(Part::GATEWAY).await.code(), None, "killed");
    stack.restart(Part::GATEWAY).await;
    keep(&job).await.expect(200);
    // Many ask at the same time. A gateway keeps one after the other, so one of each has seen a video that is not kept.
    let job = video(&user).await;
    shown(&user, &job, "to be kept").await;
    let mut holder = stack.pool().begin().await.expect("begins");
    let lock = sqlx::query("SELECT FROM jobs WHERE id = $1::uuid FOR NO KEY UPDATE").bind(text(&job, "/rawId"));
    lock.execute(&mut *holder).await.expect("locks");
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'
                     AND query LIKE 'SELECT %FROM jobs %FOR NO KEY UPDATE%'";
    let release = async {
        wait_for("both gateways to wait", SETTLING, async || (stack.count(waiting).await == 2).then_some(())).await;
        holder.rollback().await.expect("ends");
    };
    let users = [&user, &elsewhere].into_iter().cycle().take(8);
    let asked = futures_util::future::join_all(users.map(|user| user.send(&path(&job), &json!({})).into_future()));
    let (replies, ()) = tokio::join!(asked, release);
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE kind = 'video'").await, 2);
    assert_eq!(stack.count("SELECT count(*) FROM jobs WHERE video_blob IS NOT NULL").await, 0);
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_of_a_video_is_stored_once_whatever_dies() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    for (failpoint, film, again) in
        [("upload.received", films::unique(films::PLACE), 201), ("upload.committed", films::unique(films::PLACE), 200)]
    {
        let key = key();
        let upload = || user.post("/assets").header("Idempotency-Key", &key).body("video/mp4", film.clone());
        // The worker that makes the poster dies as well.
        let (hold, held) = stack.make_hold("task.finished");
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
        stack.restart_with(Part::GATEWAY, &[("CANVAS_FAILPOINTS", &format!("{failpoint}=kill"))]).await;
        upload().attempt().await.expect_err("is not answered");
        assert_eq!(stack.ended(Part::GATEWAY).await.code(), None, "{failpoint}: killed");
        stack.restart(Part::GATEWAY).await;
        let asset = upload().await.expect(again).json()["asset"].clone();
        hold.reached().await;
        stack.kill(Part::IMAGE_WORKER);
        stack.restart(Part::IMAGE_WORKER).await;
        let path = format!("/assets/{}", text(&asset, "/handle"));
        wait_for("the poster", PATIENCE, async || {
            user.get(&path).await.ok()["asset"]["previewUrl"].is_string().then_some(())
        })
        .await;
        let original = user.get(&format!("{path}/content?original=true")).await.expect(200).body;
        assert!(original == film, "{failpoint}");
    }
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE kind = 'video'").await, 2, "none is stored twice");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_of_a_video_whose_worker_dies_anywhere_is_stored_once() {
    let stack = start(mortal()).await;
    let user = stack.user().await;
    let video = user.upload("video/mp4", films::unique(films::REORDERED)).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let mut frames = Vec::new();
    let failpoints =
        ["task.claimed", "task.acked", "action.loaded", "action.computed", "action.stored", "job.committed"];
    for failpoint in failpoints {
        let (hold, held) = stack.make_hold(failpoint);
        checker::settled(&stack, SETTLING).await;
        stack.restart_with(Part::IMAGE_WORKER, &[("CANVAS_FAILPOINTS", &held)]).await;
        let revision = user.canvas(&canvas).await["revision"].clone();
        let request = json!({
            "canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "place": {},
            "inputs": [video["handle"]], "params": {"at": "last"},
        });
        let job = user.send("/actions/video-frame/runs", &request).await.expect(202).json();
        hold.reached().await;
        stack.kill(Part::IMAGE_WORKER);
        stack.restart(Part::IMAGE_WORKER).await;
        let end = user.finished(&job).await;
        assert_eq!((&end["status"], &end["creditCost"]), (&json!("succeeded"), &json!(0)), "{failpoint}: {end}");
        let output = text(&end, "/images/0/assetId");
        frames.push(user.get(&format!("/assets/{output}/content")).await.expect(200).body);
    }
    assert!(frames.iter().all(|frame| *frame == frames[0]), "the same frame gives the same file");
    let count = frames.len() as i64;
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE kind = 'image'").await, count, "none is stored twice");
    checker::settled(&stack, SETTLING).await;
    assert_eq!(checker::invariants(&stack).await, [""; 0]);
}
