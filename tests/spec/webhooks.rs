//! Webhooks (docs/reference/webhooks.md).

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::api::{key, text};
use e2e::{Part, Stack, User, images};
use serde_json::{Value, json};
use testkit::{Answer, Received, Receiver};

const SECRET: &str = "a secret of the caller's own, long enough";

/// Starts a resize of a new image of `user` with a webhook to `receiver`.
async fn start(user: &User, receiver: &Receiver) -> Value {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    user.start_resize(&canvas, json!({"webhook": {"url": receiver.url("/hook?q=1"), "secret": SECRET}})).await
}

#[tokio::test]
async fn a_secret_of_standard_webhooks_signs_twice() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    user.start_resize(&canvas, json!({"webhook": {"url": receiver.url("/"), "secret": secret}})).await;
    let requests = receiver.wait_for(1, e2e::PATIENCE).await;
    requests[0].verify_signature(secret).expect("is signed with the text");
    requests[0].verify_standard("0123456789abcdef0123456789abcdef").expect("is signed with the decoded key");
    assert_eq!(requests[0].header("webhook-signature").map(|header| header.split(' ').count()), Ok(2));
}

/// Polls until the delivery of a job is over. Returns the webhook of the run.
async fn delivery(user: &User, job: &Value) -> Value {
    let over = |record: &Value| matches!(record["webhook"]["status"].as_str(), Some("delivered" | "failed"));
    user.until(job, over).await["webhook"].clone()
}

fn event(request: &Received) -> Value {
    serde_json::from_slice(&request.body).expect("UTF-8 JSON")
}

#[tokio::test]
async fn a_success_is_announced_once_and_signed() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let job = start(&user, &receiver).await;
    assert_eq!((&job["webhook"]["status"], &job["webhook"]["attempts"]), (&json!("pending"), &json!(0)));
    let requests = receiver.wait_for(1, e2e::PATIENCE).await;
    let request = &requests[0];
    request.verify_signature(SECRET).expect("is signed");
    assert!(request.verify_signature("another secret of the same good length").is_err());
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hook?q=1"));
    assert_eq!(request.header("content-type"), Ok("application/json"));
    assert_eq!(request.header("user-agent"), Ok("Canvas-Webhooks/1.0"));
    assert_eq!(request.header("service-webhook-id"), Ok(text(&job, "/webhook/id")));
    let event = event(request);
    assert!(text(&event, "/id").starts_with("event:"));
    assert_eq!((&event["type"], &event["apiVersion"]), (&json!("image_job.succeeded"), &json!("v1")));
    let done = user.finished(&job).await;
    assert_eq!(event["createdAt"], done["timing"]["completedAt"]);
    let run = &event["data"]["run"];
    for same in [
        "id",
        "run",
        "status",
        "operation",
        "kind",
        "actionId",
        "actionVersion",
        "canvasId",
        "canvasRevision",
        "targets",
        "timing",
    ] {
        assert_eq!(run[same], done[same], "{same}");
    }
    let (image, shown) = (&run["images"][0], &done["images"][0]);
    for same in ["assetId", "nodeId", "mediaType", "width", "height", "bytes"] {
        assert_eq!(image[same], shown[same], "{same}");
    }
    assert!(!event.to_string().contains("preview"), "handles and no preview URLs");
    assert!(run.get("webhook").is_none());
    let webhook = delivery(&user, &job).await;
    assert_eq!(
        (&webhook["status"], &webhook["attempts"], &webhook["lastStatus"]),
        (&json!("delivered"), &json!(1), &json!(200))
    );
    assert!(
        webhook["lastAttemptAt"].is_string()
            && webhook["deliveredAt"].is_string()
            && webhook.get("errorCode").is_none()
    );
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_failure_and_a_cancel_are_announced() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::broken_png(9, 9)).await;
    let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    request["webhook"] = json!({"url": receiver.url("/"), "secret": SECRET});
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    let failed = event(&receiver.wait_for(1, e2e::PATIENCE).await[0]);
    assert_eq!((&failed["type"], &failed["data"]["run"]["id"]), (&json!("image_job.failed"), &job["id"]));
    assert_eq!(failed["data"]["run"]["failure"]["code"], "action_input_invalid");
    // Whenever the cancel arrives, the event reports the actual end.
    let job = start(&user, &receiver).await;
    user.delete(text(&job, "/pollUrl")).await;
    let end = user.finished(&job).await;
    let requests = receiver.wait_for(2, e2e::PATIENCE).await;
    let announced = event(&requests[1]);
    let expected = format!("image_job.{}", text(&end, "/status"));
    assert_eq!((text(&announced, "/type"), &announced["data"]["run"]["status"]), (expected.as_str(), &end["status"]));
    requests[1].verify_signature(SECRET).expect("is signed");
}

