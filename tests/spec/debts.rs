//! What work owes, and how a debt ends (docs/reference/jobs.md#wanted-outputs). No worker runs: work ends by its cancellation.

use e2e::api::{key, text, trial};
use e2e::{Reply, Stack, User};
use serde_json::{Value, json};
use uuid::Uuid;

/// An account with credit, and a canvas of it.
async fn setting(stack: &Stack) -> (User, String) {
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    (user, canvas)
}

fn merged(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    body
}

/// Starts images into `count` new nodes.
async fn images(user: &User, canvas: &str, count: u32, more: Value) -> Reply {
    let revision = user.canvas(canvas).await["revision"].clone();
    let body = json!({
        "canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "prompt": "a kite", "model": "sketch",
        "place": {"count": count},
    });
    user.send("/images/generate", &merged(body, &more)).await
}

/// Starts a video without a target.
async fn video(user: &User, canvas: &str, more: Value) -> Reply {
    let body = json!({"model": "animatic", "prompt": "a kite", "idempotencyKey": key(), "canvasId": canvas});
    user.send("/videos/generate", &merged(body, &more)).await
}

/// Starts a video that names no canvas.
async fn video_alone(user: &User) -> Value {
    let body = json!({"model": "animatic", "prompt": "a kite", "idempotencyKey": key()});
    user.send("/videos/generate", &body).await.expect(202).json()
}

async fn review(user: &User, canvas: &str) -> Value {
    user.get(&format!("/canvases/{canvas}/review")).await.ok()["validation"]["completionReview"].clone()
}

async fn reasons(user: &User, canvas: &str) -> String {
    review(user, canvas).await["delivery"]["reasons"].to_string()
}

/// Cancels work that nobody has taken.
async fn cancel(user: &User, job: &Value) {
    assert_eq!(user.delete(text(job, "/pollUrl")).await.ok()["status"], "canceled");
}

async fn give_up(user: &User, job: &Value) {
    user.delete(&format!("{}?removeTargets=true", text(job, "/pollUrl"))).await.ok();
}

/// The outputs of a review that are no nodes.
fn works(review: &Value) -> Vec<&str> {
    let handles = review["outputs"]["handles"].as_array().expect("a list");
    handles.iter().filter_map(Value::as_str).filter(|handle| !handle.starts_with("node:")).collect()
}

#[tokio::test]
async fn a_video_without_a_target_that_named_the_canvas_is_an_output_of_its_account_alone() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let viewer = stack.user().await;
    stack.grant(&viewer.uid, 5).await;
    stack.share(&user, &canvas, &viewer.uid, "viewer").await;
    let shared = format!("canvas:{}:{canvas}", user.uid);
    let foreign = video(&viewer, &shared, json!({})).await.expect(202).json();
    assert_eq!(review(&user, &canvas).await["doneClaimAllowed"], true, "the viewer's video is not the owner's work");
    assert_eq!(works(&review(&viewer, &shared).await), [text(&foreign, "/id")]);
    let job = video(&user, &canvas, json!({})).await.expect(202).json();
    let handle = text(&job, "/id");
    let pending = review(&user, &canvas).await;
    assert_eq!((&pending["status"], &pending["doneClaimAllowed"]), (&json!("blocked"), &json!(false)));
    assert_eq!((works(&pending), &pending["delivery"]["pendingOutputHandles"]), (vec![handle], &json!([handle])));
    assert_eq!(pending["delivery"]["reasons"], json!([format!("{handle} has 0 of 1 output")]));
    cancel(&user, &job).await;
    let failed = review(&user, &canvas).await;
    assert_eq!(
        (&failed["delivery"]["failedOutputHandles"], &failed["outputs"]["failedCount"]),
        (&json!([handle]), &json!(1))
    );
}

