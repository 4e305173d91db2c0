//! Writes of clients on a node: metadata, text and Sections (docs/reference/canvases.md#metadata).

use e2e::Stack;
use e2e::api::{placed, text};
use serde_json::{Map, Value, json};

fn create(node: Value) -> Value {
    placed(json!([{"type": "node.create", "clientId": "n", "node": node}]))[0].take()
}

#[tokio::test]
async fn content_belongs_to_text_and_sticky_alone() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let longest = "ü".repeat(24_000);
    for kind in ["text", "sticky"] {
        user.apply(id, json!([create(json!({"type": kind, "metadata": {"content": longest}}))])).await;
        let over = json!([create(json!({"type": kind, "metadata": {"content": format!("{longest}x")}}))]);
        user.batch(id, "r", over).await.expect_error(
            400,
            "input_validation_error",
            &["operations[0].node.metadata.content"],
        );
    }
    for kind in ["image", "video"] {
        let now = user.canvas(id).await;
        let made = json!([create(json!({"type": kind, "metadata": {"content": "no"}}))]);
        let refused = user.batch(id, text(&now, "/revision"), made).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].node.metadata.content"]);
        // The rule also holds where only the stored type decides.
        let node = user.apply(id, json!([create(json!({"type": kind}))])).await;
        let patch = json!([{"type": "node.update", "nodeId": node["resolvedIds"]["n"], "patch": {"metadata": {"content": "no"}}}]);
        let refused = user.batch(id, text(&node, "/canvas/revision"), patch).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].patch.metadata.content"]);
    }
}

#[tokio::test]
async fn alt_text_belongs_to_images_and_videos() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for kind in ["image", "video"] {
        for length in [0, 1000] {
            let metadata = json!({"altText": "ü".repeat(length)});
            let made = user.apply(id, json!([create(json!({"type": kind, "metadata": metadata}))])).await;
            let nodes = made["canvas"]["nodes"].as_array().expect("an array");
            assert_eq!(nodes.last().expect("one")["metadata"]["altText"], metadata["altText"], "{kind}");
        }
        let now = user.canvas(id).await;
        let long = json!([create(json!({"type": kind, "metadata": {"altText": "a".repeat(1001)}}))]);
        let refused = user.batch(id, text(&now, "/revision"), long).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].node.metadata.altText"]);
    }
    for kind in ["text", "sticky"] {
        let node = user.apply(id, json!([create(json!({"type": kind, "metadata": {"altText": null}}))])).await;
        let revision = text(&node, "/canvas/revision");
        let made = json!([create(json!({"type": kind, "metadata": {"altText": ""}}))]);
        let refused = user.batch(id, revision, made).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].node.metadata.altText"]);
        let patch = json!([{"type": "node.update", "nodeId": node["resolvedIds"]["n"], "patch": {"metadata": {"altText": "no"}}}]);
        let refused = user.batch(id, revision, patch).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].patch.metadata.altText"]);
    }
}

#[tokio::test]
async fn a_placeholder_is_an_image_or_video_and_says_true_or_false() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for kind in ["image", "video"] {
        let made = json!([create(json!({"type": kind, "metadata": {"placeholder": true}}))]);
        let made = user.apply(id, made).await;
        let node = &made["resolvedIds"]["n"];
        let path = format!("/canvases/{id}/nodes/{}", node.as_str().expect("an id"));
        assert_eq!(user.get(&path).await.ok()["node"]["metadata"]["placeholder"], true, "{kind}");
        let copy =
            json!([{"type": "node.duplicate", "clientId": "c", "nodeId": node, "position": {"x": 0, "y": 3000}}]);
        let copied = user.apply(id, copy).await;
        let path = format!("/canvases/{id}/nodes/{}", text(&copied, "/resolvedIds/c"));
        assert_eq!(user.get(&path).await.ok()["node"]["metadata"]["placeholder"], true, "{kind}");
        let odd = json!([{"type": "node.update", "nodeId": node, "patch": {"metadata": {"placeholder": "yes"}}}]);
        let refused = user.batch(id, text(&user.canvas(id).await, "/revision"), odd).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].patch.metadata.placeholder"]);
        let delete = json!([{"type": "node.delete", "nodeId": node}, {"type": "node.delete", "nodeId": copied["resolvedIds"]["c"]}]);
        user.apply(id, delete).await;
    }
    for kind in ["text", "sticky"] {
        let made = json!([create(json!({"type": kind, "metadata": {"placeholder": true}}))]);
        let refused = user.batch(id, text(&user.canvas(id).await, "/revision"), made).await;
        refused.expect_error(400, "input_validation_error", &["operations[0].node.metadata.placeholder"]);
    }
}

