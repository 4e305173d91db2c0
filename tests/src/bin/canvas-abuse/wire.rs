//! Connections of attackers: raw HTTP/1.1 from any address of loopback, with bytes sent and read at any rate.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::ReadHalf;
use tokio::net::{TcpSocket, TcpStream};

/// The pause before a connection that could not be opened, or that the server closed, is opened again.
const REOPEN: Duration = Duration::from_millis(200);
/// The bytes that end a chunked body.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// The bytes of a body that are kept before all but its end are dropped.
const KEPT_MAX: usize = 64 * 1024;

/// The bytes of a refusal that are kept.
const REASON_MAX: usize = 300;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It was answered with this status.
    Status(u16),
    /// The connection ended without an answer.
    Closed,
    /// No connection was made.
    Unreachable,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Closed => f.write_str("closed"),
            Self::Unreachable => f.write_str("unreachable"),
        }
    }
}

/// What became of a request, and the reason that the service gave.
#[derive(Debug)]
pub struct Heard {
    /// What became of it.
    pub outcome: Outcome,
    /// The beginning of the body of a refusal.
    pub reason: Option<String>,
}

impl From<Outcome> for Heard {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, reason: None }
    }
}

impl From<Answer> for Heard {
    fn from(answer: Answer) -> Self {
        Self { outcome: Outcome::Status(answer.status), reason: answer.reason }
    }
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The beginning of the body of a refusal.
    reason: Option<String>,
    /// The server ends the connection.
    closes: bool,
}

/// A connection.
pub struct Wire {
    stream: TcpStream,
    /// `false` once a request was not sent to its end.
    usable: bool,
}

impl Wire {
    /// Connects from an address of loopback.
    pub async fn open(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        Self::with_socket(from, to, |_| Ok(())).await
    }

    /// The same with a receive buffer of a few KiB, so that the server notices that nothing is read.
    pub async fn open_narrow(from: Ipv4Addr, to: SocketAddr) -> io::Result<Self> {
        Self::with_socket(from, to, |socket| socket.set_recv_buffer_size(4096)).await
    }

    async fn with_socket(
        from: Ipv4Addr,
        to: SocketAddr,
        set: impl FnOnce(&TcpSocket) -> io::Result<()>,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        set(&socket)?;
        Ok(Self { stream: socket.connect(to).await?, usable: true })
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads at most `bytes`. 0 at the end of the connection.
    pub async fn take(&mut self, bytes: usize) -> usize {
        let mut buffer = vec![0; bytes];
        self.stream.read(&mut buffer).await.unwrap_or(0)
    }

    /// Fills `bytes`. Returns `false` if the connection ends before.
    pub async fn fill(&mut self, bytes: &mut [u8]) -> bool {
        self.stream.read_exact(bytes).await.is_ok()
    }

    /// Sends a request and reads its answer, which may come before the request is sent to its end.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.converse(async |mut to| to.write_all(request).await.is_ok()).await
    }

    /// Sends `head` and then `piece` again and again with a pause, until the server answers or ends the connection.
    pub async fn drip(&mut self, head: &[u8], piece: &[u8], pause: Duration) -> io::Result<Answer> {
        let dripping = async |mut to: tokio::net::tcp::WriteHalf<'_>| {
            let mut sent = to.write_all(head).await;
            while sent.is_ok() {
                tokio::time::sleep(pause).await;
                sent = to.write_all(piece).await;
            }
            false
        };
        self.converse(dripping).await
    }

    /// Reads an answer while `send` sends. `send` says whether the request was sent to its end.
    async fn converse(&mut self, send: impl AsyncFnOnce(tokio::net::tcp::WriteHalf<'_>) -> bool) -> io::Result<Answer> {
        let (mut from, to) = self.stream.split();
        let mut sent = false;
        let answer = {
            let sending = async {
                sent = send(to).await;
                std::future::pending().await
            };
            tokio::select! {
                answer = read_answer(&mut from) => answer,
                never = sending => never,
            }
        };
        self.usable = sent && answer.as_ref().is_ok_and(|answer| !answer.closes);
        answer
    }
}

/// A connection that is opened for its first request, and anew when the server has ended it.
pub struct Line {
    from: Ipv4Addr,
    to: SocketAddr,
    wire: Option<Wire>,
}

impl Line {
    /// A line that is not connected yet.
    pub fn new(from: Ipv4Addr, to: SocketAddr) -> Self {
        Self { from, to, wire: None }
    }

