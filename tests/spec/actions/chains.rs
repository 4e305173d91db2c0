//! Several Actions in a row on each of several images (docs/reference/actions.md#chains).

use e2e::api::{key, text};
use e2e::{Reply, Stack, User, films, images};
use serde_json::{Value, json};

/// A canvas of an account.
struct Board {
    user: User,
    canvas: String,
}

impl Board {
    async fn new(stack: &Stack) -> Self {
        let user = stack.user().await;
        let canvas = text(&user.make_canvas().await, "/id").to_owned();
        Self { user, canvas }
    }

    async fn image(&self, bytes: Vec<u8>) -> String {
        text(&self.user.upload("application/octet-stream", bytes).await, "/handle").to_owned()
    }

    /// A request for the present revision and under a new key, into new targets; `null` removes a member.
    async fn request(&self, inputs: &[&str], steps: Value, more: Value) -> Value {
        let revision = self.user.canvas(&self.canvas).await["revision"].clone();
        let mut request = json!({
            "canvasId": self.canvas, "baseRevision": revision, "idempotencyKey": key(), "inputs": inputs, "steps": steps,
            "place": {},
        });
        for (name, value) in more.as_object().expect("an object") {
            match value {
                Value::Null => drop(request.as_object_mut().expect("an object").remove(name)),
                value => request[name] = value.clone(),
            }
        }
        request
    }

    async fn send(&self, inputs: &[&str], steps: Value, more: Value) -> Reply {
        self.user.send("/actions/runs", &self.request(inputs, steps, more).await).await
    }

    async fn ended(&self, started: &Value) -> Vec<Value> {
        let mut ended = Vec::new();
        for run in started["runs"].as_array().expect("runs") {
            ended.push(self.user.finished(run).await);
        }
        ended
    }

    async fn refused(&self, inputs: &[&str], steps: Value, more: Value, status: u16, fields: &[&str]) {
        let code = if status == 400 { "input_validation_error" } else { "unprocessable_entity" };
        self.send(inputs, steps, more).await.expect_error(status, code, fields);
    }

    async fn node(&self, id: &str) -> Value {
        let canvas = self.user.canvas(&self.canvas).await;
        let id = id.trim_start_matches("node:");
        canvas["nodes"].as_array().expect("nodes").iter().find(|node| node["id"] == id).expect("is there").clone()
    }
}

fn resize(width: u32) -> Value {
    json!({"action": "resize", "params": {"width": width}})
}

fn crop(width: u32, height: u32) -> Value {
    json!({"action": "action:crop", "params": {"width": width, "height": height}})
}

async fn file(stack: &Stack, done: &Value) -> Vec<u8> {
    assert_eq!(done["status"], "succeeded", "{done}");
    stack.anonymous().get(text(done, "/images/0/previewUrl")).await.expect(200).body.to_vec()
}

#[tokio::test]
async fn each_input_is_a_run_of_all_steps_at_one_revision() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let (first, second) = (board.image(images::png(64, 48)).await, board.image(images::jpeg(96, 32)).await);
    let before = board.user.canvas(&board.canvas).await["revision"].clone();
    let steps = json!([resize(32), crop(16, 8)]);
    let reply = board.send(&[&first, &second, &first], steps, json!({})).await.expect(202);
    assert_eq!(reply.header("location"), None, "there is no single record");
    let started = reply.json();
    let runs = started["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3);
    for (run, input) in runs.iter().zip([&first, &second, &first]) {
        assert_eq!((&run["canvasRevision"], &run["references"]), (&runs[0]["canvasRevision"], &json!([input])));
        assert_eq!((&run["status"], &run["kind"], &run["creditCost"]), (&json!("queued"), &json!("action"), &json!(0)));
        assert_eq!(run["actionId"], "action:crop", "the last one");
        assert_ne!(run["canvasRevision"], before);
    }
    for done in board.ended(&started).await {
        assert_eq!(images::size(&file(stack, &done).await), (16, 8));
        let node = board.node(text(&done, "/targets/0")).await;
        let provenance = &node["metadata"]["provenance"];
        assert_eq!((&provenance["actionId"], &provenance["params"]["width"]), (&json!("action:crop"), &json!(16)));
        let steps = provenance["steps"].as_array().expect("steps");
        let ids: Vec<&str> = steps.iter().map(|step| text(step, "/actionId")).collect();
        assert_eq!(ids, ["action:resize", "action:crop"]);
        assert_eq!((&steps[0]["params"]["width"], &steps[0]["actionVersion"]), (&json!(32), &json!("1.0.0")));
        let asset =
            board.user.get(&format!("/assets/{}", text(&done, "/images/0/assetId"))).await.ok()["asset"].clone();
        assert!(text(&asset, "/name").ends_with("-resize-crop.png"), "{asset}");
    }
    let activity = board.user.get(&format!("/canvases/{}", board.canvas)).await.ok()["activity"].clone();
    let starts = activity.as_array().expect("a list").iter().filter(|entry| entry["type"] == "job.started");
    assert_eq!(starts.map(|entry| entry["nodeIds"].as_array().map(Vec::len)).collect::<Vec<_>>(), [Some(3)]);
}

