//! Conventions of the API (docs/reference/conventions.md).

use e2e::api::{key, text};
use e2e::{Stack, images};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

const ORIGIN: &str = "https://app.example.com";

/// A stack that the pages of [`ORIGIN`] may call.
async fn stack() -> Stack {
    Stack::builder().env("CANVAS_CORS_ORIGINS", ORIGIN).shared().await
}

#[tokio::test]
async fn an_unknown_path_is_404_whoever_asks() {
    let stack = &stack().await;
    let user = stack.user().await;
    for path in ["/nowhere", "/canvases/a/nowhere", "/canvas", "/canvases/", "/api/canvas-agent/v2/canvases", "/api"] {
        stack.anonymous().get(path).await.expect_error(404, "not_found", &[]);
        user.get(path).await.expect_error(404, "not_found", &[]);
        user.post(path).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_and_says_which_are_allowed() {
    let stack = &stack().await;
    for (method, path, allowed) in [
        (Method::DELETE, "/canvases", &["GET", "POST"][..]),
        (Method::PUT, "/canvases/a", &["GET"]),
        (Method::GET, "/canvases/a/operations", &["POST"]),
        (Method::POST, "/assets/preview", &["GET"]),
        (Method::POST, "/auth/status", &["GET"]),
        (Method::PATCH, "/runs/a", &["GET", "DELETE"]),
        (Method::GET, "/actions/resize/runs", &["POST"]),
    ] {
        let reply = stack.anonymous().call(method, path).await;
        let allow = reply.header("allow").expect("lists the allowed methods").to_owned();
        let methods: Vec<&str> = allow.split(',').map(str::trim).collect();
        assert!(allowed.iter().all(|method| methods.contains(method)), "{path}: {allow}");
        reply.expect_error(405, "request_failed", &[]);
    }
}

#[tokio::test]
async fn a_request_id_that_is_a_uuid_is_kept_and_any_other_replaced() {
    let stack = &stack().await;
    let user = stack.user().await;
    let own = Uuid::new_v4().to_string();
    let kept = user.get("/auth/status").header("x-request-id", &own).await;
    assert_eq!(kept.header("x-request-id"), Some(own.as_str()));
    let refused = stack.anonymous().get("/auth/status").header("x-request-id", &own).await.expect(401);
    assert_eq!(refused.header("x-request-id"), Some(own.as_str()), "failures keep it as well");
    for other in ["", "7", "not-a-uuid", "{0198c5a0-0000-7000-8000-000000000001}"] {
        // The client checks that the returned id is a UUID.
        let replaced = user.get("/auth/status").header("x-request-id", other).await.expect(200);
        assert_ne!(replaced.header("x-request-id"), Some(other));
    }
    let fresh = async || user.get("/auth/status").await.header("x-request-id").map(str::to_owned);
    assert_ne!(fresh().await, fresh().await);
}

#[tokio::test]
async fn checks_come_in_their_order() {
    let stack = &stack().await;
    let anonymous = stack.anonymous();
    let user = stack.user().await;
    let reader = stack.user_with("canvas:read").await;
    let large = " ".repeat(1024 * 1024 + 1);
    // The credential is checked before scope, size, media type, JSON and schema.
    anonymous.post("/canvases").body("text/plain", large.clone()).await.expect_error(401, "unauthorized", &[]);
    // The scope is checked before the size.
    reader.post("/canvases").body("text/plain", large.clone()).await.expect_error(403, "forbidden", &[]);
    // The size is checked before the media type.
    user.post("/canvases").body("text/plain", large).await.expect_error(413, "payload_too_large", &[]);
    // The media type is checked before the JSON.
    user.post("/canvases").body("text/plain", "{").await.expect_error(415, "unsupported_media_type", &[]);
    // The JSON is checked before the schema.
    user.post("/canvases").body("application/json", r#"{"id": 7, "#).await.expect_error(400, "invalid_json", &[]);
    // The schema is checked before the addressed resource.
    let path = "/canvases/absent/operations";
    user.send(path, &json!({"operations": 7})).await.expect(400);
    let good = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [
        {"type": "node.delete", "nodeId": "absent"}
    ]});
    user.send(path, &good).await.expect_error(404, "not_found", &[]);
    // State is checked before meaning: a stale revision hides an unknown node.
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    user.send(&path, &good).await.expect_error(409, "conflict", &[]);
    let mut current = good;
    current["baseRevision"] = canvas["revision"].clone();
    user.send(&path, &current).await.expect_error(422, "unprocessable_entity", &["operations[0].nodeId"]);
}

#[tokio::test]
async fn a_malformed_id_is_400_and_an_unknown_one_404() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let longest = "i".repeat(180);
    let long = "i".repeat(181);
    for (path, field) in [
        ("/canvases/a%20b".to_owned(), "canvasId"),
        (format!("/canvases/{long}"), "canvasId"),
        ("/canvases/node:a".to_owned(), "canvasId"),
        ("/canvases/canvas:a:b:c".to_owned(), "canvasId"),
        ("/canvases/%ff".to_owned(), "canvasId"),
        (format!("/canvases/{id}/nodes/a.b"), "nodeId"),
        (format!("/canvases/{id}/nodes/asset:a"), "nodeId"),
        ("/assets/a.b".to_owned(), "assetId"),
        ("/jobs/7".to_owned(), "jobId"),
        ("/runs/a.b".to_owned(), "runId"),
        ("/assets?canvasId=a.b".to_owned(), "canvasId"),
        (format!("/canvases/{id}?ownerUid=a.b"), "ownerUid"),
    ] {
        user.get(&path).await.expect_error(400, "input_validation_error", &[field]);
    }
    for path in [
        format!("/canvases/{longest}"),
        "/canvases/canvas:somebody:absent".to_owned(),
        "/canvases/canvas%3Asomebody%3Aabsent".to_owned(),
        format!("/canvases/{id}/nodes/absent"),
        format!("/canvases/{id}/nodes/node:absent"),
        "/assets/absent".to_owned(),
        "/assets?canvasId=absent".to_owned(),
        format!("/jobs/{}", Uuid::new_v4()),
        format!("/jobs/job:{}", Uuid::new_v4()),
        format!("/runs/{}", Uuid::new_v4()),
        "/runs/run:absent".to_owned(),
        "/runs/recipe-absent".to_owned(),
        "/actions/absent".to_owned(),
    ] {
        user.get(&path).await.expect_error(404, "not_found", &[]);
    }
}