#[tokio::test]
async fn the_runs_of_a_canvas_include_videos_that_named_it() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let other = text(&user.make_canvas().await, "/id").to_owned();
    let job = video(&user, &canvas, json!({})).await.expect(202).json();
    video_alone(&user).await;
    for (on, expected) in [(&canvas, vec![text(&job, "/id")]), (&other, vec![])] {
        let runs = user.get(&format!("/runs?canvasId={on}")).await.ok()["runs"].clone();
        let handles: Vec<_> = runs.as_array().expect("a list").iter().map(|run| text(run, "/handle")).collect();
        assert_eq!(handles, expected);
        assert!(runs.as_array().into_iter().flatten().all(|run| text(run, "/canvasId").ends_with(on)), "{runs}");
    }
}

#[tokio::test]
async fn a_video_with_a_target_or_without_a_canvas_is_no_work_without_a_node() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    video_alone(&user).await;
    let revision = user.canvas(&canvas).await["revision"].clone();
    video(&user, &canvas, json!({"place": {}, "baseRevision": revision})).await.expect(202);
    let review = review(&user, &canvas).await;
    assert_eq!((works(&review), &review["outputs"]["count"]), (vec![], &json!(1)));
}

#[tokio::test]
async fn what_was_asked_for_beyond_the_targets_is_owed_until_it_is_made_up_for() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let job = images(&user, &canvas, 2, json!({"asked": 5})).await.expect(202).json();
    let run = text(&job, "/run");
    let pending = review(&user, &canvas).await;
    assert_eq!((works(&pending), &pending["outputs"]["pendingCount"]), (vec![run], &json!(3)));
    assert!(reasons(&user, &canvas).await.contains(&format!("{run} has 2 of 5 outputs")), "{pending}");
    cancel(&user, &job).await;
    // A dry run and a refused start change nothing.
    images(&user, &canvas, 2, json!({"retryOf": run, "validateOnly": true})).await.ok();
    images(&user, &canvas, 2, json!({"retryOf": run, "maxCredits": 0})).await.expect(402);
    assert!(reasons(&user, &canvas).await.contains("2 of 5 outputs"));
    let revision = user.canvas(&canvas).await["revision"].clone();
    let again = json!({"retryOf": run, "idempotencyKey": key(), "baseRevision": revision});
    images(&user, &canvas, 2, again.clone()).await.expect(202);
    assert!(reasons(&user, &canvas).await.contains("2 of 3 outputs"));
    assert_eq!(images(&user, &canvas, 2, again).await.expect(202).json()["replayed"], true);
    assert!(reasons(&user, &canvas).await.contains("2 of 3 outputs"), "a replay changes nothing");
    for _ in 0..2 {
        images(&user, &canvas, 1, json!({"retryOf": text(&job, "/id")})).await.expect(202);
        assert_eq!(works(&review(&user, &canvas).await), [""; 0], "there is nothing left to take away");
    }
}

#[tokio::test]
async fn asked_is_at_least_what_the_start_makes_and_at_most_64() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    for asked in [json!(2), json!(0), json!(65), json!(3.5), json!("3")] {
        let refused = images(&user, &canvas, 3, json!({"asked": asked})).await;
        refused.expect_error(400, "input_validation_error", &["asked"]);
    }
    for asked in [3, 64] {
        images(&user, &canvas, 3, json!({"asked": asked})).await.expect(202);
    }
    video(&user, &canvas, json!({"asked": 65})).await.expect_error(400, "input_validation_error", &["asked"]);
    video(&user, &canvas, json!({"asked": 1})).await.expect(202);
}

#[tokio::test]
async fn asked_and_retry_of_are_a_part_of_the_request_and_the_default_is_none() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let ended = images(&user, &canvas, 1, json!({})).await.expect(202).json();
    cancel(&user, &ended).await;
    let name = key();
    let revision = user.canvas(&canvas).await["revision"].clone();
    let same = |more: Value| merged(json!({"idempotencyKey": name, "baseRevision": revision}), &more);
    images(&user, &canvas, 1, same(json!({}))).await.expect(202);
    assert_eq!(images(&user, &canvas, 1, same(json!({"asked": 1}))).await.expect(202).json()["replayed"], true);
    images(&user, &canvas, 1, same(json!({"asked": 2}))).await.expect(409);
    images(&user, &canvas, 1, same(json!({"retryOf": text(&ended, "/run")}))).await.expect(409);
}