/// Starts a short video of the embedded runtime with a webhook to `receiver`.
async fn start_video(user: &User, receiver: &Receiver, more: Value) -> Value {
    let mut body = json!({
        "model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key(), "durationSeconds": 1,
        "resolution": "480p", "webhook": {"url": receiver.url("/"), "secret": SECRET},
    });
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    let job = user.send("/videos/generate", &body).await.expect(202).json();
    let mut again = user.send("/videos/generate", &body).await.expect(202).json();
    assert_eq!((again["id"].clone(), again["replayed"].take()), (job["id"].clone(), json!(true)));
    body["webhook"]["url"] = json!(receiver.url("/other"));
    user.send("/videos/generate", &body).await.expect_error(409, "conflict", &[]);
    job
}

#[tokio::test]
async fn a_video_is_announced_once_with_and_without_a_node() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    stack.grant(&user.uid, 2).await;
    let canvas = user.make_canvas().await;
    let on_canvas = json!({"canvasId": canvas["handle"], "baseRevision": canvas["revision"], "place": {}});
    for (count, more) in [json!({}), on_canvas].into_iter().enumerate() {
        let job = start_video(&user, &receiver, more).await;
        assert_eq!(job["webhook"]["status"], "pending");
        let requests = receiver.wait_for(count + 1, e2e::PATIENCE).await;
        requests[count].verify_signature(SECRET).expect("is signed");
        let event = event(&requests[count]);
        assert_eq!(text(&event, "/type"), "video_job.succeeded");
        let mut done = user.finished(&job).await;
        assert_eq!(event["createdAt"], done["updatedAt"]);
        assert_eq!(delivery(&user, &job).await["status"], "delivered");
        done.as_object_mut().expect("an object").remove("webhook");
        assert_eq!(event["data"]["run"], done);
        // Its deliveries are found by the handle under which it is read.
        let listed = stack.admin(&["admin", "webhook", "list", "--account", &user.uid]).await.expect_success();
        assert_eq!(listed["deliveries"][0]["run"], job["id"]);
    }
    let announced = event(&receiver.requests()[1]);
    let handle = text(&announced, "/data/run/id").to_owned();
    stack.admin(&["admin", "webhook", "replay", "--run", &handle]).await.expect_success();
    let replayed = receiver.wait_for(3, e2e::PATIENCE).await;
    assert_eq!(replayed[2].body, replayed[1].body);
}

#[tokio::test]
async fn a_video_that_failed_or_was_canceled_is_announced() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    stack.grant(&user.uid, 2).await;
    let absent = stack.take_receiver();
    absent.answer(Answer::status(404));
    let job = start_video(&user, &receiver, json!({"references": [absent.url("/absent.png")]})).await;
    let failed = event(&receiver.wait_for(1, e2e::PATIENCE).await[0]);
    assert_eq!((&failed["type"], &failed["data"]["run"]["id"]), (&json!("video_job.failed"), &job["id"]));
    assert_eq!(failed["data"]["run"]["failure"]["code"], "video_generation_failed");
    let job = start_video(&user, &receiver, json!({"durationSeconds": 30, "resolution": "720p"})).await;
    user.until(&job, |job| job["status"] == "running").await;
    user.delete(text(&job, "/pollUrl")).await.expect(202);
    let canceled = event(&receiver.wait_for(2, e2e::PATIENCE).await[1]);
    assert_eq!((&canceled["type"], &canceled["data"]["run"]["id"]), (&json!("video_job.canceled"), &job["id"]));
    assert_eq!(canceled["data"]["run"]["failure"]["code"], "canceled");
}

#[tokio::test]
async fn the_webhook_of_a_video_is_shown_to_callers_with_job_manage_alone() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    stack.grant(&account.uid, 1).await;
    let starter = stack.user_of(&account, "canvas:read,asset:read,video:generate").await;
    let manager = stack.user_of(&account, "job:manage").await;
    let receiver = stack.take_receiver();
    let job = start_video(&starter, &receiver, json!({})).await;
    assert!(job.get("webhook").is_none(), "{job}");
    assert_eq!(delivery(&manager, &job).await["status"], "delivered");
}

