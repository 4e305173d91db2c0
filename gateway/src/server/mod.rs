//! The accept loop: hyper with limits, because `axum::serve` has none (docs/reliability.md#http-server).
//!
//! The [`Gate`] decides which connections are open. A connection has 10 s for the head of its first request, and for those of later
//! requests 10 s from their first bytes. A request body may stall for 10 s, and a client may stop
//! reading a response for 20 s; a rate below 1 KiB/s consumes both allowances as well. A response that is complete in memory must
//! be read at 128 KiB/s on average after its first 20 s.
//!
//! HTTP/1.1 only. Without TLS a client would have to know in advance that the server speaks HTTP/2; browsers never do and proxies
//! do not by default. A proxy that terminates TLS can speak HTTP/2 to clients and HTTP/1.1 to the gateway. With HTTP/2, each of
//! many responses on a connection could be stalled by a flow-control window that never opens, invisible to timeouts on the
//! socket.

pub mod descriptors;
mod drain_on_drop;
mod error_body_io;
pub mod gate;
pub mod min_rate_body;
mod timeout_io;

use std::error::Error;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use drain_on_drop::DrainOnDrop;
use error_body_io::ErrorBodyIo;
use gate::{Connection, Gate, InProgress};
use min_rate_body::MinRateBody;
use timeout_io::{HEAD_MAX, TimeoutIo};

use crate::problem::Problem;
use crate::reply::HeldBytes;

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
/// Interval between two reports of the gate.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a connection that the system could not accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The response to a connection that the gate refuses.
static REFUSAL: LazyLock<Bytes> = LazyLock::new(|| {
    let (status, envelope) = Problem::Unavailable("the gate is full".into(), Some(1)).into_envelope();
    let body = serde_json::to_string(&envelope).expect("an envelope serializes");
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
});

/// Serves `router` on `listener` until shortly after `stopping`. Then connections finish their current request and the function
/// returns. No connection that the gate admitted is left without a response. Each request has its [`crate::address::ClientAddress`].
pub async fn serve(listener: TcpListener, router: Router, gate: Gate, stopping: CancellationToken) {
    let mut builder = Builder::new();
    builder
        .header_read_timeout(None)
        .max_headers(HEADERS_MAX)
        // The buffer size alone does not bound a head that arrives in one piece.
        .max_header_size(HEAD_BYTES_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let connections =
        Connections { builder, router, gate, tasks: TaskTracker::new(), ending: CancellationToken::new() };
    // It takes a moment until load balancers learn from the probe that the process is stopping.
    let accepting_ends = async {
        stopping.cancelled().await;
        tokio::time::sleep(LATE_ACCEPT_WINDOW).await;
    };
    tokio::pin!(accepting_ends);
    let mut reports = tokio::time::interval(REPORT_INTERVAL);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = &mut accepting_ends => break,
            _ = reports.tick() => connections.gate.report(),
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => connections.admit(stream, peer),
                // Most likely the process is out of file descriptors.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    connections.gate.close_waiting();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    // Closing the listener resets connections that were established and not accepted. So nothing may happen between the last
    // check, on the socket itself, and the close. A connection established in these microseconds is reset.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, peer)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            if let Ok(stream) = stream {
                connections.admit(stream, peer);
            }
        }
    }
    connections.finish().await;
}

struct Connections {
    builder: Builder,
    router: Router,
    gate: Gate,
    tasks: TaskTracker,
    /// Canceled when the connections are to end.
    ending: CancellationToken,
}

