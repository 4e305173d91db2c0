//! The success of each tool. Where a canvas is in an answer, its page is as well.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::api::text;
use e2e::tools::{STATELESS, ToolResult, Tools};
use e2e::{Stack, User, films, images};
use serde_json::{Value, json};
use testkit::Answer;

use super::board;

/// Tools whose successes are checked.
struct Checked(Tools);

impl Checked {
    async fn new(user: &User) -> Self {
        Self(Tools::new(user, STATELESS).await)
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let result = self.0.call(tool, arguments).await;
        assert!(!result.failed, "{tool}: {}", result.value);
        assert!(result.value.is_object(), "{tool}: {}", result.value);
        let lists = ["items", "running", "runs"].map(|name| result.value[name].as_array().cloned().unwrap_or_default());
        for item in lists.iter().flatten().chain([&result.value]).filter(|item| item["canvas"].is_string()) {
            let canvas = text(item, "/canvas");
            assert!(canvas.starts_with('~') && text(item, "/url").ends_with(&format!("/c/{canvas}")), "{tool}: {item}");
        }
        // A host without structured content loses nothing.
        assert!(
            result.content[0]["text"].as_str().is_some_and(|text| !text.is_empty() && text.len() <= 32 * 1024),
            "{tool}"
        );
        result
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.value
    }
}

#[tokio::test]
async fn status_tells_who_and_what() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 7).await;
    let status = Checked::new(&user).await.ok("status", json!({})).await;
    assert_eq!((&status["credit"], &status["token"], &status["running"]), (&json!(7), &json!("e2e"), &json!([])));
    assert_eq!(status["scopes"].as_array().map(Vec::len), Some(8));
    let poor = stack.user_with("asset:read").await;
    let status = Checked::new(&poor).await.ok("status", json!({})).await;
    assert_eq!(status["scopes"], json!(["asset:read"]), "without the right to list runs");
}

#[tokio::test]
async fn things_are_found_and_described() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}]});
    let run = tools.ok("action_run", arguments).await["runs"][0]["run"].clone();
    let element = tools.ok("element_save", json!({"name": "Calm", "type": "style", "guidelines": "quiet"})).await;
    tools.ok("element_manage", json!({"do": "collection.create", "target": "Shelf"})).await;
    let found = async |arguments: Value| tools.ok("find", arguments).await["items"].clone();
    assert_eq!(found(json!({"kind": "canvas", "query": "BOARD"})).await[0]["canvas"], canvas);
    assert_eq!(found(json!({"kind": "canvas", "query": "nothing like it"})).await, json!([]));
    let calm = found(json!({"kind": "element", "query": "calm"})).await[0].clone();
    assert_eq!((&calm["handle"], &calm["versionHandle"]), (&element["element"], &element["version"]));
    assert_eq!(found(json!({"kind": "collection"})).await[0]["name"], "Shelf");
    assert_eq!(found(json!({"kind": "run", "canvas": canvas})).await[0]["run"], run);
    let asset = found(json!({"kind": "asset", "canvas": canvas, "query": "boot"})).await[0]["handle"].clone();
    for (kind, query) in [("recipe", "hero"), ("action", "resize"), ("model", "sketch")] {
        let items = found(json!({"kind": kind, "query": query})).await;
        let handle = items[0]["handle"].as_str().expect("a handle");
        let facts = tools.ok("describe", json!({"handle": handle})).await;
        assert_eq!((&facts["kind"], handle.starts_with(kind)), (&json!(kind), true), "{handle}");
    }
    for handle in [&asset, &run, &element["element"], &element["version"]] {
        let facts = tools.ok("describe", json!({"handle": handle})).await["facts"].clone();
        assert!(facts.is_object() && !facts.to_string().contains("previewUrl"), "{facts}");
    }
    // Pages continue where they ended.
    let first = tools.ok("find", json!({"kind": "action", "limit": 5})).await;
    let rest = tools.ok("find", json!({"kind": "action", "limit": 5, "cursor": first["cursor"]})).await;
    let handles: Vec<&str> = rest["items"].as_array().expect("items").iter().map(|it| text(it, "/handle")).collect();
    assert_eq!((handles.len(), handles.last(), rest.get("cursor")), (4, Some(&"action:video-frame"), None));
}

