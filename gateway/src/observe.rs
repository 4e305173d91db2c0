//! The layer around every request: request id, trace, log line, metrics, and the headers that every response carries.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, LINK};
use http::{HeaderMap, HeaderValue, Method};
use service::telemetry::TraceContext;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::address::ClientAddress;
use crate::audit::RequestId;
use crate::compression::{self, Coding};
use crate::extract::accept::{Accepted, weighted};
use crate::ignored::{IGNORED, KnownParameters};
use crate::problem::Problem;
use crate::rates::Charges;
use crate::server::gate::TooManyInProgress;
use crate::state::App;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SURFACE: HeaderName = HeaderName::from_static("x-service-agent-surface");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// A proxy such as nginx passes a response with `no` on as it arrives (docs/reference/conventions.md#event-streams).
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The label of all methods that are not in the closed set.
pub const OTHER_METHOD: &str = "_OTHER";
/// The label of a route that matches none.
pub const UNMATCHED: &str = "unmatched";

/// The trace context of the request, which committed work carries on.
#[derive(Clone, Copy)]
pub struct Trace(pub TraceContext);

/// The layer around every route.
pub async fn observe(
    State((known, app)): State<(Arc<KnownParameters>, App)>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let request_id = request_id(&request);
    let request_id_text = request_id.to_str().unwrap_or_default().to_owned();
    let trace = only(request.headers(), TRACE_PARENT)
        .and_then(|header| header.to_str().ok())
        .and_then(TraceContext::parse)
        .map_or_else(TraceContext::new_root, |parent| parent.child());
    let route = request.extensions().get::<MatchedPath>().map_or(UNMATCHED.to_owned(), |path| path.as_str().to_owned());
    let method = request.method().clone();
    let ignored = known.ignored(&route, &method, request.uri());
    let surface = only(request.headers(), SURFACE)
        .and_then(|header| header.to_str().ok())
        .filter(|surface| matches!(*surface, "api" | "cli" | "tool" | "browser"));
    let address = ClientAddress::from_extensions(request.extensions());
    // The path template, never the query: preview URLs carry their token there.
    let span = service::trace_span!(
        trace, Server, "request", request_id = request_id_text, address = %address, method = label(&method), route = %route, surface = surface,
        token_id = Empty, account = Empty, status = Empty, error_type = Empty
    );
    let charges = Charges::default();
    let too_many = request.extensions().get::<TooManyInProgress>().copied();
    request.extensions_mut().insert(Trace(trace));
    request.extensions_mut().insert(RequestId(Uuid::try_parse_ascii(request_id.as_bytes()).unwrap_or_default()));
    request.extensions_mut().insert(charges.clone());
    let request = request.map(|body| charges.weighed(body));
    let coding = Coding::preferred(request.headers());

    async move {
        let response = match too_many {
            None => next.run(request).await,
            Some(TooManyInProgress) => {
                Problem::RateLimited("too many requests of this address are in progress".into(), 1).into_response()
            }
        };
        let mut response = compression::compress(&app, &charges, coding, response).await;
        let status = response.status();
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, request_id);
        headers.extend(ignored.map(|names| (IGNORED, names)));
        headers.extend(charges.headers());
        if is_event_stream(headers) {
            headers.insert(BUFFERING, HeaderValue::from_static("no"));
        }
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let elapsed = started.elapsed();
        let labels = [("method", label(&method).to_owned()), ("route", route), ("status", status.as_u16().to_string())];
        metrics::counter!("http_requests_total", &labels).increment(1);
        metrics::histogram!("http_request_duration_seconds", &labels[..2]).record(elapsed.as_secs_f64());
        tracing::info!(status = status.as_u16(), duration_ms = elapsed.as_secs_f64() * 1000.0, "request done");
        let span = Span::current();
        span.record("status", status.as_u16());
        if status.is_server_error() {
            span.record("error_type", status.as_str());
        }
        response
    }
    .instrument(span)
    .await
}

/// The request id: the client's own when it is a UUID, else a new one (docs/reference/conventions.md#request-id).
fn request_id(request: &Request) -> HeaderValue {
    let is_uuid = |header: &&HeaderValue| header.len() == 36 && Uuid::try_parse_ascii(header.as_bytes()).is_ok();
    let fresh = || HeaderValue::from_str(&Uuid::now_v7().to_string()).expect("a UUID is a header value");
    only(request.headers(), REQUEST_ID).filter(is_uuid).cloned().unwrap_or_else(fresh)
}

/// The method in metrics, spans and logs: one of a closed set. Each value that a client could invent would be a series for as long as
/// the process lives.
fn label(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        "CONNECT" => "CONNECT",
        "TRACE" => "TRACE",
        _ => OTHER_METHOD,
    }
}

/// Returns `true` if a response is a stream of server-sent events, of whichever route.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// The value of a header that was sent once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The layer that replaces the response to a read by 406 when the client rejects its media type. It is within the layers that add
/// headers to every response. The marks of a deprecated operation are kept.
pub async fn acceptable(request: Request, next: Next) -> Response {
    let Some(accept) = weighted(request.headers()).filter(|_| request.method().is_safe()) else {
        return next.run(request).await;
    };
    let response = next.run(request).await;
    let Some(media_type) = rejected(&accept, &response) else { return response };
    let mut refused = Problem::NotAcceptable(media_type).into_response();
    for name in [HeaderName::from_static("deprecation"), LINK] {
        refused.headers_mut().extend(response.headers().get(&name).map(|value| (name, value.clone())));
    }
    refused
}

/// The media type of a successful response, if the client rejects it.
fn rejected(accept: &HeaderMap, response: &Response) -> Option<String> {
    let media_type = response.headers().get(CONTENT_TYPE).filter(|_| response.status().is_success())?.to_str().ok()?;
    let (kind, subtype) = media_type.split(';').next()?.trim().split_once('/')?;
    Accepted::from_headers(accept).rejects(kind, subtype).then(|| format!("{kind}/{subtype}"))
}

/// Adds the identity coding with the lowest weight to `Accept-Encoding`, even where the client rejects it: a write that was
/// committed must not be answered with 406. The coding is put first, because a parser may use only the first weight of a repeated
/// coding.
pub async fn always_servable(mut request: Request) -> Request {
    let headers = request.headers_mut();
    let accepted: Vec<HeaderValue> = headers.get_all(ACCEPT_ENCODING).iter().cloned().collect();
    if !accepted.is_empty() {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity;q=0.001"));
    }
    for value in accepted {
        headers.append(ACCEPT_ENCODING, value);
    }
    request
}

/// Turns a panic of a handler into the error envelope; the panic hook has logged it.
pub fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::internal("a handler panicked").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_one_of_a_closed_set() {
        let method = |text: &str| Method::from_bytes(text.as_bytes()).expect("a method");
        for known in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"] {
            assert_eq!(label(&method(known)), known);
        }
        for other in ["get", "PROPFIND", "X", "_OTHER", "INVENTED-BY-SOMEBODY"] {
            assert_eq!(label(&method(other)), OTHER_METHOD);
        }
    }

    #[test]
    fn an_event_stream_is_told_by_its_media_type() {
        let of =
            |media_type: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        for stream in ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream"] {
            assert!(is_event_stream(&of(stream)), "{stream}");
        }
        for other in ["application/json", "text/event-streams", ""] {
            assert!(!is_event_stream(&of(other)), "{other}");
        }
        assert!(!is_event_stream(&HeaderMap::new()));
    }
}
