//! Renders of a canvas and of its parts (docs/reference/canvases.md#render, docs/reference/canvases.md#render-parts).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::api::{text, unique};
use e2e::{PATIENCE, Part, Reply, Stack, User, images};
use roxmltree::Document;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const SVG: &str = "image/svg+xml";

/// Renders the canvas with this `Accept` header.
async fn rendered(user: &User, canvas: &Value, accept: &str) -> Reply {
    user.get(&format!("/canvases/{}/render", text(canvas, "/id"))).header("accept", accept).await
}

/// Renders the canvas as SVG.
async fn svg(user: &User, canvas: &str) -> String {
    let reply = user.get(&format!("/canvases/{canvas}/render")).header("accept", SVG).await.expect(200);
    String::from_utf8(reply.body.to_vec()).expect("UTF-8")
}

/// Polls the render until it has every image, that is, until it has an `ETag`.
async fn complete(user: &User, canvas: &str) -> Reply {
    testkit::wait_for("a complete render", PATIENCE, async || {
        let reply = user.get(&format!("/canvases/{canvas}/render")).await.expect(200);
        reply.header("etag").is_some().then_some(reply)
    })
    .await
}

fn create(id: &str, node: Value) -> Value {
    json!({"type": "node.create", "clientId": id, "node": node})
}

async fn a_canvas(user: &User) -> Value {
    let canvas = user.make_canvas().await;
    let note =
        json!({"type": "text", "title": "Hello", "position": {"x": 0, "y": 0}, "metadata": {"content": "world"}});
    user.apply(text(&canvas, "/id"), json!([create("a", note)])).await;
    user.canvas(text(&canvas, "/id")).await
}

#[tokio::test]
async fn an_svg_is_served_unless_png_is_wanted() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    for (accept, kind) in [
        (SVG, SVG),
        ("*/*", SVG),
        ("image/*", SVG),
        ("text/html,application/xhtml+xml,*/*;q=0.8", SVG),
        ("image/png;q=0.5, image/svg+xml", SVG),
        ("image/png", "image/png"),
        ("image/svg+xml;q=0.5, image/png", "image/png"),
    ] {
        let reply = rendered(&user, &canvas, accept).await.expect(200);
        assert_eq!(reply.header("content-type"), Some(kind), "{accept}");
    }
    let reply = user.get(&format!("/canvases/{}/render", text(&canvas, "/handle"))).await.expect(200);
    assert_eq!(reply.header("content-type"), Some(SVG), "without Accept, by handle");
    assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert!(reply.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    let parsed = Document::parse(&document).expect("well-formed");
    let root = parsed.root_element();
    assert!(root.has_tag_name(("http://www.w3.org/2000/svg", "svg")) && root.attribute("version") == Some("1.1"));
    assert!(document.contains(">Hello<") && document.contains(">world<"));
}

#[tokio::test]
async fn an_accept_that_admits_neither_is_406_and_judged_after_the_canvas() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    for accept in ["application/json", "image/jpeg", "image/svg+xml;q=0", "text/*, */*;q=0"] {
        rendered(&user, &canvas, accept).await.expect_error(406, "request_failed", &[]);
    }
    let gone = user.get("/canvases/none/render").header("accept", "text/plain").await;
    gone.expect_error(404, "not_found", &[]);
    let malformed = user.get("/canvases/a%20b/render").header("accept", "text/plain").await;
    malformed.expect_error(400, "input_validation_error", &["canvasId"]);
    let blind = stack.user_with("asset:read").await;
    blind.get("/canvases/none/render").await.expect_error(403, "forbidden", &[]);
    stack.anonymous().get("/canvases/none/render").await.expect_error(401, "unauthorized", &[]);
}