#[tokio::test]
async fn a_canvas_is_made_read_edited_and_reviewed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let made = tools.ok("canvas_create", json!({"title": "Plan \"A\""})).await;
    let operations = json!([
        {"type": "node.create", "clientId": "a", "node": {"type": "text", "metadata": {"content": "say \"done\"\nnow"}}},
        {"type": "node.create", "clientId": "b", "node": {"type": "sticky"}, "near": "a"},
        {"type": "section.create", "clientId": "s", "title": "Ideas", "nodeIds": ["a", "b"]},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "list"},
    ]);
    let canvas = &made["canvas"];
    let edit = json!({"canvas": canvas, "revision": made["revision"], "operations": operations});
    let mut trial = edit.clone();
    trial["dryRun"] = json!(true);
    let tried = tools.ok("canvas_edit", trial).await;
    assert_eq!(
        (&tried["dryRun"], &tried["revision"], &tried["findings"]),
        (&json!(true), &made["revision"], &json!([]))
    );
    let edited = tools.ok("canvas_edit", edit).await;
    assert_eq!(edited["created"], json!({"a": "n1", "b": "n2", "s": "n3"}));
    let created = &edited["created"];
    let named = json!({"type": "node.create", "clientId": "n1", "node": {"type": "text"}});
    let named = json!({"canvas": canvas, "revision": edited["revision"], "operations": [named]});
    let refused = tools.0.call("canvas_edit", named).await.fails("input_validation_error");
    let field = &refused["error"]["fields"][0];
    assert_eq!(field["field"], "operations[0].clientId");
    assert!(field["message"].as_str().is_some_and(|message| message.ends_with("use new-1")), "{refused}");
    let read = tools.call("canvas_read", json!({"canvas": canvas})).await;
    let outline = read.content[0]["text"].as_str().expect("a text").to_owned();
    assert_eq!(read.value["outline"], outline, "both forms say the same");
    assert!(outline.contains(r#""say \"done\"\nnow""#), "one line, in quotes: {outline}");
    let section = tools.ok("canvas_read", json!({"canvas": canvas, "section": created["s"]})).await;
    assert_eq!(section["outline"].as_str().expect("a text").lines().count(), 5);
    let nodes = tools.ok("canvas_read", json!({"canvas": canvas, "nodes": [created["b"]]})).await;
    assert_eq!(nodes["nodes"][0]["incoming"][0]["purpose"], "list", "{nodes}");
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!((&review["doneClaimAllowed"], &review["revision"]), (&json!(true), &edited["revision"]));
    // The address that people see names the canvas as well.
    let whole = user.canvas(text(&made, "/canvas")).await;
    let long = format!("http://any.example/c/{}/{}", text(&whole, "/ownerUid"), text(&whole, "/id"));
    for url in [&made["url"], &json!(long)] {
        assert_eq!(tools.ok("canvas_read", json!({"canvas": url})).await["revision"], edited["revision"]);
    }
    let agent = tools.ok("canvas_create", json!({"agent": true})).await;
    assert_eq!(tools.ok("canvas_create", json!({"agent": true})).await["canvas"], agent["canvas"]);
}

#[tokio::test]
async fn a_canvas_and_an_image_are_seen() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, _, node) = board(&tools.0).await;
    let seen = tools.call("canvas_view", json!({"canvas": canvas, "width": 300, "labels": true})).await;
    assert_eq!(seen.value["labels"], json!([node]));
    assert_eq!(images::size(&seen.images()[0]).0, 300);
    let part = tools.call("canvas_view", json!({"canvas": canvas, "nodes": [node]})).await;
    assert_eq!(part.images().len(), 1);
    let id = user.canvas(canvas.as_str().expect("a slug")).await["id"].clone();
    let own = tools.call("canvas_view", json!({"canvas": id})).await;
    for seen in [seen, part, own] {
        let link = seen.content.iter().find(|part| part["type"] == "resource_link").expect("a link");
        assert_eq!(link["uri"], format!("canvas://{}/render.png", canvas.as_str().expect("a slug")));
        let read = user.mcp_result(STATELESS, "resources/read", json!({"uri": link["uri"]})).await;
        assert_eq!(read["contents"][0]["mimeType"], "image/png");
    }
    let asset = tools.ok("find", json!({"kind": "asset", "canvas": canvas})).await["items"][0]["handle"].clone();
    let seen = tools.call("canvas_view", json!({"asset": asset})).await;
    assert_eq!(seen.value["mediaType"], "image/jpeg");
    let link = seen.content.iter().find(|part| part["type"] == "resource_link").expect("a link");
    let (_, name) = asset.as_str().expect("a handle").split_once(':').expect("a handle");
    assert_eq!(link["uri"], format!("canvas://asset/{}", name.replace(':', "/")));
}

