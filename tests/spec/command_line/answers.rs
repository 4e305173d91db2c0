//! Effects, output and exit statuses of the commands.

use std::fs;

use e2e::api::{key, text};
use e2e::{PATIENCE, Shell, Stack, images};
use serde_json::{Value, json};
use testkit::wait_for;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

use super::{image, interrupted, nodes, person, unread};

#[tokio::test]
async fn a_canvas_is_made_changed_shown_and_listed() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let added =
        shell.run(&["node", "add", "text", "--on", &canvas, "--title", "Brief", "--text", "A mug"]).await.expect(0);
    let named =
        |stdout: &str, name: &str| stdout.split_whitespace().find(|word| *word == name).expect("a ref").to_owned();
    let brief = named(&added.stdout, "n1");
    assert!(added.stdout.starts_with("+ node.create n1 "), "{}", added.stdout);
    shell
        .run_with_input(&["node", "add", "sticky", "--on", &canvas, "--text", "-", "--near", &brief], "from a pipe")
        .await
        .expect(0);
    shell.run(&["node", "set", &brief, "--title", "New brief", "--on", &canvas]).await.expect(0);
    shell.run(&["node", "move", &brief, "-40", "800", "--on", &canvas]).await.expect(0);
    let found = nodes(&shell, &canvas).await;
    assert_eq!((text(&found[0], "/title"), &found[0]["position"]), ("New brief", &json!({"x": -40.0, "y": 800.0})));
    assert_eq!(text(&found[1], "/metadata/content"), "from a pipe");
    let other = text(&found[1], "/handle").to_owned();
    let connected = shell.run(&["connect", &brief, &other, "--on", &canvas]).await.expect(0);
    let connection = named(&connected.stdout, "c1");
    let shown = shell.run(&["node", "add", "video", "--alt", "A wave breaks", "--on", &canvas]).await.expect(0);
    let video = named(&shown.stdout, "n3");
    shell.run(&["node", "set", &video, "--alt", "", "--on", &canvas]).await.expect(0);
    let outline = shell.run(&["show", &canvas]).await.expect(0).stdout;
    assert!(outline.contains(r#" alt """#) && outline.contains("  n1 text \"New brief\""), "{outline}");
    let with_ids = shell.run(&["show", &canvas, "--ids"]).await.expect(0).stdout;
    assert!(with_ids.contains(text(&found[0], "/id")) && !outline.contains(text(&found[0], "/id")), "{with_ids}");
    shell.run(&["node", "rm", &video, "--on", &canvas]).await.expect(0);
    assert!(outline.contains("New brief") && outline.contains("1 connection"), "{outline}");
    shell.run(&["disconnect", &connection, "--on", &canvas]).await.expect(0);
    shell.run(&["node", "rm", &brief, &other, "--on", &canvas]).await.expect(0);
    assert!(nodes(&shell, &canvas).await.is_empty());
    for kind in ["image", "video"] {
        shell.run(&["node", "add", kind, "--on", &canvas]).await.expect(0);
    }
    let found = nodes(&shell, &canvas).await;
    let [image, video] = [text(&found[0], "/id"), text(&found[1], "/id")];
    shell.run(&["connect", image, video, "--purpose", "first-frame", "--on", &canvas]).await.expect(0);
    let listed = shell.run(&["list"]).await.expect(0).stdout;
    assert!(listed.contains(&canvas) && listed.contains("Board"), "{listed}");
    // The page of a canvas and its plain id name it, too.
    let id = canvas.rsplit(':').next().expect("an id");
    let page = format!("{}/c/{}/{id}", stack.origin(0), user.uid);
    for reference in [page.as_str(), id] {
        let shown = shell.run(&["show", reference, "--json"]).await.json();
        assert_eq!(text(&shown, "/canvas/handle"), canvas);
    }
    let opened = shell.run(&["open", id, "--json"]).await.json();
    assert!(text(&opened, "/url").ends_with(&format!("/c/{}/{id}", user.uid)));
}

#[tokio::test]
async fn json_is_the_answer_of_the_service() {
    let stack = &Stack::builder().image_workers(1).start().await;
    let (user, shell, canvas) = person(stack).await;
    let id = canvas.rsplit(':').next().expect("an id").to_owned();
    let pairs: [(&[&str], &str); 9] = [
        (&["show", &canvas], &format!("/canvases/{id}")),
        (&["review", &canvas], &format!("/canvases/{id}/review")),
        (&["list"], "/canvases"),
        (&["action", "list"], "/actions"),
        (&["action", "list", "--medium", "video"], "/actions?medium=video"),
        (&["action", "show", "resize"], "/actions/resize"),
        (&["recipe", "list"], "/recipes"),
        (&["run", "list"], "/runs"),
        (&["element", "list"], "/elements"),
    ];
    for (arguments, path) in pairs {
        let printed = shell.run(&[arguments, &["--json"]].concat()).await;
        let printed: Value = serde_json::from_str(&printed.stdout).expect("one document");
        assert_eq!(printed, user.get(path).await.ok(), "{arguments:?}");
    }
    let who = shell.run(&["whoami", "--json"]).await.json();
    assert_eq!(text(&who, "/uid"), user.uid);
    // No video-worker runs.
    let checks = shell.run(&["doctor", "--json"]).await.expect(1).lines().remove(0);
    let names: Vec<&str> = checks["checks"].as_array().expect("checks").iter().map(|it| text(it, "/name")).collect();
    assert_eq!(names[..5], ["reach", "clock", "version", "token", "scopes"]);
    let queues = ["image", "import", "generation", "recipe", "video", "webhook"].map(|queue| format!("queue {queue}"));
    assert_eq!(names[5..], queues);
    let failed = |it: &&Value| it["ok"] == false;
    let failed = checks["checks"].as_array().expect("checks").iter().filter(failed).map(|it| text(it, "/name"));
    assert_eq!(failed.collect::<Vec<_>>(), ["queue video", "queue webhook"]);
    assert!(text(&checks, "/checks/1/detail").starts_with("this machine's clock is "), "{checks}");
}

#[tokio::test]
async fn text_of_others_cannot_control_the_terminal() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let title = "a\u{1b}[2Jb\u{202e}c";
    let id = canvas.rsplit(':').next().expect("an id");
    user.apply(id, json!([{"type": "canvas.update", "title": title}])).await;
    user.apply(id, json!([{"type": "node.create", "node": {"type": "text", "title": title}}])).await;
    for arguments in [&["list"][..], &["show", &canvas]] {
        let printed = shell.run(arguments).await.expect(0).stdout;
        assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
    }
}

