//! Futures that run to completion although their caller is dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that runs to completion in its own task when its caller is dropped.
///
/// **Reason.** sqlx loses track of a `BEGIN` whose caller is dropped before the answer. The connection returns to the pool
/// inside a transaction, and writes of the next caller on it are rolled back some seconds after they were reported as done. A
/// client that disconnects is enough to cause this.
pub(crate) struct DetachOnDrop<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> DetachOnDrop<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let (Some(future), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(future);
        }
    }
}