#[tokio::test]
async fn what_may_succeed_later_is_tried_again_as_the_same_event() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    for statuses in [&[408, 425, 429][..], &[500, 503, 599]] {
        let before = receiver.requests().len();
        let answers = statuses.iter().map(|status| Answer::status(*status)).chain([Answer::status(299)]);
        receiver.answer_in_turn(answers.collect());
        let job = start(&user, &receiver).await;
        let webhook = delivery(&user, &job).await;
        assert_eq!(
            (&webhook["status"], &webhook["attempts"], &webhook["lastStatus"]),
            (&json!("delivered"), &json!(4), &json!(299))
        );
        let requests = receiver.requests()[before..].to_vec();
        assert_eq!(requests.len(), 4);
        let bodies: BTreeSet<_> = requests.iter().map(|request| request.body.clone()).collect();
        assert_eq!(bodies.len(), 1, "the same bytes");
        for request in &requests {
            request.verify_signature(SECRET).expect("each attempt is signed");
            assert_eq!(request.header("service-webhook-id"), Ok(text(&job, "/webhook/id")));
        }
    }
}

#[tokio::test]
async fn four_attempts_are_all() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    receiver.answer(Answer::status(500));
    let job = start(&user, &receiver).await;
    let webhook = delivery(&user, &job).await;
    assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("failed"), &json!(4)));
    assert_eq!((&webhook["errorCode"], &webhook["lastStatus"]), (&json!("delivery_failed"), &json!(500)));
    assert!(webhook.get("deliveredAt").is_none() && webhook.get("nextAttemptAt").is_none());
    assert_eq!(receiver.requests().len(), 4);
    assert_eq!(user.finished(&job).await["status"], "succeeded", "the run is unchanged");
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_tried_four_times() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    receiver.answer(Answer::close());
    let job = start(&user, &receiver).await;
    let webhook = delivery(&user, &job).await;
    assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("failed"), &json!(4)));
    assert_eq!(webhook["errorCode"], "delivery_failed");
    assert!(webhook.get("lastStatus").is_none());
}

#[tokio::test]
async fn a_redirect_ends_delivery_and_is_not_followed() {
    let stack = &Stack::with_workers().await;
    let (user, receiver, elsewhere) = (stack.user().await, stack.take_receiver(), stack.take_receiver());
    receiver.answer(Answer::redirect(&elsewhere.url("/")));
    let job = start(&user, &receiver).await;
    let webhook = delivery(&user, &job).await;
    assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("failed"), &json!(1)));
    assert_eq!((&webhook["errorCode"], &webhook["lastStatus"]), (&json!("redirect_not_allowed"), &json!(302)));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_refusal_ends_delivery() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    for status in [400, 401, 404, 410, 422] {
        receiver.answer(Answer::status(status));
        let job = start(&user, &receiver).await;
        let webhook = delivery(&user, &job).await;
        assert_eq!((&webhook["status"], &webhook["attempts"]), (&json!("failed"), &json!(1)), "{status}");
        assert_eq!((&webhook["errorCode"], &webhook["lastStatus"]), (&json!("endpoint_rejected"), &json!(status)));
    }
}

#[tokio::test]
async fn one_slow_destination_delays_no_other() {
    let stack = &Stack::with_workers().await;
    let (user, slow, quick) = (stack.user().await, stack.take_receiver(), stack.take_receiver());
    slow.answer(Answer::status(200).after(Duration::from_secs(5)));
    for _ in 0..3 {
        start(&user, &slow).await;
    }
    slow.wait_for(1, e2e::PATIENCE).await;
    let began = std::time::Instant::now();
    let job = start(&user, &quick).await;
    quick.wait_for(1, e2e::PATIENCE).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(delivery(&user, &job).await["status"], "delivered");
}

#[tokio::test]
async fn the_webhook_is_shown_to_callers_with_job_manage_alone() {
    let stack = &Stack::with_workers().await;
    let account = stack.account().await;
    let starter = stack.user_of(&account, "canvas:read,canvas:write,asset:read,image:generate").await;
    let manager = stack.user_of(&account, "job:manage").await;
    let receiver = stack.take_receiver();
    let job = start(&starter, &receiver).await;
    assert!(job.get("webhook").is_none(), "{job}");
    assert_eq!(delivery(&manager, &job).await["status"], "delivered");
    starter.get(text(&job, "/pollUrl")).await.expect_error(403, "forbidden", &[]);
}

