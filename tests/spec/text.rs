//! The Action `add-text-to-image` (docs/reference/actions.md#add-text-to-image).

use e2e::api::{key, text};
use e2e::{Stack, User, images};
use raster::{Bitmap, Color};
use serde_json::{Value, json};

const RUNS: &str = "/actions/add-text-to-image/runs";

/// Starts the Action on an image and returns the response.
async fn start(user: &User, canvas: &str, asset: &str, params: Value) -> e2e::Reply {
    let target = user.slot(canvas).await;
    let now = user.canvas(canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": now["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "inputs": [asset], "params": params,
    });
    user.send(RUNS, &request).await
}

/// Runs the Action on an image and returns its result.
async fn made(stack: &Stack, user: &User, bytes: Vec<u8>, params: Value) -> (String, Bitmap) {
    let canvas = user.make_canvas().await;
    let asset = user.upload("application/octet-stream", bytes).await;
    let job = start(user, text(&canvas, "/id"), text(&asset, "/handle"), params.clone()).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{params}: {done}");
    let file = stack.anonymous().get(text(&done, "/images/0/previewUrl")).await.expect(200);
    (text(&done, "/images/0/mediaType").to_owned(), pixels(&file.body))
}

fn pixels(bytes: &[u8]) -> Bitmap {
    raster::decode(bytes).expect("a whole image")
}

/// Columns and rows of every pixel in which two images of one size differ.
fn changed(before: &Bitmap, after: &Bitmap) -> Vec<(u32, u32)> {
    assert_eq!(before.size(), after.size());
    let places = (0..before.height()).flat_map(|y| (0..before.width()).map(move |x| (x, y)));
    places.filter(|(x, y)| before.pixel(*x, *y) != after.pixel(*x, *y)).collect()
}

#[tokio::test]
async fn every_parameter_of_text_is_held_to_its_bounds() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let canvas = text(&canvas, "/id");
    let asset = user.upload("image/png", images::png(64, 48)).await;
    let asset = text(&asset, "/handle");
    let judge = async |id: &str, value: Value, good: bool| {
        let mut params = json!({"text": "x"});
        params[id] = value.clone();
        if good {
            // On a new canvas that no other job changes.
            start(&user, text(&user.make_canvas().await, "/id"), asset, params).await.expect(202);
            return;
        }
        // Parameters are checked before the canvas and the target.
        let request = json!({
            "canvasId": canvas, "baseRevision": "any", "idempotencyKey": key(),
            "targetNodeId": "any", "inputs": [asset], "params": params,
        });
        user.send(RUNS, &request).await.expect_error(400, "input_validation_error", &[&format!("params.{id}")]);
    };
    for (id, least, most, step) in [
        ("size", 0.5, 50.0, 0.01),
        ("maxWidth", 10.0, 100.0, 0.5),
        ("lineHeight", 0.8, 3.0, 0.01),
        ("strokeWidth", 0.0, 20.0, 0.1),
        ("padding", 0.0, 100.0, 0.1),
        ("quality", 1.0, 100.0, 1.0),
    ] {
        for (value, good) in [(least - step, false), (least, true), (most, true), (most + step, false)] {
            judge(id, json!(value), good).await;
        }
        judge(id, json!("1"), false).await;
    }
    for (id, options) in [
        (
            "anchor",
            &["top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right"][..],
        ),
        ("font", &["sans", "serif", "mono"]),
        ("weight", &["regular", "bold"]),
        ("align", &["left", "center", "right"]),
        ("format", &["auto", "png", "jpeg", "webp"]),
    ] {
        for option in options {
            judge(id, json!(option), true).await;
        }
        judge(id, json!("other"), false).await;
    }
    for id in ["color", "strokeColor", "background"] {
        judge(id, json!("#0f8"), true).await;
        judge(id, json!("#00ff8880"), true).await;
        judge(id, json!("green"), false).await;
    }
    for id in ["offsetX", "offsetY"] {
        judge(id, json!(-100_000), true).await;
        judge(id, json!(i64::MAX), true).await;
        judge(id, json!(0.5), false).await;
    }
    judge("text", json!("😀".repeat(500)), true).await;
    judge("text", json!("a".repeat(501)), false).await;
    judge("text", json!("a\0b"), false).await;
    judge("text", json!(7), false).await;
    start(&user, canvas, asset, json!({})).await.expect_error(400, "input_validation_error", &["params.text"]);
}

