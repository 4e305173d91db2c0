//! Videos (docs/reference/videos.md). Where no worker runs, accepted jobs stay `queued`; elsewhere the embedded runtime makes them.

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use serde_json::{Value, json};
use testkit::Answer;
use testkit::providers::{SIMULATOR_KEY, Simulator, Vendor};

/// A token of an account with credit for this many videos.
async fn payer(stack: &Stack, credits: i64) -> User {
    let user = stack.user().await;
    stack.grant(&user.uid, credits).await;
    user
}

/// A request for the embedded runtime, merged with `more`.
fn wanted(more: Value) -> Value {
    let mut body = json!({"model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key()});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    body
}

async fn start(user: &User, more: Value) -> Value {
    user.send("/videos/generate", &wanted(more)).await.expect(202).json()
}

async fn refuse(user: &User, more: Value, status: u16, fields: &[&str]) {
    let code = if status == 400 { "input_validation_error" } else { "unprocessable_entity" };
    user.send("/videos/generate", &wanted(more)).await.expect_error(status, code, fields);
}

#[tokio::test]
async fn an_accepted_video_is_a_job_and_no_run() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 5).await;
    let model = user.get("/models?provider=managed&capability=video.generate").await.ok()["models"][0].clone();
    let body =
        wanted(json!({"model": model["handle"], "durationSeconds": 5, "aspectRatio": "16:9", "resolution": "720p"}));
    let reply = user.send("/videos/generate", &body).await.expect(202);
    let job = reply.json();
    let uuid = text(&job, "/rawId");
    let path = format!("/api/canvas-agent/v1/jobs/{uuid}");
    assert_eq!(reply.header("location"), Some(&*path));
    assert_eq!(
        job,
        json!({
            "id": format!("job:{uuid}"), "rawId": uuid, "kind": "video", "operation": "generate", "pollUrl": path,
            "status": "queued", "model": {"id": model["id"], "name": model["name"]}, "progress": 0.0,
            "estimatedSeconds": model["estimatedSeconds"], "creditCost": 1, "standIn": true, "createdAt": job["createdAt"],
            "updatedAt": job["updatedAt"], "waitingFor": {"what": "worker", "since": job["createdAt"]},
        })
    );
    for name in [uuid.to_owned(), format!("job:{uuid}")] {
        let read = user.get(&format!("/jobs/{name}")).await.expect(202);
        assert_eq!((read.header("retry-after"), read.json()), (Some("1"), job.clone()));
        let tag = read.header("etag").expect("a tag").to_owned();
        user.get(&format!("/jobs/{name}")).header("if-none-match", &tag).await.expect(304);
    }
    for path in [format!("/runs/{uuid}"), format!("/runs/run:{uuid}"), format!("/runs/{uuid}/events")] {
        user.get(&path).await.expect_error(404, "not_found", &[]);
    }
    user.delete(&format!("/runs/{uuid}")).await.expect_error(404, "not_found", &[]);
    let stranger = stack.user().await;
    stranger.get(&format!("/jobs/{uuid}")).await.expect_error(404, "not_found", &[]);
    stranger.delete(&format!("/jobs/{uuid}")).await.expect_error(404, "not_found", &[]);
    stranger.get(&format!("/jobs/{uuid}/output")).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_start_is_replayed_and_a_key_used_once() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 5).await;
    let asset = user.upload("image/png", images::png(8, 8)).await;
    let body = wanted(json!({"firstFrame": text(&asset, "/handle")}));
    let first = user.send("/videos/generate", &body).await.expect(202).json();
    // The same asset in another spelling makes the same request.
    let mut same = body.clone();
    same["firstFrame"] = json!(format!("asset:{}", text(&asset, "/id")));
    let mut again = user.send("/videos/generate", &same).await.expect(202).json();
    assert_eq!(again["replayed"], true);
    again.as_object_mut().expect("an object").remove("replayed");
    assert_eq!(again, first);
    let mut other = body.clone();
    other["prompt"] = json!("another");
    user.send("/videos/generate", &other).await.expect_error(409, "conflict", &[]);
    assert_eq!(user.get("/auth/status").await.ok()["creditBalance"], 4, "charged once");
}