#[tokio::test]
async fn what_changed_is_told_in_lines_or_by_the_outline() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let made = tools.ok("canvas_create", json!({})).await;
    let canvas = &made["canvas"];
    let create = |at: usize| {
        let metadata = json!({"content": format!("note {at} {}", "and on ".repeat(20))});
        json!({"type": "node.create", "clientId": format!("t{at}"), "node": {"type": "text", "metadata": metadata}})
    };
    let connect = json!({"type": "connection.create", "clientId": "k", "fromNodeId": "t1", "toNodeId": "t2"});
    let operations: Vec<Value> = (1..=8).map(create).chain([connect]).collect();
    let edit = json!({"canvas": canvas, "revision": made["revision"], "operations": operations});
    let edited = tools.ok("canvas_edit", edit).await;
    let all = tools.ok("canvas_read", json!({"canvas": canvas, "since": made["revision"], "text": "none"})).await;
    assert!(all["outline"].as_str().is_some_and(|text| text.starts_with("the changes are longer")), "{all}");
    let rename = json!([
        {"type": "node.update", "nodeId": "n3", "patch": {"title": "New", "metadata": {"content": "short"}}},
    ]);
    let edit = json!({"canvas": canvas, "revision": edited["revision"], "operations": rename});
    tools.ok("canvas_edit", edit).await;
    let delete = json!({"canvas": canvas, "revision": edited["revision"], "nodes": ["n2"]});
    tools.ok("canvas_delete", delete).await;
    let read = tools.call("canvas_read", json!({"canvas": canvas, "since": edited["revision"]})).await;
    let lines = read.value["changes"].as_array().expect("lines");
    let line = lines[0].as_str().expect("a line");
    assert!(line.starts_with(r#"n3 by e2e: text "New" "#) && line.ends_with(r#" text "short""#), "{line}");
    assert_eq!(lines[1..], [json!("n2 deleted by e2e"), json!("c1 deleted")]);
    assert!(
        text(&read.content[0], "/text").lines().skip(1).eq(lines.iter().map(|line| line.as_str().expect("a line")))
    );
    let unknown = tools.ok("canvas_read", json!({"canvas": canvas, "since": "none"})).await;
    assert!(unknown["outline"].as_str().is_some_and(|text| text.starts_with("too much has changed")), "{unknown}");
}

#[tokio::test]
async fn nodes_and_connections_are_deleted_by_a_call_of_their_own() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let operations = json!([
        {"type": "node.create", "clientId": "a", "node": {"type": "text"}},
        {"type": "node.create", "clientId": "b", "node": {"type": "text"}},
        {"type": "connection.create", "fromNodeId": node, "toNodeId": "a"},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b"},
    ]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let edited = tools.ok("canvas_edit", edit).await;
    let delete = json!({"canvas": canvas, "revision": edited["revision"], "nodes": ["n3"], "connections": ["c1"]});
    let mut trial = delete.clone();
    trial["dryRun"] = json!(true);
    let tried = tools.ok("canvas_delete", trial).await;
    assert_eq!((&tried["dryRun"], &tried["revision"]), (&json!(true), &edited["revision"]));
    let deleted = tools.ok("canvas_delete", delete.clone()).await;
    assert_eq!(deleted["deletedNodes"], json!(["n3"]));
    let mut gone: Vec<&str> =
        deleted["deletedConnections"].as_array().expect("refs").iter().filter_map(Value::as_str).collect();
    gone.sort_unstable();
    assert_eq!(gone, ["c1", "c2"], "those of the node are gone as well");
    assert_eq!(tools.ok("canvas_delete", delete).await["replayed"], true);
    let restore = json!([
        {"type": "node.restore", "nodeId": "n3"}, {"type": "connection.restore", "connectionId": "c2"},
    ]);
    let restored = json!({"canvas": canvas, "revision": deleted["revision"], "operations": restore});
    let restored = tools.ok("canvas_edit", restored).await;
    assert_eq!(restored["changedNodes"], json!(["n3"]), "{restored}");
    let missing =
        json!({"canvas": canvas, "revision": restored["revision"], "connections": ["c2"], "nodes": ["n9", "n2"]});
    let refused = tools.0.call("canvas_delete", missing).await.fails("unprocessable_entity");
    assert_eq!(refused["error"]["fields"][0]["field"], "nodes[0]", "{refused}");
    let many = json!({"canvas": canvas, "revision": "r", "nodes": vec!["n1"; 200], "connections": ["c1"]});
    for arguments in [json!({"canvas": canvas, "revision": "r"}), many] {
        let refused = tools.0.call("canvas_delete", arguments).await.fails("input_validation_error");
        assert_eq!(refused["error"]["fields"][0]["field"], "nodes", "{refused}");
    }
}

#[tokio::test]
async fn an_edit_with_deletions_is_answered_with_the_calls_for_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let operations = json!([
        {"type": "node.delete", "nodeId": node},
        {"type": "node.create", "clientId": "t", "node": {"type": "text"}},
    ]);
    let edit = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let refused = tools.0.call("canvas_edit", edit).await.fails("input_validation_error");
    assert_eq!(refused["error"]["fields"][0]["field"], "operations[0].type", "{refused}");
    let steps = refused["next"].as_array().expect("steps");
    assert_eq!((&steps[0]["tool"], &steps[1]["tool"]), (&json!("canvas_delete"), &json!("canvas_edit")), "{refused}");
    tools.ok("canvas_delete", steps[0]["arguments"].clone()).await;
    let made = tools.ok("canvas_edit", steps[1]["arguments"].clone()).await;
    assert_eq!(made["created"], json!({"t": "n2"}));
}

