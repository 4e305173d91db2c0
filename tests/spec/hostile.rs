//! Thousands of invalid requests (docs/reliability.md#r12-raw-fuzzing): malformed HTTP, malformed JSON, and valid JSON with an
//! unexpected value. None of them may make the gateway panic or return a 5xx, and every error must be an error envelope.
//!
//! `FUZZ_REQUESTS` (default 4000) sets their number and `FAULT_SEED` repeats a run. `tests/fuzz` tests single functions likewise.

use std::time::Duration;

use e2e::api::{key, text};
use e2e::{API_ROOT, Chance, Part, Stack, images};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

/// Concurrent senders.
const SENDERS: usize = 8;
/// The longest wait for a response: longer than the gateway waits for a body that does not arrive.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// How long most senders wait before they close the connection.
const PAUSE: Duration = Duration::from_millis(400);
/// The error codes of the contract (docs/reference/errors.md#codes).
const CODES: [&str; 17] = [
    "input_validation_error",
    "invalid_json",
    "unauthorized",
    "payment_required",
    "forbidden",
    "not_found",
    "conflict",
    "gone",
    "payload_too_large",
    "unsupported_media_type",
    "unprocessable_entity",
    "rate_limited",
    "internal_error",
    "upstream_error",
    "service_unavailable",
    "upstream_timeout",
    "request_failed",
];

