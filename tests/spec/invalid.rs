//! Errors that follow from the request alone: 400, with every violation of the path, query and headers, and of the body's shape
//! or, where the shape is right, of its rules (docs/reference/conventions.md#all-violations-at-once).

use e2e::api::{key, placed, text};
use e2e::{Stack, images};
use serde_json::{Value, json};

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

#[tokio::test]
async fn a_body_of_the_wrong_shape_is_told_about_its_shape_alone() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let long = "x".repeat(161);
    for (path, body, fields) in [
        (
            "/actions/resize/runs",
            json!({"canvasId": "a b", "idempotencyKey": "short", "targetNodeId": "n", "inputs": ["x", "node:n"],
                   "params": {"width": 0, "sharpen": 1}, "webhook": webhook()}),
            &["baseRevision", "canvasId", "idempotencyKey", "webhook.secret"][..],
        ),
        ("/actions/rotate/runs", json!({}), &["canvasId", "baseRevision", "inputs", "params"]),
        (
            "/videos/generate",
            json!({"model": "model:short", "prompt": "", "canvasId": "canvas:me:c", "ownerUid": "you",
                   "lastFrame": "https://127.0.0.1/a.png", "references": ["a", {"role": "style"}, {"handle": "asset:a"}, 7]}),
            &["prompt", "references[1].handle", "references[3]"],
        ),
        ("/videos/generate", json!({"firstFrame": "node:a"}), &["model", "prompt"]),
        (
            "/images/generate",
            json!({"targetNodeIds": ["a", "node:a"], "count": 3, "model": "model:short", "webhook": webhook()}),
            &["canvasId", "baseRevision", "webhook.secret"],
        ),
        (
            "/images/import",
            json!({"canvasId": "a b", "imageUrl": "https://localhost/", "title": long, "z": 1}),
            &["canvasId", "title", "idempotencyKey", "z"],
        ),
        (
            "/product-references/import",
            json!({"productPageUrl": "https://10.0.0.1/", "variantSelector": "none"}),
            &["canvasId", "variantSelector", "idempotencyKey"],
        ),
        (
            "/recipes/storyboard/runs",
            json!({"canvasId": "c", "webhook": webhook()}),
            &["baseRevision", "webhook.secret"],
        ),
        (
            "/recipes/storyboard/fork",
            json!({"canvasId": "canvas:me:c", "ownerUid": "you", "x": 10_000_001}),
            &["baseRevision", "idempotencyKey", "x"],
        ),
        (
            "/elements",
            json!({"sourceAssetIds": [], "collectionIds": ["a", "a"], "colour": "red"}),
            &["name", "type", "colour"],
        ),
        ("/canvases", json!({"id": "a", "destination": "agent-canvas", "title": long}), &["title"]),
    ] {
        let refused = user.send(path, &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
}

#[tokio::test]
async fn a_body_of_the_right_shape_is_told_about_all_rules_it_breaks() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let hook = json!({"url": "https://localhost/", "secret": "a secret of thirty-two or more characters"});
    let on = json!({"canvasId": "c", "baseRevision": "r"});
    for (path, body, fields) in [
        (
            "/actions/resize/runs",
            with(
                on.clone(),
                json!({"targetNodeId": "n", "inputs": ["x", "node:n"], "params": {"width": 0, "sharpen": 1},
                       "webhook": hook}),
            ),
            &["idempotencyKey", "targetNodeId", "inputs", "inputs[0]", "params.width", "params.sharpen", "webhook.url"]
                [..],
        ),
        (
            "/actions/rotate/runs",
            with(on.clone(), json!({"inputs": ["node:a"], "params": {}})),
            &["idempotencyKey", "targetNodeId", "place", "params.degrees"],
        ),
        (
            "/videos/generate",
            json!({"model": "model:short", "prompt": "p", "canvasId": "canvas:me:c", "ownerUid": "you",
                   "lastFrame": "https://127.0.0.1/a.png", "references": ["a", "asset:a", {"handle": "asset:a"}]}),
            &["idempotencyKey", "model", "ownerUid", "firstFrame", "lastFrame", "references[0]", "references[2]"],
        ),
        (
            "/videos/generate",
            json!({"model": "animatic", "prompt": "p", "firstFrame": "node:a"}),
            &["idempotencyKey", "canvasId"],
        ),
        (
            "/images/generate",
            with(
                on.clone(),
                json!({"targetNodeIds": ["a", "node:a"], "count": 3, "model": "model:short", "webhook": hook}),
            ),
            &["idempotencyKey", "targetNodeIds[1]", "count", "prompt", "promptNodeId", "model", "webhook.url"],
        ),
        (
            "/images/import",
            json!({"canvasId": "c", "imageUrl": "https://localhost/", "idempotencyKey": key()}),
            &["imageUrl"],
        ),
        (
            "/product-references/import",
            json!({"canvasId": "c", "productPageUrl": "https://10.0.0.1/", "idempotencyKey": key()}),
            &["productPageUrl"],
        ),
        (
            "/recipes/storyboard/runs",
            with(on.clone(), json!({"model": "model:short", "near": "n", "instanceNodeId": "i", "webhook": hook})),
            &["idempotencyKey", "model", "near", "webhook.url"],
        ),
        (
            "/recipes/storyboard/fork",
            json!({"canvasId": "canvas:me:c", "ownerUid": "you", "baseRevision": "r", "idempotencyKey": key(), "x": 1,
                   "near": "n", "sectionId": "s"}),
            &["ownerUid", "near", "sectionId"],
        ),
        (
            "/elements",
            json!({"name": "e", "type": "style", "sourceAssetIds": [], "collectionIds": ["a", "a"]}),
            &["sourceAssetIds", "guidelines", "collectionIds[1]"],
        ),
        ("/canvases", json!({"id": "a", "destination": "agent-canvas"}), &["id"]),
    ] {
        let refused = user.send(path, &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
}

#[tokio::test]
async fn a_path_and_a_body_are_judged_together() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let malformed = json!({"name": "", "inputs": [input(json!({})), input(json!({"label": 7}))], "tags": ["t", ""],
                           "outputs": [output(json!({"inputKeys": ["b"]}))]});
    let workflow = json!({
        "name": "w", "idempotencyKey": key(), "inputs": [input(json!({})), input(json!({}))], "tags": ["t", ""],
        "outputs": [output(json!({"inputKeys": ["b"]})), output(json!({"key": "o2", "prompt": "{{x}}"}))],
    });
    let rename = json!({"idempotencyKey": "short", "operations": [{"type": "canvas.update"}]});
    let twice = json!({"type": "node.create", "clientId": "n", "node": {"type": "text", "position": {"x": 0, "y": 0}}});
    let batch = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [twice, twice]});
    for (path, body, fields) in [
        (
            "/canvases/a%20b/workflows?ownerUid=c.d",
            malformed,
            &["canvasId", "ownerUid", "name", "idempotencyKey", "inputs[1].label"][..],
        ),
        (
            "/canvases/a%20b/workflows?ownerUid=c.d",
            workflow,
            &["canvasId", "ownerUid", "tags[1]", "inputs[1].key", "outputs[0].inputKeys[0]", "outputs[1].prompt"],
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
            &["actionKey", "canvasId", "baseRevision", "targetNodeId", "params"],
        ),
        (
            "/actions/a%20b/runs",
            json!({"canvasId": "c", "baseRevision": "r", "inputs": ["x"], "params": {}}),
            &["actionKey", "idempotencyKey", "targetNodeId", "place", "inputs[0]"],
        ),
        (
            "/recipes/a%20b/runs",
            json!({"canvasId": "a b", "inputs": {"a": ""}}),
            &["recipeId", "canvasId", "baseRevision", "inputs.a"],
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

#[tokio::test]
async fn a_path_and_a_query_are_judged_together() {
    let stack = &Stack::without_workers().await;
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
        let upload = upload.header("idempotency-key", "short").body("image/png", images::png(2, 2));
        let fields = [named, &["X-Service-File-Name", "Idempotency-Key"]].concat();
        upload.await.expect_error(400, "input_validation_error", &fields);
    }
}

#[tokio::test]
async fn a_batch_is_judged_by_its_shape_before_its_rules() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let operations = placed(json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "image", "metadata": {"content": "no"}}},
        {"type": "node.create", "clientId": "n", "node": {"type": "text", "metadata": {"prompt": "p", "job": {}}}},
        {"type": "connection.create", "fromNodeId": "n", "toNodeId": "n", "purpose": "flow", "role": "style"},
        {"type": "node.paint"},
        {"type": "node.move", "nodeId": "n", "position": {"x": "0", "y": 0}},
        7,
    ]));
    let well_formed: Vec<Value> = operations.as_array().expect("operations")[..3].to_vec();
    for validate_only in [false, true] {
        let body = json!({"validateOnly": validate_only, "baseRevision": "", "idempotencyKey": key(), "force": 1,
                          "operations": operations});
        let refused = user.send("/canvases/absent/operations", &body).await;
        let fields = ["baseRevision", "force", "operations[3].type", "operations[4].position.x", "operations[5]"];
        refused.expect_error(400, "input_validation_error", &fields);
        let body = json!({"validateOnly": validate_only, "baseRevision": "r", "idempotencyKey": key(),
                          "operations": well_formed});
        let refused = user.send("/canvases/absent/operations", &body).await;
        let fields = [
            "operations[0].node.metadata.content",
            "operations[1].clientId",
            "operations[1].node.metadata.job",
            "operations[2].role",
        ];
        refused.expect_error(400, "input_validation_error", &fields);
    }
}

