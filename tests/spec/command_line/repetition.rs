//! A command that was killed, and the same command again: one effect.

use std::path::PathBuf;
use std::time::Duration;

use e2e::api::text;
use e2e::{Kind, PATIENCE, Part, Shell, Stack, User, images};
use serde_json::{Value, json};
use testkit::wait_for;

use super::person;

async fn runs(user: &User) -> Vec<Value> {
    user.get("/runs").await.ok()["runs"].as_array().expect("a list").clone()
}

/// The handle of the first run of the account, once there is one.
pub async fn first_run(user: &User) -> String {
    wait_for("a run", PATIENCE, async || runs(user).await.first().map(|run| text(run, "/handle").to_owned())).await
}

fn directory(shell: &Shell) -> PathBuf {
    shell.home().join(".local/state/canvas/journal")
}

/// The number of entries. A file with an extension was not yet an entry when its command was killed.
fn journal(shell: &Shell) -> usize {
    let files = std::fs::read_dir(directory(shell)).into_iter().flatten();
    files.filter(|file| file.as_ref().expect("is read").path().extension().is_none()).count()
}

fn generate(canvas: &str) -> [&str; 9] {
    ["generate", "--prompt", "a kite", "--model", "sketch", "--yes", "--json", "--on", canvas]
}

#[tokio::test]
async fn a_start_that_was_killed_is_continued_without_a_second_charge() {
    let stack = &Stack::builder().image_workers(1).start().await;
    let (user, shell, canvas) = person(stack).await;
    stack.kill(Part(Kind::ImageWorker, 0));
    for _ in 0..3 {
        let mut killed = shell.start(&generate(&canvas));
        first_run(&user).await;
        killed.kill().await.expect("dies");
    }
    // The start that is continued may pay its price.
    let lower = [&generate(&canvas)[..], &["--max-credits", "0", "--timeout", "1"]].concat();
    let lower = shell.run(&lower).await.error(2);
    assert!(text(&lower, "/message").contains("may pay 1 credit"), "{lower}");
    stack.restart(Part(Kind::ImageWorker, 0)).await;
    let done = shell.run(&generate(&canvas)).await.json();
    assert_eq!(text(&done, "/status"), "succeeded");
    let all = runs(&user).await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(user.get("/auth/status").await.ok()["creditBalance"], 99);
    assert_eq!(journal(&shell), 0, "the end is known");
}

#[tokio::test]
async fn a_start_is_made_once_although_its_gateway_was_killed() {
    let stack = &Stack::builder().image_workers(1).start().await;
    let (user, shell, canvas) = person(stack).await;
    let gateway = Part(Kind::Gateway, 0);
    let (committed, held) = stack.make_hold("start.committed");
    stack.restart_with(gateway, &[("CANVAS_FAILPOINTS", &held)]).await;
    let running = shell.start(&generate(&canvas));
    committed.reached().await;
    stack.kill(gateway);
    stack.restart(gateway).await;
    let output = running.wait_with_output().await.expect("ends");
    // Depending on the moment, the command has waited for the gateway, or has said that it is away.
    assert!([Some(0), Some(8)].contains(&output.status.code()), "{output:?}");
    assert_eq!(runs(&user).await.len(), 1, "it was committed before the gateway died");
    let done = shell.run(&generate(&canvas)).await.json();
    assert_eq!(text(&done, "/status"), "succeeded");
    let count = if output.status.code() == Some(8) { 1 } else { 2 };
    assert_eq!(runs(&user).await.len(), count);
}

#[tokio::test]
async fn a_batch_that_was_killed_is_applied_once() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let many: Vec<Value> =
        (0..200).map(|at| json!({"type": "node.create", "node": {"type": "text", "title": at.to_string()}})).collect();
    shell.file("many.json", json!(many).to_string());
    let apply = ["apply", "many.json", "--on", &canvas];
    let count = async || user.canvas(&canvas).await["nodes"].as_array().map_or(0, Vec::len);
    // A command that finds no entry in the journal begins a batch. One that finds an entry continues that batch.
    let (mut batches, mut left, mut seen) = (0, 0, 0);
    // Killed before, while and after the batch is applied.
    for pause in [0, 5, 10, 20, 40, 80, 160, 320] {
        let mut killed = shell.start(&apply);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        killed.kill().await.expect("dies");
        let (entries, nodes) = (journal(&shell), count().await);
        batches += usize::from(left == 0 && (entries == 1 || nodes > seen));
        (left, seen) = (entries, nodes);
    }
    shell.run(&apply).await.expect(0);
    assert_eq!(count().await, 200 * (batches + usize::from(left == 0)));
    assert_eq!(journal(&shell), 0);
}

#[tokio::test]
async fn a_canvas_is_made_once() {
    let stack = &Stack::with_workers().await;
    let (user, shell, _) = person(stack).await;
    let count = async || user.get("/canvases").await.ok()["canvases"].as_array().map_or(0, Vec::len);
    let mut killed = shell.start(&["new", "Once"]);
    wait_for("the canvas", PATIENCE, async || (count().await == 2).then_some(())).await;
    killed.kill().await.expect("dies");
    let left = journal(&shell);
    shell.run(&["new", "Once"]).await.expect(0);
    // Its answer may have arrived before it was killed.
    assert_eq!(count().await, if left == 1 { 2 } else { 3 });
}

#[tokio::test]
async fn a_finished_command_is_a_new_one_the_next_time() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    for _ in 0..2 {
        shell.run(&generate(&canvas)).await.expect(0);
    }
    assert_eq!(runs(&user).await.len(), 2);
    shell.file("image.png", images::png(8, 8));
    for _ in 0..2 {
        shell.run(&["asset", "put", "image.png", "--on", &canvas]).await.expect(0);
    }
    let found = user.canvas(&canvas).await["nodes"].as_array().map_or(0, Vec::len);
    assert_eq!(found, 3, "a file is uploaded once");
}

#[tokio::test]
async fn what_killed_commands_left_is_removed_after_a_day() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    std::fs::create_dir_all(directory(&shell)).expect("is created");
    let hour = Duration::from_secs(3600);
    for (name, age) in [("0aa", 25 * hour), ("0aa.part", 25 * hour), ("0bb", 23 * hour)] {
        let file = std::fs::File::create(directory(&shell).join(name)).expect("is created");
        let now = file.metadata().and_then(|it| it.modified()).expect("has a date");
        file.set_modified(now - age).expect("is dated");
    }
    shell.file("one.json", json!([{"type": "canvas.update", "title": "Swept"}]).to_string());
    shell.run(&["apply", "one.json", "--on", &canvas]).await.expect(0);
    let left = std::fs::read_dir(directory(&shell)).expect("is listed").map(|file| file.expect("is read").file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["0bb"]);
}