/// A request as a client would send it.
#[derive(Clone)]
struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn json(method: &'static str, path: &str, body: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { method, path: format!("{API_ROOT}{path}"), headers, body: body.to_string().into_bytes() }
    }

    fn plain(method: &'static str, path: &str) -> Self {
        Self { method, path: format!("{API_ROOT}{path}"), headers: Vec::new(), body: Vec::new() }
    }

    fn bytes(&self, token: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: e2e\r\nconnection: close\r\n", self.method, self.path);
        head += &format!("authorization: Bearer {token}\r\n");
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if self.method != "GET" {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// Valid requests to mutate.
async fn good(user: &e2e::User) -> Vec<Request> {
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(16, 16)).await;
    let start = json!({"canvasId": id, "baseRevision": canvas["revision"], "idempotencyKey": key()});
    let with = |more: Value| {
        let mut body = start.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        body
    };
    let place = json!({"x": 0, "y": 0});
    let operations = json!([
        {"type": "node.create", "clientId": "a", "node": {"type": "text", "title": "t", "position": place,
            "width": 10.5, "metadata": {"content": "c", "tags": ["x"], "custom": {"deep": [1, {"a": null}]}, "zIndex": 3}}},
        {"type": "node.create", "clientId": "b", "node": {"type": "sticky", "position": place}},
        {"type": "connection.create", "fromNodeId": "a", "toNodeId": "b", "purpose": "reference", "role": "style"},
        {"type": "node.update", "nodeId": "a", "patch": {"title": "u", "metadata": {"prompt": null}}},
    ]);
    let batch =
        json!({"baseRevision": canvas["revision"], "idempotencyKey": key(), "force": true, "operations": operations});
    let webhook = json!({"url": "https://example.com/hook", "secret": "s".repeat(32)});
    let image = with(json!({"targetNodeId": asset["node"], "prompt": "p", "references": [asset["handle"],
        {"handle": asset["node"], "role": "style"}], "elements": ["element:e@v1"], "count": 1, "webhook": webhook}));
    let workflow = json!({"name": "w", "idempotencyKey": key(), "x": 1.5,
        "inputs": [{"key": "a", "label": "A", "type": "text", "useAsDefault": true, "value": "v"}],
        "outputs": [{"key": "b", "label": "B", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}]});
    let action =
        with(json!({"targetNodeId": "t", "inputs": [asset["handle"]], "params": {"width": 5, "fit": "cover"}}));
    let mut requests = vec![
        Request::json("POST", "/canvases", &json!({"title": "t", "canvasType": "agent"})),
        Request::json("POST", &format!("/canvases/{id}/operations"), &batch),
        Request::json("POST", &format!("/canvases/{id}/workflows"), &workflow),
        Request::json("POST", "/actions/resize/runs", &action),
        Request::json("POST", "/images/generate", &image),
        Request::json("POST", "/images/edit", &image),
        Request::json(
            "POST",
            "/videos/generate",
            &json!({"model": "animatic", "prompt": "p", "idempotencyKey": key(),
            "firstFrame": asset["handle"], "references": [], "durationSeconds": 5, "canvasId": id}),
        ),
        Request::json(
            "POST",
            "/elements",
            &json!({"name": "n", "type": "style", "sourceAssetIds": [asset["id"]],
            "guidelines": "g", "collectionIds": []}),
        ),
        Request::json("POST", "/element-collections", &json!({"name": "n"})),
        Request::json("POST", "/recipes/storyboard/fork", &with(json!({"x": 0, "y": 0}))),
        Request::json("POST", "/recipes/storyboard/runs", &with(json!({"inputs": {"brief": "b"}}))),
        Request::json(
            "POST",
            "/images/import",
            &json!({"canvasId": "absent", "imageUrl": "https://example.com/a.png",
            "idempotencyKey": key()}),
        ),
        Request::json(
            "POST",
            "/product-references/import",
            &json!({"canvasId": "absent", "idempotencyKey": key(),
            "productPageUrl": "https://example.com/a", "variantSelector": "a=b"}),
        ),
        Request::json("POST", "/campaigns/plan", &json!({"canvasId": id, "brief": "b", "shotCount": 2})),
    ];
    let read = |path: String| Request::plain("GET", &path);
    requests.extend([
        read("/canvases?limit=5".into()),
        read(format!("/canvases/{id}?ownerUid={}", user.uid)),
        read(format!("/canvases/{id}/changes?since={}", text(&canvas, "/revision"))),
        read(format!("/canvases/{id}/outline")),
        read(format!("/assets?canvasId={id}&limit=200")),
        read(format!("/assets/preview?token={}", "a".repeat(80))),
        read("/elements?state=active&search=a".into()),
        read("/models?provider=managed&q=s".into()),
        read(format!("/jobs/{}", Uuid::new_v4())),
        read("/runs/recipe-0198c5a0-0000-7000-8000-000000000001".into()),
        Request::plain("DELETE", "/runs/run:absent"),
        Request {
            headers: vec![
                ("content-type".into(), "image/png".into()),
                ("x-service-file-name".into(), "a%20b.png".into()),
            ],
            body: images::png(8, 8),
            ..Request::plain("POST", &format!("/assets?canvasId={id}"))
        },
    ]);
    requests
}

/// Values that often cause defects.
fn oddity(chance: &mut Chance) -> Value {
    let long = chance.pick(&[200, 9000, 70_000]);
    match chance.below(20) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(1e308),
        5 => json!(u64::MAX),
        6 => json!(i64::MIN),
        7 => json!(0.1),
        8 => json!(1.0),
        9 => json!(""),
        10 => json!("\0"),
        11 => json!("x".repeat(long)),
        12 => json!("\u{202e}\u{feff}\u{fffd}\u{10ffff}e\u{301}"),
        13 => json!("node:../../etc"),
        14 => json!("'; DROP TABLE canvases; --"),
        15 => json!([]),
        16 => json!({}),
        17 => json!(vec![1; 300]),
        18 => (0..chance.below(140)).fold(json!(1), |inner, _| json!([inner])),
        _ => json!({"type": "node.create", "__proto__": {"a": 1}}),
    }
}

/// Replaces or adds a hostile value somewhere in `value`.
fn spoil(chance: &mut Chance, value: &mut Value) {
    match value {
        Value::Object(object) if !object.is_empty() && chance.below(6) > 0 => {
            let names: Vec<String> = object.keys().cloned().collect();
            let name = &names[chance.below(names.len())];
            match chance.below(12) {
                0 => drop(object.remove(name)),
                1 => drop(object.insert(format!("{name}\u{0}"), oddity(chance))),
                2 => drop(object.insert("surplus".to_owned(), oddity(chance))),
                _ => spoil(chance, &mut object[name]),
            }
        }
        Value::Array(items) if !items.is_empty() && chance.below(6) > 0 => {
            let at = chance.below(items.len());
            match chance.below(8) {
                0 => items.push(items[at].clone()),
                1 => drop(items.remove(at)),
                _ => spoil(chance, &mut items[at]),
            }
        }
        place => *place = oddity(chance),
    }
}

