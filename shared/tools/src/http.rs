//! The server over streamable HTTP, without sessions: any process answers any request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;

use crate::message::{self, Incoming, Refused};
use crate::server::Server;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The server over HTTP.
#[derive(Clone)]
pub struct Http(StreamableHttpService<Server, NeverSessionManager>);

impl Http {
    /// Serves `server` to pages of these origins, and to every caller that is no page.
    pub fn new(server: Server, origins: impl IntoIterator<Item = String>) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            // The caller of `answer` has limited it.
            .with_max_request_body_bytes(usize::MAX)
            // Each request needs a token, which a foreign page does not have.
            .disable_allowed_hosts()
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        let make = move || Ok(server.clone());
        Self(StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config))
    }

    /// Answers a request of at most [`MESSAGE_MAX`](message::MESSAGE_MAX) bytes whose credential is valid and whose sender accepts
    /// JSON; with `takes_stream`, also streams of events.
    pub async fn answer(&self, request: Request<Vec<u8>>, takes_stream: bool) -> Answer {
        let (mut head, body) = request.into_parts();
        // The library requires both, although it sends only one.
        head.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if !is_of(&head.headers, "application/json") {
            return self.0.handle(Request::from_parts(head, Full::<Bytes>::default())).await;
        }
        // A client of a version before 2025-06-18 sends none.
        let version = head.headers.get("mcp-protocol-version").map(HeaderValue::as_bytes);
        let takes_batches = version.is_none_or(|version| version == ProtocolVersion::V_2025_03_26.as_str().as_bytes());
        match message::read(body, takes_batches) {
            Ok(Incoming::One(message)) => self.one(head, message, takes_stream).await,
            Ok(Incoming::Batch(messages)) => self.batch(&head, messages).await,
            Err(refused) => json(StatusCode::BAD_REQUEST, &refused.answer()),
        }
    }

    /// Answers the messages in their order, so that a later one sees what an earlier one did.
    async fn batch(&self, head: &Parts, messages: Vec<Value>) -> Answer {
        let mut answers = Vec::new();
        for message in messages {
            let answer = match message["method"] == "initialize" {
                true => refused(&message, "initialize is no part of a batch"),
                false => self.one(head.clone(), message, false).await,
            };
            let Ok(body) = answer.into_body().collect().await;
            // A notification has no answer.
            answers.extend(serde_json::from_slice::<Value>(&body.to_bytes()));
        }
        match answers.is_empty() {
            true => with_body(StatusCode::ACCEPTED, Bytes::new()),
            false => json(StatusCode::OK, &Value::from(answers)),
        }
    }

    async fn one(&self, head: Parts, mut message: Value, takes_stream: bool) -> Answer {
        if let Err(refused) = message::check(&message) {
            return json(StatusCode::BAD_REQUEST, &refused.answer());
        }
        if message.get("method").is_none() {
            return refused(&Value::Null, "no answer is expected");
        }
        if head
            .headers
            .get("mcp-protocol-version")
            .is_some_and(|version| version == ProtocolVersion::V_2024_11_05.as_str())
        {
            return refused(&message, "MCP-Protocol-Version: this version has another transport");
        }
        if !takes_stream && let Some(Value::Object(meta)) = message.pointer_mut("/params/_meta") {
            // Progress is reported in a stream.
            meta.remove("progressToken");
        }
        let body = Full::<Bytes>::from(message.to_string());
        // Only the id is kept.
        let message = Value::from_iter([("id", message::id(&message))]);
        let answer = self.0.handle(Request::from_parts(head, body)).await;
        let is_json = is_of(answer.headers(), "application/json");
        match answer.status() {
            StatusCode::OK if !is_json && !takes_stream => {
                refused(&message, "this method answers with a stream: accept text/event-stream")
            }
            // The library refuses some messages in plain text.
            StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE if !is_json => {
                let Ok(body) = answer.into_body().collect().await;
                refused(&message, &String::from_utf8_lossy(&body.to_bytes()))
            }
            _ => answer,
        }
    }
}

/// Returns `true` if the content is of this media type.
fn is_of(headers: &HeaderMap, media_type: &str) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    declared.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

/// The answer to a message that is no valid request.
fn refused(message: &Value, text: &str) -> Answer {
    json(StatusCode::BAD_REQUEST, &Refused::invalid(message::id(message), text).answer())
}

