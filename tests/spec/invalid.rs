//! What the request alone tells: 400, and every violation in `fields`, whether path, query, header, schema or a rule over
//! several fields finds it (decisions 1.2, 1.3).

use e2e::api::{key, placed, text};
use e2e::{Stack, pictures, suite};
use serde_json::{Value, json};

suite! {
    invalid on Stack::builder();
    what_is_wrong_with_a_body_is_told_whoever_finds_it,
    a_path_and_a_body_are_judged_together,
    a_path_and_a_query_are_judged_together,
    a_batch_is_judged_whole_however_malformed_some_of_it_is,
    a_nul_hides_nothing_else_that_is_wrong,
    a_malformed_canvas_is_told_before_a_scope_that_the_body_calls_for,
    with_validate_only_the_key_is_not_looked_at,
}

/// A webhook that is not public, and whose secret is too short.
fn webhook() -> Value {
    json!({"url": "https://localhost/", "secret": "short"})
}

fn input(more: Value) -> Value {
    with(json!({"key": "a", "label": "A", "type": "text", "useAsDefault": false}), more)
}

fn output(more: Value) -> Value {
    with(json!({"key": "o", "label": "O", "type": "text", "prompt": "p", "inputKeys": ["a"]}), more)
}

/// `base` with other members.
fn with(mut base: Value, more: Value) -> Value {
    base.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    base
}

