use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, refused, run};

#[tokio::test]
async fn two_images_lie_beside_or_above_each_other() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let files = [images::png(40, 30), images::png(20, 30)];
    let sources = [decoded(&files[0]), decoded(&files[1])];
    let slug = "side-by-side-composite";
    let made = run(stack, &user, slug, &files, json!({"gap": 4, "background": "#0000ff"})).await;
    assert_eq!(made.size(), (64, 30));
    assert_eq!(made.image.pixel(39, 29), sources[0].pixel(39, 29));
    assert_eq!(made.image.pixel(44, 0), sources[1].pixel(0, 0), "images are in the order of the inputs");
    made.shows(41, 15, [0, 0, 255, 255], 0);
    let down = json!({"direction": "vertical", "scale": "none", "align": "end"});
    let made = run(stack, &user, slug, &files, down).await;
    assert_eq!(made.size(), (40, 60));
    assert_eq!(made.image.pixel(20, 30), sources[1].pixel(0, 0));
    made.shows(19, 30, [255; 4], 0);
    // The larger one is scaled to the smaller one: a width of 40 becomes 20, and a height of 30 becomes 15.
    assert_eq!(run(stack, &user, slug, &files, json!({"direction": "vertical"})).await.size(), (20, 45));
}

#[tokio::test]
async fn the_first_image_decides_the_format() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let (jpeg, png, clear) = (images::jpeg(16, 16), images::png(16, 16), images::transparent_png(16, 16));
    for (files, params, media_type) in [
        ([jpeg.clone(), png.clone()], json!({}), "image/jpeg"),
        ([png, jpeg.clone()], json!({}), "image/png"),
        ([jpeg.clone(), clear.clone()], json!({}), "image/png"),
        ([jpeg, clear], json!({"format": "jpeg", "background": "#ff0000"}), "image/jpeg"),
        ([images::webp(16, 16), images::gif()], json!({}), "image/webp"),
    ] {
        let made = run(stack, &user, "side-by-side-composite", &files, params).await;
        assert_eq!(made.media_type, media_type);
    }
}

#[tokio::test]
async fn images_too_long_together_are_refused() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let files = [images::broken_png(8192, 4), images::broken_png(8193, 4)];
    refused(&user, "side-by-side-composite", &files, json!({}), &["inputs"]).await;
}