#[tokio::test]
async fn neither_url_nor_secret_is_ever_shown_or_kept_in_the_clear() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let secret = "never-to-be-seen-again-0123456789abcdef";
    let webhook = json!({"webhook": {"url": receiver.url("/hook?key=whisper"), "secret": secret}});
    let job = user.start_resize(&canvas, webhook).await;
    delivery(&user, &job).await;
    let shown =
        user.finished(&job).await.to_string() + &user.get(&format!("/canvases/{canvas}")).await.ok().to_string();
    let listed = stack.admin(&["admin", "webhook", "list", "--account", &user.uid]).await.expect_success().to_string();
    for hidden in [secret, "whisper"] {
        assert!(!shown.contains(hidden) && !job.to_string().contains(hidden) && !listed.contains(hidden), "{hidden}");
        for part in [Part::GATEWAY, Part::IMAGE_WORKER, Part::DISPATCHER] {
            assert!(!stack.log(part).contains(hidden), "{hidden} in the log of {part}");
        }
    }
    let kept: i64 = sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM webhook_deliveries d WHERE position($1 IN d::text) > 0)
              + (SELECT count(*) FROM jobs j WHERE position($1 IN j::text) > 0)
              + (SELECT count(*) FROM idempotency_keys k WHERE position($1 IN k::text) > 0)",
    )
    .bind(secret)
    .fetch_one(stack.pool())
    .await
    .expect("looks");
    assert_eq!(kept, 0, "encrypted at rest");
}

#[tokio::test]
async fn an_operator_lists_and_replays_deliveries() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    receiver.answer(Answer::status(400));
    let job = start(&user, &receiver).await;
    let webhook = delivery(&user, &job).await;
    let list = async |more: &[&str]| {
        let command = [&["admin", "webhook", "list", "--account", &user.uid], more].concat();
        stack.admin(&command).await.expect_success()["deliveries"].as_array().expect("a list").clone()
    };
    let all = list(&[]).await;
    assert_eq!(all.len(), 1);
    let entry = &all[0];
    assert_eq!((&entry["id"], &entry["run"]), (&webhook["id"], &job["run"]));
    assert_eq!((&entry["status"], &entry["attempts"]), (&json!("failed"), &json!(1)));
    assert_eq!((&entry["lastStatus"], &entry["errorCode"]), (&json!(400), &json!("endpoint_rejected")));
    assert!(entry["createdAt"].is_string());
    assert!(list(&["--status", "delivered"]).await.is_empty());
    // The same event and body with a new signature. The attempt is recorded separately.
    receiver.answer(Answer::status(200));
    let replayed = stack.admin(&["admin", "webhook", "replay", text(&webhook, "/id")]).await.expect_success();
    assert_eq!(replayed["id"], webhook["id"]);
    let requests = receiver.wait_for(2, e2e::PATIENCE).await;
    assert_eq!(requests[0].body, requests[1].body);
    requests[1].verify_signature(SECRET).expect("is signed");
    let delivered = user.until(&job, |record| record["webhook"]["status"] == "delivered").await;
    assert_eq!(delivered["webhook"]["attempts"], 1, "the attempts of the service itself");
    assert_eq!(list(&["--status", "delivered"]).await.len(), 1);
}

#[tokio::test]
async fn what_failed_is_replayed_by_its_run_or_for_an_account_at_once() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    receiver.answer(Answer::status(400));
    let mut failed = Vec::new();
    for _ in 0..2 {
        let job = start(&user, &receiver).await;
        failed.push((text(&job, "/run").to_owned(), delivery(&user, &job).await["id"].clone()));
    }
    let replay = async |what: &[&str]| stack.admin(&[&["admin", "webhook", "replay"], what].concat()).await;
    receiver.answer(Answer::status(200));
    let (run, id) = &failed[0];
    assert_eq!(replay(&["--run", run]).await.expect_success(), json!({"id": id, "status": "pending"}));
    testkit::wait_for("its delivery", e2e::PATIENCE, async || {
        let list = ["admin", "webhook", "list", "--account", &user.uid, "--status", "delivered"];
        let listed = stack.admin(&list).await.expect_success();
        (listed["deliveries"].as_array().map(Vec::len) == Some(1)).then_some(())
    })
    .await;
    // First the one delivery that is left, then none.
    let all = replay(&["--account", &user.uid]).await.expect_success();
    assert_eq!(all, json!({"deliveries": [{"id": failed[1].1, "status": "pending"}]}));
    let requests = receiver.wait_for(4, e2e::PATIENCE).await;
    let event = |request: &Received| event(request)["id"].clone();
    assert_eq!(
        (event(&requests[2]), event(&requests[3])),
        (event(&requests[0]), event(&requests[1])),
        "the same events"
    );
    requests.iter().for_each(|request| request.verify_signature(SECRET).expect("is signed"));
    testkit::wait_for("no delivery to be failed", e2e::PATIENCE, async || {
        let all = replay(&["--account", &user.uid]).await.expect_success();
        (all == json!({"deliveries": []})).then_some(())
    })
    .await;
    for what in [&["--run", "run:x"][..], &["--account", "nobody"], &["webhook:x"]] {
        replay(what).await.expect_refusal();
    }
    replay(&[]).await.expect_misuse();
    replay(&[text(&failed[0].1, ""), "--run", run]).await.expect_misuse();
}

