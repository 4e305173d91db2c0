//! Short views (docs/reference/conventions.md#short-views).

use e2e::api::{text, trial};
use e2e::{Stack, User};
use serde_json::{Value, json};

#[tokio::test]
async fn a_list_is_returned_in_short() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for (list, name) in [("actions", "title"), ("models", "name"), ("recipes", "name")] {
        let full = user.get(&format!("/{list}?limit=100")).await.ok();
        let short = user.get(&format!("/{list}?limit=100&view=summary")).await.ok();
        assert_eq!(short["page"], full["page"]);
        let (full, short) = (full[list].as_array().expect("a list"), short[list].as_array().expect("a list"));
        assert!(!full.is_empty() && full.len() == short.len(), "{list}");
        for (full, short) in full.iter().zip(short) {
            let members: Vec<&String> = short.as_object().expect("an object").keys().collect();
            assert_eq!(members, ["key", "name", "summary"]);
            assert_eq!(short["name"], full[name]);
            let line = text(short, "/summary");
            assert!(!line.is_empty() && !line.contains('\n'), "{short}");
            // The key names the item in a path.
            let read = user.get(&format!("/{list}/{}", text(short, "/key"))).await.ok();
            let item = list.trim_end_matches('s');
            assert_eq!(read[item]["id"], full["id"]);
        }
    }
}

/// A cursor is bound to the list and its filters, not to the view.
#[tokio::test]
async fn pages_of_both_views_follow_each_other() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let first = user.get("/actions?limit=1&view=summary").await.ok();
    let cursor = text(&first, "/page/nextCursor");
    let second = user.get(&format!("/actions?limit=1&cursor={cursor}")).await.ok();
    assert_eq!((text(&first, "/actions/0/key"), text(&second, "/actions/0/slug")), ("action:resize", "crop"));
}

#[tokio::test]
async fn a_short_model_says_what_decides() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let models = user.get("/models?view=summary&q=sketch").await.ok();
    let model = &models["models"][0];
    assert!(text(model, "/key").starts_with("model:"), "{model}");
    let line = "Managed: image.generate, image.edit, image.variations; 1 credit, 1 s";
    assert_eq!((text(model, "/name"), text(model, "/summary")), ("Sketch", line));
}

/// A read in short and in full.
async fn both(user: &User, path: &str) -> (Value, Value) {
    (user.get(&format!("{path}?view=summary")).await.ok(), user.get(path).await.ok())
}

#[tokio::test]
async fn a_short_run_has_no_review_and_no_previews() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let started = user.start_resize(text(&canvas, "/id"), json!({})).await;
    user.finished(&started).await;
    for path in [format!("/runs/{}", text(&started, "/run")), format!("/jobs/{}", text(&started, "/id"))] {
        let (short, mut full) = both(&user, &path).await;
        let run = full.as_object_mut().expect("a run");
        run.remove("completionReview").expect("a review in full");
        let image = full["images"][0].as_object_mut().expect("an image");
        assert!(image.remove("previewUrl").is_some() && image.remove("markdown").is_some());
        assert_eq!(short, full);
        let tag = user.get(&format!("{path}?view=summary")).await.expect(200);
        let tag = tag.header("etag").expect("an entity tag").to_owned();
        user.get(&format!("{path}?view=summary")).header("if-none-match", &tag).await.expect(304);
    }
    let stream = user.get(&format!("/runs/{}/events?view=summary", text(&started, "/run")));
    let stream = stream.header("accept", "text/event-stream").await.expect(200);
    let stream = String::from_utf8(stream.body.to_vec()).expect("a text");
    assert!(stream.contains("\"succeeded\"") && stream.contains("\"assetId\""), "{stream}");
    assert!(!stream.contains("completionReview") && !stream.contains("previewUrl"), "{stream}");
}

#[tokio::test]
async fn a_short_recipe_run_has_no_review() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 10).await;
    let canvas = user.make_canvas().await;
    let inputs = json!({"brief": "A quiet harbor at dawn."});
    let request = json!({"canvasId": canvas["id"], "baseRevision": canvas["revision"],
        "idempotencyKey": "short-recipe", "inputs": inputs});
    let started = user.send("/recipes/storyboard/runs", &request).await.expect(202).json();
    user.finished(&started).await;
    let (short, mut full) = both(&user, &format!("/runs/{}", text(&started, "/run"))).await;
    full.as_object_mut().expect("a run").remove("completionReview").expect("a review in full");
    assert_eq!(short, full);
}

#[tokio::test]
async fn a_video_is_the_same_in_short() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 10).await;
    let request = json!({"model": "animatic", "prompt": "A boat.", "idempotencyKey": "short-video"});
    let started = user.send("/videos/generate", &request).await.expect(202).json();
    user.finished(&started).await;
    let (short, full) = both(&user, &format!("/jobs/{}", text(&started, "/id"))).await;
    assert_eq!(short, full);
}

#[tokio::test]
async fn a_view_has_one_value() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let started = user.start_resize(text(&canvas, "/id"), json!({})).await;
    let (run, job) = (text(&started, "/run"), text(&started, "/id"));
    let reads = [format!("/runs/{run}"), format!("/runs/{run}/events"), format!("/jobs/{job}")];
    for path in ["/actions", "/models", "/recipes"].map(str::to_owned).into_iter().chain(reads) {
        for view in ["view=full", "view=", "view=Summary", "view=summary&view=summary"] {
            let refused = user.get(&format!("{path}?{view}")).await;
            refused.expect_error(400, "input_validation_error", &["view"]);
        }
    }
    // All violations are reported together.
    let refused = user.get("/runs/no%20run?view=full").await;
    refused.expect_error(400, "input_validation_error", &["runId", "view"]);
}

#[tokio::test]
async fn the_ids_of_a_dry_run_are_provisional() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let node = json!({"type": "node.create", "clientId": "a", "node": {"type": "text"}});
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let tried = user.send(&path, &trial(json!([node]))).await.ok();
    assert_eq!(tried["proposal"]["provisional"], true);
    let applied = user.apply(text(&canvas, "/id"), json!([node])).await;
    assert!(applied.get("provisional").is_none());
    assert_ne!(applied["resolvedIds"]["a"], tried["proposal"]["resolvedIds"]["a"]);
}
