//! Timeouts for a peer that moves bytes too slowly.
//!
//! **Guarantee.** A peer below its minimum rate (1 KiB/s unless a higher one is given) is dropped soon after its allowance is
//! used up, even if single bytes arrive regularly. A peer that keeps the rate may take as long as it likes.
//!
//! **Mechanism.** Waiting consumes the allowance; every byte returns a part of it. Time in which nothing waits for the peer does
//! not count.
//!
//! **Reason.** A plain limit on the time between two reads is satisfied by an occasional byte. Ten thousand such connections would
//! occupy the whole server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// Rate of the slowest peer that is served to the end.
const BYTES_PER_SECOND: f64 = 1024.0;

/// The remaining allowance of a peer.
pub(super) struct StallTimer {
    most: Duration,
    bytes_per_second: f64,
    left: Duration,
    /// Since when the peer is waited for, and the timer for its end.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl StallTimer {
    /// An allowance of `most` without a byte.
    pub(super) fn new(most: Duration) -> Self {
        Self::at(BYTES_PER_SECOND, most)
    }

    fn at(bytes_per_second: f64, most: Duration) -> Self {
        Self { most, bytes_per_second, left: most, wait: None }
    }

    /// Polled while the peer is waited for. Ready when the allowance is used up.
    pub(super) fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let (_, end) = self.wait.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        end.as_mut().poll(cx)
    }

    /// Returns allowance for bytes that the peer has moved.
    pub(super) fn moved(&mut self, bytes: usize) {
        if let Some((since, _)) = self.wait.take() {
            let earned = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
            self.left = self.most.min(self.left.saturating_sub(since.elapsed()) + earned);
        }
    }
}

/// A request body that fails when its sender is too slow.
pub struct MinRateBody<B> {
    body: B,
    stall: StallTimer,
}

impl<B> MinRateBody<B> {
    /// Allows `most` without a byte.
    pub(super) fn new(most: Duration, body: B) -> Self {
        Self { body, stall: StallTimer::new(most) }
    }

    /// The same with a minimum rate in bytes per second.
    pub fn at(bytes_per_second: u32, most: Duration, body: B) -> Self {
        Self { body, stall: StallTimer::at(f64::from(bytes_per_second), most) }
    }

    /// Changes the minimum rate of the bytes that are still to come.
    pub fn require(&mut self, bytes_per_second: u32) {
        self.stall.bytes_per_second = f64::from(bytes_per_second);
    }
}

impl<B> Body for MinRateBody<B>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static> + Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => this
                .stall
                .poll_wait(cx)
                .map(|()| Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the body arrived too slowly")))),
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    this.stall.moved(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    /// Reads a body of pieces of equal size, one every `interval`; returns when it was dropped, if it was.
    async fn given_up(piece: usize, interval: Duration, pieces: usize) -> Option<Duration> {
        given_up_at(1024, piece, interval, pieces).await
    }

    async fn given_up_at(pace: u32, piece: usize, interval: Duration, pieces: usize) -> Option<Duration> {
        let began = Instant::now();
        let frames = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(interval).await;
            Ok::<_, io::Error>(Frame::data(Bytes::from(vec![b'x'; piece])))
        });
        let body = MinRateBody::at(pace, Duration::from_secs(10), StreamBody::new(Box::pin(frames)));
        body.collect().await.err().map(|_| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_of_single_bytes_is_given_up_as_soon_as_one_that_is_silent() {
        let silent = given_up(1, Duration::from_secs(3600), 1).await.expect("is given up");
        let dripping = given_up(1, Duration::from_millis(900), 1000).await.expect("is given up");
        assert_eq!(silent.as_secs(), 10);
        assert!(dripping < Duration::from_secs(11), "{dripping:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_keeps_the_pace_may_take_its_time() {
        assert_eq!(given_up(2048, Duration::from_secs(1), 600).await, None);
        assert_eq!(given_up(16 * 1024, Duration::from_secs(9), 20).await, None);
        assert!(given_up(512, Duration::from_secs(1), 600).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_higher_pace_is_asked_as_the_body_comes_and_not_at_its_end() {
        let (pace, second) = (64 * 1024, Duration::from_secs(1));
        let dripping = given_up_at(pace, 2048, second, 3600).await.expect("is given up");
        assert!(dripping < Duration::from_secs(12), "{dripping:?}");
        assert_eq!(given_up_at(pace, 64 * 1024, second, 3600).await, None);
        // A link that stalls after it has sent a lot gets the same allowance as any other.
        assert_eq!(given_up_at(pace, 1024 * 1024, Duration::from_secs(9), 20).await, None);
    }
}
