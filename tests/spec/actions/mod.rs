//! Image Actions (docs/reference/actions.md): starts, their checks, replays and results.

mod chains;
mod change_aspect_ratio;
mod color_grade;
mod crop;
mod overlay_image;
mod params;
mod rotate;
mod setting;
mod side_by_side_composite;
mod video_frame;
mod waiting;

use domain::action::ActionSlug;
use e2e::api::{key, text};
use e2e::{Reply, Stack, images};
use serde_json::{Value, json};
use uuid::Uuid;

use setting::Setting;

#[tokio::test]
async fn actions_are_listed_in_the_order_of_the_table() {
    let stack = &Stack::with_workers().await;
    let user = stack.user_with("canvas:read").await;
    let listed = user.get("/actions").await.ok();
    let actions = listed["actions"].as_array().expect("a list");
    let slugs: Vec<&str> = actions.iter().map(|action| text(action, "/slug")).collect();
    let of_images = ActionSlug::ALL.iter().filter(|slug| **slug != ActionSlug::VideoFrame);
    assert_eq!(slugs, of_images.map(|slug| slug.as_str()).collect::<Vec<_>>());
    let resize = &actions[0];
    assert_eq!(
        (&resize["id"], &resize["slug"], &resize["version"]),
        (&json!("action:resize"), &json!("resize"), &json!("1.0.0"))
    );
    assert!(!text(resize, "/title").is_empty() && !text(resize, "/summary").is_empty());
    assert!(resize["estimatedSeconds"].as_i64() >= Some(1));
    assert_eq!((resize["inputs"].as_array().map(Vec::len), &resize["inputs"][0]["id"]), (Some(1), &json!("image")));
    let parameters = resize["parameters"].as_array().expect("a list");
    let parameter =
        |id: &str| parameters.iter().find(|parameter| parameter["id"] == id).unwrap_or_else(|| panic!("{id}"));
    for side in ["width", "height"] {
        let side = parameter(side);
        assert_eq!((&side["type"], &side["integer"]), (&json!("number"), &json!(true)));
        assert_eq!((side["min"].as_f64(), side["max"].as_f64()), (Some(1.0), Some(16_384.0)));
    }
    let options = |id: &str| -> Vec<String> {
        parameter(id)["options"]
            .as_array()
            .expect("options")
            .iter()
            .map(|option| text(option, "/value").to_owned())
            .collect()
    };
    assert_eq!(options("fit"), ["inside", "cover", "contain", "fill", "outside"]);
    assert_eq!(options("format"), ["auto", "png", "jpeg", "webp"]);
    assert_eq!(options("enlarge"), ["yes", "no"]);
    assert_eq!(options("anchor").len(), 9);
    for (id, default) in [
        ("fit", json!("inside")),
        ("anchor", json!("center")),
        ("background", json!("#00000000")),
        ("enlarge", json!("yes")),
        ("format", json!("auto")),
        ("quality", json!(85)),
    ] {
        assert_eq!(parameter(id)["default"], default, "{id}");
    }
}

#[tokio::test]
async fn a_search_matches_slug_title_and_summary() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let found =
        async |q: &str| user.get(&format!("/actions?q={q}")).await.ok()["actions"].as_array().expect("a list").clone();
    assert!(found("resize").await.iter().any(|action| action["slug"] == "resize"));
    assert!(found("RESIZE").await.iter().any(|action| action["slug"] == "resize"));
    assert!(found("no%20such%20thing").await.is_empty());
    user.get(&format!("/actions?q={}", "q".repeat(240))).await.ok();
    user.get(&format!("/actions?q={}", "q".repeat(241))).await.expect_error(400, "input_validation_error", &["q"]);
}

