//! Processes: the contract document, probes, signals and restarts (docs/reference/command-line.md,
//! docs/reference/configuration.md#probes, docs/reference/jobs.md#crash-guarantees).

use std::time::{Duration, Instant};

use e2e::api::text;
use e2e::{Kind, Part, Stack, User};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PARTS: [Part; 4] = [Part::GATEWAY, Part::IMAGE_WORKER, Part(Kind::VideoWorker, 0), Part::DISPATCHER];
const SECRET: &str = "a secret of the caller's own, long enough";

#[tokio::test]
async fn the_contract_document_is_served_without_a_credential() {
    let stack = &Stack::with_workers().await;
    let document = stack.anonymous().get("/openapi.json").await.ok();
    assert_eq!((&document["openapi"], &document["info"]["version"]), (&json!("3.1.0"), &json!("1.0.0")));
    assert_eq!(document["info"]["x-stability"], "stable");
    let schemes = document["components"]["securitySchemes"].as_object().expect("a scheme");
    assert!(schemes.values().any(|scheme| scheme["type"] == "http" && scheme["scheme"] == "bearer"));
    assert!(document["security"].as_array().is_some_and(|global| !global.is_empty()), "applied globally");
    let preview = &document["paths"]["/api/canvas-agent/v1/assets/preview"]["get"]["security"];
    assert!(preview == &json!([]) || preview == &json!([{}]), "none for the preview: {preview}");
}

#[tokio::test]
async fn the_contract_document_covers_every_route() {
    let stack = &Stack::with_workers().await;
    let document = stack.anonymous().get("/openapi.json").await.ok();
    let prefix = document["servers"][0]["url"].as_str().unwrap_or_default();
    for (method, path) in [
        ("get", "/auth/status"),
        ("get", "/canvases"),
        ("post", "/canvases"),
        ("get", "/canvases/{canvasId}"),
        ("get", "/canvases/{canvasId}/nodes/{nodeId}"),
        ("post", "/canvases/{canvasId}/operations"),
        ("get", "/assets"),
        ("post", "/assets"),
        ("get", "/assets/{assetId}"),
        ("get", "/assets/preview"),
        ("get", "/actions"),
        ("get", "/actions/{actionKey}"),
        ("post", "/actions/{actionKey}/runs"),
        ("get", "/runs/{runId}"),
        ("delete", "/runs/{runId}"),
        ("get", "/runs/{runId}/events"),
        ("get", "/jobs/{jobId}"),
        ("delete", "/jobs/{jobId}"),
    ] {
        let paths = &document["paths"];
        let operation = [format!("/api/canvas-agent/v1{path}"), path.to_owned()]
            .iter()
            .find_map(|path| paths.get(path).and_then(|item| item.get(method)))
            .unwrap_or_else(|| panic!("{method} {path} is documented ({prefix})"))
            .clone();
        assert!(operation["operationId"].is_string(), "{method} {path}");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
        assert!(
            path == "/assets/preview" || responses.contains_key("401") || responses.contains_key("default"),
            "{method} {path}"
        );
        let named: Vec<&str> = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        for name in named {
            let is_named = |parameter: &Value| parameter["name"] == name && parameter["in"] == "path";
            let shared =
                |parameter: &Value| document.pointer(parameter["$ref"].as_str()?.strip_prefix('#')?).map(is_named);
            assert!(parameters.iter().any(|it| is_named(it) || shared(it) == Some(true)), "{path} {name}");
        }
    }
    // Every reference in the document resolves.
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                found.push(reference.clone());
            }
            object.values().for_each(|item| collect_references(item, found));
        }
        _ => {}
    }
}

#[tokio::test]
async fn the_digest_is_served_without_a_credential() {
    let stack = &Stack::with_workers().await;
    let client = stack.anonymous();
    let digest = client.get("/digest.md").await.expect(200);
    assert_eq!(digest.header("content-type"), Some("text/markdown; charset=utf-8"));
    let policy = client.get("/openapi.json").await.expect(200).header("cache-control").map(str::to_owned);
    assert_eq!(digest.header("cache-control"), policy.as_deref());
    let text = String::from_utf8(digest.body.to_vec()).expect("UTF-8");
    assert!(text.contains(&format!("relative to `{}{}`", stack.origin(0), e2e::API_ROOT)), "{text}");
    assert!(text.contains("- POST /canvases/{canvasId}/operations"), "{text}");
    let tag = digest.header("etag").expect("an entity tag");
    let kept = client.get("/digest.md").header("if-none-match", tag).await.expect(304);
    assert_eq!((kept.header("etag"), kept.body.len()), (Some(tag), 0));
    client.get("/digest.md").header("if-none-match", "\"another\"").await.expect(200);
    client.get("/digest.md").header("accept", "text/markdown;q=0").await.expect(406);
    let rest = client.get("/digest.md?part=rest").await.expect(200);
    let text = String::from_utf8(rest.body.to_vec()).expect("UTF-8");
    assert!(text.contains("- POST /recipes/{recipeId}/runs") && !text.contains("/operations"), "{text}");
    assert_ne!(rest.header("etag"), Some(tag));
    client.get("/digest.md?part=all").await.expect_error(400, "input_validation_error", &["part"]);
}

