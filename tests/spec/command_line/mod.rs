//! The command line `canvas` (docs/reference/canvas.md).

mod answers;
mod profiles;
mod repetition;
mod work;

use e2e::api::text;
use e2e::{Shell, Stack, User, pictures};
use serde_json::Value;

/// A person with credit, a terminal and a canvas, whose handle is returned.
async fn person(stack: &Stack) -> (User, Shell, String) {
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let shell = stack.shell(&user);
    let made = shell.run(&["new", "Board", "--json"]).await.json();
    (user, shell, text(&made, "/canvas/handle").to_owned())
}

/// The nodes of a canvas.
async fn nodes(shell: &Shell, canvas: &str) -> Vec<Value> {
    let shown = shell.run(&["show", canvas, "--json"]).await.json();
    shown["canvas"]["nodes"].as_array().expect("nodes").clone()
}

/// Uploads a picture to the canvas and returns the handle of its node.
async fn picture(shell: &Shell, canvas: &str) -> String {
    shell.file("picture.png", pictures::png(64, 48));
    let put = shell.run(&["asset", "put", "picture.png", "--on", canvas, "--json"]).await.json();
    text(&put, "/asset/node").to_owned()
}
