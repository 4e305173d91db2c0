//! Access control: every route against scopes, roles and canvases (docs/reference/authentication.md#scopes,
//! docs/reference/canvases.md#roles). The routes are those of [`e2e::contract`]. A route that addresses a canvas needs a row in
//! [`addressed`]; `belongings.rs` covers routes that address something else.

use std::collections::{BTreeMap, BTreeSet};

use e2e::api::{key, text};
use e2e::contract::{self, Access, Endpoint};
use e2e::{Client, Reply, Stack, User, images};
use reqwest::Method;
use serde_json::{Value, json};

/// A Recipe of the catalog that requires inputs.
const RECIPE: &str = "ad-copy-and-banner";

/// All scopes, each with the scopes that it depends on (docs/reference/authentication.md#scope-dependencies).
const SCOPES: [(&str, &[&str]); 8] = [
    ("canvas:read", &[]),
    ("canvas:write", &["canvas:read"]),
    ("asset:read", &[]),
    ("element:read", &[]),
    ("element:write", &["element:read"]),
    ("image:generate", &["canvas:read", "canvas:write", "asset:read"]),
    ("video:generate", &["canvas:read", "asset:read"]),
    ("job:manage", &[]),
];

/// The largest set of scopes that a token can have without those in `lacking`.
fn without(lacking: &[&str]) -> String {
    let kept = SCOPES
        .iter()
        .filter(|(scope, needs)| !lacking.contains(scope) && needs.iter().all(|need| !lacking.contains(need)));
    kept.map(|(scope, _)| *scope).collect::<Vec<_>>().join(",")
}

/// The path with a value for each parameter; the value need not name an existing resource.
fn concrete(path: &str) -> String {
    let mut path = path.to_owned();
    for (parameter, value) in [
        ("{actionKey}", "resize"),
        ("{jobId}", "0198c5a0-0000-7000-8000-000000000001"),
        ("{runId}", "0198c5a0-0000-7000-8000-000000000001"),
        ("{modelKey}", "absent-model"),
    ] {
        path = path.replace(parameter, value);
    }
    while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
        path.replace_range(start..=end, "absent");
    }
    path
}

/// Calls a route. The body `"png"` stands for the bytes of an image.
pub(super) async fn call(client: &Client, endpoint: &Endpoint, path: &str, body: Option<&Value>) -> Reply {
    let method = Method::from_bytes(endpoint.method.as_bytes()).expect("a method");
    let call = client.call(method, path);
    match body {
        Some(Value::String(png)) if png == "png" => call.body("image/png", images::png(2, 2)).await,
        Some(body) => call.body("application/json", body.to_string()).await,
        None => call.await,
    }
}

#[tokio::test]
async fn each_route_refuses_a_token_that_lacks_one_of_its_scopes() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let mut lacking = BTreeMap::new();
    for (scope, _) in SCOPES {
        lacking.insert(scope, stack.user_of(&account, &without(&[scope])).await);
    }
    let generates_nothing = stack.user_of(&account, &without(&["image:generate", "video:generate"])).await;
    let all_scopes = stack.user_of(&account, "all").await;
    for endpoint in contract::built() {
        let path = concrete(endpoint.path);
        let Access::Token { all, any } = endpoint.access else {
            assert_ne!(call(&stack.anonymous(), &endpoint, &path, None).await.status, 403, "{path}");
            continue;
        };
        stack
            .anonymous()
            .call(Method::from_bytes(endpoint.method.as_bytes()).expect("a method"), &path)
            .await
            .expect(401);
        for scope in all {
            let refused = call(&lacking[scope], &endpoint, &path, None).await;
            let message = refused.expect_error(403, "forbidden", &[]);
            assert!(message.contains(scope), "{} {path} without {scope}: {message}", endpoint.method);
            // The message does not list the scopes that the token has.
            let held = without(&[*scope]);
            assert!(held.split(',').all(|held| !message.contains(held)), "{} {path}: {message}", endpoint.method);
        }
        if !any.is_empty() {
            let message = call(&generates_nothing, &endpoint, &path, None).await.expect_error(403, "forbidden", &[]);
            assert!(any.iter().all(|scope| message.contains(scope)), "{} {path}: {message}", endpoint.method);
        }
        let reply = call(&all_scopes, &endpoint, &path, None).await;
        assert!(!matches!(reply.status, 401 | 403), "{} {path}: {reply}", endpoint.method);
    }
}

