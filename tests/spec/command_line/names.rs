//! Names of things, bare results, and pictures from everywhere.

use std::fs;

use e2e::api::text;
use e2e::{Shell, Stack, images};
use serde_json::{Value, json};

use super::{image, nodes, person};

/// Lines of the standard output of a command that succeeded.
async fn lines(shell: &Shell, arguments: &[&str]) -> Vec<String> {
    shell.run(arguments).await.expect(0).stdout.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn quiet_prints_the_handles_of_what_is_made_or_listed_and_nothing_else() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let shell = shell.with("CANVAS_ON", &canvas);
    let bare = async |arguments: &[&str], prefix: &str, count: usize| {
        let ran = shell.run(&[arguments, &["-q"]].concat()).await.expect(0);
        let found: Vec<&str> = ran.stdout.lines().collect();
        assert!(found.len() == count && found.iter().all(|it| it.starts_with(prefix)), "{arguments:?}: {ran:?}");
        assert!(found.iter().all(|it| !it.contains(' ')), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stderr, "", "{arguments:?}");
        found[0].to_owned()
    };
    bare(&["new", "Second"], "canvas:", 1).await;
    bare(&["list"], "canvas:", 2).await;
    bare(&["list", "--all", "--limit", "1"], "canvas:", 2).await;
    let text = bare(&["node", "add", "text", "--title", "Brief"], "node:", 1).await;
    shell.file("a.png", images::png(20, 20));
    let node = bare(&["asset", "put", "a.png"], "node:", 1).await;
    bare(&["asset", "put", "a.png", "--no-canvas"], "asset:", 1).await;
    bare(&["connect", &text, &node], "connection:", 1).await;
    bare(&["show"], "node:", 2).await;
    bare(&["asset", "list"], "asset:", 1).await;
    bare(&["action", "run", "rotate", &node, "-p", "degrees=90"], "node:", 1).await;
    bare(&["generate", "--prompt", "a kite", "--model", "sketch", "-n", "2", "--yes"], "node:", 2).await;
    bare(&["generate", "--prompt", "a kite", "--model", "sketch", "--yes", "--no-wait"], "run:", 1).await;
    bare(&["run", "list"], "run:", 3).await;
    let model = bare(&["model", "list", "-s", "sketch"], "model:", 1).await;
    shell.run(&["model", "show", &model]).await.expect(0);
    assert!(lines(&shell, &["recipe", "list", "-q"]).await.contains(&"storyboard".to_owned()));
    assert!(lines(&shell, &["action", "list", "-q"]).await.contains(&"rotate".to_owned()));
    let element = ["element", "create", "Mug", "--type", "product/object", "--source", "a.png"];
    let element = bare(&element, "element:", 1).await;
    assert!(element.ends_with("@v1"), "{element}");
    bare(&["element", "list"], "element:", 1).await;
    let collection = lines(&shell, &["collection", "create", "Mugs", "-q"]).await;
    assert_eq!(lines(&shell, &["collection", "list", "-q"]).await, collection);
    assert!(shell.run(&["node", "rm", &text, "-q"]).await.expect(0).stdout.is_empty(), "nothing was made");
}

#[tokio::test]
async fn a_default_canvas_is_used_where_none_is_named() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let refused = shell.run(&["node", "add", "text"]).await.expect(2).stderr;
    assert!(refused.contains("canvas use"), "{refused}");
    assert_eq!(lines(&shell, &["use", "Board"]).await, [canvas.as_str()]);
    assert_eq!(lines(&shell, &["use"]).await, [canvas.as_str()]);
    shell.run(&["node", "add", "text", "--title", "Brief"]).await.expect(0);
    assert!(shell.run(&["show"]).await.expect(0).stdout.contains("Brief"));
    shell.file("a.png", images::png(20, 20));
    shell.run(&["asset", "put", "a.png"]).await.expect(0);
    assert_eq!(nodes(&shell, &canvas).await.len(), 2);
    let other = lines(&shell, &["new", "Other"]).await.remove(0);
    // The environment comes before the choice, an argument before both.
    let shell = shell.with("CANVAS_ON", &other);
    shell.run(&["node", "add", "text"]).await.expect(0);
    shell.run(&["node", "add", "text", "--on", "Board"]).await.expect(0);
    assert_eq!((nodes(&shell, &other).await.len(), nodes(&shell, &canvas).await.len()), (1, 3));
    shell.run(&["asset", "put", "a.png", "--no-canvas"]).await.expect(0);
    assert_eq!(nodes(&shell, &other).await.len(), 1);
    // It is no filter of a list.
    assert_eq!(lines(&shell, &["asset", "list", "-q"]).await.len(), 1);
    let none = shell.run(&["use", "--none", "--json"]).await.json();
    assert_eq!(none, json!({"canvas": null}));
}

