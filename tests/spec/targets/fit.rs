//! Targets that take on the ratio of their results (docs/reference/jobs.md#fit).

use super::*;

/// Height of the strip with the title.
const STRIP: f64 = 28.0;

/// Starts on targets of a canvas that exist.
impl Setting {
    async fn target(&self, kind: &str, (width, height): (u32, u32)) -> String {
        self.node(json!({"type": kind, "width": width, "height": height})).await
    }

    /// A start of an Action that makes an image of this size.
    async fn action(&self, target: &str, (width, height): (u32, u32), more: Value) -> Value {
        let base = json!({"inputs": [self.photo], "params": {"width": width, "height": height, "fit": "fill"},
            "targetNodeId": target, "fit": true});
        self.user.send("/actions/resize/runs", &self.request(base, more).await).await.expect(202).json()
    }

    async fn video(&self, more: Value) -> Reply {
        let base = json!({"model": "animatic", "prompt": "A kite", "durationSeconds": 1, "resolution": "480p"});
        self.user.send("/videos/generate", &self.request(base, more).await).await
    }

    /// The width and height of what a node shows, in pixels.
    async fn pixels(&self, target: &str) -> (u32, u32) {
        let now = self.now().await;
        let asset = self.user.get(&format!("/assets/{}", text(node(&now, target), "/asset"))).await.ok();
        let side =
            |name: &str| asset["asset"][name].as_u64().and_then(|side| u32::try_from(side).ok()).expect("a side");
        (side("width"), side("height"))
    }

    /// The width and height of a node once the work has succeeded.
    async fn size_after(&self, started: &Value, target: &str) -> (f64, f64) {
        let done = self.user.finished(started).await;
        assert_eq!(done["status"], "succeeded", "{done}");
        let now = self.now().await;
        let shown = node(&now, target);
        assert!(shown["metadata"]["job"].get("fit").is_none(), "{shown}");
        let [.., width, height] = sides(shown);
        (width, height)
    }
}

/// Asserts that a size is the largest within `bounds` that shows a result of these pixels whole above its title.
fn is_largest(size: (f64, f64), bounds: (u32, u32), pixels: (u32, u32)) {
    let (bounds, pixels) = ((f64::from(bounds.0), f64::from(bounds.1)), (f64::from(pixels.0), f64::from(pixels.1)));
    let about = format!("{size:?} in {bounds:?} for {pixels:?}");
    assert!(size.0 <= bounds.0 && size.1 <= bounds.1, "{about}");
    assert!(size.0 == bounds.0 || size.1 == bounds.1, "{about}");
    let area = size.1 - STRIP;
    let off = (size.0 - area * pixels.0 / pixels.1).abs().min((area - size.0 * pixels.1 / pixels.0).abs());
    assert!(off <= 0.5, "{about}");
}

const BOUNDS: (u32, u32) = (500, 400);
const WIDE: (u32, u32) = (120, 40);
const TALL: (u32, u32) = (40, 120);

#[tokio::test]
async fn a_target_of_an_action_shows_its_result_whole_within_its_box() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    for pixels in [WIDE, TALL] {
        let target = setting.target("image", BOUNDS).await;
        let job = setting.action(&target, pixels, json!({})).await;
        is_largest(setting.size_after(&job, &target).await, BOUNDS, pixels);
    }
    for more in [json!({"fit": null}), json!({"fit": false})] {
        let target = setting.target("image", BOUNDS).await;
        let job = setting.action(&target, WIDE, more).await;
        assert_eq!(setting.size_after(&job, &target).await, (500.0, 400.0), "not by default");
    }
}

#[tokio::test]
async fn each_target_of_a_chain_shows_its_result_whole_within_its_box() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    let all = [((300, 900), WIDE), ((900, 300), TALL)];
    let (mut inputs, mut targets) = (Vec::new(), Vec::new());
    for (bounds, (width, height)) in all {
        let asset = setting.user.upload("image/png", images::png(width, height)).await;
        inputs.push(text(&asset, "/handle").to_owned());
        targets.push(setting.target("image", bounds).await);
    }
    let base = json!({"inputs": inputs, "steps": [{"action": "rotate", "params": {"degrees": 90}},
        {"action": "rotate", "params": {"degrees": 90}}], "targetNodeIds": targets, "fit": true});
    let request = setting.request(base, json!({})).await;
    let started = setting.user.send("/actions/runs", &request).await.expect(202).json();
    for ((run, target), (bounds, pixels)) in started["runs"].as_array().expect("runs").iter().zip(&targets).zip(all) {
        is_largest(setting.size_after(run, target).await, bounds, pixels);
    }
}

#[tokio::test]
async fn each_target_of_images_shows_its_result_whole_within_its_box() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    for (size, pixels) in [("1920x1080", (1920, 1080)), ("1024x1536", (1024, 1536))] {
        let bounds = [(700, 300), (200, 800)];
        let targets = [setting.target("image", bounds[0]).await, setting.target("image", bounds[1]).await];
        let more = json!({"place": null, "targetNodeIds": targets, "size": size, "model": "sketch", "fit": true});
        let job = setting.image("generate", more).await.expect(202).json();
        for (target, bounds) in targets.iter().zip(bounds) {
            is_largest(setting.size_after(&job, target).await, bounds, pixels);
        }
    }
}

#[tokio::test]
async fn a_target_of_a_video_shows_it_whole_within_its_box() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    for ratio in ["16:9", "9:16"] {
        let target = setting.target("video", (600, 600)).await;
        let on = json!({"targetNodeId": target, "aspectRatio": ratio, "fit": true});
        let job = setting.video(on).await.expect(202).json();
        let size = setting.size_after(&job, &target).await;
        is_largest(size, (600, 600), setting.pixels(&target).await);
    }
    let target = setting.target("video", (600, 600)).await;
    let job = setting.video(json!({"targetNodeId": target})).await.expect(202).json();
    assert_eq!(setting.size_after(&job, &target).await, (600.0, 600.0), "not by default");
    // Without a target it would have no effect.
    let nowhere = json!({"canvasId": null, "baseRevision": null, "fit": true});
    setting.video(nowhere).await.expect_error(400, "input_validation_error", &["fit"]);
}

