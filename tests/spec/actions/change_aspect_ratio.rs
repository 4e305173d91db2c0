use e2e::{Stack, images};
use serde_json::json;

use super::setting::{decoded, refused, run};

#[tokio::test]
async fn a_ratio_is_reached_by_cropping() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = images::png(64, 48);
    let source = decoded(&file);
    for (params, (left, top), size) in [
        (json!({"ratio": "1:1"}), (8, 0), (48, 48)),
        (json!({"ratio": "1:1", "anchor": "right"}), (16, 0), (48, 48)),
        (json!({"ratio": "16:9"}), (0, 6), (64, 36)),
        (json!({"ratio": "1.91:1", "anchor": "top"}), (0, 0), (64, 33)),
        (json!({"ratio": "4:3"}), (0, 0), (64, 48)),
    ] {
        let made = run(stack, &user, "change-aspect-ratio", std::slice::from_ref(&file), params.clone()).await;
        assert_eq!(made.size(), size, "{params}");
        assert_eq!(made.image.pixel(0, 0), source.pixel(left, top), "{params}");
        assert_eq!(made.image.pixel(size.0 - 1, size.1 - 1), source.pixel(left + size.0 - 1, top + size.1 - 1));
    }
}

#[tokio::test]
async fn a_ratio_is_reached_by_padding() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = images::png(64, 48);
    let source = decoded(&file);
    for mode in ["pad", "blur"] {
        let params = json!({"ratio": "1:1", "mode": mode, "anchor": "bottom"});
        let made = run(stack, &user, "change-aspect-ratio", std::slice::from_ref(&file), params).await;
        assert_eq!(made.size(), (64, 64));
        for (x, y) in [(0, 0), (63, 47), (20, 30)] {
            assert_eq!(made.image.pixel(x, y + 16), source.pixel(x, y), "{mode}");
        }
        assert_eq!(made.image.pixel(5, 5) == Some([255; 4]), mode == "pad", "white is the default background");
    }
    let clear = json!({"ratio": "2:1", "mode": "pad", "background": "#00ff0080"});
    let made = run(stack, &user, "change-aspect-ratio", &[images::jpeg(48, 48)], clear).await;
    assert_eq!((made.size(), made.media_type.as_str()), ((96, 48), "image/png"), "the format supports alpha");
    made.shows(2, 2, [0, 255, 0, 128], 0);
}

#[tokio::test]
async fn a_ratio_beyond_the_limits_is_refused() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let file = [images::broken_png(200, 200)];
    refused(&user, "change-aspect-ratio", &file, json!({"ratio": "100:1", "mode": "pad"}), &["params.ratio"]).await;
    let large = [images::broken_png(9000, 9000)];
    refused(&user, "change-aspect-ratio", &large, json!({"ratio": "3:2", "mode": "blur"}), &["params.ratio"]).await;
}
