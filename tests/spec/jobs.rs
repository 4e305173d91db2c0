//! Jobs and runs (docs/reference/jobs.md).

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{Account, Client, Stack, User, images};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A canvas of `user`'s with a job that a resize of a new image made.
async fn started(user: &User) -> (String, Value) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    (canvas, job)
}

/// The event stream of a job or run, read to its end, as pairs of event and data.
pub(crate) async fn events(user: &Client, job: &Value) -> Vec<(String, Value)> {
    let path = format!("{}/events", text(job, "/pollUrl"));
    let response = user.get(&path).header("accept", "text/event-stream").streamed().await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let whole = tokio::time::timeout(e2e::PATIENCE, response.text()).await.expect("the stream ends").expect("a text");
    events_of(&whole)
}

/// The events of a stream, as pairs of event and data.
pub(crate) fn events_of(stream: &str) -> Vec<(String, Value)> {
    let blocks = stream.split("\n\n");
    blocks
        .filter(|block| block.lines().any(|line| !line.is_empty() && !line.starts_with(':')))
        .map(|block| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).expect("a field").trim();
            (field("event:").to_owned(), serde_json::from_str(field("data:")).expect("JSON"))
        })
        .collect()
}

#[tokio::test]
async fn a_record_is_the_same_by_every_name() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let done = user.finished(&job).await;
    let uuid = text(&job, "/rawId");
    for path in [
        format!("/runs/{uuid}"),
        format!("/runs/run:{uuid}"),
        format!("/runs/run%3A{uuid}"),
        format!("/jobs/{uuid}"),
        format!("/jobs/job:{uuid}"),
        format!("/jobs/{}", uuid.to_uppercase()),
        text(&job, "/pollUrl").to_owned(),
    ] {
        assert_eq!(user.get(&path).await.ok(), done, "{path}");
    }
}

#[tokio::test]
async fn a_finished_record_is_200_and_its_tag_a_validator() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    user.finished(&job).await;
    let path = text(&job, "/pollUrl");
    let read = user.get(path).await.expect(200);
    assert!(read.header("retry-after").is_none());
    assert_eq!(read.header("cache-control"), Some("private, no-store"));
    let tag = read.header("etag").expect("a tag");
    let same = user.get(path).header("if-none-match", tag).await.expect(304);
    assert!(same.body.is_empty() && same.header("etag") == Some(tag));
    user.get(path).header("if-none-match", "W/\"other\"").await.expect(200);
}

#[tokio::test]
async fn a_job_belongs_to_its_account() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let (user, colleague) = (stack.user_of(&account, "all").await, stack.user_of(&account, "job:manage").await);
    let stranger = stack.user().await;
    let (_, job) = started(&user).await;
    user.finished(&job).await;
    let path = text(&job, "/pollUrl");
    colleague.get(path).await.ok();
    stranger.get(path).await.expect_error(404, "not_found", &[]);
    stranger.delete(path).await.expect_error(404, "not_found", &[]);
    stranger.get(&format!("{path}/events")).await.expect_error(404, "not_found", &[]);
    stranger.get(&format!("/jobs/{}", text(&job, "/id"))).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_wait_on_a_finished_job_comes_at_once() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let path = text(&job, "/pollUrl");
    // However the wait is divided, no change is missed when each request sends the tag of the last response.
    let (mut tag, mut seen) = (String::new(), Vec::new());
    loop {
        let poll = user.get(path).header("prefer", "wait=20").header("if-none-match", &tag).await;
        assert_eq!(poll.header("preference-applied"), Some("wait=20"));
        tag = poll.header("etag").expect("a tag").to_owned();
        let record = poll.json();
        seen.push(text(&record, "/status").to_owned());
        match poll.status {
            200 => break,
            202 => assert_eq!(poll.header("retry-after"), Some("1")),
            other => panic!("{other}"),
        }
    }
    assert_eq!(seen.last().map(String::as_str), Some("succeeded"));
    let began = Instant::now();
    let applied = user.get(path).header("prefer", "wait=99").await.expect(200);
    assert_eq!(applied.header("preference-applied"), Some("wait=30"), "clamped");
    assert!(began.elapsed() < Duration::from_secs(10), "at once");
}