/// A request to a route that addresses a canvas, valid except for the canvas. `None` for a route that addresses no canvas.
pub(super) fn addressed(endpoint: &Endpoint, canvas: &str, revision: &str) -> Option<(String, Option<Value>)> {
    let path = endpoint.path.replace("{canvasId}", canvas);
    let write = json!({"baseRevision": revision, "idempotencyKey": key()});
    let with = |more: Value| {
        let mut body = write.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        body
    };
    Some(match (endpoint.method, endpoint.path) {
        (
            "GET",
            "/canvases/{canvasId}"
            | "/canvases/{canvasId}/outline"
            | "/canvases/{canvasId}/review"
            | "/canvases/{canvasId}/render",
        ) => (path, None),
        ("GET", "/canvases/{canvasId}/nodes/{nodeId}") => (path.replace("{nodeId}", "absent"), None),
        ("GET", "/canvases/{canvasId}/changes") => (format!("{path}?since={revision}"), None),
        ("POST", "/canvases/{canvasId}/operations") => {
            (path, Some(with(json!({"operations": [{"type": "canvas.update", "title": "t"}]}))))
        }
        ("POST", "/canvases/{canvasId}/set-aside") => {
            (path, Some(json!({"operations": [{"type": "canvas.update", "title": "t"}]})))
        }
        ("GET", "/canvases/{canvasId}/set-aside/{batchId}") => (path.replace("{batchId}", "absent"), None),
        ("GET", "/assets") => (format!("/assets?canvasId={canvas}"), None),
        ("POST", "/assets") => (format!("/assets?canvasId={canvas}"), Some(json!("png"))),
        ("POST", "/assets/downloads") => (path, Some(json!({"canvasId": canvas, "items": ["node:absent"]}))),
        ("POST", "/assets/uploads") => (path, Some(json!({"canvasId": canvas, "files": [{"name": "a.png"}]}))),
        ("POST", "/actions/{actionKey}/runs") => {
            let body =
                json!({"canvasId": canvas, "targetNodeId": "absent", "inputs": ["node:a"], "params": {"width": 1}});
            ("/actions/resize/runs".to_owned(), Some(with(body)))
        }
        ("POST", "/actions/runs") => {
            let steps = json!([{"action": "resize", "params": {"width": 1}}]);
            (
                path,
                Some(with(
                    json!({"canvasId": canvas, "targetNodeIds": ["absent"], "inputs": ["node:a"], "steps": steps}),
                )),
            )
        }
        ("POST", "/images/generate" | "/images/edit" | "/images/variations") => {
            let body = json!({"canvasId": canvas, "targetNodeId": "absent", "prompt": "p", "references": ["node:a"]});
            (path, Some(with(body)))
        }
        ("POST", "/images/import") => {
            let body = json!({"canvasId": canvas, "imageUrl": "https://example.com/a.png", "idempotencyKey": key()});
            (path, Some(body))
        }
        ("POST", "/product-references/import") => {
            let body = json!({"canvasId": canvas, "productPageUrl": "https://example.com/a", "idempotencyKey": key()});
            (path, Some(body))
        }
        ("POST", "/videos/generate") => {
            let body = json!({"canvasId": canvas, "model": "absent", "prompt": "p", "idempotencyKey": key()});
            (path, Some(body))
        }
        ("POST", "/jobs/{jobId}/asset") => {
            (path.replace("{jobId}", "0198c5a0-0000-7000-8000-000000000001"), Some(json!({"canvasId": canvas})))
        }
        ("POST", "/recipes/{recipeId}/fork" | "/recipes/{recipeId}/runs") => {
            (path.replace("{recipeId}", RECIPE), Some(with(json!({"canvasId": canvas}))))
        }
        ("POST", "/canvases/{canvasId}/workflows") => {
            let input = json!({"key": "a", "label": "A", "description": "", "type": "text", "value": "v", "useAsDefault": true});
            let output = json!({"key": "b", "label": "B", "description": "", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]});
            (path, Some(json!({"name": "w", "idempotencyKey": key(), "inputs": [input], "outputs": [output]})))
        }
        _ => return None,
    })
}

