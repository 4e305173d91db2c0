//! Renders (docs/reference/canvases.md#render).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::api::{text, unique};
use e2e::{PATIENCE, Part, Reply, Stack, User, pictures, suite};
use roxmltree::Document;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

suite! {
    renders on Stack::builder().image_workers(1);
    an_svg_is_served_unless_png_is_wanted,
    an_accept_that_admits_neither_is_406_and_judged_after_the_canvas,
    a_render_carries_an_etag_and_honours_if_none_match,
    no_rendering_is_compressed,
    the_view_box_holds_every_node_with_its_margin,
    an_empty_canvas_is_a_sheet,
    sections_connections_and_nodes_are_drawn_in_this_order,
    a_viewer_may_render_and_a_stranger_sees_nothing,
    a_picture_is_embedded_no_larger_than_512,
    a_picture_that_no_thumbnail_holds_is_a_placeholder_and_the_render_has_an_etag,
    a_broken_picture_is_a_placeholder_and_the_render_has_no_etag,
    hostile_text_is_text,
    a_png_shows_the_canvas_within_2048_pixels,
    equal_pngs_are_made_once,
}

suite! {
    renders_without_a_worker on Stack::builder();
    a_picture_without_its_rendition_is_a_placeholder_and_the_render_has_no_etag,
    a_png_that_nobody_makes_is_503,
}

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

/// Polls the render until it has every picture, that is, until it has an `ETag`.
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