#[tokio::test]
async fn what_is_made_goes_to_a_file_a_folder_or_standard_output() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let shell = shell.with("CANVAS_ON", &canvas);
    let is_png = |name: &str| fs::read(shell.home().join(name)).expect(name).starts_with(b"\x89PNG");
    let files = |folder: &str| fs::read_dir(shell.home().join(folder)).map_or(0, Iterator::count);
    let generate = ["generate", "--prompt", "a kite", "--model", "sketch", "--yes"];
    shell.run(&[&generate[..], &["-o", "one.png"]].concat()).await.expect(0);
    assert!(is_png("one.png"));
    shell.run(&[&generate[..], &["-n", "2", "-o", "two.png"]].concat()).await.expect(0);
    assert!(is_png("two.png") && is_png("two-2.png"));
    let said = shell.run(&[&generate[..], &["-n", "2", "-o", "out/", "--json"]].concat()).await.expect(0).lines();
    assert_eq!((said.len(), files("out")), (3, 2), "the run and its files: {said:?}");
    let piped = shell.start(&[&generate[..], &["-o", "-"]].concat()).wait_with_output().await.expect("ends");
    assert!(piped.stdout.starts_with(b"\x89PNG"));
    assert!(String::from_utf8_lossy(&piped.stderr).contains("succeeded"), "{piped:?}");
    shell.run(&[&generate[..], &["-o", "-", "--json"]].concat()).await.error(2);
    shell.run(&[&generate[..], &["-o", "x.png", "--no-wait"]].concat()).await.expect(2);
    // Nodes of a pipe, each into a file of its own, and again into the same files.
    let made = lines(&shell, &[&generate[..], &["-n", "2", "-q"]].concat()).await.join("\n");
    for _ in 0..2 {
        shell.run_with_input(&["asset", "get", "-", "-o", "pictures/"], &made).await.expect(0);
    }
    assert_eq!(files("pictures"), 2);
    shell.run_with_input(&["asset", "get", "-", "-o", "-"], &made).await.expect(2);
    let source = image(&shell, &canvas).await;
    shell.run(&["action", "run", "rotate", &source, "-p", "degrees=90", "-o", "turned.png"]).await.expect(0);
    assert!(is_png("turned.png"));
    let turn = ["action", "run", "rotate", &source, &source, "-p", "degrees=180", "-o", "turned/"];
    shell.run(&turn).await.expect(0);
    assert_eq!(files("turned"), 2);
    let run = lines(&shell, &[&generate[..], &["--no-wait"]].concat()).await.remove(0);
    shell.run(&["run", "wait", &run, "-o", "waited.png"]).await.expect(0);
    assert!(is_png("waited.png"));
    shell.run(&["view", "-o", "boards/"]).await.expect(0);
    assert_eq!(files("boards"), 1);
}

