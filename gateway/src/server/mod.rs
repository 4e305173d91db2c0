//! The accept loop: hyper under our own limits, because `axum::serve` has none (reliability.md 1).
//!
//! A connection may idle 60 s, has 10 s for a request's head and 10 s for each piece of a body, must take what it is
//! sent within 20 s, and there are at most 10000 of them.

mod drain;
mod patience;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tower_http::timeout::TimeoutBody;

use drain::Drained;
use patience::{Patient, Phase};

/// Open connections of one process.
const CONNECTIONS_MAX: usize = 10_000;
/// Without a request, the time after which a connection is closed; longer than usual load balancers keep theirs.
const IDLE_MAX: Duration = Duration::from_secs(65);
/// Between two pieces of a body.
const BODY_PIECE_MAX: Duration = Duration::from_secs(10);
/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Streams of one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// For how long connections are still accepted when the process is told to stop.
const FAREWELL: Duration = Duration::from_millis(500);

/// Serves `router` on `listener` until shortly after `stopping`; then connections finish what they are at and the function
/// returns. No connection that was made is left without an answer.
pub async fn serve(listener: TcpListener, router: Router, stopping: CancellationToken) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(IDLE_MAX / 2)
        .keep_alive_timeout(Duration::from_secs(10));
    let builder = Arc::new(builder);
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    // Whoever sends requests here is told by the probe that it is over, and needs a moment to hear of it.
    let farewell = async {
        stopping.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::pin!(farewell);
    loop {
        let accepted = async {
            let slot = slots.clone().acquire_owned().await.ok()?;
            Some((slot, listener.accept().await))
        };
        tokio::select! {
            () = &mut farewell => break,
            accepted = accepted => match accepted {
                None => break,
                Some((slot, Ok((stream, peer)))) => {
                    spawn_connection(builder.clone(), &graceful, router.clone(), stream, peer, slot);
                }
                // Out of descriptors, most likely: leave the ones there are some time to end.
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    // Closing the listener resets what has connected and was not accepted yet.
    while let Some(Ok((stream, peer))) = listener.accept().now_or_never() {
        let Ok(slot) = slots.clone().try_acquire_owned() else { break };
        spawn_connection(builder.clone(), &graceful, router.clone(), stream, peer, slot);
    }
    drop(listener);
    graceful.shutdown().await;
}

fn spawn_connection(
    builder: Arc<Builder<TokioExecutor>>,
    graceful: &GracefulShutdown,
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
    slot: OwnedSemaphorePermit,
) {
    // Small answers must not wait for more to come.
    let _ = stream.set_nodelay(true);
    let phase = Phase::default();
    let io = TokioIo::new(Patient::new(stream, phase.clone()));
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        phase.begin_request();
        let (phase, router) = (phase.clone(), router.clone());
        async move {
            let mut request: Request =
                request.map(|body| Body::new(Drained::new(Box::pin(TimeoutBody::new(BODY_PIECE_MAX, body)))));
            request.extensions_mut().insert(ConnectInfo(peer));
            let response = router.oneshot(request).await;
            phase.end_request();
            response.map_err(|never: Infallible| match never {})
        }
    });
    let watcher = graceful.watcher();
    tokio::spawn(async move {
        let connection = builder.serve_connection(io, service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(slot);
    });
}
