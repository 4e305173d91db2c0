use e2e::api::text;
use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, refused, run, start};

#[tokio::test]
async fn crop_cuts_at_a_place_or_an_anchor() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = images::png(64, 48);
    let source = decoded(&file);
    for (params, (left, top), (width, height)) in [
        (json!({"width": 10, "height": 8, "x": 3, "y": 5}), (3, 5), (10, 8)),
        (json!({"width": 64, "height": 48}), (0, 0), (64, 48)),
        (json!({"width": 9, "height": 9}), (27, 19), (9, 9)),
        (json!({"width": 1, "height": 1, "anchor": "bottom-right"}), (63, 47), (1, 1)),
        (json!({"width": 64, "height": 1, "x": 0, "y": 47}), (0, 47), (64, 1)),
    ] {
        let made = run(stack, &user, "crop", std::slice::from_ref(&file), params.clone()).await;
        assert_eq!((made.size(), made.media_type.as_str()), ((width, height), "image/png"), "{params}");
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            assert_eq!(made.image.pixel(x, y), source.pixel(x + left, y + top), "{params}: {x}, {y}");
        }
    }
}

#[tokio::test]
async fn crop_is_measured_on_the_image_as_displayed() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    // Stored as 40 by 20 with a quarter turn clockwise, so displayed as 20 by 40.
    let file = images::turned_jpeg(40, 20, 6);
    let source = decoded(&file);
    let params = json!({"width": 20, "height": 10, "x": 0, "y": 30, "format": "png"});
    let made = run(stack, &user, "crop", std::slice::from_ref(&file), params).await;
    assert_eq!(made.size(), (20, 10));
    for (x, y) in (0..10).flat_map(|y| (0..20).map(move |x| (x, y))) {
        assert_eq!(made.image.pixel(x, y), source.pixel(x, y + 30));
    }
    refused(&user, "crop", &[file], json!({"width": 21, "height": 1}), &["params.width"]).await;
}

#[tokio::test]
async fn crop_out_of_the_image_is_refused() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = [images::png(64, 48)];
    for (params, field) in [
        (json!({"width": 65, "height": 48}), "params.width"),
        (json!({"width": 64, "height": 49}), "params.height"),
        (json!({"width": 64, "height": 48, "x": 1, "y": 0}), "params.x"),
        (json!({"width": 64, "height": 48, "x": 0, "y": 1}), "params.y"),
        (json!({"width": 1, "height": 1, "x": 64, "y": 0}), "params.x"),
        (json!({"width": 1, "height": 1, "x": -1, "y": 0}), "params.x"),
        (json!({"width": 100_000, "height": 1}), "params.width"),
    ] {
        refused(&user, "crop", &file, params, &[field]).await;
    }
}

#[tokio::test]
async fn crop_turns_its_rectangle() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = images::png(64, 48);
    // In the middle of an image that keeps its size, it is what `rotate` shows there.
    for degrees in [-45.0, 12.5, 45.0] {
        let turned =
            run(stack, &user, "rotate", std::slice::from_ref(&file), json!({"degrees": degrees, "expand": "no"}));
        let turned = turned.await;
        let params = json!({"width": 24, "height": 20, "degrees": degrees});
        let made = run(stack, &user, "crop", std::slice::from_ref(&file), params).await;
        assert_eq!((made.size(), made.media_type.as_str()), ((24, 20), "image/png"));
        for (x, y) in (0..20).flat_map(|y| (0..24).map(move |x| (x, y))) {
            assert_eq!(made.image.pixel(x, y), turned.image.pixel(x + 20, y + 14), "{degrees}: {x}, {y}");
        }
    }
    let upright = run(stack, &user, "crop", std::slice::from_ref(&file), json!({"width": 24, "height": 20})).await;
    let zero = json!({"width": 24, "height": 20, "degrees": 0});
    assert!(run(stack, &user, "crop", std::slice::from_ref(&file), zero).await.image == upright.image);
}

#[tokio::test]
async fn crop_turns_at_most_45_degrees_and_within_the_image() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = [images::png(64, 48)];
    for degrees in [json!(-45.001), json!(45.001), json!("9"), json!(null)] {
        let params = json!({"width": 4, "height": 4, "degrees": degrees});
        start(&user, "crop", &file, params).await.expect_error(400, "input_validation_error", &["params.degrees"]);
    }
    for params in [
        json!({"width": 64, "height": 48, "degrees": 1}),
        json!({"width": 9, "height": 9, "x": 0, "y": 0, "degrees": -9}),
    ] {
        refused(&user, "crop", &file, params, &["params.degrees"]).await;
    }
    // Turned by 30 degrees, a square of 30 is 40.98 high: half of it above the middle is 20.49.
    let square = |y: i32| json!({"width": 30, "height": 30, "x": 17, "y": y, "degrees": 30});
    start(&user, "crop", &file, square(5)).await.expect(202);
    refused(&user, "crop", &file, square(4), &["params.degrees"]).await;
}

#[tokio::test]
async fn crop_records_the_version_that_made_the_image() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let listed = user.get("/actions/crop").await.ok()["action"].clone();
    assert_eq!(listed["version"], "1.1.0");
    let job = start(&user, "crop", &[images::png(64, 48)], json!({"width": 9, "height": 9})).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!((&done["status"], &done["actionVersion"]), (&json!("succeeded"), &json!("1.1.0")), "{done}");
    let canvas = user.canvas(text(&done, "/canvasId")).await;
    let provenance = &canvas["nodes"][0]["metadata"]["provenance"];
    assert_eq!((&provenance["actionVersion"], &provenance["params"]["degrees"]), (&json!("1.1.0"), &json!(0)));
}
