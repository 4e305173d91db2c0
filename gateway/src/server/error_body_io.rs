//! Turns hyper's own rejections into the error envelope.
//!
//! **Guarantee.** A head that hyper rejects, because it is not HTTP or exceeds the limits, is answered with the common error
//! envelope and 400 (docs/reference/conventions.md#connections-and-timeouts), and the sender can read the response.
//!
//! **Mechanism.** hyper answers such a head with a bare status before any service is called. Every response of a service carries
//! a request id ([`crate::observe`]); a response without one, written while no request is handled, is hyper's own and is replaced
//! by the envelope. The sender's remaining bytes are then read and discarded, within bounds: closing on unread bytes would reset
//! the connection and discard the response.
//!
//! **Reason.** hyper has no hook for these responses.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use uuid::Uuid;

use super::gate::Connection;
use crate::observe::{OTHER_METHOD, UNMATCHED};
use crate::problem::Problem;

/// Maximum bytes of a rejected request to read and discard.
const DRAIN_MAX: usize = 1024 * 1024;
/// Maximum time to spend on it.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// hyper's own responses consist of a status, two headers and a date.
const BARE_MAX: usize = 256;

/// A stream that replaces hyper's bare rejections by envelopes.
pub(super) struct ErrorBodyIo<S> {
    stream: S,
    connection: Connection,
    error_write: Option<ErrorWrite>,
}

/// An envelope being written, and the bytes discarded afterwards.
struct ErrorWrite {
    unwritten: Bytes,
    drained: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> ErrorBodyIo<S> {
    pub(super) fn new(stream: S, connection: Connection) -> Self {
        Self { stream, connection, error_write: None }
    }

    /// Replaces hyper's own response, if these bytes are one.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let is_bare = bytes.len() <= BARE_MAX && !self.connection.in_request() && is_bare_refusal(bytes);
        if is_bare {
            self.error_write = Some(ErrorWrite {
                unwritten: envelope(bytes),
                drained: 0,
                deadline: Box::pin(tokio::time::sleep(DRAIN_TIME_MAX)),
            });
        }
        is_bare
    }
}

/// Returns `true` if the bytes are a complete 4xx response without a body and without a request id.
fn is_bare_refusal(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some(head) = text.strip_prefix("HTTP/1.1 4").and_then(|head| head.strip_suffix("\r\n\r\n")) else {
        return false;
    };
    !head.contains("\r\n\r\n") && head.contains("\r\ncontent-length: 0") && !head.contains("\r\nx-request-id:")
}

/// The same response with an envelope.
fn envelope(bare: &[u8]) -> Bytes {
    let (status, envelope) = Problem::UnreadableHead.into_envelope();
    let body = serde_json::to_string(&envelope).expect("an envelope serializes");
    let bare = String::from_utf8_lossy(bare);
    let date =
        bare.lines().find(|line| line.starts_with("date: ")).map(|date| format!("{date}\r\n")).unwrap_or_default();
    let id = Uuid::now_v7();
    let labels = [("method", OTHER_METHOD), ("route", UNMATCHED), ("status", "400")];
    metrics::counter!("http_requests_total", &labels).increment(1);
    tracing::info!(request_id = %id, status = status.as_u16(), "request rejected: its head cannot be read");
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         x-request-id: {id}\r\nconnection: close\r\n{date}\r\n{body}",
        body.len()
    ))
}

impl<S: AsyncRead + Unpin> AsyncRead for ErrorBodyIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ErrorBodyIo<S> {
    /// Writes the rest of an envelope.
    fn poll_envelope(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(error_write) = &mut self.error_write else { return Poll::Ready(Ok(())) };
        while error_write.unwritten.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &error_write.unwritten))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            error_write.unwritten.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and discards the rest of a rejected request.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(error_write) = &mut self.error_write else { return Poll::Ready(()) };
        let mut taken = [0; 8 * 1024];
        while error_write.drained < DRAIN_MAX && error_write.deadline.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut taken);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => error_write.drained += buffer.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ErrorBodyIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.takes(bytes) {
            true => Poll::Ready(Ok(bytes.len())),
            false => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [only] if self.takes(only) => Poll::Ready(Ok(only.len())),
            slices => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_envelope(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_envelope(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        self.poll_drain(cx).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::server::gate::tests;

    const BARE: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n";

    /// The bytes of `written` that the peer receives, with or without a request being handled.
    async fn arrives(written: &[u8], in_request: bool) -> String {
        let (mut peer, ours) = duplex(4096);
        let connection = tests::connection();
        if in_request {
            assert!(connection.begin_request());
        }
        let mut courteous = ErrorBodyIo::new(ours, connection);
        courteous.write_all(written).await.expect("written");
        courteous.flush().await.expect("flushed");
        drop(courteous);
        let mut arrived = String::new();
        peer.read_to_string(&mut arrived).await.expect("read");
        arrived
    }

    #[tokio::test]
    async fn a_refusal_of_hypers_own_gets_an_envelope() {
        let arrived = arrives(BARE, false).await;
        let (head, body) = arrived.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n") && head.contains("\r\nx-request-id: "), "{head}");
        assert!(
            head.ends_with("\r\ndate: today") && head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["error"]["code"], "input_validation_error");
    }

    #[tokio::test]
    async fn what_a_service_answers_is_left_as_it_is() {
        let named = "HTTP/1.1 400 Bad Request\r\nx-request-id: 7\r\ncontent-length: 0\r\n\r\n";
        for (written, in_request) in [(named.as_bytes(), false), (BARE, true), (b"HTTP/1.1 200 OK\r\n\r\n", false)] {
            assert_eq!(arrives(written, in_request).await.as_bytes(), written);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_sender_is_listened_to_for_a_while() {
        let (mut peer, ours) = duplex(64);
        let mut courteous = ErrorBodyIo::new(ours, tests::connection());
        courteous.write_all(BARE).await.expect("taken");
        let began = tokio::time::Instant::now();
        let closing = tokio::spawn(async move { courteous.shutdown().await });
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.expect("read");
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        // More than the pipe holds, so that it must be read.
        peer.write_all(&[b'x'; 1000]).await.expect("taken in");
        closing.await.expect("no panic").expect("closed");
        assert_eq!(began.elapsed(), DRAIN_TIME_MAX);
    }
}
