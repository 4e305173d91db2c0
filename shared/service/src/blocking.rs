//! The only way to run blocking work.
//!
//! At most `threads` closures run at once: pixel work uses the processors fully, so more parallel
//! work would only need more memory. A closure keeps its slot until it has returned, even if its
//! caller is gone, because a thread cannot be stopped from outside. Releasing the slot earlier
//! would let the pool exceed its limit. A panic ends only its own closure.
//!
//! The pool has threads of its own and not those of the runtime, which takes turns among dozens of
//! them. The allocator keeps memory for each thread, so an image gets the pages that the one before
//! has used; on a thread that has not run for a while, the kernel has to clear new ones.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use thiserror::Error;
use tokio::sync::{Semaphore, oneshot};
use tracing::Span;

use crate::stack;

/// A bounded pool for blocking work. Clones share its threads, which end with the last clone.
#[derive(Clone, Debug)]
pub struct Blocking {
    threads: mpsc::Sender<Work>,
    places: Arc<Semaphore>,
    /// Number of closures that wait for a slot.
    waiting: Arc<AtomicUsize>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A place in the queue for a slot.
struct InLine<'a>(&'a AtomicUsize);

impl<'a> InLine<'a> {
    fn enter(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The closure panicked.
#[derive(Debug, Error)]
#[error("blocking work panicked: {message}")]
pub struct Panicked {
    /// Message of the panic.
    pub message: String,
}

impl Blocking {
    /// A pool that runs `threads` closures at once, and at least one.
    ///
    /// # Panics
    ///
    /// If the system cannot start the threads.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let (sender, receiver) = mpsc::channel::<Work>();
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..threads {
            let receiver = Arc::clone(&receiver);
            let run = move || {
                loop {
                    // A closure never panics while the lock is held.
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(work) = next else { return };
                    work();
                }
            };
            stack::thread(format!("blocking-{number}")).spawn(run).expect("the system starts threads");
        }
        Self { threads: sender, places: Arc::new(Semaphore::new(threads)), waiting: Arc::default() }
    }

    /// Number of closures that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Runs `work` on one of the threads inside the caller's tracing span, as soon as there is a
    /// slot. Slots are granted in the order of the calls. If the future is dropped before `work`
    /// has a slot, it never runs.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if `work` panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
        let line = InLine::enter(&self.waiting);
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .expect("nothing closes the semaphore while the pool is alive");
        drop(line);
        let span = Span::current();
        let (done, outcome) = oneshot::channel();
        let work = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)));
            drop(place);
            // Nobody listens if the caller is gone.
            let _ = done.send(outcome);
        };
        self.threads.send(Box::new(work)).expect("the threads live as long as the pool");
        let outcome = outcome.await.expect("a thread always answers");
        outcome.map_err(|payload| Panicked { message: panic_message(&*payload) })
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