#[tokio::test]
async fn the_result_is_that_of_the_actions_one_after_the_other() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let (photo, logo) = (board.image(images::jpeg(320, 200)).await, board.image(images::transparent_png(64, 48)).await);
    let steps = [
        ("change-aspect-ratio", json!({"ratio": "4:5", "mode": "blur"}), None),
        ("resize", json!({"width": 108, "format": "jpeg", "quality": 3}), None),
        ("overlay-image", json!({"scale": 40, "rotate": 10}), Some(&logo)),
        ("add-text-to-image", json!({"text": "Harbor", "format": "webp", "quality": 90}), None),
    ];
    let chain: Vec<Value> = steps
        .iter()
        .map(|(action, params, with)| match with {
            Some(with) => json!({"action": action, "params": params, "with": with}),
            None => json!({"action": action, "params": params}),
        })
        .collect();
    let started = board.send(&[&photo], json!(chain), json!({})).await.expect(202).json();
    let chained = file(stack, &board.ended(&started).await[0]).await;
    let mut input = photo.clone();
    let mut last = Vec::new();
    for (index, (action, params, with)) in steps.iter().enumerate() {
        let mut params = params.clone();
        if index + 1 < steps.len() {
            params["format"] = json!("png");
        }
        let inputs: Vec<&String> = [Some(&input), *with].into_iter().flatten().collect();
        let more = json!({"steps": null, "inputs": inputs, "params": params});
        let request = board.request(&[], json!([]), more).await;
        let job = board.user.send(&format!("/actions/{action}/runs"), &request).await.expect(202).json();
        let done = board.user.finished(&job).await;
        last = file(stack, &done).await;
        input = text(&done, "/images/0/assetId").to_owned();
    }
    assert!(chained == last, "{} and {} bytes", chained.len(), last.len());
}

#[tokio::test]
async fn a_second_image_is_named_where_the_action_reads_two() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let (photo, logo) = (board.image(images::png(64, 48)).await, board.image(images::png(8, 8)).await);
    let overlay = |with: Value| json!({"action": "overlay-image", "params": {}, "with": with});
    let without = json!({"action": "overlay-image", "params": {}});
    board.refused(&[&photo], json!([resize(32), without]), json!({}), 400, &["steps[1].with"]).await;
    let mut second = resize(32);
    second["with"] = json!(logo);
    board.refused(&[&photo], json!([second]), json!({}), 400, &["steps[0].with"]).await;
    board.refused(&[&photo], json!([overlay(json!("x"))]), json!({}), 400, &["steps[0].with"]).await;
    board.refused(&[&photo], json!([overlay(json!("node:absent"))]), json!({}), 422, &["steps[0].with"]).await;
    let started = board.send(&[&photo], json!([resize(32), overlay(json!(logo))]), json!({})).await.expect(202).json();
    assert_eq!(started["runs"][0]["references"], json!([photo, logo]));
    let done = board.ended(&started).await.remove(0);
    let node = board.node(text(&done, "/targets/0")).await;
    assert_eq!(node["metadata"]["provenance"]["steps"][1]["with"], json!(logo));
}