#[tokio::test]
async fn a_batch_is_read_from_a_file_or_standard_input() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let create =
        |title: &str| json!([{"type": "node.create", "clientId": "n", "node": {"type": "text", "title": title}}]);
    shell.file("operations.json", create("array").to_string());
    shell.run(&["apply", "operations.json", "--on", &canvas]).await.expect(0);
    shell.run_with_input(&["apply", "-", "--on", &canvas], &create("pipe").to_string()).await.expect(0);
    let revision = user.canvas(&canvas).await["revision"].clone();
    shell.file("body.json", json!({"baseRevision": revision, "operations": create("body")}).to_string());
    let applied = shell.run(&["apply", "body.json", "--on", &canvas, "--json"]).await.json();
    assert_eq!(applied["changedNodeIds"].as_array().map(Vec::len), Some(1));
    // The same command again has the same key, and is answered from the record.
    let again = shell.run(&["apply", "body.json", "--on", &canvas, "--json"]).await.json();
    assert_eq!(again["replayed"], true);
    assert_eq!(nodes(&shell, &canvas).await.len(), 3);
    for (name, content) in [
        ("text.json", "{"),
        ("number.json", "7"),
        ("revision.json", r#"{"baseRevision": 7, "operations": []}"#),
        ("force.json", r#"{"force": "yes", "operations": []}"#),
        ("member.json", r#"{"baseRevison": "r", "operations": []}"#),
    ] {
        shell.file(name, content);
        shell.run(&["apply", name, "--on", &canvas]).await.expect(2);
    }
    // All that the body says is sent: that it is a trial, and its key.
    shell.file("trial.json", json!({"validateOnly": true, "operations": create("trial")}).to_string());
    let trial = shell.run(&["apply", "trial.json", "--on", &canvas, "--json"]).await.json();
    assert!(trial["proposal"].is_object(), "{trial}");
    let revision = user.canvas(&canvas).await["revision"].clone();
    let keyed = json!({"baseRevision": revision, "idempotencyKey": key(), "operations": create("keyed")});
    user.send(&format!("/canvases/{canvas}/operations"), &keyed).await.expect(200);
    shell.file("keyed.json", keyed.to_string());
    let again = shell.run(&["apply", "keyed.json", "--on", &canvas, "--json"]).await.json();
    assert_eq!(again["replayed"], true);
    assert_eq!(nodes(&shell, &canvas).await.len(), 4);
    shell.run(&["apply", "missing.json", "--on", &canvas]).await.expect(2);
    shell.file("empty.json", "{}");
    shell.run(&["apply", "empty.json", "--on", &canvas]).await.expect(3);
}

#[tokio::test]
async fn a_dry_run_finds_what_the_write_finds_and_changes_nothing() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let at = |title: &str, x: f64| json!({"type": "node.create", "node": {"type": "text", "title": title, "position": {"x": x, "y": 0}}});
    shell.run_with_input(&["apply", "-", "--on", &canvas], &json!([at("first", 0.0)]).to_string()).await.expect(0);
    let overlapping = json!([at("second", 10.0)]).to_string();
    let trial =
        shell.run_with_input(&["apply", "-", "--on", &canvas, "--dry-run", "--json"], &overlapping).await.json();
    let found: Vec<&str> =
        trial["validation"]["findings"].as_array().expect("findings").iter().map(|it| text(it, "/code")).collect();
    let refused = shell.run_with_input(&["apply", "-", "--on", &canvas, "--json"], &overlapping).await.error(3);
    let blocked: Vec<&str> =
        refused["details"]["findings"].as_array().expect("findings").iter().map(|it| text(it, "/code")).collect();
    assert!(!blocked.is_empty());
    assert_eq!(found, blocked);
    assert_eq!(nodes(&shell, &canvas).await.len(), 1, "nothing was written");
    shell.run_with_input(&["apply", "-", "--on", &canvas, "--force"], &overlapping).await.expect(0);
    assert_eq!(nodes(&shell, &canvas).await.len(), 2);
}

#[tokio::test]
async fn disjoint_changes_are_merged_on_request_and_others_refused() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    for title in ["mine", "theirs"] {
        shell.run(&["node", "add", "text", "--title", title, "--on", &canvas]).await.expect(0);
    }
    let found = nodes(&shell, &canvas).await;
    let [mine, theirs] = [&found[0]["id"], &found[1]["id"]];
    let renamed =
        |node: &Value, title: &str| json!([{"type": "node.update", "nodeId": node, "patch": {"title": title}}]);
    let stale = user.canvas(&canvas).await["revision"].clone();
    user.apply(&canvas, renamed(theirs, "changed")).await;
    let body =
        |node: &Value, title: &str| json!({"baseRevision": stale, "operations": renamed(node, title)}).to_string();
    let refused = shell.run_with_input(&["apply", "-", "--on", &canvas, "--json"], &body(mine, "one")).await.error(6);
    assert_eq!(text(&refused, "/code"), "conflict");
    shell.run_with_input(&["apply", "-", "--on", &canvas, "--rebase"], &body(mine, "two")).await.expect(0);
    shell.run_with_input(&["apply", "-", "--on", &canvas, "--rebase"], &body(theirs, "three")).await.expect(6);
    let titles: Vec<String> = nodes(&shell, &canvas).await.iter().map(|node| text(node, "/title").to_owned()).collect();
    assert_eq!(titles, ["two", "changed"]);
}