/// Returns `true` if a request built by [`addressed`] writes to the canvas. A video start without a target does not, and neither do
/// links to files.
fn writes(endpoint: &Endpoint) -> bool {
    endpoint.method != "GET" && !matches!(endpoint.path, "/videos/generate" | "/assets/downloads")
}

/// Scopes that a request built by [`addressed`] needs beyond those of its route.
fn further_scopes(endpoint: &Endpoint) -> &'static [&'static str] {
    match (endpoint.method, endpoint.path) {
        ("POST", "/assets" | "/assets/uploads") => &["canvas:read", "canvas:write"],
        ("POST", "/assets/downloads") => &["canvas:read"],
        ("POST", "/canvases/{canvasId}/operations" | "/jobs/{jobId}/asset") => &["canvas:write"],
        // With `elements`.
        ("POST", "/images/generate" | "/images/edit" | "/images/variations") => &["element:read"],
        _ => &[],
    }
}

#[tokio::test]
async fn scopes_that_a_request_calls_for_are_needed_too() {
    let stack = &Stack::without_workers().await;
    let account = stack.account().await;
    let owner = stack.user_of(&account, "all").await;
    let canvas = owner.make_canvas().await;
    for endpoint in contract::built() {
        let Some((path, body)) = addressed(&endpoint, text(&canvas, "/id"), text(&canvas, "/revision")) else {
            continue;
        };
        for scope in further_scopes(&endpoint) {
            let mut body = body.clone();
            if *scope == "element:read" {
                body.as_mut().expect("a body")["elements"] = json!(["element:absent@v1"]);
            }
            let user = stack.user_of(&account, &without(&[*scope])).await;
            let refused = call(&user, &endpoint, &path, body.as_ref()).await;
            let message = refused.expect_error(403, "forbidden", &[]);
            // Without canvas:read the token has no generate scope either, so the message can name one of those.
            let named = message.contains(scope) || message.contains("generate");
            assert!(named, "{} {path} without {scope}: {message}", endpoint.method);
        }
    }
    assert_eq!(owner.canvas(text(&canvas, "/id")).await, canvas, "nothing was written");
    // A request that does not need the scope succeeds without it.
    let user = stack.user_of(&account, &without(&["canvas:write"])).await;
    user.upload("image/png", images::png(2, 2)).await;
}

async fn member(stack: &Stack, role: &str) -> (User, User, Value) {
    let (owner, member) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &member.uid, role).await;
    (owner, member, canvas)
}

#[tokio::test]
async fn a_viewer_reads_everything_and_writes_nothing() {
    let stack = &Stack::without_workers().await;
    let (owner, viewer, canvas) = member(stack, "viewer").await;
    let handle = text(&canvas, "/handle");
    let mut tried = BTreeSet::new();
    for endpoint in contract::built() {
        let Some((path, body)) = addressed(&endpoint, handle, text(&canvas, "/revision")) else { continue };
        let reply = call(&viewer, &endpoint, &path, body.as_ref()).await;
        match (writes(&endpoint), endpoint.method) {
            (true, _) => drop(reply.expect_error(403, "forbidden", &[])),
            // A missing node looks the same to a viewer as to an owner.
            (false, "GET") => assert!(matches!(reply.status, 200 | 404), "{path}: {reply}"),
            (false, _) if endpoint.path == "/assets/downloads" => drop(reply.expect(200)),
            (false, _) => drop(reply.expect_error(422, "unprocessable_entity", &["model"])),
        }
        tried.insert((endpoint.method, endpoint.path));
    }
    assert_eq!(owner.canvas(handle).await, canvas, "nothing was written partially");
    // Every route that needs canvas:write was tried, except the one that creates a canvas.
    for endpoint in contract::built() {
        let Access::Token { all, .. } = endpoint.access else { continue };
        let writes = all.iter().chain(further_scopes(&endpoint)).any(|scope| *scope == "canvas:write");
        let campaign = endpoint.path.starts_with("/campaigns");
        if writes && !campaign && (endpoint.method, endpoint.path) != ("POST", "/canvases") {
            assert!(
                tried.contains(&(endpoint.method, endpoint.path)),
                "{} {} has no row in the table",
                endpoint.method,
                endpoint.path
            );
        }
    }
}

