//! How long a peer is waited for while it moves bytes.
//!
//! **Guarantee.** A peer that moves less than its pace, a kibibyte a second where no more is asked, is given up on soon after its
//! allowance is used up, however regularly its single bytes come; one that keeps the pace may take as long as it likes.
//!
//! **Mechanism.** Waiting uses the allowance up, every byte gives a part of it back. Time in which nobody waits for the peer is not
//! counted.
//!
//! **Reason.** A limit between two pieces alone is met by a byte now and then, and ten thousand such connections are all there are.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// The slowest peer that is served to the end.
const BYTES_PER_SECOND: f64 = 1024.0;

/// What is left of the patience with a peer.
pub(super) struct Patience {
    most: Duration,
    bytes_per_second: f64,
    left: Duration,
    /// Since when it is waited for, and the end of that.
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Patience {
    /// Patience for `most` without a byte.
    pub(super) fn new(most: Duration) -> Self {
        Self::at(BYTES_PER_SECOND, most)
    }

    fn at(bytes_per_second: f64, most: Duration) -> Self {
        Self { most, bytes_per_second, left: most, wait: None }
    }

    /// The peer is waited for. Ready when that was for too long.
    pub(super) fn poll_wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let (_, end) = self.wait.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        end.as_mut().poll(cx)
    }

    /// The peer has moved so many bytes.
    pub(super) fn moved(&mut self, bytes: usize) {
        if let Some((since, _)) = self.wait.take() {
            let earned = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
            self.left = self.most.min(self.left.saturating_sub(since.elapsed()) + earned);
        }
    }
}

/// A request's body that is given up on when its sender drags.
pub struct Paced<B> {
    body: B,
    patience: Patience,
}

impl<B> Paced<B> {
    /// Waits for `most` without a byte.
    pub(super) fn new(most: Duration, body: B) -> Self {
        Self { body, patience: Patience::new(most) }
    }

    /// The same with a pace in bytes a second.
    pub fn at(bytes_per_second: u32, most: Duration, body: B) -> Self {
        Self { body, patience: Patience::at(f64::from(bytes_per_second), most) }
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static> + Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => this
                .patience
                .poll_wait(cx)
                .map(|()| Some(Err(io::Error::new(io::ErrorKind::TimedOut, "the body came too slowly")))),
            Poll::Ready(frame) => {
                if let Some(Ok(frame)) = &frame {
                    this.patience.moved(frame.data_ref().map_or(0, Bytes::len));
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

    /// A body of pieces of so many bytes, one every `interval`; when it was given up, if it was.
    async fn given_up(piece: usize, interval: Duration, pieces: usize) -> Option<Duration> {
        given_up_at(1024, piece, interval, pieces).await
    }

    async fn given_up_at(pace: u32, piece: usize, interval: Duration, pieces: usize) -> Option<Duration> {
        let began = Instant::now();
        let frames = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(interval).await;
            Ok::<_, io::Error>(Frame::data(Bytes::from(vec![b'x'; piece])))
        });
        let body = Paced::at(pace, Duration::from_secs(10), StreamBody::new(Box::pin(frames)));
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
        // A link that falls silent for a while after it has sent a lot is waited for as long as any other.
        assert_eq!(given_up_at(pace, 1024 * 1024, Duration::from_secs(9), 20).await, None);
    }
}
