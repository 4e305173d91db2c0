//! Timeouts of a connection.
//!
//! hyper's own header timeout also runs while a connection idles between requests, so it cannot be short for slow heads and long
//! for idle connections. This wrapper times what an attacker can prolong: a head, the time between two requests, a response that is
//! not read, and a large response that is read slowly, since it occupies memory until its end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::gate::{Connection, IDLE_CROWDED_MAX, Place};
use super::min_rate_body::StallTimer;

/// Time for the head of a request: for the first one since the connection was accepted, else since its first byte.
pub(super) const HEAD_MAX: Duration = Duration::from_secs(10);
/// Allowance without a byte of a response being read; slow reading uses it up as well ([`super::pace`]).
const WRITE_STALL_MAX: Duration = Duration::from_secs(20);

/// A stream that fails when its peer is too slow.
pub(super) struct TimeoutIo<S> {
    stream: S,
    connection: Connection,
    /// The place and the time of the connection of which `wait` and `end` are.
    waits: (Place, Instant),
    wait: Wait,
    end: Pin<Box<Sleep>>,
    write: StallTimer,
}

/// What is waited for.
#[derive(PartialEq, Eq)]
enum Wait {
    /// The first byte of another request.
    Idle,
    /// The rest of a head.
    Head,
}

impl<S> TimeoutIo<S> {
    pub(super) fn new(stream: S, connection: Connection) -> Self {
        let waits = connection.place();
        let end = Box::pin(tokio::time::sleep_until(waits.1 + HEAD_MAX));
        Self { stream, connection, waits, wait: Wait::Head, end, write: StallTimer::new(WRITE_STALL_MAX) }
    }

    /// Returns `true` if the peer has been waited for too long.
    fn is_timed_out(&mut self, cx: &mut Context<'_>) -> bool {
        while self.end.as_mut().poll(cx).is_ready() {
            let left = if self.wait == Wait::Idle { self.connection.idle_left() } else { Duration::ZERO };
            if left.is_zero() {
                return true;
            }
            // Whether the gate is crowded may change.
            self.end.as_mut().reset(Instant::now() + left.min(IDLE_CROWDED_MAX));
        }
        false
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(cx, buffer);
        let waits = this.connection.place();
        if waits.0 == Place::Request {
            return polled;
        }
        if this.waits != waits {
            (this.waits, this.wait) = (waits, Wait::Idle);
            this.end.as_mut().reset(waits.1 + IDLE_CROWDED_MAX);
        }
        if this.wait == Wait::Idle && buffer.filled().len() > before {
            this.wait = Wait::Head;
            this.end.as_mut().reset(Instant::now() + HEAD_MAX);
        }
        if polled.is_pending() && this.is_timed_out(cx) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "no complete request head came in time")));
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
        if self.connection.is_overdue() {
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
        // hyper flushes its stream when its own buffer is empty.
        if polled.is_ready() {
            self.connection.flushed();
        }
        self.watch(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(polled, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::server::gate::{InProgress, tests};

    /// The seconds until a read fails, while the peer sends a byte in each interval, if given.
    async fn given_up_after(io: &mut TimeoutIo<DuplexStream>, peer: &mut DuplexStream, interval: Option<u64>) -> u64 {
        let began = Instant::now();
        let mut next = Instant::now();
        loop {
            if let Some(interval) = interval
                && next <= Instant::now()
            {
                peer.write_all(b"x").await.expect("sent");
                next += Duration::from_secs(interval);
            }
            let until = if interval.is_some() { next } else { began + Duration::from_secs(3600) };
            match tokio::time::timeout_at(until, io.read(&mut [0; 64])).await {
                Ok(Err(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                    return began.elapsed().as_secs();
                }
                Ok(Ok(_)) => {}
                Err(_) => assert!(interval.is_some(), "is never given up"),
            }
        }
    }

    /// A request and its response.
    async fn handle_request(io: &mut TimeoutIo<DuplexStream>, connection: &Connection) {
        assert!(connection.begin_request());
        connection.end_request(None);
        drop(InProgress { connection: connection.clone(), _held: None });
        io.flush().await.expect("flushed");
        assert_eq!(connection.place().0, Place::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_is_complete_ten_seconds_after_the_connection_was_accepted() {
        for interval in [None, Some(1), Some(4)] {
            let (mut peer, ours) = duplex(64);
            let connection = tests::connection();
            tokio::time::sleep(Duration::from_secs(3)).await;
            let mut io = TimeoutIo::new(ours, connection);
            assert_eq!(given_up_after(&mut io, &mut peer, interval).await, 7, "{interval:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_head_is_complete_ten_seconds_after_its_first_byte() {
        let (mut peer, ours) = duplex(64);
        let connection = tests::connection();
        let mut io = TimeoutIo::new(ours, connection.clone());
        for wait in [0, 4, 60] {
            handle_request(&mut io, &connection).await;
            let silence = tokio::time::timeout(Duration::from_secs(wait), io.read(&mut [0; 64])).await;
            assert!(silence.is_err(), "{wait}");
        }
        assert_eq!(given_up_after(&mut io, &mut peer, Some(1)).await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_has_65_seconds_and_five_when_the_gate_is_crowded() {
        let gate = tests::gate(2, 2);
        let connection = gate.open([127, 0, 0, 1].into()).expect("admitted");
        let (mut peer, ours) = duplex(64);
        let mut io = TimeoutIo::new(ours, connection.clone());
        handle_request(&mut io, &connection).await;
        assert_eq!(given_up_after(&mut io, &mut peer, None).await, 65);
        handle_request(&mut io, &connection).await;
        // It becomes crowded while the connection idles.
        let calm = tokio::time::timeout(Duration::from_secs(13), io.read(&mut [0; 64])).await;
        assert!(calm.is_err(), "is not crowded");
        let _other = gate.open([127, 0, 0, 1].into()).expect("admitted");
        assert_eq!(given_up_after(&mut io, &mut peer, None).await, 2, "at the next look");
        handle_request(&mut io, &connection).await;
        assert_eq!(given_up_after(&mut io, &mut peer, None).await, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_request_is_left_alone() {
        let (mut peer, ours) = duplex(64);
        let connection = tests::connection();
        let mut io = TimeoutIo::new(ours, connection.clone());
        assert!(connection.begin_request());
        peer.write_all(b"body").await.expect("sent");
        let mut buffer = [0; 64];
        assert_eq!(io.read(&mut buffer).await.expect("read"), 4);
        let running = tokio::time::timeout(Duration::from_secs(500), io.read(&mut buffer)).await;
        assert!(running.is_err(), "a request's body has its own limit");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_is_given_up_on() {
        let (_peer, ours) = duplex(4);
        let mut patient = TimeoutIo::new(ours, tests::connection());
        let error = patient.write_all(&[0; 64]).await.expect_err("given up on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_answer_is_taken_in_its_time_however_steadily_it_is_taken() {
        for (most, is_taken) in [(Some(30), false), (Some(90), true), (None, true)] {
            let (mut peer, ours) = duplex(2048);
            let connection = tests::connection();
            assert!(connection.begin_request());
            connection.end_request(most.map(Duration::from_secs));
            let mut patient = TimeoutIo::new(ours, connection);
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