#[tokio::test]
async fn what_the_request_alone_tells_is_400() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (more, fields) in [
        (json!({"prompt": ""}), &["prompt"][..]),
        (json!({"prompt": "y".repeat(8001)}), &["prompt"]),
        (json!({"model": ""}), &["model"]),
        (json!({"model": "y".repeat(651)}), &["model"]),
        (json!({"model": "model:short"}), &["model"]),
        (json!({"connectionId": "a b"}), &["connectionId"]),
        (json!({"idempotencyKey": "1234567"}), &["idempotencyKey"]),
        (json!({"durationSeconds": 0}), &["durationSeconds"]),
        (json!({"durationSeconds": 121}), &["durationSeconds"]),
        (json!({"durationSeconds": 1.5}), &["durationSeconds"]),
        (json!({"aspectRatio": "y".repeat(81)}), &["aspectRatio"]),
        (json!({"resolution": "y".repeat(81)}), &["resolution"]),
        (json!({"generateAudio": "yes"}), &["generateAudio"]),
        (json!({"webhook": {}}), &["webhook.secret", "webhook.url"]),
        (json!({"webhook": {"url": "https://10.0.0.1/", "secret": "s".repeat(32)}}), &["webhook.url"]),
        (json!({"webhook": {"url": "https://example.com/", "secret": "s".repeat(31)}}), &["webhook.secret"]),
        (json!({"baseRevision": "r", "connect": true}), &["baseRevision", "connect"]),
        (json!({"targetNodeId": "n"}), &["baseRevision", "canvasId"]),
        (json!({"targetNodeId": "n", "canvasId": "c"}), &["baseRevision"]),
        (json!({"place": {}, "baseRevision": "r"}), &["canvasId"]),
        (json!({"place": {}, "targetNodeId": "n", "canvasId": "c", "baseRevision": "r"}), &["place", "targetNodeId"]),
        (json!({"place": {"count": 2}, "canvasId": "c", "baseRevision": "r"}), &["place.count"]),
        (json!({"lastFrame": "asset:a"}), &["firstFrame", "lastFrame"]),
        (json!({"firstFrame": "node:a"}), &["canvasId"]),
        (json!({"references": ["node:a"]}), &["canvasId"]),
        (json!({"firstFrame": "plain-id"}), &["firstFrame"]),
        (json!({"firstFrame": "http://example.com/a.png"}), &["firstFrame"]),
        (json!({"firstFrame": "https://127.0.0.1/a.png"}), &["firstFrame"]),
        (json!({"firstFrame": "https://user:pass@example.com/a.png"}), &["firstFrame"]),
        (json!({"firstFrame": format!("https://example.com/{}", "y".repeat(2048))}), &["firstFrame"]),
        (json!({"references": ["asset:a", "asset:b", {"handle": "asset:a", "role": "style"}]}), &["references[2]"]),
        (json!({"references": [{"handle": "asset:a", "role": "hero"}]}), &["references[0].role"]),
        (json!({"references": (0..10).map(|at| format!("asset:a{at}")).collect::<Vec<_>>()}), &["references"]),
        (json!({"canvasId": "canvas:a:b:c"}), &["canvasId"]),
        (json!({"canvasId": "canvas:me:c", "ownerUid": "you"}), &["ownerUid"]),
    ] {
        let reply = user.send("/videos/generate", &wanted(more.clone())).await;
        println!("{more}: {reply}");
        reply.expect_error(400, "input_validation_error", fields);
    }
    let missing = user.send("/videos/generate", &json!({})).await;
    missing.expect_error(400, "input_validation_error", &["model", "prompt"]);
}