#[tokio::test]
async fn text_is_written_where_it_is_asked_for() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let source = images::png(200, 160);
    let before = pixels(&source);
    for (params, columns, rows) in [
        (json!({"text": "Hi"}), 50..150, 130..160),
        (json!({"text": "Hi", "anchor": "top-left"}), 0..60, 0..30),
        (json!({"text": "Hi", "anchor": "top-left", "offsetX": 100, "offsetY": 80}), 100..160, 80..110),
        (json!({"text": "Hi", "anchor": "right", "size": 20}), 130..200, 50..110),
    ] {
        let mut params = params;
        params["color"] = json!("#ff00ff");
        let (media_type, after) = made(stack, &user, source.clone(), params.clone()).await;
        assert_eq!(media_type, "image/png");
        let changed = changed(&before, &after);
        assert!(changed.len() > 10, "{params}");
        assert!(changed.iter().all(|(x, y)| columns.contains(x) && rows.contains(y)), "{params}: {changed:?}");
    }
    // The text fills the box exactly and is no wider.
    let filled = json!({"text": "many words that need several lines to fit", "anchor": "center", "maxWidth": 50,
        "background": "#123456", "padding": 100});
    let (_, after) = made(stack, &user, source.clone(), filled).await;
    let changed = changed(&before, &after);
    assert!(changed.iter().all(|(x, _)| (50..150).contains(x)));
    let (left, right) = (changed.iter().map(|(x, _)| *x).min(), changed.iter().map(|(x, _)| *x).max());
    let centre = left.expect("a box") + right.expect("a box");
    assert!((198..=200).contains(&centre), "{left:?} to {right:?}");
}

#[tokio::test]
async fn every_script_is_written_and_leaves_a_mark() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let source = images::png(300, 100);
    let before = pixels(&source);
    for written in [
        "office e\u{301}",
        "Ωμέγα",
        "Жизнь",
        "سلام ١٢٣",
        "שלום 123",
        "漢字かな한국어",
        "😀👩🏽‍🚀🇩🇪",
        "\u{e000}\u{10ffff}",
        "हिन्दी",
    ] {
        let params = json!({"text": written, "size": 30, "color": "#ff00ff"});
        let (_, after) = made(stack, &user, source.clone(), params).await;
        assert!(changed(&before, &after).len() > 60, "{written}");
    }
}

#[tokio::test]
async fn hostile_text_ends_in_an_image() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let source = images::jpeg(400, 300);
    for hostile in [
        format!("a{}", "\u{301}".repeat(499)),
        "\u{202e}\u{2066}".repeat(250),
        "\n".repeat(500),
        "\u{fdfd}".repeat(500),
        "\u{1}\u{7f}\u{fffe}\u{200b}".into(),
        String::new(),
    ] {
        let params = json!({"text": hostile, "size": 50, "maxWidth": 10, "strokeWidth": 20, "padding": 100});
        let (media_type, _) = made(stack, &user, source.clone(), params).await;
        assert_eq!(media_type, "image/jpeg");
    }
}

#[tokio::test]
async fn text_on_a_transparent_image_as_jpeg_is_flattened_on_white() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let source = images::transparent_png(64, 48);
    let params = json!({"text": "x", "format": "jpeg", "quality": 100, "background": "#000000"});
    let (media_type, after) = made(stack, &user, source.clone(), params).await;
    assert_eq!(media_type, "image/jpeg");
    // The box is at the bottom. Only the image above it is compared.
    let wanted = pixels(&source).flattened(Color::WHITE);
    let above = wanted.stride() * 24;
    let differences = wanted.pixels()[..above].iter().zip(after.pixels()).map(|(a, b)| u64::from(a.abs_diff(*b)));
    let mean = differences.sum::<u64>() / above as u64;
    assert!(mean < 20, "{mean}");
    let (media_type, _) = made(stack, &user, source, json!({"text": "x"})).await;
    assert_eq!(media_type, "image/png");
}

#[tokio::test]
async fn an_image_larger_than_a_result_may_be_is_refused_at_once() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let long = user.upload("image/png", images::broken_png(16_385, 1)).await;
    let reply = start(&user, text(&canvas, "/id"), text(&long, "/handle"), json!({"text": "x"})).await;
    reply.expect_error(422, "unprocessable_entity", &["inputs[0]"]);
}
