//! The attacks. Each prepares what it needs, attacks until its time is over ([`Scene::during`]), and may then check more than every
//! attack is checked for. They use nothing but loopback.
//!
//! [`Scene::during`]: crate::scene::Scene::during

pub mod bodies;
pub mod documents;
pub mod gate;
pub mod rates;
pub mod stock;
pub mod workers;

use e2e::api::{key, text};
use e2e::{Reply, User};
use serde_json::{Value, json};

/// The longest text that a node's metadata can have, less than 64 KiB (docs/reference/limits.md#canvases-and-nodes).
const TEXT: usize = 63 * 1024;

/// A canvas of an attacker, and the revision for which it starts everything.
struct Ground {
    user: User,
    id: String,
    revision: String,
}

impl Ground {
    async fn new(user: User) -> Self {
        let canvas = user.make_canvas().await;
        Self { id: text(&canvas, "/id").to_owned(), revision: text(&canvas, "/revision").to_owned(), user }
    }

    /// Sends a start that adds its own target.
    async fn start(&self, path: &str, mut request: Value) -> Result<Reply, reqwest::Error> {
        request["canvasId"] = json!(self.id);
        request["baseRevision"] = json!(self.revision);
        request["idempotencyKey"] = json!(key());
        if path != "/images/import" && !path.starts_with("/recipes") {
            request["place"] = json!({});
        }
        self.user.send(path, &request).header("prefer", "handling=lenient").attempt().await
    }
}

/// Operations that create this many nodes with as much text as one can have.
fn large_nodes(count: usize) -> Value {
    // Random, so that it does not become small when it is compressed.
    let text: String = (0..TEXT / 32).map(|_| key().replace('-', "")).collect();
    let node = |index: usize| {
        let place = json!({"x": 400 * index, "y": 2000.0 + (e2e::api::unique() % 1_000_000) as f64});
        json!({"type": "text", "position": place, "metadata": {"custom": {"text": text}}})
    };
    (0..count)
        .map(|index| json!({"type": "node.create", "clientId": format!("n{index}"), "node": node(index)}))
        .collect()
}