#[tokio::test]
async fn writable_metadata_keys_are_kept_and_all_others_refused() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let written = json!({
        "content": "c", "prompt": "p", "negativePrompt": "n", "model": "m", "size": "1024x1024", "quality": "high",
        "aspectRatio": "1:1", "count": 4, "durationSeconds": 5, "color": "#a0B1c2", "fontSize": 12, "textAlign": "center",
        "locked": true, "collapsed": false, "zIndex": -3, "tags": ["a", "favorite", "rating:5", "label:green"], "custom": {"any": [1, null, {"x": "y"}]},
    });
    let made = user.apply(id, json!([create(json!({"type": "sticky", "metadata": written}))])).await;
    let shown = made["canvas"]["nodes"][0]["metadata"].as_object().expect("an object");
    for (name, value) in written.as_object().expect("an object") {
        assert_eq!(shown.get(name), Some(value), "{name}");
    }
    for name in
        ["createdBy", "provenance", "job", "history", "upload", "source", "recipe", "status", "storage", "", "Content"]
    {
        let metadata: Map<String, Value> = [(name.to_owned(), json!("x"))].into_iter().collect();
        let create = json!([create(json!({"type": "text", "metadata": metadata}))]);
        let refused = user.batch(id, text(&user.canvas(id).await, "/revision"), create).await;
        assert_eq!(refused.expect(400).json()["error"]["code"], "input_validation_error", "{name}");
        let patch =
            json!([{"type": "node.update", "nodeId": made["resolvedIds"]["n"], "patch": {"metadata": {name: null}}}]);
        user.batch(id, text(&user.canvas(id).await, "/revision"), patch).await.expect(400);
    }
}

#[tokio::test]
async fn metadata_values_have_their_ranges() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let tags =
        |count: usize, length: usize| json!((0..count).map(|tag| format!("{tag:0>length$}")).collect::<Vec<_>>());
    for (name, good, bad) in [
        ("prompt", json!("p".repeat(8000)), json!("p".repeat(8001))),
        ("negativePrompt", json!("p".repeat(8000)), json!("p".repeat(8001))),
        ("model", json!("m".repeat(650)), json!("m".repeat(651))),
        ("size", json!("s".repeat(80)), json!("s".repeat(81))),
        ("quality", json!("q".repeat(80)), json!("q".repeat(81))),
        ("aspectRatio", json!("a".repeat(80)), json!("a".repeat(81))),
        ("count", json!(1), json!(0)),
        ("count", json!(4), json!(5)),
        ("count", json!(2), json!(1.5)),
        ("color", json!("#00ff7F"), json!("#0f7")),
        ("color", json!("#00ff7F"), json!("red")),
        ("fontSize", json!(1), json!(0.5)),
        ("fontSize", json!(1000), json!(1001)),
        ("textAlign", json!("right"), json!("justify")),
        ("locked", json!(true), json!("true")),
        ("zIndex", json!(7), json!(7.5)),
        ("tags", tags(24, 80), tags(25, 8)),
        ("tags", tags(1, 80), tags(1, 81)),
        ("custom", json!({}), json!([])),
        ("custom", json!({"a": 1}), json!("a")),
    ] {
        let node = |value: &Value| json!([create(json!({"type": "text", "metadata": {name: value}}))]);
        let now = user.canvas(id).await;
        let made = user.batch(id, text(&now, "/revision"), node(&good)).await;
        assert_eq!(made.status, 200, "{name} {good}: {made}");
        let refused = user.batch(id, text(&made.json(), "/canvas/revision"), node(&bad)).await;
        assert_eq!(refused.status, 400, "{name} {bad}: {refused}");
        let field = text(&refused.json(), "/error/fields/0/field").to_owned();
        assert!(field.starts_with(&format!("operations[0].node.metadata.{name}")), "{field}");
    }
}

#[tokio::test]
async fn metadata_is_merged_and_null_removes() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let metadata = json!({"prompt": "p", "count": 2, "custom": {"a": 1, "b": 2}});
    let made = user.apply(id, json!([create(json!({"type": "text", "metadata": metadata}))])).await;
    let node = &made["resolvedIds"]["n"];
    let patch = json!({"metadata": {"prompt": null, "model": "m", "custom": {"c": 3}, "size": null}});
    let patched = user.apply(id, json!([{"type": "node.update", "nodeId": node, "patch": patch}])).await;
    let mut shown = patched["canvas"]["nodes"][0]["metadata"].clone();
    shown.as_object_mut().expect("an object").remove("createdBy");
    assert_eq!(shown, json!({"count": 2, "model": "m", "custom": {"c": 3}}), "custom is replaced whole");
}