#[tokio::test]
async fn a_review_offers_to_delete_the_empty_slots_of_agents() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, _) = board(&tools.0).await;
    let slot = json!([{"type": "node.create", "node": {"type": "image"}}]);
    tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": slot})).await;
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!(review["delivery"]["nonDurableOutputHandles"], json!(["n2"]), "{review}");
    let steps = review["next"].as_array().expect("steps");
    let delete = steps.iter().find(|step| step["tool"] == "canvas_delete").expect("a step");
    assert_eq!(delete["arguments"]["nodes"], json!(["n2"]), "{review}");
    tools.ok("canvas_delete", delete["arguments"].clone()).await;
    assert_eq!(tools.ok("canvas_review", json!({"canvas": canvas})).await["doneClaimAllowed"], true);
}

#[tokio::test]
async fn an_action_is_described_by_one_line_a_parameter() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let described = tools.call("describe", json!({"handle": "action:resize"})).await;
    let params = described.value["facts"]["params"].as_array().expect("lines");
    assert!(params.iter().any(|line| line.as_str().is_some_and(|line| line.starts_with("width"))), "{params:?}");
    assert!(text(&described.content[0], "/text").len() < 1000, "{}", described.value);
}

#[tokio::test]
async fn a_long_outline_goes_on_in_pages() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let made = tools.ok("canvas_create", json!({})).await;
    let node =
        |at: usize| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 400 * at, "y": 0}}});
    let operations: Vec<Value> = (0..200).map(node).collect();
    let edit = json!({"canvas": made["canvas"], "revision": made["revision"], "operations": operations});
    tools.ok("canvas_edit", edit).await;
    let read = tools.ok("canvas_read", json!({"canvas": made["canvas"], "maxChars": 3000})).await;
    let outline = read["outline"].as_str().expect("a text");
    let (kept, last) = outline.trim_end().rsplit_once('\n').expect("lines");
    let cursor = last.strip_prefix("... more: cursor=").expect("a cursor");
    let is_whole = |line: &str| line.trim_start().starts_with('n') && line.ends_with("320x160");
    assert!(outline.len() <= 3000 && kept.lines().skip(1).all(is_whole), "{outline}");
    let rest = tools.ok("canvas_read", json!({"canvas": made["canvas"], "cursor": cursor})).await;
    let rest = rest["outline"].as_str().expect("a text");
    assert_eq!(kept.lines().count() + rest.lines().count(), 202, "two heads and every node once");
}

#[tokio::test]
async fn an_upload_is_stored_once() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let image = STANDARD.encode(images::jpeg(60, 40));
    let first = tools.ok("asset_upload", json!({"data": image, "name": "näh.jpg"})).await;
    assert_eq!((&first["name"], &first["width"], &first["height"]), (&json!("näh.jpg"), &json!(60), &json!(40)));
    let again =
        tools.ok("asset_upload", json!({"data": format!("data:image/jpeg;base64,{image}"), "name": "näh.jpg"})).await;
    assert_eq!((&again["asset"], &again["replayed"]), (&first["asset"], &json!(true)));
}

#[tokio::test]
async fn an_upload_says_what_was_removed_from_it() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let photo = STANDARD.encode(images::photo_with_place(60, 40));
    let stored = tools.ok("asset_upload", json!({"data": photo})).await;
    assert_eq!(stored["metadataRemoved"], json!(["location"]), "{stored}");
    let stored = tools.ok("asset_upload", json!({"data": STANDARD.encode(images::jpeg(60, 40))})).await;
    assert_eq!(stored.get("metadataRemoved"), None, "{stored}");
}