#[tokio::test]
async fn a_render_carries_an_etag_and_honours_if_none_match() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    for (accept, form) in [(SVG, "svg"), ("image/png", "png")] {
        let tag = format!("W/\"{revision}-{form}\"");
        let reply = rendered(&user, &canvas, accept).await.expect(200);
        assert_eq!(reply.header("etag"), Some(tag.as_str()));
        let vary = reply.header("vary").expect("has a Vary header").to_ascii_lowercase();
        assert!(["authorization", "accept", "accept-encoding"].iter().all(|name| vary.contains(name)), "{vary}");
        for known in [tag.clone(), format!("\"x\", {tag}"), tag.trim_start_matches("W/").to_owned(), "*".to_owned()] {
            let path = format!("/canvases/{id}/render");
            let same = user.get(&path).header("accept", accept).header("if-none-match", &known).await.expect(304);
            assert!(same.body.is_empty() && same.header("etag") == Some(tag.as_str()), "{known}");
        }
    }
    let path = format!("/canvases/{id}/render");
    for other in [format!("W/\"{revision}\""), format!("W/\"{revision}-png\"")] {
        user.get(&path).header("accept", SVG).header("if-none-match", &other).await.expect(200);
    }
    user.apply(id, json!([{"type": "canvas.update", "title": "Renamed"}])).await;
    let changed = user.get(&path).header("if-none-match", &format!("W/\"{revision}-svg\"")).await.expect(200);
    assert_ne!(changed.header("etag"), Some(format!("W/\"{revision}-svg\"").as_str()));
    assert!(String::from_utf8_lossy(&changed.body).contains("<title>Renamed</title>"));
}

#[tokio::test]
async fn each_theme_has_colors_and_an_etag_of_its_own() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    let path = |theme: &str| format!("/canvases/{}/render{theme}", text(&canvas, "/id"));
    for accept in [SVG, "image/png"] {
        let drawn = async |theme: &str| user.get(&path(theme)).header("accept", accept).await.expect(200);
        let [default, light, dark] = [drawn("").await, drawn("?theme=light").await, drawn("?theme=dark").await];
        assert_eq!((&light.body, light.header("etag")), (&default.body, default.header("etag")));
        assert_ne!(dark.body, light.body, "{accept}");
        let tag = dark.header("etag").expect("an entity tag").to_owned();
        assert_ne!(Some(tag.as_str()), light.header("etag"), "{accept}");
        let known =
            async |theme: &str| user.get(&path(theme)).header("accept", accept).header("if-none-match", &tag).await;
        known("?theme=dark").await.expect(304);
        known("").await.expect(200);
        // Both are kept at once.
        assert_eq!((drawn("").await.body, drawn("?theme=dark").await.body), (light.body, dark.body));
    }
    for wrong in ["", "Dark", "auto"] {
        user.get(&path(&format!("?theme={wrong}"))).await.expect_error(400, "input_validation_error", &["theme"]);
    }
}

#[tokio::test]
async fn no_rendering_is_compressed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    let encoded = async |accept: &str| {
        let path = format!("/canvases/{}/render", text(&canvas, "/id"));
        let reply = user.get(&path).header("accept", accept).header("accept-encoding", "gzip").await.expect(200);
        reply.header("content-encoding").map(ToOwned::to_owned)
    };
    assert_eq!(encoded(SVG).await, None);
    assert_eq!(encoded("image/png").await, None);
}

fn view_box(document: &str) -> Vec<f64> {
    let parsed = Document::parse(document).expect("well-formed");
    let numbers = parsed.root_element().attribute("viewBox").expect("a viewBox");
    numbers.split(' ').map(|number| number.parse().expect("a number")).collect()
}

#[tokio::test]
async fn the_view_box_holds_every_node_with_its_margin() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let at = |x: f64, y: f64| json!({"type": "sticky", "position": {"x": x, "y": y}, "width": 200, "height": 100});
    user.apply(id, json!([create("a", at(-300.0, 20.0)), create("b", at(500.0, 400.0))])).await;
    assert_eq!(view_box(&svg(&user, id).await), [-340.0, -20.0, 1080.0, 560.0]);
    user.apply(id, json!([create("c", at(-1e7, -1e7)), create("d", at(1e7, 1e7))])).await;
    assert_eq!(view_box(&svg(&user, id).await), [-10_000_040.0, -10_000_040.0, 20_000_280.0, 20_000_180.0]);
}

#[tokio::test]
async fn an_empty_canvas_is_a_sheet() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let [.., width, height] = view_box(&svg(&user, text(&canvas, "/id")).await)[..] else { panic!("four numbers") };
    assert!(width >= 100.0 && height >= 100.0);
    rendered(&user, &canvas, "image/png").await.expect(200);
}

