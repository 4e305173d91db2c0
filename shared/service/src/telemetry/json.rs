//! Log lines as flat JSON objects.
//!
//! The formatter that comes with tracing-subscriber nests the fields of spans in a list; log stores search by top-level field, so that here
//! every field of the event and of the spans around it is a field of the line. The inner one wins where names meet.

use std::fmt;
use std::io::Write as _;

use chrono::SecondsFormat;
use serde::Serializer as _;
use serde::ser::SerializeMap as _;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::clock;

/// What the layer writes itself; fields of these names are dropped, so that no line has a key twice.
const RESERVED: [&str; 6] = ["timestamp", "level", "process", "target", "span", "message"];

/// Writes one JSON object a line for each event.
pub(super) struct JsonLayer<W> {
    process: &'static str,
    writer: W,
}

impl<W> JsonLayer<W> {
    pub(super) fn new(process: &'static str, writer: W) -> Self {
        Self { process, writer }
    }
}

/// The fields of a span, kept with it.
#[derive(Default)]
struct Fields(Map<String, Value>);

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
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(Fields(of_span)) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.clone());
            }
        }
        // A span's field called `message` is not the event's message.
        fields.0.remove("message");
        event.record(&mut fields);
        let span = context.event_span(event).map(|span| span.name());
        if let Ok(mut line) = self.line(event, span, fields.0) {
            line.push(b'\n');
            // A log that cannot be written cannot be reported either.
            let _ = self.writer.make_writer_for(event.metadata()).write_all(&line);
        }
    }
}

impl<W> JsonLayer<W> {
    fn line(
        &self,
        event: &Event<'_>,
        span: Option<&str>,
        mut fields: Map<String, Value>,
    ) -> serde_json::Result<Vec<u8>> {
        // Records of the `log` crate arrive with their real target in a field.
        let bridged = fields.remove("log.target");
        for position in ["log.module_path", "log.file", "log.line"] {
            fields.remove(position);
        }
        let target = bridged.as_ref().and_then(Value::as_str).unwrap_or(event.metadata().target());

        let mut line = Vec::with_capacity(512);
        let mut serializer = serde_json::Serializer::new(&mut line);
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("timestamp", &clock::now().to_rfc3339_opts(SecondsFormat::Millis, true))?;
        object.serialize_entry("level", event.metadata().level().as_str())?;
        object.serialize_entry("process", self.process)?;
        object.serialize_entry("target", target)?;
        if let Some(span) = span {
            object.serialize_entry("span", span)?;
        }
        if let Some(message) = fields.get("message") {
            object.serialize_entry("message", message)?;
        }
        for (name, value) in fields.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str())) {
            object.serialize_entry(name, value)?;
        }
        object.end()?;
        Ok(line)
    }
}

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        // Raw identifiers (`r#type`) keep their prefix in tracing.
        let name = field.name();
        self.0.insert(name.strip_prefix("r#").unwrap_or(name).to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
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
        let lines =
            logged(|| crate::trace_span!(context, "request", route = "/healthz").in_scope(|| tracing::info!("served")));
        assert_eq!(lines[0]["trace_id"], context.trace_id_hex());
        assert_eq!(lines[0]["span_id"], context.span_id_hex());
        assert_eq!(lines[0]["route"], "/healthz");
    }
}
