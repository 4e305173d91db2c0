use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, run};

#[tokio::test]
async fn a_neutral_grade_changes_no_pixel() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let neutral = json!({
        "exposure": 0, "brightness": 0, "contrast": 0, "saturation": 0, "vibrance": 0, "temperature": 0, "tint": 0,
        "highlights": 0, "shadows": 0, "gamma": 1, "preset": "none",
    });
    for file in [images::png(33, 21), images::transparent_png(33, 21)] {
        for params in [json!({}), neutral.clone(), json!({"preset": "sepia", "intensity": 0})] {
            let made = run(stack, &user, "color-grade", std::slice::from_ref(&file), params).await;
            assert_eq!(made.image, decoded(&file));
        }
    }
}

#[tokio::test]
async fn a_grade_follows_its_formulas() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = [images::plain_png(8, 8, [200, 100, 50])];
    let luma = [117, 117, 117, 255];
    for (params, expected) in [
        (json!({"saturation": -100}), luma),
        (json!({"brightness": -100}), [0, 0, 0, 255]),
        (json!({"contrast": -100}), [128, 128, 128, 255]),
        (json!({"brightness": 20}), [240, 120, 60, 255]),
        // (v / 255)^(1/2)
        (json!({"gamma": 2}), [226, 160, 113, 255]),
        (json!({"preset": "sepia"}), [165, 147, 114, 255]),
        (json!({"preset": "sepia", "intensity": 50}), [182, 123, 82, 255]),
    ] {
        run(stack, &user, "color-grade", &file, params).await.shows(4, 4, expected, 1);
    }
    let noir = run(stack, &user, "color-grade", &file, json!({"preset": "noir"})).await.image.pixel(0, 0);
    assert!(noir.is_some_and(|[r, g, b, _]| r == g && g == b), "{noir:?}");
}