#[tokio::test]
async fn an_upload_says_what_was_removed_from_it() {
    let stack = &Stack::with_workers().await;
    let (_, shell, _) = person(stack).await;
    shell.file("photo.jpg", images::photo_with_place(60, 40));
    shell.file("plain.jpg", images::jpeg(60, 40));
    let put = shell.run(&["asset", "put", "photo.jpg", "plain.jpg"]).await.expect(0).stdout;
    let (photo, plain) = put.trim().split_once('\n').expect("two lines");
    assert!(photo.ends_with(" photo.jpg (removed: location)") && plain.ends_with(" plain.jpg"), "{put}");
}

#[tokio::test]
async fn images_are_uploaded_once_and_come_back_unchanged() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let image = images::png(300, 200);
    shell.file("ein Bild ä.png", &image);
    let put = shell.run(&["asset", "put", "ein Bild ä.png", "--on", &canvas, "--json"]).await.json();
    assert_eq!(text(&put, "/asset/name"), "ein Bild ä.png");
    let again = shell.run(&["asset", "put", "ein Bild ä.png", "--on", &canvas, "--json"]).await.json();
    assert_eq!((&again["replayed"], &again["asset"]["handle"]), (&json!(true), &put["asset"]["handle"]));
    assert_eq!(nodes(&shell, &canvas).await.len(), 1);
    shell.run(&["asset", "put", "ein Bild ä.png", "--on", &canvas, "--again"]).await.expect(0);
    assert_eq!(nodes(&shell, &canvas).await.len(), 2);
    let handle = text(&put, "/asset/handle");
    shell.run(&["asset", "get", handle, "-o", "back.png"]).await.expect(0);
    assert!(fs::read(shell.home().join("back.png")).expect("a file") == image);
    shell.run(&["asset", "get", handle, "-o", "small.png", "--width", "64"]).await.expect(0);
    shell.run(&["asset", "get", handle, "-o", "x.png", "--width", "65"]).await.expect(2);
    assert!(!shell.home().join("x.png").exists(), "a file is complete or not there");
    let shown = shell.run(&["asset", "show", handle]).await.expect(0).stdout;
    assert!(shown.contains("300x200"), "{shown}");
    // What is no file is written to, not replaced.
    let path = shell.home().join("pipe");
    tokio::process::Command::new("mkfifo").arg(&path).status().await.expect("makes a pipe");
    let mut reader = pipe::OpenOptions::new().open_receiver(&path).expect("opens the pipe");
    shell.run(&["asset", "get", handle, "-o", "pipe"]).await.expect(0);
    let mut piped = Vec::new();
    // A pipe that nobody has opened has no end.
    let read = tokio::time::timeout(PATIENCE, reader.read_to_end(&mut piped)).await;
    read.expect("it is written to").expect("reads");
    assert!(piped == image, "{} bytes", piped.len());
}