impl Connections {
    /// Serves a connection or refuses it, without waiting.
    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        // Small responses must not wait for more data (Nagle's algorithm).
        let _ = stream.set_nodelay(true);
        match self.gate.open(peer.ip()) {
            Some(connection) => self.spawn(stream, connection),
            None => refuse(&stream),
        }
    }

    fn spawn(&self, stream: TcpStream, connection: Connection) {
        let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MAX);
        let (builder, router, ending) = (self.builder.clone(), self.router.clone(), self.ending.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = connection.closing() => {}
                ended = serve_connection(&builder, router, stream, &connection, &ending) => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                },
            }
        });
    }

    /// Lets every connection finish its current request.
    async fn finish(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers a connection that is not admitted. The bytes of its request are read first, because a close on unread bytes resets the
/// connection and discards the response.
fn refuse(stream: &TcpStream) {
    // On the socket itself: the runtime does not know yet that it is ready. Its own buffer is empty, so nothing blocks.
    let socket = SockRef::from(stream);
    let _ = socket.recv(&mut [MaybeUninit::uninit(); 4096]);
    let _ = socket.send(&REFUSAL);
}

async fn serve_connection(
    builder: &Builder,
    router: Router,
    stream: TcpStream,
    connection: &Connection,
    ending: &CancellationToken,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    // A silent connection gets no buffers.
    tokio::select! {
        () = may_end(ending, connection) => return Ok(()),
        readable = timeout(HEAD_MAX, stream.readable()) => readable??,
    }
    let io = TokioIo::new(TimeoutIo::new(ErrorBodyIo::new(stream, connection.clone()), connection.clone()));
    let service = hyper::service::service_fn(|request| answer(router.clone(), connection.clone(), request));
    let mut serving = std::pin::pin!(builder.serve_connection(io, service));
    tokio::select! {
        ended = serving.as_mut() => ended?,
        () = may_end(ending, connection) => {
            serving.as_mut().graceful_shutdown();
            serving.await?;
        }
    }
    Ok(())
}

/// The response to a request. An error ends a connection that makes room for another one: its request must not begin.
async fn answer(
    router: Router,
    connection: Connection,
    request: hyper::Request<Incoming>,
) -> Result<http::Response<impl http_body::Body<Data = Bytes, Error = axum::Error>>, &'static str> {
    if !connection.begin_request() {
        return Err("the connection makes room for another one");
    }
    let address = connection.client_address(request.headers());
    let mut request: Request = request.map(|body| Body::new(DrainOnDrop::new(MinRateBody::new(BODY_WAIT_MAX, body))));
    request.extensions_mut().insert(address);
    let held = connection.hold_request(address).unwrap_or_else(|too_many| {
        request.extensions_mut().insert(too_many);
        None
    });
    let Ok(response) = router.oneshot(request).await;
    connection.end_request(time_to_take(&response));
    let in_progress = InProgress { connection, _held: held };
    // The body owns the request in progress until it is dropped.
    Ok(response.map(|body| {
        body.map_err(move |error| {
            let _ = &in_progress;
            error
        })
    }))
}

/// How long a response may take to be read, given that it occupies memory until then.
fn time_to_take(response: &Response) -> Option<Duration> {
    let HeldBytes(bytes) = response.extensions().get()?;
    Some(TAKE_LEAST + Duration::from_secs(*bytes as u64 / TAKE_PACE))
}

