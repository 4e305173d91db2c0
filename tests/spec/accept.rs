//! Media types that a client rejects (docs/reference/conventions.md#media-type-negotiation).

use e2e::api::{key, text};
use e2e::{Call, Client, Stack, images};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test]
async fn a_read_in_a_form_that_the_client_rejects_is_406() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}", text(&canvas, "/id"));
    let outline = format!("{path}/outline");
    for (read, rejected) in [
        ("/canvases", "application/json;q=0"),
        (path.as_str(), "application/json;q=0, */*"),
        (&path, "application/*;q=0.000"),
        (&outline, "text/plain;q=0"),
        ("/openapi.json", "*/*;q=0"),
    ] {
        user.get(read).header("accept", rejected).await.expect_error(406, "request_failed", &[]);
    }
    // The resource is checked first.
    user.get("/canvases/absent").header("accept", "*/*;q=0").await.expect_error(404, "not_found", &[]);
    stack.anonymous().get("/canvases").header("accept", "*/*;q=0").await.expect_error(401, "unauthorized", &[]);
    // A type that is merely not listed is served.
    for accepted in ["text/html", "application/json;q=0.001", "*/*;q=0, application/json", ""] {
        user.get("/canvases").header("accept", accepted).await.expect(200);
    }
}

#[tokio::test]
async fn a_write_is_406_after_its_resource_and_its_replay_and_before_its_state() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let rejecting = |call: Call| call.header("accept", "application/json;q=0");
    let path = format!("/canvases/{id}/operations");
    let rename = [json!({ "type": "canvas.update", "title": "New" })];
    let mut batch = json!({ "baseRevision": revision, "idempotencyKey": key(), "operations": rename });
    let absent = "/canvases/absent/operations";
    let required = ["baseRevision", "idempotencyKey", "operations"];
    // The request and its resource are checked first.
    let call = rejecting(user.post(&path).body("text/plain", "{}")).await;
    call.expect_error(415, "unsupported_media_type", &[]);
    rejecting(user.post(&path).body("application/json", "{")).await.expect_error(400, "invalid_json", &[]);
    rejecting(user.send(&path, &json!({}))).await.expect_error(400, "input_validation_error", &required);
    rejecting(user.send(absent, &batch)).await.expect_error(404, "not_found", &[]);
    rejecting(user.send("/campaigns/plan", &json!({}))).await.expect_error(410, "gone", &[]);
    let not_there = Uuid::now_v7();
    rejecting(user.delete(&format!("/runs/run:{not_there}"))).await.expect_error(404, "not_found", &[]);
    // A new write is 406, and so is a stale one.
    rejecting(user.send(&path, &batch)).await.expect_error(406, "request_failed", &[]);
    user.send(&path, &batch).await.expect(200);
    let replayed = rejecting(user.send(&path, &batch)).await.ok();
    assert_eq!((replayed["replayed"].as_bool(), text(&replayed, "/canvas/title")), (Some(true), "New"));
    batch["idempotencyKey"] = json!(key());
    rejecting(user.send(&path, &batch)).await.expect_error(406, "request_failed", &[]);
    user.send(&path, &batch).await.expect_error(409, "conflict", &[]);
    // A start as well, with its dry run.
    let (input, target) = (user.upload("image/png", images::png(2, 2)).await, user.slot(id).await);
    let mut start = user.resize_request(id, &target, text(&input, "/handle")).await;
    let run = "/actions/resize/runs";
    rejecting(user.send(run, &start)).await.expect_error(406, "request_failed", &[]);
    let job = user.send(run, &start).await.expect(202).json();
    let replay = rejecting(user.send(run, &start)).await.expect(202).json();
    assert_eq!((&replay["id"], &replay["replayed"]), (&job["id"], &json!(true)));
    start["validateOnly"] = json!(true);
    rejecting(user.send(run, &start)).await.expect_error(406, "request_failed", &[]);
    start["canvasId"] = json!("absent");
    rejecting(user.send(run, &start)).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_write_that_is_406_changes_nothing() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let rejected = async |method: Method, path: &str, body: &Value| {
        let call = user.call(method, path).header("accept", "*/*;q=0").body("application/json", body.to_string());
        call.await.expect_error(406, "request_failed", &[]);
    };
    let named = json!({ "name": "Mine" });
    let collection = user.send("/element-collections", &named).await.expect(201).json();
    let collection = format!("/element-collections/{}", text(&collection, "/collection/id"));
    let image = user.upload("image/png", images::png(2, 2)).await;
    let element = json!({ "name": "One", "type": "environment", "sourceAssetIds": [text(&image, "/id")] });
    let made = user.send("/elements", &element).await.expect(201).json();
    let made = format!("/elements/{}", text(&made, "/element/id"));
    let before = belongings(&user).await;
    rejected(Method::POST, "/canvases", &json!({})).await;
    rejected(Method::POST, "/canvases", &json!({ "destination": "agent-canvas" })).await;
    rejected(Method::POST, "/elements", &element).await;
    rejected(Method::PATCH, &made, &json!({ "operation": "archive", "confirm": true })).await;
    rejected(Method::POST, "/element-collections", &named).await;
    rejected(Method::PATCH, &collection, &json!({ "name": "Other" })).await;
    rejected(Method::DELETE, &collection, &json!({ "confirm": true })).await;
    let upload = user.post("/assets").header("accept", "*/*;q=0").body("image/png", images::png(3, 3));
    upload.await.expect_error(406, "request_failed", &[]);
    assert_eq!(belongings(&user).await, before);
    for (method, path) in [(Method::PATCH, "/elements/absent"), (Method::DELETE, "/element-collections/absent")] {
        let body = match method {
            Method::PATCH => json!({ "operation": "restore" }),
            _ => json!({ "confirm": true }),
        };
        let call = user.call(method, path).header("accept", "*/*;q=0").body("application/json", body.to_string());
        call.await.expect_error(404, "not_found", &[]);
    }
}

/// What an account has, without the remaining lifetime of preview URLs.
async fn belongings(user: &Client) -> Vec<Value> {
    let mut all = Vec::new();
    for (path, list) in [
        ("/canvases", "canvases"),
        ("/assets", "assets"),
        ("/elements", "elements"),
        ("/element-collections", "collections"),
    ] {
        for item in user.get(path).await.ok()[list].as_array().expect("a list") {
            let mut item = item.clone();
            item.as_object_mut().expect("an object").remove("previewExpiresInSeconds");
            all.push(item);
        }
    }
    all
}
