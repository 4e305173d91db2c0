//! Export of spans to the operator's collector: OTLP, protobuf over HTTP (`http/protobuf`).
//!
//! **Guarantee.** Nothing waits for the collector. A span is put into a queue of [`QUEUE`] or dropped. Spans that are dropped
//! or not accepted are counted in `canvas_trace_spans_total` and logged at most once a minute. [`Traces::flush`] ends within
//! [`FLUSH_LIMIT`].
//!
//! **Mechanism.** OpenTelemetry's batch processor has a separate thread, on which its exporter makes requests and retries them
//! for [`EXPORT_LIMIT`]. `OTEL_BSP_SCHEDULE_DELAY` and `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` apply. The queue is limited here, so
//! that dropped spans can be counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{HeaderMap, Request, Response};
use opentelemetry::KeyValue;
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _};
use rustls::RootCertStore;
use thiserror::Error;
use tokio::runtime::Handle;
use url::Url;

use super::export::Sink;
use crate::blocking::Blocking;

/// Maximum number of spans that wait for the collector, including those being sent.
const QUEUE: usize = 2048;
/// Limit of a batch, retries included.
const EXPORT_LIMIT: Duration = Duration::from_secs(5);
/// Limit for sending the last spans when a process ends.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);
/// Interval between two warnings about lost spans.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The collector that traces are exported to.
#[derive(Clone, Debug)]
pub struct Collector<'a> {
    /// The base URL, `OTEL_EXPORTER_OTLP_ENDPOINT`. The exporter adds `/v1/traces`.
    pub endpoint: &'a Url,
    /// The request headers, `OTEL_EXPORTER_OTLP_HEADERS`.
    pub headers: &'a HeaderMap,
    /// The attribute `service.name` of the spans.
    pub service: &'a str,
}

/// The reason why spans cannot be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The machine's TLS configuration is unusable.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The HTTP client cannot be built.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
    /// OpenTelemetry's exporter cannot be built.
    #[error("cannot build the exporter")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
}

/// The exporter of this process; empty without a collector.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Outlet>);

#[derive(Clone, Debug)]
pub(super) struct Outlet {
    processor: Arc<BatchSpanProcessor>,
    tally: Arc<Tally>,
}

/// Counts of exported and lost spans.
#[derive(Debug, Default)]
struct Tally {
    waiting: AtomicUsize,
    /// Lost spans that were not logged yet.
    lost: AtomicU64,
    warned: Mutex<Option<Instant>>,
}

impl Traces {
    /// Exports the spans that have ended so far. Returns within three seconds, whatever the
    /// collector does.
    pub async fn flush(self) {
        let Self(Some(outlet)) = self else { return };
        // After a timeout, the remaining spans are not counted, because the process ends.
        if let Ok(Err(error)) = Blocking::new(1).run(move || outlet.processor.shutdown_with_timeout(FLUSH_LIMIT)).await
        {
            tracing::warn!(error = %error, "the last traces may not have reached the collector");
        }
    }
}

impl From<Outlet> for Traces {
    fn from(outlet: Outlet) -> Self {
        Self(Some(outlet))
    }
}

impl Outlet {
    /// Creates the exporter for `collector`. Must be called on the runtime that will run its
    /// requests.
    pub(super) fn open(collector: &Collector<'_>) -> Result<Self, ExportError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(Transport { client: client(collector.headers)?, runtime: Handle::current() })
            .with_endpoint(format!("{}/v1/traces", collector.endpoint.as_str().trim_end_matches('/')))
            .with_timeout(EXPORT_LIMIT)
            .build()
            .map_err(ExportError::Exporter)?;
        let tally = Arc::<Tally>::default();
        let mut processor = BatchSpanProcessor::builder(Tallied { exporter, tally: Arc::clone(&tally) })
            .with_batch_config(BatchConfigBuilder::default().with_max_queue_size(QUEUE).build())
            .build();
        let resource = Resource::builder()
            .with_service_name(collector.service.to_owned())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        processor.set_resource(&resource);
        Ok(Self { processor: Arc::new(processor), tally })
    }
}

impl Sink for Outlet {
    fn take(&self, span: SpanData) {
        if self.tally.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            return self.processor.on_end(span);
        }
        self.tally.waiting.fetch_sub(1, Ordering::Relaxed);
        self.tally.lost.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("canvas_trace_spans_total", "outcome" => "dropped").increment(1);
    }
}

impl Tally {
    fn exported(&self, spans: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let outcome = if result.is_ok() { "exported" } else { "failed" };
        metrics::counter!("canvas_trace_spans_total", "outcome" => outcome).increment(spans as u64);
        if result.is_err() {
            self.lost.fetch_add(spans as u64, Ordering::Relaxed);
        }
        if let Some(lost) = self.lost_to_report(Instant::now()) {
            let error = result.as_ref().err().map(ToString::to_string);
            tracing::warn!(spans = lost, error, "{lost} spans were lost on their way to the collector");
        }
    }

    /// Number of spans lost since the last warning, if another one is due.
    fn lost_to_report(&self, now: Instant) -> Option<u64> {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_some_and(|warned| now.saturating_duration_since(warned) < WARNING_INTERVAL) {
            return None;
        }
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| {
            *warned = Some(now);
            lost
        })
    }
}

/// OpenTelemetry's exporter with counters for its results.
#[derive(Debug)]
struct Tallied<E> {
    exporter: E,
    tally: Arc<Tally>,
}

impl<E: SpanExporter> SpanExporter for Tallied<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.tally.exported(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Sends the exporter's requests on the process's runtime, because the exporter's own thread has
/// none.
#[derive(Debug)]
struct Transport {
    client: reqwest::Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { client.send_bytes(request).await }).await?
    }
}

/// A client that adds `headers` and follows no redirects. Servers are verified against the system's roots.
#[expect(
    clippy::disallowed_methods,
    reason = "the egress guard is for what callers make us call; the collector is the operator's own, and commonly in a private network"
)]
fn client(headers: &HeaderMap) -> Result<reqwest::Client, ExportError> {
    let mut roots = RootCertStore::empty();
    // A machine without roots can still reach a collector over plain HTTP.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(ExportError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(EXPORT_LIMIT)
        .default_headers(headers.clone())
        .build()
        .map_err(ExportError::Client)
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn losses_are_reported_once_a_minute_with_their_number() {
        let tally = Tally::default();
        tally.waiting.store(12, Ordering::Relaxed);
        assert_eq!(tally.lost_to_report(Instant::now()), None);
        tally.exported(5, &Ok(()));
        assert_eq!((tally.waiting.load(Ordering::Relaxed), tally.lost.load(Ordering::Relaxed)), (7, 0));
        let failed = Err(OTelSdkError::InternalFailure("refused".to_owned()));
        tally.exported(3, &failed);
        assert_eq!(tally.lost.load(Ordering::Relaxed), 0, "reported at once");
        tally.exported(4, &failed);
        assert_eq!(tally.lost.load(Ordering::Relaxed), 4, "kept for the next warning");
        assert_eq!(tally.lost_to_report(Instant::now()), None);
        assert_eq!(tally.lost_to_report(Instant::now() + WARNING_INTERVAL), Some(4));
    }
}