#[tokio::test]
async fn an_interrupted_download_leaves_nothing() {
    let stack = &Stack::with_workers().await;
    let service = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let address = format!("http://{}", service.local_addr().expect("an address"));
    let shell = stack.shell(&stack.user().await).with("CANVAS_BASE_URL", &address);
    let files = || fs::read_dir(shell.home()).expect("a directory").count();
    let before = files();
    let command = shell.start(&["asset", "get", "asset:01991f2c-1a05-7c38-8e61-2f9d4b7a6c10", "-o", "video.mp4"]);
    let (mut connection, _) = service.accept().await.expect("connects");
    connection.read_exact(&mut [0; 4]).await.expect("a request");
    connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nfilm").await.expect("answers");
    wait_for("a part of the video", PATIENCE, async || (files() > before).then_some(())).await;
    assert_eq!(interrupted(command).await.status.code(), Some(130));
    assert_eq!(files(), before);
}

/// Writes six images and `no.png`, which is none. Returns the names of the images.
fn write_images(shell: &Shell) -> Vec<String> {
    let names: Vec<String> = (0..6).map(|at| format!("{at}.png")).collect();
    for (at, name) in names.iter().enumerate() {
        shell.file(name, images::png(10 + at as u32, 10));
    }
    shell.file("no.png", "text");
    names
}

#[tokio::test]
async fn several_files_are_uploaded_although_one_fails() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let names = write_images(&shell);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let put =
        shell.run(&[&["asset", "put", "no.png"], &all[..], &["--on", &canvas, "--json"]].concat()).await.expect(2);
    let uploaded: Vec<Value> = put.lines().iter().map(|line| line["asset"]["name"].clone()).collect();
    assert_eq!(json!(uploaded), json!(names));
    assert!(put.stderr.contains("no.png"), "{}", put.stderr);
}