#[tokio::test]
async fn what_the_model_does_not_offer_is_422() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let saved = stack.connect(&account.uid, "runway", "r").await;
    for (more, fields) in [
        (json!({"model": "absent"}), &["model"][..]),
        (json!({"model": "model:absent-key"}), &["model"]),
        (json!({"model": "sketch"}), &["model"]),
        (json!({"connectionId": "absent"}), &["connectionId"]),
        (json!({"connectionId": saved}), &["connectionId"]),
        (json!({"durationSeconds": 120}), &["durationSeconds"]),
        (
            json!({"durationSeconds": 11, "aspectRatio": "4:3", "resolution": "8k", "generateAudio": true}),
            &["aspectRatio", "durationSeconds", "generateAudio", "resolution"],
        ),
    ] {
        refuse(&user, more, 422, fields).await;
    }
    let started = "SELECT count(*) FROM jobs WHERE kind = 'video' AND credit_cost = 0 AND account_uid = $1";
    assert_eq!(stack.count_of(started, &user.uid).await, 0);
}

#[tokio::test]
async fn images_must_be_readable_and_the_canvas_visible() {
    let stack = &Stack::without_workers().await;
    let (user, stranger) = (payer(stack, 5).await, stack.user().await);
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let shown = user.upload_into(id, "image/png", images::png(8, 8)).await;
    let empty = user.slot(id).await;
    let theirs = stranger.upload("image/png", images::png(8, 8)).await;
    let on_canvas = |more: Value| {
        let mut body = json!({"canvasId": id});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        body
    };
    refuse(&user, on_canvas(json!({"firstFrame": "node:absent"})), 422, &["firstFrame"]).await;
    refuse(&user, on_canvas(json!({"firstFrame": format!("node:{empty}")})), 422, &["firstFrame"]).await;
    let both = json!({"firstFrame": shown["node"], "lastFrame": theirs["handle"], "references": ["asset:absent"]});
    refuse(&user, on_canvas(both), 422, &["lastFrame", "references[0]"]).await;
    for canvas in ["absent", "canvas:nobody:absent"] {
        let body = wanted(json!({"canvasId": canvas}));
        user.send("/videos/generate", &body).await.expect_error(404, "not_found", &[]);
    }
    let hidden = wanted(json!({"canvasId": canvas["handle"]}));
    stranger.send("/videos/generate", &hidden).await.expect_error(404, "not_found", &[]);
    let by_owner = wanted(json!({"canvasId": id, "ownerUid": user.uid}));
    stranger.send("/videos/generate", &by_owner).await.expect_error(404, "not_found", &[]);
    let references = json!([shown["handle"], {"handle": "https://example.com/a.png", "role": "style"}]);
    start(&user, on_canvas(json!({"firstFrame": shown["node"], "references": references}))).await;
}

#[tokio::test]
async fn a_frame_is_an_image_and_nothing_else() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 5).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let shown = user.upload_into(id, "image/png", images::png(8, 8)).await;
    let create = |kind: &str| {
        let metadata = if kind == "video" { json!({}) } else { json!({"content": "https://example.com/a.png"}) };
        json!({"type": "node.create", "clientId": kind, "node": {"type": kind, "metadata": metadata}})
    };
    let made = user.apply(id, json!(["text", "sticky", "video"].map(create))).await;
    for kind in ["text", "sticky", "video"] {
        let node = format!("node:{}", text(&made, &format!("/resolvedIds/{kind}")));
        let first = json!({"canvasId": id, "firstFrame": node});
        refuse(&user, first, 422, &["firstFrame"]).await;
        let last = json!({"canvasId": id, "firstFrame": shown["node"], "lastFrame": node});
        refuse(&user, last, 422, &["lastFrame"]).await;
        let both = json!({"canvasId": id, "firstFrame": node, "lastFrame": node});
        refuse(&user, both, 422, &["firstFrame", "lastFrame"]).await;
        let reference = json!({"canvasId": id, "references": [shown["node"], node]});
        refuse(&user, reference, 422, &["references[1]"]).await;
    }
    // A value that is not a handle of a node or an asset is rejected from the request alone.
    let element = json!({"name": "Hero", "type": "character", "sourceAssetIds": [shown["id"]]});
    let element = user.send("/elements", &element).await.expect(201).json()["element"].clone();
    for handle in [&element["handle"], &element["versionHandle"], &canvas["handle"]] {
        refuse(&user, json!({"canvasId": id, "firstFrame": handle}), 400, &["firstFrame"]).await;
        let last = json!({"canvasId": id, "firstFrame": shown["node"], "lastFrame": handle});
        refuse(&user, last, 400, &["lastFrame"]).await;
    }
    assert_eq!(balance(&user).await, 5, "nothing was started");
}