#[tokio::test]
async fn an_event_stream_shows_every_change_and_ends() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let shown = events(&user, &job).await;
    assert!(shown.iter().all(|(event, _)| event == "run"));
    let states: Vec<&str> = shown.iter().map(|(_, run)| text(run, "/status")).collect();
    let rank = |state: &str| ["queued", "running", "finalizing", "succeeded"].iter().position(|known| *known == state);
    assert!(
        states.iter().all(|state| rank(state).is_some()) && states.is_sorted_by_key(|state| rank(state)),
        "{states:?}"
    );
    assert_eq!(states.last(), Some(&"succeeded"));
    let (_, last) = shown.last().expect("an event");
    assert_eq!(*last, user.get(text(&job, "/pollUrl")).await.ok(), "the same record");
    // The stream of a finished job has only the terminal event.
    assert_eq!(events(&user, &job).await.len(), 1);
}

#[tokio::test]
async fn a_finished_job_is_not_canceled() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let done = user.finished(&job).await;
    assert_eq!(user.delete(text(&job, "/pollUrl")).await.ok(), done, "unchanged");
    assert_eq!(user.delete(&format!("/jobs/{}", text(&job, "/id"))).await.ok(), done);
}

#[tokio::test]
async fn an_unfinished_record_is_202_and_says_when_to_come_back() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let path = text(&job, "/pollUrl");
    let read = user.get(path).await.expect(202);
    assert_eq!(read.header("retry-after"), Some("1"));
    assert_eq!((&read.json()["status"], &read.json()["id"]), (&json!("queued"), &job["id"]));
    assert!(read.header("etag").is_some());
    let aliased = user.get(&format!("/jobs/{}", text(&job, "/id"))).await.expect(202);
    assert_eq!((aliased.header("etag"), aliased.json()), (read.header("etag"), read.json()));
}

#[tokio::test]
async fn a_wait_that_ends_without_a_change_shows_what_is() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let path = text(&job, "/pollUrl");
    let now = user.get(path).await.expect(202);
    let began = Instant::now();
    let same = user.get(path).header("prefer", "wait=1").await.expect(202);
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!((same.header("preference-applied"), same.json()), (Some("wait=1"), now.json()));
    let tag = now.header("etag").expect("a tag");
    let unchanged = user.get(path).header("prefer", "wait=1").header("if-none-match", tag).await.expect(304);
    assert_eq!(unchanged.header("preference-applied"), Some("wait=1"));
    // A tag that is already stale is answered at once.
    let began = Instant::now();
    user.get(path).header("prefer", "wait=20").header("if-none-match", "W/\"old\"").await.expect(202);
    assert!(began.elapsed() < Duration::from_secs(10));
    user.get(path).header("if-none-match", tag).await.expect(304);
    let zero = user.get(path).header("prefer", "wait=0").await.expect(202);
    assert_eq!(zero.header("preference-applied"), Some("wait=1"), "clamped");
}

#[tokio::test]
async fn a_malformed_preference_is_ignored() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    for malformed in ["wait", "wait=", "wait=soon", "wait=-1", "wait=1.5", "respond-async", "return=minimal"] {
        let read = user.get(text(&job, "/pollUrl")).header("prefer", malformed).await.expect(202);
        assert_eq!(read.header("preference-applied"), None, "{malformed}");
    }
}

#[tokio::test]
async fn a_token_has_at_most_64_open_waits_in_a_gateway() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, other) = (stack.user_of(&account, "all").await, stack.user_of(&account, "job:manage").await);
    let (_, job) = started(&user).await;
    let path = text(&job, "/pollUrl");
    let waits =
        futures_util::future::join_all((0..66).map(|_| async { user.get(path).header("prefer", "wait=3").await }));
    let (waits, theirs) = tokio::join!(waits, async { other.get(path).header("prefer", "wait=1").await });
    theirs.expect(202);
    let refused: Vec<_> = waits.into_iter().filter(|reply| reply.status != 202).collect();
    assert_eq!(refused.len(), 2);
    for reply in refused {
        assert!(reply.header("retry-after").is_some());
        reply.expect_error(429, "rate_limited", &[]);
    }
    // A wait that ended no longer counts as open.
    user.get(path).header("prefer", "wait=1").await.expect(202);
}

