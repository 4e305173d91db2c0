//! The HTTP server for health probes and metrics.

use std::io;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::readiness::{Readiness, Status};
use crate::metrics::Metrics;

/// Media type of the Prometheus text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/healthz`, `/readyz` and `/metrics` until `stop` is canceled. Pass
/// [`Lifecycle::aborted`](crate::lifecycle::Lifecycle) and spawn it as a support task, so that
/// `/readyz` reports the shutdown while it is in progress.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    readiness: Readiness,
    metrics: Metrics,
    stop: CancellationToken,
) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(render).with_state(metrics));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    let report = readiness.report();
    let code = if report.status == Status::Unready { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (code, [(header::CACHE_CONTROL, "no-store")], Json(report))
}

async fn render(State(metrics): State<Metrics>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, METRICS_TYPE)], metrics.render())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// The status and the body of a GET request over a new connection.
    async fn fetch(address: std::net::SocketAddr, path: &str) -> (u16, String) {
        let mut connection = TcpStream::connect(address).await.expect("listening");
        let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.expect("request sent");
        let mut response = String::new();
        connection.read_to_string(&mut response).await.expect("response read");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        (status, body.to_owned())
    }

    #[tokio::test]
    async fn the_probes_answer_over_http_and_tell_of_stopping() {
        let (stopping, stop) = (CancellationToken::new(), CancellationToken::new());
        let readiness = Readiness::new(stopping.clone());
        let metrics = Metrics::install().expect("installed");
        let database = readiness.component("test database", true);
        readiness.component("test redis", false).set_failing("connection refused");
        metrics::counter!("test_probed_total").increment(1);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = tokio::spawn(serve(listener, readiness, metrics, stop.clone()));

        assert_eq!(fetch(address, "/healthz").await, (200, "ok".to_owned()));

        let (status, body) = fetch(address, "/readyz").await;
        assert_eq!(status, 503);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(body["status"], "unready");

        database.set_ok();
        let (status, body) = fetch(address, "/readyz").await;
        assert_eq!(status, 200);
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let expected = json!({
            "status": "degraded",
            "components": {
                "test database": {"ok": true, "required": true},
                "test redis": {"ok": false, "required": false, "message": "connection refused"},
            },
        });
        assert_eq!(body, expected);

        let (status, body) = fetch(address, "/metrics").await;
        assert_eq!(status, 200);
        for sample in [
            "test_probed_total 1",
            r#"canvas_component_up{component="test database"} 1"#,
            r#"canvas_component_up{component="test redis"} 0"#,
        ] {
            assert!(body.contains(sample), "{sample}: {body}");
        }

        stopping.cancel();
        assert_eq!(fetch(address, "/readyz").await.0, 503);
        assert_eq!(fetch(address, "/healthz").await.0, 200);

        stop.cancel();
        server.await.expect("no panic").expect("ends well");
    }
}
