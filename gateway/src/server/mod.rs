//! The accept loop: hyper under our own limits, because `axum::serve` has none (reliability.md 1).
//!
//! A connection may idle 60 s and has 10 s for a request's head. A body may be silent for 10 s and an answer not be taken for 20 s;
//! below a kibibyte a second both are used up by slowness as well. There are at most 10000 connections.

mod drain;
pub mod pace;
mod patience;
mod refusal;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use drain::Drained;
use pace::Paced;
use patience::{Patient, Phase};
use refusal::Courteous;

/// Open connections of one process.
const CONNECTIONS_MAX: usize = 10_000;
/// Without a request, the time after which a connection is closed; longer than usual load balancers keep theirs.
const IDLE_MAX: Duration = Duration::from_secs(65);
/// Without a byte of a body; a slow one uses it up, too ([`pace`]).
const BODY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Headers of a request.
pub const HEADERS_MAX: usize = 100;
/// Bytes of a request's head.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// What HTTP/2 may bring of one, so that more than is allowed is told in words ([`crate::observe`]) up to a bound.
const HEADER_LIST_MAX: u32 = 4 * HEAD_BYTES_MAX as u32;
/// Streams of one HTTP/2 connection.
const STREAMS_MAX: u32 = 128;

/// For how long connections are still accepted when the process is told to stop.
const FAREWELL: Duration = Duration::from_millis(500);

/// And how long one that was accepted late may take to send its first request.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(2);

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
        .max_header_list_size(HEADER_LIST_MAX)
        .keep_alive_interval(IDLE_MAX / 2)
        .keep_alive_timeout(Duration::from_secs(10));
    let builder = Arc::new(builder);
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = Connections::default();
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
                    connections.spawn(builder.clone(), router.clone(), stream, peer, slot);
                }
                // Out of descriptors, most likely: leave the ones there are some time to end.
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    // Closing the listener resets what has connected and was not accepted: nothing may come between the last look, at the socket
    // itself, and the end. What connects in these microseconds is told so by a reset.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, peer)) = listener.accept() {
            let Ok(slot) = slots.clone().try_acquire_owned() else { break };
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                connections.spawn(builder.clone(), router.clone(), stream, peer, slot);
            }
        }
    }
    connections.finish().await;
}

/// The connections of a server.
#[derive(Default)]
struct Connections {
    tasks: TaskTracker,
    /// Cancelled when they are to end.
    ending: CancellationToken,
}

impl Connections {
    /// Serves one.
    fn spawn(
        &self,
        builder: Arc<Builder<TokioExecutor>>,
        router: Router,
        stream: TcpStream,
        peer: SocketAddr,
        slot: OwnedSemaphorePermit,
    ) {
        // Small answers must not wait for more to come.
        let _ = stream.set_nodelay(true);
        let phase = Phase::default();
        let io = TokioIo::new(Patient::new(Courteous::new(stream, phase.clone()), phase.clone()));
        let service = hyper::service::service_fn({
            let phase = phase.clone();
            move |request: hyper::Request<Incoming>| {
                phase.begin_request();
                let (phase, router) = (phase.clone(), router.clone());
                async move {
                    let mut request: Request =
                        request.map(|body| Body::new(Drained::new(Paced::new(BODY_WAIT_MAX, body))));
                    request.extensions_mut().insert(ConnectInfo(peer));
                    let response = router.oneshot(request).await;
                    phase.end_request();
                    response.map_err(|never: Infallible| match never {})
                }
            }
        });
        let ending = self.ending.clone();
        self.tasks.spawn(async move {
            let mut connection = std::pin::pin!(builder.serve_connection(io, service).into_owned());
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = may_end(&ending, &phase) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }

    /// Lets every connection finish what it is at.
    async fn finish(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Waits until a connection is to end and has seen its first request: whoever has just connected has sent one, most likely, and
/// hyper would close on it.
async fn may_end(ending: &CancellationToken, phase: &Phase) {
    ending.cancelled().await;
    let _ = tokio::time::timeout(FIRST_REQUEST_MAX, phase.begun()).await;
}
