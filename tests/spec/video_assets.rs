//! Videos that stay: those of a canvas, and those that are kept (docs/reference/videos.md#videos-that-stay).

use e2e::api::{key, text};
use e2e::{Part, Reply, Stack, User, images};
use serde_json::{Value, json};

/// A user with credit for this many videos.
async fn payer(stack: &Stack, credits: i64) -> User {
    let user = stack.user().await;
    stack.grant(&user.uid, credits).await;
    user
}

/// Starts a video of one second, merged with `more`.
async fn send(user: &User, more: Value) -> Reply {
    let mut body = json!({
        "model": "animatic", "prompt": "a kite over the sea", "idempotencyKey": key(), "durationSeconds": 1,
        "resolution": "480p",
    });
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    user.send("/videos/generate", &body).await
}

/// Starts a video on the present revision of a canvas.
async fn start_on(user: &User, canvas: &str, more: Value) -> Reply {
    let mut on = json!({"canvasId": canvas, "baseRevision": user.canvas(canvas).await["revision"]});
    on.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    send(user, on).await
}

async fn video_node(user: &User, canvas: &str) -> String {
    let create = json!([{"type": "node.create", "clientId": "video", "node": {"type": "video"}}]);
    text(&user.apply(canvas, create).await, "/resolvedIds/video").to_owned()
}

async fn node(user: &User, canvas: &str, node: &str) -> Value {
    user.get(&format!("/canvases/{canvas}/nodes/{node}")).await.ok()
}

async fn stored(stack: &Stack, uid: &str) -> i64 {
    let sql = "SELECT coalesce((SELECT bytes FROM account_storage WHERE account_uid = $1), 0)
                      - (SELECT coalesce(sum(counted), 0)::bigint FROM canvases WHERE owner_uid = $1)";
    stack.count_of(sql, uid).await
}

#[tokio::test]
async fn a_start_marks_its_target_and_is_refused_as_those_of_images() {
    let stack = &Stack::without_workers().await;
    let (user, viewer) = (payer(stack, 9).await, payer(stack, 9).await);
    let canvas = user.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let (image, target) = (user.slot(id).await, video_node(&user, id).await);
    for (wrong, code, fields) in [
        (json!({"targetNodeId": image}), 422, &["targetNodeId"][..]),
        (json!({"targetNodeId": "absent"}), 422, &["targetNodeId"]),
        (json!({"place": {"near": "absent"}}), 422, &["place.near"]),
        (json!({"targetNodeId": target, "firstFrame": "node:absent"}), 422, &["firstFrame"]),
    ] {
        start_on(&user, id, wrong).await.expect_error(code, "unprocessable_entity", fields);
    }
    let stale = json!({"canvasId": id, "baseRevision": canvas["revision"], "targetNodeId": target});
    send(&user, stale).await.expect_error(409, "conflict", &[]);
    let started = start_on(&user, id, json!({"targetNodeId": target})).await.expect(202).json();
    assert_eq!((&started["canvasId"], &started["targets"]), (&json!(handle), &json!([format!("node:{target}")])));
    let marked = node(&user, id, &target).await;
    assert_eq!(marked["node"]["metadata"]["job"]["id"], started["id"]);
    assert_eq!(marked["node"]["metadata"]["job"]["status"], "queued");
    start_on(&user, id, json!({"targetNodeId": target})).await.expect_error(409, "conflict", &[]);
    let activity = user.get(&format!("/canvases/{id}")).await.ok()["activity"][0].clone();
    assert_eq!((&activity["type"], &activity["nodeIds"]), (&json!("job.started"), &json!([target])));

    // A viewer may start one without a target, and not one with it.
    stack.share(&user, id, &viewer.uid, "viewer").await;
    let revision = user.canvas(id).await["revision"].clone();
    let on = |more: Value| {
        let mut on = json!({"canvasId": handle});
        on.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        on
    };
    send(&viewer, on(json!({}))).await.expect(202);
    send(&viewer, on(json!({"place": {}, "baseRevision": revision}))).await.expect_error(403, "forbidden", &[]);
    let account = stack.account().await;
    let reader = stack.user_of(&account, "canvas:read,asset:read,video:generate").await;
    send(&reader, on(json!({"place": {}, "baseRevision": revision}))).await.expect_error(403, "forbidden", &[]);

    // A dry run shows the node that the start would add, and a canceled start frees its target.
    let quote =
        start_on(&user, id, json!({"place": {"title": "Kite"}, "validateOnly": true, "aspectRatio": "9:16"})).await;
    let quote = quote.expect(200).json();
    assert_eq!((&quote["newTargets"][0]["title"], &quote["creditCost"]), (&json!("Kite"), &json!(1)));
    assert_eq!((&quote["newTargets"][0]["width"], &quote["newTargets"][0]["height"]), (&json!(270.0), &json!(508.0)));
    user.delete(text(&started, "/pollUrl")).await.expect(200);
    assert_eq!(node(&user, id, &target).await["node"]["metadata"]["job"]["status"], "canceled");
}