#[tokio::test]
async fn a_recipe_run_is_listed_and_replayed_by_its_own_handle() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    stack.grant(&user.uid, 1).await;
    let canvas = user.make_canvas().await;
    let request = json!({
        "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": e2e::api::key(),
        "inputs": {"brief": "A shop for kites"}, "webhook": {"url": receiver.url("/"), "secret": SECRET},
    });
    let run = user.send("/recipes/palette-and-type-board/runs", &request).await.expect(202).json();
    let webhook = delivery(&user, &run).await;
    let job = start(&user, &receiver).await;
    delivery(&user, &job).await;
    let listed = stack.admin(&["admin", "webhook", "list", "--account", &user.uid]).await.expect_success();
    let runs = [0, 1].map(|at| text(&listed, &format!("/deliveries/{at}/run")));
    assert_eq!(runs, [text(&job, "/run"), text(&run, "/handle")], "each under its own handle, newest first");
    assert!(runs[1].starts_with("run:recipe-"), "{runs:?}");
    let replayed = stack.admin(&["admin", "webhook", "replay", "--run", runs[1]]).await.expect_success();
    assert_eq!(replayed, json!({"id": webhook["id"], "status": "pending"}), "a listed id can be replayed");
    let requests = receiver.wait_for(3, e2e::PATIENCE).await;
    assert_eq!((&requests[2].body, &event(&requests[2])["data"]["run"]["run"]), (&requests[0].body, &run["handle"]));
    requests[2].verify_signature(SECRET).expect("is signed");
}

#[tokio::test]
async fn the_trace_of_the_request_reaches_the_receiver() {
    let stack = &Stack::with_workers().await;
    let (user, receiver) = (stack.user().await, stack.take_receiver());
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(9, 9)).await;
    let mut request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    request["webhook"] = json!({"url": receiver.url("/"), "secret": SECRET});
    let trace = uuid::Uuid::new_v4().simple().to_string();
    let call =
        user.send("/actions/resize/runs", &request).header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"));
    call.await.expect(202);
    let requests = receiver.wait_for(1, e2e::PATIENCE).await;
    let parent = requests[0].header("traceparent").expect("carries the trace context");
    assert_eq!(parent.split('-').nth(1), Some(trace.as_str()), "{parent}");
    assert_ne!(parent.split('-').nth(2), Some("00f067aa0ba902b7"), "of a span of its own");
    for part in [Part::GATEWAY, Part::IMAGE_WORKER, Part::DISPATCHER] {
        testkit::wait_for(&format!("the trace in the log of {part}"), e2e::PATIENCE, async || {
            stack.log(part).contains(&trace).then_some(())
        })
        .await;
    }
}

/// Starts a run with this webhook. It is rejected for the webhook or for a missing canvas.
async fn offered(user: &User, url: &str, secret: &str) -> e2e::Reply {
    let request = json!({
        "canvasId": "absent", "baseRevision": "r", "idempotencyKey": e2e::api::key(), "targetNodeId": "t",
        "inputs": ["node:n"], "params": {"width": 1}, "webhook": {"url": url, "secret": secret},
    });
    user.send("/actions/resize/runs", &request).await
}