#[tokio::test]
async fn sections_connections_and_nodes_are_drawn_in_this_order() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let node = |kind: &str, title: &str, x: i32, metadata: Value| json!({"type": kind, "title": title, "position": {"x": x, "y": 0}, "metadata": metadata});
    let operations = json!([
        create("a", node("image", "Reference", 0, json!({}))),
        create("b", node("image", "Result", 600, json!({}))),
        create("v", node("video", "Film", 1200, json!({}))),
        create("s", node("sticky", "Chapter one", 2000, json!({"section": true}))),
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "reference", "role": "texture"},
        {"type": "connection.create", "fromNodeId": "b", "toNodeId": "v", "purpose": "first-frame"},
    ]);
    user.apply(id, operations).await;
    let document = svg(&user, id).await;
    let place = |what: &str| document.find(what).unwrap_or_else(|| panic!("{what}: {document}"));
    assert!(place(">Chapter one</text>") < place("marker-end=\"url(#arrow-reference)\""));
    assert!(place("marker-end=\"url(#arrow-reference)\"") < place("marker-end=\"url(#arrow-first-frame)\""));
    assert!(place("marker-end=\"url(#arrow-first-frame)\"") < place(">Reference</text>"));
    assert!(document.contains(">texture</text>") && document.contains(">Empty slot</text>"));
}

#[tokio::test]
async fn a_viewer_may_render_and_a_stranger_sees_nothing() {
    let stack = &Stack::with_workers().await;
    let (owner, viewer, stranger) = (stack.user().await, stack.user().await, stack.user().await);
    let canvas = a_canvas(&owner).await;
    let path = format!("/canvases/{}/render", text(&canvas, "/handle"));
    stack.share(&owner, text(&canvas, "/id"), &viewer.uid, "viewer").await;
    assert_eq!(viewer.get(&path).await.expect(200).body, owner.get(&path).await.expect(200).body);
    let by_owner = format!("/canvases/{}/render?ownerUid={}", text(&canvas, "/id"), owner.uid);
    viewer.get(&by_owner).header("accept", "image/png").await.expect(200);
    stranger.get(&path).await.expect_error(404, "not_found", &[]);
    let tag = format!("W/\"{}-svg\"", text(&canvas, "/revision"));
    stranger.get(&path).header("if-none-match", &tag).await.expect_error(404, "not_found", &[]);
    let read_only = stack.user_with("canvas:read").await;
    stack.share(&owner, text(&canvas, "/id"), &read_only.uid, "viewer").await;
    read_only.get(&path).await.expect(200);
}

/// The embedded images of a document.
fn embedded(document: &str) -> Vec<(String, Vec<u8>)> {
    let parsed = Document::parse(document).expect("well-formed");
    let images = parsed.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "image")));
    images
        .map(|image| {
            let href = image.attribute(("http://www.w3.org/1999/xlink", "href")).expect("an image");
            let (kind, data) = href.strip_prefix("data:").and_then(|uri| uri.split_once(";base64,")).expect("data");
            (kind.to_owned(), STANDARD.decode(data).expect("base64"))
        })
        .collect()
}

#[tokio::test]
async fn an_image_is_embedded_no_larger_than_512() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for image in [
        images::png(900, 600),
        images::png(500, 900),
        images::png(100, 1000),
        images::png(2, 1024),
        images::transparent_png(700, 700),
    ] {
        user.upload_into(id, "image/png", image).await;
    }
    let reply = complete(&user, id).await;
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    let found: Vec<_> = embedded(&document).into_iter().map(|(kind, file)| (kind, images::size(&file))).collect();
    let jpeg = |width, height| ("image/jpeg".to_owned(), (width, height));
    let opaque = [jpeg(512, 341), jpeg(256, 461), jpeg(32, 320), jpeg(1, 512)];
    assert_eq!(found, [&opaque[..], &[("image/png".to_owned(), (512, 512))]].concat());
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    assert_eq!(reply.header("etag"), Some(format!("W/\"{revision}-svg\"").as_str()));
}

#[tokio::test]
async fn an_image_that_no_thumbnail_holds_is_a_placeholder_and_the_render_has_an_etag() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let strip = user.upload_into(id, "image/png", images::png(1, 513)).await;
    // The frame itself is now a narrow strip in which no label fits.
    let wider = json!({"type": "node.update", "nodeId": strip["node"], "patch": {"width": 320, "height": 320}});
    user.apply(id, json!([wider])).await;
    user.upload_into(id, "image/png", images::png(40, 40)).await;
    let reply = complete(&user, id).await;
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert_eq!(embedded(&document).len(), 1, "only the other image");
    assert!(document.contains("Image not shown"), "{document}");
    let tag = reply.header("etag").expect("a tag").to_owned();
    user.get(&format!("/canvases/{id}/render")).header("if-none-match", &tag).await.expect(304);
}