async fn what_is_wrong_with_a_body_is_told_whoever_finds_it(stack: &Stack) {
    let user = stack.user().await;
    let long = "x".repeat(161);
    for (path, body, fields) in [
        (
            "/actions/resize/runs",
            json!({"canvasId": "a b", "idempotencyKey": "short", "targetNodeId": "n", "inputs": ["x", "node:n"],
                   "params": {"width": 0, "sharpen": 1}, "webhook": webhook()}),
            &[
                "baseRevision",
                "canvasId",
                "idempotencyKey",
                "targetNodeId",
                "inputs",
                "inputs[0]",
                "params.width",
                "params.sharpen",
                "webhook.url",
                "webhook.secret",
            ][..],
        ),
        (
            "/actions/rotate/runs",
            json!({}),
            &["canvasId", "baseRevision", "idempotencyKey", "targetNodeId", "inputs", "params", "params.degrees"],
        ),
        (
            "/videos/generate",
            json!({"model": "model:short", "prompt": "", "canvasId": "canvas:me:c", "ownerUid": "you",
                   "lastFrame": "https://127.0.0.1/a.png", "references": ["a", "asset:a", {"handle": "asset:a"}, 7]}),
            &[
                "idempotencyKey",
                "model",
                "prompt",
                "ownerUid",
                "firstFrame",
                "lastFrame",
                "references[0]",
                "references[2]",
                "references[3]",
            ],
        ),
        ("/videos/generate", json!({"firstFrame": "node:a"}), &["idempotencyKey", "model", "prompt", "canvasId"]),
        (
            "/images/generate",
            json!({"targetNodeIds": ["a", "node:a"], "count": 3, "model": "model:short", "webhook": webhook()}),
            &[
                "canvasId",
                "baseRevision",
                "idempotencyKey",
                "targetNodeIds[1]",
                "count",
                "prompt",
                "promptNodeId",
                "model",
                "webhook.url",
                "webhook.secret",
            ],
        ),
        (
            "/images/import",
            json!({"canvasId": "a b", "imageUrl": "https://localhost/", "title": long, "z": 1}),
            &["canvasId", "imageUrl", "title", "idempotencyKey", "z"],
        ),
        (
            "/product-references/import",
            json!({"productPageUrl": "https://10.0.0.1/", "variantSelector": "none"}),
            &["canvasId", "productPageUrl", "variantSelector", "idempotencyKey"],
        ),
        (
            "/recipes/storyboard/runs",
            json!({"canvasId": "c", "webhook": webhook()}),
            &["baseRevision", "idempotencyKey", "webhook.url", "webhook.secret"],
        ),
        (
            "/recipes/storyboard/fork",
            json!({"canvasId": "canvas:me:c", "ownerUid": "you", "x": 10_000_001}),
            &["baseRevision", "idempotencyKey", "ownerUid", "x"],
        ),
        (
            "/elements",
            json!({"sourceAssetIds": [], "collectionIds": ["a", "a"], "colour": "red"}),
            &["name", "type", "sourceAssetIds", "guidelines", "collectionIds[1]", "colour"],
        ),
        ("/canvases", json!({"id": "a", "destination": "agent-canvas", "title": long}), &["id", "title"]),
    ] {
        let refused = user.send(path, &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
}

async fn a_path_and_a_body_are_judged_together(stack: &Stack) {
    let user = stack.user().await;
    let workflow = json!({
        "name": "", "inputs": [input(json!({})), input(json!({"label": 7}))], "tags": ["t", ""],
        "outputs": [output(json!({"inputKeys": ["b"]})), output(json!({"key": "o2", "prompt": "{{x}}"}))],
    });
    let rename = json!({"idempotencyKey": "short", "operations": [{"type": "canvas.update"}]});
    let twice = json!({"type": "node.create", "clientId": "n", "node": {"type": "text", "position": {"x": 0, "y": 0}}});
    let batch = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [twice, twice]});
    for (path, body, fields) in [
        (
            "/canvases/a%20b/workflows?ownerUid=c.d",
            workflow,
            &[
                "canvasId",
                "ownerUid",
                "name",
                "idempotencyKey",
                "tags[1]",
                "inputs[1].key",
                "inputs[1].label",
                "outputs[0].inputKeys[0]",
                "outputs[1].prompt",
            ][..],
        ),
        (
            "/canvases/a%20b/operations?ownerUid=c.d",
            rename,
            &["canvasId", "ownerUid", "baseRevision", "idempotencyKey", "operations[0].title"],
        ),
        ("/canvases/a%20b/operations", batch.clone(), &["canvasId", "operations[1].clientId"]),
        ("/canvases/canvas:me:c/operations?ownerUid=you", batch, &["ownerUid", "operations[1].clientId"]),
        (
            "/actions/a%20b/runs",
            json!({"inputs": ["x"], "targetNodeId": "a b"}),
            &["actionKey", "canvasId", "baseRevision", "idempotencyKey", "targetNodeId", "inputs[0]", "params"],
        ),
        (
            "/recipes/a%20b/runs",
            json!({"canvasId": "a b", "inputs": {"a": ""}}),
            &["recipeId", "canvasId", "baseRevision", "idempotencyKey", "inputs.a"],
        ),
        (
            "/recipes/a%20b/fork",
            json!({"canvasId": "a b", "ownerUid": "c.d"}),
            &["recipeId", "canvasId", "ownerUid", "baseRevision", "idempotencyKey"],
        ),
    ] {
        let refused = user.send(path, &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
    // What is no Recipe's or Action's name is judged with the body; what is nobody's name after it.
    user.send("/actions/absent/runs", &json!({})).await.expect(400);
    let run = json!({"canvasId": "c", "baseRevision": "r", "idempotencyKey": key(), "targetNodeId": "n",
        "inputs": ["node:a"], "params": {}});
    user.send("/actions/absent/runs", &run).await.expect_error(404, "not_found", &[]);
}

async fn a_path_and_a_query_are_judged_together(stack: &Stack) {
    let user = stack.user().await;
    for (path, fields) in [
        ("/canvases/a%20b/nodes/a.b?ownerUid=c.d", &["canvasId", "nodeId", "ownerUid"][..]),
        ("/canvases/canvas:me:c/nodes/a.b?ownerUid=you", &["nodeId", "ownerUid"]),
        ("/assets/a.b?ownerUid=c.d", &["assetId", "ownerUid"]),
        ("/assets?canvasId=canvas:me:c&ownerUid=you&limit=0&cursor=x", &["ownerUid", "limit", "cursor"]),
        ("/canvases/a%20b/changes?ownerUid=c.d", &["canvasId", "ownerUid", "since"]),
    ] {
        user.get(path).await.expect_error(400, "input_validation_error", fields);
    }
    for (canvas, named) in [
        ("canvasId=a.b&ownerUid=c.d", &["canvasId", "ownerUid"][..]),
        ("canvasId=canvas:me:c&ownerUid=you", &["ownerUid"]),
    ] {
        let upload = user.post(&format!("/assets?{canvas}")).header("x-service-file-name", "%zz");
        let upload = upload.header("idempotency-key", "short").body("image/png", pictures::png(2, 2));
        let fields = [named, &["X-Service-File-Name", "Idempotency-Key"]].concat();
        upload.await.expect_error(400, "input_validation_error", &fields);
    }
}

async fn a_batch_is_judged_whole_however_malformed_some_of_it_is(stack: &Stack) {
    let user = stack.user().await;
    let operations = placed(json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "image", "metadata": {"content": "no"}}},
        {"type": "node.paint"},
        {"type": "node.create", "clientId": "n", "node": {"type": "text", "metadata": {"prompt": "p", "job": {}}}},
        {"type": "node.move", "nodeId": "n", "position": {"x": "0", "y": 0}},
        {"type": "connection.create", "fromNodeId": "n", "toNodeId": "n", "purpose": "flow", "role": "style"},
        7,
    ]));
    for validate_only in [false, true] {
        let body = json!({"validateOnly": validate_only, "baseRevision": "", "idempotencyKey": key(), "force": 1,
                          "operations": operations});
        let refused = user.send("/canvases/absent/operations", &body).await;
        let fields = [
            "baseRevision",
            "force",
            "operations[0].node.metadata.content",
            "operations[1].type",
            "operations[2].clientId",
            "operations[2].node.metadata.job",
            "operations[3].position.x",
            "operations[4].role",
            "operations[5]",
        ];
        refused.expect_error(400, "input_validation_error", &fields);
    }
}

