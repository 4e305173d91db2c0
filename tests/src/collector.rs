//! A trace collector that stores what the processes export by OTLP over HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
pub use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A collector on a loopback address, which stops when it is dropped.
pub struct Collector {
    port: u16,
    seen: Seen,
    _serving: DropGuard,
}

/// An exported span.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The `service.name` of the process.
    pub service: String,
    /// The name of the span.
    pub name: String,
    /// The kind of the span, such as server or client.
    pub kind: SpanKind,
    /// The trace id in hexadecimal.
    pub trace: String,
    /// The span id in hexadecimal.
    pub id: String,
    /// The id of the parent span in hexadecimal. Empty for the root of a trace.
    pub parent: String,
    /// The duration in nanoseconds.
    pub nanoseconds: u64,
    /// `true` if the span's status is an error.
    pub failed: bool,
    /// The attributes, with their values as texts.
    pub attributes: BTreeMap<String, String>,
}

type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

impl Collector {
    /// Starts a collector that accepts every request.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds a free port");
        let (port, seen) = (listener.local_addr().expect("has an address").port(), Seen::default());
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&seen));
        let stop = CancellationToken::new();
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move { axum::serve(listener, router).with_graceful_shutdown(stopped).await });
        Self { port, seen, _serving: stop.drop_guard() }
    }

    /// The value for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The headers and bodies of all requests so far.
    pub fn requests(&self) -> Vec<(HeaderMap, Bytes)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All spans so far, in the order of arrival.
    pub fn spans(&self) -> Vec<Exported> {
        let requests = self.requests().into_iter().map(|(_, body)| decode(body));
        requests.flat_map(|request| request.resource_spans).flat_map(of_process).collect()
    }

    /// All spans of a trace so far.
    pub fn trace(&self, trace: &str) -> Vec<Exported> {
        self.spans().into_iter().filter(|span| span.trace == trace).collect()
    }
}

async fn take(State(seen): State<Seen>, headers: HeaderMap, body: Bytes) -> StatusCode {
    seen.lock().unwrap_or_else(PoisonError::into_inner).push((headers, body));
    StatusCode::OK
}

fn decode(body: Bytes) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest::decode(body).expect("an ExportTraceServiceRequest")
}

fn of_process(spans: opentelemetry_proto::tonic::trace::v1::ResourceSpans) -> Vec<Exported> {
    let resource = attributes(&spans.resource.expect("a resource").attributes);
    let service = &resource["service.name"];
    spans.scope_spans.into_iter().flat_map(|scope| scope.spans).map(|span| exported(service, &span)).collect()
}

fn exported(service: &str, span: &Span) -> Exported {
    Exported {
        service: service.to_owned(),
        name: span.name.clone(),
        kind: span.kind(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        nanoseconds: span.end_time_unix_nano.checked_sub(span.start_time_unix_nano).expect("ends after its beginning"),
        failed: span.status.as_ref().is_some_and(|status| status.code == 2),
        attributes: attributes(&span.attributes),
    }
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    all.iter().map(|attribute| (attribute.key.clone(), text(attribute.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        other => panic!("an attribute of an unforeseen type: {other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