#[tokio::test]
async fn a_picture_is_a_handle_a_title_a_file_or_standard_input() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    let shell = shell.with("CANVAS_ON", &canvas);
    shell.file("local.png", images::png(30, 20));
    shell.file("n1", images::png(30, 20));
    let rotate = |source: &'static str| ["action", "run", "rotate", source, "-p", "degrees=90", "--json"];
    let turned = shell.run(&rotate("local.png")).await.json();
    assert_eq!(turned["images"][0]["height"], 30);
    assert_eq!(nodes(&shell, &canvas).await.len(), 1, "no node shows an uploaded source");
    // The first node, not the file of that name.
    let again = shell.run(&rotate("n1")).await.json();
    assert_eq!(again["images"][0]["height"], 20, "{again}");
    assert_eq!(shell.run(&rotate("./n1")).await.json()["images"][0]["height"], 30);
    let piped = fs::read(shell.home().join("local.png")).expect("a file");
    let mut running = shell.start(&rotate("-"));
    let mut input = running.stdin.take().expect("a pipe");
    tokio::io::AsyncWriteExt::write_all(&mut input, &piped).await.expect("writes");
    drop(input);
    let output = running.wait_with_output().await.expect("ends");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["images"][0]["height"], 30);
    let edit = ["edit", "--prompt", "blue", "--source", "local.png", "--reference", "./n1=style", "--yes", "--json"];
    let edited = shell.run(&edit).await.json();
    assert!(edited["referenceInputs"].to_string().contains("style"), "{edited}");
    shell.run(&["vary", "local.png", "--yes"]).await.expect(0);
    shell.run(&["node", "add", "image", "--asset", "local.png", "--title", "Photo"]).await.expect(0);
    assert_eq!(shell.run(&rotate("photo")).await.json()["images"][0]["height"], 30, "by its title");
    for (source, code) in [("http://127.0.0.1/x.png", 2), ("no such picture", 5), ("-", 2)] {
        shell.run(&rotate(source)).await.expect(code);
    }
}

#[tokio::test]
async fn a_thing_is_named_by_its_title_or_a_beginning_that_only_it_has() {
    let stack = &Stack::with_workers().await;
    let (user, shell, canvas) = person(stack).await;
    let id = canvas.rsplit(':').next().expect("an id");
    for title in ["Moodboard spring", "Moodboard autumn", "Twin", "Twin"] {
        shell.run(&["new", title]).await.expect(0);
    }
    let slug = text(&user.canvas(&canvas).await, "/slug").to_owned();
    for name in ["Board", "board", &slug, id] {
        assert_eq!(text(&shell.run(&["show", name, "--json"]).await.json(), "/canvas/handle"), canvas, "{name}");
    }
    for name in ["Moodboard s", "moodboard spring"] {
        let shown = shell.run(&["show", name, "--json"]).await.json();
        assert_eq!(text(&shown, "/canvas/title"), "Moodboard spring", "{name}");
    }
    for (name, code) in [("Moodb", 3), ("Twin", 3), ("Moo", 5), ("Spring", 5)] {
        shell.run(&["show", name]).await.expect(code);
    }
    let several = shell.run(&["show", "Twin", "--json"]).await.error(3);
    assert_eq!(text(&several, "/code"), "ambiguous");
    assert_eq!(text(&several, "/message").matches("canvas:").count(), 2, "{several}");
    // Nodes, in every place that takes one.
    let shell = shell.with("CANVAS_ON", "Board");
    for title in ["Brief", "Hero shot"] {
        shell.run(&["node", "add", "text", "--title", title]).await.expect(0);
    }
    shell.run(&["connect", "brief", "Hero"]).await.expect(0);
    shell.run(&["node", "set", "Hero shot", "--text", "A mug"]).await.expect(0);
    shell.run(&["node", "move", "node:n1", "0", "900"]).await.expect(0);
    shell.run(&["node", "add", "sticky", "--near", "brief"]).await.expect(0);
    let connection = user.canvas(&canvas).await["connections"][0]["id"].as_str().expect("an id").to_owned();
    shell.run(&["disconnect", &connection[..13]]).await.expect(0);
    shell.run_with_input(&["node", "rm", "-"], "Brief\nHero shot\n").await.expect(0);
    assert_eq!(nodes(&shell, &canvas).await.len(), 1);
    shell.run(&["node", "rm", "Brief"]).await.expect(5);
    // Runs, Elements, collections and models.
    shell.run(&["generate", "--prompt", "a paper kite", "--model", "sket", "--yes"]).await.expect(0);
    assert!(shell.run(&["run", "show", "a paper"]).await.expect(0).stdout.contains("succeeded"));
    shell.run(&["element", "create", "Calm", "--type", "style", "--guidelines", "quiet"]).await.expect(0);
    shell.run(&["element", "update", "calm", "--name", "Calm blue"]).await.expect(0);
    assert!(shell.run(&["element", "show", "Calm b"]).await.expect(0).stdout.contains("@v2"));
    shell.run(&["collection", "create", "Mugs"]).await.expect(0);
    shell.run(&["collection", "rename", "mugs", "Cups"]).await.expect(0);
    shell.run(&["collection", "delete", "Cups"]).await.expect(0);
    // What a table prints can be pasted.
    for list in [
        &["list"][..],
        &["run", "list"],
        &["asset", "list", "--on", "Board"],
        &["element", "list"],
        &["recipe", "list"],
    ] {
        let printed = lines(&shell, list).await;
        let head = printed[0].find(if list.len() == 1 { "canvas" } else { list[0] }).expect("a column");
        let name = printed[1][head..].split_whitespace().next().expect("a name");
        assert_eq!(lines(&shell, &[list, &["-q"]].concat()).await[0], name, "{list:?}");
    }
    let elsewhere = format!("https://elsewhere.example/c/{}/{id}", user.uid);
    let refused = shell.run(&["show", &elsewhere]).await.expect(2).stderr;
    assert!(refused.contains("is not a page of"), "{refused}");
}