#[tokio::test]
async fn a_broken_image_is_a_placeholder_and_the_render_has_no_etag() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    user.upload_into(id, "image/png", images::broken_png(60, 60)).await;
    let shown = testkit::wait_for("the image to be marked as unreadable", PATIENCE, async || {
        let reply = user.get(&format!("/canvases/{id}/render")).await.expect(200);
        assert_eq!(reply.header("etag"), None);
        String::from_utf8_lossy(&reply.body).contains("Image cannot be read").then_some(reply)
    })
    .await;
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    let path = format!("/canvases/{id}/render");
    user.get(&path).header("if-none-match", &format!("W/\"{revision}-svg\"")).await.expect(200);
    assert!(embedded(&String::from_utf8_lossy(&shown.body)).is_empty());
}

#[tokio::test]
async fn hostile_text_is_text() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let markup = "</text></svg><script>alert(1)</script><!--&xxe;]]>";
    let node = |kind: &str, y: i32, content: String| {
        json!({"type": kind, "title": "<img src=x onerror=1>", "position": {"x": 0, "y": y}, "width": 2000, "height": 600,
               "metadata": {"content": content, "prompt": markup}})
    };
    user.apply(
        id,
        json!([
            create("a", node("text", 0, format!("{markup} \u{1}\u{b}\u{1b}\u{fffe}\u{ffff} \u{202e}abc"))),
            create("b", node("sticky", 1000, "\u{301}".repeat(20_000))),
            create("c", node("text", 2000, "漢".repeat(15_000))),
        ]),
    )
    .await;
    let document = svg(&user, id).await;
    let parsed = Document::parse(&document).expect("well-formed");
    let texts: String =
        parsed.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| node.text()).collect();
    assert!(texts.contains(markup) && texts.contains("\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd} abc"), "{texts}");
    assert!(!parsed.descendants().any(|node| node.has_tag_name("script") || node.has_tag_name("img")));
    assert!(document.len() < 200_000, "{}", document.len());
    rendered(&user, &canvas, "image/png").await.expect(200);
}

#[tokio::test]
async fn a_png_shows_the_canvas_within_2048_pixels() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let place = |x: i32| json!({"type": "sticky", "position": {"x": x, "y": 0}, "width": 200, "height": 160, "metadata": {"color": "#ff0000"}});
    user.apply(id, json!([create("a", place(0))])).await;
    let small = rendered(&user, &canvas, "image/png").await.expect(200);
    assert_eq!(images::size(&small.body), (560, 480), "twice its 280 by 240 units");
    let image = raster::decode(&small.body).expect("an image");
    let middle = (240 * image.width() as usize + 280) * image.channels().count();
    assert_eq!(&image.pixels()[middle..middle + 3], &[255, 0, 0], "the note's color");
    assert!(raster::probe(&small.body).expect("an image").format == raster::Format::Png);
    user.apply(id, json!([create("b", place(9_760))])).await;
    let large = rendered(&user, &canvas, "image/png").await.expect(200);
    assert_eq!(images::size(&large.body), (2048, 49));
    assert!(large.header("content-length").is_some());
}

#[tokio::test]
async fn equal_pngs_are_made_once() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let title = format!("canvas {}", unique());
    user.apply(text(&canvas, "/id"), json!([{"type": "canvas.update", "title": title}])).await;
    let png = || rendered(&user, &canvas, "image/png");
    let (a, b, c, d) = tokio::join!(png(), png(), png(), png());
    let first = a.expect(200).body;
    for other in [b, c, d] {
        assert_eq!(other.expect(200).body, first);
    }
    let document = svg(&user, text(&canvas, "/id")).await;
    let made: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM renditions JOIN blobs ON blobs.key = renditions.source_key
         WHERE renditions.width = 2048 AND blobs.sha256 = $1",
    )
    .bind(&Sha256::digest(document)[..])
    .fetch_one(stack.pool())
    .await
    .expect("counts");
    assert_eq!(made, 1);
}