#[tokio::test]
async fn a_prompt_has_8000_characters_however_they_are_encoded() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 3).await;
    for character in ["y", "ü", "🪁"] {
        start(&user, json!({"prompt": character.repeat(8000)})).await;
        refuse(&user, json!({"prompt": character.repeat(8001)}), 400, &["prompt"]).await;
    }
}

#[tokio::test]
async fn a_viewer_may_start_and_nothing_is_written() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer) = (stack.user().await, payer(stack, 1).await);
    let canvas = owner.make_canvas().await;
    let shown = owner.upload_into(text(&canvas, "/id"), "image/png", images::png(8, 8)).await;
    let before = owner.get(&format!("/canvases/{}", text(&canvas, "/id"))).await.ok();
    stack.share(&owner, text(&canvas, "/id"), &viewer.uid, "viewer").await;
    start(&viewer, json!({"canvasId": canvas["handle"], "firstFrame": shown["node"]})).await;
    let after = owner.get(&format!("/canvases/{}", text(&canvas, "/id"))).await.ok();
    assert_eq!((&after["canvas"], &after["activity"]), (&before["canvas"], &before["activity"]));
}

#[tokio::test]
async fn credit_is_reserved_and_returned() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 1).await;
    let job = start(&user, json!({})).await;
    let balance = async || user.get("/auth/status").await.ok()["creditBalance"].clone();
    assert_eq!(balance().await, 0);
    user.send("/videos/generate", &wanted(json!({}))).await.expect_error(402, "payment_required", &[]);
    user.delete(text(&job, "/pollUrl")).await.expect(200);
    assert_eq!(balance().await, 1);
    let books = "SELECT count(*) FROM accounts a WHERE credit_balance <> (SELECT coalesce(sum(amount), 0) FROM ledger
                 WHERE account_uid = a.uid) AND uid = $1";
    assert_eq!(stack.count_of(books, &user.uid).await, 0, "the balance is the ledger's sum");
}