#[tokio::test]
async fn an_action_is_read_by_slug_and_handle() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let listed = user.get("/actions").await.ok()["actions"][0].clone();
    for name in ["resize", "action:resize", "action%3Aresize"] {
        assert_eq!(user.get(&format!("/actions/{name}")).await.ok()["action"], listed);
    }
    for unknown in ["resiz", "action:absent", "Resize"] {
        user.get(&format!("/actions/{unknown}")).await.expect_error(404, "not_found", &[]);
        let run = json!({"canvasId": "absent", "baseRevision": "r", "idempotencyKey": key(), "targetNodeId": "t",
            "inputs": ["node:n"], "params": {"width": 1}});
        user.send(&format!("/actions/{unknown}/runs"), &run).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn a_run_is_accepted_as_202_with_its_record() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let before = user.canvas(&setting.canvas).await;
    let reply = user.send("/actions/action:resize/runs", &setting.request(&user).await).await.expect(202);
    let job = reply.json();
    assert_eq!(reply.header("location"), Some(text(&job, "/pollUrl")));
    let uuid = text(&job, "/rawId");
    assert!(Uuid::parse_str(uuid).is_ok());
    assert_eq!((text(&job, "/id"), text(&job, "/run")), (&*format!("job:{uuid}"), &*format!("run:{uuid}")));
    assert_eq!(text(&job, "/pollUrl"), format!("/api/canvas-agent/v1/runs/{uuid}"));
    assert_eq!(
        (&job["kind"], &job["operation"], &job["status"]),
        (&json!("action"), &json!("action"), &json!("queued"))
    );
    assert_eq!((&job["actionId"], &job["actionVersion"]), (&json!("action:resize"), &json!("1.0.0")));
    assert_eq!(job["targets"], json!([format!("node:{}", setting.target)]));
    assert_eq!(job["references"], json!([setting.asset]));
    assert_eq!(text(&job, "/canvasId"), format!("canvas:{}:{}", user.uid, setting.canvas));
    assert_eq!(text(&job, "/canvasUrl"), format!("{}/c/{}/{}", stack.origin(0), user.uid, setting.canvas));
    assert_ne!(job["canvasRevision"], before["revision"]);
    assert_eq!(job["creditCost"], 0);
    assert!(job["estimatedSeconds"].as_i64() >= Some(1));
    assert!(job["timing"]["createdAt"].is_string() && job["timing"]["queuedAt"].is_string());
    assert!(
        job.get("images").is_none()
            && job.get("failure").is_none()
            && job.get("replayed").is_none_or(|value| value == false)
    );
    let activity = user.get(&format!("/canvases/{}", setting.canvas)).await.ok()["activity"].clone();
    let started = activity.as_array().and_then(|entries| entries.iter().find(|entry| entry["type"] == "job.started"));
    let started = started.expect("the start is listed as an activity");
    assert_eq!((&started["revision"], &started["nodeIds"]), (&job["canvasRevision"], &json!([setting.target])));
    user.finished(&job).await;
}