#[tokio::test]
async fn a_url_that_is_not_public_https_is_400() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for url in [
        // Invalid scheme, credentials, fragment or form.
        "http://example.com/",
        "ftp://example.com/",
        "example.com",
        "https://",
        "https:///path",
        "HTTPS:example.com",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:pass@example.com/",
        "https://example.com/#part",
        "https://example.com/#",
        "https://exa mple.com/",
        "https://example.com:99999/",
        "https://example.com:25/",
        "https://example.com:1023/",
        // Loopback addresses in all notations.
        "https://127.0.0.1/",
        "https://127.1/",
        "https://127.255.255.254/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://017700000001/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://①②⑦.0.0.1/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://a.localhost/",
        // Unspecified, private, link-local, CGNAT, benchmarking, documentation, multicast, reserved and broadcast addresses.
        "https://0.0.0.0/",
        "https://0/",
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.168.1.1/",
        "https://169.254.169.254/",
        "https://100.64.0.1/",
        "https://100.127.255.255/",
        "https://198.18.0.1/",
        "https://192.0.2.1/",
        "https://198.51.100.1/",
        "https://203.0.113.1/",
        "https://224.0.0.1/",
        "https://239.1.1.1/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://192.0.0.1/",
        // The same addresses in IPv6 notation.
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[2002:a00:1::1]/",
        "https://[2001:0:7f00:1::]/",
        "https://[fc00::1]/",
        "https://[fd12:3456::1]/",
        "https://[fe80::1]/",
        "https://[ff02::1]/",
        "https://[2001:db8::1]/",
        "https://[fec0::1]/",
        "https://[::1%25lo]/",
        // Names that are not public.
        "https://printer.local/",
        "https://db.internal/",
        "https://router.home.arpa/",
        "https://DB.INTERNAL./",
        "https://metadata.google.internal/",
    ] {
        offered(&user, url, SECRET).await.expect_error(400, "input_validation_error", &["webhook.url"]);
    }
}

#[tokio::test]
async fn secrets_and_urls_have_their_lengths() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let url = "https://example.com/hook";
    for (length, status) in [(31, 400), (32, 404), (512, 404), (513, 400)] {
        let reply = offered(&user, url, &"ü".repeat(length)).await.expect(status);
        if status == 400 {
            reply.expect_error(400, "input_validation_error", &["webhook.secret"]);
        }
    }
    let base = "https://example.com/";
    for (length, status) in [(2048, 404), (2049, 400)] {
        let url = format!("{base}{}", "p".repeat(length - base.len()));
        offered(&user, &url, SECRET).await.expect(status);
    }
    for (webhook, field) in [
        (json!({"secret": SECRET}), "webhook.url"),
        (json!({"url": url}), "webhook.secret"),
        (json!({"url": 7, "secret": SECRET}), "webhook.url"),
    ] {
        let request = json!({
            "canvasId": "absent", "baseRevision": "r", "idempotencyKey": e2e::api::key(), "targetNodeId": "t",
            "inputs": ["node:n"], "params": {"width": 1}, "webhook": webhook,
        });
        user.send("/actions/resize/runs", &request).await.expect_error(400, "input_validation_error", &[field]);
    }
}

