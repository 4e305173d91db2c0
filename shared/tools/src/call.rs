//! A call of a tool: what it may use.

use std::fmt::Write;
use std::sync::Arc;

use client::Client;
use domain::idempotency::canonical_request;
use domain::review::DryRun;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::progress::State;
use crate::stdio::Root;

/// A call of a tool.
pub struct Call {
    /// Sends requests for the caller.
    pub client: Client,
    /// The local files that the caller may name; none over HTTP.
    pub root: Option<Root>,
    /// Canceled when waits are to end because the process stops.
    pub stopping: CancellationToken,
    /// Where people reach the service, without a slash at the end.
    pub(crate) public_url: Arc<str>,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Map<String, Value>,
    /// Takes the states that are reported to a caller who waits.
    pub(crate) progress: Option<UnboundedSender<State>>,
}

impl Call {
    /// The key of the request that has the effect of this call: a digest of the tool and its arguments. A repeated call is thus
    /// the same request, which the service replays. The time to wait for the end is not part of it.
    pub fn key(&self) -> String {
        let mut arguments = self.arguments.clone();
        arguments.remove("wait");
        key_of([canonical_request("TOOL", self.tool, "", &arguments).as_bytes()])
    }

    /// Tries operations on a canvas, of which nothing is stored.
    pub async fn dry_run(&self, canvas: &str, operations: &(impl Serialize + Sync + ?Sized)) -> client::Result<DryRun> {
        let body = json!({"validateOnly": true, "operations": operations});
        self.client.apply_operations(canvas).cast().json(&body).await?.value()
    }

    /// Reports the state of the work to a caller who waits.
    pub fn report(&self, state: State) {
        if let Some(progress) = &self.progress {
            let _ = progress.send(state);
        }
    }
}

/// The key of a request that consists of `parts`.
pub fn key_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().iter().fold(String::new(), |mut key, byte| {
        // Writing to a String cannot fail.
        let _ = write!(key, "{byte:02x}");
        key
    })
}