#[tokio::test]
async fn an_owner_in_a_handle_that_differs_from_owner_uid_is_400() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (handle, uid) = (text(&canvas, "/handle"), &user.uid);
    user.get(&format!("/canvases/{handle}?ownerUid={uid}")).await.ok();
    user.get(&format!("/canvases/{handle}?ownerUid=other")).await.expect(400);
    user.get(&format!("/assets/asset:{uid}:a?ownerUid=other")).await.expect(400);
    user.get(&format!("/assets?canvasId={handle}&ownerUid=other")).await.expect(400);
    user.post(&format!("/assets?canvasId={handle}&ownerUid=other"))
        .body("image/png", images::png(2, 2))
        .await
        .expect(400);
}

#[tokio::test]
async fn unknown_fields_are_named_by_their_path() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    user.send("/canvases", &json!({"colour": "red"})).await.expect_error(400, "input_validation_error", &["colour"]);
    let create =
        json!({"type": "node.create", "node": {"type": "text", "weight": 1, "position": {"x": 0, "y": 0, "z": 0}}});
    let batch = user.batch(text(&canvas, "/id"), text(&canvas, "/revision"), json!([create])).await;
    batch.expect_error(400, "input_validation_error", &["operations[0].node.weight", "operations[0].node.position.z"]);
    let mut run = user.resize_request(text(&canvas, "/id"), "t", "node:n").await;
    run["webhook"] = json!({"url": "https://example.com/", "secret": "s".repeat(32), "retries": 9});
    let refused = user.send("/actions/resize/runs", &run).await;
    refused.expect_error(400, "input_validation_error", &["webhook.retries"]);
}

#[tokio::test]
async fn every_violation_is_listed() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let body = json!({"idempotencyKey": "short", "baseRevision": "", "operations": [
        {"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}, "width": 0, "height": 100_001}},
        {"type": "node.move", "position": {"x": 1, "y": 10_000_001}},
    ]});
    let fields = [
        "idempotencyKey",
        "baseRevision",
        "operations[0].node.width",
        "operations[0].node.height",
        "operations[1].nodeId",
        "operations[1].position.y",
    ];
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    user.send(&path, &body).await.expect_error(400, "input_validation_error", &fields);
    user.get("/canvases?limit=0&cursor=x").await.expect_error(400, "input_validation_error", &["limit", "cursor"]);
}