#[tokio::test]
async fn a_folder_is_placed_together_and_once() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    for at in 0..6 {
        shell.file(&format!("board/{at}.png"), images::png(10 * (at + 1), 10 * (at + 1)));
    }
    shell.run(&["asset", "put", "board", "--on", &canvas]).await.expect(0);
    let placed = nodes(&shell, &canvas).await;
    assert_eq!(placed.len(), 6);
    let lefts: std::collections::BTreeSet<String> =
        placed.iter().map(|node| node["position"]["x"].to_string()).collect();
    assert_eq!(lefts.len(), 3, "a grid of three columns");
    shell.run(&["asset", "put", "board", "--on", &canvas]).await.expect(0);
    assert_eq!(nodes(&shell, &canvas).await.len(), 6, "they are there already");
    // Folders in it, files beside it, in the order of the arguments, in one grid.
    let other = shell.run(&["new", "Other", "-q"]).await.expect(0).stdout.trim().to_owned();
    for (at, name) in ["shoot/b.png", "shoot/inner/a.png", "shoot/.hidden/c.png", "z.png", "a.png"].iter().enumerate() {
        shell.file(name, images::png(100 + at as u32, 10));
    }
    shell.file("shoot/notes.txt", "text");
    std::os::unix::fs::symlink(".", shell.home().join("shoot/loop")).expect("links");
    let put = ["asset", "put", "z.png", "shoot", "a.png", "board/0.png", "-q", "--on", &other];
    let flat = shell.run(&put).await.expect(2);
    assert!(flat.stderr.contains("notes.txt"), "{flat:?}");
    assert_eq!(flat.stdout.lines().filter(|line| line.starts_with("node:")).count(), 4, "{flat:?}");
    let deep = shell.run(&["asset", "put", "-r", "z.png", "shoot", "--on", &other]).await.expect(2);
    assert!(deep.stderr.contains("3 files stored, 2 of them uploaded before, 1 failed, "), "{}", deep.stderr);
    let titles: Vec<String> = nodes(&shell, &other).await.iter().map(|node| text(node, "/title").to_owned()).collect();
    assert_eq!(titles, ["z.png", "b.png", "a.png", "0.png", "a.png"]);
    let rows = nodes(&shell, &other).await[..4]
        .iter()
        .map(|node| node["position"]["y"].to_string())
        .collect::<std::collections::BTreeSet<_>>();
    assert!(rows.len() <= 2, "a grid: {rows:?}");
}

#[tokio::test]
async fn work_is_finished_although_nobody_reads_the_output() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let names = write_images(&shell);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let put = [&["asset", "put"], &all[..], &["no.png", "--on", &canvas]].concat();
    assert_eq!(unread(&shell, &put).await, Some(2), "the last file fails");
    assert_eq!(nodes(&shell, &canvas).await.len(), names.len());
}

#[tokio::test]
async fn commands_that_only_print_stop_when_nobody_reads_the_output() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    shell.file("image.png", images::png(20, 20));
    let put = shell.run(&["asset", "put", "image.png", "--json"]).await.json();
    let asset = text(&put, "/asset/handle");
    for arguments in
        [&["watch", &canvas][..], &["list", "--all", "--json"], &["asset", "get", asset, "-o", "-"], &["man"]]
    {
        assert_eq!(unread(&shell, arguments).await, Some(0), "{arguments:?}");
    }
}

#[tokio::test]
async fn output_that_cannot_be_written_is_exit_status_1() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let names = write_images(&shell);
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    for arguments in [
        &["--json", "list"][..],
        &["list"],
        &["list", "--all", "--json"],
        &["show", &canvas],
        &["view", &canvas, "-o", "-"],
        &["man"],
        &["completions", "bash"],
        &["list", "--help"],
    ] {
        let ran = shell.run_into("/dev/full", arguments).await.expect(1);
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("standard output"), "{arguments:?}: {}", ran.stderr);
    }
    let error = shell.run_into("/dev/full", &["--json", "list"]).await.error(1);
    assert_eq!(text(&error, "/code"), "unwritten");
    shell.run_into("/dev/full", &[&["asset", "put"], &all[..], &["--on", &canvas]].concat()).await.expect(1);
    assert_eq!(nodes(&shell, &canvas).await.len(), names.len(), "the work is done");
}

