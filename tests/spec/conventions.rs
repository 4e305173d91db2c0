//! Conventions (decisions 1.1 to 1.9, 1.13).

use e2e::api::{key, text};
use e2e::{Stack, pictures, suite};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use uuid::Uuid;

const ORIGIN: &str = "https://app.example.com";

suite! {
    conventions on Stack::builder().env("CANVAS_CORS_ORIGINS", ORIGIN);
    an_unknown_path_is_404_whoever_asks,
    a_wrong_method_is_405_and_says_which_are_allowed,
    a_request_id_that_is_a_uuid_is_kept_and_any_other_replaced,
    checks_come_in_the_order_of_1_2,
    a_malformed_id_is_400_and_an_unknown_one_404,
    an_owner_in_a_handle_that_differs_from_owner_uid_is_400,
    unknown_fields_are_named_by_their_path,
    every_violation_is_listed,
    a_json_body_must_be_declared_as_json,
    a_body_that_is_no_json_is_invalid_json,
    a_whole_number_may_be_written_as_one_with_a_fraction,
    nesting_is_limited_to_64_levels,
    a_nul_is_refused_wherever_it_stands,
    a_json_body_has_at_most_a_mebibyte,
    a_batch_has_at_most_16_mebibytes,
    a_declared_length_over_the_limit_is_refused_before_the_body,
    unknown_query_parameters_are_ignored_and_known_ones_validated,
    page_limits_are_kept_and_never_clamped,
    a_cursor_is_good_for_its_own_list_alone,
    a_list_can_be_walked_with_changing_limits,
    long_answers_are_compressed_and_pictures_never,
    cors_is_open_for_the_configured_origins_alone,
    a_surface_header_changes_nothing,
    successful_answers_are_private_and_not_stored,
}

async fn an_unknown_path_is_404_whoever_asks(stack: &Stack) {
    let user = stack.user().await;
    for path in ["/nowhere", "/canvases/a/nowhere", "/canvas", "/canvases/", "/api/canvas-agent/v2/canvases", "/api"] {
        stack.anonymous().get(path).await.expect_error(404, "not_found", &[]);
        user.get(path).await.expect_error(404, "not_found", &[]);
        user.post(path).await.expect_error(404, "not_found", &[]);
    }
}

async fn a_wrong_method_is_405_and_says_which_are_allowed(stack: &Stack) {
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
        let allow = reply.header("allow").expect("says what is allowed").to_owned();
        let methods: Vec<&str> = allow.split(',').map(str::trim).collect();
        assert!(allowed.iter().all(|method| methods.contains(method)), "{path}: {allow}");
        reply.expect_error(405, "request_failed", &[]);
    }
}

async fn a_request_id_that_is_a_uuid_is_kept_and_any_other_replaced(stack: &Stack) {
    let user = stack.user().await;
    let own = Uuid::new_v4().to_string();
    let kept = user.get("/auth/status").header("x-request-id", &own).await;
    assert_eq!(kept.header("x-request-id"), Some(own.as_str()));
    let refused = stack.anonymous().get("/auth/status").header("x-request-id", &own).await.expect(401);
    assert_eq!(refused.header("x-request-id"), Some(own.as_str()), "failures keep it, too");
    for other in ["", "7", "not-a-uuid", "{0198c5a0-0000-7000-8000-000000000001}"] {
        // The client checks that what comes is a UUID.
        let replaced = user.get("/auth/status").header("x-request-id", other).await.expect(200);
        assert_ne!(replaced.header("x-request-id"), Some(other));
    }
    let fresh = async || user.get("/auth/status").await.header("x-request-id").map(str::to_owned);
    assert_ne!(fresh().await, fresh().await);
}

