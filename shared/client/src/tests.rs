use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use http::header::AUTHORIZATION;
use http::{Request, Response};
use serde_json::{Value, json};

use super::*;

/// Answers; `None` for none.
type Answers = VecDeque<Option<Response<Bytes>>>;

/// Sends prepared answers, one after the other, and keeps the requests.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<Mutex<Answers>>,
    requests: Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>,
}

impl Script {
    fn then(self, status: u16, body: &Value) -> Self {
        let mut response = Response::new(Bytes::from(body.to_string()));
        *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
        self.answers.lock().expect("no panic").push_back(Some(response));
        self
    }

    fn then_silence(self) -> Self {
        self.answers.lock().expect("no panic").push_back(None);
        self
    }

    fn client(&self) -> Client {
        Client::new(self.clone())
    }

    fn names(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").iter().map(|(name, ..)| name.clone()).collect()
    }
}

impl Transport for Script {
    fn send(&self, request: Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
        let (head, payload) = request.into_parts();
        let name = format!("{} {}", head.method, head.uri);
        self.requests.lock().expect("no panic").push((name, head.headers, payload.bytes));
        let answer = self.answers.lock().expect("no panic").pop_front().expect("another answer");
        let answer = answer
            .map(|response| response.map(|body| -> BodyStream { Box::pin(stream::iter([Ok(body)])) }))
            .ok_or_else(|| Unreachable("closed".into()));
        async move { answer }.boxed()
    }
}

/// The document that a gateway serves.
pub fn contract() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gateway/openapi.json");
    serde_json::from_slice(&std::fs::read(path).expect("the contract document")).expect("is JSON")
}

/// The examples of successful JSON answers of an operation, as a gateway answered.
pub fn examples(contract: &Value, operation_id: &str) -> Vec<Value> {
    let operations = contract["paths"].as_object().into_iter().flatten().flat_map(|(_, path)| path.as_object());
    let operation = operations.flatten().find(|(_, it)| it["operationId"] == operation_id).expect("the operation").1;
    let success =
        operation["responses"].as_object().into_iter().flatten().filter(|(status, _)| status.starts_with('2'));
    let bodies = success.map(|(_, it)| &it["content"]["application/json"]);
    let all = bodies.flat_map(|it| {
        it["examples"].as_object().into_iter().flatten().map(|(_, it)| &it["value"]).chain(it.get("example"))
    });
    all.cloned().collect()
}

#[test]
fn each_operation_of_the_contract_has_a_method() {
    let document = contract();
    let paths = document["paths"].as_object().expect("paths");
    let served: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, operations)| {
            operations.as_object().into_iter().flatten().filter_map(move |(method, operation)| {
                let id = operation["operationId"].as_str()?;
                let path = path.strip_prefix(domain::API_ROOT).unwrap_or(path);
                Some(format!("{id} {} {path}", method.to_uppercase()))
            })
        })
        .collect();
    let here: BTreeSet<String> =
        operations::OPERATIONS.iter().map(|(id, method, path)| format!("{id} {method} {path}")).collect();
    assert_eq!(here, served);
}

#[tokio::test]
async fn ids_and_queries_are_encoded() {
    let script = Script::default().then(200, &json!({})).then(200, &json!({})).then(200, &json!({}));
    let client = script.client();
    client.get_node("canvas:me:b/1", "node:ü?").await.expect("answers");
    client
        .list_recipes()
        .query("q", "a&b c")
        .query_if("cursor", None::<&str>)
        .query("limit", 5)
        .await
        .expect("answers");
    client.get_docs().await.expect("answers");
    let expected = [
        "GET /api/canvas-agent/v1/canvases/canvas:me:b%2F1/nodes/node:%C3%BC%3F",
        "GET /api/canvas-agent/v1/recipes?q=a%26b%20c&limit=5",
        "GET /docs",
    ];
    assert_eq!(script.names(), expected);
}

