//! An HTTP client that checks the rules for every response.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use uuid::Uuid;

use crate::answers;

/// The path prefix of the API.
pub const API_ROOT: &str = "/api/canvas-agent/v1";

/// Longer than the longest response time, which is that of a long poll.
const LIMIT: Duration = Duration::from_secs(75);

/// A client of one gateway, with or without a token.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    origin: String,
    token: Option<String>,
}

impl Client {
    /// A client of `origin` (`http://host:port`) without a token.
    pub fn new(origin: &str) -> Self {
        static HTTP: LazyLock<()> = LazyLock::new(|| {
            // Fails if a provider is installed already. reqwest requires one even without TLS.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        LazyLock::force(&HTTP);
        #[expect(clippy::disallowed_methods, reason = "a client of the service, not a part of it")]
        let builder = reqwest::Client::builder();
        let http = builder
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LIMIT)
            // After a restart of the gateway, pooled connections would be closed.
            .pool_max_idle_per_host(0)
            .build()
            .expect("builds a client");
        Self { http, origin: origin.to_owned(), token: None }
    }

    /// The same client with another loopback address as its source.
    pub fn from_address(&self, address: [u8; 4]) -> Self {
        #[expect(clippy::disallowed_methods, reason = "a client of the service, not a part of it")]
        let builder = reqwest::Client::builder();
        let http = builder.no_proxy().local_address(std::net::IpAddr::from(address)).timeout(LIMIT).build();
        Self { http: http.expect("builds a client"), ..self.clone() }
    }

    /// The same client with a token, which need not be valid.
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// `GET`. A path is relative to the API's root unless it starts with that root, `/console`, `/docs`, `/mcp`, `/llms.txt`, `/oauth/` or
    /// `/.well-known/`, or is a whole URL.
    pub fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    /// `POST` without a body.
    pub fn post(&self, path: &str) -> Call {
        self.call(Method::POST, path)
    }

    /// `POST` with a JSON body.
    pub fn send(&self, path: &str, body: &Value) -> Call {
        self.post(path).body("application/json", body.to_string())
    }

    /// `POST` with a form.
    pub fn form(&self, path: &str, fields: &[(&str, &str)]) -> Call {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.post(path).body("application/x-www-form-urlencoded", form)
    }

    /// `DELETE`.
    pub fn delete(&self, path: &str) -> Call {
        self.call(Method::DELETE, path)
    }

    /// A request with any method.
    pub fn call(&self, method: Method, path: &str) -> Call {
        let url = match path {
            whole if whole.starts_with("http") => whole.to_owned(),
            rooted
                if ["/api/", "/console", "/docs", "/mcp", "/llms.txt", "/oauth/", "/.well-known/"]
                    .iter()
                    .any(|root| rooted.starts_with(root)) =>
            {
                format!("{}{rooted}", self.origin)
            }
            path => format!("{}{API_ROOT}{path}", self.origin),
        };
        let name = format!("{method} {}", url.strip_prefix(&self.origin).unwrap_or(&url));
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        Call { name, request }
    }

    /// The JSON body of a probe, whatever its status. `None` while no process responds.
    pub(crate) async fn probe(&self, path: &str) -> Option<Value> {
        let response = self.http.get(format!("{}{path}", self.origin)).send().await.ok()?;
        serde_json::from_slice(&response.bytes().await.ok()?).ok()
    }

    /// The status, headers and text of a probe or of a page's file.
    pub async fn fetch(&self, path: &str) -> (u16, HeaderMap, String) {
        self.fetch_as(path, "*/*").await
    }

    /// The status, headers and text of a page that a browser opens.
    pub async fn navigate(&self, path: &str) -> (u16, HeaderMap, String) {
        self.fetch_as(path, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8").await
    }

    async fn fetch_as(&self, path: &str, accept: &str) -> (u16, HeaderMap, String) {
        let request = self.http.get(format!("{}{path}", self.origin)).header("accept", accept);
        let response = request.send().await.expect("is answered");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        (status, headers, response.text().await.expect("a text"))
    }
}

/// A request; await it to send it.
pub struct Call {
    name: String,
    request: RequestBuilder,
}

impl Call {
    /// Adds this header.
    pub fn header(self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
        Self { request: self.request.header(name, value), ..self }
    }

    /// Sets this body and its `Content-Type`.
    pub fn body(self, media_type: &str, body: impl Into<reqwest::Body>) -> Self {
        let call = self.header("content-type", media_type);
        call.untyped(body)
    }

    /// Sets this body without a `Content-Type`.
    pub fn untyped(self, body: impl Into<reqwest::Body>) -> Self {
        Self { request: self.request.body(body), ..self }
    }

    /// Sets this body in chunks, without a `Content-Length`.
    pub fn chunked(self, media_type: &str, body: Vec<u8>) -> Self {
        let pieces: Vec<Result<Bytes, std::io::Error>> =
            body.chunks(64 * 1024).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        self.body(media_type, reqwest::Body::wrap_stream(futures_util::stream::iter(pieces)))
    }

    /// Sends the request and returns the response with its body unread, for streams.
    pub async fn streamed(self) -> reqwest::Response {
        let name = self.name.clone();
        self.try_streamed().await.unwrap_or_else(|error| panic!("{name} is not answered: {error:?}"))
    }

    /// Like [`Self::streamed`], or the error of the transport.
    pub async fn try_streamed(self) -> Result<reqwest::Response, reqwest::Error> {
        self.request.send().await
    }

    /// Sends the request and returns the response, or the error of the transport.
    pub async fn attempt(self) -> Result<Reply, reqwest::Error> {
        let response = self.request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Reply { name: self.name, status, headers, body: response.bytes().await? })
    }
}

impl IntoFuture for Call {
    type Output = Reply;
    type IntoFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let name = self.name.clone();
            let reply = self.attempt().await.unwrap_or_else(|error| panic!("{name} is not answered: {error:?}"));
            reply.check();
            reply
        })
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Reply {
    name: String,
    /// The HTTP status.
    pub status: u16,
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Reply {
    /// Checks the rules for every response: a request id, a caching rule, and an envelope for each error
    /// (docs/reference/conventions.md#request-id, docs/reference/conventions.md#caching, docs/reference/errors.md#envelope).
    fn check(&self) {
        let name = &self.name;
        self.check_answer();
        let id = self.header("x-request-id").and_then(|id| Uuid::parse_str(id).ok());
        assert!(id.is_some(), "{name}: X-Request-ID is a UUID: {self}");
        assert!(self.header("cache-control").is_some(), "{name}: says how it may be cached: {self}");
        if self.status < 400 {
            return;
        }
        assert_eq!(self.header("cache-control"), Some("no-store"), "{name}: {self}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{name}: {self}");
        let answer = self.json();
        let error = &answer["error"];
        if name.split_once(' ').is_some_and(|(_, path)| path.starts_with("/oauth/")) {
            // Routes of OAuth clients have the form of their RFCs.
            assert!(error.is_string() && answer["error_description"].is_string(), "{name}: {self}");
            return;
        }
        let code = error["code"].as_str().unwrap_or_default();
        let status = match code {
            "input_validation_error" | "invalid_json" => 400,
            "unauthorized" => 401,
            "payment_required" => 402,
            "forbidden" => 403,
            "not_found" => 404,
            "conflict" => 409,
            "gone" => 410,
            "payload_too_large" => 413,
            "unsupported_media_type" => 415,
            "unprocessable_entity" => 422,
            "rate_limited" => 429,
            "internal_error" => 500,
            "upstream_error" => 502,
            "service_unavailable" => 503,
            "upstream_timeout" => 504,
            "request_failed" => self.status,
            other => panic!("{name}: {other:?} is not a documented error code: {self}"),
        };
        assert_eq!(self.status, status, "{name}: code and status belong together: {self}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{name}: has a message: {self}");
        // A refusal for scopes says which are needed.
        let is_challenged = self.header("www-authenticate").is_some_and(is_challenge);
        assert!(is_challenged == (self.status == 401) || self.status == 403, "{name}: {self}");
        if self.status >= 500 {
            assert!(error.get("fields").is_none() && error.get("details").is_none(), "{name}: has no details: {self}");
        }
    }

    /// Checks that a JSON body of the API is the answer that the contract has for it.
    fn check_answer(&self) {
        let (method, path) = self.name.split_once(' ').expect("a name is method and path");
        let path = path.strip_prefix(API_ROOT).map(|rest| rest.split('?').next().unwrap_or_default());
        let is_json = self.header("content-type") == Some("application/json") && !self.body.is_empty();
        // A test that asks for compression reads the bytes itself.
        let is_json = is_json && self.header("content-encoding").is_none();
        // `E2E_BIN_DIR` has the processes of another release, whose answers are not of this contract.
        if let Some(path) = path.filter(|_| is_json && std::env::var_os("E2E_BIN_DIR").is_none())
            && let Err(error) = answers::check(method, path, self.status, &self.body)
        {
            panic!("{}: {error}: {self}", self.name);
        }
    }

    /// The value of a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of ASCII"))
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: not JSON: {error}: {self}", self.name))
    }

    /// Panics unless the response has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {self}", self.name);
        self
    }

    /// The JSON body of a 200.
    #[track_caller]
    pub fn ok(self) -> Value {
        self.expect(200).json()
    }

    /// Panics unless this is an error with this status and code and exactly these fields, in any order. Returns its message.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str, fields: &[&str]) -> String {
        let reply = self.expect(status);
        let error = &reply.json()["error"];
        assert_eq!(error["code"], code, "{}: {reply}", reply.name);
        let entries = error["fields"].as_array().cloned().unwrap_or_default();
        let mut named: Vec<&str> = entries.iter().filter_map(|entry| entry["field"].as_str()).collect();
        let mut wanted = fields.to_vec();
        named.sort_unstable();
        named.dedup();
        wanted.sort_unstable();
        assert_eq!(named, wanted, "{}: the fields that are wrong: {reply}", reply.name);
        assert!(entries.iter().all(|entry| entry["message"].as_str().is_some_and(|text| !text.is_empty())), "{reply}");
        error["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(2000)]);
        write!(f, "{} {:?} {text}", self.status, self.headers)
    }
}

/// Returns `true` if a `WWW-Authenticate` header names the scheme, and nothing else or the metadata of OAuth.
fn is_challenge(header: &str) -> bool {
    header == "Bearer" || header.starts_with("Bearer resource_metadata=\"http")
}
