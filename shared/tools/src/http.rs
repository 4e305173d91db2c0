//! The server over streamable HTTP, without sessions: any process answers any request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use serde::de::IgnoredAny;
use serde_json::json;

use crate::server::Server;

/// JSON-RPC 2.0, section 5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;

/// The longest message, in bytes: a picture of 8 MiB in base64, and what stands around it.
pub const BODY_MAX: usize = 12 * 1024 * 1024;

/// The server over HTTP.
#[derive(Clone)]
pub struct Http(StreamableHttpService<Server, NeverSessionManager>);

impl Http {
    /// Serves `server` to pages of these origins, and to every caller that is no page.
    pub fn new(server: Server, origins: impl IntoIterator<Item = String>) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(BODY_MAX)
            // Each request needs a token, which a foreign page does not have.
            .disable_allowed_hosts()
            .with_allowed_origins(origins)
            .enforce_origin_validation();
        let make = move || Ok(server.clone());
        Self(StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config))
    }

    /// Answers a request whose credential is valid.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
        match objection(&request) {
            Some((code, message)) => refused(code, message),
            None => self.0.handle(request.map(Full::new)).await,
        }
    }
}

/// Code and text of the error of a message that the library would accept, or would not answer with an error of the protocol.
fn objection(request: &Request<Bytes>) -> Option<(i32, &'static str)> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if header("mcp-protocol-version") == Some(ProtocolVersion::V_2024_11_05.as_str()) {
        return Some((INVALID_REQUEST, "MCP-Protocol-Version: this version has another transport"));
    }
    let body = request.body();
    if !header("content-type").is_some_and(|media| media.starts_with("application/json")) {
        return None;
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Err(_) => Some((PARSE_ERROR, "the body is not JSON")),
        Ok(_) if body.trim_ascii_start().starts_with(b"[") => Some((INVALID_REQUEST, "batches are not taken")),
        Ok(_) => None,
    }
}

/// An error of JSON-RPC 2.0 to a message without a known id.
fn refused(code: i32, message: &str) -> Response<BoxBody<Bytes, Infallible>> {
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let mut response = Response::new(Full::from(error.to_string()).boxed());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
