//! JSON bodies of requests (docs/reference/conventions.md#json-bodies).

use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_json_body_must_be_declared_as_json() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for good in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        user.post("/canvases").body(good, "{}").await.expect(201);
    }
    for bad in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", "text/json"] {
        user.post("/canvases").body(bad, "{}").await.expect_error(415, "unsupported_media_type", &[]);
    }
    user.post("/canvases").untyped("{}").await.expect_error(415, "unsupported_media_type", &[]);
    // For this one route, an omitted body counts as an empty object (docs/reference/conventions.md#empty-bodies).
    user.post("/canvases").await.expect(201);
    user.post("/canvases").body("application/json", "").await.expect(201);
    user.post("/canvases").body("text/plain", "").await.expect_error(415, "unsupported_media_type", &[]);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_invalid_json() {
    let stack = &Stack::without_workers().await;
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

#[tokio::test]
async fn a_whole_number_may_be_written_as_one_with_a_fraction() {
    let stack = &Stack::without_workers().await;
    // JSON Schema, and therefore the contract document, does not distinguish the two. A query does (below).
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

#[tokio::test]
async fn nesting_is_limited_to_64_levels() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    // `custom` is nested in the body, operations, the operation, node and metadata: five levels.
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

#[tokio::test]
async fn a_nul_is_refused_wherever_it_stands() {
    let stack = &Stack::without_workers().await;
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
    // Control characters are removed from file names (docs/reference/assets.md#file-names).
    let asset = upload.body("image/png", images::png(2, 2)).await.expect(201).json();
    assert_eq!(asset["asset"]["name"], "ab.png");
}

#[tokio::test]
async fn a_json_body_has_at_most_a_mebibyte() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let body = |bytes: usize| format!("{{{}}}", " ".repeat(bytes - 2));
    for (bytes, status) in [(1024 * 1024 - 1, 201), (1024 * 1024, 201), (1024 * 1024 + 1, 413)] {
        user.post("/canvases").body("application/json", body(bytes)).await.expect(status);
        user.post("/canvases").chunked("application/json", body(bytes).into_bytes()).await.expect(status);
    }
}

#[tokio::test]
async fn a_batch_has_at_most_16_mebibytes() {
    let stack = &Stack::without_workers().await;
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

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    for (path, media_type, limit) in [
        ("/canvases", "application/json", 1024 * 1024),
        ("/canvases/absent/operations", "application/json", 16 * 1024 * 1024),
        ("/assets", "image/png", 52_428_800),
        ("/assets", "video/mp4", 524_288_000),
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

#[tokio::test]
async fn slow_bodies_of_one_account_do_not_delay_another() {
    let stack = &Stack::without_workers().await;
    const MIB: usize = 1024 * 1024;
    let (slow, user) = (stack.user().await, stack.user().await);
    let mut connections = Vec::new();
    for place in 0..10 {
        let mut connection = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
        let head = format!(
            "POST {}/canvases/nope/operations HTTP/1.1\r\nhost: e2e\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            e2e::API_ROOT,
            slow.token,
            16 * MIB
        );
        connection.write_all(head.as_bytes()).await.expect("sends a head");
        // Three of them hold almost all that the account may hold.
        let part = if place < 3 { 10 * MIB } else { 1024 };
        connection.write_all(&vec![b' '; part]).await.expect("sends a part");
        connections.push(connection);
    }
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let batch = json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "operations": [
        {"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}
    ]})
    .to_string();
    for bytes in [1024, 16 * MIB] {
        let began = std::time::Instant::now();
        let body = format!("{batch}{}", " ".repeat(bytes - batch.len()));
        user.post(&path).body("application/json", body).await.ok();
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    }
}

/// A connection on which a request with a body was begun: its head, and `part` bytes of the body.
async fn begun(stack: &Stack, head: &str, part: usize) -> tokio::net::TcpStream {
    let mut connection = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
    connection.write_all(head.as_bytes()).await.expect("sends a head");
    connection.write_all(&vec![b' '; part]).await.expect("sends a part");
    connection
}

/// The status of the response on a connection.
async fn status_on(connection: &mut tokio::net::TcpStream) -> String {
    let mut status = [0; 12];
    let read = tokio::time::timeout(e2e::PATIENCE, connection.read_exact(&mut status)).await;
    read.expect("is answered").expect("reads");
    String::from_utf8_lossy(&status).into_owned()
}

#[tokio::test]
async fn without_a_credential_a_body_is_neither_received_nor_large() {
    let stack = &Stack::without_workers().await;
    let origin = stack.origin(0);
    let sign_in = |framing: &str| {
        format!(
            "POST /console/session HTTP/1.1\r\nhost: e2e\r\norigin: {origin}\r\nx-canvas-console: 1\r\n\
             content-type: application/json\r\n{framing}\r\n\r\n"
        )
    };
    let mut announced = begun(stack, &sign_in("content-length: 1048576"), 0).await;
    assert_eq!(status_on(&mut announced).await, "HTTP/1.1 413");
    let mut chunked = begun(stack, &sign_in("transfer-encoding: chunked"), 0).await;
    chunked.write_all(format!("1001\r\n{}", " ".repeat(4097)).as_bytes()).await.expect("sends a chunk");
    assert_eq!(status_on(&mut chunked).await, "HTTP/1.1 413");
    // A route that needs a credential answers before the first byte of the body.
    let head = format!("POST {}/canvases HTTP/1.1\r\nhost: e2e\r\ncontent-length: 1000000\r\n\r\n", e2e::API_ROOT);
    assert_eq!(status_on(&mut begun(stack, &head, 0).await).await, "HTTP/1.1 401");
}

#[tokio::test]
async fn a_body_slower_than_its_minimum_rate_is_ended() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let head = format!(
        "POST {}/canvases HTTP/1.1\r\nhost: e2e\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 500000\r\n\r\n",
        e2e::API_ROOT,
        user.token
    );
    let mut connection = begun(stack, &head, 20 * 1024).await;
    let began = std::time::Instant::now();
    let (mut reading, mut writing) = connection.split();
    let mut status = [0; 12];
    let answered = async { reading.read_exact(&mut status).await.expect("is answered") };
    let sends = async {
        // Two KiB a second, which was fast enough for a body of any size.
        while writing.write_all(&[b' '; 1024]).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = answered => {}
        () = sends => {}
        () = tokio::time::sleep(e2e::PATIENCE) => panic!("not ended"),
    }
    assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 400");
    assert!(began.elapsed() >= std::time::Duration::from_secs(9), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_body_whose_parsed_form_exceeds_the_part_of_an_account_is_refused() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let objects = |count: usize| format!("[{}]", vec![r#"{"":0}"#; count].join(","));
    let send = async |count: usize| user.post("/canvases").body("application/json", objects(count)).await;
    send(75_000).await.expect_error(400, "input_validation_error", &[""]);
    send(149_000).await.expect_error(413, "payload_too_large", &[]);
}

#[tokio::test]
async fn an_account_has_64_requests_in_progress_and_others_do_not_wait_for_them() {
    let stack = &Stack::without_workers().await;
    let (busy, other) = (stack.user().await, stack.user().await);
    let head = format!(
        "POST {}/canvases HTTP/1.1\r\nhost: e2e\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 1000000\r\n\r\n",
        e2e::API_ROOT,
        busy.token
    );
    let mut slow = tokio::task::JoinSet::new();
    let mut begin = async |requests: usize| {
        for _ in 0..requests {
            let mut connection = begun(stack, &head, 1).await;
            // Fast enough, for half a minute.
            slow.spawn(async move {
                while connection.write_all(&[b' '; 20 * 1024]).await.is_ok() {
                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                }
            });
        }
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    begin(63).await;
    let began = std::time::Instant::now();
    busy.get("/auth/status").await.ok();
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    begin(1).await;
    let began = std::time::Instant::now();
    other.get("/auth/status").await.ok();
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
    // One more of the account waits until one of the others ends.
    let mut waiting = std::pin::pin!(busy.get("/auth/status").into_future());
    let waited = tokio::time::timeout(std::time::Duration::from_secs(1), waiting.as_mut()).await;
    assert!(waited.is_err(), "is answered at once");
    slow.shutdown().await;
    tokio::time::timeout(e2e::PATIENCE, waiting).await.expect("is answered").ok();
}