#[tokio::test]
async fn a_run_ends_in_a_durable_asset_in_its_target_node() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let job = user.send("/actions/resize/runs", &setting.request(&user).await).await.expect(202).json();
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    let image = &done["images"][0];
    assert_eq!(done["images"].as_array().map(Vec::len), Some(1));
    assert_eq!((&image["width"], &image["height"], &image["mediaType"]), (&json!(32), &json!(24), &json!("image/png")));
    assert_eq!(text(image, "/nodeId"), format!("node:{}", setting.target));
    let file = stack.anonymous().get(text(image, "/previewUrl")).await.expect(200);
    assert_eq!(
        (images::size(&file.body), file.body.len()),
        ((32, 24), image["bytes"].as_u64().expect("a size") as usize)
    );
    assert_eq!(text(image, "/markdown"), format!("![Picture without description]({})", text(image, "/previewUrl")));
    for time in ["createdAt", "queuedAt", "startedAt", "completedAt"] {
        assert!(done["timing"][time].is_string(), "{time}");
    }
    for duration in ["queueDurationMs", "executionDurationMs", "totalDurationMs"] {
        assert!(done["timing"][duration].is_u64(), "{duration}");
    }
    assert_eq!(done["durationMs"], done["timing"]["totalDurationMs"]);

    let read = user.get(&format!("/canvases/{}", setting.canvas)).await.ok();
    assert_eq!(read["canvas"]["revision"], done["canvasRevision"]);
    let node = setting.target_of(&read["canvas"]);
    assert_eq!(node["asset"], image["assetId"]);
    let provenance = &node["metadata"]["provenance"];
    assert_eq!((&provenance["kind"], &provenance["run"]), (&json!("action"), &done["run"]));
    assert_eq!((&provenance["actionId"], &provenance["actionVersion"]), (&json!("action:resize"), &json!("1.0.0")));
    assert_eq!((&provenance["params"]["width"], &provenance["params"]["fit"]), (&json!(32), &json!("inside")));
    assert_eq!(provenance["references"], json!([{"handle": setting.asset}]));
    assert!(provenance["createdAt"].is_string(), "{provenance}");
    let finished = &read["activity"][0];
    assert_eq!((&finished["type"], &finished["revision"]), (&json!("job.finished"), &done["canvasRevision"]));
    assert_eq!(finished["nodeIds"], json!([setting.target]));

    let asset = user.get(&format!("/assets/{}", text(image, "/assetId"))).await.ok()["asset"].clone();
    assert_eq!((&asset["width"], &asset["height"], &asset["kind"]), (&json!(32), &json!(24), &json!("image")));
    let listed = user.get(&format!("/assets?canvasId={}", setting.canvas)).await.ok();
    assert_eq!(listed["assets"][0]["handle"], image["assetId"]);
}

#[tokio::test]
async fn an_input_can_be_a_node_or_an_asset_of_either_form() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(64, 48)).await;
    let short = format!("asset:{}", text(&asset, "/id"));
    for (input, reference) in [
        (text(&asset, "/node"), text(&asset, "/node")),
        (text(&asset, "/handle"), text(&asset, "/handle")),
        (short.as_str(), text(&asset, "/handle")),
    ] {
        let target = user.slot(id).await;
        let mut request = user.resize_request(id, &format!("node:{target}"), input).await;
        request["canvasId"] = canvas["handle"].clone();
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        assert_eq!(job["references"], json!([reference]), "the reference is in its full form");
        assert_eq!(user.finished(&job).await["status"], "succeeded");
    }
}

#[tokio::test]
async fn the_format_follows_the_input_unless_one_is_asked_for() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    for (bytes, params, media_type, size) in [
        (images::jpeg(64, 48), json!({"width": 16}), "image/jpeg", (16, 12)),
        (images::png(64, 48), json!({"height": 12}), "image/png", (16, 12)),
        (images::webp(64, 48), json!({"width": 16, "height": 16}), "image/webp", (16, 12)),
        (images::gif(), json!({"width": 3, "height": 2, "fit": "fill"}), "image/png", (3, 2)),
        (images::transparent_png(64, 48), json!({"width": 16, "format": "jpeg", "quality": 1}), "image/jpeg", (16, 12)),
        (images::jpeg(64, 48), json!({"width": 16, "height": 16, "fit": "contain"}), "image/png", (16, 16)),
        (
            images::jpeg(64, 48),
            json!({"width": 16, "height": 16, "fit": "cover", "format": "webp"}),
            "image/webp",
            (16, 16),
        ),
        (images::png(64, 48), json!({"width": 128, "enlarge": "no"}), "image/png", (64, 48)),
    ] {
        let setting = Setting::new(&user, bytes).await;
        let mut request = setting.request(&user).await;
        request["params"] = params.clone();
        let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
        let done = user.finished(&job).await;
        let image = &done["images"][0];
        assert_eq!(image["mediaType"], media_type, "{params}: {done}");
        let file = stack.anonymous().get(text(image, "/previewUrl")).await.expect(200);
        assert_eq!((file.header("content-type"), images::size(&file.body)), (Some(media_type), size), "{params}");
    }
}

