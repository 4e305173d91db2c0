//! Timeouts of a connection.
//!
//! hyper's own header timeout also runs while a connection idles between requests, so it cannot be short for slow heads and long
//! for idle connections. This wrapper times what an attacker can prolong: a head that has begun, a response that is not read, and
//! a large response that is read slowly, since it occupies memory until its end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::min_rate_body::StallTimer;

/// Time from the first byte of a request head to its last.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// Allowance without a byte of a response being read; slow reading uses it up as well ([`super::pace`]).
const WRITE_STALL_MAX: Duration = Duration::from_secs(20);

/// The state of a connection, as the service reports it: whether a request is being handled, whether there ever was one, and
/// until when the response has to be read.
#[derive(Clone)]
pub(super) struct Phase(Arc<State>);

struct State {
    in_request: AtomicBool,
    begun: CancellationToken,
    since: Instant,
    /// Milliseconds after `since`; 0 for no deadline.
    due: AtomicU64,
}

impl Default for Phase {
    fn default() -> Self {
        Self(Arc::new(State {
            in_request: AtomicBool::default(),
            begun: CancellationToken::new(),
            since: Instant::now(),
            due: AtomicU64::default(),
        }))
    }
}

impl Phase {
    /// A request head is complete.
    pub(super) fn begin_request(&self) {
        self.0.due.store(0, Ordering::Release);
        self.0.in_request.store(true, Ordering::Release);
        self.0.begun.cancel();
    }

    /// The response is made, and has to be read within `most` if given.
    pub(super) fn end_request(&self, most: Option<Duration>) {
        let due = most.map_or(0, |most| (self.0.since.elapsed() + most).as_millis());
        self.0.due.store(u64::try_from(due).unwrap_or(u64::MAX), Ordering::Release);
        self.0.in_request.store(false, Ordering::Release);
    }

    /// Waits for the first request.
    pub(super) async fn begun(&self) {
        self.0.begun.cancelled().await;
    }

    /// Returns `true` if a request is being handled.
    pub(super) fn in_request(&self) -> bool {
        self.0.in_request.load(Ordering::Acquire)
    }

    /// Returns `true` if the deadline of the response has passed.
    fn is_overdue(&self) -> bool {
        let due = self.0.due.load(Ordering::Acquire);
        due != 0 && self.0.since.elapsed().as_millis() >= u128::from(due)
    }
}

/// A stream that fails when its peer is too slow.
pub(super) struct TimeoutIo<S> {
    stream: S,
    phase: Phase,
    head: Option<Pin<Box<Sleep>>>,
    write: StallTimer,
}

impl<S> TimeoutIo<S> {
    pub(super) fn new(stream: S, phase: Phase) -> Self {
        Self { stream, phase, head: None, write: StallTimer::new(WRITE_STALL_MAX) }
    }
}

fn timed_out(timer: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if this.phase.in_request() {
            this.head = None;
            return polled;
        }
        if buffer.filled().len() > before && this.head.is_none() {
            this.head = Some(Box::pin(tokio::time::sleep(HEAD_MAX)));
        }
        if polled.is_pending() && timed_out(&mut this.head, cx) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request head took too long")));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> TimeoutIo<S> {
    fn watch_write(&mut self, polled: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = polled {
            self.write.moved(written);
        }
        self.watch(polled, cx)
    }

    /// Applies the timeouts to an operation that waits for the peer.
    fn watch<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            return polled;
        }
        // Checked each time the peer is waited for, which is at least once in an allowance.
        if self.phase.is_overdue() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the response was read too slowly")));
        }
        self.write.poll_wait(cx).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the response was not read")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch_write(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.watch_write(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(polled, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_head_that_drags_is_given_up_on_after_ten_seconds() {
        let (mut peer, ours) = duplex(64);
        let mut patient = TimeoutIo::new(ours, Phase::default());
        peer.write_all(b"GET / HT").await.expect("sent");
        let mut head = [0; 64];
        assert_eq!(patient.read(&mut head).await.expect("read"), 8);
        let started = tokio::time::Instant::now();
        let error = patient.read(&mut head).await.expect_err("given up on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_and_a_running_request_are_left_alone() {
        let (mut peer, ours) = duplex(64);
        let phase = Phase::default();
        let mut patient = TimeoutIo::new(ours, phase.clone());
        let mut buffer = [0; 64];
        let idle = tokio::time::timeout(Duration::from_secs(50), patient.read(&mut buffer)).await;
        assert!(idle.is_err(), "nothing was sent, nothing is timed");
        phase.begin_request();
        peer.write_all(b"body").await.expect("sent");
        assert_eq!(patient.read(&mut buffer).await.expect("read"), 4);
        let running = tokio::time::timeout(Duration::from_secs(50), patient.read(&mut buffer)).await;
        assert!(running.is_err(), "a request's body has its own limit");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_is_given_up_on() {
        let (_peer, ours) = duplex(4);
        let mut patient = TimeoutIo::new(ours, Phase::default());
        let error = patient.write_all(&[0; 64]).await.expect_err("given up on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_is_taken_in_its_time_however_steadily_it_is_taken() {
        for (most, is_taken) in [(Some(30), false), (Some(90), true), (None, true)] {
            let (mut peer, ours) = duplex(2048);
            let phase = Phase::default();
            phase.begin_request();
            phase.end_request(most.map(Duration::from_secs));
            let mut patient = TimeoutIo::new(ours, phase);
            let began = Instant::now();
            let reading = tokio::spawn(async move {
                // A rate at which any response may be read.
                while matches!(peer.read(&mut [0; 2048]).await, Ok(1..)) {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
            let written = patient.write_all(&[0; 60 * 2048]).await;
            assert_eq!(written.is_ok(), is_taken, "{most:?}: {written:?} after {:?}", began.elapsed());
            assert!(is_taken || began.elapsed().as_secs() <= 31, "{:?}", began.elapsed());
            reading.abort();
        }
    }
}