#[tokio::test]
async fn a_public_url_is_accepted() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for url in [
        "https://example.com/",
        "https://example.com:8443/a?b=c",
        "https://example.com:1024/",
        "https://93.184.215.14/",
        "https://bücher.example/",
        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
    ] {
        // Only the canvas is missing: the URL is accepted.
        offered(&user, url, SECRET).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn a_token_lists_and_replays_the_deliveries_of_its_account() {
    let stack = &Stack::with_workers().await;
    let (account, other) = (stack.account().await, stack.user().await);
    let (user, receiver) = (stack.user_of(&account, "all").await, stack.take_receiver());
    let pending = stack.take_receiver();
    receiver.answer(Answer::status(410));
    let (mut jobs, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let job = start(&user, &receiver).await;
        ids.push(text(&delivery(&user, &job).await, "/id").to_owned());
        jobs.push(job);
    }
    let read = async |query: &str| user.get(&format!("/webhook-deliveries{query}")).await.ok();
    let listed = read("").await;
    let runs: Vec<&Value> = listed["deliveries"].as_array().expect("a list").iter().map(|it| &it["run"]).collect();
    assert_eq!(runs, [&jobs[2]["run"], &jobs[1]["run"], &jobs[0]["run"]], "newest first");
    assert_eq!(listed["deliveries"][0]["webhook"]["errorCode"], "endpoint_rejected");
    for hidden in ["/hook", SECRET] {
        assert!(!listed.to_string().contains(hidden), "{listed}");
    }
    let first = read("?limit=2").await;
    let rest = read(&format!("?limit=2&cursor={}", text(&first, "/page/nextCursor"))).await;
    let count = |list: &Value| list["deliveries"].as_array().map(Vec::len);
    assert_eq!((count(&first), count(&rest)), (Some(2), Some(1)));
    assert_eq!((count(&read("?status=delivered").await), count(&read("?status=failed").await)), (Some(0), Some(3)));
    user.get("/webhook-deliveries?status=lost").await.expect_error(400, "input_validation_error", &["status"]);

    // One, which is told by the audit.
    receiver.answer(Answer::status(200));
    let one = |id: &str| format!("/webhook-deliveries/{id}/replay");
    let replayed = user.post(&one(&ids[0])).await.expect(202).json();
    assert_eq!(replayed, json!({"id": ids[0], "status": "pending"}));
    let requests = receiver.wait_for(4, e2e::PATIENCE).await;
    assert_eq!(requests[3].body, requests[0].body);
    requests[3].verify_signature(SECRET).expect("is signed");
    let person = stack.person(&account).await;
    let audit = person.get("/audit?event=delivery.replayed").await.ok();
    let actor = &audit["entries"][0]["actor"];
    assert_eq!((&actor["via"], &actor["id"]), (&json!("token"), &json!(user.token_id)), "{audit}");

    // All that failed since a time.
    let since = |time: &str| format!("/webhook-deliveries/replay?since={time}");
    let none = user.post(&since("2100-01-01T00:00:00Z")).await.expect(202).json();
    assert_eq!(none, json!({"replayed": [], "skipped": []}));
    let both = user.post(&since(text(&listed, "/deliveries/1/createdAt"))).await.expect(202).json();
    assert_eq!(both, json!({"replayed": [ids[1], ids[2]], "skipped": []}));
    receiver.wait_for(6, e2e::PATIENCE).await;
    for (query, why) in [("", "is missing"), ("?since=yesterday", "is no time")] {
        let refused = user.post(&format!("/webhook-deliveries/replay{query}")).await;
        println!("{why}");
        refused.expect_error(400, "input_validation_error", &["since"]);
    }

    // What has not ended, and what is not one's own.
    pending.answer(Answer::status(200).after(Duration::from_secs(5)));
    let waiting = start(&user, &pending).await;
    let id = text(&waiting, "/webhook/id");
    user.post(&one(id)).await.expect_error(409, "conflict", &[]);
    other.post(&one(&ids[0])).await.expect_error(404, "not_found", &[]);
    assert_eq!(count(&other.get("/webhook-deliveries").await.ok()), Some(0));
    let all = other.post(&since("2000-01-01T00:00:00Z")).await.expect(202).json();
    assert_eq!(all["replayed"], json!([]));
    user.post(&one("webhook:1")).await.expect_error(400, "input_validation_error", &["deliveryId"]);
    let narrow = stack.user_of(&account, "canvas:read").await;
    narrow.get("/webhook-deliveries").await.expect_error(403, "forbidden", &[]);
    for path in [one(&ids[0]), since("2000-01-01T00:00:00Z")] {
        narrow.post(&path).await.expect_error(403, "forbidden", &[]);
    }
}

#[tokio::test]
async fn a_request_replays_the_oldest_1000_of_the_failed_deliveries() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let failed = sqlx::query(
        "INSERT INTO webhook_deliveries (id, account_uid, job_id, url, sealed_secret, status, event_id, body, created_at)
         SELECT gen_random_uuid(), $1, gen_random_uuid(), 'https://example.com/', '', 'failed', 'event:' || n, 'x',
                timestamptz '2026-01-01' + n * interval '1 second'
         FROM generate_series(1, 2001) AS n",
    );
    failed.bind(&user.uid).execute(stack.pool()).await.expect("inserts");
    for expected in [1000, 1000, 1, 0] {
        let replayed = user.post("/webhook-deliveries/replay?since=2026-01-01T00:00:00Z").await.expect(202).json();
        assert_eq!(replayed["replayed"].as_array().map(Vec::len), Some(expected));
        let waiting = "SELECT count(*) FROM webhook_deliveries WHERE status = 'failed' AND created_at <= (
                           SELECT max(created_at) FROM webhook_deliveries WHERE status = 'pending')";
        assert_eq!(stack.count(waiting).await, 0, "the oldest first");
    }
}