#[tokio::test]
async fn params_are_judged_by_the_schema_of_the_action() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    for (params, fields) in [
        (json!({"width": 0}), &["params.width"][..]),
        (json!({"width": 16_385}), &["params.width"]),
        (json!({"width": 1.5}), &["params.width"]),
        (json!({"width": "32"}), &["params.width"]),
        (json!({"width": null}), &["params.width"]),
        (json!({"height": -1}), &["params.height"]),
        (json!({"width": 32, "fit": "stretch"}), &["params.fit"]),
        (json!({"width": 32, "anchor": "middle"}), &["params.anchor"]),
        (json!({"width": 32, "enlarge": true}), &["params.enlarge"]),
        (json!({"width": 32, "background": "red"}), &["params.background"]),
        (json!({"width": 32, "background": "#12"}), &["params.background"]),
        (json!({"width": 32, "format": "gif"}), &["params.format"]),
        (json!({"width": 32, "quality": 0}), &["params.quality"]),
        (json!({"width": 32, "quality": 101}), &["params.quality"]),
        (json!({"width": 32, "sharpen": 1}), &["params.sharpen"]),
        (
            json!({"width": 0, "height": 16_385, "fit": "x", "y": 1}),
            &["params.width", "params.height", "params.fit", "params.y"],
        ),
    ] {
        let mut request = setting.request(&user).await;
        request["params"] = params.clone();
        user.send("/actions/resize/runs", &request).await.expect_error(400, "input_validation_error", fields);
    }
    for missing in [json!({}), json!({"fit": "cover"})] {
        let mut request = setting.request(&user).await;
        request["params"] = missing;
        let refused = user.send("/actions/resize/runs", &request).await.expect(400).json();
        assert!(text(&refused, "/error/fields/0/field").starts_with("params."), "{refused}");
    }
    let mut request = setting.request(&user).await;
    request.as_object_mut().expect("an object").remove("params");
    let refused = user.send("/actions/color-grade/runs", &request).await;
    refused.expect_error(400, "input_validation_error", &["params"]);
    for good in ["#abc", "#A0b1C2", "#a0b1c2d3"] {
        let setting = Setting::new(&user, images::png(8, 8)).await;
        let mut request = setting.request(&user).await;
        request["params"] = json!({"width": 1, "background": good, "quality": 100});
        user.send("/actions/resize/runs", &request).await.expect(202);
    }
}

#[tokio::test]
async fn inputs_are_counted_and_must_resolve() {
    let stack = &Stack::with_workers().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let theirs = other.upload("image/png", images::png(4, 4)).await;
    let empty = format!("node:{}", user.slot(&setting.canvas).await);
    let asset = setting.asset.clone();
    let start = async |inputs: Value| {
        let mut request = setting.request(&user).await;
        request["inputs"] = inputs;
        user.send("/actions/resize/runs", &request).await
    };
    for count in [json!([]), json!([asset, asset]), json!([asset, asset, asset])] {
        start(count).await.expect_error(400, "input_validation_error", &["inputs"]);
    }
    for malformed in ["", "x", "node:a b", "asset:", "canvas:a", "https://example.com/a.png"] {
        let refused = start(json!([malformed])).await.expect(400).json();
        assert_eq!(refused["error"]["fields"][0]["field"], "inputs[0]", "{malformed}: {refused}");
    }
    for absent in ["node:absent", "asset:absent", "asset:nobody:absent", text(&theirs, "/handle"), &empty] {
        start(json!([absent])).await.expect_error(422, "unprocessable_entity", &["inputs[0]"]);
    }
}