#[tokio::test]
async fn a_job_that_nobody_took_is_canceled_at_once() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(8, 8)).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let canceled = user.delete(text(&job, "/pollUrl")).await.ok();
    assert_eq!((&canceled["status"], &canceled["cancelReason"]), (&json!("canceled"), &json!("user_requested")));
    assert!(canceled["canceledAt"].is_string() && canceled["durationMs"].is_u64() && canceled.get("images").is_none());
    assert_eq!(user.get(text(&job, "/pollUrl")).await.ok(), canceled);
    assert_eq!(user.delete(text(&job, "/pollUrl")).await.ok(), canceled, "terminal: unchanged");
    let read = user.get(&format!("/canvases/{canvas}")).await.ok();
    assert_eq!(
        (&read["activity"][0]["type"], &read["canvas"]["revision"]),
        (&json!("job.finished"), &canceled["canvasRevision"])
    );
    let tasks: i64 = sqlx::query_scalar("SELECT count(*) FROM task_queue WHERE id = $1::uuid")
        .bind(text(&job, "/rawId"))
        .fetch_one(stack.pool())
        .await
        .expect("counts");
    assert_eq!(tasks, 0, "no worker can claim it");
    // A node that existed before stays; only true and false are taken.
    let path = text(&job, "/pollUrl");
    assert_eq!(user.delete(&format!("{path}?removeTargets=true")).await.ok(), canceled);
    assert_eq!(user.canvas(&canvas).await["revision"], canceled["canvasRevision"]);
    for (path, fields) in [
        (path, &["removeTargets"][..]),
        ("/runs/a%20b", &["runId", "removeTargets"]),
        // The form of a parameter is checked before what the id stands for.
        ("/runs/abc", &["removeTargets"]),
        ("/jobs/------------------------------------", &["removeTargets"]),
    ] {
        let refused = user.delete(&format!("{path}?removeTargets=yes")).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
    // The node is free again.
    let again = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    user.send("/actions/resize/runs", &again).await.expect(202);
}

#[tokio::test]
async fn a_cancel_wakes_a_long_poll_at_another_gateway() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let elsewhere = user.at(stack, 1);
    let (_, job) = started(&user).await;
    let path = text(&job, "/pollUrl");
    let tag = user.get(path).await.header("etag").expect("a tag").to_owned();
    let poll = async {
        let polled = elsewhere.get(path).header("prefer", "wait=30").header("if-none-match", &tag).await;
        (polled.ok(), Instant::now())
    };
    let cancel = async {
        // The wait has begun, and has looked once.
        tokio::time::sleep(Duration::from_millis(500)).await;
        user.delete(path).await.ok();
        Instant::now()
    };
    let ((woken, at), canceled) = tokio::join!(poll, cancel);
    assert_eq!(woken["status"], "canceled");
    assert!(at < canceled + AT_ONCE, "{:?}", at.saturating_duration_since(canceled));
}

#[tokio::test]
async fn a_cancel_by_an_operator_wakes_waits_at_once() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let elsewhere = user.at(stack, 1);
    let (canvas, first) = started(&user).await;
    let second = user.start_resize(&canvas, json!({})).await;
    for (job, by) in [(&first, ["--", text(&first, "/id")]), (&second, ["--account", &account.uid])] {
        let path = text(job, "/pollUrl");
        let mut stream = user.get(&format!("{path}/events")).streamed().await.bytes_stream();
        let queued = stream.next().await.expect("an event").expect("reads");
        assert!(String::from_utf8_lossy(&queued).contains("queued"));
        let tag = user.get(path).await.header("etag").expect("a tag").to_owned();
        let poll = async {
            let polled = elsewhere.get(path).header("prefer", "wait=20").header("if-none-match", &tag).await;
            (polled.ok(), Instant::now())
        };
        let next_event = async {
            let event = stream.next().await.expect("an event").expect("reads");
            (event, Instant::now())
        };
        // The command takes longer to start than the poll takes to be admitted.
        let canceled = async {
            stack.admin(&[&["admin", "job", "cancel"][..], &by].concat()).await.expect_success();
            Instant::now()
        };
        let ((polled, polled_at), (event, event_at), canceled_at) = tokio::join!(poll, next_event, canceled);
        assert_eq!(polled["status"], "canceled");
        assert!(String::from_utf8_lossy(&event).contains("canceled"), "{event:?}");
        for at in [polled_at, event_at] {
            assert!(at < canceled_at + AT_ONCE, "{by:?}: {:?}", at.saturating_duration_since(canceled_at));
        }
    }
}