#[tokio::test]
async fn a_place_implies_that_its_targets_fit() {
    let stack = &Stack::with_workers().await;
    let setting = Setting::new(stack).await;
    // Without a ratio, the node has the default size until the video is there.
    let job = setting.video(json!({"place": {"near": setting.photo}})).await.expect(202).json();
    let target = targets_of(&job).remove(0);
    let size = setting.size_after(&job, &target).await;
    is_largest(size, (480, 270), setting.pixels(&target).await);
    // A node that has the ratio of its result already stays as it is.
    let job = setting.resize(json!({"params": {"width": 100, "height": 33, "fit": "fill"}})).await.expect(202).json();
    let target = targets_of(&job).remove(0);
    let before = sides(node(&setting.now().await, &target));
    assert_eq!(setting.size_after(&job, &target).await, (before[2], before[3]));
}

#[tokio::test]
async fn a_target_that_was_resized_since_the_start_keeps_its_size() {
    let stack = &Stack::builder().image_workers(1).video_workers(1).start().await;
    let setting = Setting::new(stack).await;
    for part in [Part::IMAGE_WORKER, Part::VIDEO_WORKER] {
        stack.pause(part);
    }
    let (mut targets, mut jobs) = (Vec::new(), Vec::new());
    for kind in ["image", "image", "image", "video"] {
        let target = setting.target(kind, BOUNDS).await;
        jobs.push(match kind {
            "video" => setting.video(json!({"targetNodeId": target, "fit": true})).await.expect(202).json(),
            _ => setting.action(&target, WIDE, json!({})).await,
        });
        targets.push(target);
    }
    let placed = setting.resize(json!({})).await.expect(202).json();
    targets.push(targets_of(&placed).remove(0));
    jobs.push(placed);
    let now = setting.now().await;
    assert_eq!(node(&now, &targets[0])["metadata"]["job"]["fit"], json!([500.0, 400.0]));
    // One becomes as large as a new image node, one moves.
    let sizes = [(500.0, 401.0), (320.0, 320.0), (500.0, 400.0), (700.0, 300.0), (50.0, 60.0)];
    for (target, (width, height)) in targets.iter().zip(sizes) {
        let operation = match (width, height) {
            (500.0, 400.0) => json!({"type": "node.move", "nodeId": target, "position": {"x": 9000, "y": 9000}}),
            _ => json!({"type": "node.update", "nodeId": target, "patch": {"width": width, "height": height}}),
        };
        setting.apply(json!([operation])).await;
    }
    for part in [Part::IMAGE_WORKER, Part::VIDEO_WORKER] {
        stack.resume(part);
    }
    for (at, (target, job)) in targets.iter().zip(&jobs).enumerate() {
        let size = setting.size_after(job, target).await;
        match at {
            2 => is_largest(size, BOUNDS, WIDE),
            _ => assert_eq!(size, sizes[at], "{target}"),
        }
    }
}

#[tokio::test]
async fn a_replay_has_the_same_fit() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let target = setting.target("image", BOUNDS).await;
    let fork =
        json!({"canvasId": setting.canvas, "baseRevision": setting.now().await["revision"], "idempotencyKey": key()});
    let fork = setting.user.send("/recipes/ad-copy-and-banner/fork", &fork).await.expect(201).json();
    let recipe = json!({"instanceNodeId": fork["resolvedIds"]["recipe"],
        "inputs": {"product": setting.photo, "offer": "Chairs"}});
    let image = json!({"prompt": "A kite", "targetNodeId": setting.target("image", BOUNDS).await});
    let video = json!({"model": "animatic", "prompt": "A kite", "targetNodeId": setting.target("video", BOUNDS).await});
    let action = json!({"inputs": [setting.asset], "params": {"width": 32}, "targetNodeId": target});
    let chain = json!({"inputs": [setting.asset], "steps": [{"action": "resize", "params": {"width": 32}}],
        "targetNodeIds": [setting.target("image", BOUNDS).await]});
    for (path, base) in [
        ("/actions/resize/runs", action),
        ("/actions/runs", chain),
        ("/images/generate", image),
        ("/videos/generate", video),
        ("/recipes/ad-copy-and-banner/runs", recipe),
    ] {
        let request = setting.request(base, json!({"fit": true})).await;
        let send = async |fit: Value| {
            let mut body = request.clone();
            body["fit"] = fit;
            setting.user.send(path, &body).await
        };
        send(json!("yes")).await.expect_error(400, "input_validation_error", &["fit"]);
        send(json!(true)).await.expect(202);
        let again = send(json!(true)).await.expect(202).json();
        assert_eq!(again.pointer("/replayed").or(again.pointer("/runs/0/replayed")), Some(&json!(true)), "{again}");
        send(json!(false)).await.expect_error(409, "conflict", &[]);
    }
    // With a place it says nothing new.
    let request =
        setting.request(json!({"inputs": [setting.asset], "params": {"width": 32}, "place": {}}), json!({})).await;
    for (fit, replayed) in [(Value::Null, Value::Null), (json!(true), json!(true)), (json!(false), json!(true))] {
        let mut body = request.clone();
        if !fit.is_null() {
            body["fit"] = fit;
        }
        let job = setting.user.send("/actions/resize/runs", &body).await.expect(202).json();
        assert_eq!(job["replayed"], replayed, "{job}");
    }
}