#[tokio::test]
async fn unknown_query_parameters_are_ignored_and_named_and_known_ones_validated() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let named = user.get("/canvases?colour=red&limit=5&a%2Cb").await.expect(200);
    assert_eq!(named.header("x-canvas-ignored"), Some("colour, a%2Cb"));
    let upload = user.post("/assets?name=x.jpg").body("image/png", images::png(2, 2)).await.expect(201);
    assert_eq!(upload.header("x-canvas-ignored"), Some("name"));
    // The same holds for failures and for responses without a body.
    let refused = user.get("/canvases/absent?deep=true").await.expect(404);
    assert_eq!(refused.header("x-canvas-ignored"), Some("deep"));
    let path = format!("/canvases/{}", text(&canvas, "/id"));
    let tag = user.get(&path).await.header("etag").expect("a tag").to_owned();
    let unchanged = user.get(&format!("{path}?x=1")).header("if-none-match", &tag).await.expect(304);
    assert_eq!(unchanged.header("x-canvas-ignored"), Some("x"));
    for known in ["/canvases?limit=5", "/canvases", &format!("{path}?ownerUid={}", user.uid)] {
        assert_eq!(user.get(known).await.expect(200).header("x-canvas-ignored"), None, "{known}");
    }
    for bad in ["limit=", "limit=five", "limit=1.0", "limit=-1", "limit=%2B5", "limit=5&limit=5"] {
        user.get(&format!("/canvases?{bad}")).await.expect_error(400, "input_validation_error", &["limit"]);
    }
    user.get("/actions?q=%ff").await.expect_error(400, "input_validation_error", &["q"]);
}

#[tokio::test]
async fn a_header_that_is_read_once_is_sent_once() {
    let stack = &stack().await;
    let user = stack.user().await;
    for name in ["Idempotency-Key", "X-Service-File-Name", "X-Canvas-File-Name"] {
        let upload = user.post("/assets").body("image/png", images::png(2, 2));
        let twice = upload.header(name, "key-of-the-upload").header(name, "key-of-the-upload");
        twice.await.expect_error(400, "input_validation_error", &[name]);
    }
    let both = user.post("/assets").body("image/png", images::png(2, 2)).header("x-canvas-file-name", "old.png");
    assert_eq!(both.header("x-service-file-name", "new.png").await.expect(201).json()["asset"]["name"], "new.png");
    let typed = user.post("/assets").body("image/png", images::png(2, 2)).header("content-type", "image/png");
    typed.await.expect_error(400, "input_validation_error", &["Content-Type"]);
    let typed = user.post("/canvases").body("application/json", "{}").header("content-type", "application/json");
    typed.await.expect_error(400, "input_validation_error", &["Content-Type"]);
    let token = format!("Bearer {}", user.token);
    let two = stack.anonymous().get("/auth/status").header("authorization", &token).header("authorization", &token);
    two.await.expect_error(401, "unauthorized", &[]);
    // A request with two request ids is treated like one without.
    let own = Uuid::new_v4().to_string();
    let replaced = user.get("/auth/status").header("x-request-id", &own).header("x-request-id", &own).await.expect(200);
    assert_ne!(replaced.header("x-request-id"), Some(own.as_str()));
    // Lists may be sent in several headers.
    let listed = user.get("/auth/status").header("accept", "text/html").header("accept", "application/json;q=0.1");
    listed.await.expect(200);
}

#[tokio::test]
async fn page_limits_are_kept_and_never_clamped() {
    let stack = &stack().await;
    let user = stack.user().await;
    for (list, default, most) in [
        ("/canvases", 25, 25),
        ("/assets", 50, 200),
        ("/actions", 50, 100),
        ("/elements", 50, 100),
        ("/element-collections", 50, 100),
    ] {
        assert_eq!(user.get(list).await.ok()["page"]["limit"], default, "{list}");
        for limit in [1, most] {
            assert_eq!(user.get(&format!("{list}?limit={limit}")).await.ok()["page"]["limit"], limit);
        }
        for limit in [0, most + 1, 4_294_967_296u64] {
            let refused = user.get(&format!("{list}?limit={limit}")).await;
            refused.expect_error(400, "input_validation_error", &["limit"]);
        }
    }
}

