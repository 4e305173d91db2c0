//! Logs and trace context.
//!
//! [`init`] sets up one subscriber a process: JSON lines on standard error for machines, coloured text when standard error is a terminal.
//! The [`TraceContext`] comes in with a request, travels through the database and the broker as its header form and goes out with webhooks,
//! so that everything one request caused, in whichever process, shares a `trace_id`; [`trace_span!`](crate::trace_span) puts it on every
//! line logged inside.

mod context;
mod json;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal as _, stderr};

use thiserror::Error;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer as _, fmt};

pub use context::TraceContext;
use json::JsonLayer;

/// Why logging was not set up.
#[derive(Debug, Error)]
pub enum TelemetryError {
    /// The filter is not in the syntax of `CANVAS_LOG`.
    #[error("the log filter is not understood")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// The process already has a subscriber.
    #[error("logging is already set up")]
    AlreadySet(#[source] TryInitError),
}

/// Sends logs of `process` that pass `filter` to standard error, and logs every panic as one line.
///
/// # Errors
///
/// [`TelemetryError`] when the filter is wrong or a subscriber is already installed.
pub fn init(process: &'static str, filter: &str) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_new(filter).map_err(TelemetryError::Filter)?;
    let output = if stderr().is_terminal() {
        fmt::layer().with_writer(stderr).boxed()
    } else {
        JsonLayer::new(process, stderr).boxed()
    };
    tracing_subscriber::registry().with(output.with_filter(filter)).try_init().map_err(TelemetryError::AlreadySet)?;
    log_panics();
    Ok(())
}

/// Logs panics as structured lines, in the span they happen in, instead of several lines of text.
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

/// Opens a span that carries a trace context: `trace_span!(context, "job", job.id = %id)`. Every line logged inside has `trace_id`
/// and `span_id`. The span is of level error, which says nothing of its lines: a filter such as `warn` would drop a lower one, ids included.
#[macro_export]
macro_rules! trace_span {
    ($context:expr, $name:expr $(, $($fields:tt)*)?) => {{
        let context: &$crate::telemetry::TraceContext = &$context;
        $crate::telemetry::tracing::error_span!(
            $name,
            trace_id = %context.trace_id_hex(),
            span_id = %context.span_id_hex()
            $(, $($fields)*)?
        )
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
            lines[0]["panic.location"].as_str().is_some_and(|location| location.contains("telemetry.rs")),
            "{logged}"
        );
        assert_eq!(lines[0]["trace_id"].as_str().map(str::len), Some(32));
    }

    /// What the test above does when it runs itself again: logging can be set up once a process.
    fn panic_in_a_trace() {
        init("canvas-test", "warn").expect("set up once");
        assert!(matches!(init("canvas-test", "warn"), Err(TelemetryError::AlreadySet(_))));
        tracing::info!("below the filter");
        trace_span!(TraceContext::new_root(), "work").in_scope(|| panic!("a defect\nof two lines"));
    }

    #[test]
    fn a_wrong_filter_is_refused() {
        assert!(matches!(init("canvas-test", "a=b=c"), Err(TelemetryError::Filter(_))));
    }
}