async fn checks_come_in_the_order_of_1_2(stack: &Stack) {
    let anonymous = stack.anonymous();
    let user = stack.user().await;
    let reader = stack.user_with("canvas:read").await;
    let large = " ".repeat(1024 * 1024 + 1);
    // Credential before scope, size, type, JSON and shape.
    anonymous.post("/canvases").body("text/plain", large.clone()).await.expect_error(401, "unauthorized", &[]);
    // Scope before size.
    reader.post("/canvases").body("text/plain", large.clone()).await.expect_error(403, "forbidden", &[]);
    // Size before type.
    user.post("/canvases").body("text/plain", large).await.expect_error(413, "payload_too_large", &[]);
    // Type before JSON.
    user.post("/canvases").body("text/plain", "{").await.expect_error(415, "unsupported_media_type", &[]);
    // JSON before shape.
    user.post("/canvases").body("application/json", r#"{"id": 7, "#).await.expect_error(400, "invalid_json", &[]);
    // Shape before the addressed resource.
    let path = "/canvases/absent/operations";
    user.send(path, &json!({"operations": 7})).await.expect(400);
    let good = json!({"baseRevision": "r", "idempotencyKey": key(), "operations": [
        {"type": "node.delete", "nodeId": "absent"}
    ]});
    user.send(path, &good).await.expect_error(404, "not_found", &[]);
    // State before meaning: a stale revision hides an unknown node.
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    user.send(&path, &good).await.expect_error(409, "conflict", &[]);
    let mut current = good;
    current["baseRevision"] = canvas["revision"].clone();
    user.send(&path, &current).await.expect_error(422, "unprocessable_entity", &["operations[0].nodeId"]);
}

async fn a_malformed_id_is_400_and_an_unknown_one_404(stack: &Stack) {
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

async fn an_owner_in_a_handle_that_differs_from_owner_uid_is_400(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let (handle, uid) = (text(&canvas, "/handle"), &user.uid);
    user.get(&format!("/canvases/{handle}?ownerUid={uid}")).await.ok();
    user.get(&format!("/canvases/{handle}?ownerUid=other")).await.expect(400);
    user.get(&format!("/assets/asset:{uid}:a?ownerUid=other")).await.expect(400);
    user.get(&format!("/assets?canvasId={handle}&ownerUid=other")).await.expect(400);
    user.post(&format!("/assets?canvasId={handle}&ownerUid=other"))
        .body("image/png", pictures::png(2, 2))
        .await
        .expect(400);
}

async fn unknown_fields_are_named_by_their_path(stack: &Stack) {
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

async fn every_violation_is_listed(stack: &Stack) {
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

async fn a_json_body_must_be_declared_as_json(stack: &Stack) {
    let user = stack.user().await;
    for good in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        user.post("/canvases").body(good, "{}").await.expect(201);
    }
    for bad in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", "text/json"] {
        user.post("/canvases").body(bad, "{}").await.expect_error(415, "unsupported_media_type", &[]);
    }
    user.post("/canvases").untyped("{}").await.expect_error(415, "unsupported_media_type", &[]);
    // Decisions 3.8: for this one route no body at all counts as an empty object.
    user.post("/canvases").await.expect(201);
}

async fn a_body_that_is_no_json_is_invalid_json(stack: &Stack) {
    let user = stack.user().await;
    let bytes: [&[u8]; 7] = [b"{", b"{} {}", b"nul", b"{'a': 1}", b"\xff", b"{\"a\": NaN}", b"[1,]"];
    for bad in bytes {
        user.post("/canvases").body("application/json", bad.to_vec()).await.expect_error(400, "invalid_json", &[]);
    }
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    user.post(&path).body("application/json", "").await.expect_error(400, "invalid_json", &[]);
    user.send("/canvases", &json!([])).await.expect(400);
}

async fn a_whole_number_may_be_written_as_one_with_a_fraction(stack: &Stack) {
    // JSON Schema, by which the contract document speaks, makes no difference; a query does (below).
    let user = stack.user().await;
    let video = |seconds: &str| {
        let body = format!(
            r#"{{"model": "absent", "prompt": "p", "idempotencyKey": "12345678", "durationSeconds": {seconds}}}"#
        );
        user.post("/videos/generate").body("application/json", body)
    };
    video("5.0").await.expect_error(422, "unprocessable_entity", &["model"]);
    for wrong in ["5.5", "0.0", "1e30"] {
        video(wrong).await.expect_error(400, "input_validation_error", &["durationSeconds"]);
    }
}

async fn nesting_is_limited_to_64_levels(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    // Above `custom` are the body, operations, the operation, node and metadata: five levels.
    let body = |levels: usize| {
        let custom = (0..levels - 6).fold(json!({}), |inner, _| json!({ "a": inner }));
        let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"custom": custom}});
        json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [
            {"type": "node.create", "node": node}
        ]})
    };
    user.send(&path, &body(65)).await.expect_error(400, "invalid_json", &[]);
    user.send(&path, &body(64)).await.ok();
    let deep = "[".repeat(100_000);
    user.post(&path).body("application/json", deep).await.expect_error(400, "invalid_json", &[]);
}