#[tokio::test]
async fn elements_and_collections_are_kept() {
    let stack = &Stack::with_workers().await;
    let (_, shell, _) = person(stack).await;
    shell.file("image.png", images::png(20, 20));
    let put = shell.run(&["asset", "put", "image.png", "--json"]).await.json();
    let asset = text(&put, "/asset/handle");
    let made = shell.run(&["collection", "create", "Mugs", "--json"]).await.json();
    let collection = text(&made, "/collection/id").to_owned();
    let create = [
        "element",
        "create",
        "Mug",
        "--type",
        "product/object",
        "--source",
        asset,
        "--collection",
        &collection,
        "--json",
    ];
    let element = shell.run(&create).await.json();
    let id = text(&element, "/element/id").to_owned();
    // An Element is named as the list names it.
    let listed = shell.run(&["element", "list"]).await.expect(0).stdout;
    let named = listed.split_whitespace().find(|word| word.starts_with("element:")).expect("a handle").to_owned();
    assert_eq!(named, format!("element:{id}@v1"));
    shell.run(&["element", "update", &named, "--name", "Big mug"]).await.expect(0);
    let versions = shell.run(&["element", "versions", &named, "--json"]).await.json();
    assert_eq!(versions["versions"].as_array().map(Vec::len), Some(2));
    let people = shell.run(&["element", "versions", &id]).await.expect(0).stdout;
    assert!(people.contains("\nMug ") && people.contains("\nBig mug "), "{people}");
    let first = format!("element:{id}@v1");
    let shown = shell.run(&["element", "show", &first]).await.expect(0).stdout;
    assert!(shown.starts_with(&format!("{first} product/object Mug\n")), "{shown}");
    let shown = shell.run(&["element", "show", &id]).await.expect(0).stdout;
    assert!(shown.contains("Big mug") && shown.contains("@v2"), "{shown}");
    shell.run(&["element", "archive", &named]).await.expect(0);
    let archived = shell.run(&["element", "list", "--state", "archived"]).await.expect(0).stdout;
    assert!(archived.contains("Big mug"), "{archived}");
    shell.run(&["element", "restore", &named]).await.expect(0);
    // Guidelines are enough.
    shell.run(&["element", "create", "Calm", "--type", "style", "--guidelines", "quiet"]).await.expect(0);
    shell.run(&["collection", "rename", &collection, "Cups"]).await.expect(0);
    let listed = shell.run(&["collection", "list"]).await.expect(0).stdout;
    assert!(listed.contains("Cups"), "{listed}");
    shell.run(&["collection", "delete", &collection]).await.expect(0);
}

#[tokio::test]
async fn a_render_goes_to_a_file_or_a_pipe() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let node = image(&shell, &canvas).await;
    shell.run(&["view", &canvas, "-o", "board.png", "--width", "512", "--labels"]).await.expect(0);
    let png = fs::read(shell.home().join("board.png")).expect("an image");
    assert!(png.starts_with(b"\x89PNG"));
    let said = shell.run(&["view", &canvas, "-o", "board.png", "--labels", "--json"]).await.json();
    assert_eq!(said["labels"]["1"], json!(node));
    for to in [&["--node", &node][..], &["-o", "-"]] {
        let piped = shell.start(&[&["view", &canvas], to].concat()).wait_with_output().await.expect("ends");
        assert!(piped.stdout.starts_with(b"\x89PNG"));
    }
    // Standard output is the image or JSON.
    let refused = shell.run(&["view", &canvas, "-o", "-", "--json"]).await.error(2);
    assert_eq!(text(&refused, "/code"), "usage");
    assert!(!shell.home().join("-").exists());
    shell.run(&["view", &canvas, "--width", "255", "-o", "x.png"]).await.expect(3);
}