#[tokio::test]
async fn inputs_steps_and_targets_are_counted() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let photo = board.image(images::png(64, 48)).await;
    let one = || json!([resize(8)]);
    let many = |count: usize| vec![photo.as_str(); count];
    board.refused(&[], one(), json!({}), 400, &["inputs"]).await;
    board.refused(&many(21), one(), json!({}), 400, &["inputs"]).await;
    board.refused(&many(1), json!([]), json!({}), 400, &["steps"]).await;
    board.refused(&many(1), json!(vec![resize(8); 5]), json!({}), 400, &["steps"]).await;
    let most = board.send(&many(20), json!(vec![resize(8); 4]), json!({})).await.expect(202).json();
    assert_eq!(most["runs"].as_array().map(Vec::len), Some(20));
    board.ended(&most).await;
    let mut slots = Vec::new();
    for _ in 0..3 {
        slots.push(board.user.slot(&board.canvas).await);
    }
    let into = |targets: &[String]| json!({"place": null, "targetNodeIds": targets});
    board.refused(&many(3), one(), into(&slots[..2]), 400, &["targetNodeIds"]).await;
    board.refused(&many(2), one(), into(&slots), 400, &["targetNodeIds"]).await;
    let twice = [slots[0].clone(), slots[0].clone()];
    board.refused(&many(2), one(), into(&twice), 400, &["targetNodeIds[1]"]).await;
    board.refused(&many(2), one(), json!({"place": {"count": 3}}), 400, &["place.count"]).await;
    board.refused(&many(1), one(), json!({"place": null}), 400, &["targetNodeIds", "place"]).await;
    let both = json!({"targetNodeIds": slots[..1]});
    board.refused(&many(1), one(), both, 400, &["targetNodeIds", "place"]).await;
    let named = format!("node:{}", slots[0]);
    board.refused(&[&named], one(), into(&slots[..1]), 400, &["targetNodeIds[0]"]).await;
    let started = board.send(&many(3), one(), into(&slots)).await.expect(202).json();
    let targets: Vec<&Value> = started["runs"].as_array().expect("runs").iter().map(|run| &run["targets"][0]).collect();
    assert_eq!(json!(targets), json!(slots.iter().map(|slot| format!("node:{slot}")).collect::<Vec<_>>()));
    for done in board.ended(&started).await {
        assert_eq!(done["status"], "succeeded", "one image may be several inputs: {done}");
    }
    let taken = board.send(&many(3), one(), into(&slots)).await;
    taken.expect_error(422, "unprocessable_entity", &["targetNodeIds[0]", "targetNodeIds[1]", "targetNodeIds[2]"]);
}

#[tokio::test]
async fn every_step_is_checked_before_anything_starts() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let photo = board.image(images::png(64, 48)).await;
    let before = board.user.canvas(&board.canvas).await;
    let wrong = json!([
        {"action": "resize", "params": {"width": 0, "depth": 1}},
        {"action": "melt", "params": {}},
        {"action": "add-text-to-image", "params": {}},
        {"action": "video-frame", "params": {}},
    ]);
    let fields = [
        "steps[0].params.width",
        "steps[0].params.depth",
        "steps[1].action",
        "steps[2].params.text",
        "steps[3].action",
    ];
    board.refused(&[&photo], wrong, json!({}), 400, &fields).await;
    let beyond = json!([resize(32), crop(33, 5)]);
    board.refused(&[&photo], beyond, json!({}), 422, &["steps[1].params.width"]).await;
    let huge = json!([resize(16_384), {"action": "resize", "params": {"height": 16_384, "fit": "outside"}}]);
    board.refused(&[&photo], huge, json!({}), 422, &["steps[0].params.width"]).await;
    let inputs = [photo.as_str(), "node:absent", "asset:absent"];
    board.refused(&inputs, json!([resize(8)]), json!({}), 422, &["inputs[1]", "inputs[2]"]).await;
    assert_eq!(board.user.canvas(&board.canvas).await, before, "all or none");
}

