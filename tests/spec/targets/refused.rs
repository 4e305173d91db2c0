//! Places that are refused, and what a refusal leaves.

use super::*;

#[tokio::test]
async fn a_place_has_rules_and_limits() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let slot = setting.user.slot(&setting.canvas).await;
    let invalid = async |more: Value, fields: &[&str]| {
        for reply in [setting.resize(more.clone()).await, setting.image("generate", more.clone()).await] {
            reply.expect_error(400, "input_validation_error", fields);
        }
    };
    invalid(json!({"targetNodeId": slot}), &["targetNodeId", "place"]).await;
    invalid(json!({"place": {"x": 1}}), &["place.y"]).await;
    invalid(json!({"place": {"y": 1}}), &["place.x"]).await;
    invalid(json!({"place": {"x": 1, "y": 1, "near": slot}}), &["place.near"]).await;
    invalid(json!({"place": {"near": "a b"}}), &["place.near"]).await;
    invalid(json!({"place": {"sectionId": "canvas:c"}}), &["place.sectionId"]).await;
    invalid(json!({"place": {"unknown": 1}}), &["place.unknown"]).await;
    invalid(json!({"place": []}), &["place"]).await;
    invalid(json!({"connect": "yes"}), &["connect"]).await;
    invalid(json!({"place": {"title": "x".repeat(161), "count": 5}}), &["place.title", "place.count"]).await;
    invalid(json!({"place": {"count": 0}}), &["place.count"]).await;
    let beyond = 10_000_000.5;
    invalid(json!({"place": {"x": beyond, "y": -beyond}}), &["place.x", "place.y"]).await;
    let nowhere = json!({"place": null});
    setting.resize(nowhere.clone()).await.expect_error(400, "input_validation_error", &["targetNodeId", "place"]);
    let fields = ["targetNodeId", "targetNodeIds", "place"];
    setting.image("generate", nowhere).await.expect_error(400, "input_validation_error", &fields);
    let listed = json!({"targetNodeIds": [slot]});
    setting.image("generate", listed).await.expect_error(400, "input_validation_error", &fields[1..]);
    // An Action has one target; a start of images that counts otherwise contradicts itself.
    let two = json!({"place": {"count": 2}});
    setting.resize(two).await.expect_error(400, "input_validation_error", &["place.count"]);
    let contrary = json!({"place": {"count": 2}, "count": 3});
    setting.image("generate", contrary).await.expect_error(400, "input_validation_error", &["count"]);
    for within in [json!({"title": "", "count": 1}), json!({"title": "x".repeat(160), "count": 4})] {
        setting.image("generate", json!({"place": within})).await.expect(202);
    }
    let edge = 10_000_000;
    setting.resize(json!({"place": {"x": -edge, "y": edge, "count": 1}})).await.expect(202);
}