#[tokio::test]
async fn all_operations_are_judged() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let send = async |operations: &Value, fields: &[&str]| {
        let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": operations});
        let refused = user.send("/canvases/absent/operations", &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    };
    let malformed = json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "text", "colour": "red"}},
        {"type": "node.create", "clientId": "n", "node": {"type": "image", "position": {"x": 0, "y": 0}, "width": "10"}},
        {"type": "node.create", "clientId": "m", "node": {"type": "painting", "position": {"x": 0, "y": 0}}},
        {"type": "node.update", "nodeId": "a b", "patch": {"type": "image", "height": 0}},
        {"type": "node.duplicate", "clientId": "n", "nodeId": "a"},
        {"type": "connection.create", "clientId": "m", "fromNodeId": "a", "role": "style"},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "sight", "role": "style"},
        {"type": "connection.update", "connectionId": "c", "colour": 1, "purpose": "flow", "role": "style"},
        {"type": "connection.update", "connectionId": "c", "purpose": "sight", "role": "style"},
        {"nodeId": "a"},
    ]);
    let fields = [
        "operations[0].node.colour",
        "operations[1].node.width",
        "operations[2].node.type",
        "operations[3].nodeId",
        "operations[3].patch.height",
        "operations[4].position",
        "operations[5].toNodeId",
        "operations[6].purpose",
        "operations[7].colour",
        "operations[8].purpose",
        "operations[9].type",
    ];
    send(&malformed, &fields).await;
    let server_owned = json!({"job": {}, "bogus": 1});
    let well_formed = json!([
        {"type": "node.create", "clientId": "n", "node": {"type": "text", "metadata": server_owned}},
        {"type": "node.create", "clientId": "n", "node": {"type": "image", "metadata": {"content": "no"}}},
        {"type": "node.create", "clientId": "m", "node": {"type": "text", "metadata": {"section": {}}}},
        {"type": "node.update", "nodeId": "a", "patch": {"type": "image", "metadata": server_owned}},
        {"type": "node.duplicate", "clientId": "n", "nodeId": "a", "position": {"x": 0, "y": 0}},
        {"type": "connection.create", "clientId": "m", "fromNodeId": "a", "toNodeId": "b", "role": "style"},
        {"type": "connection.update", "connectionId": "c", "purpose": "flow", "role": "style"},
        {"type": "node.create", "node": {"type": "text", "metadata": {"custom": 7}}},
        {"type": "node.create", "node": {"type": "text", "metadata": {"custom": {"a": "x".repeat(65_536)}}}},
    ]);
    let fields = [
        "operations[0].node.metadata.job",
        "operations[0].node.metadata.bogus",
        "operations[1].clientId",
        "operations[1].node.metadata.content",
        "operations[2].node.metadata.section",
        "operations[3].patch.type",
        "operations[3].patch.metadata.job",
        "operations[3].patch.metadata.bogus",
        "operations[4].clientId",
        "operations[5].clientId",
        "operations[5].role",
        "operations[6].role",
        "operations[7].node.metadata.custom",
        "operations[8].node.metadata",
    ];
    send(&well_formed, &fields).await;
}

