//! Errors that depend on stored state: 409 and 422, with their fields (docs/reference/conventions.md#order-of-checks,
//! docs/reference/conventions.md#choosing-400-404-or-422).

use e2e::api::text;
use e2e::{Stack, images};
use serde_json::json;

use super::setting::Setting;

/// A stack without workers, on which an account may have three active jobs.
async fn few_jobs() -> Stack {
    Stack::builder().env("CANVAS_ACTIVE_JOBS", 3).shared().await
}

#[tokio::test]
async fn the_canvas_and_its_revision_come_first() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let unknown = json!({"model": "absent"});
    let with = async |more: serde_json::Value| {
        let mut all = unknown.clone();
        all.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        setting.start("generate", all).await
    };
    for absent in ["absent", "canvas:nobody:absent"] {
        with(json!({"canvasId": absent})).await.expect_error(404, "not_found", &[]);
    }
    let stale = with(json!({"baseRevision": "stale"})).await.expect(409).json();
    let now = setting.user.canvas(&setting.canvas).await;
    assert_eq!(
        (&stale["error"]["code"], &stale["error"]["details"]["currentRevision"]),
        (&json!("conflict"), &now["revision"])
    );
    with(json!({})).await.expect_error(422, "unprocessable_entity", &["model"]);
}

#[tokio::test]
async fn a_target_is_an_image_node_without_an_active_job() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let note = setting.note("A table").await;
    let video = setting.node(json!({"type": "video"})).await;
    for refused in ["absent", &format!("node:{note}"), &video] {
        setting.unprocessable("generate", json!({"targetNodeId": refused}), &["targetNodeId"]).await;
    }
    let listed = json!({"targetNodeId": null, "targetNodeIds": ["absent", setting.target, note]});
    setting.unprocessable("generate", listed.clone(), &["targetNodeIds[0]", "targetNodeIds[2]"]).await;
    setting.job("generate", json!({})).await;
    setting.start("generate", json!({})).await.expect_error(409, "conflict", &[]);
    // State is checked before meaning.
    setting.start("generate", listed).await.expect_error(409, "conflict", &[]);
    let resize = setting.user.resize_request(&setting.canvas, &setting.target, &setting.asset).await;
    setting.user.send("/actions/resize/runs", &resize).await.expect_error(409, "conflict", &[]);
}

#[tokio::test]
async fn a_prompt_node_is_a_note_with_content() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let image = setting.image().await;
    let empty = setting.node(json!({"type": "text"})).await;
    let blank = setting.note(" \n").await;
    let long = setting.note(&"x".repeat(8001)).await;
    let video = setting.node(json!({"type": "video"})).await;
    for refused in ["absent", &image, &setting.target, &video, &empty, &blank, &long] {
        let more = json!({"prompt": null, "promptNodeId": refused});
        setting.unprocessable("generate", more, &["promptNodeId"]).await;
    }
    let whole = setting.note(&"x".repeat(8000)).await;
    setting.job("generate", json!({"prompt": null, "promptNodeId": format!("node:{whole}")})).await;
}

#[tokio::test]
async fn references_hold_an_image_that_the_caller_can_read() {
    let stack = &few_jobs().await;
    let (setting, other) = (Setting::new(stack).await, Setting::new(stack).await);
    let note = setting.note("A table").await;
    let empty = setting.user.slot(&setting.canvas).await;
    let elsewhere = other.image().await;
    for refused in
        ["node:absent", &format!("node:{note}"), &format!("node:{empty}"), &elsewhere, "asset:absent", &other.asset]
    {
        let references = json!({"references": [setting.asset, {"handle": refused, "role": "fit"}]});
        setting.unprocessable("generate", references, &["references[1]"]).await;
        setting.unprocessable("edit", json!({"source": refused}), &["source"]).await;
    }
}

#[tokio::test]
async fn edit_and_variations_start_from_images() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let image = setting.image().await;
    let empty = setting.user.slot(&setting.canvas).await;
    let note = setting.note("Warm").await;
    // Neither an empty node nor a note provides an image.
    setting.refer(&empty, &setting.target, None).await;
    setting.refer(&note, &setting.target, Some("style")).await;
    let guided = setting.element(json!({"sourceAssetIds": setting.assets(1).await})).await;
    for operation in ["edit", "variations"] {
        setting.unprocessable(operation, json!({}), &["references"]).await;
        // The images of an Element are references, not a source.
        setting.unprocessable(operation, json!({"elements": [guided]}), &["references"]).await;
    }
    // Connections count for one target, not for several.
    setting.refer(&image, &setting.target, None).await;
    setting.refer(&image, &empty, None).await;
    let several = json!({"targetNodeId": null, "targetNodeIds": [setting.target, empty]});
    setting.unprocessable("edit", several, &["references"]).await;
    setting.job("edit", json!({})).await;
}

#[tokio::test]
async fn elements_are_the_callers_and_their_images_are_there() {
    let stack = &few_jobs().await;
    let (setting, other) = (Setting::new(stack).await, Setting::new(stack).await);
    let own = setting.element(json!({"guidelines": "Soft light."})).await;
    let theirs = other.element(json!({"guidelines": "Soft light."})).await;
    let [beyond, huge] = ["@v2", "@v2147483648"].map(|version| own.replace("@v1", version));
    for refused in ["element:absent@v1", &theirs, &beyond, &huge] {
        setting.unprocessable("generate", json!({"elements": [own, refused]}), &["elements[1]"]).await;
    }
    // An image whose bytes are missing from the store.
    let lost = setting.user.upload("image/png", images::png(5, 5)).await;
    let element = setting.element(json!({"sourceAssetIds": [lost["id"]]})).await;
    crate::elements::lose(stack, text(&lost, "/id")).await;
    setting.unprocessable("generate", json!({"elements": [element]}), &["elements[0]"]).await;
    // An archived Element keeps its versions.
    let path = format!("/elements/{}", own.split("@v").next().expect("a handle"));
    let archive = json!({"operation": "archive", "confirm": true}).to_string();
    setting.user.call(reqwest::Method::PATCH, &path).body("application/json", archive).await.expect(200);
    setting.job("generate", json!({"elements": [own]})).await;
}

#[tokio::test]
async fn all_that_is_wrong_is_reported_at_once_and_nothing_is_written() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let before = setting.user.canvas(&setting.canvas).await;
    let wrong = json!({
        "targetNodeId": null, "targetNodeIds": [setting.target, "absent"], "references": ["node:absent"],
        "source": "asset:absent", "prompt": null, "promptNodeId": setting.target, "elements": ["element:absent@v1"],
        "size": "7x7", "quality": "best",
    });
    let fields = ["targetNodeIds[1]", "references[0]", "source", "promptNodeId", "elements[0]", "size", "quality"];
    setting.unprocessable("edit", wrong, &fields).await;
    assert_eq!(setting.user.canvas(&setting.canvas).await, before);
    assert_eq!(setting.balance().await, 100);
}

#[tokio::test]
async fn an_account_has_a_cap_on_active_jobs() {
    let stack = &few_jobs().await;
    let setting = Setting::new(stack).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let target = setting.user.slot(&setting.canvas).await;
        jobs.push(setting.job("generate", json!({"targetNodeId": target})).await);
    }
    // The limit on active jobs is checked with the state, before the model and the credit.
    let refused = setting.start("generate", json!({"model": "absent"})).await;
    assert!(refused.header("retry-after").is_some(), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    setting.user.delete(text(&jobs[0], "/pollUrl")).await.ok();
    setting.job("generate", json!({})).await;
}