async fn a_nul_hides_nothing_else_that_is_wrong(stack: &Stack) {
    let user = stack.user().await;
    let body = json!({"id": "a b", "title": "a\0b", "colour": "\0"});
    user.send("/canvases", &body).await.expect_error(400, "input_validation_error", &["id", "title", "colour"]);
    let body = json!({"canvasId": "c", "imageUrl": "https://localhost/", "title": "\0"});
    let refused = user.send("/images/import", &body).await;
    refused.expect_error(400, "input_validation_error", &["idempotencyKey", "imageUrl", "title"]);
}

async fn a_malformed_canvas_is_told_before_a_scope_that_the_body_calls_for(stack: &Stack) {
    let reader = stack.user_with("canvas:read").await;
    let body =
        json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [{"type": "canvas.update", "title": "t"}]});
    for (path, field) in [
        ("/canvases/a%20b/operations", "canvasId"),
        ("/canvases/a/operations?ownerUid=c.d", "ownerUid"),
        ("/canvases/canvas:me:c/operations?ownerUid=you", "ownerUid"),
    ] {
        reader.send(path, &body).await.expect_error(400, "input_validation_error", &[field]);
    }
    reader.send("/canvases/absent/operations", &body).await.expect_error(403, "forbidden", &[]);
}

async fn with_validate_only_the_key_is_not_looked_at(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let body = |idempotency_key: &Value, validate_only: bool| {
        json!({"validateOnly": validate_only, "baseRevision": canvas["revision"], "idempotencyKey": idempotency_key,
               "operations": [{"type": "canvas.update", "title": "t"}]})
    };
    let wide = json!((0..1001).collect::<Vec<_>>());
    for any in
        [json!(null), json!("short"), json!("a key with \0"), json!({"\0": ["\0"]}), wide, json!("k".repeat(201))]
    {
        user.send(&path, &body(&any, true)).await.ok();
        user.send(&path, &body(&any, false)).await.expect(400);
    }
    // One that was used for something else is not looked up either.
    let used = json!(key());
    let applied = user.send(&path, &body(&used, false)).await.ok();
    let again = with(body(&used, true), json!({"baseRevision": applied["canvas"]["revision"]}));
    user.send(&path, &again).await.ok();
}