#[tokio::test]
async fn a_batch_of_a_wrong_size_is_reported_with_its_other_violations() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let rename = json!({"type": "canvas.update", "title": "t"});
    let mut many = vec![rename; 200];
    many.push(json!({"type": "node.move", "nodeId": "n"}));
    for (operations, fields) in
        [(Vec::new(), &["operations", "force"][..]), (many, &["operations", "force", "operations[200].position"])]
    {
        let body = json!({"baseRevision": "r", "idempotencyKey": key(), "force": 1, "operations": operations});
        let refused = user.send("/canvases/absent/operations", &body).await;
        refused.expect_error(400, "input_validation_error", fields);
    }
}

#[tokio::test]
async fn a_body_that_is_too_wide_is_reported_with_its_other_violations() {
    let stack = &Stack::without_workers().await;
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
        "idempotencyKey",
    ] {
        assert!(has(field), "{field}");
    }
    assert!(!has("operations[5].node.metadata.f0000"), "a rule");
}

#[tokio::test]
async fn what_is_wrong_with_a_large_body_is_reported_with_its_place() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let note = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0},
                      "metadata": {"content": "x".repeat(24_000), "custom": {"more": "y".repeat(30_000)}}}});
    let mut operations = vec![note; 200];
    operations[7] = json!({"type": "node.move", "nodeId": "n"});
    operations[199]["node"]["width"] = json!("wide");
    let body = json!({"baseRevision": "", "idempotencyKey": key(), "operations": operations});
    assert!(body.to_string().len() > 10_000_000);
    let path = "/canvases/absent/operations";
    let fields = ["baseRevision", "operations[7].position", "operations[199].node.width"];
    user.send(path, &body).await.expect_error(400, "input_validation_error", &fields);
    let unknown: serde_json::Map<String, Value> =
        (0..500).map(|at| (format!("f{at}"), json!("x".repeat(20_000)))).collect();
    let large =
        json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "unknown": unknown}});
    let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [{"type": "node.move", "nodeId": "n"}, large]});
    let fields = ["operations[0].position", "operations[1].node.unknown"];
    user.send(path, &body).await.expect_error(400, "input_validation_error", &fields);
}