#[tokio::test]
async fn what_a_place_names_must_exist() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let elsewhere = Setting::new(stack).await;
    for (more, fields) in [
        (json!({"place": {"near": "absent"}}), &["place.near"][..]),
        (json!({"place": {"sectionId": "absent", "near": elsewhere.photo}}), &["place.near", "place.sectionId"]),
        (json!({"place": {"sectionId": setting.photo}}), &["place.sectionId"]),
    ] {
        for reply in [setting.resize(more.clone()).await, setting.image("generate", more).await] {
            reply.expect_error(422, "unprocessable_entity", fields);
        }
    }
    // Nor may what the start reads be a node of another canvas, even of the same account.
    let other = text(&setting.user.make_canvas().await, "/id").to_owned();
    let foreign = setting.user.upload_into(&other, "image/png", images::png(8, 8)).await;
    let foreign = text(&foreign, "/node");
    let inputs = json!({"inputs": [foreign], "place": {"near": "absent"}});
    setting.resize(inputs).await.expect_error(422, "unprocessable_entity", &["place.near", "inputs[0]"]);
    let more = json!({"references": [foreign], "source": setting.asset});
    setting.image("edit", more).await.expect_error(422, "unprocessable_entity", &["references[0]"]);
    assert_eq!(setting.now().await["nodes"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_cycle_is_refused() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let target = setting.user.slot(&setting.canvas).await;
    let back = json!([{"type": "connection.create", "fromNodeId": target, "toNodeId": setting.photo}]);
    setting.apply(back).await;
    let before = setting.now().await;
    let more = json!({"place": null, "targetNodeId": target, "connect": true});
    setting.resize(more).await.expect_error(422, "unprocessable_entity", &["connect"]);
    assert_eq!(setting.now().await, before);
    setting.resize(json!({"place": null, "targetNodeId": target, "connect": false})).await.expect(202);
}

#[tokio::test]
async fn a_refused_start_leaves_nothing_behind() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let stale = setting.now().await["revision"].clone();
    setting.apply(json!([{"type": "canvas.update", "title": "t"}])).await;
    let before = setting.user.get(&format!("/canvases/{}", setting.canvas)).await.ok();
    let four = json!({"count": 4, "near": setting.photo});
    for (more, status, code, fields) in [
        (json!({"maxCredits": 3}), 402, "payment_required", &[] as &[&str]),
        (json!({"baseRevision": stale}), 409, "conflict", &[]),
        (json!({"model": "absent"}), 422, "unprocessable_entity", &["model"]),
        (json!({"source": "node:absent"}), 422, "unprocessable_entity", &["source"]),
        (json!({"canvasId": "absent"}), 404, "not_found", &[]),
    ] {
        let mut request = json!({"place": four});
        request.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        setting.image("generate", request).await.expect_error(status, code, fields);
    }
    let unfit = json!({"params": {"width": 65, "height": 1, "fit": "cover"}, "inputs": ["node:absent"]});
    setting.resize(unfit).await.expect_error(422, "unprocessable_entity", &["inputs[0]"]);
    assert_eq!(setting.user.get(&format!("/canvases/{}", setting.canvas)).await.ok(), before);
    assert_eq!(setting.user.get("/runs").await.ok()["runs"], json!([]));
    // Viewers and strangers get what they get for other starts.
    let (viewer, stranger) = (stack.user().await, stack.user().await);
    stack.share(&setting.user, &setting.canvas, &viewer.uid, "viewer").await;
    let base = json!({"inputs": [setting.asset], "params": {"width": 8}, "place": {}});
    let handle = format!("canvas:{}:{}", setting.user.uid, setting.canvas);
    let request = setting.request(base, json!({"canvasId": handle})).await;
    viewer.send("/actions/resize/runs", &request).await.expect_error(403, "forbidden", &[]);
    stranger.send("/actions/resize/runs", &request).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_canvas_has_room_for_targets_up_to_its_limits() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let execute = async |statement: &'static str, free: i64| {
        sqlx::query(statement).bind(&setting.user.uid).bind(free).execute(stack.pool()).await.expect("writes");
    };
    // With the image and two more the canvas is full.
    execute(
        "WITH content AS (
             INSERT INTO nodes (canvas_key, id, type, title, x, y, width, height, agent_owned)
             SELECT key, 'n' || n, 'text', 't', (n % 200) * 400, 1000 + (n / 200) * 200, 320, 160, true
             FROM canvases, generate_series(1, 19997) AS n WHERE owner_uid = $1
         )
         UPDATE canvases SET node_count = node_count + 19997 + 0 * $2 WHERE owner_uid = $1",
        0,
    )
    .await;
    let count = |count: usize| json!({"place": {"near": setting.photo, "count": count}});
    let revision = setting.now().await["revision"].clone();
    setting.image("generate", count(3)).await.expect_error(422, "unprocessable_entity", &["canvasId"]);
    assert_eq!(setting.now().await["revision"], revision);
    setting.image("generate", count(2)).await.expect(202);
    setting.image("generate", count(1)).await.expect_error(422, "unprocessable_entity", &["canvasId"]);
    // A target and its connection take some hundred bytes.
    for (free, is_accepted) in [(100, false), (10_000, true)] {
        execute(
            "WITH content AS (
                 DELETE FROM nodes USING canvases WHERE canvas_key = key AND owner_uid = $1 AND nodes.id LIKE 'n%'
             )
             UPDATE canvases SET node_count = 3, graph_bytes = 67108864 - $2 WHERE owner_uid = $1",
            free,
        )
        .await;
        let reply = setting.resize(json!({})).await;
        match is_accepted {
            true => drop(reply.expect(202)),
            false => drop(reply.expect_error(422, "unprocessable_entity", &["canvasId"])),
        }
    }
}
