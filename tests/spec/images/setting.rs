//! What a generation needs: a canvas, empty nodes, an image and credits.

use e2e::api::{key, text};
use e2e::{Reply, Stack, User, images};
use serde_json::{Value, json};

/// A canvas with an empty node, and an image of the account.
pub struct Setting {
    pub user: User,
    pub canvas: String,
    pub target: String,
    pub asset: String,
}

impl Setting {
    /// For a new account with 100 credits.
    pub async fn new(stack: &Stack) -> Self {
        Self::with_credits(stack, 100).await
    }

    /// For a new account with this many credits.
    pub async fn with_credits(stack: &Stack, credits: i64) -> Self {
        let user = stack.user().await;
        if credits > 0 {
            stack.grant(&user.uid, credits).await;
        }
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        let target = user.slot(&canvas).await;
        let asset = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
        Self { user, canvas, target, asset }
    }

    /// A request for one output in the node, for the current revision and under a new key. `more` is merged into it; a member
    /// that is `null` in `more` is removed.
    pub async fn request(&self, more: Value) -> Value {
        let now = self.user.canvas(&self.canvas).await;
        let mut request = json!({
            "canvasId": self.canvas, "baseRevision": now["revision"], "idempotencyKey": key(),
            "targetNodeId": self.target, "prompt": "A chair in a bright room",
        });
        for (field, value) in more.as_object().expect("an object") {
            match value {
                Value::Null => drop(request.as_object_mut().expect("an object").remove(field)),
                value => request[field] = value.clone(),
            }
        }
        request
    }

    /// Starts `operation` with this request.
    pub async fn start(&self, operation: &str, more: Value) -> Reply {
        self.user.send(&format!("/images/{operation}"), &self.request(more).await).await
    }

    /// Asserts that the start is accepted and returns its job.
    pub async fn job(&self, operation: &str, more: Value) -> Value {
        self.start(operation, more).await.expect(202).json()
    }

    /// Asserts that the start is rejected from the request alone, with these fields.
    pub async fn invalid(&self, operation: &str, more: Value, fields: &[&str]) {
        self.start(operation, more).await.expect_error(400, "input_validation_error", fields);
    }

    /// Asserts that the start is rejected because of stored state, with these fields.
    pub async fn unprocessable(&self, operation: &str, more: Value, fields: &[&str]) {
        self.start(operation, more).await.expect_error(422, "unprocessable_entity", fields);
    }

    /// Creates a node on the canvas and returns its id.
    pub async fn node(&self, node: Value) -> String {
        let made =
            self.user.apply(&self.canvas, json!([{"type": "node.create", "clientId": "made", "node": node}])).await;
        text(&made, "/resolvedIds/made").to_owned()
    }

    /// Creates a text node with this content and returns its id.
    pub async fn note(&self, content: &str) -> String {
        self.node(json!({"type": "text", "metadata": {"content": content}})).await
    }

    /// Creates an image node that shows an image and returns its handle.
    pub async fn image(&self) -> String {
        let asset = self.user.upload_into(&self.canvas, "image/png", images::png(8, 8)).await;
        text(&asset, "/node").to_owned()
    }

    /// Creates a reference connection between two nodes.
    pub async fn refer(&self, from: &str, to: &str, role: Option<&str>) {
        let mut connection =
            json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to, "purpose": "reference"});
        if let Some(role) = role {
            connection["role"] = json!(role);
        }
        self.user.apply(&self.canvas, json!([connection])).await;
    }

    /// Creates an Element and returns its version handle.
    pub async fn element(&self, element: Value) -> String {
        let mut body = json!({"name": "Studio", "type": "style", "sourceAssetIds": []});
        body.as_object_mut().expect("an object").extend(element.as_object().cloned().expect("an object"));
        let made = self.user.send("/elements", &body).await.expect(201).json();
        text(&made, "/element/versionHandle").to_owned()
    }

    /// Uploads images outside any canvas and returns their plain ids.
    pub async fn assets(&self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(text(&self.user.upload("image/png", images::png(4, 4)).await, "/id").to_owned());
        }
        ids
    }

    /// The balance of the account in credits.
    pub async fn balance(&self) -> i64 {
        self.user.get("/auth/status").await.ok()["creditBalance"].as_i64().expect("a balance")
    }

    /// The current state of a node.
    pub async fn read(&self, node: &str) -> Value {
        self.user.get(&format!("/canvases/{}/nodes/{node}", self.canvas)).await.ok()["node"].clone()
    }
}

/// The stored request of a job, for values that its record does not show.
pub async fn stored(stack: &Stack, job: &Value) -> Value {
    let id: uuid::Uuid = text(job, "/rawId").parse().expect("a uuid");
    sqlx::query_scalar("SELECT request FROM jobs WHERE id = $1").bind(id).fetch_one(stack.pool()).await.expect("reads")
}