#[tokio::test]
async fn a_video_that_nobody_took_is_canceled_at_once() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 1).await;
    let job = start(&user, json!({})).await;
    let path = text(&job, "/pollUrl");
    let canceled = user.delete(path).await.ok();
    assert_eq!((&canceled["status"], &canceled["creditCost"]), (&json!("canceled"), &json!(0)));
    assert_eq!((&canceled["failure"]["code"], &canceled["failure"]["retryable"]), (&json!("canceled"), &json!(false)));
    assert_eq!(user.delete(path).await.ok(), canceled, "a second cancel changes nothing");
    assert_eq!(user.get(path).await.ok(), canceled);
    user.get(&format!("{path}/output")).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn an_output_is_there_when_the_video_is() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 2).await;
    let job = start(&user, json!({})).await;
    let path = format!("{}/output", text(&job, "/pollUrl"));
    user.get(&path).await.expect_error(409, "conflict", &[]);
    let video = b"\0\0\0\x18ftypisom a film of thirty-six bytes".to_vec();
    finish(stack, text(&job, "/rawId"), &video).await;
    let done = user.get(text(&job, "/pollUrl")).await.ok();
    assert_eq!((&done["status"], &done["progress"]), (&json!("succeeded"), &json!(100.0)));
    assert_eq!(done["video"]["downloadUrl"], path);
    let whole = user.get(&path).await.expect(200);
    assert_eq!((whole.header("content-type"), &whole.body[..]), (Some("video/mp4"), &video[..]));
    assert!(whole.header("content-disposition").is_some_and(|it| it.starts_with("attachment")));
    assert_eq!(whole.header("cache-control"), Some("private, no-store"));
    let tag = whole.header("etag").expect("a tag").to_owned();
    user.get(&path).header("if-none-match", &tag).await.expect(304);
    let part = user.get(&path).header("range", "bytes=4-7").await.expect(206);
    assert_eq!(
        (part.header("content-range"), &part.body[..]),
        (Some(&*format!("bytes 4-7/{}", video.len())), &b"ftyp"[..])
    );
    user.get(&path).header("range", "bytes=99-").await.expect(416);
    let twice = user.get(&path).header("range", "bytes=4-7").header("range", "bytes=4-7");
    twice.await.expect_error(400, "input_validation_error", &["Range"]);
    for range in ["bytes=4-7", "bytes=99-"] {
        let head = user.call(reqwest::Method::HEAD, &path).header("range", range).await.expect(200);
        let length = video.len().to_string();
        assert_eq!((head.header("content-length"), head.header("content-range")), (Some(length.as_str()), None));
    }
    user.get("/jobs/0198c5a0-0000-7000-8000-000000000001/output").await.expect_error(404, "not_found", &[]);
    let canvas = user.make_canvas().await;
    let action = user.start_resize(text(&canvas, "/id"), json!({})).await;
    let no_video = format!("/jobs/{}/output", text(&action, "/rawId"));
    user.get(&no_video).await.expect_error(404, "not_found", &[]);
}

/// Completes a video job with this file, as its worker would.
async fn finish(stack: &Stack, id: &str, video: &[u8]) {
    let key = uuid::Uuid::now_v7();
    let name = key.simple().to_string();
    let directory = stack.blobs().join("blobs").join(&name[30..]);
    std::fs::create_dir_all(&directory).expect("makes a directory");
    std::fs::write(directory.join(name), video).expect("writes a video");
    let sha256 = [1_u8; 32];
    sqlx::query("INSERT INTO blobs (key, state, sha256, bytes) VALUES ($1, 'stored', $2, $3)")
        .bind(key)
        .bind(&sha256[..])
        .bind(i64::try_from(video.len()).expect("small"))
        .execute(stack.pool())
        .await
        .expect("stores a blob");
    sqlx::query(
        "WITH task AS (DELETE FROM task_queue WHERE id = $1)
         UPDATE jobs SET status = 'succeeded', video_blob = $2, outcome = $3, version = version + 1,
                completed_at = now(), updated_at = now() WHERE id = $1",
    )
    .bind(uuid::Uuid::parse_str(id).expect("a UUID"))
    .bind(key)
    .bind(json!({"video": {"blobKey": key, "bytes": video.len()}}))
    .execute(stack.pool())
    .await
    .expect("ends a job");
}

async fn balance(user: &User) -> Value {
    user.get("/auth/status").await.ok()["creditBalance"].clone()
}

/// A request for one second in the smallest size.
fn short(more: Value) -> Value {
    let mut short = json!({"durationSeconds": 1, "resolution": "480p"});
    short.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    short
}

#[tokio::test]
async fn a_video_is_made_served_and_charged() {
    let stack = &Stack::with_workers().await;
    let user = payer(stack, 3).await;
    let job = user.finished(&start(&user, short(json!({}))).await).await;
    assert_eq!((&job["status"], &job["progress"], &job["creditCost"]), (&json!("succeeded"), &json!(100.0), &json!(1)));
    assert!(job.get("failure").is_none(), "{job}");
    let path = text(&job, "/video/downloadUrl").to_owned();
    assert_eq!(path, format!("{}/output", text(&job, "/pollUrl")));
    let whole = user.get(&path).await.expect(200);
    assert_eq!((whole.header("content-type"), &whole.body[4..8]), (Some("video/mp4"), &b"ftyp"[..]));
    assert!(whole.header("content-disposition").is_some_and(|it| it.starts_with("attachment")));
    let part = user.get(&path).header("range", "bytes=0-7").await.expect(206);
    assert_eq!((part.header("content-type"), &part.body[..]), (Some("video/mp4"), &whole.body[..8]));
    assert_eq!(balance(&user).await, 2);
    assert_eq!(user.delete(text(&job, "/pollUrl")).await.ok(), job, "too late to stop it");
}