#[tokio::test]
async fn a_revoked_token_is_sent_nothing_more_by_a_stream() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, follower) = (stack.user_of(&account, "all").await, stack.user_of(&account, "job:manage").await);
    let (_, job) = started(&user).await;
    let path = format!("{}/events", text(&job, "/pollUrl"));
    let mut stream = follower.get(&path).streamed().await.bytes_stream();
    let first = stream.next().await.expect("an event").expect("reads");
    assert!(String::from_utf8_lossy(&first).contains("queued"));
    stack.admin(&["admin", "token", "revoke", &follower.token_id]).await.expect_success();
    user.delete(text(&job, "/pollUrl")).await.ok();
    let rest = async {
        let mut rest = Vec::new();
        while let Some(Ok(piece)) = stream.next().await {
            rest.extend(piece);
        }
        String::from_utf8_lossy(&rest).into_owned()
    };
    let rest = tokio::time::timeout(e2e::PATIENCE, rest).await.expect("the stream ends");
    assert!(!rest.contains("canceled"), "{rest}");
}

/// Shorter than the interval of polling without a notification (5 s), so that only a notification ends a wait in time.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Revokes a new token of `account` at another gateway and returns how its stream and its long poll end.
async fn ended_by(stack: &Stack, account: &Account, job: &Value, revoke: impl AsyncFnOnce(&User)) {
    let follower = stack.user_of(account, "job:manage").await;
    let elsewhere = follower.at(stack, 1);
    let path = text(job, "/pollUrl");
    let mut stream = elsewhere.get(&format!("{path}/events")).streamed().await.bytes_stream();
    let first = stream.next().await.expect("an event").expect("reads");
    assert!(String::from_utf8_lossy(&first).contains("queued"));
    let tag = elsewhere.get(path).await.header("etag").expect("a tag").to_owned();
    let poll = async {
        let polled = elsewhere.get(path).header("prefer", "wait=30").header("if-none-match", &tag).await;
        (polled, Instant::now())
    };
    let rest = async {
        let rest: Vec<_> = stream.collect().await;
        (rest, Instant::now())
    };
    // The command takes longer to start than the poll takes to be admitted.
    let revoked = async {
        revoke(&follower).await;
        Instant::now()
    };
    let ((polled, polled_at), (rest, ended_at), revoked_at) = tokio::join!(poll, rest, revoked);
    polled.expect_error(401, "unauthorized", &[]);
    assert!(rest.is_empty(), "{rest:?}");
    for at in [polled_at, ended_at] {
        assert!(at < revoked_at + AT_ONCE, "{:?}", at.saturating_duration_since(revoked_at));
    }
}

#[tokio::test]
async fn waits_end_at_once_with_the_credential_under_which_they_were_opened() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let user = stack.user_of(&account, "all").await;
    let (_, job) = started(&user).await;
    let admin = async |arguments: &[&str]| {
        stack.admin(&[&["admin"][..], arguments].concat()).await.expect_success();
    };
    let on_account = async |what: &[&str]| admin(&[what, &["--account", account.uid.as_str()]].concat()).await;
    let token = async |follower: &User| admin(&["token", "revoke", &follower.token_id]).await;
    ended_by(stack, &account, &job, token).await;
    ended_by(stack, &account, &job, async |_: &User| on_account(&["account", "disable"]).await).await;
    on_account(&["account", "enable"]).await;
    ended_by(stack, &account, &job, async |_: &User| on_account(&["session", "revoke"]).await).await;
}

/// A job belongs to the account that started it, not to the canvas (docs/reference/jobs.md#ownership-of-a-job).
#[tokio::test]
async fn a_stream_of_a_run_goes_on_when_its_canvas_is_no_longer_shared() {
    let stack = &Stack::without_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    let job = editor.start_resize(handle, json!({})).await;
    let path = text(&job, "/pollUrl");
    let mut stream = editor.get(&format!("{path}/events")).streamed().await.bytes_stream();
    assert!(String::from_utf8_lossy(&stream.next().await.expect("an event").expect("reads")).contains("queued"));
    stack.share(&owner, id, &editor.uid, "none").await;
    editor.get(&format!("/canvases/{handle}")).await.expect(404);
    editor.delete(path).await.ok();
    let event = stream.next().await.expect("goes on").expect("reads");
    assert!(String::from_utf8_lossy(&event).contains("canceled"), "{event:?}");
}

