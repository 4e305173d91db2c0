//! Formats log events as flat JSON objects, one per line.
//!
//! The JSON formatter of tracing-subscriber nests the fields of spans in a list. Log stores search
//! by top-level field, so every field of the event and of its spans is a top-level field here. If
//! names collide, the innermost field wins.
//!
//! **Reason.** `json-subscriber` 0.3.1 flattens, too, but writes a key twice when an event, a span or
//! a fixed field have the same name (its test `flatten_conflict`), and writes an error without its
//! causes. `tracing-flat-json` 0.1.1 writes neither target nor span. An adapter for either would be as long
//! as this layer.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::io::Write as _;

use chrono::SecondsFormat;
use serde::Serializer as _;
use serde::ser::SerializeMap;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::clock;

/// Fields that the layer writes itself. Other fields with these names are dropped, so that no line
/// contains a key twice.
const RESERVED: [&str; 6] = ["timestamp", "level", "process", "target", "span", "message"];

/// The fields in which records of the `log` crate carry their origin. The target is written as the
/// event's target; the others are dropped.
const BRIDGED: [&str; 4] = ["log.target", "log.module_path", "log.file", "log.line"];
/// The buffer capacity kept between lines. Most lines are shorter.
const LINE_KEPT: usize = 4096;

/// A tracing layer that writes one JSON object per event.
pub(super) struct JsonLayer<W> {
    process: &'static str,
    writer: W,
}

impl<W> JsonLayer<W> {
    pub(super) fn new(process: &'static str, writer: W) -> Self {
        Self { process, writer }
    }
}

/// The fields of a span or an event. There are few, so searching a list is faster than building a
/// map.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl<S, W> Layer<S> for JsonLayer<W>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    W: for<'writer> MakeWriter<'writer> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        thread_local! {
            /// All lines of a thread are formatted in one buffer.
            static LINE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            if self.write(line, event, &context).is_ok() {
                line.push(b'\n');
                // A failure to write the log cannot be logged.
                let _ = self.writer.make_writer_for(event.metadata()).write_all(line);
            }
            // Release the memory of an unusually long line, such as a panic with a backtrace.
            line.shrink_to(LINE_KEPT);
        });
    }
}

impl<W> JsonLayer<W> {
    fn write<S>(&self, line: &mut Vec<u8>, event: &Event<'_>, context: &Context<'_, S>) -> serde_json::Result<()>
    where
        S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    {
        let mut fields = Fields::default();
        event.record(&mut fields);
        // Records of the `log` crate carry their real target in a field.
        let target = fields.get("log.target").and_then(Value::as_str).unwrap_or(event.metadata().target());

        let mut serializer = serde_json::Serializer::new(line);
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("timestamp", &clock::now().to_rfc3339_opts(SecondsFormat::Millis, true))?;
        object.serialize_entry("level", event.metadata().level().as_str())?;
        object.serialize_entry("process", self.process)?;
        object.serialize_entry("target", target)?;
        if let Some(span) = context.event_span(event) {
            object.serialize_entry("span", span.name())?;
        }
        if let Some(message) = fields.get("message") {
            object.serialize_entry("message", message)?;
        }
        // From the innermost scope outwards: of fields with the same name, the first one is
        // written. A span's `message` is not the event's.
        let mut written: Vec<&str> = RESERVED.to_vec();
        written.extend(BRIDGED);
        fields.write(&mut object, &mut written)?;
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                fields.write(&mut object, &mut written)?;
            }
        }
        object.end()
    }
}

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Writes the fields that were not written yet.
    fn write<M: SerializeMap>(&self, object: &mut M, written: &mut Vec<&str>) -> Result<(), M::Error> {
        for (name, value) in &self.0 {
            if !written.contains(name) {
                object.serialize_entry(name, value)?;
                written.push(name);
            }
        }
        Ok(())
    }

    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        // tracing keeps the prefix of raw identifiers (`r#type`).
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.set(field, crate::chain(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::telemetry::TraceContext;

    /// The lines that `work` logs.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let output = Arc::new(Mutex::new(Vec::new()));
        let subscriber =
            tracing_subscriber::registry().with(JsonLayer::new("test-process", SharedWriter(Arc::clone(&output))));
        tracing::subscriber::with_default(subscriber, work);
        let output = String::from_utf8(output.lock().expect("not poisoned").clone()).expect("UTF-8");
        output.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    #[derive(Clone)]
    struct SharedWriter(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for SharedWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'writer> MakeWriter<'writer> for SharedWriter {
        type Writer = Self;

        fn make_writer(&'writer self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn an_error_is_reported_with_its_causes_each_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{text}")]
        struct Failure {
            text: &'static str,
            source: Option<Box<Failure>>,
        }
        let cause = Failure { text: "no route to host", source: None };
        let teller = Failure { text: "cannot connect: no route to host", source: Some(Box::new(cause)) };
        let failure = Failure { text: "the store failed", source: Some(Box::new(teller)) };
        let lines = logged(|| tracing::warn!(error = &failure as &dyn Error, "x"));
        assert_eq!(lines[0]["error"], "the store failed: cannot connect: no route to host");
    }

    #[test]
    fn fields_of_the_event_and_its_spans_are_top_level_and_the_inner_one_wins() {
        let lines = logged(|| {
            let outer = tracing::info_span!("outer", shared = "outer", only.outer = 1, message = "not the message");
            let _outer = outer.enter();
            let inner = tracing::info_span!("inner", shared = "inner", late = tracing::field::Empty);
            let _inner = inner.enter();
            inner.record("late", true);
            tracing::warn!(duration_ms = 1.5, level = "field", "two\nlines");
        });
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!(line["message"], "two\nlines");
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["process"], "test-process");
        assert_eq!(line["span"], "inner");
        assert_eq!(line["shared"], "inner");
        assert_eq!(line["only.outer"], 1);
        assert_eq!(line["late"], true);
        assert_eq!(line["duration_ms"], 1.5);
        assert!(line["timestamp"].as_str().is_some_and(|timestamp| timestamp.ends_with('Z')));
    }

    #[test]
    fn a_trace_span_puts_its_ids_on_every_line_inside() {
        let context = TraceContext::new_root();
        let lines = logged(|| {
            crate::trace_span!(context, Server, "request", route = "/healthz").in_scope(|| tracing::info!("served"))
        });
        assert_eq!(lines[0]["trace_id"], context.trace_id_hex());
        assert_eq!(lines[0]["span_id"], context.span_id_hex());
        assert_eq!(lines[0]["route"], "/healthz");
    }
}
