//! A running service for the contract test: `tests/contract` starts it, reads where it is, and ends it.
//!
//! **Guarantee.** What it prints, one line of JSON, names a service of its own that is ready: `baseUrl`, `token` (every
//! scope), and ids of what was made in it, so that generated requests meet something. It lives until its standard input
//! ends, and everything goes with it, also when whoever started it is killed.

use std::io::Read;

use e2e::api::text;
use e2e::{API_ROOT, Stack, pictures};
use serde_json::json;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let stack = start().await;
    // On this thread: nothing else is to be done by it.
    let ended = std::io::stdin().read_to_end(&mut Vec::new());
    drop(stack);
    ended.expect("waits for the end of its standard input");
}

/// The service, seeded and announced.
async fn start() -> Stack {
    // Generated requests come as fast as they are answered, and many of them with a broken credential.
    let stack = Stack::builder().image_workers(1).env("CANVAS_RATE_PER_MINUTE", 0).start().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", pictures::png(64, 48)).await;
    let job = user.start_resize(id, json!({})).await;
    user.finished(&job).await;
    let group = user.send("/element-collections", &json!({"name": "Contract"})).await.expect(201).json();
    let element = json!({"name": "Contract", "type": "style", "sourceAssetIds": [asset["id"]],
        "collectionIds": [group["collection"]["id"]]});
    let element = user.send("/elements", &element).await.expect(201).json();
    let ids = json!({
        "baseUrl": stack.origin(0),
        "document": format!("{}{API_ROOT}/openapi.json", stack.origin(0)),
        "token": user.token,
        "canvasId": id,
        "revision": user.canvas(id).await["revision"],
        "nodeId": text(&asset, "/node").trim_start_matches("node:"),
        "assetId": asset["id"],
        "actionKey": "resize",
        "elementId": element["element"]["id"],
        "jobId": text(&job, "/id").trim_start_matches("job:"),
        "runId": text(&job, "/run").trim_start_matches("run:"),
    });
    println!("{ids}");
    stack
}