fn json(status: StatusCode, content: &Value) -> Answer {
    let mut answer = with_body(status, content.to_string().into());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn with_body(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::from(body).boxed());
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::tests::server;

    /// Status and content of the answer to a body.
    async fn answer(version: Option<&str>, body: impl Into<Vec<u8>>, takes_stream: bool) -> (u16, Value) {
        let http = Http::new(server(), []);
        let mut request =
            Request::post("/mcp").header("host", "localhost").header(CONTENT_TYPE, "application/json; charset=utf-8");
        if let Some(version) = version {
            request = request.header("mcp-protocol-version", version);
        }
        let answer = http.answer(request.body(body.into()).expect("a request"), takes_stream).await;
        let (status, is_json) = (answer.status().as_u16(), is_of(answer.headers(), "application/json"));
        let Ok(body) = answer.into_body().collect().await;
        let body = body.to_bytes();
        assert_eq!(is_json, !body.is_empty(), "{body:?}");
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn a_message_that_is_no_request_is_answered_as_json_rpc() {
        for (version, body, status, code, id) in [
            (None, "{", 400, -32700, json!(null)),
            (None, "", 400, -32700, json!(null)),
            (None, "7", 400, -32600, json!(null)),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":[]}"#, 400, -32600, json!(4)),
            (None, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#, 400, -32600, json!(null)),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":"ping","result":{}}"#, 400, -32600, json!(4)),
            (Some("2027-01-01"), r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#, 400, -32600, json!(4)),
            (Some("2024-11-05"), r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#, 400, -32600, json!(4)),
            (
                None,
                r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"status","arguments":"x"}}"#,
                200,
                -32602,
                json!(4),
            ),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":7}"#, 400, -32602, json!(4)),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":"tools/call"}"#, 200, -32602, json!(4)),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}"#, 200, -32602, json!(4)),
            (None, r#"{"jsonrpc":"2.0","id":4,"method":"none"}"#, 200, -32601, json!(4)),
        ] {
            let (answered, answer) = answer(version, body, true).await;
            let error = (answered, answer["error"]["code"].as_i64(), answer.get("id"));
            assert_eq!(error, (status, Some(code), Some(&id)), "{body}: {answer}");
        }
        let (_, wrong) = answer(
            None,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"status","arguments":"x"}}"#,
            true,
        )
        .await;
        let text = wrong["error"]["message"].as_str().expect("a text");
        assert!(text.starts_with("params.arguments: "), "{text}");
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(answer(None, notification, true).await, (202, Value::Null));
    }

    #[tokio::test]
    async fn batches_are_those_of_2025_03_26() {
        let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        let done = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {}});
        let batch = json!([ping(2), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 7, ping(1)]).to_string();
        for version in [None, Some("2025-03-26")] {
            let (status, answers) = answer(version, batch.clone(), true).await;
            assert_eq!((status, &answers[0], &answers[2]), (200, &done(2), &done(1)), "{answers}");
            assert_eq!((&answers[1]["id"], &answers[1]["error"]["code"]), (&Value::Null, &json!(-32600)));
            assert_eq!(answers.as_array().map(Vec::len), Some(3));
        }
        for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
            let (status, answer) = answer(Some(version), batch.clone(), true).await;
            assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32600)), "{version}");
        }
        let silent = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).to_string();
        assert_eq!(answer(None, silent, true).await, (202, Value::Null));
        let initialize = json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}]).to_string();
        let (_, answers) = answer(None, initialize, true).await;
        assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(1), &json!(-32600)));
    }

    #[tokio::test]
    async fn a_method_that_streams_needs_a_caller_who_takes_streams() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"_meta": meta, "notifications": {}});
        let message = json!({"jsonrpc": "2.0", "id": 4, "method": "subscriptions/listen", "params": params});
        let mut request = Request::post("/mcp").header("host", "localhost").header(CONTENT_TYPE, "application/json");
        request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "subscriptions/listen");
        let request = request.body(message.to_string().into_bytes()).expect("a request");
        let answer = Http::new(server(), []).answer(request, false).await;
        assert_eq!(answer.status(), 400);
        let Ok(body) = answer.into_body().collect().await;
        let body: Value = serde_json::from_slice(&body.to_bytes()).expect("JSON");
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(4), &json!(-32600)), "{body}");
    }
}