#[tokio::test]
async fn a_read_that_the_client_rejects_does_not_wait() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let read = user.get(text(&job, "/pollUrl")).header("prefer", "wait=60").header("accept", "application/json;q=0");
    let refused = tokio::time::timeout(e2e::PATIENCE, read).await.expect("is answered at once");
    refused.expect_error(406, "request_failed", &[]);
    user.delete(text(&job, "/pollUrl")).await.ok();
}

#[tokio::test]
async fn an_event_stream_is_served_as_such_or_not_at_all() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let (_, job) = started(&user).await;
    let path = format!("{}/events", text(&job, "/pollUrl"));
    for refused in ["application/json", "text/event-stream;q=0", "text/event-stream;q=0, */*", "*/*;q=0"] {
        user.get(&path).header("accept", refused).await.expect_error(406, "request_failed", &[]);
    }
    user.delete(text(&job, "/pollUrl")).await.ok();
    for accepted in ["", "*/*", "text/event-stream", "application/json, text/event-stream;q=0.5"] {
        let stream = user.get(&path).header("accept", accepted).await.expect(200);
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_taken_is_canceling_until_the_worker_stops() {
    let stack = Stack::builder().image_workers(1).hold("action.loaded").start().await;
    let user = stack.user().await;
    let (canvas, job) = started(&user).await;
    stack.hold("action.loaded").reached().await;
    let path = text(&job, "/pollUrl");
    assert_eq!(user.get(path).await.expect(202).json()["status"], "running");
    for _ in 0..2 {
        let asked = user.delete(path).await.expect(202);
        assert_eq!(asked.header("retry-after"), Some("1"));
        assert_eq!(asked.json()["status"], "canceling");
    }
    stack.hold("action.loaded").release();
    let canceled = user.finished(&job).await;
    assert_eq!((&canceled["status"], &canceled["cancelReason"]), (&json!("canceled"), &json!("user_requested")));
    assert!(canceled.get("images").is_none());
    let listed = user.get(&format!("/assets?canvasId={canvas}")).await.ok();
    assert_eq!(listed["assets"], json!([]), "no output");
}

/// A caller that lost access to the canvas before the end sees the job fail (docs/reference/jobs.md#lost-canvas-access).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_whose_account_lost_the_canvas_is_not_placed_and_announced_as_such() {
    let secret = "a secret of the caller's own, long enough";
    let stack = Stack::builder().image_workers(1).dispatchers(1).receivers(1).hold("action.loaded").start().await;
    let (owner, editor, receiver) = (stack.user().await, stack.user().await, stack.take_receiver());
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    let webhook = json!({"webhook": {"url": receiver.url("/hook"), "secret": secret}});
    let job = editor.start_resize(handle, webhook).await;
    stack.hold("action.loaded").reached().await;
    stack.share(&owner, id, &editor.uid, "viewer").await;
    stack.hold("action.loaded").release();
    let requests = receiver.wait_for(1, e2e::PATIENCE).await;
    requests[0].verify_signature(secret).expect("is signed");
    let event: Value = serde_json::from_slice(&requests[0].body).expect("JSON");
    let run = &event["data"]["run"];
    assert_eq!((&event["type"], &run["id"]), (&json!("image_job.finalization_failed"), &job["id"]));
    let failure = &run["failure"];
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("output_finalization_failed"), &json!(true)));
    assert!(run["status"] == "failed" && run.get("images").is_none(), "{run}");
    let failed = editor.finished(&job).await;
    assert_eq!((&failed["status"], &failed["failure"]), (&json!("failed"), failure));
    let nodes = owner.canvas(id).await["nodes"].as_array().expect("nodes").clone();
    assert!(nodes.iter().all(|node| node.get("asset").is_none()), "{nodes:?}");
    assert_eq!(owner.get(&format!("/assets?canvasId={id}")).await.ok()["assets"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_loses_the_race_leaves_the_success() {
    let stack = Stack::builder().image_workers(1).hold("job.committed").start().await;
    let user = stack.user().await;
    let (canvas, job) = started(&user).await;
    stack.hold("job.committed").reached().await;
    let unchanged = user.delete(text(&job, "/pollUrl")).await.ok();
    assert_eq!(unchanged["status"], "succeeded");
    stack.hold("job.committed").release();
    assert_eq!(user.finished(&job).await["status"], "succeeded");
    let listed = user.get(&format!("/assets?canvasId={canvas}")).await.ok();
    assert_eq!(listed["assets"].as_array().map(Vec::len), Some(1));
}