#[tokio::test]
async fn files_of_a_shell_are_uploaded_and_downloaded_by_links() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let canvas = tools.ok("canvas_create", json!({})).await["canvas"].clone();
    let pictures = [images::jpeg(60, 40), images::png(30, 20)];
    let files = json!([{"name": "a.jpg"}, {"name": "b.png"}]);
    let links = json!({"files": files, "canvas": canvas, "place": {"title": "Shot"}});
    let links = tools.call("asset_upload", links).await;
    let uploads = links.value["uploads"].as_array().expect("links");
    let mut items = Vec::new();
    for (upload, picture) in uploads.iter().zip(&pictures) {
        let curl = text(upload, "/curl");
        assert!(
            text(&links.content[0], "/text").lines().any(|line| line == curl),
            "{}",
            text(&links.content[0], "/text")
        );
        let url = curl.rsplit('\'').nth(1).expect("a URL");
        let put = stack.anonymous().call(reqwest::Method::PUT, url).untyped(picture.clone());
        items.push(put.await.expect(201).json()["node"].clone());
    }
    items.push(json!("node:absent"));
    let answer = tools.call("asset_download", json!({"items": items, "canvas": canvas})).await;
    for (link, picture) in answer.value["downloads"].as_array().expect("links").iter().zip(&pictures) {
        let line = format!(
            "{}  {} {} B sha256 {}…  {}",
            text(link, "/item"),
            text(link, "/name"),
            picture.len(),
            &text(link, "/sha256")[..16],
            text(link, "/url")
        );
        assert!(
            text(&answer.content[0], "/text").lines().any(|it| it == line),
            "{}",
            text(&answer.content[0], "/text")
        );
        assert!(stack.anonymous().get(text(link, "/url")).await.expect(200).body == *picture);
    }
    assert_eq!(answer.value["refused"], json!([{"item": "node:absent", "code": "not_found"}]));
    assert!(
        text(&answer.content[0], "/text").contains("node:absent  no file: not_found"),
        "{}",
        text(&answer.content[0], "/text")
    );
}

#[tokio::test]
async fn a_video_is_uploaded_and_a_frame_of_it_becomes_an_image() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let canvas = tools.ok("canvas_create", json!({})).await["canvas"].clone();
    let film = STANDARD.encode(films::unique(films::SILENT));
    let stored = tools.ok("asset_upload", json!({"data": film, "name": "waves.mp4", "canvas": canvas})).await;
    let arguments = json!({
        "canvas": canvas, "revision": stored["revision"], "inputs": [stored["node"]],
        "steps": [{"action": "video-frame", "params": {"at": "last"}}],
    });
    let done = tools.ok("action_run", arguments).await["runs"][0].clone();
    assert_eq!(done["status"], "succeeded", "{done}");
    let facts = tools.ok("describe", json!({"handle": "action:video-frame"})).await;
    assert_eq!(facts.pointer("/facts/medium"), Some(&json!("video")), "{facts}");
}

#[tokio::test]
async fn images_and_products_are_imported() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let shop = stack.take_receiver();
    shop.answer_with(|request| match request.path.as_str() {
        "/boots.png" => Answer::status(200).header("content-type", "image/png").body(images::scene(320, 240, 1)),
        "/boots" => {
            let product =
                json!({"@context": "https://schema.org", "@type": "Product", "name": "Boots", "image": ["/boots.png"]});
            let page = format!("<script type='application/ld+json'>{product}</script>");
            Answer::status(200).header("content-type", "text/html; charset=utf-8").body(page.into_bytes())
        }
        _ => Answer::status(404),
    });
    let made = tools.ok("canvas_create", json!({})).await;
    let import =
        |url: &str, form: &str| json!({"canvas": made["canvas"], "url": shop.url(url), "as": form, "title": "Boots"});
    let image = tools.call("import_url", import("/boots.png", "image")).await;
    assert_eq!((image.images().len(), image.value["images"].as_array().map(Vec::len)), (1, Some(1)));
    assert_eq!(tools.ok("import_url", import("/boots.png", "image")).await["replayed"], true);
    let pack = tools.ok("import_url", import("/boots", "product")).await;
    assert!(pack["status"] == "succeeded" && pack["section"].is_string(), "{pack}");
}

#[tokio::test]
async fn an_action_makes_its_own_target() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let arguments = json!({
        "canvas": canvas, "revision": revision, "inputs": [node],
        "steps": [{"action": "resize", "params": {"width": 100}}], "place": {"title": "Small"},
    });
    let made = tools.call("action_run", arguments).await;
    let run = &made.value["runs"][0];
    let output = &run["outputs"][0];
    assert_eq!((&run["status"], &output["width"], &run["creditCost"]), (&json!("succeeded"), &json!(100), &json!(0)));
    assert_eq!(made.images().len(), 1);
    let read = tools.ok("canvas_read", json!({"canvas": canvas, "nodes": [output["node"]]})).await;
    assert_eq!(
        (&read["nodes"][0]["title"], &read["nodes"][0]["incoming"][0]["node"]),
        (&json!("Small"), &node),
        "{read}"
    );
}