/// Waits until a connection is to end and has seen its first request: a new connection has most likely sent one already, and
/// hyper would close without reading it.
async fn may_end(ending: &CancellationToken, connection: &Connection) {
    ending.cancelled().await;
    let _ = timeout(FIRST_REQUEST_MAX, connection.begun()).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A server for `router`, and the token that stops it.
    async fn served(router: Router) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        served_through(gate::tests::gate(100, 100), router).await
    }

    async fn served_through(
        gate: Gate,
        router: Router,
    ) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let stopping = CancellationToken::new();
        (address, stopping.clone(), tokio::spawn(serve(listener, router, gate, stopping)))
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

    /// A client that sends requests on one connection.
    struct Client(TcpStream);

    impl Client {
        async fn connect(address: SocketAddr) -> Self {
            Self(TcpStream::connect(address).await.expect("connects"))
        }

        /// Sends a request and reads until `end`, or the end of the connection.
        async fn get(&mut self, path: &str, end: &str) -> String {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
            // The connection may have ended.
            let _ = self.0.write_all(request.as_bytes()).await;
            self.read(end).await
        }

        async fn read(&mut self, end: &str) -> String {
            let mut answer = String::new();
            let mut buffer = vec![0; 64 * 1024];
            while end.is_empty() || !answer.ends_with(end) {
                match timeout(Duration::from_secs(10), self.0.read(&mut buffer)).await.expect("in time") {
                    Ok(length @ 1..) => answer.push_str(&String::from_utf8_lossy(&buffer[..length])),
                    _ => break,
                }
            }
            answer
        }
    }

    /// Bytes of a response that no buffer of the system holds.
    const LARGE: usize = 16 * 1024 * 1024;

    /// `/` has a short response, `/stream` one that does not end, and `/large` one of [`LARGE`] bytes.
    fn routes() -> Router {
        let stream = || async {
            let pieces = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("begins")]);
            Body::from_stream(futures_util::StreamExt::chain(pieces, futures_util::stream::pending()))
        };
        Router::new()
            .route("/", get(|| async { "done" }))
            .route("/stream", get(stream))
            .route("/large", get(|| async { crate::reply::document(vec![b'x'; LARGE].into()) }))
    }

    #[tokio::test]
    async fn a_new_connection_takes_the_place_of_an_idle_one_and_of_no_other() {
        let (address, _, serving) = served_through(gate::tests::gate(3, 10), routes()).await;
        let (mut idle, mut stream) = (Client::connect(address).await, Client::connect(address).await);
        assert!(idle.get("/", "done").await.ends_with("done"));
        assert!(stream.get("/stream", "begins\r\n").await.starts_with("HTTP/1.1 200 "));
        let mut large = Client::connect(address).await;
        large.0.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sends");
        large.0.read_exact(&mut [0; 64]).await.expect("begins");
        let mut new = Client::connect(address).await;
        assert!(new.get("/", "done").await.ends_with("done"));
        assert_eq!(idle.read("").await, "", "is closed");
        // All have a request in progress: one that handles it, one whose response is not read, and one that goes on.
        assert!(new.get("/stream", "begins\r\n").await.starts_with("HTTP/1.1 200 "));
        for request in [None, Some("/")] {
            let mut refused = Client::connect(address).await;
            let answer = match request {
                None => refused.read("").await,
                Some(path) => refused.get(path, "").await,
            };
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("\r\nconnection: close"), "{answer}");
            assert!(head.contains("\r\nretry-after: 1") && head.contains(&format!("content-length: {}", body.len())));
            assert!(body.contains("service_unavailable"), "{answer}");
        }
        // A response that is read to its end leaves its connection idle.
        let (mut read, mut buffer) = (0, vec![0; 1024 * 1024]);
        while read < LARGE {
            read += large.0.read(&mut buffer).await.expect("goes on");
        }
        let mut tries = 0;
        while !Client::connect(address).await.get("/", "done").await.ends_with("done") {
            tries += 1;
            assert!(tries < 100, "is never idle");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        serving.abort();
    }

    #[tokio::test]
    async fn connections_above_the_part_of_an_address_are_refused_at_once() {
        let (address, stopping, serving) = served_through(gate::tests::gate(10, 2), routes()).await;
        let held = [Client::connect(address).await, Client::connect(address).await];
        assert!(Client::connect(address).await.get("/", "").await.starts_with("HTTP/1.1 503 "));
        for mut silent in held {
            assert!(silent.get("/", "done").await.ends_with("done"));
        }
        stopping.cancel();
        serving.await.expect("no panic");
    }

    #[test]
    fn a_large_answer_has_a_time_to_be_taken_in() {
        let large = crate::reply::document(vec![b'x'; 64 * 1024 * 1024].into());
        assert_eq!(time_to_take(&large), Some(TAKE_LEAST + Duration::from_secs(512)));
        assert_eq!(time_to_take(&crate::reply::document("{}".into())), None);
    }
}