#[tokio::test]
async fn a_review_that_says_no_is_exit_status_1() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    shell.run(&["review", &canvas]).await.expect(0);
    let two =
        json!([0, 10].map(|x| json!({"type": "node.create", "node": {"type": "text", "position": {"x": x, "y": 0}}})));
    shell.run_with_input(&["apply", "-", "--on", &canvas, "--force"], &two.to_string()).await.expect(0);
    let reviewed = shell.run(&["review", &canvas]).await.expect(1);
    assert!(reviewed.stdout.contains("agent_overlap"), "{}", reviewed.stdout);
    shell.run(&["review", &canvas, "--json"]).await.expect(1);
    assert_eq!(unread(&shell, &["review", &canvas]).await, Some(1));
}

#[tokio::test]
async fn a_list_is_read_page_by_page_or_whole() {
    let stack = &Stack::with_workers().await;
    let (_, shell, _) = person(stack).await;
    for title in ["b", "c"] {
        shell.run(&["new", title]).await.expect(0);
    }
    let first = shell.run(&["list", "--limit", "2", "--json"]).await.json();
    let cursor = text(&first, "/page/nextCursor");
    let second = shell.run(&["list", "--limit", "2", "--cursor", cursor, "--json"]).await.json();
    assert_eq!(second["canvases"].as_array().map(Vec::len), Some(1));
    let all = shell.run(&["list", "--all", "--limit", "1", "--json"]).await.expect(0).lines();
    assert_eq!(all.len(), 3);
    shell.run(&["list", "--limit", "26"]).await.expect(3);
    // A cursor may begin with a hyphen.
    let refused = shell.run(&["list", "--cursor", "--made-up", "--json"]).await.error(3);
    assert_eq!(text(&refused, "/code"), "input_validation_error");
}

#[tokio::test]
async fn any_request_can_be_sent() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let status: Value =
        serde_json::from_str(&shell.run(&["api", "GET", "/auth/status"]).await.expect(0).stdout).expect("JSON");
    assert_eq!(text(&status, "/uid"), user.uid);
    let made =
        shell.run_with_input(&["api", "POST", "/canvases", "-d", "@-"], r#"{"title": "From a pipe"}"#).await.json();
    assert_eq!(text(&made, "/canvas/title"), "From a pipe");
    let refused = shell.run(&["api", "POST", "/canvases", "-d", "{", "--json"]).await.error(3);
    assert_eq!(text(&refused, "/code"), "invalid_json");
    let outline = shell
        .run(&["api", "GET", &format!("/canvases/{canvas}/outline"), "-H", "Accept: text/markdown"])
        .await
        .expect(0);
    assert!(outline.stdout.contains("Board"), "{}", outline.stdout);
    shell.run(&["api", "GET", "/nothing"]).await.expect(5);
}

#[tokio::test]
async fn each_refusal_has_its_exit_status_and_its_envelope() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let cases: [(&[&str], i32, &str); 4] = [
        (&["list", "--limit", "0"], 3, "input_validation_error"),
        (&["show", "canvas:nobody:nothing"], 5, "not_found"),
        (&["node", "rm", "node:nothing", "--on", &canvas], 3, "unprocessable_entity"),
        (&["run", "show", "run:00000000-0000-0000-0000-000000000000"], 5, "not_found"),
    ];
    for (arguments, code, name) in cases {
        let error = shell.run(&[arguments, &["--json"]].concat()).await.error(code);
        assert_eq!(text(&error, "/code"), name, "{arguments:?}");
        assert!(error["requestId"].is_string(), "{error}");
    }
    // What the command itself looks for is not found either.
    for arguments in [&["model", "show", "nope"][..], &["show", &canvas, "--section", "nope"]] {
        let error = shell.run(&[arguments, &["--json"]].concat()).await.error(5);
        assert_eq!(text(&error, "/code"), "not_found", "{arguments:?}");
    }
    // For people: what failed and the request id, in plain lines.
    let message = shell.run(&["show", "canvas:nobody:nothing"]).await.expect(5).stderr;
    assert!(message.starts_with("canvas: canvas not found\nrequest "), "{message}");
    let stranger = stack.shell(&user).with("CANVAS_TOKEN", "cba_wrong");
    let error = stranger.run(&["whoami", "--json"]).await.error(4);
    assert_eq!(text(&error, "/code"), "unauthorized");
    let reader = stack.user_with("canvas:read").await;
    let error = stack.shell(&reader).run(&["new", "Mine", "--json"]).await.error(4);
    assert_eq!(text(&error, "/code"), "forbidden");
    let nowhere = stack.shell(&user).with("CANVAS_BASE_URL", "http://127.0.0.1:1");
    let error = nowhere.run(&["new", "Mine", "--json"]).await.error(8);
    assert_eq!(text(&error, "/code"), "unreachable");
    let error = shell.run(&["list", "--json", "--limit", "x"]).await.error(2);
    assert_eq!(text(&error, "/code"), "usage");
    assert!(text(&error, "/message").starts_with("invalid value 'x' for '--limit <N>'"), "{error}");
    let help = shell.run(&["list", "--json", "--help"]).await.expect(0).stdout;
    assert!(help.contains("--limit"), "{help}");
    shell.run(&["nonsense"]).await.expect(2);
    shell.run(&["show"]).await.expect(2);
}

