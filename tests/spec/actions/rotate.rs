use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, refused, run};

#[tokio::test]
async fn quarter_turns_are_lossless() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = images::png(20, 12);
    let source = decoded(&file);
    let at = |x: u32, y: u32| source.pixel(x, y);
    for (params, size, corner) in [
        (json!({"degrees": 0}), (20, 12), at(0, 0)),
        (json!({"degrees": 90}), (12, 20), at(0, 11)),
        (json!({"degrees": -90}), (12, 20), at(19, 0)),
        (json!({"degrees": 180}), (20, 12), at(19, 11)),
        (json!({"degrees": 360}), (20, 12), at(0, 0)),
        (json!({"degrees": 0, "flip": "horizontal"}), (20, 12), at(19, 0)),
        (json!({"degrees": 0, "flip": "vertical"}), (20, 12), at(0, 11)),
        (json!({"degrees": 180, "flip": "both"}), (20, 12), at(0, 0)),
        (json!({"degrees": 90, "flip": "horizontal"}), (12, 20), at(19, 11)),
    ] {
        let made = run(stack, &user, "rotate", std::slice::from_ref(&file), params.clone()).await;
        assert_eq!((made.size(), made.image.pixel(0, 0)), (size, corner), "{params}");
        let sorted = |image: &raster::Bitmap| {
            let mut pixels = image.pixels().as_chunks::<3>().0.to_vec();
            pixels.sort_unstable();
            pixels
        };
        assert_eq!(sorted(&made.image), sorted(&source), "{params}");
    }
}

#[tokio::test]
async fn any_angle_grows_the_image_or_keeps_its_size() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = [images::plain_png(100, 50, [200, 30, 40])];
    let made = run(stack, &user, "rotate", &file, json!({"degrees": 30})).await;
    assert_eq!(made.size(), (112, 94));
    made.shows(56, 47, [200, 30, 40, 255], 0);
    made.shows(0, 0, [0; 4], 0);
    let kept = json!({"degrees": 30, "expand": "no", "background": "#00f"});
    let made = run(stack, &user, "rotate", &file, kept).await;
    assert_eq!(made.size(), (100, 50));
    // The rotation is clockwise, so the upper right corner is uncovered.
    made.shows(99, 0, [0, 0, 255, 255], 0);
    let made = run(stack, &user, "rotate", &[images::jpeg(40, 40)], json!({"degrees": 45})).await;
    assert_eq!(made.media_type, "image/png", "the format supports alpha");
    refused(&user, "rotate", &[images::broken_png(16_384, 1000)], json!({"degrees": 5}), &["params.degrees"]).await;
}