#[tokio::test]
async fn actions_run_in_a_row_on_several_images() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let steps = json!([
        {"action": "change-aspect-ratio", "params": {"ratio": "4:5"}},
        {"action": "overlay-image", "with": node},
        {"action": "resize", "params": {"width": 40, "height": 50}},
    ]);
    let arguments = json!({"canvas": canvas, "revision": revision, "inputs": [node, node], "steps": steps});
    let made = tools.call("action_run", arguments.clone()).await;
    let runs = made.value["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), made.images().len()), (2, 2));
    for run in runs {
        let output = &run["outputs"][0];
        assert_eq!(
            (&run["status"], &output["width"], &output["height"]),
            (&json!("succeeded"), &json!(40), &json!(50))
        );
    }
    let again = tools.ok("action_run", arguments).await;
    assert!(again["runs"].as_array().expect("runs").iter().all(|run| run["replayed"] == true), "{again}");
}

#[tokio::test]
async fn images_are_generated_edited_and_varied() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = Checked::new(&user).await;
    let (canvas, mut revision, node) = board(&tools.0).await;
    for (mode, more) in [
        ("generate", json!({"prompt": "a harbor", "count": 2})),
        ("edit", json!({"prompt": "at night", "references": [{"handle": node, "role": "identity"}]})),
        ("variations", json!({"references": [node], "count": 3, "maxCredits": 50})),
    ] {
        let mut arguments = json!({"canvas": canvas, "revision": revision, "mode": mode, "model": "sketch"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let made = tools.call("image_generate", arguments).await;
        let count = more["count"].as_u64().unwrap_or(1) as usize;
        assert_eq!(
            (&made.value["status"], made.images().len()),
            (&json!("succeeded"), count),
            "{mode}: {}",
            made.value
        );
        assert_eq!(made.value["standIn"], true, "{mode}");
        assert!(made.value["creditCost"].as_i64() > Some(0), "{mode}");
        revision = made.value["revision"].clone();
    }
}

#[tokio::test]
async fn eight_images_are_two_runs() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 1000).await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, _) = board(&tools.0).await;
    let call = |count: u32, more: Value| {
        let mut call = json!({
            "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "a harbor", "count": count,
        });
        call.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        call
    };
    let made = tools.call("image_generate", call(8, json!({"place": {"x": 2000, "y": 0}}))).await;
    let outputs: Vec<usize> = made.value["runs"]
        .as_array()
        .expect("two runs")
        .iter()
        .map(|run| run["outputs"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!((outputs, made.images().len()), (vec![4, 4], 4), "{}", made.value);
    let spent = 1000 - tools.ok("status", json!({})).await["credit"].as_i64().expect("credit");
    let again = tools.ok("image_generate", call(8, json!({"place": {"x": 2000, "y": 0}}))).await;
    let runs = |value: &Value| {
        value["runs"].as_array().expect("runs").iter().map(|run| run["run"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(runs(&again), runs(&made.value));
    let left = tools.ok("status", json!({})).await["credit"].as_i64().expect("credit");
    assert_eq!(1000 - left, spent, "a call that is repeated costs nothing");
    // Five are four and one, of which the second owes what was asked for besides.
    let five = tools.ok("image_generate", call(5, json!({"asked": 6}))).await;
    assert_eq!(five["runs"][1]["outputs"].as_array().map(Vec::len), Some(1), "{five}");
    let review = tools.ok("canvas_review", json!({"canvas": canvas})).await;
    assert_eq!(review["delivery"]["failedOutputHandles"], json!([five["runs"][1]["run"]]), "{review}");
    let few = tools.0.call("image_generate", call(5, json!({"asked": 4}))).await.fails("input_validation_error");
    assert_eq!(few["error"]["fields"][0]["field"], "asked");
    let many = tools.0.call("image_generate", call(9, json!({}))).await.fails("input_validation_error");
    assert_eq!(many["error"]["fields"][0]["field"], "count");
}

#[tokio::test]
async fn a_video_is_generated() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = Checked::new(&user).await;
    let (canvas, _, node) = board(&tools.0).await;
    let arguments =
        json!({"model": "animatic", "prompt": "a walk", "durationSeconds": 2, "canvas": canvas, "firstFrame": node});
    let made = tools.ok("video_generate", arguments.clone()).await;
    assert!(made["status"] == "succeeded" && made["outputs"][0]["downloadUrl"].is_string(), "{made}");
    assert_eq!(tools.ok("video_generate", arguments.clone()).await["run"], made["run"]);
    let mut another = arguments;
    another["attempt"] = json!(2);
    another["wait"] = json!(0);
    assert_ne!(tools.ok("video_generate", another).await["run"], made["run"]);
    assert!(made["outputs"][0]["asset"].is_null(), "{made}");

    // Kept, once; and one that is on the canvas from the beginning.
    let keep = json!({"job": made["run"], "canvas": canvas});
    let kept = tools.ok("video_keep", keep.clone()).await;
    assert_eq!((&kept["wasKept"], &kept["durationSeconds"]), (&json!(false), &json!(2.0)));
    let again = tools.ok("video_keep", keep).await;
    assert_eq!((&again["wasKept"], &again["asset"]), (&json!(true), &kept["asset"]));
    let found = tools.ok("find", json!({"kind": "asset", "canvas": canvas})).await;
    assert!(found["items"].as_array().expect("a list").iter().any(|it| it["handle"] == kept["asset"]), "{found}");
    let revision = tools.ok("canvas_read", json!({"canvas": canvas})).await["revision"].clone();
    let placed =
        json!({"model": "animatic", "prompt": "a walk", "durationSeconds": 1, "canvas": canvas, "revision": revision});
    let placed = tools.ok("video_generate", placed).await;
    let output = &placed["outputs"][0];
    assert!(placed["canvas"] == canvas && output["asset"].is_string() && output["node"].is_string(), "{placed}");
    let lacking = json!({"model": "animatic", "prompt": "a walk", "canvas": canvas, "place": {"title": "Walk"}});
    let refused = tools.0.call("video_generate", lacking).await.fails("input_validation_error");
    assert!(refused.to_string().contains("revision"), "{refused}");
}

#[tokio::test]
async fn a_recipe_is_forked_made_and_run() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let note = json!([{"type": "node.create", "node": {"type": "sticky"}}]);
    tools.ok("canvas_edit", json!({"canvas": canvas, "revision": revision, "operations": note})).await;
    // What others have added meanwhile does not matter.
    let fork = json!({"canvas": canvas, "revision": revision, "fork": "recipe:product-hero-shot"});
    let forked = tools.ok("workflow_create", fork).await;
    assert!(!forked["changedNodes"].as_array().expect("ids").is_empty());
    let workflow = json!({
        "canvas": canvas, "name": "Line", "inputs": [{"key": "topic", "label": "Topic", "type": "text", "useAsDefault": false}],
        "outputs": [{"key": "line", "label": "Line", "type": "text", "prompt": "One line on {{topic}}", "inputKeys": ["topic"]}],
    });
    let made = tools.ok("workflow_create", workflow).await;
    assert!(
        made["recipe"].as_str().is_some_and(|recipe| recipe.starts_with("recipe:")) && made["instance"].is_string(),
        "{made}"
    );
    let run =
        json!({"canvas": canvas, "revision": made["revision"], "recipe": made["recipe"], "inputs": {"topic": "rope"}});
    let run = tools.ok("recipe_run", run).await;
    assert!(run["status"] == "succeeded" && run["outputs"][0]["text"].is_string(), "{run}");
    let hero = json!({"canvas": canvas, "revision": run["revision"], "recipe": "recipe:product-hero-shot", "inputs": {"pack": node}});
    let hero = tools.call("recipe_run", hero).await;
    assert!(hero.value["status"] == "succeeded" && !hero.images().is_empty(), "{}", hero.value);
}

#[tokio::test]
async fn work_is_started_awaited_and_canceled() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, _) = board(&tools.0).await;
    let start = |revision: &Value, prompt: &str| json!({"canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": prompt, "wait": 0});
    let started = tools.ok("image_generate", start(&revision, "one")).await;
    assert_eq!((&started["status"], &started["next"][0]["tool"]), (&json!("queued"), &json!("run_wait")), "{started}");
    let waited = tools.call("run_wait", started["next"][0]["arguments"].clone()).await;
    assert_eq!((&waited.value["runs"][0]["status"], waited.images().len()), (&json!("succeeded"), 1));
    let started = tools.ok("image_generate", start(&started["revision"], "two")).await;
    let canceled = tools.ok("run_cancel", json!({"run": started["run"], "removeTargets": true})).await;
    // It may have been over already.
    assert_ne!(canceled["status"], "queued", "{canceled}");
}