#[tokio::test(start_paused = true)]
async fn reads_and_keyed_mutations_are_repeated_unchanged() {
    for silent in [false, true] {
        let script = Script::default();
        let script = if silent { script.then_silence() } else { script.then(503, &json!({})) };
        let script = script.then(200, &json!({"ok": true}));
        let client = script.client().with_token("cba_x").expect("a token");
        let body = json!({"baseRevision": "r1", "idempotencyKey": "12345678"});
        let answer = client.apply_operations("canvas:me:b").json(&body).await.expect("answers");
        assert_eq!(answer.json(), json!({"ok": true}));
        let requests = script.requests.lock().expect("no panic").clone();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].2, requests[1].2, "the same body");
        assert_eq!(requests[1].1[AUTHORIZATION], "Bearer cba_x");
    }
    let script = Script::default().then_silence().then(200, &json!({}));
    script.client().generate_video().json(&json!({"prompt": "x", "validateOnly": true})).await.expect("answers");
    assert_eq!(script.names().len(), 2, "a dry run has no effect");
    let script = Script::default().then(429, &json!({})).then(200, &json!({}));
    script.client().list_runs().await.expect("answers");
    assert_eq!(script.names().len(), 2);
    let script = Script::default().then(500, &json!({})).then(200, &json!({}));
    script.client().upload_asset().key("12345678").body("image/png", Bytes::new()).await.expect("answers");
    assert_eq!(script.names().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_would_have_a_second_effect_is_sent_once() {
    for keyless in [json!({"title": "idempotencyKey"}), json!({"validateOnly": false})] {
        let script = Script::default().then(503, &json!({}));
        script.client().create_canvas().json(&keyless).await.expect_err("fails");
        assert_eq!(script.names().len(), 1);
    }
    let script = Script::default().then(503, &json!({}));
    script.client().without_retries().list_runs().await.expect_err("fails");
    assert_eq!(script.names().len(), 1);
}

#[tokio::test]
async fn a_refusal_says_what_the_service_said() {
    let envelope = json!({"error": {
        "code": "input_validation_error", "message": "invalid input",
        "fields": [{"field": "title", "message": "is required"}], "details": {"currentRevision": "r2"},
    }});
    let script = Script::default().then(400, &envelope);
    let error = script.client().create_canvas().json(&json!({})).await.expect_err("is refused");
    let problem = error.problem().expect("a refusal");
    assert_eq!((problem.status.as_u16(), problem.code.as_str()), (400, "input_validation_error"));
    assert_eq!(problem.fields[0].field, "title");
    assert_eq!(problem.details.current_revision.as_deref(), Some("r2"));
    assert_eq!(problem.envelope, envelope);

    let script = Script::default().then(404, &json!("<html>"));
    let error = script.client().create_canvas().json(&json!({})).await.expect_err("is refused");
    assert_eq!(error.problem().expect("a refusal").code, "request_failed");
}

#[tokio::test]
async fn pages_are_read_as_they_are_needed() {
    let page = |items: Value, next: Value| json!({"canvases": items, "page": {"limit": 2, "hasMore": !next.is_null(), "nextCursor": next}});
    let script =
        Script::default().then(200, &page(json!([1, 2]), json!("n"))).then(200, &page(json!([3]), Value::Null));
    let client = script.client();
    let mut pages = Pages::new(|| client.list_canvases());
    assert_eq!(pages.next().await.expect("reads").expect("an item").to_string(), "1");
    assert_eq!(script.names().len(), 1);
    let rest: Vec<String> = pages.take(10).await.expect("reads").iter().map(ToString::to_string).collect();
    assert_eq!(rest, ["2", "3"]);
    assert_eq!(script.names()[1], "GET /api/canvas-agent/v1/canvases?cursor=n");
    let script = Script::default().then(200, &page(json!([{"later": true}]), Value::Null));
    let (items, next) = script.client().list_canvases().await.expect("answers").items().expect("a page");
    assert!(items[0].value().is_none() && next.is_none());
    assert_eq!(items[0].to_string(), r#"{"later":true}"#);
    let script = Script::default().then(200, &json!({}));
    script.client().list_canvases().await.expect("answers").items().expect_err("is no page");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_work_or_with_patience() {
    let run = |status: &str| json!({"status": status});
    let script = Script::default()
        .then(202, &run("queued"))
        .then(304, &Value::Null)
        .then(202, &run("queued"))
        .then(202, &run("running"))
        .then(200, &run("failed"));
    let mut seen = Vec::new();
    let client = script.client();
    let last = client.wait("run:1", None, |record, _| seen.push(record.status.clone())).await.expect("ends");
    assert_eq!(last.json()["status"], "failed");
    assert_eq!(
        seen,
        ["queued", "queued", "running", "failed"],
        "what it waits for is read anew after a wait without a change"
    );

    let script = Script::default().then(202, &run("queued"));
    let last = script.client().wait("job:1", Some(std::time::Duration::ZERO), |_, _| {}).await.expect("ends");
    assert_eq!(last.json()["status"], "queued");
    assert_eq!(script.names(), ["GET /api/canvas-agent/v1/jobs/job:1"]);
}
