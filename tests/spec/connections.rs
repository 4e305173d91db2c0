//! Connections that clients hold (docs/reference/conventions.md#connections-and-timeouts).

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use e2e::{API_ROOT, Part, Stack};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Connections of one address.
const PER_ADDRESS: usize = 16;

async fn limited() -> Stack {
    Stack::builder()
        .env("CANVAS_CONNECTIONS_PER_ADDRESS", PER_ADDRESS)
        .env("CANVAS_TRUSTED_PROXIES", "127.0.0.2/32")
        .shared()
        .await
}

/// A connection from a loopback address of its own test.
async fn connect(stack: &Stack, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(IpAddr::from(from), 0)).expect("a loopback address");
    socket.connect(stack.authority(0).parse().expect("an address")).await.expect("connects")
}

/// Reads to the end of a connection. A reset is an end as well.
async fn rest(mut connection: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(e2e::PATIENCE, connection.read_to_end(&mut answer)).await.expect("ends");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn silent_connections_and_slow_heads_of_an_address_take_its_own_part_and_end_in_ten_seconds() {
    let stack = &limited().await;
    let user = stack.user().await;
    let user = user.from_address([127, 7, 0, 1]);
    let began = Instant::now();
    let mut held = Vec::new();
    for _ in 0..PER_ADDRESS {
        held.push(connect(stack, [127, 7, 0, 2]).await);
    }
    for _ in 0..20 {
        let refused = rest(connect(stack, [127, 7, 0, 2]).await).await;
        assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("\r\nconnection: close"), "{refused}");
    }
    user.get("/auth/status").await.ok();
    let (status, _, report) = stack.probes(Part::GATEWAY).fetch("/readyz").await;
    assert_eq!(status, 200, "{report}");
    // Half of them stay silent, and half send a byte each half second.
    let dripping = held.split_off(PER_ADDRESS / 2);
    let silent = join_all(held.into_iter().map(rest));
    let dripping = join_all(dripping.into_iter().map(async |mut connection| {
        for byte in b"GET / HTTP/1.1\r\nhost: e2e\r\nx-slow: ".iter().chain(std::iter::repeat(&b'x')) {
            if began.elapsed() > e2e::PATIENCE || connection.write_all(&[*byte]).await.is_err() {
                break;
            }
            let ended = tokio::time::timeout(Duration::from_millis(500), connection.read(&mut [0; 64])).await;
            if ended.is_ok() {
                break;
            }
        }
    }));
    let (answers, _) = tokio::join!(silent, dripping);
    assert!(answers.iter().all(String::is_empty), "{answers:?}");
    let took = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(20)).contains(&took), "{took:?}");
    user.get("/auth/status").await.ok();
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_its_part_of_the_requests_in_progress() {
    let stack = &limited().await;
    let user = stack.user().await;
    // A stream is in progress until it ends.
    let open = async |client: &str| {
        let mut connection = connect(stack, [127, 0, 0, 2]).await;
        let head = format!(
            "GET {API_ROOT}/events?runs=mine HTTP/1.1\r\nhost: e2e\r\nauthorization: Bearer {}\r\nx-forwarded-for: {client}\r\n\r\n",
            user.token
        );
        connection.write_all(head.as_bytes()).await.expect("sends");
        let mut answer = [0; 12];
        let read = tokio::time::timeout(e2e::PATIENCE, connection.read_exact(&mut answer)).await;
        read.expect("is answered").expect("reads");
        (String::from_utf8_lossy(&answer).into_owned(), connection)
    };
    let mut streams = Vec::new();
    for _ in 0..PER_ADDRESS {
        let (answer, connection) = open("198.51.100.1").await;
        assert_eq!(answer, "HTTP/1.1 200");
        streams.push(connection);
    }
    let proxy = user.from_address([127, 0, 0, 2]);
    let refused = proxy.get("/auth/status").header("x-forwarded-for", "198.51.100.1").await;
    assert_eq!(refused.header("retry-after"), Some("1"), "{refused}");
    refused.expect_error(429, "rate_limited", &[]);
    // Another client, and the proxy for itself.
    assert_eq!(open("198.51.100.2").await.0, "HTTP/1.1 200");
    proxy.get("/auth/status").await.ok();
    // Room for the next one.
    streams.pop();
    testkit::wait_for("the end of a stream to be noted", e2e::PATIENCE, async || {
        let reply = proxy.get("/auth/status").header("x-forwarded-for", "198.51.100.1").await;
        (reply.status == 200).then_some(())
    })
    .await;
}