#[tokio::test]
async fn an_editor_reads_and_writes_everything() {
    let stack = &Stack::without_workers().await;
    let (owner, editor, canvas) = member(stack, "editor").await;
    let handle = text(&canvas, "/handle");
    let used = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [
        {"type": "canvas.update", "title": "by the editor"}
    ]});
    editor.send(&format!("/canvases/{handle}/operations"), &used).await.ok();
    for endpoint in contract::built() {
        let now = owner.canvas(handle).await;
        let Some((path, mut body)) = addressed(&endpoint, handle, text(&now, "/revision")) else { continue };
        if let Some(body) = body.as_mut().filter(|_| endpoint.path.ends_with("/import")) {
            // No worker fetches the image. A used key is reported only to a caller that can write.
            body["idempotencyKey"] = used["idempotencyKey"].clone();
        }
        let reply = call(&editor, &endpoint, &path, body.as_ref()).await;
        let expected = match (endpoint.method, endpoint.path) {
            ("GET", "/canvases/{canvasId}/nodes/{nodeId}" | "/canvases/{canvasId}/set-aside/{batchId}")
            | ("POST", "/jobs/{jobId}/asset") => 404,
            ("GET", _) | ("POST", "/canvases/{canvasId}/operations" | "/assets/downloads") => 200,
            (
                "POST",
                "/assets"
                | "/assets/uploads"
                | "/canvases/{canvasId}/set-aside"
                | "/canvases/{canvasId}/workflows"
                | "/recipes/{recipeId}/fork",
            ) => 201,
            ("POST", "/images/import" | "/product-references/import") => 409,
            // The target, the inputs or the model do not exist. The service checks this last.
            _ => 422,
        };
        assert_eq!(reply.status, expected, "{} {path}: {reply}", endpoint.method);
    }
    let after = owner.canvas(handle).await;
    assert_eq!(after["title"], "t");
    assert!(after["nodes"].as_array().is_some_and(|nodes| nodes.len() > 2), "upload, workflow and fork: {after}");
    // An editor cannot change the owner of a canvas.
    assert_eq!(after["ownerUid"], json!(owner.uid));
}

#[tokio::test]
async fn a_stranger_and_an_unknown_canvas_are_404() {
    let stack = &Stack::without_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    let (handle, revision) = (text(&canvas, "/handle"), text(&canvas, "/revision"));
    for endpoint in contract::built() {
        for named in [handle, "absent", &format!("canvas:{}:absent", owner.uid), "canvas:nobody:absent"] {
            let Some((path, body)) = addressed(&endpoint, named, revision) else { break };
            let reply = call(&stranger, &endpoint, &path, body.as_ref()).await;
            reply.expect_error(404, "not_found", &[]);
        }
        // A missing resource is 404 for the owner as well.
        if let Some((path, body)) = addressed(&endpoint, "absent", revision) {
            call(&owner, &endpoint, &path, body.as_ref()).await.expect_error(404, "not_found", &[]);
        }
    }
    assert_eq!(owner.canvas(handle).await, canvas);
}

#[tokio::test]
async fn a_stranger_holds_no_place_of_a_canvas() {
    let stack = &Stack::without_workers().await;
    let (owner, stranger) = (stack.user().await, stack.user().await);
    let canvas = text(&owner.make_canvas().await, "/id").to_owned();
    let image = text(&stranger.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    let handle = format!("canvas:{}:{canvas}", owner.uid);
    // Other work of the stranger holds the row of its account.
    let mut held = stack.pool().begin().await.expect("begins");
    let lock = "SELECT FROM accounts WHERE uid = $1 FOR UPDATE";
    sqlx::query(lock).bind(&stranger.uid).execute(&mut *held).await.expect("locks");
    let start = json!({
        "canvasId": handle, "baseRevision": "r", "idempotencyKey": key(), "targetNodeId": "node:absent",
        "inputs": [image], "params": {"width": 32},
    });
    stranger.send("/actions/resize/runs", &start).await.expect_error(404, "not_found", &[]);
    owner.apply(&canvas, json!([{"type": "canvas.update", "title": "Mine"}])).await;
    held.rollback().await.expect("rolls back");
}