#[tokio::test]
async fn a_cursor_is_good_for_its_own_list_alone() {
    let stack = &stack().await;
    let (user, other) = (stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    for who in [&user, &other] {
        for _ in 0..2 {
            who.make_canvas().await;
            who.upload("image/png", images::png(2, 2)).await;
        }
    }
    for _ in 0..2 {
        user.upload_into(text(&canvas, "/id"), "image/png", images::png(2, 2)).await;
    }
    let page = user.get("/canvases?limit=1").await.ok();
    assert_eq!(page["page"]["hasMore"], true);
    let cursor = text(&page, "/page/nextCursor").to_owned();
    user.get(&format!("/canvases?limit=1&cursor={cursor}")).await.ok();
    let refused = |reply: e2e::Reply| reply.expect_error(400, "input_validation_error", &["cursor"]);
    // Another account, another endpoint and other filters.
    refused(other.get(&format!("/canvases?cursor={cursor}")).await);
    refused(user.get(&format!("/assets?cursor={cursor}")).await);
    refused(user.get(&format!("/actions?cursor={cursor}")).await);
    let own = user.get("/assets?limit=1").await.ok();
    let path = format!("/assets?canvasId={}&cursor={}", text(&canvas, "/id"), text(&own, "/page/nextCursor"));
    refused(user.get(&path).await);
    let actions = user.get("/actions?limit=1&q=image").await.ok();
    if let Some(cursor) = actions["page"]["nextCursor"].as_str() {
        refused(user.get(&format!("/actions?limit=1&cursor={cursor}")).await);
    }
    // Modified at any position, truncated, invented or too long.
    for index in [0, cursor.len() / 2, cursor.len() - 1] {
        let mut bytes = cursor.clone().into_bytes();
        bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
        let tampered = String::from_utf8(bytes).expect("ASCII");
        refused(user.get(&format!("/canvases?cursor={tampered}")).await);
    }
    refused(user.get(&format!("/canvases?cursor={}", &cursor[1..])).await);
    refused(user.get("/canvases?cursor=").await);
    refused(user.get("/canvases?cursor=MTA").await);
    refused(user.get(&format!("/canvases?cursor={}", "a".repeat(8193))).await);
}

#[tokio::test]
async fn a_list_can_be_walked_with_changing_limits() {
    let stack = &stack().await;
    let user = stack.user().await;
    let mut made = Vec::new();
    for _ in 0..7 {
        made.push(text(&user.make_canvas().await, "/handle").to_owned());
    }
    let (mut walked, mut cursor) = (Vec::new(), None::<String>);
    for limit in [2, 3, 1, 25] {
        let cursor_part = cursor.take().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let page = user.get(&format!("/canvases?limit={limit}{cursor_part}")).await.ok();
        let items = page["canvases"].as_array().expect("a list");
        walked.extend(items.iter().map(|item| text(item, "/handle").to_owned()));
        match page["page"]["nextCursor"].as_str() {
            Some(next) => {
                assert_eq!((&page["page"]["hasMore"], items.len()), (&json!(true), limit));
                cursor = Some(next.to_owned());
            }
            None => assert_eq!((&page["page"]["hasMore"], limit), (&json!(false), 25)),
        }
    }
    made.sort();
    walked.sort();
    assert_eq!(walked, made, "each once");
}

#[tokio::test]
async fn long_answers_are_compressed_and_images_never() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}", text(&canvas, "/id"));
    for (accepted, coding) in [
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip;q=0.1, zstd", "zstd"),
        ("gzip, identity;q=0", "gzip"),
        ("gzip;q=1.0, identity;q=0.5, *;q=0", "gzip"),
        ("identity;q=0, *;q=0.5, zstd;q=0, br;q=0", "gzip"),
    ] {
        let long = user.get("/actions").header("accept-encoding", accepted).await.expect(200);
        assert_eq!(long.header("content-encoding"), Some(coding), "{accepted}");
        let mut varies = long.headers.get_all("vary").iter().filter_map(|value| value.to_str().ok());
        assert!(varies.any(|vary| vary.to_ascii_lowercase().contains("accept-encoding")));
    }
    for refused in ["identity;q=0", "*;q=0", "identity;Q=0", "*;Q=0.0", "identity;q=0, *;q=0", "lzma, identity;q=0"] {
        let plain = user.get("/actions").header("accept-encoding", refused).await.expect(200);
        assert_eq!(
            plain.header("content-encoding"),
            None,
            "{refused}: the plain form is served when no other is acceptable"
        );
    }
    let short = user.get("/auth/status").header("accept-encoding", "gzip").await.expect(200);
    assert_eq!(short.header("content-encoding"), None, "at most 1 KiB");
    let plain = user.get(&path).await.expect(200);
    assert_eq!(plain.header("content-encoding"), None, "no coding was accepted");
    let asset = user.upload("image/png", images::png(200, 200)).await;
    let image = stack.anonymous().get(text(&asset, "/previewUrl")).header("accept-encoding", "gzip, br, zstd").await;
    assert_eq!(image.expect(200).header("content-encoding"), None);
}