async fn a_nul_is_refused_wherever_it_stands(stack: &Stack) {
    let user = stack.user().await;
    user.send("/canvases", &json!({"title": "a\0b"})).await.expect_error(400, "input_validation_error", &["title"]);
    let canvas = user.make_canvas().await;
    let (id, revision) = (text(&canvas, "/id"), text(&canvas, "/revision"));
    for metadata in [json!({"content": "\0"}), json!({"custom": {"deep": ["\0"]}}), json!({"custom": {"a\0": 1}})] {
        let node = json!({"type": "text", "metadata": metadata});
        user.batch(id, revision, json!([{"type": "node.create", "node": node}])).await.expect(400);
    }
    user.get("/actions?q=%00").await.expect_error(400, "input_validation_error", &["q"]);
    user.get("/canvases/a%00b").await.expect(400);
    let upload = user.post("/assets").header("x-service-file-name", "a%00b.png");
    // Control characters are stripped from file names (6.3).
    let asset = upload.body("image/png", pictures::png(2, 2)).await.expect(201).json();
    assert_eq!(asset["asset"]["name"], "ab.png");
}

async fn a_json_body_has_at_most_a_mebibyte(stack: &Stack) {
    let user = stack.user().await;
    let body = |bytes: usize| format!("{{{}}}", " ".repeat(bytes - 2));
    for (bytes, status) in [(1024 * 1024 - 1, 201), (1024 * 1024, 201), (1024 * 1024 + 1, 413)] {
        user.post("/canvases").body("application/json", body(bytes)).await.expect(status);
        user.post("/canvases").chunked("application/json", body(bytes).into_bytes()).await.expect(status);
    }
}

async fn a_batch_has_at_most_16_mebibytes(stack: &Stack) {
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [
        {"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}
    ]})
    .to_string();
    let body = |bytes: usize| format!("{batch}{}", " ".repeat(bytes - batch.len()));
    user.post(&path).body("application/json", body(16 * 1024 * 1024)).await.ok();
    let over = user.post(&path).body("application/json", body(16 * 1024 * 1024 + 1)).await;
    over.expect_error(413, "payload_too_large", &[]);
}

async fn a_declared_length_over_the_limit_is_refused_before_the_body(stack: &Stack) {
    let user = stack.user().await;
    for (path, media_type, limit) in [
        ("/canvases", "application/json", 1024 * 1024),
        ("/canvases/absent/operations", "application/json", 16 * 1024 * 1024),
        ("/assets", "image/png", 52_428_800),
    ] {
        let mut connection = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nhost: e2e\r\nauthorization: Bearer {}\r\ncontent-type: {media_type}\r\n\
             content-length: {}\r\n\r\n",
            e2e::API_ROOT,
            user.token,
            limit + 1
        );
        connection.write_all(head.as_bytes()).await.expect("sends a head and no body");
        let mut answer = [0; 12];
        let read = tokio::time::timeout(e2e::PATIENCE, connection.read_exact(&mut answer)).await;
        read.expect("is answered without a body").expect("reads");
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413", "{path}");
    }
}