/// Changes, removes or duplicates bytes.
fn corrupt(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..=chance.below(4) {
        if bytes.is_empty() {
            return bytes.push(chance.below(256) as u8);
        }
        let at = chance.below(bytes.len());
        let end = (at + chance.below(24)).min(bytes.len());
        match chance.below(7) {
            0 => bytes[at] = chance.below(256) as u8,
            1 => bytes[at] ^= 1 << chance.below(8),
            2 => bytes[at] = chance.pick(b"\0\r\n\t :;,\"\\{}[]%/?#&\x7f\xff"),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..end)),
            5 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let piece =
                    chance.pick(&[&b"\r\n"[..], b"\r\n\r\n", b"%00", b"%ff", b"9999999999", b"\xc3\x28", b"\\u0000"]);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

/// A valid request with a defect, as bytes.
fn wrong(chance: &mut Chance, requests: &[Request], token: &str) -> Vec<u8> {
    let mut request = requests[chance.below(requests.len())].clone();
    match chance.below(8) {
        // Most requests are well-formed HTTP, because those get furthest.
        0..=3 => {
            if let Ok(mut body) = serde_json::from_slice(&request.body) {
                for _ in 0..=chance.below(3) {
                    spoil(chance, &mut body);
                }
                request.body = body.to_string().into_bytes();
            } else {
                corrupt(chance, &mut request.body);
            }
        }
        4 => corrupt(chance, &mut request.body),
        5 => {
            let mut path = request.path.into_bytes();
            corrupt(chance, &mut path);
            request.path = String::from_utf8_lossy(&path).into_owned();
        }
        6 => {
            let header = chance.pick(&[
                ("transfer-encoding", "chunked"),
                ("content-length", "5"),
                ("content-length", "-1"),
                ("content-type", "multipart/form-data"),
                ("authorization", "Basic eDp5"),
                ("accept", ";;q=x"),
                ("accept-encoding", "identity;q=0"),
                ("if-none-match", "\"\\\", W/, *"),
                ("range", "bytes=-0,9-1"),
                ("prefer", "wait=;=,return"),
                ("expect", "200-ok"),
                ("upgrade", "h2c"),
                ("x-request-id", "\u{e9}"),
                ("traceparent", "00-zz-zz-zz"),
                ("idempotency-key", "short"),
                ("host", "a b"),
            ]);
            let times = chance.pick(&[1, 1, 2, 120]);
            request.headers.extend(std::iter::repeat_n((header.0.to_owned(), header.1.to_owned()), times));
        }
        _ => {
            request.path += &format!("?cursor={}", "%F0%9F%A6%80".repeat(chance.pick(&[1, 700, 2000, 9000])));
        }
    }
    let mut bytes = request.bytes(token);
    if chance.below(6) == 0 {
        corrupt(chance, &mut bytes);
    }
    bytes
}

/// Sends bytes and reads the response to its end. A sender without a response closes its sending side after a while. A hasty
/// sender does so at once, which cancels the request in the gateway.
async fn exchange(stack: &Stack, bytes: &[u8], is_hasty: bool) -> Vec<u8> {
    let mut socket = TcpStream::connect(stack.authority(0)).await.expect("connects");
    let (mut from, mut to) = socket.split();
    let mut answer = Vec::new();
    let sending = async {
        // The gateway can close the connection before it has read everything.
        let _ = to.write_all(bytes).await;
        if !is_hasty {
            tokio::time::sleep(PAUSE).await;
        }
        let _ = to.shutdown().await;
    };
    let exchange = async {
        let mut reading = std::pin::pin!(from.read_to_end(&mut answer));
        tokio::select! {
            _ = &mut reading => {}
            () = sending => drop(reading.await),
        }
    };
    let ended = tokio::time::timeout(ANSWER_MAX, exchange).await;
    assert!(ended.is_ok(), "the response does not end: {}", String::from_utf8_lossy(bytes));
    answer
}

/// Returns what is wrong with a response. No response is right for a sender that closed before the end of its request.
fn judge(answer: &[u8]) -> Result<u16, String> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if answer.is_empty() { Ok(0) } else { Err("a head without an end".into()) };
    };
    let head = String::from_utf8(answer[..end].to_vec()).map_err(|error| error.to_string())?;
    let body = &answer[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u16>().ok()).ok_or("no status")?;
    if status == 100 {
        return judge(body);
    }
    let headers: Map<String, Value> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), Value::from(value)))
        .collect();
    let header = |name: &str| headers.get(name).and_then(Value::as_str).unwrap_or_default();
    if status >= 500 {
        return Err("a 5xx".into());
    }
    if Uuid::try_parse(header("x-request-id")).is_err() {
        return Err("no X-Request-ID".into());
    }
    // A response to HEAD has no body, and a compressed body is not inspected.
    if status < 400 || body.is_empty() && header("content-length") != "0" || headers.contains_key("content-encoding") {
        return Ok(status);
    }
    // The body can be followed by the response to a pipelined request.
    let length = header("content-length").parse().unwrap_or(body.len()).min(body.len());
    let envelope: Value =
        serde_json::from_slice(&body[..length]).map_err(|error| format!("not an error envelope: {error}"))?;
    let code = envelope["error"]["code"].as_str().unwrap_or_default();
    if !CODES.contains(&code) || !envelope["error"]["message"].is_string() {
        return Err("not an error envelope".into());
    }
    if header("cache-control") != "no-store" {
        return Err("an error response that may be cached".into());
    }
    Ok(status)
}