async fn an_svg_is_served_unless_png_is_wanted(stack: &Stack) {
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

async fn an_accept_that_admits_neither_is_406_and_judged_after_the_canvas(stack: &Stack) {
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

async fn a_render_carries_an_etag_and_honours_if_none_match(stack: &Stack) {
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

async fn no_rendering_is_compressed(stack: &Stack) {
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

async fn the_view_box_holds_every_node_with_its_margin(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let at = |x: f64, y: f64| json!({"type": "sticky", "position": {"x": x, "y": y}, "width": 200, "height": 100});
    user.apply(id, json!([create("a", at(-300.0, 20.0)), create("b", at(500.0, 400.0))])).await;
    assert_eq!(view_box(&svg(&user, id).await), [-340.0, -20.0, 1080.0, 560.0]);
    user.apply(id, json!([create("c", at(-1e7, -1e7)), create("d", at(1e7, 1e7))])).await;
    assert_eq!(view_box(&svg(&user, id).await), [-10_000_040.0, -10_000_040.0, 20_000_280.0, 20_000_180.0]);
}

async fn an_empty_canvas_is_a_sheet(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let [.., width, height] = view_box(&svg(&user, text(&canvas, "/id")).await)[..] else { panic!("four numbers") };
    assert!(width >= 100.0 && height >= 100.0);
    rendered(&user, &canvas, "image/png").await.expect(200);
}

async fn sections_connections_and_nodes_are_drawn_in_this_order(stack: &Stack) {
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

async fn a_viewer_may_render_and_a_stranger_sees_nothing(stack: &Stack) {
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

/// The embedded pictures of a document.
fn embedded(document: &str) -> Vec<(String, Vec<u8>)> {
    let parsed = Document::parse(document).expect("well-formed");
    let images = parsed.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "image")));
    images
        .map(|image| {
            let href = image.attribute(("http://www.w3.org/1999/xlink", "href")).expect("a picture");
            let (kind, data) = href.strip_prefix("data:").and_then(|uri| uri.split_once(";base64,")).expect("data");
            (kind.to_owned(), STANDARD.decode(data).expect("base64"))
        })
        .collect()
}

async fn a_picture_is_embedded_no_larger_than_512(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for picture in [
        pictures::png(900, 600),
        pictures::png(500, 900),
        pictures::png(100, 1000),
        pictures::png(2, 1024),
        pictures::transparent_png(700, 700),
    ] {
        user.upload_into(id, "image/png", picture).await;
    }
    let reply = complete(&user, id).await;
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    let found: Vec<_> = embedded(&document).into_iter().map(|(kind, file)| (kind, pictures::size(&file))).collect();
    let jpeg = |width, height| ("image/jpeg".to_owned(), (width, height));
    let opaque = [jpeg(512, 341), jpeg(256, 461), jpeg(32, 320), jpeg(1, 512)];
    assert_eq!(found, [&opaque[..], &[("image/png".to_owned(), (512, 512))]].concat());
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    assert_eq!(reply.header("etag"), Some(format!("W/\"{revision}-svg\"").as_str()));
}

async fn a_picture_that_no_thumbnail_holds_is_a_placeholder_and_the_render_has_an_etag(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let strip = user.upload_into(id, "image/png", pictures::png(1, 513)).await;
    // The frame itself is now a narrow strip in which no label fits.
    let wider = json!({"type": "node.update", "nodeId": strip["node"], "patch": {"width": 320, "height": 320}});
    user.apply(id, json!([wider])).await;
    user.upload_into(id, "image/png", pictures::png(40, 40)).await;
    let reply = complete(&user, id).await;
    let document = String::from_utf8(reply.body.to_vec()).expect("UTF-8");
    assert_eq!(embedded(&document).len(), 1, "only the other picture");
    assert!(document.contains("Picture not shown"), "{document}");
    let tag = reply.header("etag").expect("a tag").to_owned();
    user.get(&format!("/canvases/{id}/render")).header("if-none-match", &tag).await.expect(304);
}

async fn a_broken_picture_is_a_placeholder_and_the_render_has_no_etag(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    user.upload_into(id, "image/png", pictures::broken_png(60, 60)).await;
    let shown = testkit::wait_for("the picture to be marked as unreadable", PATIENCE, async || {
        let reply = user.get(&format!("/canvases/{id}/render")).await.expect(200);
        assert_eq!(reply.header("etag"), None);
        String::from_utf8_lossy(&reply.body).contains("Picture cannot be read").then_some(reply)
    })
    .await;
    let revision = text(&user.canvas(id).await, "/revision").to_owned();
    let path = format!("/canvases/{id}/render");
    user.get(&path).header("if-none-match", &format!("W/\"{revision}-svg\"")).await.expect(200);
    assert!(embedded(&String::from_utf8_lossy(&shown.body)).is_empty());
}

async fn hostile_text_is_text(stack: &Stack) {
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

async fn a_png_shows_the_canvas_within_2048_pixels(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let place = |x: i32| json!({"type": "sticky", "position": {"x": x, "y": 0}, "width": 200, "height": 160, "metadata": {"color": "#ff0000"}});
    user.apply(id, json!([create("a", place(0))])).await;
    let small = rendered(&user, &canvas, "image/png").await.expect(200);
    assert_eq!(pictures::size(&small.body), (560, 480), "twice its 280 by 240 units");
    let picture = raster::decode(&small.body).expect("a picture");
    let middle = (240 * picture.width() as usize + 280) * picture.channels().count();
    assert_eq!(&picture.pixels()[middle..middle + 3], &[255, 0, 0], "the note's color");
    assert!(raster::probe(&small.body).expect("a picture").format == raster::Format::Png);
    user.apply(id, json!([create("b", place(9_760))])).await;
    let large = rendered(&user, &canvas, "image/png").await.expect(200);
    assert_eq!(pictures::size(&large.body), (2048, 49));
    assert!(large.header("content-length").is_some());
}

async fn equal_pngs_are_made_once(stack: &Stack) {
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

async fn a_picture_without_its_rendition_is_a_placeholder_and_the_render_has_no_etag(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    user.upload_into(id, "image/png", pictures::png(60, 60)).await;
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

async fn a_png_that_nobody_makes_is_503(stack: &Stack) {
    let user = stack.user().await;
    let canvas = a_canvas(&user).await;
    let late = rendered(&user, &canvas, "image/png").await;
    assert!(late.header("retry-after").is_some(), "{late}");
    late.expect_error(503, "service_unavailable", &[]);
    assert!(!stack.log(Part::GATEWAY).contains("panicked"));
}