    /// Sends a request and reads its answer.
    pub async fn ask(&mut self, request: &[u8]) -> Heard {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => match Wire::open(self.from, self.to).await {
                Ok(wire) => wire,
                Err(_) => {
                    tokio::time::sleep(REOPEN).await;
                    return Outcome::Unreachable.into();
                }
            },
        };
        match wire.exchange(request).await {
            Ok(answer) => {
                self.wire = wire.usable.then_some(wire);
                answer.into()
            }
            Err(_) => {
                tokio::time::sleep(REOPEN).await;
                Outcome::Closed.into()
            }
        }
    }
}

/// Opens a connection and sends a slow request on it ([`Wire::drip`]). Returns what became of it and how long that took.
pub async fn drip(from: Ipv4Addr, to: SocketAddr, head: &[u8], piece: &[u8], pause: Duration) -> (Outcome, Duration) {
    let began = Instant::now();
    let outcome = match Wire::open(from, to).await {
        Err(_) => Outcome::Unreachable,
        Ok(mut wire) => match wire.drip(head, piece, pause).await {
            Ok(answer) => Outcome::Status(answer.status),
            Err(_) => Outcome::Closed,
        },
    };
    tokio::time::sleep(REOPEN).await;
    (outcome, began.elapsed())
}

async fn read_answer(from: &mut ReadHalf<'_>) -> io::Result<Answer> {
    let mut read = Vec::with_capacity(4096);
    let head_end = loop {
        if from.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let mut body = read.split_off(head_end);
    let head = String::from_utf8_lossy(&read).to_ascii_lowercase();
    // "http/1.1 200 ok"
    let status = head.get(9..12).and_then(|digits| digits.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
    let header = |name: &str| {
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(|value| value.trim().to_owned()))
    };
    let length: Option<usize> = header("content-length").and_then(|length| length.parse().ok());
    let is_chunked = header("transfer-encoding").is_some();
    let mut received = body.len();
    let is_complete = |received: usize, tail: &[u8]| match length {
        Some(length) => received >= length,
        None => !is_chunked || tail.ends_with(LAST_CHUNK) || tail == &LAST_CHUNK[2..],
    };
    while !is_complete(received, &body) {
        if body.len() > KEPT_MAX {
            body.drain(..body.len() - LAST_CHUNK.len());
        }
        let more = from.read_buf(&mut body).await?;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received += more;
    }
    let closes = header("connection").is_some_and(|value| value == "close");
    let reason = (status >= 400).then(|| String::from_utf8_lossy(&body[..body.len().min(REASON_MAX)]).into_owned());
    Ok(Answer { status, reason, closes })
}

/// A request without a body.
pub fn get(path: &str, token: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: abuse\r\nauthorization: Bearer {token}\r\n{headers}\r\n").into_bytes()
}

/// The head of a `POST` with a JSON body. `headers` has a line break after each header, and names the length or the coding.
pub fn post_head(path: &str, token: &str, headers: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: abuse\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n{headers}\r\n"
    )
    .into_bytes()
}

/// A `POST` with a JSON body.
pub fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    let mut request = post_head(path, token, &format!("content-length: {}\r\n", body.len()));
    request.extend(body.as_bytes());
    request
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The answer to a request at a server that sends these pieces.
    async fn answered(pieces: &'static [&'static [u8]]) -> io::Result<Answer> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            let (mut stream, from) = listener.accept().await.expect("a connection");
            assert_eq!(from.ip(), Ipv4Addr::new(127, 0, 1, 7));
            for piece in pieces {
                stream.write_all(piece).await.expect("sends");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let mut wire = Wire::open(Ipv4Addr::new(127, 0, 1, 7), to).await?;
        let answer = wire.exchange(b"GET / HTTP/1.1\r\n\r\n").await;
        server.await.expect("no panic");
        answer
    }

    #[tokio::test]
    async fn an_answer_is_read_to_its_end_however_it_is_framed() {
        let whole = answered(&[b"HTTP/1.1 413 X\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab", b"cd"]).await;
        let whole = whole.expect("an answer");
        assert_eq!((whole.status, whole.reason.as_deref(), whole.closes), (413, Some("abcd"), true));
        let chunked =
            answered(&[b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab", b"\r\n0\r\n\r\n"]).await;
        assert_eq!(chunked.expect("an answer").status, 200);
        assert!(answered(&[b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n", b"ab"]).await.is_err(), "it breaks off");
        assert!(answered(&[b""]).await.is_err(), "no answer");
    }
}