#[tokio::test]
async fn an_input_of_another_account_is_not_there() {
    let stack = &Stack::with_workers().await;
    let (board, other) = (Board::new(stack).await, Board::new(stack).await);
    let (mine, theirs) = (board.image(images::png(8, 8)).await, other.image(images::png(8, 8)).await);
    board.refused(&[&mine, &theirs], json!([resize(8)]), json!({}), 422, &["inputs[1]"]).await;
    let with = json!([{"action": "overlay-image", "params": {}, "with": theirs}]);
    board.refused(&[&mine], with, json!({}), 422, &["steps[0].with"]).await;
    let elsewhere = json!({"canvasId": format!("canvas:{}:{}", other.user.uid, other.canvas)});
    board.send(&[&mine], json!([resize(8)]), elsewhere).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_step_that_fails_on_an_input_ends_its_run_alone() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let (good, small) = (board.image(images::png(64, 48)).await, board.image(images::png(20, 10)).await);
    let broken = board.image(images::broken_png(64, 48)).await;
    let turn = json!({"action": "rotate", "params": {"degrees": 0}});
    let steps = json!([turn, crop(40, 40)]);
    let started = board.send(&[&good, &small, &broken, &good], steps, json!({})).await.expect(202).json();
    let ended = board.ended(&started).await;
    for at in [0, 3] {
        assert_eq!(ended[at]["status"], "succeeded", "{}", ended[at]);
    }
    for (at, step) in [(1, "steps[1]"), (2, "steps[0]")] {
        let failure = &ended[at]["failure"];
        assert_eq!((&ended[at]["status"], &failure["code"]), (&json!("failed"), &json!("action_input_invalid")));
        assert!(text(failure, "/message").starts_with(&format!("{step}: ")), "{failure}");
        assert!(board.node(text(&ended[at], "/targets/0")).await.get("asset").is_none());
    }
}

#[tokio::test]
async fn an_equal_start_is_replayed_and_a_dry_run_starts_nothing() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let photo = board.image(images::png(64, 48)).await;
    let before = board.user.canvas(&board.canvas).await;
    let mut request = board.request(&[&photo, &photo], json!([resize(32), crop(8, 8)]), json!({})).await;
    request["validateOnly"] = json!(true);
    let quote = board.user.send("/actions/runs", &request).await.ok();
    assert_eq!((&quote["creditCost"], quote["newTargets"].as_array().map(Vec::len)), (&json!(0), Some(2)));
    assert_eq!(board.user.canvas(&board.canvas).await, before);
    request.as_object_mut().expect("an object").remove("validateOnly");
    let started = board.user.send("/actions/runs", &request).await.expect(202).json();
    let ended = board.ended(&started).await;
    let settled = board.user.canvas(&board.canvas).await;
    // A default is the same as none.
    request["steps"][1]["params"]["quality"] = json!(85);
    let again = board.user.send("/actions/runs", &request).await.expect(202).json();
    for (run, done) in again["runs"].as_array().expect("runs").iter().zip(&ended) {
        assert_eq!((&run["id"], &run["replayed"], &run["status"]), (&done["id"], &json!(true), &json!("succeeded")));
    }
    request["steps"][1]["params"]["width"] = json!(9);
    board.user.send("/actions/runs", &request).await.expect_error(409, "conflict", &[]);
    assert_eq!(board.user.canvas(&board.canvas).await, settled);
}

#[tokio::test]
async fn a_replay_has_the_last_state_of_runs_whose_records_are_removed() {
    let stack = &Stack::builder()
        .image_workers(1)
        .env("CANVAS_RETENTION_FINALIZED_SECONDS", 1)
        .env("CANVAS_RETENTION_TOMBSTONE_SECONDS", 1)
        .env("CANVAS_SWEEP_SECONDS", 1)
        .start()
        .await;
    let board = Board::new(stack).await;
    let photo = board.image(images::png(64, 48)).await;
    let request = board.request(&[&photo, &photo], json!([resize(32), crop(8, 8)]), json!({})).await;
    let started = board.user.send("/actions/runs", &request).await.expect(202).json();
    board.ended(&started).await;
    for run in started["runs"].as_array().expect("runs") {
        testkit::wait_for("the removal of the record", e2e::PATIENCE, async || {
            (board.user.get(text(run, "/pollUrl")).await.status == 404).then_some(())
        })
        .await;
    }
    let again = board.user.send("/actions/runs", &request).await.expect(202).json();
    for (run, first) in again["runs"].as_array().expect("runs").iter().zip(started["runs"].as_array().expect("runs")) {
        assert_eq!((&run["id"], &run["replayed"], &run["status"]), (&first["id"], &json!(true), &json!("expired")));
    }
}

