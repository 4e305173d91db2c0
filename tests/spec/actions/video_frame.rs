use e2e::api::{key, text};
use e2e::{Reply, Stack, User, films, images};
use serde_json::{Value, json};

use super::setting::{decoded, refused};

/// Stores a film, and starts the Action on it.
async fn start(user: &User, film: &[u8], params: Value) -> Reply {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("video/mp4", films::unique(film)).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "inputs": [asset["handle"]], "params": params,
    });
    user.send("/actions/video-frame/runs", &request).await
}

/// The picture of a run that succeeds.
async fn frame(stack: &Stack, user: &User, film: &[u8], params: Value) -> raster::Bitmap {
    let job = start(user, film, params.clone()).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{params}: {done}");
    let output = &done["images"][0];
    decoded(&stack.anonymous().get(text(output, "/previewUrl")).await.expect(200).body)
}

#[tokio::test]
async fn it_is_listed_among_the_actions_of_videos_alone() {
    let stack = &Stack::without_workers().await;
    let user = stack.user_with("canvas:read").await;
    let slugs = async |query: &str| -> Vec<String> {
        let listed = user.get(&format!("/actions{query}")).await.ok();
        let actions = listed["actions"].as_array().expect("a list");
        actions.iter().map(|action| text(action, "/slug").to_owned()).collect()
    };
    assert_eq!(slugs("?medium=video").await, ["video-frame"]);
    let images = slugs("").await;
    assert!(images.contains(&"resize".to_owned()) && !images.contains(&"video-frame".to_owned()));
    assert_eq!(slugs("?medium=image").await, images);
    user.get("/actions?medium=sound").await.expect_error(400, "input_validation_error", &["medium"]);
    let read = user.get("/actions/video-frame").await.ok();
    assert_eq!(read.pointer("/action/inputs/0/id"), Some(&json!("video")));
}

#[tokio::test]
async fn first_last_and_any_frame_become_images() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let film = films::REORDERED;
    let first = frame(stack, &user, film, json!({})).await;
    assert_eq!((first.width(), first.height()), (96, 64));
    assert_eq!(frame(stack, &user, film, json!({"at": "first"})).await, first, "the same bytes");
    assert_eq!(frame(stack, &user, film, json!({"at": "time", "seconds": 0})).await, first);
    let last = frame(stack, &user, film, json!({"at": "last"})).await;
    assert_eq!(frame(stack, &user, film, json!({"at": "time", "seconds": 1.1})).await, last);
    let fifth = frame(stack, &user, film, json!({"at": "time", "seconds": 0.55})).await;
    assert_eq!(frame(stack, &user, film, json!({"at": "time", "seconds": 0.5})).await, fifth);
    assert!(first != last && first != fifth && fifth != last);
    let turned = frame(stack, &user, films::TURNED, json!({"at": "last"})).await;
    assert_eq!((turned.width(), turned.height()), (64, 96), "upright");
}

#[tokio::test]
async fn a_time_beyond_the_end_and_a_wrong_input_are_refused() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (seconds, good) in [(1.199, true), (1.2, false), (86_400.0, false)] {
        let reply = start(&user, films::REORDERED, json!({"at": "time", "seconds": seconds})).await;
        if good {
            reply.expect(202);
        } else {
            reply.expect_error(422, "unprocessable_entity", &["params.seconds"]);
        }
    }
    for params in [json!({"at": "time"}), json!({"seconds": 1}), json!({"at": "last", "seconds": 1})] {
        start(&user, films::SILENT, params).await.expect_error(400, "input_validation_error", &["params.seconds"]);
    }
    refused(&user, "video-frame", &[images::png(8, 8)], json!({}), &["inputs[0]"]).await;
}

#[tokio::test]
async fn a_codec_that_is_not_built_in_is_named() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for (film, said) in
        [(films::AV1, "its codec is AV1"), (films::TEN_BITS, "its codec is H.264 with 10 bits per sample")]
    {
        let job = start(&user, film, json!({})).await.expect(202).json();
        let done = user.finished(&job).await;
        assert_eq!(done["failure"]["code"], "action_input_invalid", "{done}");
        assert!(text(&done, "/failure/message").contains(said), "{done}");
    }
}

#[tokio::test]
async fn a_video_is_no_input_of_other_actions() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("video/mp4", films::unique(films::SILENT)).await;
    let request = user.resize_request(&canvas, &target, text(&asset, "/handle")).await;
    user.send("/actions/resize/runs", &request).await.expect_error(422, "unprocessable_entity", &["inputs[0]"]);
}

#[tokio::test]
async fn a_format_and_a_quality_are_those_of_every_action() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let job = start(&user, films::SILENT, json!({"format": "jpeg", "quality": 60})).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done.pointer("/images/0/mediaType"), Some(&json!("image/jpeg")), "{done}");
}