#[tokio::test]
async fn work_whose_nodes_are_removed_names_them_no_more_and_tells_the_revision_after_it() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    stack.grant(&user.uid, 100).await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, _) = board(&tools.0).await;
    let start = json!({
        "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": "one", "count": 2, "wait": 0,
    });
    let started = tools.ok("image_generate", start).await;
    let nodes = |work: &Value| {
        work["outputs"].as_array().expect("outputs").iter().map(|it| it["node"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(nodes(&started), ["n2", "n3"]);
    // A repetition answers the same.
    for _ in 0..2 {
        let canceled = tools.ok("run_cancel", json!({"run": started["run"], "removeTargets": true})).await;
        let present = tools.ok("canvas_read", json!({"canvas": canvas})).await;
        assert_eq!((&canceled["status"], &canceled["canvas"]), (&json!("canceled"), &canvas), "{canceled}");
        assert_eq!(
            (nodes(&canceled), &canceled["revision"]),
            (vec![Value::Null; 2], &present["revision"]),
            "{canceled}"
        );
        assert!(!present["outline"].as_str().expect("an outline").contains("n2 "), "{present}");
    }
}

#[tokio::test]
async fn elements_are_saved_and_managed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let image = STANDARD.encode(images::png(40, 40));
    let asset = tools.ok("asset_upload", json!({"data": image})).await["asset"].clone();
    let shelf =
        tools.ok("element_manage", json!({"do": "collection.create", "target": "Shelf"})).await["handle"].clone();
    let save = json!({"name": "Mug", "type": "product/object", "sources": [asset], "collections": [shelf]});
    let first = tools.ok("element_save", save.clone()).await;
    assert_eq!(first["collections"].as_array().map(Vec::len), Some(1));
    let facts = async || tools.ok("describe", json!({"handle": first["element"]})).await["facts"].clone();
    // A revision of which a part is refused leaves no version.
    let unknown =
        json!({"element": first["element"], "name": "Cup", "type": "product/object", "collections": ["none"]});
    tools.0.call("element_save", unknown).await.fails("unprocessable_entity");
    assert_eq!(facts().await["version"], 1);
    let mut revised = save;
    revised["element"] = first["element"].clone();
    revised["guidelines"] = json!("Blue.");
    let second = tools.ok("element_save", revised).await;
    assert_eq!(
        (&second["element"], second["version"].as_str().map(|it| it.ends_with("@v2"))),
        (&first["element"], Some(true))
    );
    // What a revision leaves out stays. Where a version is known, it names the Element as well.
    let renamed = json!({"element": second["version"], "name": "Cup", "type": "product/object"});
    let third = tools.ok("element_save", renamed).await;
    let latest = facts().await;
    assert_eq!(
        (&latest["version"], &latest["name"], &latest["guidelines"]),
        (&json!(3), &json!("Cup"), &json!("Blue."))
    );
    assert_eq!(
        (latest["sourceAssetIds"].as_array().map(Vec::len), latest["collectionIds"].as_array().map(Vec::len)),
        (Some(1), Some(1))
    );
    let manage = |what: &str, target: &Value, more: Value| {
        let mut arguments = json!({"do": what, "target": target});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    let element = &first["element"];
    assert_eq!(
        tools.ok("element_manage", manage("archive", &third["version"], json!({"confirm": true}))).await["lifecycle"],
        "archived"
    );
    assert_eq!(tools.ok("element_manage", manage("restore", element, json!({}))).await["lifecycle"], "active");
    assert_eq!(
        tools.ok("element_manage", manage("collection.rename", &shelf, json!({"name": "Top"}))).await["name"],
        "Top"
    );
    assert_eq!(
        tools.ok("element_manage", manage("collection.delete", &shelf, json!({"confirm": true}))).await["deleted"],
        true
    );
}

#[tokio::test]
async fn work_under_way_is_listed_behind_much_that_has_ended() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let tools = Checked::new(&user).await;
    let (canvas, revision, node) = board(&tools.0).await;
    let start = async |title: String| {
        let arguments = json!({
            "canvas": canvas, "revision": revision, "inputs": [node], "steps": [{"action": "rotate", "params": {"degrees": 90}}],
            "place": {"title": title}, "wait": 0,
        });
        tools.ok("action_run", arguments).await["runs"][0]["run"].clone()
    };
    let oldest = start("oldest".into()).await;
    for at in 0..51 {
        let run = start(format!("ended {at}")).await;
        assert_eq!(tools.ok("run_cancel", json!({"run": run})).await["status"], "canceled");
    }
    let status = tools.ok("status", json!({})).await;
    let running = status["running"].as_array().expect("work");
    assert_eq!((running.len(), &running[0]["run"], &status["moreRunning"]), (1, &oldest, &json!(false)), "{status}");
    for at in 0..25 {
        start(format!("waiting {at}")).await;
    }
    assert_eq!(tools.ok("status", json!({})).await["moreRunning"], true);
}
