//! The command line `canvas` (docs/reference/canvas.md).

mod answers;
mod login;
mod names;
mod profiles;
mod repetition;
mod skills;
mod work;

use std::process::Output;

use e2e::api::text;
use e2e::{PATIENCE, Shell, Stack, User, images};
use serde_json::Value;
use testkit::wait_for;
use tokio::process::{Child, Command};

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

/// Uploads an image to the canvas and returns the handle of its node.
async fn image(shell: &Shell, canvas: &str) -> String {
    shell.file("image.png", images::png(64, 48));
    let put = shell.run(&["asset", "put", "image.png", "--on", canvas, "--json"]).await.json();
    text(&put, "/asset/node").to_owned()
}

/// Runs a command whose output nobody reads, as after `| head`, and returns its exit status.
async fn unread(shell: &Shell, arguments: &[&str]) -> Option<i32> {
    let mut command = shell.start(arguments);
    drop(command.stdout.take());
    let ended = tokio::time::timeout(PATIENCE, command.wait_with_output()).await;
    ended.expect("it does not wait for a reader").expect("ends").status.code()
}

/// Interrupts a command as Ctrl-C does, while its standard input is open, and returns how it ended.
async fn interrupted(mut command: Child) -> Output {
    let _open = command.stdin.take();
    let pid = command.id().expect("is running").to_string();
    // Until the command catches the signal, that would end it as it ends every program.
    wait_for("a handler of interrupts", PATIENCE, async || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        (u64::from_str_radix(caught.trim(), 16).ok()? & 0b10 != 0).then_some(())
    })
    .await;
    Command::new("kill").args(["-INT", &pid]).status().await.expect("interrupts");
    let ended = tokio::time::timeout(PATIENCE, command.wait_with_output()).await;
    ended.expect("the interrupt ends it").expect("ends")
}