#[tokio::test]
async fn a_wait_ends_with_the_status_and_not_with_how_far_it_is() {
    let stack = &Stack::with_workers().await;
    /// The longest wait that a request can ask for (docs/reference/conventions.md#long-polls).
    const WAIT: Duration = Duration::from_secs(30);
    let user = payer(stack, 1).await;
    let mut job = start(&user, short(json!({"durationSeconds": 4}))).await;
    while !matches!(text(&job, "/status"), "succeeded" | "failed") {
        let began = std::time::Instant::now();
        let now = user.get(text(&job, "/pollUrl")).header("prefer", "wait=30").await.json();
        assert!(now["status"] != job["status"] || began.elapsed() >= WAIT, "{now} after {:?}", began.elapsed());
        job = now;
    }
    assert_eq!(job["status"], "succeeded", "{job}");
}

#[tokio::test]
async fn a_video_moves_from_one_node_to_another() {
    let stack = &Stack::with_workers().await;
    let user = payer(stack, 1).await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let first = user.upload_into(id, "image/png", images::png(64, 36)).await;
    let last = user.upload_into(id, "image/png", images::png(36, 64)).await;
    let frames = json!({"canvasId": id, "firstFrame": first["node"], "lastFrame": last["node"]});
    let job = user.finished(&start(&user, short(frames)).await).await;
    assert_eq!(job["status"], "succeeded", "{job}");
    let video = user.get(text(&job, "/video/downloadUrl")).await.expect(200);
    assert_eq!(&video.body[4..8], b"ftyp");
}