#[tokio::test]
async fn the_first_100_violations_are_listed_and_the_others_counted() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let counted = async |operations: Vec<Value>| {
        let body = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": operations});
        let error = user.send("/canvases/absent/operations", &body).await.expect(400).json()["error"].clone();
        (error["fields"].as_array().expect("fields").len(), error["details"]["more"].as_u64())
    };
    let keys = |count: usize| -> Value {
        (0..count).map(|at| (format!("k{at}"), json!(1))).collect::<serde_json::Map<_, _>>().into()
    };
    let create = |count| json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "metadata": keys(count)}});
    let malformed = json!({"type": "node.move", "nodeId": "n"});
    for (count, expected) in [(99, (99, None)), (100, (100, None)), (101, (100, Some(1))), (200, (100, Some(100)))] {
        assert_eq!(counted(vec![malformed.clone(); count]).await, expected, "of the shape");
        assert_eq!(counted(vec![create(count)]).await, expected, "of the rules");
    }
    let (listed, more) = counted(vec![create(600); 200]).await;
    assert!(listed == 100 && more >= Some(9_900), "{more:?}: a check may stop at 10000");
}

#[tokio::test]
async fn a_nul_hides_nothing_else_that_is_wrong() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let body = json!({"id": "a b", "title": "a\0b", "colour": "\0"});
    user.send("/canvases", &body).await.expect_error(400, "input_validation_error", &["id", "title", "colour"]);
    let body = json!({"canvasId": "c", "imageUrl": "https://localhost/", "title": "\0"});
    let refused = user.send("/images/import", &body).await;
    refused.expect_error(400, "input_validation_error", &["idempotencyKey", "title"]);
}

#[tokio::test]
async fn a_malformed_canvas_is_reported_before_a_scope_that_the_body_calls_for() {
    let stack = &Stack::without_workers().await;
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

#[tokio::test]
async fn with_validate_only_the_key_is_not_looked_at() {
    let stack = &Stack::without_workers().await;
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