#[tokio::test]
async fn metadata_is_capped_at_64_kibibytes_after_the_merge() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    // {"custom":{"a":"…"}} serialized is the text and 20 more bytes.
    let frame = json!({"custom": {"a": ""}}).to_string().len();
    let metadata = |bytes: usize| json!({"custom": {"a": "x".repeat(bytes - frame)}});
    let full = user.apply(id, json!([create(json!({"type": "text", "metadata": metadata(65_536)}))])).await;
    let revision = text(&full, "/canvas/revision");
    let over = json!([create(json!({"type": "text", "metadata": metadata(65_537)}))]);
    assert_eq!(user.batch(id, revision, over).await.expect(400).json()["error"]["code"], "input_validation_error");
    // A patch is checked against the node that results from it.
    let patch =
        json!([{"type": "node.update", "nodeId": full["resolvedIds"]["n"], "patch": {"metadata": {"zIndex": 1}}}]);
    assert_eq!(user.batch(id, revision, patch).await.expect(400).json()["error"]["code"], "input_validation_error");
    let patch = json!([{"type": "node.update", "nodeId": full["resolvedIds"]["n"], "patch": {"metadata": {"custom": null, "zIndex": 1}}}]);
    user.batch(id, revision, patch).await.ok();
}

#[tokio::test]
async fn sections_have_members_and_free_them() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let made = user
        .apply(id, json!([
            {"type": "node.create", "clientId": "s", "node": {"type": "sticky", "position": {"x": 0, "y": 0}, "width": 2000, "height": 2000, "metadata": {"section": true}}},
            {"type": "node.create", "clientId": "m", "node": {"type": "text", "position": {"x": 50, "y": 50}, "metadata": {"sectionId": "s"}}},
        ]))
        .await;
    let (section, member) = (made["resolvedIds"]["s"].clone(), made["resolvedIds"]["m"].clone());
    assert_eq!(made["canvas"]["nodes"][1]["metadata"]["sectionId"], section, "stored as the plain id");
    let revision = text(&made, "/canvas/revision");
    let patch = |node: &Value, metadata: Value| json!([{"type": "node.update", "nodeId": node, "patch": {"metadata": metadata}}]);
    // A Section with members stays one, cannot be in a Section, must be a sticky, and only a Section has members.
    user.batch(id, revision, patch(&section, json!({"section": null}))).await.expect(422);
    user.batch(id, revision, patch(&section, json!({"sectionId": section}))).await.expect(400);
    user.batch(id, revision, patch(&member, json!({"section": true}))).await.expect(400);
    user.batch(id, revision, patch(&member, json!({"sectionId": "absent"}))).await.expect(422);
    user.batch(id, revision, patch(&member, json!({"sectionId": member}))).await.expect(422);
    let freed = user.apply(id, json!([{"type": "node.delete", "nodeId": section}])).await;
    assert_eq!(freed["deletedNodeIds"], json!([section]));
    assert_eq!(freed["changedNodeIds"], json!([member]), "members stay and belong to no Section");
    assert!(freed["canvas"]["nodes"][0]["metadata"].get("sectionId").is_none());
}

#[tokio::test]
async fn writable_text_comes_back_as_it_was_sent() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for odd in [
        "'; DROP TABLE nodes; --",
        "<script>\u{2028}",
        "a\u{301}\u{202e}rtl",
        "😀👩‍👩‍👧",
        "\u{1}\u{fffe}",
        " lead\ttrail\r\n",
    ] {
        let node =
            json!({"type": "text", "title": odd, "metadata": {"content": odd, "custom": {"custom": odd, odd: [odd]}}});
        let made = user.apply(id, json!([create(node)])).await;
        let nodes = user.canvas(id).await["nodes"].as_array().expect("a list").clone();
        let read = nodes.iter().find(|node| node["id"] == made["resolvedIds"]["n"]).expect("is there");
        assert_eq!((&read["title"], &read["metadata"]["content"]), (&json!(odd), &json!(odd)));
        assert_eq!(read["metadata"]["custom"], json!({"custom": odd, odd: [odd]}));
    }
}