#[tokio::test]
async fn a_video_in_the_making_is_canceled_and_paid_back() {
    let stack = &Stack::with_workers().await;
    let user = payer(stack, 1).await;
    let long = json!({"durationSeconds": 30, "resolution": "720p"});
    let job = start(&user, long).await;
    let path = text(&job, "/pollUrl");
    user.until(&job, |job| job["status"] == "running").await;
    let stopping = user.delete(path).await.expect(202).json();
    assert_eq!(stopping["status"], "running", "a video has no `canceling`");
    let ended = user.finished(&job).await;
    assert_eq!((&ended["status"], &ended["failure"]["code"]), (&json!("canceled"), &json!("canceled")));
    assert_eq!((&ended["creditCost"], balance(&user).await), (&json!(0), json!(1)));
    user.get(&format!("{path}/output")).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn images_are_brought_from_where_they_are() {
    let stack = &Stack::with_workers().await;
    let (user, host) = (payer(stack, 2).await, stack.take_receiver());
    host.answer_with(|request| match request.path.as_str() {
        "/first.png" => Answer::status(302).header("location", "/moved.png"),
        "/moved.png" | "/last.png" => Answer::status(200).header("content-type", "image/png").body(images::png(64, 36)),
        _ => Answer::status(404),
    });
    let asked = json!({"firstFrame": host.url("/first.png"), "lastFrame": host.url("/last.png")});
    let job = user.finished(&start(&user, short(asked)).await).await;
    assert_eq!(job["status"], "succeeded", "{job}");
    let asked: Vec<_> = host.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/first.png", "/moved.png", "/last.png"]);
    let absent = json!({"references": [host.url("/absent.png")]});
    let job = user.finished(&start(&user, short(absent)).await).await;
    assert_eq!((&job["status"], &job["creditCost"]), (&json!("failed"), &json!(0)), "{job}");
}

/// A video of a provider with this latency.
async fn ordered(stack: &Stack, latency: Duration) -> (User, Simulator, Value) {
    let user = stack.user().await;
    let simulator = Simulator::start(Vendor::Runway).await;
    simulator.take(latency);
    stack.connect_to(&user.uid, "runway", simulator.url(), SIMULATOR_KEY).await;
    let models = user.get("/models?provider=runway&capability=video.generate").await.ok();
    let job = start(&user, json!({"model": models["models"][0]["handle"]})).await;
    (user, simulator, job)
}

#[tokio::test]
async fn a_providers_video_is_served_and_costs_no_credit() {
    let stack = &Stack::with_workers().await;
    let (user, simulator, job) = ordered(stack, Duration::ZERO).await;
    let job = user.finished(&job).await;
    assert_eq!((&job["status"], &job["progress"], &job["creditCost"]), (&json!("succeeded"), &json!(100.0), &json!(0)));
    assert!(job["providerRunId"].is_string(), "{job}");
    let path = text(&job, "/video/downloadUrl").strip_prefix("/api/canvas-agent/v1").expect("a path").to_owned();
    let video = user.get(&path).await.expect(200);
    assert_eq!((video.header("content-type"), &video.body[4..8]), (Some("video/mp4"), &b"ftyp"[..]));
    assert_eq!((simulator.submits().len(), simulator.leaks()), (1, 0));
}

#[tokio::test]
async fn a_canceled_video_that_the_provider_finishes_anyway_stays_canceled() {
    let stack = &Stack::with_workers().await;
    // Longer than the time until the first poll.
    let (user, simulator, job) = ordered(stack, Duration::from_secs(3600)).await;
    simulator.ignore_cancels();
    user.until(&job, |job| job["providerRunId"].is_string()).await;
    let path = format!("/jobs/{}", text(&job, "/rawId"));
    let canceling = user.delete(&path).await.expect(202).json();
    assert_eq!(canceling["status"], "running", "a video has no other state until it has ended");
    let ended = user.finished(&job).await;
    assert_eq!((&ended["status"], &ended["failure"]["code"]), (&json!("canceled"), &json!("canceled")), "{ended}");
    assert!(
        simulator.cancel_requests() >= 1 && simulator.cancels() == 0,
        "the cancel was requested and the provider continued"
    );
    assert_eq!(ended["creditCost"], 0, "a saved connection costs no credit");
    simulator.finish();
    let looks =
        "SELECT count(*) FROM task_queue t JOIN jobs j ON j.id = t.id WHERE j.status = 'canceled' AND account_uid = $1";
    assert_eq!(stack.count_of(looks, &user.uid).await, 0, "it is not polled anymore");
    let shown = "SELECT count(*) FROM jobs WHERE status = 'canceled' AND video_blob IS NOT NULL AND account_uid = $1";
    assert_eq!(stack.count_of(shown, &user.uid).await, 0);
    assert_eq!(user.get(&path).await.ok(), ended, "the late result changes nothing");
    assert_eq!(user.delete(&path).await.ok(), ended, "a second cancel changes nothing");
    user.get(&format!("{path}/output")).await.expect_error(404, "not_found", &[]);
    assert_eq!((simulator.submits().len(), simulator.leaks()), (1, 0));
}

#[tokio::test]
async fn an_image_that_cannot_be_fetched_fails_the_video() {
    let stack = &Stack::with_workers().await;
    let user = payer(stack, 1).await;
    let image = json!({"firstFrame": "https://nowhere.invalid/a.png"});
    let job = user.finished(&start(&user, short(image)).await).await;
    assert_eq!((&job["status"], &job["failure"]["code"]), (&json!("failed"), &json!("video_generation_failed")));
    assert!(text(&job, "/failure/message").contains("https://nowhere.invalid/a.png"), "{job}");
    assert_eq!((&job["creditCost"], balance(&user).await), (&json!(0), json!(1)));
}