#[tokio::test]
async fn an_image_without_its_rendition_is_a_placeholder_and_the_render_has_no_etag() {
    let stack = &Stack::builder().start().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    user.upload_into(id, "image/png", images::png(60, 60)).await;
    let path = format!("/canvases/{id}/render");
    let reply = user.get(&path).await.expect(200);
    assert_eq!(reply.header("etag"), None);
    assert_eq!(reply.header("cache-control"), Some("private, no-cache"));
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert!(document.contains(">Preview not ready</text>") && embedded(&document).is_empty());
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    user.get(&path).header("if-none-match", &format!("W/\"{revision}-svg\"")).await.expect(200);
    // Rendering enqueues a missing rendition if no task for it exists.
    sqlx::query("DELETE FROM task_queue WHERE kind = 'rendition'").execute(stack.pool()).await.expect("deletes");
    sqlx::query("DELETE FROM renditions").execute(stack.pool()).await.expect("deletes");
    user.get(&path).await.expect(200);
    let asked: i64 = sqlx::query_scalar("SELECT count(*) FROM renditions WHERE width = 512 AND state = 'pending'")
        .fetch_one(stack.pool())
        .await
        .expect("counts");
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn a_png_that_nobody_makes_is_503() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    let late = rendered(&user, &canvas, "image/png").await;
    assert!(late.header("retry-after").is_some(), "{late}");
    late.expect_error(503, "service_unavailable", &[]);
    assert!(!stack.log(Part::GATEWAY).contains("panicked"));
}

/// A Section with two members, and a node beside it; connections within and across.
async fn board(user: &User) -> (String, Value) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let node = |id: &str, kind: &str, x: i32, y: i32, metadata: Value| {
        json!({"type": "node.create", "clientId": id, "node": {"type": kind, "title": id, "position": {"x": x, "y": y},
            "width": 200, "height": 100, "metadata": metadata}})
    };
    let mut operations = json!([
        node("frame", "sticky", 0, 0, json!({"section": true})),
        node("first", "text", 40, 60, json!({"sectionId": "frame", "content": "first"})),
        node("second", "image", 440, 60, json!({"sectionId": "frame"})),
        node("outside", "text", 1200, 60, json!({"content": "outside"})),
        {"type": "connection.create", "fromNodeId": "first", "toNodeId": "second", "purpose": "reference", "role": "style"},
        {"type": "connection.create", "fromNodeId": "second", "toNodeId": "outside"},
    ]);
    operations[0]["node"]["width"] = json!(700);
    operations[0]["node"]["height"] = json!(200);
    let ids = user.apply(&canvas, operations).await["resolvedIds"].clone();
    (canvas, ids)
}

async fn render(user: &User, canvas: &str, query: &str, accept: &str) -> Reply {
    user.get(&format!("/canvases/{canvas}/render?{query}")).header("accept", accept).await
}

async fn svg_of(user: &User, canvas: &str, query: &str) -> String {
    let reply = render(user, canvas, query, "image/svg+xml").await.expect(200);
    String::from_utf8(reply.body.to_vec()).expect("UTF-8")
}

/// Ids of the nodes in a document.
fn shown(document: &str) -> Vec<String> {
    let parsed = Document::parse(document).expect("well-formed");
    let ids = parsed.descendants().filter_map(|element| element.attribute("id")?.strip_prefix("node-"));
    ids.map(str::to_owned).collect()
}

/// The view box as it is written.
fn box_of(document: &str) -> String {
    let parsed = Document::parse(document).expect("well-formed");
    parsed.root_element().attribute("viewBox").expect("a viewBox").to_owned()
}

fn named(ids: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| text(&ids[*name], "").to_owned()).collect()
}

#[tokio::test]
async fn a_section_is_drawn_with_its_members() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let id = text(&ids["frame"], "");
    let document = svg_of(&user, &canvas, &format!("section={id}")).await;
    assert_eq!(shown(&document), named(&ids, &["frame", "first", "second"]));
    assert!(document.contains(">style</text>") && document.matches("marker-end=").count() == 1, "{document}");
    assert_eq!(box_of(&document), "-40 -40 780 280");
    assert_eq!(svg_of(&user, &canvas, &format!("section=node%3A{id}")).await, document, "by handle");
}

