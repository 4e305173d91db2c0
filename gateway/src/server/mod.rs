//! The accept loop: hyper with limits, because `axum::serve` has none (docs/reliability.md#http-server).
//!
//! A connection may idle for 65 s and has 10 s for the head of a request. A request body may stall for 10 s, and a client may stop
//! reading a response for 20 s; a rate below 1 KiB/s consumes both allowances as well. A response that is complete in memory must
//! be read at 128 KiB/s on average after its first 20 s. There are at most 10,000 connections.
//!
//! HTTP/1.1 only. Without TLS a client would have to know in advance that the server speaks HTTP/2; browsers never do and proxies
//! do not by default. A proxy that terminates TLS can speak HTTP/2 to clients and HTTP/1.1 to the gateway. With HTTP/2, each of
//! many responses on a connection could be stalled by a flow-control window that never opens, invisible to timeouts on the
//! socket.

mod drain_on_drop;
mod error_body_io;
pub mod min_rate_body;
mod timeout_io;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use drain_on_drop::DrainOnDrop;
use error_body_io::ErrorBodyIo;
use min_rate_body::MinRateBody;
use timeout_io::{Phase, TimeoutIo};

use crate::address::ClientAddress;
use crate::reply::HeldBytes;

/// Open connections of one process.
const CONNECTIONS_MAX: usize = 10_000;
/// Time without a request after which a connection is closed; longer than common load balancers keep idle connections.
const IDLE_MAX: Duration = Duration::from_secs(65);
/// Allowance without a byte of a body; a slow body uses it up as well ([`pace`]).
const BODY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Maximum number of headers.
const HEADERS_MAX: usize = 100;
/// Maximum bytes of a request head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Time in which any response may be read, and the minimum rate of a large one beyond it, in bytes per second.
const TAKE_LEAST: Duration = Duration::from_secs(20);
const TAKE_PACE: u64 = 128 * 1024;
/// Bytes of responses that the kernel buffers unsent for a peer. By default it buffers megabytes for a peer that reads nothing,
/// so that responses would be produced in vain before the write timeout starts. Bytes in flight to a distant peer do not count.
const UNSENT_MAX: u32 = 128 * 1024;

/// How long connections are still accepted after the process is told to stop.
const LATE_ACCEPT_WINDOW: Duration = Duration::from_millis(500);

/// How long a connection accepted late may take to send its first request.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(2);

