//! What hyper refuses by itself, told as everything else is.
//!
//! **Guarantee.** A head that hyper cannot take, because it is no HTTP or over the limits, is refused with the one envelope, 400 as
//! all malformed input (decisions 1.1), and its sender gets to read that.
//!
//! **Mechanism.** hyper answers such a head with a bare status before any service is asked. Whatever a service answers names its
//! request ([`crate::observe`]); an answer that does not, and is written while no request is handled, is hyper's own, and the
//! envelope takes its place. What the sender has under way is then taken in, within bounds: closing on unread bytes would reset
//! the connection and take the answer with it.
//!
//! **Reason.** hyper has no hook for these answers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use uuid::Uuid;

use super::patience::Phase;
use crate::problem::Problem;

/// Bytes of a refused request that are taken in at most.
const DRAIN_MAX: usize = 1024 * 1024;
/// And for how long.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(2);
/// hyper's own answers are a status, two headers and a date.
const BARE_MAX: usize = 256;

/// A stream on which nobody is refused without an envelope.
pub(super) struct Courteous<S> {
    stream: S,
    phase: Phase,
    refusal: Option<Refusal>,
}

/// An envelope on its way, and what is taken in afterwards.
struct Refusal {
    unwritten: Bytes,
    drained: usize,
    patience: Pin<Box<Sleep>>,
}

impl<S> Courteous<S> {
    pub(super) fn new(stream: S, phase: Phase) -> Self {
        Self { stream, phase, refusal: None }
    }

    /// Takes hyper's own answer, if these bytes are one.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        let is_bare = bytes.len() <= BARE_MAX && !self.phase.in_request() && is_bare_refusal(bytes);
        if is_bare {
            self.refusal = Some(Refusal {
                unwritten: envelope(bytes),
                drained: 0,
                patience: Box::pin(tokio::time::sleep(DRAIN_TIME_MAX)),
            });
        }
        is_bare
    }
}

/// Whether this is all of an answer, one of a client's mistake, without body and without a request's id.
fn is_bare_refusal(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Some(head) = text.strip_prefix("HTTP/1.1 4").and_then(|head| head.strip_suffix("\r\n\r\n")) else {
        return false;
    };
    !head.contains("\r\n\r\n") && head.contains("\r\ncontent-length: 0") && !head.contains("\r\nx-request-id:")
}

/// The same with an envelope.
fn envelope(bare: &[u8]) -> Bytes {
    let (status, envelope) = Problem::UnreadableHead.into_envelope();
    let body = serde_json::to_string(&envelope).expect("an envelope serializes");
    let bare = String::from_utf8_lossy(bare);
    let date =
        bare.lines().find(|line| line.starts_with("date: ")).map(|date| format!("{date}\r\n")).unwrap_or_default();
    let id = Uuid::now_v7();
    metrics::counter!("http_requests_total", "method" => "", "route" => "unreadable", "status" => status.as_str().to_owned())
        .increment(1);
    tracing::info!(request_id = %id, status = status.as_u16(), "request refused: its head cannot be read");
    Bytes::from(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         x-request-id: {id}\r\nconnection: close\r\n{date}\r\n{body}",
        body.len()
    ))
}

impl<S: AsyncRead + Unpin> AsyncRead for Courteous<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Courteous<S> {
    /// Writes what is left of an envelope.
    fn poll_envelope(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(refusal) = &mut self.refusal else { return Poll::Ready(Ok(())) };
        while refusal.unwritten.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &refusal.unwritten))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            refusal.unwritten.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes in what a refused sender has under way.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(refusal) = &mut self.refusal else { return Poll::Ready(()) };
        let mut taken = [0; 8 * 1024];
        while refusal.drained < DRAIN_MAX && refusal.patience.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut taken);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => refusal.drained += buffer.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Courteous<S> {
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

    const BARE: &[u8] =
        b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n";

    /// What arrives of `written`, with a request under way or not.
    async fn arrives(written: &[u8], in_request: bool) -> String {
        let (mut peer, ours) = duplex(4096);
        let phase = Phase::default();
        if in_request {
            phase.begin_request();
        }
        let mut courteous = Courteous::new(ours, phase);
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
        let mut courteous = Courteous::new(ours, Phase::default());
        courteous.write_all(BARE).await.expect("taken");
        let began = tokio::time::Instant::now();
        let closing = tokio::spawn(async move { courteous.shutdown().await });
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.expect("read");
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        // More than the pipe holds: it is taken in.
        peer.write_all(&[b'x'; 1000]).await.expect("taken in");
        closing.await.expect("no panic").expect("closed");
        assert_eq!(began.elapsed(), DRAIN_TIME_MAX);
    }
}
