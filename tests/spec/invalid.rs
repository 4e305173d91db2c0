//! Errors that follow from the request alone: 400, with every violation in `fields`, whether it is in the path, query, header,
//! schema or a rule about several fields (docs/reference/conventions.md#all-violations-at-once).

use e2e::api::{key, placed, text};
use e2e::{Stack, pictures, suite};
use serde_json::{Value, json};

suite! {
    invalid on Stack::builder();
    what_is_wrong_with_a_body_is_reported_whoever_finds_it,
    a_path_and_a_body_are_judged_together,
    a_path_and_a_query_are_judged_together,
    a_batch_is_judged_whole_however_malformed_some_of_it_is,
    a_malformed_operation_is_reported_with_the_other_rules_it_breaks,
    a_batch_of_a_wrong_size_is_reported_with_its_other_violations,
    a_body_that_is_too_wide_is_reported_with_its_other_violations,
    what_is_wrong_with_a_large_body_is_reported_with_its_place,
    at_most_1000_violations_are_reported,
    a_nul_hides_nothing_else_that_is_wrong,
    a_malformed_canvas_is_reported_before_a_scope_that_the_body_calls_for,
    with_validate_only_the_key_is_not_looked_at,
}

/// A webhook with a URL that is not public and a secret that is too short.
fn webhook() -> Value {
    json!({"url": "https://localhost/", "secret": "short"})
}

fn input(more: Value) -> Value {
    with(json!({"key": "a", "label": "A", "type": "text", "useAsDefault": false}), more)
}

fn output(more: Value) -> Value {
    with(json!({"key": "o", "label": "O", "type": "text", "prompt": "p", "inputKeys": ["a"]}), more)
}

/// `base` with the members of `more`.
fn with(mut base: Value, more: Value) -> Value {
    base.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    base
}

async fn what_is_wrong_with_a_body_is_reported_whoever_finds_it(stack: &Stack) {
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
            &[
                "canvasId",
                "baseRevision",
                "idempotencyKey",
                "targetNodeId",
                "place",
                "inputs",
                "params",
                "params.degrees",
            ],
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
    // A malformed name of a Recipe or an Action is reported with the body's violations. An unknown name is reported after them.
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

async fn a_malformed_operation_is_reported_with_the_other_rules_it_breaks(stack: &Stack) {
    let user = stack.user().await;
    let server_owned = json!({"job": {}, "bogus": 1});
    let operations = json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "text", "colour": "red", "metadata": server_owned}},
        {"type": "node.create", "clientId": "n",
         "node": {"type": "image", "position": {"x": 0, "y": 0}, "width": "10", "metadata": {"content": "no"}}},
        {"type": "node.create", "clientId": "m",
         "node": {"type": "painting", "position": {"x": 0, "y": 0}, "metadata": {"content": "c", "section": {}}}},
        {"type": "node.update", "nodeId": "a b", "patch": {"type": "image", "height": 0, "metadata": server_owned}},
        {"type": "node.duplicate", "clientId": "n", "nodeId": "a"},
        {"type": "connection.create", "clientId": "m", "fromNodeId": "a", "role": "style"},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "sight", "role": "style"},
        {"type": "connection.update", "connectionId": "c", "colour": 1, "purpose": "flow", "role": "style"},
        {"type": "connection.update", "connectionId": "c", "purpose": "sight", "role": "style"},
        {"type": "node.create", "node": {"type": "text", "metadata": {"custom": 7}}},
        {"type": "node.create", "node": {"type": "text", "metadata": {"custom": {"a": "x".repeat(65_536)}}}},
    ]);
    let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": operations});
    let refused = user.send("/canvases/absent/operations", &body).await;
    let fields = [
        "operations[0].node.colour",
        "operations[0].node.metadata.job",
        "operations[0].node.metadata.bogus",
        "operations[1].clientId",
        "operations[1].node.width",
        "operations[1].node.metadata.content",
        "operations[2].node.type",
        "operations[2].node.metadata.section",
        "operations[3].nodeId",
        "operations[3].patch.type",
        "operations[3].patch.height",
        "operations[3].patch.metadata.job",
        "operations[3].patch.metadata.bogus",
        "operations[4].clientId",
        "operations[4].position",
        "operations[5].clientId",
        "operations[5].toNodeId",
        "operations[5].role",
        "operations[6].purpose",
        "operations[7].colour",
        "operations[7].role",
        "operations[8].purpose",
        "operations[9].node.metadata.custom",
        "operations[10].node.metadata",
    ];
    refused.expect_error(400, "input_validation_error", &fields);
}