#[tokio::test]
async fn an_emoji_counts_as_its_code_points() {
    let stack = &Stack::without_workers().await;
    const FAMILY: &str = "👩\u{200d}👩\u{200d}👧";
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for title in ["😀".repeat(160), FAMILY.repeat(32), "\u{202e}".repeat(160), "<b>".repeat(53)] {
        let rename = json!({"type": "canvas.update", "title": title});
        let made = user.apply(id, json!([create(json!({"type": "text", "title": title})), rename])).await;
        assert_eq!(made["canvas"]["title"], title);
        let made = user.send("/canvases", &json!({"title": title})).await.expect(201).json();
        assert_eq!(made["canvas"]["title"], title);
    }
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    for title in ["😀".repeat(161), FAMILY.repeat(33), "\u{202e}".repeat(161), "😀\0".into()] {
        let operations = json!([
            create(json!({"type": "text", "title": title})), {"type": "canvas.update", "title": title}
        ]);
        let refused = user.batch(id, &revision, operations).await;
        let fields = ["operations[0].node.title", "operations[1].title"];
        refused.expect_error(400, "input_validation_error", &fields);
        let refused = user.send("/canvases", &json!({"title": title})).await;
        refused.expect_error(400, "input_validation_error", &["title"]);
    }
}

/// A text of this length in which every character is special to some parser: XML, JSON, terminals or bidirectional text.
fn hostile(characters: usize) -> String {
    let piece = "</text><script>alert(1)</script>&xxe;]]>\"\\\u{202e}\u{2066}\u{1}\u{fffe}a\u{301}😀";
    piece.chars().cycle().take(characters).collect()
}

#[tokio::test]
async fn a_million_characters_are_refused_by_the_limit_of_their_field() {
    let stack = &Stack::without_workers().await;
    const MILLION: usize = 1_000_000;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    let made = user.apply(id, json!([create(json!({"type": "text"}))])).await;
    let node = &made["resolvedIds"]["n"];
    let update = |patch: Value| json!({"type": "node.update", "nodeId": node, "patch": patch});
    for (what, long) in [("plain", "x".repeat(MILLION)), ("hostile", hostile(MILLION))] {
        for (operation, field) in [
            (create(json!({"type": "text", "title": long})), "node.title"),
            (create(json!({"type": "sticky", "metadata": {"content": long}})), "node.metadata.content"),
            (create(json!({"type": "text", "metadata": {"prompt": long}})), "node.metadata.prompt"),
            (update(json!({"title": long})), "patch.title"),
            (update(json!({"metadata": {"content": long}})), "patch.metadata.content"),
            (json!({"type": "canvas.update", "title": long}), "title"),
        ] {
            println!("{what} {field}");
            let refused = user.batch(id, revision, json!([operation])).await;
            refused.expect_error(400, "input_validation_error", &[&format!("operations[0].{field}")]);
        }
    }
    let title = json!({"title": "x".repeat(MILLION)});
    user.send("/canvases", &title).await.expect_error(400, "input_validation_error", &["title"]);
    assert_eq!(user.canvas(id).await["nodes"].as_array().map(Vec::len), Some(1), "nothing was written");
}

#[tokio::test]
async fn the_longest_hostile_text_goes_through_json_and_render() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let (title, content) = (hostile(160), hostile(24_000));
    let node = |kind: &str, y: i32| {
        create(json!({"type": kind, "title": title, "position": {"x": 0, "y": y}, "width": 2000, "height": 600,
                      "metadata": {"content": content}}))
    };
    let mut other = node("sticky", 1000);
    other["clientId"] = json!("other");
    let rename = json!({"type": "canvas.update", "title": title});
    user.apply(id, json!([node("text", 0), other, rename])).await;
    let read = user.canvas(id).await;
    assert_eq!(read["title"], json!(title));
    for node in read["nodes"].as_array().expect("nodes") {
        assert_eq!((&node["title"], &node["metadata"]["content"]), (&json!(title), &json!(content)));
    }
    let reply = user.get(&format!("/canvases/{id}/render")).header("accept", "image/svg+xml").await.expect(200);
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    let parsed = roxmltree::Document::parse(&document).expect("well-formed");
    let texts: String =
        parsed.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    assert!(texts.contains("</text><script>alert(1)</script>"), "it is text");
    assert!(!parsed.descendants().any(|node| node.has_tag_name("script")));
    assert!(document.len() < 200_000, "no more than its frames hold: {} bytes", document.len());
    let outline = user.get(&format!("/canvases/{id}/outline")).await.expect(200);
    assert!(outline.body.len() <= 64 * 1024, "{} bytes", outline.body.len());
}