#[tokio::test]
async fn a_head_that_cannot_be_read_is_400_in_the_one_form() {
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 0).env("CANVAS_LEGACY_CAMPAIGNS", 1).start().await;
    let long = "a".repeat(40_000);
    let headers = "x: y\r\n".repeat(101);
    for head in [
        "no http\r\n\r\n".to_owned(),
        format!("GET /?{long} HTTP/1.1\r\nhost: e2e\r\n\r\n"),
        format!("GET /?{long}{long} HTTP/1.1\r\nhost: e2e\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: e2e\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{headers}\r\n"),
    ] {
        let mut connection = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
        connection.write_all(head.as_bytes()).await.expect("sends");
        let mut answer = String::new();
        let read = tokio::time::timeout(e2e::PATIENCE, connection.read_to_string(&mut answer)).await;
        read.expect("ends").expect("reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 400 ") && head.contains("\r\ncache-control: no-store\r\n"), "{head}");
        let id = head.lines().find_map(|line| line.strip_prefix("x-request-id: ")).expect("a request id");
        assert!(Uuid::try_parse(id).is_ok(), "{head}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["code"], "input_validation_error");
    }
}

#[tokio::test]
async fn whatever_is_sent_is_answered_or_refused_in_the_one_form() {
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 0).env("CANVAS_LEGACY_CAMPAIGNS", 1).start().await;
    let chance = Chance::new();
    let user = stack.user().await;
    let requests = good(&user).await;
    let total: usize = std::env::var("FUZZ_REQUESTS").map_or(4000, |number| number.parse().expect("a number"));
    let (user, requests, chance) = (&user, &requests, &chance);
    let senders = (0..SENDERS).map(|sender| async move {
        let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
        for round in (sender..total).step_by(SENDERS) {
            let mut chance = chance.fork(round as u64);
            let bytes = wrong(&mut chance, requests, &user.token);
            let answer = exchange(stack, &bytes, chance.below(4) == 0).await;
            match judge(&answer) {
                Ok(status) => *statuses.entry(status).or_default() += 1,
                Err(error) => panic!(
                    "request {round}: {error}\n---- sent ----\n{}\n---- answered ----\n{}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(4000)]),
                    String::from_utf8_lossy(&answer[..answer.len().min(4000)])
                ),
            }
        }
        statuses
    });
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for (status, count) in join_all(senders).await.into_iter().flatten() {
        *statuses.entry(status).or_default() += count;
    }
    println!("{statuses:?}");
    // The requests failed in different ways, not all at one check.
    for status in [200, 400, 401, 404, 405, 409, 415, 422] {
        assert!(statuses.contains_key(&status) || total < 2000, "none was answered with {status}: {statuses:?}");
    }
    assert!(!stack.log(Part::GATEWAY).contains("panicked"), "the gateway panicked");
    stack.ready(Part::GATEWAY).await;
    user.get("/auth/status").await.ok();
}

