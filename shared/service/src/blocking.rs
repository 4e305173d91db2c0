//! The only way to run blocking work.
//!
//! At most `threads` closures run at once: pixel work uses the processors fully, so more parallel
//! work would only need more memory. A closure keeps its slot until it has returned, even if its
//! caller is gone, because a thread cannot be stopped from outside. Releasing the slot earlier
//! would let the pool exceed its limit. A panic ends only its own closure.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thiserror::Error;
use tokio::sync::Semaphore;
use tracing::Span;

/// A bounded pool for blocking work. Clones share the limit.
#[derive(Clone, Debug)]
pub struct Blocking {
    places: Arc<Semaphore>,
    /// Number of closures that wait for a slot.
    waiting: Arc<AtomicUsize>,
}

/// A place in the queue for a slot.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    fn of(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The closure panicked, or the runtime shut down before the closure ran.
#[derive(Debug, Error)]
#[error("blocking work panicked: {message}")]
pub struct Panicked {
    /// Message of the panic.
    pub message: String,
}

impl Blocking {
    /// A pool that runs `threads` closures at once, and at least one.
    pub fn new(threads: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(threads.max(1))), waiting: Arc::default() }
    }

    /// Number of closures that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs `work` on a separate thread inside the caller's tracing span, as soon as there is a
    /// slot. Slots are granted in the order of the calls. If the future is dropped before `work`
    /// starts, it never runs.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if `work` panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
        let line = InLine::of(&self.waiting);
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .expect("nothing closes the semaphore while the pool is alive");
        drop(line);
        let span = Span::current();
        #[expect(clippy::disallowed_methods, reason = "the only place that spawns blocking work")]
        let thread = tokio::task::spawn_blocking(move || {
            let _place = place;
            span.in_scope(work)
        });
        thread.await.map_err(|error| Panicked {
            message: match error.try_into_panic() {
                Ok(payload) => panic_message(&*payload),
                Err(error) => error.to_string(),
            },
        })
    }
}

/// The message of a panic, if its payload is a string, as that of `panic!` is.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn the_result_of_the_work_comes_back() {
        assert_eq!(Blocking::new(1).run(|| 6 * 7).await.expect("no panic"), 42);
    }

    #[tokio::test]
    async fn a_panic_becomes_an_error_and_gives_its_place_back() {
        let pool = Blocking::new(1);
        let error = pool.run(|| -> () { panic!("bad {}", "pixels") }).await.expect_err("panicked");
        assert_eq!(error.to_string(), "blocking work panicked: bad pixels");
        assert!(pool.run(|| ()).await.is_ok());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_more_than_the_given_number_run_at_once_even_when_nobody_waits() {
        let pool = Blocking::new(2);
        let (begun, started) = mpsc::channel();
        let mut releases = Vec::new();
        for name in 0..3 {
            let (release, released) = mpsc::channel::<()>();
            releases.push(release);
            let (pool, begun) = (pool.clone(), begun.clone());
            let waiting = tokio::spawn(async move {
                pool.run(move || {
                    begun.send(name).expect("the test listens");
                    released.recv().expect_err("the sender is dropped to release");
                })
                .await
            });
            if name < 2 {
                // The work has started and its caller is gone: the slot stays occupied.
                tokio::task::block_in_place(|| started_receive(&started));
                waiting.abort();
            }
        }
        assert_eq!(pool.places.available_permits(), 0);
        assert!(started.try_recv().is_err());
        drop(releases.remove(0));
        assert_eq!(tokio::task::block_in_place(|| started_receive(&started)), 2);
    }

    fn started_receive(started: &mpsc::Receiver<i32>) -> i32 {
        started.recv_timeout(std::time::Duration::from_secs(10)).expect("work begins")
    }
}