#[tokio::test]
async fn the_documentation_page_is_served() {
    let stack = &Stack::with_workers().await;
    let client = stack.anonymous();
    let page = client.get("/docs").await.expect(200);
    assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    let text = String::from_utf8_lossy(&page.body).into_owned();
    assert!(!text.contains("<style") && text.matches("<script").count() == 1, "no inline script or style: {text}");
    let start = client.get("/docs/page.js").await.expect(200);
    assert!(String::from_utf8_lossy(&start.body).contains("/api/canvas-agent/v1/openapi.json"));
    let plain = client.get("/docs/redoc.js").await.expect(200);
    assert_eq!(
        (plain.header("content-type"), plain.header("content-encoding")),
        (Some("text/javascript; charset=utf-8"), None)
    );
    assert!(!plain.body.windows(16).any(|it| it == b"cdn.redoc.ly/red"), "loads nothing from elsewhere");
    let packed = client.get("/docs/redoc.js").header("accept-encoding", "br, gzip;q=0.5").await.expect(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 2 < plain.body.len());
}

#[tokio::test]
async fn every_process_tells_of_its_health() {
    let stack = &Stack::with_workers().await;
    for part in PARTS {
        assert_eq!(stack.probes(part).fetch("/healthz").await.0, 200, "{part}");
        let (status, _, report) = stack.probes(part).fetch("/readyz").await;
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!((status, &report["status"]), (200, &json!("ready")), "{part}");
        assert!(report["components"].as_object().is_some_and(|components| components.len() >= 2), "{part}: {report}");
    }
}

#[tokio::test]
async fn every_process_exposes_its_metrics() {
    let stack = &Stack::with_workers().await;
    stack.user().await.get("/auth/status").await.ok();
    for part in PARTS {
        let (status, headers, metrics) = stack.probes(part).fetch("/metrics").await;
        assert_eq!(status, 200, "{part}");
        assert!(headers["content-type"].to_str().is_ok_and(|kind| kind.starts_with("text/plain")));
        let samples = metrics.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for sample in samples {
            let value = sample.rsplit(' ').next().unwrap_or_default();
            assert!(value.parse::<f64>().is_ok(), "{part}: {sample}");
        }
        assert!(metrics.contains("# TYPE"), "{part}");
    }
    let (_, _, gateway) = stack.probes(Part::GATEWAY).fetch("/metrics").await;
    assert!(gateway.contains("http_requests_total{") && gateway.contains("http_request_duration_seconds"));
}

/// What a stranger and a holder of a token can send of each kind: requests whose method, path, query, headers, credential or body nobody
/// has sent before, and heads that are no HTTP.
async fn send_hostile(stack: &Stack, user: &User, number: usize) {
    let name = format!("INVENTED-{number}");
    let method = Method::from_bytes(name.as_bytes()).expect("a method");
    let anonymous = stack.anonymous();
    let calls = [
        anonymous.call(method.clone(), "/canvases"),
        anonymous.call(method, &format!("/{name}")),
        anonymous.call(Method::GET, &format!("/console/{name}/x")),
        anonymous.with_token(&format!("cba_{}.{}", uuid::Uuid::new_v4(), "s".repeat(43))).get("/canvases"),
        user.get(&format!("/canvases/{name}?{name}={name}")),
        user.get(&format!("/jobs/{name}")).header("x-service-agent-surface", &name).header(&name, &name),
        user.get("/models").header("accept", &format!("{name}/{name}")),
        user.call(Method::POST, "/canvases").body(&format!("application/{name}"), name.clone()),
        user.send(&format!("/actions/{name}/runs"), &json!({name.as_str(): name})),
    ];
    for call in calls {
        call.attempt().await.expect("is answered");
    }
    let mut socket = tokio::net::TcpStream::connect(stack.authority(0)).await.expect("connects");
    socket.write_all(format!("{name} / {name}/1.1\r\n\r\n").as_bytes()).await.expect("sends");
    let mut answer = Vec::new();
    // A reset ends the connection as well.
    let _ = socket.read_to_end(&mut answer).await;
}

#[tokio::test]
async fn nothing_that_clients_invent_is_in_a_label_or_a_log() {
    let stack = &Stack::builder().start().await;
    let user = stack.user().await;
    let series = async || {
        let (_, _, metrics) = stack.probes(Part::GATEWAY).fetch("/metrics").await;
        assert!(!metrics.contains("INVENTED"), "{metrics}");
        metrics.lines().filter(|line| line.starts_with("http_request")).count()
    };
    // The first of each kind makes its series.
    send_hostile(stack, &user, 0).await;
    let first = series().await;
    for number in 1..30 {
        send_hostile(stack, &user, number).await;
    }
    assert_eq!(series().await, first);
    let log = stack.log(Part::GATEWAY);
    assert!(log.contains("_OTHER") && !log.contains("INVENTED"));
}

