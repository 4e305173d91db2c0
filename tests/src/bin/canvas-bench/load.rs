//! The load generator: keep-alive connections that send one request after the other.
//!
//! It writes prepared requests, reads responses of known length and parses nothing else, because it shares the processors with
//! the measured service. The same code drives the service and the baseline.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Enough for the head and, usually, the whole response.
const READ_BYTES: usize = 64 * 1024;

/// A keep-alive connection.
pub struct Connection {
    authority: String,
    stream: Option<TcpStream>,
    read: Vec<u8>,
}

/// A response.
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The bytes of the body.
    pub body: &'a [u8],
}

impl Connection {
    /// A connection to `host:port`. It opens with the first request, because the gateway gives an open one 10 s to send it.
    pub fn to(authority: &str) -> Self {
        Self { authority: authority.to_owned(), stream: None, read: Vec::with_capacity(READ_BYTES) }
    }

    /// Sends a whole request and reads the whole answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Answer<'_> {
        if self.stream.is_none() {
            let authority = self.authority.as_str();
            let opened = TcpStream::connect(authority).await.unwrap_or_else(|error| panic!("{authority}: {error}"));
            opened.set_nodelay(true).expect("sets a socket option");
            self.stream = Some(opened);
        }
        self.stream.as_mut().expect("opened").write_all(request).await.expect("the server reads");
        self.read.clear();
        let body = loop {
            self.read_more().await;
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(&self.read[..body]).expect("a head is ASCII");
        // "HTTP/1.1 200 OK"
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status line");
        let length = content_length(head).unwrap_or_else(|| panic!("no length: {head}"));
        while self.read.len() < body + length {
            self.read_more().await;
        }
        Answer { status, body: &self.read[body..body + length] }
    }

    async fn read_more(&mut self) {
        let read = self.stream.as_mut().expect("opened").read_buf(&mut self.read).await.expect("the server answers");
        assert!(read > 0, "the server closed the connection");
    }
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// The position of `needle` in `hay`.
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

/// The text between `before` and the next quotation mark.
pub fn quoted<'a>(body: &'a [u8], before: &[u8]) -> Option<&'a str> {
    let rest = &body[find(body, before)? + before.len()..];
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// A `GET` request for `path`, with a token if given.
pub fn get(path: &str, token: Option<&str>) -> Vec<u8> {
    get_with("", path, token)
}

/// The same with more headers, each with its line break.
pub fn get_with(headers: &str, path: &str, token: Option<&str>) -> Vec<u8> {
    let authorization = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{authorization}{headers}\r\n").into_bytes()
}

/// A `POST` request with a JSON body.
pub fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    post_with("", path, token, body)
}

/// The same with more headers, each with its line break.
pub fn post_with(headers: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A client that sends one request after the other.
pub trait Client {
    /// Sends one request. Panics unless it succeeds.
    async fn step(&mut self);
}

/// Runs all clients for `period` and returns responses per second.
pub async fn rate(clients: &mut [impl Client], period: Duration) -> f64 {
    let began = Instant::now();
    let runs: FuturesUnordered<_> = clients
        .iter_mut()
        .map(async |client| {
            let mut served = 0_u32;
            while began.elapsed() < period {
                client.step().await;
                served += 1;
            }
            f64::from(served)
        })
        .collect();
    let served: f64 = runs.collect::<Vec<f64>>().await.iter().sum();
    served / began.elapsed().as_secs_f64()
}

/// The share of all processors that was in use during `period`, 0 to 1, by any process.
pub async fn processors_busy(period: Duration) -> f64 {
    let (busy, total) = processor_ticks();
    tokio::time::sleep(period).await;
    let (busy_then, total_then) = processor_ticks();
    (busy_then - busy) / (total_then - total).max(1.0)
}

/// Ticks in use and all ticks since boot (proc(5), /proc/stat: user nice system idle iowait irq softirq steal).
fn processor_ticks() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/stat").expect("reads /proc/stat");
    let line = stat.lines().next().expect("the line of all processors");
    let ticks: Vec<f64> = line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
    let total: f64 = ticks.iter().sum();
    (total - ticks[3] - ticks[4], total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_found_however_it_is_written() {
        assert_eq!(content_length("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"), Some(12));
        assert_eq!(content_length("HTTP/1.1 200 OK\r\na: b\r\ncontent-length:3\r\n\r\n"), Some(3));
        assert_eq!(content_length("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), None);
    }

    #[test]
    fn a_quoted_text_is_found() {
        assert_eq!(quoted(br#"{"id":"a","revision":"r1","x":1}"#, br#""revision":""#), Some("r1"));
        assert_eq!(quoted(b"{}", br#""revision":""#), None);
    }
}