/// 16 MiB of the smallest objects would need 1.6 GB when parsed. Such a body is rejected with 413
/// (docs/reference/conventions.md#width-and-depth).
#[tokio::test]
async fn bodies_that_become_large_are_refused_and_large_ones_are_taken() {
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 0).start().await;
    const MIB: u64 = 1024 * 1024;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let path = format!("/canvases/{}/operations", text(&canvas, "/id"));
    let resident = stack.peak_resident(Part::GATEWAY);
    let tiny = format!("[{}]", vec![r#"{"":0}"#; 2_300_000].join(","));
    // An account may send two of the largest bodies at a time (docs/reference/conventions.md#memory-for-bodies).
    for path in [path.as_str(), path.as_str(), "/canvases/absent/operations"] {
        let sent = (0..2).map(|_| async { user.post(path).body("application/json", tiny.clone()).await });
        for refused in join_all(sent).await {
            refused.expect_error(413, "payload_too_large", &[]);
        }
    }
    // Half of the objects that the body of another request has room for, nearly as many as one account may hold.
    let small = format!("[{}]", vec![r#"{"":0}"#; 75_000].join(","));
    let sent = (0..4).map(|_| async { user.post("/canvases").body("application/json", small.clone()).await });
    for refused in join_all(sent).await {
        refused.expect_error(400, "input_validation_error", &[""]);
    }
    let growth = stack.peak_resident(Part::GATEWAY) - resident;
    assert!(growth <= 450 * MIB, "{} MiB more", growth / MIB);
    // The largest valid batch: two hundred nodes with nearly the maximum of metadata each.
    let custom = json!({"text": "x".repeat(64 * 1024 - 200), "more": [1, 2.5, null, {"a": "b"}]});
    let create = json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": custom}}});
    let applied = user.batch(text(&canvas, "/id"), text(&canvas, "/revision"), json!(vec![create; 200])).await.ok();
    assert_eq!(applied["changedNodeIds"].as_array().map(Vec::len), Some(200));
    let growth = stack.peak_resident(Part::GATEWAY) - resident;
    assert!(growth <= 600 * MIB, "{} MiB more", growth / MIB);
}

#[tokio::test]
async fn metadata_that_becomes_large_is_kept_as_text() {
    let stack = &Stack::builder().env("CANVAS_RATE_PER_MINUTE", 0).start().await;
    const MIB: u64 = 1024 * 1024;
    let user = stack.user().await;
    // Parsed, it takes a hundred times the memory of its text. It mentions what is looked up.
    let large = json!({"sectionId": 0, "a": vec![json!({"": 0}); 9000]});
    let create = json!({"type": "node.create", "node": {"type": "text", "metadata": {"custom": large}}});
    let mut canvases = Vec::new();
    for _ in 0..5 {
        canvases.push(text(&user.make_canvas().await, "/id").to_owned());
    }
    let resident = stack.peak_resident(Part::GATEWAY);
    for canvas in &canvases {
        for _ in 0..3 {
            user.apply(canvas, json!(vec![create.clone(); 5])).await;
        }
        user.get(&format!("/canvases/{canvas}/outline")).await.expect(200);
    }
    // A trial of two hundred copies, and a move of all nodes.
    let copy = json!({"type": "node.duplicate", "nodeId": "n", "position": {"x": 0, "y": 0}});
    let named = json!({"type": "node.create", "clientId": "n", "node": create["node"]});
    let copies: Vec<Value> = std::iter::once(named).chain(vec![copy; 199]).collect();
    let canvas = &canvases[0];
    let trial = json!({"validateOnly": true, "operations": copies});
    user.send(&format!("/canvases/{canvas}/operations"), &trial).await.expect(200);
    let now = user.canvas(canvas).await;
    let by = |node: &Value| json!({"type": "node.move", "nodeId": node["id"], "position": {"x": 9, "y": 9}});
    let moves = now["nodes"].as_array().expect("nodes").iter().map(by);
    user.batch(canvas, text(&now, "/revision"), moves.collect()).await.expect(422);
    let growth = stack.peak_resident(Part::GATEWAY) - resident;
    assert!(growth <= 600 * MIB, "{} MiB more", growth / MIB);
}
