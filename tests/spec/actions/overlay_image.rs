use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, run};

const SLUG: &str = "overlay-image";

#[tokio::test]
async fn an_overlay_lies_where_it_is_anchored() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let files = [images::png(80, 60), images::png(20, 10)];
    let (below, above) = (decoded(&files[0]), decoded(&files[1]));
    for (params, (left, top)) in [
        (json!({}), (60, 50)),
        (json!({"anchor": "top-left", "offsetX": 3, "offsetY": 7}), (3, 7)),
        (json!({"anchor": "center"}), (30, 25)),
        (json!({"anchor": "right", "offsetX": -10}), (50, 25)),
    ] {
        let made = run(stack, &user, SLUG, &files, params.clone()).await;
        assert_eq!(made.size(), (80, 60));
        for (x, y) in (0..60).flat_map(|y| (0..80).map(move |x| (x, y))) {
            let inside = (left..left + 20).contains(&x) && (top..top + 10).contains(&y);
            let expected = if inside { above.pixel(x - left, y - top) } else { below.pixel(x, y) };
            assert_eq!(made.image.pixel(x, y), expected, "{params}: {x}, {y}");
        }
    }
    let outside = run(stack, &user, SLUG, &files, json!({"offsetX": 20})).await;
    assert_eq!(outside.image, below);
}

#[tokio::test]
async fn an_overlay_is_mixed_by_opacity_and_blend() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let files = [images::plain_png(40, 40, [51, 102, 204]), images::plain_png(40, 40, [102, 204, 51])];
    for (blend, expected) in [
        ("normal", [102, 204, 51, 255]),
        ("multiply", [20, 82, 41, 255]),
        ("screen", [133, 224, 214, 255]),
        ("overlay", [41, 163, 173, 255]),
        ("darken", [51, 102, 51, 255]),
        ("lighten", [102, 204, 204, 255]),
    ] {
        let made = run(stack, &user, SLUG, &files, json!({"scale": 100, "blend": blend})).await;
        made.shows(20, 20, expected, 1);
    }
    let half = run(stack, &user, SLUG, &files, json!({"scale": 100, "opacity": 50})).await;
    half.shows(20, 20, [77, 153, 128, 255], 1);
    let none = run(stack, &user, SLUG, &files, json!({"scale": 100, "opacity": 0})).await;
    none.shows(20, 20, [51, 102, 204, 255], 0);
}

#[tokio::test]
async fn an_overlay_is_turned_about_its_centre() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let files = [images::plain_png(80, 80, [255; 3]), images::plain_png(40, 20, [255, 0, 0])];
    let made = run(stack, &user, SLUG, &files, json!({"scale": 50, "rotate": 90, "anchor": "center"})).await;
    made.shows(40, 21, [255, 0, 0, 255], 0);
    made.shows(21, 40, [255; 4], 0);
    let made = run(stack, &user, SLUG, &files, json!({"scale": 50, "rotate": 45, "anchor": "center"})).await;
    // Clockwise: the long side points down to the right.
    made.shows(51, 51, [255, 0, 0, 255], 0);
    made.shows(51, 28, [255; 4], 0);
}