async fn unknown_query_parameters_are_ignored_and_known_ones_validated(stack: &Stack) {
    let user = stack.user().await;
    user.get("/canvases?colour=red&limit=5").await.ok();
    for bad in ["limit=", "limit=five", "limit=1.0", "limit=-1", "limit=%2B5", "limit=5&limit=5"] {
        user.get(&format!("/canvases?{bad}")).await.expect_error(400, "input_validation_error", &["limit"]);
    }
    user.get("/actions?q=%ff").await.expect_error(400, "input_validation_error", &["q"]);
}

async fn page_limits_are_kept_and_never_clamped(stack: &Stack) {
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

async fn a_cursor_is_good_for_its_own_list_alone(stack: &Stack) {
    let (user, other) = (stack.user().await, stack.user().await);
    let canvas = user.make_canvas().await;
    for who in [&user, &other] {
        for _ in 0..2 {
            who.make_canvas().await;
            who.upload("image/png", pictures::png(2, 2)).await;
        }
    }
    for _ in 0..2 {
        user.upload_into(text(&canvas, "/id"), "image/png", pictures::png(2, 2)).await;
    }
    let page = user.get("/canvases?limit=1").await.ok();
    assert_eq!(page["page"]["hasMore"], true);
    let cursor = text(&page, "/page/nextCursor").to_owned();
    user.get(&format!("/canvases?limit=1&cursor={cursor}")).await.ok();
    let refused = |reply: e2e::Reply| reply.expect_error(400, "input_validation_error", &["cursor"]);
    // Another account, another endpoint, other filters.
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
    // Tampered with in any place, shortened, invented, too long.
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

async fn a_list_can_be_walked_with_changing_limits(stack: &Stack) {
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

async fn long_answers_are_compressed_and_pictures_never(stack: &Stack) {
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
            "{refused}: the plain form is served when there is no other"
        );
    }
    let short = user.get("/auth/status").header("accept-encoding", "gzip").await.expect(200);
    assert_eq!(short.header("content-encoding"), None, "at most 1 KiB");
    let plain = user.get(&path).await.expect(200);
    assert_eq!(plain.header("content-encoding"), None, "nothing was accepted");
    let asset = user.upload("image/png", pictures::png(200, 200)).await;
    let picture = stack.anonymous().get(text(&asset, "/previewUrl")).header("accept-encoding", "gzip, br, zstd").await;
    assert_eq!(picture.expect(200).header("content-encoding"), None);
}

async fn cors_is_open_for_the_configured_origins_alone(stack: &Stack) {
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

    let actual = user.get("/auth/status").header("origin", ORIGIN).await.expect(200);
    assert_eq!(actual.header("access-control-allow-origin"), Some(ORIGIN));
    let exposed = actual.header("access-control-expose-headers").expect("headers are exposed").to_ascii_lowercase();
    for name in
        ["etag", "location", "retry-after", "x-request-id", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
    {
        assert!(exposed.contains(name), "{name}: {exposed}");
    }
    let refused = stack.anonymous().get("/auth/status").header("origin", ORIGIN).await.expect(401);
    assert_eq!(refused.header("access-control-allow-origin"), Some(ORIGIN), "a browser can read failures");
}

async fn a_surface_header_changes_nothing(stack: &Stack) {
    let user = stack.user().await;
    for surface in ["api", "cli", "tool", "browser", "spaceship", ""] {
        let body = json!({});
        let made = user.send("/canvases", &body).header("x-service-agent-surface", surface).await.expect(201).json();
        assert_eq!(made["activity"][0]["actor"]["surface"], "api", "the token's surface counts: {surface}");
    }
}

async fn successful_answers_are_private_and_not_stored(stack: &Stack) {
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