#[tokio::test]
async fn a_video_of_a_canvas_is_an_asset_that_every_member_plays() {
    let stack = &Stack::with_workers().await;
    let (owner, editor, viewer) = (stack.user().await, payer(stack, 5).await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &editor.uid, "editor").await;
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    let first = owner.upload_into(id, "image/png", images::png(640, 360)).await;
    let before = stored(stack, &owner.uid).await;
    let started = start_on(&editor, handle, json!({"firstFrame": first["node"], "place": {}})).await.expect(202).json();
    let job = editor.finished(&started).await;
    assert_eq!((&job["status"], &job["creditCost"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(job["completionReview"]["outputs"]["handles"], job["targets"], "{job}");
    let asset_id = text(&job, "/video/assetId").to_owned();
    assert!(asset_id.starts_with(&format!("asset:{}:", owner.uid)), "it belongs to the owner of the canvas");

    // Node, connection, history of the revision.
    let target = text(&job, "/targets/0").to_owned();
    let shown = node(&owner, id, &target).await;
    assert_eq!((&shown["node"]["type"], &shown["node"]["asset"]), (&json!("video"), &json!(asset_id)));
    assert_eq!(shown["incoming"][0]["purpose"], "first-frame");
    let provenance = &shown["node"]["metadata"]["provenance"];
    assert_eq!((&provenance["kind"], &provenance["durationSeconds"]), (&json!("generated"), &json!(1.0)));
    assert_eq!((&provenance["standIn"], &provenance["references"][0]["handle"]), (&json!(true), &first["node"]));

    // What a viewer reads, and plays.
    let asset = viewer.get(&format!("/assets/{asset_id}")).await.ok()["asset"].clone();
    assert_eq!((&asset["kind"], &asset["mimeType"]), (&json!("video"), &json!("video/mp4")));
    assert_eq!((&asset["width"], &asset["height"]), (&json!(854), &json!(480)));
    assert_eq!((&asset["durationSeconds"], &asset["hasAudio"]), (&json!(1.0), &json!(false)));
    let content = format!("/assets/{asset_id}/content");
    let whole = viewer.get(&content).await.expect(200);
    assert_eq!((whole.header("content-type"), &whole.body[4..8]), (Some("video/mp4"), &b"ftyp"[..]));
    assert_eq!(
        (whole.header("accept-ranges"), asset["bytes"].as_u64()),
        (Some("bytes"), Some(whole.body.len() as u64))
    );
    assert!(whole.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    let part = viewer.get(&content).header("range", "bytes=4-7").await.expect(206);
    assert_eq!((&part.body[..], part.header("etag")), (&b"ftyp"[..], whole.header("etag")));
    let range = format!("bytes 4-7/{}", whole.body.len());
    assert_eq!(part.header("content-range"), Some(range.as_str()));
    viewer.get(&content).header("if-none-match", whole.header("etag").expect("a tag")).await.expect(304);
    viewer.get(&content).header("range", &format!("bytes={}-", whole.body.len())).await.expect(416);
    let stranger = stack.user().await;
    stranger.get(&content).await.expect_error(404, "not_found", &[]);

    // The poster, under the URLs of images; each URL opens what it is for.
    let anonymous = stack.anonymous();
    let (poster, video) = (text(&asset, "/previewUrl").to_owned(), text(&asset, "/videoUrl").to_owned());
    let seen = anonymous.get(&poster).await.expect(200);
    assert_eq!(seen.header("content-type"), Some("image/jpeg"));
    viewer.get(&format!("{content}?w=64")).await.expect(200);
    let played = anonymous.get(&video).await.expect(200);
    assert_eq!((played.header("content-type"), &played.body), (Some("video/mp4"), &whole.body));
    assert_eq!(anonymous.get(&video).header("range", "bytes=0-3").await.expect(206).body.len(), 4);
    anonymous.get(&poster.replace("/assets/preview", "/assets/video")).await.expect_error(401, "unauthorized", &[]);
    anonymous.get(&video.replace("/assets/video", "/assets/preview")).await.expect_error(401, "unauthorized", &[]);
    anonymous.get("/assets/video").await.expect_error(400, "input_validation_error", &["token"]);
    assert!(asset["videoExpiresInSeconds"].as_u64().is_some_and(|seconds| seconds > 0));
    let read = node(&viewer, handle, &target).await;
    assert_eq!((&read["previewUrl"], &read["videoUrl"]), (&asset["previewUrl"], &asset["videoUrl"]));

    // Lists.
    let listed = async |query: &str| {
        let assets = owner.get(&format!("/assets?canvasId={id}{query}")).await.ok()["assets"].clone();
        assets.as_array().expect("a list").iter().map(|it| text(it, "/kind").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["image"]);
    assert_eq!(listed("&kind=video").await, ["video"]);
    assert_eq!(listed("&kind=all").await, ["video", "image"]);
    owner.get("/assets?kind=film").await.expect_error(400, "input_validation_error", &["kind"]);

    // It counts once, for the owner of the canvas, and the starter has it through the job as well.
    let counted = asset["bytes"].as_i64().expect("a number").max(65536);
    assert_eq!(stored(stack, &owner.uid).await - before, counted);
    assert_eq!(stored(stack, &editor.uid).await, 0);
    assert_eq!(editor.get(text(&job, "/video/downloadUrl")).await.expect(200).body, whole.body);

    // A video is no image.
    start_on(&editor, handle, json!({"firstFrame": asset_id, "place": {}})).await.expect_error(
        422,
        "unprocessable_entity",
        &["firstFrame"],
    );
    let resize = editor.resize_request(handle, &owner.slot(id).await, &asset_id).await;
    editor.send("/actions/resize/runs", &resize).await.expect_error(422, "unprocessable_entity", &["inputs[0]"]);
    let create = |kind: &str, asset: &Value| json!([{"type": "node.create", "node": {"type": kind, "asset": asset}}]);
    let batch = async |operations: Value| {
        let now = owner.canvas(id).await;
        owner.batch(id, text(&now, "/revision"), operations).await
    };
    batch(create("image", &asset["handle"])).await.expect_error(
        422,
        "unprocessable_entity",
        &["operations[0].node.asset"],
    );
    batch(create("video", &first["handle"])).await.expect_error(
        422,
        "unprocessable_entity",
        &["operations[0].node.asset"],
    );
    batch(create("text", &asset["handle"])).await.expect_error(
        400,
        "input_validation_error",
        &["operations[0].node.asset"],
    );
    let made = batch(create("video", &asset["handle"])).await.ok();
    let copy = node(&owner, id, text(&made, "/changedNodeIds/0")).await;
    assert_eq!((&copy["node"]["asset"], &copy["node"]["width"]), (&asset["handle"], &json!(480.0)));

    // Another video in its place, and the first one in the history.
    let again = start_on(&editor, handle, json!({"targetNodeId": target, "prompt": "a boat"})).await.expect(202).json();
    let again = editor.finished(&again).await;
    let shown = node(&owner, id, &target).await["node"].clone();
    assert_eq!(
        (&shown["asset"], &shown["metadata"]["history"][0]["asset"]),
        (&again["video"]["assetId"], &json!(asset_id))
    );

    // The drawing has the poster, and says how long it plays.
    let part = format!("/canvases/{id}/render?nodes={}", target.trim_start_matches("node:"));
    let svg = owner.get(&part).header("accept", "image/svg+xml").await;
    assert!(String::from_utf8_lossy(&svg.expect(200).body).contains("1 s"));
    let outline = owner.get(&format!("/canvases/{id}/outline")).await.expect(200);
    assert!(String::from_utf8_lossy(&outline.body).contains(" 1 s"), "{outline}");

    // Who loses access loses the URLs; the asset goes with the canvas.
    stack.share(&owner, id, &viewer.uid, "none").await;
    viewer.get(&content).await.expect_error(404, "not_found", &[]);
    anonymous.get(&video).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_viewer_plays_a_video_31_days_after_its_start() {
    let stack = &Stack::with_workers().await;
    let (owner, viewer) = (payer(stack, 1).await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &viewer.uid, "viewer").await;
    let job = owner.finished(&start_on(&owner, id, json!({"place": {}})).await.expect(202).json()).await;
    let path = text(&job, "/pollUrl").to_owned();
    owner.get(&path).await.expect(200);
    let file = owner.get(text(&job, "/video/downloadUrl")).await.expect(200).body;

    let passes = "UPDATE jobs SET created_at = created_at - interval '31 days', completed_at = completed_at - interval '31 days',
                         retain_until = retain_until - interval '31 days' WHERE id = $1";
    let id_of = uuid::Uuid::parse_str(text(&job, "/rawId")).expect("a UUID");
    sqlx::query(passes).bind(id_of).execute(stack.pool()).await.expect("passes");
    let asset = text(&job, "/video/assetId");
    let untouched = "UPDATE blobs SET touched_at = touched_at - interval '31 days'
                     WHERE key = (SELECT blob_key FROM assets WHERE owner_uid || ':' || id = $1)";
    let named = asset.trim_start_matches("asset:");
    sqlx::query(untouched).bind(named).execute(stack.pool()).await.expect("passes");
    owner.get(&path).await.expect_error(404, "not_found", &[]);
    owner.get(&format!("{path}/output")).await.expect_error(404, "not_found", &[]);
    let node = viewer.get(&format!("/canvases/{handle}/nodes/{}", text(&job, "/targets/0"))).await.ok();
    let played = stack.anonymous().get(text(&node, "/videoUrl")).header("range", "bytes=0-").await.expect(206);
    assert_eq!(played.body, file);
    assert_eq!(viewer.get(&format!("/assets/{asset}/content")).await.expect(200).body, file);
}

#[tokio::test]
async fn a_video_without_a_target_is_kept_once() {
    let stack = &Stack::with_workers().await;
    let (user, owner) = (payer(stack, 3).await, stack.user().await);
    let job = user.finished(&send(&user, json!({})).await.expect(202).json()).await;
    assert_eq!((job.get("canvasId"), job["video"].get("assetId")), (None, None), "{job}");
    let path = format!("/jobs/{}/asset", text(&job, "/rawId"));
    let of_job = stored(stack, &user.uid).await;
    assert!(of_job > 0);
    for (body, fields) in [
        (json!({"targetNodeId": "n"}), &["baseRevision", "canvasId"][..]),
        (json!({"canvasId": "c", "baseRevision": "r"}), &["baseRevision"]),
        (json!({"canvasId": "c", "targetNodeId": "n"}), &["baseRevision"]),
        (json!({"canvasId": "a b"}), &["canvasId"]),
        (json!({"place": {}}), &["place"]),
    ] {
        user.send(&path, &body).await.expect_error(400, "input_validation_error", fields);
    }
    user.send(&path, &json!({"canvasId": "absent"})).await.expect_error(404, "not_found", &[]);
    owner.send(&path, &json!({})).await.expect_error(404, "not_found", &[]);

    // On a board of somebody else, into a node that shows another video afterwards.
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    let target = video_node(&owner, id).await;
    let image = owner.slot(id).await;
    stack.share(&owner, id, &user.uid, "viewer").await;
    let on = async |node: &str| json!({"canvasId": handle, "targetNodeId": node, "baseRevision": owner.canvas(id).await["revision"]});
    user.send(&path, &on(&target).await).await.expect_error(403, "forbidden", &[]);
    stack.share(&owner, id, &user.uid, "editor").await;
    user.send(&path, &on(&image).await).await.expect_error(422, "unprocessable_entity", &["targetNodeId"]);
    user.send(&path, &on("absent").await).await.expect_error(422, "unprocessable_entity", &["targetNodeId"]);
    let stale = json!({"canvasId": handle, "targetNodeId": target, "baseRevision": canvas["revision"]});
    user.send(&path, &stale).await.expect_error(409, "conflict", &[]);
    let before = stored(stack, &owner.uid).await;
    let kept = user.send(&path, &on(&target).await).await.expect(201);
    let asset = kept.json()["asset"].clone();
    assert_eq!(
        kept.header("location"),
        Some(format!("{}/assets/{}", domain::API_ROOT, text(&asset, "/handle")).as_str())
    );
    assert_eq!((&asset["ownerUid"], &asset["kind"]), (&json!(owner.uid), &json!("video")));
    assert_eq!((&asset["durationSeconds"], &asset["width"]), (&json!(1.0), &json!(854)));
    let shown = node(&owner, id, &target).await;
    assert_eq!(
        (&shown["node"]["asset"], &shown["node"]["metadata"]["provenance"]["run"]),
        (&asset["handle"], &json!(format!("run:{}", text(&job, "/rawId"))))
    );
    let activity = owner.get(&format!("/canvases/{id}")).await.ok()["activity"][0].clone();
    assert_eq!(activity["summary"], "kept a video");
    assert_eq!(stored(stack, &user.uid).await, 0, "it counts for the owner of the asset alone");
    assert_eq!(stored(stack, &owner.uid).await - before, of_job.max(65536));

    // Again, with whatever it asks for: the same asset, and nothing else.
    for body in [json!({}), stale, on(&image).await] {
        let again = user.send(&path, &body).await.expect(200).json();
        assert_eq!((&again["asset"]["handle"], &again["replayed"]), (&asset["handle"], &json!(true)));
    }
    let now = user.get(text(&job, "/pollUrl")).await.ok();
    assert_eq!(now["video"]["assetId"], asset["handle"]);
    assert_eq!(stored(stack, &owner.uid).await - before, of_job.max(65536));
    let file = user.get(text(&job, "/video/downloadUrl")).await.expect(200).body;
    assert_eq!(owner.get(&format!("/assets/{}/content", text(&asset, "/id"))).await.expect(200).body, file);

    // An asset that its owner deletes takes the file from the job as well.
    stack.admin(&["admin", "asset", "purge", "--asset", text(&asset, "/handle"), "--yes"]).await.expect_success();
    user.get(text(&job, "/video/downloadUrl")).await.expect_error(404, "not_found", &[]);
    user.send(&path, &json!({})).await.expect_error(404, "not_found", &[]);
    assert_eq!(stored(stack, &owner.uid).await, before);

    // Into the account's own assets.
    let job = user.finished(&send(&user, json!({"prompt": "a boat"})).await.expect(202).json()).await;
    let path = format!("/jobs/job:{}/asset", text(&job, "/rawId"));
    let own = user.send(&path, &json!({})).await.expect(201).json()["asset"].clone();
    assert_eq!(own["ownerUid"], json!(user.uid));
    let listed = user.get("/assets?kind=video").await.ok();
    assert_eq!(listed["assets"][0]["handle"], own["handle"]);
}

#[tokio::test]
async fn a_video_that_is_not_there_cannot_be_kept() {
    let stack = &Stack::without_workers().await;
    let user = payer(stack, 2).await;
    let job = send(&user, json!({})).await.expect(202).json();
    let path = format!("/jobs/{}/asset", text(&job, "/rawId"));
    user.send(&path, &json!({})).await.expect_error(409, "conflict", &[]);
    user.delete(text(&job, "/pollUrl")).await.expect(200);
    user.send(&path, &json!({})).await.expect_error(404, "not_found", &[]);
    let canvas = user.make_canvas().await;
    let action = user.start_resize(text(&canvas, "/id"), json!({})).await;
    let of_action = format!("/jobs/{}/asset", text(&action, "/rawId"));
    user.send(&of_action, &json!({})).await.expect_error(404, "not_found", &[]);
    user.send("/jobs/0198c5a0-0000-7000-8000-000000000001/asset", &json!({})).await.expect_error(404, "not_found", &[]);
}

#[tokio::test]
async fn a_video_needs_room_in_the_storage_of_its_owner() {
    let stack = &Stack::builder().video_workers(1).start().await;
    let (user, owner) = (payer(stack, 3).await, payer(stack, 3).await);
    let canvas = owner.make_canvas().await;
    let (id, handle) = (text(&canvas, "/id"), text(&canvas, "/handle"));
    stack.share(&owner, id, &user.uid, "editor").await;
    let job = user.finished(&send(&user, json!({})).await.expect(202).json()).await;
    let limit = |more: i64| {
        let sql = "UPDATE accounts SET storage_max = (SELECT coalesce(sum(bytes), 0)::bigint FROM account_storage
                                                      WHERE account_uid = uid) + $2 WHERE uid = $1";
        sqlx::query(sql).bind(&owner.uid).bind(more).execute(stack.pool())
    };
    limit(0).await.expect("limits");
    let path = format!("/jobs/{}/asset", text(&job, "/rawId"));
    user.send(&path, &json!({"canvasId": handle})).await.expect_error(422, "unprocessable_entity", &["canvasId"]);
    // Room for the start, and not for the video.
    stack.pause(Part::VIDEO_WORKER);
    limit(1_000_000).await.expect("limits");
    let started = start_on(&owner, id, json!({"place": {}})).await.expect(202).json();
    limit(0).await.expect("limits");
    stack.resume(Part::VIDEO_WORKER);
    let failed = owner.finished(&started).await;
    assert_eq!((&failed["status"], &failed["creditCost"]), (&json!("failed"), &json!(0)), "{failed}");
    assert!(text(&failed, "/failure/message").starts_with("output_finalization_failed: "), "{failed}");
    let target = node(&owner, id, text(&failed, "/targets/0")).await;
    assert_eq!(
        (&target["node"]["asset"], &target["node"]["metadata"]["job"]["status"]),
        (&json!(null), &json!("failed"))
    );
    limit(10_000_000).await.expect("limits");
    user.send(&path, &json!({"canvasId": handle})).await.expect(201);
}