#[tokio::test]
async fn the_named_nodes_are_drawn_with_the_connections_among_them() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let [first, second, outside] = ["first", "second", "outside"].map(|name| text(&ids[name], ""));
    let document = svg_of(&user, &canvas, &format!("nodes={second},node:{outside}")).await;
    assert_eq!(shown(&document), named(&ids, &["second", "outside"]));
    assert!(document.contains("url(#arrow-flow)\"><path") && !document.contains("url(#arrow-reference)\"><path"));
    assert_eq!(box_of(&document), "400 20 1040 180");
    let alone = svg_of(&user, &canvas, &format!("nodes={first}")).await;
    assert!(!alone.contains("marker-end=") && shown(&alone) == [first]);
    let twice = svg_of(&user, &canvas, &format!("nodes={outside}%2C{second},{second}")).await;
    assert_eq!(twice, document, "the order and repetitions do not matter");
}

#[tokio::test]
async fn what_the_request_alone_tells_is_400_by_its_name() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let id = text(&ids["first"], "");
    for (query, fields) in [
        (format!("section={id}&nodes={id}"), &["nodes"][..]),
        ("section=".into(), &["section"]),
        ("section=a%20b".into(), &["section"]),
        ("nodes=".into(), &["nodes"]),
        (format!("nodes={id},"), &["nodes"]),
        (format!("nodes={id};{id}"), &["nodes"]),
        (format!("nodes={id}&nodes={id}"), &["nodes"]),
        ("width=255".into(), &["width"]),
        ("width=2049".into(), &["width"]),
        ("width=".into(), &["width"]),
        ("labels=yes".into(), &["labels"]),
        ("labels=1&width=1&section=!&ownerUid=!".into(), &["labels", "width", "section", "ownerUid"]),
    ] {
        for accept in ["image/svg+xml", "image/png"] {
            render(&user, &canvas, &query, accept).await.expect_error(400, "input_validation_error", fields);
        }
    }
    // Violations come before the canvas, and the canvas before what it holds.
    render(&user, "absent", "width=1", "image/png").await.expect_error(400, "input_validation_error", &["width"]);
    render(&user, "absent", "section=absent", "image/png").await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn what_the_canvas_does_not_have_is_422() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let (first, frame) = (text(&ids["first"], ""), text(&ids["frame"], ""));
    let (_, others) = board(&user).await;
    let elsewhere = text(&others["first"], "");
    for (query, field) in [
        ("section=absent".to_owned(), "section"),
        (format!("section={first}"), "section"),
        (format!("section={}", text(&others["frame"], "")), "section"),
        (format!("nodes={first},absent"), "nodes"),
        (format!("nodes={elsewhere}"), "nodes"),
    ] {
        render(&user, &canvas, &query, "image/svg+xml").await.expect_error(422, "unprocessable_entity", &[field]);
    }
    user.apply(&canvas, json!([{"type": "node.delete", "nodeId": first}])).await;
    let gone = render(&user, &canvas, &format!("nodes={first}"), "image/png").await;
    assert!(gone.expect_error(422, "unprocessable_entity", &["nodes"]).len() > 4);
    assert_eq!(shown(&svg_of(&user, &canvas, &format!("section={frame}")).await), named(&ids, &["frame", "second"]));
}

/// A canvas with this many notes in rows of ten, and their ids in reading order.
async fn notes(user: &User, count: usize) -> (String, Vec<String>) {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let operations: Vec<Value> = (0..count)
        .map(|index| {
            let position = json!({"x": index % 10 * 200, "y": index / 10 * 200});
            json!({"type": "node.create", "clientId": format!("n{index}"),
                "node": {"type": "sticky", "position": position, "width": 150, "height": 150}})
        })
        .collect();
    let mut ids = json!({});
    for batch in operations.chunks(100) {
        let made = user.apply(&canvas, json!(batch)).await;
        ids.as_object_mut().expect("an object").extend(made["resolvedIds"].as_object().expect("ids").clone());
    }
    let ids = (0..count).map(|index| text(&ids, &format!("/n{index}")).to_owned()).collect();
    (canvas, ids)
}

#[tokio::test]
async fn up_to_200_nodes_are_named() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = notes(&user, 201).await;
    let most = svg_of(&user, &canvas, &format!("nodes={}", ids[..200].join(","))).await;
    assert_eq!(shown(&most).len(), 200);
    let more = render(&user, &canvas, &format!("nodes={}", ids.join(",")), "image/svg+xml").await;
    more.expect_error(400, "input_validation_error", &["nodes"]);
}