#[tokio::test]
async fn only_ended_work_of_the_account_on_the_same_canvas_or_none_is_retried() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let (stranger, foreign_canvas) = setting(stack).await;
    let other = text(&user.make_canvas().await, "/id").to_owned();
    let active = images(&user, &canvas, 1, json!({})).await.expect(202).json();
    let foreign = images(&stranger, &foreign_canvas, 1, json!({})).await.expect(202).json();
    cancel(&stranger, &foreign).await;
    let elsewhere = images(&user, &other, 1, json!({})).await.expect(202).json();
    cancel(&user, &elsewhere).await;
    let unknown = format!("run:{}", Uuid::now_v7());
    for retried in [text(&active, "/run"), text(&foreign, "/run"), text(&elsewhere, "/run"), &unknown] {
        for refused in [
            images(&user, &canvas, 1, json!({"retryOf": retried})).await,
            video(&user, &canvas, json!({"retryOf": retried})).await,
            images(&user, &canvas, 1, json!({"retryOf": retried, "validateOnly": true})).await,
        ] {
            refused.expect_error(422, "unprocessable_entity", &["retryOf"]);
        }
    }
    for odd in ["run:recipe-0198c5a2-2b3c-7f1d-8a4e-6b9a75a1c2f8", "node:n", "", "run:abc"] {
        let refused = images(&user, &canvas, 1, json!({"retryOf": odd})).await;
        refused.expect_error(400, "input_validation_error", &["retryOf"]);
    }
    let nowhere = video_alone(&user).await;
    cancel(&user, &nowhere).await;
    let handle = text(&nowhere, "/id");
    for of in [handle, handle.trim_start_matches("job:")] {
        images(&user, &canvas, 1, json!({"retryOf": of})).await.expect(202);
    }
}

#[tokio::test]
async fn a_video_that_makes_up_for_another_one_owes_itself() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let first = video(&user, &canvas, json!({})).await.expect(202).json();
    cancel(&user, &first).await;
    let second = video(&user, &canvas, json!({"retryOf": text(&first, "/id")})).await.expect(202).json();
    assert_eq!(works(&review(&user, &canvas).await), [text(&second, "/id")]);
}

