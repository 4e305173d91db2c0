//! Logs, trace context and exported traces (docs/reference/configuration.md#logs, docs/reference/configuration.md#traces).
//!
//! [`init`] sets up one subscriber per process: JSON lines on standard error, colored text when standard error is a terminal,
//! and, if a [`Collector`] is configured, the export of traces to it. The [`TraceContext`] comes in with a request, travels
//! through the database and the broker in its header form and goes out with webhooks, so that everything that one request
//! causes, in any process, has the same `trace_id`. [`trace_span!`](crate::trace_span) puts it on every line logged inside, and
//! creates the span that is exported.

mod context;
mod export;
mod json;
mod otlp;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal as _, stderr};

use thiserror::Error;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

pub use context::TraceContext;
use export::ExportLayer;
#[doc(hidden)]
pub use export::open;
use json::JsonLayer;
pub use opentelemetry::trace::SpanKind;
use otlp::Outlet;
pub use otlp::{Collector, ExportError, Traces};

/// The reason why logging was not set up.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The filter does not have the syntax of `CANVAS_LOG`.
    #[error("invalid log filter")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// Spans cannot be exported.
    #[error("cannot set up the export of traces")]
    Export(#[from] ExportError),
    /// The process already has a subscriber.
    #[error("logging is already set up")]
    AlreadySet(#[source] TryInitError),
}

/// Sends logs of `process` that pass `filter` to standard error, logs every panic as one line, and exports traces to
/// `collector`, if configured, independently of the log filter. With a collector it must be called on a runtime.
///
/// # Errors
///
/// [`TelemetryError`] when the filter is invalid, a subscriber is already installed or the export cannot be set up. A collector
/// that does not answer is not an error.
pub fn init(process: &'static str, filter: &str, collector: Option<&Collector<'_>>) -> Result<Traces, TelemetryError> {
    // The lines of the protocol library contain the caller's words. The request's own line has the same facts without them.
    let filter = EnvFilter::try_new(format!("rmcp=off,{filter}")).map_err(TelemetryError::Filter)?;
    let output = if stderr().is_terminal() {
        fmt::layer().with_writer(stderr).boxed()
    } else {
        JsonLayer::new(process, stderr).boxed()
    };
    let outlet = collector.map(Outlet::open).transpose()?;
    let export = outlet.clone().map(|outlet| {
        let wanted = FilterFn::new(ExportLayer::wants).with_max_level_hint(LevelFilter::ERROR);
        ExportLayer::new(outlet).with_filter(wanted)
    });
    tracing_subscriber::registry()
        .with(output.with_filter(filter))
        .with(export)
        .try_init()
        .map_err(TelemetryError::AlreadySet)?;
    log_panics();
    Ok(outlet.map(Traces::from).unwrap_or_default())
}

/// Logs panics as structured lines, in the span in which they happen, instead of several lines of text.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
        tracing::error!(
            panic.message = panic.payload_as_str().unwrap_or("no message"),
            panic.location = panic.location().map(tracing::field::display),
            panic.backtrace = backtrace,
            "a thread panicked"
        );
    }));
}

/// Opens a span that carries a trace context: `trace_span!(context, Consumer, "job", job.id =
/// %id)`. The second argument is a [`SpanKind`]. Every line logged inside has `trace_id` and
/// `span_id`. The span is exported under these ids, with its fields as attributes, so a field must
/// not contain a secret. `method`, `route`, `status` and `queue` are exported under the names of
/// OpenTelemetry's conventions. If `error_type` is recorded, the exported span has an error status.
///
/// The level of the span is `error`, whatever the level of its lines, because a filter such as
/// `warn` would disable a span of a lower level and remove the ids from its lines.
#[macro_export]
macro_rules! trace_span {
    ($context:expr, $kind:ident, $name:expr $(, $($fields:tt)*)?) => {{
        let context: &$crate::telemetry::TraceContext = &$context;
        let span = $crate::telemetry::tracing::error_span!(
            $name,
            trace_id = %context.trace_id_hex(),
            span_id = %context.span_id_hex()
            $(, $($fields)*)?
        );
        $crate::telemetry::open(&span, context, $crate::telemetry::SpanKind::$kind);
        span
    }};
}

#[doc(hidden)]
pub use tracing;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_panic_is_logged_as_one_json_line_with_the_ids_of_its_trace() {
        const CHILD: &str = "SERVICE_TEST_PANIC";
        const NAME: &str = "telemetry::tests::a_panic_is_logged_as_one_json_line_with_the_ids_of_its_trace";
        if std::env::var_os(CHILD).is_some() {
            return panic_in_a_trace();
        }
        let output = Command::new(std::env::current_exe().expect("this test binary"))
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("runs");
        let logged = String::from_utf8(output.stderr).expect("UTF-8");
        let lines: Vec<serde_json::Value> = logged.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(lines.len(), 1, "{logged}");
        assert_eq!(lines[0]["process"], "canvas-test");
        assert_eq!(lines[0]["message"], "a thread panicked");
        assert_eq!(lines[0]["panic.message"], "a defect\nof two lines");
        assert!(
            lines[0]["panic.location"].as_str().is_some_and(|location| location.contains("telemetry/mod.rs")),
            "{logged}"
        );
        assert_eq!(lines[0]["trace_id"].as_str().map(str::len), Some(32));
    }

    /// The body of the test above when it runs itself as a child process, because logging can be
    /// set up only once per process.
    fn panic_in_a_trace() {
        init("canvas-test", "warn", None).expect("set up once");
        assert!(matches!(init("canvas-test", "warn", None), Err(TelemetryError::AlreadySet(_))));
        tracing::info!("below the filter");
        trace_span!(TraceContext::new_root(), Internal, "work").in_scope(|| panic!("a defect\nof two lines"));
    }

    #[test]
    fn a_wrong_filter_is_refused() {
        assert!(matches!(init("canvas-test", "a=b=c", None), Err(TelemetryError::Filter(_))));
    }
}