/// Serves `router` on `listener` until shortly after `stopping`. Then connections finish their current request and the function
/// returns. No accepted connection is left without a response. Each request has the [`ClientAddress`] behind the `trusted` proxies.
pub async fn serve(listener: TcpListener, router: Router, trusted: &[IpNet], stopping: CancellationToken) {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_headers(HEADERS_MAX)
        // The buffer size alone does not bound a head that arrives in one piece.
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let builder = Arc::new(builder);
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = Connections { trusted: trusted.into(), ..Connections::default() };
    // It takes a moment until load balancers learn from the probe that the process is stopping.
    let accepting_ends = async {
        stopping.cancelled().await;
        tokio::time::sleep(LATE_ACCEPT_WINDOW).await;
    };
    tokio::pin!(accepting_ends);
    loop {
        let accepted = async {
            let slot = slots.clone().acquire_owned().await.ok()?;
            Some((slot, listener.accept().await))
        };
        tokio::select! {
            () = &mut accepting_ends => break,
            accepted = accepted => match accepted {
                None => break,
                Some((slot, Ok((stream, peer)))) => {
                    connections.spawn(builder.clone(), router.clone(), stream, peer, slot);
                }
                // Most likely the process is out of file descriptors: give the existing connections time to end.
                Some((_, Err(error))) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    // Closing the listener resets connections that were established and not accepted. So nothing may happen between the last
    // check, on the socket itself, and the close. A connection established in these microseconds is reset.
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

#[derive(Default)]
struct Connections {
    trusted: Arc<[IpNet]>,
    tasks: TaskTracker,
    /// Canceled when the connections are to end.
    ending: CancellationToken,
}

impl Connections {
    /// Serves one connection.
    fn spawn(
        &self,
        builder: Arc<Builder>,
        router: Router,
        stream: TcpStream,
        peer: SocketAddr,
        slot: OwnedSemaphorePermit,
    ) {
        // Small responses must not wait for more data (Nagle's algorithm).
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
        let phase = Phase::default();
        let io = TokioIo::new(TimeoutIo::new(ErrorBodyIo::new(stream, phase.clone()), phase.clone()));
        let service = hyper::service::service_fn({
            let (phase, trusted) = (phase.clone(), self.trusted.clone());
            move |request: hyper::Request<Incoming>| {
                phase.begin_request();
                let address = ClientAddress::from_request(peer.ip(), request.headers(), &trusted);
                let (phase, router) = (phase.clone(), router.clone());
                async move {
                    let mut request: Request =
                        request.map(|body| Body::new(DrainOnDrop::new(MinRateBody::new(BODY_WAIT_MAX, body))));
                    request.extensions_mut().insert(address);
                    let Ok(response) = router.oneshot(request).await;
                    phase.end_request(time_to_take(&response));
                    Ok::<_, Infallible>(response)
                }
            }
        });
        let ending = self.ending.clone();
        self.tasks.spawn(async move {
            let mut connection = std::pin::pin!(builder.serve_connection(io, service));
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

    /// Lets every connection finish its current request.
    async fn finish(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// How long a response may take to be read, given that it occupies memory until then.
fn time_to_take(response: &Response) -> Option<Duration> {
    let HeldBytes(bytes) = response.extensions().get()?;
    Some(TAKE_LEAST + Duration::from_secs(*bytes as u64 / TAKE_PACE))
}

/// Waits until a connection is to end and has seen its first request: a new connection has most likely sent one already, and
/// hyper would close without reading it.
async fn may_end(ending: &CancellationToken, phase: &Phase) {
    ending.cancelled().await;
    let _ = tokio::time::timeout(FIRST_REQUEST_MAX, phase.begun()).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A server for `router`, and the token that stops it.
    async fn served(router: Router) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stopping = CancellationToken::new();
        (address, stopping.clone(), tokio::spawn(async move { serve(listener, router, &[], stopping).await }))
    }

    /// The response of a server for `router` to bytes, until the connection ends.
    async fn answer(router: Router, sent: &[u8]) -> Vec<u8> {
        let (address, stopping, serving) = served(router).await;
        let mut socket = TcpStream::connect(address).await.expect("connects");
        socket.write_all(sent).await.expect("sends");
        let mut answer = Vec::new();
        // A reset ends the connection as well.
        let _ = socket.read_to_end(&mut answer).await;
        stopping.cancel();
        serving.await.expect("no panic");
        answer
    }

    /// Sends the preface of HTTP/2 and settings with zero-size windows.
    #[tokio::test]
    async fn http_2_is_not_spoken() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";
        let router = Router::new().route("/", get(|| async { "never" }));
        assert_eq!(answer(router, preface).await, b"");
    }

    #[tokio::test]
    async fn a_head_over_its_limits_is_refused_and_the_connection_closed() {
        let router = || Router::new().route("/", get(|| async { "fits" }));
        let of = |bytes: usize| {
            let head =
                |filling: usize| format!("GET / HTTP/1.1\r\nconnection: close\r\nx: {}\r\n\r\n", "y".repeat(filling));
            head(bytes - head(0).len())
        };
        let largest = answer(router(), of(HEAD_BYTES_MAX).as_bytes()).await;
        assert!(largest.starts_with(b"HTTP/1.1 200 ") && largest.ends_with(b"fits"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(HEADERS_MAX + 1));
        for head in [of(HEAD_BYTES_MAX + 1), of(40_000), of(100_000), many] {
            // It ends although no client asked for that.
            let refused = answer(router(), head.replace("connection: close", "connection: stays").as_bytes()).await;
            let refused = String::from_utf8_lossy(&refused);
            assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains("x-request-id: "), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_document_is_served_whole() {
        let document = bytes::Bytes::from(vec![b'x'; 1_000_000]);
        let router = Router::new().route("/", get(move || async move { crate::reply::document(document) }));
        let answer = answer(router, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        let text = String::from_utf8(answer).expect("ascii");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("content-length: 1000000"), "{head}");
        assert_eq!(body.len(), 1_000_000);
    }

    #[tokio::test]
    async fn for_a_peer_that_reads_nothing_few_answers_are_made() {
        const ANSWER: usize = 64 * 1024;
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let router = Router::new().route(
            "/",
            get(async move || {
                counted.fetch_add(1, Ordering::Relaxed);
                vec![b'x'; ANSWER]
            }),
        );
        let (address, _, serving) = served(router).await;
        let mut socket = TcpStream::connect(address).await.expect("connects");
        socket.write_all("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(200).as_bytes()).await.expect("sends");
        // The transfer has stalled when the count stays the same for a while.
        let mut last = 0;
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = made.load(Ordering::Relaxed);
            if now > 0 && now == last {
                break;
            }
            last = now;
        }
        serving.abort();
        // Unsent bytes, hyper's buffer, and the peer's own receive buffer.
        assert!(last * ANSWER <= 1024 * 1024, "{last} answers");
    }

    #[test]
    fn a_large_answer_has_a_time_to_be_taken_in() {
        let large = crate::reply::document(vec![b'x'; 64 * 1024 * 1024].into());
        assert_eq!(time_to_take(&large), Some(TAKE_LEAST + Duration::from_secs(512)));
        assert_eq!(time_to_take(&crate::reply::document("{}".into())), None);
    }
}
