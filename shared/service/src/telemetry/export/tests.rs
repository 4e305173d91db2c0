use std::sync::{Arc, Mutex};

use tracing::field::Empty;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::trace_span;

#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Vec<SpanData>>>);

impl Sink for Taken {
    fn take(&self, span: SpanData) {
        self.0.lock().expect("not poisoned").push(span);
    }
}

/// The spans that `work` exports.
fn exported(work: impl FnOnce()) -> Vec<SpanData> {
    let taken = Taken::default();
    let filter = FilterFn::new(ExportLayer::wants).with_max_level_hint(LevelFilter::ERROR);
    let subscriber = tracing_subscriber::registry().with(ExportLayer::new(taken.clone()).with_filter(filter));
    tracing::subscriber::with_default(subscriber, work);
    std::mem::take(&mut *taken.0.lock().expect("not poisoned"))
}

fn attribute<'a>(span: &'a SpanData, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == key).map(|attribute| &attribute.value)
}

#[test]
fn a_span_is_exported_with_the_ids_of_its_context() {
    let caller = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").expect("valid");
    let context = caller.child();
    let spans = exported(|| drop(trace_span!(context, Server, "request", method = "GET", route = "/canvases/{id}")));
    assert_eq!(spans.len(), 1);
    let span = &spans[0];
    assert_eq!(span.span_context.trace_id().to_bytes(), caller.trace_id);
    assert_eq!(span.span_context.span_id().to_bytes(), context.span_id);
    assert_eq!(span.parent_span_id.to_bytes(), caller.span_id);
    assert!(span.parent_span_is_remote && span.span_context.is_sampled());
    assert_eq!((&span.span_kind, &*span.name), (&SpanKind::Server, "GET /canvases/{id}"));
    assert!(span.end_time >= span.start_time);
    assert_eq!(span.status, Status::Unset);
    let keys: Vec<&str> = span.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert_eq!(keys, ["http.request.method", "http.route"], "ids are the span's own");
}

#[test]
fn a_root_has_no_parent_and_the_parent_of_a_child_in_the_same_process_is_local() {
    let root = TraceContext::new_root();
    let spans = exported(|| {
        let _task = trace_span!(root, Consumer, "task", queue = "webhook");
        drop(trace_span!(root.child(), Client, "deliver"));
    });
    let (client, task) = (&spans[0], &spans[1]);
    assert_eq!((&*task.name, task.parent_span_id), ("task webhook", SpanId::INVALID));
    assert!(!task.parent_span_is_remote);
    assert_eq!((&*client.name, client.parent_span_id.to_bytes()), ("deliver", root.span_id));
    assert!(!client.parent_span_is_remote);
}

#[test]
fn fields_that_are_known_late_are_attributes_and_an_error_is_the_status() {
    let spans = exported(|| {
        let span = trace_span!(TraceContext::new_root(), Server, "request", status = Empty, error_type = Empty);
        span.record("status", 404_u16);
        span.record("status", 503_u16);
        span.record("error_type", "503");
    });
    assert_eq!(attribute(&spans[0], "http.response.status_code"), Some(&Value::I64(503)));
    assert_eq!(spans[0].status, Status::error("503"));
}

#[test]
fn what_is_not_sampled_and_what_has_no_trace_is_not_exported() {
    let unsampled = TraceContext { flags: 0b10, ..TraceContext::new_root() };
    let spans = exported(|| {
        drop(trace_span!(unsampled, Internal, "work"));
        drop(tracing::error_span!("a library's"));
        tracing::error!("an event");
    });
    assert_eq!(spans, []);
}

#[test]
fn without_the_layer_opening_a_span_does_nothing() {
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        drop(trace_span!(TraceContext::new_root(), Internal, "work"));
    });
}
