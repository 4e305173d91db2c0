//! What surrounds every request: its id, its trace, its closing log line, its metrics, and the headers that every
//! response carries.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, HeaderName};
use service::telemetry::TraceContext;
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const SURFACE: HeaderName = HeaderName::from_static("x-service-agent-surface");

/// The request's trace, for what the request commits.
#[derive(Clone, Copy)]
pub struct Trace(pub TraceContext);

/// Where the rate limiter leaves what the response has to tell (decisions 1.11).
#[derive(Clone, Default)]
pub struct RateLimitHeaders(Arc<OnceLock<[(HeaderName, u64); 3]>>);

impl RateLimitHeaders {
    /// Notes a decision; the first one of a request counts.
    pub fn set(&self, decision: &cache::RateDecision) {
        let _ = self.0.set([
            (HeaderName::from_static("ratelimit-limit"), u64::from(decision.limit)),
            (HeaderName::from_static("ratelimit-remaining"), u64::from(decision.remaining)),
            (HeaderName::from_static("ratelimit-reset"), whole_seconds(decision.reset_after)),
        ]);
    }
}

/// Whole seconds, rounded up: who waits so long passes.
pub fn whole_seconds(duration: std::time::Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The layer around every route.
pub async fn observe(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = request_id(&request);
    let request_id_text = request_id.to_str().unwrap_or_default().to_owned();
    let trace = request
        .headers()
        .get("traceparent")
        .and_then(|header| header.to_str().ok())
        .and_then(TraceContext::parse)
        .map_or_else(TraceContext::new_root, |parent| parent.child());
    let route =
        request.extensions().get::<MatchedPath>().map_or("unmatched".to_owned(), |path| path.as_str().to_owned());
    let method = request.method().clone();
    let surface = request
        .headers()
        .get(SURFACE)
        .and_then(|header| header.to_str().ok())
        .filter(|surface| matches!(*surface, "api" | "cli" | "tool" | "browser"));
    // The path's template and never its query: previews carry their capability there.
    let span = service::trace_span!(
        trace, Server, "request", request_id = request_id_text, method = %method, route = %route, surface = surface,
        token_id = Empty, account = Empty, status = Empty, error_type = Empty
    );
    let rate = RateLimitHeaders::default();
    request.extensions_mut().insert(Trace(trace));
    request.extensions_mut().insert(rate.clone());

    async move {
        let mut response = next.run(request).await;
        let status = response.status();
        let headers = response.headers_mut();
        headers.insert(REQUEST_ID, request_id);
        if let Some(rate) = rate.0.get() {
            headers.extend(rate.iter().map(|(name, value)| (name.clone(), HeaderValue::from(*value))));
        }
        if !headers.contains_key(CACHE_CONTROL) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        let elapsed = started.elapsed();
        let labels = [("method", method.to_string()), ("route", route), ("status", status.as_u16().to_string())];
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

/// A client's own id when it is a UUID, else a fresh one (decisions 1.1).
fn request_id(request: &Request) -> HeaderValue {
    let is_uuid = |header: &&HeaderValue| header.len() == 36 && Uuid::try_parse_ascii(header.as_bytes()).is_ok();
    let fresh = || HeaderValue::from_str(&Uuid::now_v7().to_string()).expect("a UUID is a header value");
    request.headers().get(REQUEST_ID).filter(is_uuid).cloned().unwrap_or_else(fresh)
}

/// Lets the plain form come last among those that a client accepts, also where it refuses it: the answer to a write that was done
/// cannot be a 406. It stands first, since of one coding that is there twice the first weight may be the one that counts.
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

/// Turns a panic of a handler into the envelope; the panic hook has logged it.
pub fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    Problem::internal("a handler panicked").into_response()
}