#[tokio::test]
async fn help_has_examples_and_values_and_ends_with_the_options_of_every_command() {
    let shell = Shell::new();
    let help = shell.run(&["connect", "--help"]).await.expect(0).stdout;
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("no {text}: {help}"));
    assert!(at("--purpose") < at("Options of every command") && at("Options of every command") < at("--json"));
    assert!(at("Examples:") < at("canvas connect Brief Hero"));
    for values in ["flow, reference, list, first-frame, last-frame", "identity, "] {
        at(values);
    }
    let wrong = shell.run(&["run", "list", "--status", "runing"]).await.expect(2).stderr;
    assert!(wrong.contains("running"), "{wrong}");
    let script = shell.run(&["completions", "bash"]).await.expect(0).stdout;
    assert!(script.contains("first-frame"), "completions know the values");
}

#[tokio::test]
async fn an_example_of_an_operation_can_be_applied() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    for kind in ["node.create", "node.update", "node.move", "canvas.update"] {
        let body = Shell::new().run(&["apply", "--example", kind]).await.expect(0).stdout;
        shell.run_with_input(&["apply", "-", "--on", &canvas], &body).await.expect(0);
    }
    assert_eq!(nodes(&shell, &canvas).await[0]["position"], json!({"x": 400.0, "y": -80.0}));
    let body = shell.run(&["apply", "--example", "node.update"]).await.expect(0).stdout;
    let plan = shell.run_with_input(&["apply", "-", "--on", &canvas, "--dry-run"], &body).await.expect(0).stdout;
    assert!(plan.starts_with("~ node.update n1 Brief → Brief\n"), "{plan}");
    let moved = ["node", "move", "Brief", "1", "2", "--on", &canvas, "--dry-run"];
    let plan = shell.run(&moved).await.expect(0).stdout;
    assert!(plan.starts_with("~ node.move n1 Brief 400,-80 → 1,2\n"), "{plan}");
    shell.run(&["apply", "--example", "node.nothing"]).await.expect(2);
    shell.run(&["apply"]).await.expect(2);
}

#[tokio::test]
async fn errors_name_options_and_the_host_and_show_no_pattern() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let over = shell.run(&["list", "--limit", "26"]).await.expect(3).stderr;
    assert!(over.starts_with("canvas: --limit: "), "{over}");
    let wrong =
        shell.run(&["action", "run", "resize", "asset:(", "-p", "width=0", "--on", &canvas]).await.expect(3).stderr;
    assert!(wrong.contains("\n  --param width: must be ") && !wrong.contains('^'), "{wrong}");
    let nowhere =
        stack.shell(&user).with("CANVAS_BASE_URL", "http://127.0.0.1:1").run(&["whoami"]).await.expect(8).stderr;
    assert_eq!(nowhere, "canvas: the service is not reached: http://127.0.0.1:1: Connection refused\n");
    let quote = ["generate", "--prompt", "a kite", "--model", "sketch", "-n", "2", "--on", &canvas, "--dry-run"];
    let quote = shell.run(&quote).await.expect(0).stdout;
    assert_eq!(quote.matches("+ image ").count(), 2, "{quote}");
}