#[tokio::test]
async fn cors_is_open_for_the_configured_origins_alone() {
    let stack = &stack().await;
    let user = stack.user().await;
    let preflight = async |origin: &str| {
        let call = stack.anonymous().call(Method::OPTIONS, "/canvases").header("origin", origin);
        let call = call.header("access-control-request-method", "POST");
        call.header("access-control-request-headers", "authorization,content-type")
            .attempt()
            .await
            .expect("is answered")
    };
    let open = preflight(ORIGIN).await;
    assert!(open.status < 300, "{open}");
    assert_eq!(open.header("access-control-allow-origin"), Some(ORIGIN));
    let allowed = open.header("access-control-allow-headers").expect("headers are named").to_ascii_lowercase();
    assert!(["authorization", "content-type"].iter().all(|name| allowed.contains(name)), "{allowed}");
    assert_eq!(preflight("https://evil.example.com").await.header("access-control-allow-origin"), None);
    // The console has none (docs/reference/console.md).
    for path in ["/console/session", "/console/api/canvas-agent/v1/canvases"] {
        for method in [Method::OPTIONS, Method::GET] {
            let is_preflight = method == Method::OPTIONS;
            let call = stack.anonymous().call(method, path).header("origin", ORIGIN);
            let call = call.header("access-control-request-method", "POST");
            let reply =
                call.header("access-control-request-headers", "content-type").attempt().await.expect("is answered");
            assert!(!is_preflight || reply.status == 405, "{reply}");
            let is_cors = |name: &reqwest::header::HeaderName| name.as_str().starts_with("access-control-");
            assert!(!reply.headers.keys().any(is_cors), "{path}: {:?}", reply.headers);
        }
    }

    let actual = user.get("/auth/status").header("origin", ORIGIN).await.expect(200);
    assert_eq!(actual.header("access-control-allow-origin"), Some(ORIGIN));
    let rejecting = user.get("/auth/status").header("origin", ORIGIN).header("accept", "application/json;q=0");
    assert_eq!(rejecting.await.expect(406).header("access-control-allow-origin"), Some(ORIGIN));
    let exposed = actual.header("access-control-expose-headers").expect("headers are exposed").to_ascii_lowercase();
    for name in [
        "etag",
        "location",
        "retry-after",
        "x-request-id",
        "ratelimit-limit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-canvas-ignored",
    ] {
        assert!(exposed.contains(name), "{name}: {exposed}");
    }
    let refused = stack.anonymous().get("/auth/status").header("origin", ORIGIN).await.expect(401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(ORIGIN), "a browser can read failures");
}

#[tokio::test]
async fn a_surface_header_changes_nothing() {
    let stack = &stack().await;
    let user = stack.user().await;
    for surface in ["api", "cli", "tool", "browser", "spaceship", ""] {
        let body = json!({});
        let made = user.send("/canvases", &body).header("x-service-agent-surface", surface).await.expect(201).json();
        assert_eq!(made["activity"][0]["actor"]["surface"], "api", "the token's surface counts: {surface}");
    }
}

#[tokio::test]
async fn successful_answers_are_private_and_not_stored() {
    let stack = &stack().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    for path in ["/auth/status", "/canvases", "/assets", "/actions", "/actions/resize"] {
        assert_eq!(user.get(path).await.expect(200).header("cache-control"), Some("private, no-store"), "{path}");
    }
    let made = user.send("/canvases", &Value::Object(Default::default())).await.expect(201);
    assert_eq!(made.header("cache-control"), Some("private, no-store"));
    let operations = json!([{"type": "node.create", "node": {"type": "text"}}]);
    let applied = user.batch(id, text(&canvas, "/revision"), operations).await.expect(200);
    assert_eq!(applied.header("cache-control"), Some("private, no-store"));
}