#[tokio::test]
async fn a_target_must_be_a_new_empty_image_node() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let shown = user.upload_into(&setting.canvas, "image/png", images::png(8, 8)).await;
    let made = user
        .apply(&setting.canvas, json!([{"type": "node.create", "clientId": "t", "node": {"type": "text", "position": {"x": -9000, "y": 0}}}]))
        .await;
    let start = async |target: &str, input: &str| -> Reply {
        let request = user.resize_request(&setting.canvas, target, input).await;
        user.send("/actions/resize/runs", &request).await
    };
    for refused in ["absent", "node:absent", text(&made, "/resolvedIds/t"), text(&shown, "/node")] {
        start(refused, &setting.asset).await.expect_error(422, "unprocessable_entity", &["targetNodeId"]);
    }
    for malformed in ["asset:x", "a b"] {
        start(malformed, &setting.asset).await.expect_error(400, "input_validation_error", &["targetNodeId"]);
    }
    let itself = start(&setting.target, &format!("node:{}", setting.target)).await;
    itself.expect_error(400, "input_validation_error", &["targetNodeId"]);
    // A filled target is no longer a new node.
    let job = start(&setting.target, &setting.asset).await.expect(202).json();
    user.finished(&job).await;
    start(&setting.target, &setting.asset).await.expect_error(422, "unprocessable_entity", &["targetNodeId"]);
}

#[tokio::test]
async fn an_output_beyond_the_limits_is_refused_before_any_work() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let before = user.canvas(&setting.canvas).await;
    for params in [
        json!({"width": 16_384, "height": 16_384, "fit": "fill"}),
        json!({"width": 10_001, "height": 10_000, "fit": "fill"}),
        json!({"width": 16_384, "height": 16_384, "fit": "contain"}),
        json!({"height": 16_384, "fit": "outside"}),
    ] {
        let mut request = setting.request(&user).await;
        request["params"] = params.clone();
        let refused = user.send("/actions/resize/runs", &request).await;
        assert_eq!(refused.status, 422, "{params}: {refused}");
    }
    assert_eq!(user.canvas(&setting.canvas).await, before);
}

#[tokio::test]
async fn the_canvas_and_its_revision_are_checked() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let with = async |field: &str, value: Value| {
        let mut request = setting.request(&user).await;
        request[field] = value;
        user.send("/actions/resize/runs", &request).await
    };
    with("canvasId", json!("absent")).await.expect_error(404, "not_found", &[]);
    with("canvasId", json!("canvas:nobody:absent")).await.expect_error(404, "not_found", &[]);
    with("canvasId", json!("a b")).await.expect_error(400, "input_validation_error", &["canvasId"]);
    with("canvasId", json!(7)).await.expect_error(400, "input_validation_error", &["canvasId"]);
    with("idempotencyKey", json!("short")).await.expect_error(400, "input_validation_error", &["idempotencyKey"]);
    with("colour", json!("red")).await.expect_error(400, "input_validation_error", &["colour"]);
    let stale = with("baseRevision", json!("stale")).await.expect(409).json();
    let now = user.canvas(&setting.canvas).await;
    assert_eq!(
        (&stale["error"]["code"], &stale["error"]["details"]["currentRevision"]),
        (&json!("conflict"), &now["revision"])
    );
}

#[tokio::test]
async fn an_equal_start_is_replayed_and_starts_nothing() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let request = setting.request(&user).await;
    let starts = futures_util::future::join_all(
        (0..5).map(|_| async { user.send("/actions/resize/runs", &request).await.expect(202).json() }),
    )
    .await;
    assert!(starts.iter().all(|job| job["id"] == starts[0]["id"]), "one job");
    assert_eq!(starts.iter().filter(|job| job["replayed"] == true).count(), 4);
    let done = user.finished(&starts[0]).await;
    let settled = user.canvas(&setting.canvas).await;
    let replay = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!(
        (&replay["replayed"], &replay["status"], &replay["id"]),
        (&json!(true), &json!("succeeded"), &done["id"])
    );
    assert_eq!(replay["images"][0]["assetId"], done["images"][0]["assetId"]);
    // Other spellings of the same request: explicit defaults, full handles.
    let mut same = request.clone();
    same["canvasId"] = json!(format!("canvas:{}:{}", user.uid, setting.canvas));
    same["targetNodeId"] = json!(format!("node:{}", setting.target));
    assert_eq!(user.send("/actions/action:resize/runs", &same).await.expect(202).json()["id"], done["id"]);
    let mut other = request.clone();
    other["params"]["width"] = json!(33);
    user.send("/actions/resize/runs", &other).await.expect_error(409, "conflict", &[]);
    assert_eq!(user.canvas(&setting.canvas).await, settled);
    // A rejected start does not consume its key.
    let setting = Setting::new(&user, images::png(64, 48)).await;
    let mut request = setting.request(&user).await;
    let good = request["targetNodeId"].clone();
    request["targetNodeId"] = json!("absent");
    user.send("/actions/resize/runs", &request).await.expect(422);
    request["targetNodeId"] = good;
    let job = user.send("/actions/resize/runs", &request).await.expect(202).json();
    assert_eq!(user.finished(&job).await["status"], "succeeded");
}

