//! The accept loop: hyper under our own limits, because `axum::serve` has none (reliability.md 1).
//!
//! A connection may idle 60 s and has 10 s for a request's head. A body may be silent for 10 s and an answer not be taken for 20 s;
//! below a kibibyte a second both are used up by slowness as well. An answer that lies in memory whole is to be taken at 128 KiB a
//! second on the whole, beyond its first 20 s. There are at most 10000 connections.
//!
//! HTTP/1.1 alone: without TLS a client would have to know beforehand that HTTP/2 is spoken here, which browsers refuse to and no
//! proxy takes for granted; whoever ends TLS in front speaks HTTP/2 to clients and HTTP/1.1 to this. In HTTP/2 each of many
//! answers of a connection can be held by a window that is never opened, under the socket where time is taken here.

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
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use drain::Drained;
use pace::Paced;
use patience::{Patient, Phase};
use refusal::Courteous;

use crate::reply::Held;

/// Open connections of one process.
const CONNECTIONS_MAX: usize = 10_000;
/// Without a request, the time after which a connection is closed; longer than usual load balancers keep theirs.
const IDLE_MAX: Duration = Duration::from_secs(65);
/// Without a byte of a body; a slow one uses it up, too ([`pace`]).
const BODY_WAIT_MAX: Duration = Duration::from_secs(10);
/// Headers of a request.
const HEADERS_MAX: usize = 100;
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The time in which any answer may be taken, and the pace that a large one has to keep beyond it, in bytes a second.
const TAKE_LEAST: Duration = Duration::from_secs(20);
const TAKE_PACE: u64 = 128 * 1024;
/// Bytes of answers that the system holds for a peer and has not sent. Without it that is megabytes for whoever reads nothing, and as
/// many answers as fit are made for nobody, before the time to take them begins. What is under way to a far peer does not count.
const UNSENT_MAX: u32 = 128 * 1024;

/// For how long connections are still accepted when the process is told to stop.
const FAREWELL: Duration = Duration::from_millis(500);

/// And how long one that was accepted late may take to send its first request.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(2);

/// Serves `router` on `listener` until shortly after `stopping`; then connections finish what they are at and the function
/// returns. No connection that was made is left without an answer.
pub async fn serve(listener: TcpListener, router: Router, stopping: CancellationToken) {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_MAX)
        .max_headers(HEADERS_MAX)
        // The buffer alone bounds no head that comes in one piece.
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
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
        builder: Arc<Builder>,
        router: Router,
        stream: TcpStream,
        peer: SocketAddr,
        slot: OwnedSemaphorePermit,
    ) {
        // Small answers must not wait for more to come.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
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

    /// Lets every connection finish what it is at.
    async fn finish(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// In which time an answer is to be taken, because it lies in memory until then.
fn time_to_take(response: &Response) -> Option<Duration> {
    let Held(bytes) = response.extensions().get()?;
    Some(TAKE_LEAST + Duration::from_secs(*bytes as u64 / TAKE_PACE))
}

/// Waits until a connection is to end and has seen its first request: whoever has just connected has sent one, most likely, and
/// hyper would close on it.
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

    /// A server of `router`, and what ends it.
    async fn served(router: Router) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stopping = CancellationToken::new();
        (address, stopping.clone(), tokio::spawn(serve(listener, router, stopping)))
    }

    /// What a server of `router` answers to bytes, to the end of the connection.
    async fn answer(router: Router, sent: &[u8]) -> Vec<u8> {
        let (address, stopping, serving) = served(router).await;
        let mut socket = TcpStream::connect(address).await.expect("connects");
        socket.write_all(sent).await.expect("sends");
        let mut answer = Vec::new();
        // A reset ends it, too.
        let _ = socket.read_to_end(&mut answer).await;
        stopping.cancel();
        serving.await.expect("no panic");
        answer
    }

    /// The preface of HTTP/2 and settings with windows of nothing.
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
            // It ends although nobody asked for that.
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
        // It has stopped when it stays the same for a while.
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
        // What is unsent, what hyper holds, and what the peer's own buffer takes.
        assert!(last * ANSWER <= 1024 * 1024, "{last} answers");
    }

    #[test]
    fn a_large_answer_has_a_time_to_be_taken_in() {
        let large = crate::reply::document(vec![b'x'; 64 * 1024 * 1024].into());
        assert_eq!(time_to_take(&large), Some(TAKE_LEAST + Duration::from_secs(512)));
        assert_eq!(time_to_take(&crate::reply::document("{}".into())), None);
    }
}