async fn a_batch_of_a_wrong_size_is_reported_with_its_other_violations(stack: &Stack) {
    let user = stack.user().await;
    let rename = json!({"type": "canvas.update", "title": "t"});
    let mut many = vec![rename; 200];
    many.push(json!({"type": "node.create", "node":
        {"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"job": {}}}}));
    many.push(json!({"type": "node.move", "nodeId": "n"}));
    for (operations, fields) in [
        (Vec::new(), &["operations", "force"][..]),
        (many, &["operations", "force", "operations[200].node.metadata.job", "operations[201].position"]),
    ] {
        let body = json!({"baseRevision": "r", "idempotencyKey": key(), "force": 1, "operations": operations});
        let refused = user.send("/canvases/absent/operations", &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
}

async fn a_body_that_is_too_wide_is_reported_with_its_other_violations(stack: &Stack) {
    let user = stack.user().await;
    let mut operations = vec![json!({"type": "canvas.update", "title": "t"}); 1001];
    operations[3] = json!({"type": "node.move", "nodeId": "a b"});
    let fields: serde_json::Map<String, Value> = (0..1001).map(|at| (format!("f{at:04}"), json!(at))).collect();
    operations[5] =
        json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "metadata": fields}});
    let body = json!({"baseRevision": "r", "idempotencyKey": "short", "operations": operations});
    let refused = user.send("/canvases/absent/operations", &body).await.expect(400).json();
    let violations = refused["error"]["fields"].as_array().expect("fields").clone();
    let has = |field: &str| violations.iter().any(|violation| violation["field"] == field);
    for field in [
        "operations",
        "operations[3].nodeId",
        "operations[3].position",
        "operations[5].node.metadata",
        "operations[5].node.metadata.f0000",
        "idempotencyKey",
    ] {
        assert!(has(field), "{field}");
    }
    assert!(!has("operations[5].node.metadata.f1000"), "operations beyond the limit are not validated");
}

async fn what_is_wrong_with_a_large_body_is_reported_with_its_place(stack: &Stack) {
    let user = stack.user().await;
    let note = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0},
                      "metadata": {"content": "x".repeat(24_000), "custom": {"more": "y".repeat(30_000)}}}});
    let mut operations = vec![note; 200];
    operations[7] = json!({"type": "node.move", "nodeId": "n"});
    operations[150]["node"]["metadata"]["content"] = json!("x".repeat(24_001));
    operations[199]["node"]["width"] = json!("wide");
    let body = json!({"baseRevision": "", "idempotencyKey": key(), "operations": operations});
    assert!(body.to_string().len() > 10_000_000);
    let path = "/canvases/absent/operations";
    let fields = [
        "baseRevision",
        "operations[7].position",
        "operations[150].node.metadata.content",
        "operations[199].node.width",
    ];
    user.send(path, &body).await.expect_error(400, "input_validation_error", &fields);
    // An operation that is too large by itself is named.
    let unknown: serde_json::Map<String, Value> =
        (0..500).map(|at| (format!("f{at}"), json!("x".repeat(20_000)))).collect();
    let large =
        json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "unknown": unknown}});
    let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [{"type": "node.move", "nodeId": "n"}, large]});
    let fields = ["operations[0].position", "operations[1]"];
    user.send(path, &body).await.expect_error(400, "input_validation_error", &fields);
}

async fn at_most_1000_violations_are_reported(stack: &Stack) {
    let user = stack.user().await;
    let keys = |count: usize| -> Value {
        (0..count).map(|at| (format!("k{at}"), json!(1))).collect::<serde_json::Map<_, _>>().into()
    };
    let create = |count| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "metadata": keys(count)}});
    // What the schema rejects, and what it leaves to the other rules.
    for malformed in [json!({"type": "node.move", "nodeId": "n"}), json!({"type": "canvas.update", "title": "t"})] {
        for (operations, expected) in [
            (vec![malformed.clone(), create(900)], 900..=901),
            (vec![malformed.clone(), create(1000)], 1000..=1000),
            (vec![create(600); 200], 1000..=1000),
        ] {
            let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": operations});
            let refused = user.send("/canvases/absent/operations", &body).await.expect(400).json();
            let count = refused["error"]["fields"].as_array().expect("fields").len();
            assert!(expected.contains(&count), "{count} of {expected:?}");
        }
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

async fn a_malformed_canvas_is_reported_before_a_scope_that_the_body_calls_for(stack: &Stack) {
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
    // A key that was used for another request is not looked up either.
    let used = json!(key());
    let applied = user.send(&path, &body(&used, false)).await.ok();
    let again = with(body(&used, true), json!({"baseRevision": applied["canvas"]["revision"]}));
    user.send(&path, &again).await.ok();
}