#[tokio::test]
async fn a_broken_image_fails_the_run_and_leaves_the_target_empty() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let jpeg = images::jpeg(300, 200);
    let png = images::png(300, 200);
    for (what, bytes) in [
        ("broken behind its header", images::broken_png(300, 200)),
        ("claiming 100 megapixels", images::broken_png(10_000, 10_000)),
        ("a PNG cut in half", png[..png.len() / 2].to_vec()),
        ("a JPEG cut after its header", jpeg[..jpeg.len() / 3].to_vec()),
    ] {
        let setting = Setting::new(&user, bytes).await;
        let job = user.send("/actions/resize/runs", &setting.request(&user).await).await.expect(202).json();
        let failed = user.finished(&job).await;
        assert_eq!(failed["status"], "failed", "{what}: {failed}");
        let failure = &failed["failure"];
        assert_eq!(
            (&failure["code"], &failure["retryable"]),
            (&json!("action_input_invalid"), &json!(false)),
            "{what}"
        );
        assert!(!text(failure, "/message").is_empty() && failed.get("images").is_none());
        let read = user.get(&format!("/canvases/{}", setting.canvas)).await.ok();
        assert!(setting.target_of(&read["canvas"]).get("asset").is_none(), "nothing was written partially");
        assert_eq!(
            (&read["activity"][0]["type"], &read["canvas"]["revision"]),
            (&json!("job.finished"), &failed["canvasRevision"])
        );
        let listed = user.get(&format!("/assets?canvasId={}", setting.canvas)).await.ok();
        assert_eq!(listed["assets"], json!([]));
        // A node whose job is over accepts another run.
        let good = user.upload("image/png", images::png(64, 48)).await;
        let again = user.resize_request(&setting.canvas, &setting.target, text(&good, "/handle")).await;
        let job = user.send("/actions/resize/runs", &again).await.expect(202).json();
        assert_eq!(user.finished(&job).await["status"], "succeeded");
    }
}

#[tokio::test]
async fn a_member_runs_an_action_on_a_shared_canvas() {
    let stack = &Stack::with_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    let asset = editor.upload("image/png", images::png(64, 48)).await;
    let target = editor.slot(handle).await;
    let request = editor.resize_request(handle, &target, text(&asset, "/handle")).await;
    let job = editor.send("/actions/resize/runs", &request).await.expect(202).json();
    let done = editor.finished(&job).await;
    assert!(text(&done, "/images/0/assetId").starts_with(&format!("asset:{}:", owner.uid)), "the asset is the owner's");
    // A job belongs to the account that started it.
    owner.get(text(&job, "/pollUrl")).await.expect_error(404, "not_found", &[]);
    owner.get(&format!("/assets/{}", text(&done, "/images/0/assetId"))).await.ok();
}

#[tokio::test]
async fn the_same_input_and_params_give_the_same_bytes() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let bytes = images::jpeg(320, 200);
    let mut results = Vec::new();
    for _ in 0..2 {
        let setting = Setting::new(&user, bytes.clone()).await;
        let job = user.send("/actions/resize/runs", &setting.request(&user).await).await.expect(202).json();
        let done = user.finished(&job).await;
        results.push(stack.anonymous().get(text(&done, "/images/0/previewUrl")).await.expect(200).body);
    }
    assert_eq!(results[0], results[1]);
}