#[tokio::test]
async fn targets_of_a_row_are_a_row_below_it_connected_with_their_own_input() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let logo = board.image(images::png(8, 8)).await;
    let mut operations = Vec::new();
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let asset = board.image(images::png(64 + at as u32, 48)).await;
        let node = json!({
            "type": "image", "title": name, "asset": asset, "position": {"x": 400 * at, "y": 0}, "width": 320, "height": 240,
        });
        operations.push(json!({"type": "node.create", "clientId": name, "node": node}));
    }
    operations.push(json!({"type": "node.create", "clientId": "logo", "node": {
        "type": "image", "title": "logo", "asset": logo, "position": {"x": -9000, "y": 0},
    }}));
    let made = board.user.apply(&board.canvas, json!(operations)).await;
    let node = |name: &str| format!("node:{}", text(&made, &format!("/resolvedIds/{name}")));
    let inputs = ["a", "b", "c"].map(node);
    let steps = json!([resize(32), {"action": "overlay-image", "params": {}, "with": node("logo")}]);
    let named: Vec<&str> = inputs.iter().map(String::as_str).collect();
    let started = board.send(&named, steps, json!({})).await.expect(202).json();
    let canvas = board.user.canvas(&board.canvas).await;
    let mut tops = Vec::new();
    for (at, run) in started["runs"].as_array().expect("runs").iter().enumerate() {
        let target = board.node(text(run, "/targets/0")).await;
        assert_eq!(target["title"], format!("{} 1", ["a", "b", "c"][at]));
        tops.push(target["position"]["y"].as_f64().expect("a number"));
        if at == 0 {
            assert_eq!(target["position"]["x"], 0.0, "level with the first source");
        }
        let connections = canvas["connections"].as_array().expect("connections");
        let into = connections.iter().filter(|link| link["toNodeId"] == target["id"]);
        let from: Vec<String> = into.map(|link| format!("node:{}", text(link, "/fromNodeId"))).collect();
        assert_eq!(from, [inputs[at].clone(), node("logo")]);
    }
    assert!(tops[0] > 240.0 && tops.iter().all(|top| *top == tops[0]), "{tops:?}");
    board.ended(&started).await;
}

#[tokio::test]
async fn a_frame_of_a_video_is_the_first_step() {
    let stack = &Stack::with_workers().await;
    let board = Board::new(stack).await;
    let film = board.user.upload("video/mp4", films::unique(films::SILENT)).await;
    let film = text(&film, "/handle");
    let photo = board.image(images::png(8, 8)).await;
    let frame = || json!({"action": "video-frame", "params": {"at": "last"}});
    let started = board.send(&[film], json!([frame(), resize(16)]), json!({})).await.expect(202).json();
    let done = board.ended(&started).await.remove(0);
    assert_eq!((&done["status"], &done["images"][0]["width"]), (&json!("succeeded"), &json!(16)), "{done}");
    board.refused(&[film], json!([resize(16), frame()]), json!({}), 400, &["steps[1].action"]).await;
    let overlay = json!({"action": "overlay-image", "params": {}, "with": photo});
    board.refused(&[film], json!([frame(), overlay]), json!({}), 400, &["steps[1].action"]).await;
    board.refused(&[&photo], json!([frame()]), json!({}), 422, &["inputs[0]"]).await;
    let late = json!([{"action": "video-frame", "params": {"at": "time", "seconds": 3600}}]);
    board.refused(&[film], late, json!({}), 422, &["steps[0].params.seconds"]).await;
}