#[tokio::test]
async fn every_process_logs_json() {
    let stack = &Stack::with_workers().await;
    for part in PARTS {
        let log = stack.log(part);
        let lines: Vec<Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{part}: {error}: {line}")))
            .collect();
        assert!(!lines.is_empty(), "{part}");
        for line in lines {
            for field in ["timestamp", "level", "message"] {
                assert!(line[field].is_string(), "{part}: {field}: {line}");
            }
        }
    }
}

/// Starts a run with a webhook to the stack's only receiver.
async fn announced(stack: &Stack, user: &User) -> (testkit::Receiver, Value) {
    let receiver = stack.take_receiver();
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({"webhook": {"url": receiver.url("/"), "secret": SECRET}})).await;
    (receiver, job)
}

/// A short lease, so that another process soon claims the work of a process that was killed.
fn mortal() -> e2e::Builder {
    Stack::builder()
        .image_workers(1)
        .dispatchers(1)
        .receivers(1)
        .env("CANVAS_LEASE_SECONDS", 1)
        .env("CANVAS_IDLE_CLAIM_MILLISECONDS", 200)
}

/// Kills `part` while it is held at `failpoint` and restarts it. The run must succeed and its one event must arrive.
async fn survives(part: Part, failpoint: &str) {
    let stack = mortal().hold(failpoint).start().await;
    let user = stack.user().await;
    let (receiver, job) = announced(&stack, &user).await;
    stack.hold(failpoint).reached().await;
    stack.kill(part);
    stack.hold(failpoint).release();
    stack.restart(part).await;
    let done = user.finished(&job).await;
    assert_eq!(done["status"], "succeeded", "{failpoint}: {done}");
    assert_eq!(done["images"].as_array().map(Vec::len), Some(1));
    let delivered = user.until(&job, |record| record["webhook"]["status"] == "delivered").await;
    assert!((1..=4).contains(&delivered["webhook"]["attempts"].as_i64().expect("a number")), "{delivered}");
    let requests = receiver.wait_for(1, e2e::PATIENCE).await;
    assert!(requests.iter().all(|request| request.verify_signature(SECRET).is_ok()));
    assert!(requests.iter().all(|request| request.body == requests[0].body), "at least once, and one event");
    // The effect is visible once, however often the work was started.
    let finished = "SELECT count(*) FROM canvas_changes WHERE activity ->> 'type' = 'job.finished'";
    assert_eq!(stack.count(finished).await, 1);
    assert_eq!(stack.count("SELECT count(*) FROM assets WHERE canvas_key IS NOT NULL").await, 1);
    assert_eq!(stack.count("SELECT count(*) FROM task_queue WHERE kind <> 'rendition'").await, 0, "no work is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_survives_the_death_of_its_worker_at_every_step() {
    for failpoint in ["task.claimed", "action.loaded", "action.stored", "job.committed"] {
        survives(Part::IMAGE_WORKER, failpoint).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_survives_the_death_of_the_dispatcher_at_every_step() {
    for failpoint in ["delivery.begun", "delivery.sent"] {
        survives(Part::DISPATCHER, failpoint).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_process_stops_gracefully() {
    let stack = Stack::builder().image_workers(1).video_workers(1).dispatchers(1).start().await;
    let user = stack.user().await;
    for part in [Part::IMAGE_WORKER, Part(Kind::VideoWorker, 0), Part::DISPATCHER] {
        let began = Instant::now();
        assert_eq!(stack.stop(part).await.code(), Some(0), "{part}");
        assert!(began.elapsed() < Duration::from_secs(25), "{part}");
    }
    // A long poll returns the current state, and an event stream ends.
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    let path = text(&job, "/pollUrl");
    let stream = user.get(&format!("{path}/events")).streamed().await;
    let began = Instant::now();
    let poll = async { user.get(path).header("prefer", "wait=30").await };
    let stop = async {
        // These later requests are answered, so the poll is already waiting.
        for _ in 0..5 {
            user.get("/auth/status").await.ok();
        }
        stack.stop(Part::GATEWAY).await
    };
    let (poll, status) = tokio::join!(poll, stop);
    assert_eq!(poll.expect(202).json()["status"], "queued");
    stream.text().await.expect("the stream ends");
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // Accepted work is still there for the next gateway.
    stack.restart(Part::GATEWAY).await;
    stack.restart(Part::IMAGE_WORKER).await;
    assert_eq!(user.finished(&job).await["status"], "succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claimed_work_is_handed_back_when_a_worker_stops() {
    let stack = Stack::builder().image_workers(1).hold("action.loaded").start().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let job = user.start_resize(&canvas, json!({})).await;
    stack.hold("action.loaded").reached().await;
    let began = Instant::now();
    assert_eq!(stack.stop(Part::IMAGE_WORKER).await.code(), Some(0));
    assert!(began.elapsed() <= Duration::from_secs(26), "{:?}", began.elapsed());
    assert_eq!(stack.count("SELECT count(*) FROM task_queue WHERE kind = 'action' AND state = 'ready'").await, 1);
    stack.hold("action.loaded").release();
    stack.restart(Part::IMAGE_WORKER).await;
    // Much sooner than the lease of a worker that died would end.
    assert_eq!(user.finished(&job).await["status"], "succeeded");
}
