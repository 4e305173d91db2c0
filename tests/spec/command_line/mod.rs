//! The command line `canvas` (docs/reference/canvas.md).

mod answers;
mod profiles;
mod repetition;

use e2e::api::text;
use e2e::{Shell, Stack, User};

/// A person with credit, a terminal and a canvas, whose handle is returned.
async fn person(stack: &Stack) -> (User, Shell, String) {
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let shell = stack.shell(&user);
    let made = shell.run(&["new", "Board", "--json"]).await.json();
    (user, shell, text(&made, "/canvas/handle").to_owned())
}
