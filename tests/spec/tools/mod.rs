//! The tool adapter (docs/reference/tools.md).

mod clients;
mod errors;
mod protocol;
mod refusals;
mod replays;
mod resubmit;
mod skills;
mod successes;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::tools::Tools;
use e2e::{User, images};
use serde_json::{Value, json};

/// A new canvas with an image on it: its slug, its revision, and the ref of the node.
pub(crate) async fn board(tools: &Tools) -> (Value, Value, Value) {
    let made = tools.ok("canvas_create", json!({"title": "Board"})).await;
    let image = STANDARD.encode(images::scene(320, 240, 1));
    let arguments = json!({"data": image, "name": "boot.png", "canvas": made["canvas"]});
    let stored = tools.ok("asset_upload", arguments).await;
    (made["canvas"].clone(), stored["revision"].clone(), stored["node"].clone())
}

/// The tools of a user, in the newest protocol.
pub(crate) async fn tools_of(user: &User) -> Tools {
    Tools::new(user, e2e::tools::STATELESS).await
}
