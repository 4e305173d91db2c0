//! Exports the spans that [`trace_span!`](crate::trace_span) opens as OpenTelemetry spans.
//!
//! **Guarantee.** An exported span has the ids of the [`TraceContext`] it was opened with. These
//! are the ids in its log lines, in the database, in the broker message and in the webhook header.
//!
//! **Mechanism.** A separate tracing layer receives only spans that carry a trace id. It keeps
//! their fields and creates the exported span when they close. [`open`] passes the ids in binary
//! form, not as fields. Without a collector the layer is not installed, and `open` does nothing.
//!
//! **Reason.** `tracing-opentelemetry` 0.34 lets the OpenTelemetry SDK create the ids, and
//! `SpanBuilder` of `opentelemetry` 0.33 takes none. Ours are created before there is a span (for a
//! request) or stored between two processes (for a task), so a trace would contain two sets of ids.
//! Batches, retries and the protocol are OpenTelemetry's own crates.

use std::borrow::Cow;
use std::fmt;
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Span, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use super::TraceContext;
use crate::clock;

/// The field that marks a span with a trace context.
const MARK: &str = "trace_id";
/// Fields that are not exported as attributes, because the span itself contains them.
const IDS: [&str; 2] = [MARK, "span_id"];
/// Fields that have another name in OpenTelemetry's semantic conventions than in our logs.
const CONVENTIONS: [(&str, &str); 6] = [
    ("address", "client.address"),
    ("method", METHOD),
    ("route", ROUTE),
    ("status", "http.response.status_code"),
    ("queue", QUEUE),
    ("error_type", ERROR),
];
const METHOD: &str = "http.request.method";
const ROUTE: &str = "http.route";
const QUEUE: &str = "messaging.destination.name";
const ERROR: &str = "error.type";
/// The "sampled" bit of the trace flags.
const SAMPLED: u8 = 1;

/// A receiver of finished spans.
pub(super) trait Sink: Send + Sync + 'static {
    /// Takes a finished span. Must not block.
    fn take(&self, span: SpanData);
}

/// A tracing layer that creates spans for a sink.
pub(super) struct ExportLayer {
    sink: Box<dyn Sink>,
    scope: InstrumentationScope,
}

/// An open span.
struct Recording {
    started: (SystemTime, Instant),
    attributes: Vec<KeyValue>,
    position: Option<(TraceContext, SpanKind)>,
}

impl ExportLayer {
    pub(super) fn new(sink: impl Sink) -> Self {
        let scope = InstrumentationScope::builder("canvas-service").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { sink: Box::new(sink), scope }
    }

    /// Returns `true` if the layer is interested in a span or event. Without this filter, every library would
    /// create all its spans and events for the layer.
    pub(super) fn wants(metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.fields().field(MARK).is_some()
    }
}

/// Assigns a trace context to an open span, if spans are exported.
#[doc(hidden)]
pub fn open(span: &Span, context: &TraceContext, kind: SpanKind) {
    span.with_subscriber(|(id, dispatch)| {
        if dispatch.is::<ExportLayer>()
            && let Some(registry) = dispatch.downcast_ref::<Registry>()
            && let Some(span) = registry.span(id)
            && let Some(recording) = span.extensions_mut().get_mut::<Recording>()
        {
            recording.position = Some((*context, kind));
        }
    });
}

impl<S> Layer<S> for ExportLayer
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let started = (clock::precise(), Instant::now());
        let mut recording = Recording { started, attributes: Vec::new(), position: None };
        attributes.record(&mut recording);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(recording);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(recording) = span.extensions_mut().get_mut::<Recording>()
        {
            values.record(recording);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let recording = span.extensions_mut().remove::<Recording>();
        if let Some(ended) = recording.and_then(|recording| recording.end(span.name(), &self.scope)) {
            self.sink.take(ended);
        }
    }
}

impl Recording {
    /// The exported span, or `None` if the trace is not sampled.
    fn end(mut self, name: &'static str, scope: &InstrumentationScope) -> Option<SpanData> {
        let (context, kind) = self.position.take()?;
        if context.flags & SAMPLED == 0 {
            return None;
        }
        let name = match (&kind, self.text(METHOD), self.text(ROUTE), self.text(QUEUE)) {
            (SpanKind::Server, Some(method), Some(route), _) => Cow::Owned(format!("{method} {route}")),
            (_, _, _, Some(queue)) => Cow::Owned(format!("{name} {queue}")),
            _ => Cow::Borrowed(name),
        };
        let (start_time, began) = self.started;
        Some(SpanData {
            span_context: SpanContext::new(
                TraceId::from_bytes(context.trace_id),
                SpanId::from_bytes(context.span_id),
                TraceFlags::new(context.flags),
                false,
                TraceState::default(),
            ),
            parent_span_id: context.parent_id.map_or(SpanId::INVALID, SpanId::from_bytes),
            // The parent of a span that receives or relays a message may belong to another process.
            // The parent of any other span is in this process.
            parent_span_is_remote: context.parent_id.is_some() && kind != SpanKind::Client,
            span_kind: kind,
            name,
            start_time,
            // The end comes from the monotonic clock: a step of the wall clock must not put it
            // before the start.
            end_time: start_time + began.elapsed(),
            status: self.text(ERROR).map_or(Status::Unset, |error| Status::error(error.to_owned())),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            instrumentation_scope: scope.clone(),
        })
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.key.as_str() == key).and_then(|attribute| {
            match &attribute.value {
                Value::String(text) => Some(text.as_str()),
                _ => None,
            }
        })
    }

    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        if IDS.contains(&field.name()) {
            return;
        }
        let key = CONVENTIONS.iter().find(|(ours, _)| *ours == field.name()).map_or(field.name(), |(_, theirs)| theirs);
        match self.attributes.iter_mut().find(|attribute| attribute.key.as_str() == key) {
            Some(attribute) => attribute.value = value.into(),
            None => self.attributes.push(KeyValue::new(key, value)),
        }
    }
}

impl Visit for Recording {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.to_owned());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // OpenTelemetry has no unsigned integers.
        self.set(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}

#[cfg(test)]
mod tests;