#[tokio::test]
async fn giving_up_ends_a_debt_and_is_told() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let (user, manager) = (stack.user_of(&account, "all").await, stack.user_of(&account, "job:manage").await);
    stack.grant(&user.uid, 100).await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let film = video(&user, &canvas, json!({})).await.expect(202).json();
    give_up(&user, &film).await;
    assert_eq!(works(&review(&user, &canvas).await), [text(&film, "/id")], "it was under way: canceled and still owed");
    let path = format!("{}?removeTargets=true", text(&film, "/pollUrl"));
    manager.delete(&path).await.expect_error(403, "forbidden", &[]);
    give_up(&user, &film).await;
    let pictures = images(&user, &canvas, 2, json!({"asked": 3})).await.expect(202).json();
    cancel(&user, &pictures).await;
    assert_eq!(review(&user, &canvas).await["doneClaimAllowed"], false);
    for _ in 0..2 {
        give_up(&user, &pictures).await;
        let told = review(&user, &canvas).await;
        assert_eq!((&told["status"], &told["doneClaimAllowed"]), (&json!("needs-review"), &json!(true)), "{told}");
        let reasons = [
            format!("1 output of {} was given up", text(&film, "/id")),
            format!("3 outputs of {} were given up", text(&pictures, "/run")),
        ];
        assert_eq!((&told["delivery"]["reasons"], &told["outputs"]["count"]), (&json!(reasons), &json!(0)));
        assert!(text(&told, "/instruction").contains("tell the user"));
    }
    // A dry run has the works of the caller, too.
    let dry = trial(json!([{"type": "canvas.update", "title": "T"}]));
    let dry = user.send(&format!("/canvases/{canvas}/operations"), &dry).await.ok();
    assert_eq!(dry["validation"]["completionReview"]["delivery"]["reasons"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn the_start_that_repairs_an_edit_or_variations_has_their_images() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let image = text(&user.upload("image/png", e2e::images::png(64, 64)).await, "/handle").to_owned();
    for (operation, more) in [("edit", json!({"prompt": "at night"})), ("variations", json!({}))] {
        let revision = user.canvas(&canvas).await["revision"].clone();
        let body = json!({
            "canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(), "model": "sketch", "source": image, "asked": 2,
            "place": {"count": 1},
        });
        let path = format!("/images/{operation}");
        let job = user.send(&path, &merged(body, &more)).await.expect(202).json();
        cancel(&user, &job).await;
        let review = user.get(&format!("/canvases/{canvas}/review?repairs=true")).await.ok();
        let works = review["repairs"]["works"].as_array().cloned().expect("a list");
        let [work] = &works[..] else { panic!("{works:?}") };
        let remedy = &work["remedies"][0];
        assert_eq!((&remedy["kind"], &remedy["path"]), (&json!("retry"), &json!(path)));
        assert_eq!(remedy["body"]["references"][0]["handle"], image.as_str());
        let retried = user.send(&path, &merged(remedy["body"].clone(), &json!({"idempotencyKey": key()}))).await;
        assert_eq!(retried.expect(202).json()["targets"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            user.get(&format!("/canvases/{canvas}/review?repairs=true")).await.ok()["repairs"]["works"],
            json!([])
        );
    }
}

#[tokio::test]
async fn the_repairs_of_a_review_have_a_start_for_what_is_owed() {
    let stack = &Stack::without_workers().await;
    let (user, canvas) = setting(stack).await;
    let film = video(&user, &canvas, json!({"durationSeconds": 5})).await.expect(202).json();
    let pictures = images(&user, &canvas, 1, json!({"asked": 7, "size": "1024x1024"})).await.expect(202).json();
    let works = async || {
        let review = user.get(&format!("/canvases/{canvas}/review?repairs=true")).await.ok();
        review["repairs"]["works"].as_array().cloned().expect("a list")
    };
    for (work, job) in works().await.iter().zip([&film, &pictures]) {
        assert_eq!(
            work["remedies"],
            json!([{"kind": "wait", "path": text(job, "/pollUrl").trim_start_matches(e2e::API_ROOT)}])
        );
    }
    for job in [&film, &pictures] {
        cancel(&user, job).await;
    }
    let ended = works().await;
    let [of_film, of_pictures] = &ended[..] else { panic!("{ended:?}") };
    for (work, count) in [(of_film, json!(null)), (of_pictures, json!(4))] {
        let remedies = &work["remedies"];
        assert_eq!((&remedies[0]["kind"], &remedies[1]["kind"]), (&json!("retry"), &json!("giveUp")), "{work}");
        let body = &remedies[0]["body"];
        assert_eq!((&body["place"]["count"], &body["retryOf"]), (&count, &work["handle"]));
        let revision = user.canvas(&canvas).await["revision"].clone();
        let mut body = merged(body.clone(), &json!({"idempotencyKey": key()}));
        if body.get("baseRevision").is_some() {
            body["baseRevision"] = revision;
        }
        user.send(text(remedies, "/0/path"), &body).await.expect(202);
    }
    let left = works().await;
    assert!(
        left.iter().all(|work| work["remedies"][0]["kind"] != "retry" || work["handle"] != of_film["handle"]),
        "{left:?}"
    );
    let owed: Vec<_> = left.iter().filter(|work| work["handle"] == of_pictures["handle"]).collect();
    assert_eq!(owed.len(), 1, "two of six are left");
    user.delete(text(owed[0], "/remedies/1/path")).await.ok();
    assert!(works().await.iter().all(|work| work["handle"] != of_pictures["handle"]));
}
