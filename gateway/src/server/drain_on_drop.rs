//! Request bodies that were not read.
//!
//! A request that is rejected early leaves its body unread. If the connection were closed on it, the reset would discard the
//! response on the client's side. So the rest of the body is read and discarded, within bounds.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;

/// Maximum bytes to read and discard.
const DRAIN_MAX: usize = 64 * 1024 * 1024;
/// Maximum time to spend on it.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// A body whose unread rest is read and discarded after drop.
pub(super) struct DrainOnDrop<B: Body<Data = Bytes> + Send + Unpin + 'static>(Option<B>);

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> DrainOnDrop<B> {
    pub(super) fn new(body: B) -> Self {
        Self(Some(body))
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Body for DrainOnDrop<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for DrainOnDrop<B> {
    fn drop(&mut self) {
        let Some(mut body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let drain = async {
                let mut taken = 0;
                while let Some(Ok(frame)) = body.frame().await {
                    taken += frame.data_ref().map_or(0, Bytes::len);
                    if taken > DRAIN_MAX {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(DRAIN_TIME_MAX, drain).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::StreamExt;
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn what_nobody_read_is_taken_in_to_its_end() {
        let taken = Arc::new(AtomicUsize::new(0));
        let (done, ended) = tokio::sync::oneshot::channel::<()>();
        let counter = taken.clone();
        let frames = futures_util::stream::iter(0..10).map(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"x")))
        });
        let frames = frames.chain(futures_util::stream::once(async move {
            drop(done);
            Ok(Frame::data(Bytes::new()))
        }));
        drop(DrainOnDrop::new(StreamBody::new(Box::pin(frames))));
        let _ = ended.await;
        assert_eq!(taken.load(Ordering::SeqCst), 10);
    }
}
