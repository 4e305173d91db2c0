//! Steps that most tests take, one call each.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Client, PATIENCE, Reply};

/// A new idempotency key.
pub fn key() -> String {
    Uuid::new_v4().to_string()
}

/// A number that no other test gets, for images that must differ: they share stacks.
pub fn unique() -> u64 {
    static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(Uuid::new_v4().as_u64_pair().0));
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The text at a JSON pointer.
#[track_caller]
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}: {value}"))
}

/// The operations with a position for every new node that has none, so that no nodes of a test overlap.
pub fn placed(mut operations: Value) -> Value {
    for operation in operations.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(node)) = operation.get_mut("node") {
            node.entry("position").or_insert_with(place);
        }
    }
    operations
}

/// A free position with a row of its own, below the first row, in which the service places nodes to the right of the content.
fn place() -> Value {
    static ROW: AtomicU64 = AtomicU64::new(1);
    json!({"x": 0, "y": 10_000 + 1000 * ROW.fetch_add(1, Ordering::Relaxed)})
}

/// The body of a dry run.
pub fn trial(operations: Value) -> Value {
    json!({"validateOnly": true, "operations": placed(operations)})
}

impl Client {
    /// Creates a canvas and returns it (`canvas` of the response).
    pub async fn make_canvas(&self) -> Value {
        self.send("/canvases", &json!({})).await.expect(201).json()["canvas"].clone()
    }

    /// Reads a canvas by id or handle (`canvas` of the response).
    pub async fn canvas(&self, id: &str) -> Value {
        self.get(&format!("/canvases/{id}")).await.ok()["canvas"].clone()
    }

    /// Sends a batch for `revision` under a new key. New nodes without a position are [`placed`].
    pub async fn batch(&self, canvas: &str, revision: &str, operations: Value) -> Reply {
        let body = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": placed(operations)});
        self.send(&format!("/canvases/{canvas}/operations"), &body).await
    }

    /// Applies a batch to the current revision of the canvas and returns the mutation result.
    pub async fn apply(&self, canvas: &str, operations: Value) -> Value {
        let now = self.canvas(canvas).await;
        self.batch(canvas, text(&now, "/revision"), operations).await.ok()
    }

    /// Creates an empty image node and returns its id.
    pub async fn slot(&self, canvas: &str) -> String {
        let node = json!({"type": "image", "position": place()});
        let made = self.apply(canvas, json!([{"type": "node.create", "clientId": "slot", "node": node}])).await;
        text(&made, "/resolvedIds/slot").to_owned()
    }

    /// Uploads an image outside any canvas and returns the asset.
    pub async fn upload(&self, media_type: &str, bytes: Vec<u8>) -> Value {
        self.post("/assets").body(media_type, bytes).await.expect(201).json()["asset"].clone()
    }

    /// Uploads an image into a canvas and returns the asset.
    pub async fn upload_into(&self, canvas: &str, media_type: &str, bytes: Vec<u8>) -> Value {
        let path = format!("/assets?canvasId={canvas}");
        self.post(&path).body(media_type, bytes).await.expect(201).json()["asset"].clone()
    }

    /// The body of a resize of `input` into `target` for the current revision of the canvas.
    pub async fn resize_request(&self, canvas: &str, target: &str, input: &str) -> Value {
        let now = self.canvas(canvas).await;
        json!({
            "canvasId": canvas, "baseRevision": now["revision"], "idempotencyKey": key(),
            "targetNodeId": target, "inputs": [input], "params": {"width": 32},
        })
    }

    /// Starts a resize of a new image into a new node of `canvas`; `more` is merged into the request. Returns the job.
    pub async fn start_resize(&self, canvas: &str, more: Value) -> Value {
        let asset = self.upload("image/png", crate::images::png(64, 48)).await;
        let target = self.slot(canvas).await;
        let mut request = self.resize_request(canvas, &target, text(&asset, "/handle")).await;
        for (name, value) in more.as_object().expect("an object") {
            request[name] = value.clone();
        }
        self.send("/actions/resize/runs", &request).await.expect(202).json()
    }

    /// Waits for the end of a job and returns its record.
    pub async fn finished(&self, job: &Value) -> Value {
        self.until(job, |record| matches!(text(record, "/status"), "succeeded" | "failed" | "canceled" | "expired"))
            .await
    }

    /// Polls a job until `wanted` accepts its record.
    pub async fn until(&self, job: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = text(job, "/pollUrl").to_owned();
        testkit::wait_for(&format!("{path} to reach the wanted state"), PATIENCE, async || {
            let reply = self.get(&path).await;
            assert!(matches!(reply.status, 200 | 202), "{reply}");
            Some(reply.json()).filter(|record| wanted(record))
        })
        .await
    }
}