#[tokio::test]
async fn a_png_has_the_width_that_was_asked_for() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let section = format!("section={}", text(&ids["frame"], ""));
    for (width, size) in [(256, (256, 92)), (780, (780, 280)), (2048, (2048, 735))] {
        let png = render(&user, &canvas, &format!("{section}&width={width}"), "image/png").await.expect(200);
        assert_eq!(images::size(&png.body), size);
    }
    let natural = render(&user, &canvas, &section, "image/png").await.expect(200);
    assert_eq!(images::size(&natural.body), (1560, 560), "two pixels a unit");
    let svg = async |query: &str| svg_of(&user, &canvas, query).await;
    assert_eq!(svg(&format!("{section}&width=256")).await, svg(&section).await, "an SVG has no width");
    let high = json!({"type": "node.update", "nodeId": ids["outside"], "patch": {"width": 40, "height": 1000}});
    user.apply(&canvas, json!([high])).await;
    let query = format!("nodes={}&width=2048", text(&ids["outside"], ""));
    let high = render(&user, &canvas, &query, "image/png").await.expect(200);
    assert_eq!(images::size(&high.body), (228, 2048), "no higher than 2048");
}

#[tokio::test]
async fn every_view_has_an_etag_of_its_own() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let revision = text(&user.canvas(&canvas).await, "/revision").to_owned();
    let [frame, first, second] = ["frame", "first", "second"].map(|name| text(&ids[name], ""));
    let mut tags = std::collections::HashMap::new();
    for query in [
        String::new(),
        "labels=true".into(),
        format!("section={frame}"),
        format!("section={frame}&labels=true"),
        format!("nodes={first}"),
        format!("nodes={first},{second}"),
        "width=256".into(),
        "width=257".into(),
    ] {
        for accept in ["image/svg+xml", "image/png"] {
            if query.starts_with("width") && accept != "image/png" {
                continue;
            }
            let reply = render(&user, &canvas, &query, accept).await.expect(200);
            let tag = reply.header("etag").expect("a tag").to_owned();
            assert!(tag.starts_with(&format!("W/\"{revision}-")), "{tag}");
            let path = format!("/canvases/{canvas}/render?{query}");
            user.get(&path).header("accept", accept).header("if-none-match", &tag).await.expect(304);
            assert_eq!(tags.insert(tag.clone(), query.clone()), None, "{tag}");
        }
    }
    let tag = async |query: String| {
        let reply = render(&user, &canvas, &query, "image/svg+xml").await;
        reply.header("etag").map(str::to_owned)
    };
    assert_eq!(tag(format!("nodes={second},{first}")).await, tag(format!("nodes={first},node:{second}")).await);
    assert_eq!(tag("labels=false".into()).await, Some(format!("W/\"{revision}-svg\"")));
    assert_eq!(tag("width=256".into()).await, Some(format!("W/\"{revision}-svg\"")));
}

/// The mapping in the header.
fn mapping(reply: &Reply) -> Value {
    serde_json::from_str(reply.header("x-canvas-labels").expect("labels")).expect("JSON")
}

#[tokio::test]
async fn labels_are_drawn_and_listed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = board(&user).await;
    let nodes = user.canvas(&canvas).await["nodes"].clone();
    let labels = |names: &[&str]| {
        let label = |name: &&str| {
            let id = text(&ids[*name], "");
            let node = nodes.as_array().expect("nodes").iter().find(|node| node["id"] == id).expect(name);
            (text(node, "/ref").trim_start_matches('n').to_owned(), json!(format!("node:{id}")))
        };
        Value::Object(names.iter().map(label).collect())
    };
    let whole = labels(&["frame", "first", "second", "outside"]);
    let part = labels(&["second", "outside"]);
    let nodes = format!("nodes={},{}&labels=true", text(&ids["outside"], ""), text(&ids["second"], ""));
    // The second time from the cache.
    for _ in 0..2 {
        for (query, wanted) in [("labels=true", &whole), (&*nodes, &part)] {
            for accept in ["image/svg+xml", "image/png"] {
                let reply = render(&user, &canvas, query, accept).await.expect(200);
                assert_eq!(mapping(&reply), *wanted);
            }
            let document = svg_of(&user, &canvas, query).await;
            let parsed = Document::parse(&document).expect("well-formed");
            for (number, handle) in wanted.as_object().expect("an object") {
                let node = parsed.descendants().find(|element| element.attribute("data-label") == Some(number));
                let id = node.and_then(|node| node.attribute("id")).and_then(|id| id.strip_prefix("node-"));
                assert_eq!(Some(handle.as_str().expect("a handle")), id.map(|id| format!("node:{id}")).as_deref());
                assert!(document.contains(&format!(">{number}</text>")));
            }
        }
    }
    for query in ["", "labels=false"] {
        let reply = render(&user, &canvas, query, "image/svg+xml").await.expect(200);
        assert_eq!(reply.header("x-canvas-labels"), None);
        assert!(!String::from_utf8_lossy(&reply.body).contains("data-label"));
    }
    let empty = text(&user.make_canvas().await, "/id").to_owned();
    assert_eq!(mapping(&render(&user, &empty, "labels=true", "image/png").await.expect(200)), json!({}));
}