#[tokio::test]
async fn canvases_are_renamed_found_and_exported() {
    let stack = &Stack::with_workers().await;
    let (_, shell, canvas) = person(stack).await;
    shell.run(&["rename", "Board", "Autumn mugs"]).await.expect(0);
    assert!(shell.run(&["ls"]).await.expect(0).stdout.contains("Autumn mugs"));
    let shell = shell.with("CANVAS_ON", &canvas);
    shell.file("mug.png", images::png(20, 20));
    shell.run(&["asset", "put", "mug.png"]).await.expect(0);
    shell.run(&["asset", "put", "mug.png", "--no-canvas"]).await.expect(0);
    shell.run(&["node", "add", "text", "--title", "Brief", "--text", "a blue MUG"]).await.expect(0);
    shell.run(&["node", "add", "text", "--title", "Other"]).await.expect(0);
    shell.run(&["element", "create", "Mug", "--type", "style", "--guidelines", "quiet"]).await.expect(0);
    let found = shell.run(&["find", "mug", "--json"]).await.json();
    let kinds: Vec<&str> = found["found"].as_array().expect("a list").iter().map(|it| text(it, "/kind")).collect();
    assert_eq!(kinds, ["canvas", "image", "text", "asset", "Element"], "{found}");
    assert_eq!(lines(&shell, &["find", "mug", "-q"]).await[0], canvas);
    shell.run(&["export", "-o", "backup"]).await.expect(0);
    let backup = shell.home().join("backup");
    let document: Value = serde_json::from_slice(&fs::read(backup.join("canvas.json")).expect("a file")).expect("JSON");
    assert_eq!(text(&document, "/canvas/title"), "Autumn mugs");
    assert!(fs::read(backup.join("board.png")).expect("a file").starts_with(b"\x89PNG"));
    assert_eq!(fs::read_dir(backup.join("assets")).expect("a folder").count(), 1);
    assert!(shell.run(&["credits"]).await.expect(0).stdout.starts_with("credits  100"));
    shell.run(&["connection", "list"]).await.expect(0);
    for (word, said) in [("delete", "canvas node rm"), ("share", "console"), ("lst", "list")] {
        let refused = shell.run(&[word]).await.expect(2).stderr;
        assert!(refused.contains(said), "{refused}");
    }
}
