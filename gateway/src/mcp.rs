//! `/mcp`: the tools of `shared/tools` over streamable HTTP (docs/reference/tools.md).
//!
//! **Guarantee.** A call of a tool is requests of its caller, through every layer that any request passes.
//!
//! **Mechanism.** The tools' client sends its requests to this process's own router for the contract, with the credential, the
//! address and the trace of the request to `/mcp`. Memory for what a tool reads is reserved before it is parsed, until the call ends. To
//! parse a long message is large work of its account.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Extension, Router};
use client::{BodyStream, Client, Payload, Transport, Unreachable};
use domain::account::{Scopes, TokenKind};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response};
use serde::Deserialize;
use tokio::sync::Mutex;
use tools::http::Http;
use tools::{MESSAGE_MAX, Server};
use tower::ServiceExt;
use url::Url;

use crate::address::ClientAddress;
use crate::admission::InProgress;
use crate::extract::accept::Accepted;
use crate::extract::caller::{self, AnyToken, Caller};
use crate::extract::json::{BodyMemory, JsonBody, answers, is_json};
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::state::App;

const SURFACE: HeaderName = HeaderName::from_static("x-service-agent-surface");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The route; its tools send their requests to `contract`.
pub fn router(contract: Router, app: &App) -> Router<App> {
    let connect = move |parts: &Parts| client_of(&contract, parts);
    let server = Server::remote(Arc::new(connect), &app.config.public_url, app.stopping.clone());
    let origins = std::iter::once(&app.config.public_url).chain(&app.config.cors_origins);
    let http = Http::new(server, origins.filter_map(|origin| with_port(origin)));
    Router::new().route("/mcp", post(answer).layer(Extension(http)))
}

/// Credential, rate and `Accept` are checked before a byte of the body is read. The server checks the rest.
async fn answer(caller: Caller<AnyToken>, Extension(http): Extension<Http>, request: Request) -> Result {
    let (parts, body) = request.into_parts();
    let accepted = Accepted::from_headers(&parts.headers);
    if accepted.quality("application", "json") == 0 {
        return Err(Problem::NotAcceptable("application/json".into()));
    }
    let takes_stream = accepted.quality("text", "event-stream") > 0;
    let Ok(body) = JsonBody::from_request(Request::from_parts(parts.clone(), body), &()).await;
    let (bytes, memory) = body.message(MESSAGE_MAX).await?;
    if caller.kind == TokenKind::Oauth {
        require_scopes(&caller, memory.work(|| called_tool(&bytes)).await?.as_deref())?;
    }
    let mut answer = pin!(http.answer(Request::from_parts(parts, bytes), takes_stream));
    // A message is parsed before the answer waits for anything. The waker of this poll is lost, which the next poll makes good.
    match memory.work(|| answer.as_mut().now_or_never()).await? {
        Some(answer) => Ok(answer.into_response()),
        None => Ok(answer.await.into_response()),
    }
}

/// The name of the tool that a message calls.
fn called_tool(message: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Message {
        method: String,
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let message: Message = serde_json::from_slice(message).ok()?;
    (message.method == "tools/call").then_some(message.params.name)
}

/// Refuses an app the call of a tool that needs more scopes, with a challenge by which its host asks the person for them. An agent token
/// cannot get more, and is told by the tool.
fn require_scopes(caller: &Caller<AnyToken>, tool: Option<&str>) -> Result<()> {
    match tool.and_then(tools::scopes_of) {
        Some((all, any)) => caller::require(caller.scopes, Scopes::from_slice(all), Scopes::from_slice(any)),
        None => Ok(()),
    }
}

/// A client that sends the requests of a tool as those of the caller of `/mcp`.
fn client_of(contract: &Router, parts: &Parts) -> Client {
    let address = ClientAddress::from_extensions(&parts.extensions);
    let answers = Mutex::new(answers(parts.extensions.get().cloned()));
    let place = parts.extensions.get::<InProgress>().cloned();
    let mut client = Client::new(Inside { contract: contract.clone(), address, place, answers })
        .with_header(SURFACE, HeaderValue::from_static("tool"));
    if let Some(credential) = parts.headers.get(AUTHORIZATION) {
        client = client.with_header(AUTHORIZATION, credential.clone());
    }
    let trace = parts.extensions.get::<Trace>().and_then(|Trace(trace)| trace.to_string().parse().ok());
    match trace {
        Some(trace) => client.with_header(TRACE_PARENT, trace),
        None => client,
    }
}

/// An origin with its port, so that it matches no other.
fn with_port(origin: &str) -> Option<String> {
    let url = Url::parse(origin).ok()?;
    Some(format!("{}://{}:{}", url.scheme(), url.host_str()?, url.port_or_known_default()?))
}

/// The contract's router in this process.
struct Inside {
    contract: Router,
    address: ClientAddress,
    /// The place of the request to `/mcp` among those in progress, which counts for what it causes.
    place: Option<InProgress>,
    /// The memory of the answers that were read.
    answers: Mutex<BodyMemory>,
}

impl Inside {
    /// The answer to a read, for whose parsed form memory is reserved.
    async fn reserved(&self, response: axum::response::Response) -> axum::response::Response {
        let (head, body) = response.into_parts();
        let reserved = match to_bytes(body, usize::MAX).await {
            Ok(bytes) => self.answers.lock().await.parse(&bytes).await.map(|()| bytes),
            Err(error) => Err(Problem::internal(error)),
        };
        match reserved {
            Ok(bytes) => Response::from_parts(head, bytes.into()),
            Err(Problem::PayloadTooHeavy) => {
                Problem::unprocessable("", "holds more than a tool can take at once; ask for less of it")
                    .into_response()
            }
            Err(problem) => problem.into_response(),
        }
    }
}

impl Transport for Inside {
    fn send(&self, request: http::Request<Payload>) -> BoxFuture<'_, Result<Response<BodyStream>, Unreachable>> {
        Box::pin(async move {
            let is_read = request.method() == Method::GET;
            let mut request = request.map(|payload| Body::from(payload.bytes));
            request.extensions_mut().insert(self.address);
            if let Some(place) = &self.place {
                request.extensions_mut().insert(place.clone());
            }
            let Ok(mut response) = self.contract.clone().oneshot(request).await;
            // What a write answers is small.
            if is_read && is_json(response.headers()) {
                response = self.reserved(response).await;
            }
            Ok(response.map(|body| -> BodyStream { Box::pin(body.into_data_stream().map_err(io::Error::other)) }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn an_origin_matches_with_its_port_alone() {
        assert_eq!(with_port("https://a.example").as_deref(), Some("https://a.example:443"));
        assert_eq!(with_port("http://127.0.0.1:8080").as_deref(), Some("http://127.0.0.1:8080"));
        assert_eq!(with_port("http://[::1]").as_deref(), Some("http://[::1]:80"));
    }
}