#[tokio::test]
async fn labels_stand_at_the_corners_of_their_nodes_on_any_image() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    for image in [images::scene(320, 240, 1), images::transparent_png(300, 300)] {
        user.upload_into(&canvas, "image/png", image).await;
    }
    let nodes = user.canvas(&canvas).await["nodes"].clone();
    let png = testkit::wait_for("a complete render", e2e::PATIENCE, async || {
        let reply = render(&user, &canvas, "labels=true", "image/png").await.expect(200);
        reply.header("etag").is_some().then_some(reply)
    })
    .await;
    let image = raster::decode(&png.body).expect("an image");
    let (width, count) = (image.width() as usize, image.channels().count());
    for node in nodes.as_array().expect("nodes") {
        // A label extends beyond the corner and onto the node: dark around it, at two pixels a unit.
        let origin = &nodes[0]["position"];
        let pixel = |dx: f64, dy: f64| {
            let at = |axis: &str, d: f64| {
                let side = |value: &Value| value[axis].as_f64().expect("a coordinate");
                (2.0 * (side(&node["position"]) - side(origin) + 40.0 + d)) as usize
            };
            let start = (at("y", dy) * width + at("x", dx)) * count;
            [0, 1, 2].map(|channel| image.pixels()[start + channel])
        };
        let dark = |pixel: [u8; 3]| pixel.iter().all(|channel| *channel < 80);
        assert!(dark(pixel(-5.0, -5.0)) && dark(pixel(8.0, 8.0)), "{:?} {:?}", pixel(-5.0, -5.0), pixel(8.0, 8.0));
    }
}

#[tokio::test]
async fn a_mapping_has_at_most_8_kibibytes() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (canvas, ids) = notes(&user, 200).await;
    let reply = render(&user, &canvas, "labels=true", "image/svg+xml").await.expect(200);
    assert!(reply.header("x-canvas-labels").is_some_and(|labels| labels.len() <= 8192));
    let mapping = mapping(&reply);
    let count = mapping.as_object().expect("an object").len();
    assert!((160..200).contains(&count), "{count}");
    for (index, id) in ids[..count].iter().enumerate() {
        assert_eq!(mapping[(index + 1).to_string()], format!("node:{id}"));
    }
    // All nodes are numbered. The mapping of a part has the others.
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert_eq!(document.matches("data-label=").count(), 200);
    let image = render(&user, &canvas, "labels=true", "image/png").await.expect(200);
    assert_eq!(self::mapping(&image), mapping);
    let rest = format!("nodes={}&labels=true", ids[count..].join(","));
    let rest = render(&user, &canvas, &rest, "image/svg+xml").await.expect(200);
    assert_eq!(self::mapping(&rest).as_object().map(serde_json::Map::len), Some(200 - count));
}

#[tokio::test]
async fn parts_of_a_canvas_are_seen_by_who_sees_the_canvas() {
    let stack = &Stack::with_workers().await;
    let (owner, viewer, stranger) = (stack.user().await, stack.user_with("canvas:read").await, stack.user().await);
    let (canvas, ids) = board(&owner).await;
    stack.share(&owner, &canvas, &viewer.uid, "viewer").await;
    let handle = format!("canvas:{}:{canvas}", owner.uid);
    for query in
        [format!("section={}", text(&ids["frame"], "")), format!("nodes={}&labels=true", text(&ids["first"], ""))]
    {
        let own = render(&owner, &handle, &query, "image/svg+xml").await.expect(200);
        assert_eq!(render(&viewer, &handle, &query, "image/svg+xml").await.expect(200).body, own.body);
        render(&stranger, &handle, &query, "image/svg+xml").await.expect_error(404, "not_found", &[]);
    }
}
