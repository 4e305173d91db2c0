//! The only way to run blocking work.
//!
//! At most `threads` closures run at once: pixel work uses the processors fully, so more parallel
//! work would only need more memory. A closure keeps its slot until it has returned, even if its
//! caller is gone, because a thread cannot be stopped from outside. Releasing the slot earlier
//! would let the pool exceed its limit. A panic ends only its own closure.
//!
//! One account has at most all threads but one, so that the others need not wait for its closures.
//!
//! The pool has threads of its own and not those of the runtime, which takes turns among dozens of
//! them. The allocator keeps memory for each thread, so an image gets the pages that the one before
//! has used; on a thread that has not run for a while, the kernel has to clear new ones.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use thiserror::Error;
use tokio::sync::oneshot;
use tracing::Span;

use crate::shares::Shares;
use crate::{account, stack};

/// A bounded pool for blocking work. Clones share its threads, which end with the last clone.
#[derive(Clone, Debug)]
pub struct Blocking {
    threads: mpsc::Sender<Work>,
    places: Shares,
}

type Work = Box<dyn FnOnce() + Send>;

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
        let places = Shares::new("threads", threads as u64, threads as u64 - 1);
        Self { threads: sender, places }
    }

    /// Number of closures that wait for a slot.
    pub fn waiting(&self) -> usize {
        self.places.waiting()
    }

    /// Runs `work` on one of the threads inside the caller's tracing span, as soon as there is a
    /// slot for the account of the current task ([`account::key`]). If the future is dropped before
    /// `work` has a slot, it never runs.
    ///
    /// # Errors
    ///
    /// [`Panicked`] if `work` panics.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
        let place = self.places.hold(&account::key(), 1).await;
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
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

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
                let work = pool.run(move || {
                    begun.send(name).expect("the test listens");
                    released.recv().expect_err("the sender is dropped to release");
                });
                account::on_behalf_of(&name.to_string(), work).await
            });
            if name < 2 {
                // The work has started and its caller is gone: the slot stays occupied.
                tokio::task::block_in_place(|| started_receive(&started));
                waiting.abort();
            }
        }
        assert_eq!(pool.places.held(), 2);
        assert!(started.try_recv().is_err());
        drop(releases.remove(0));
        assert_eq!(tokio::task::block_in_place(|| started_receive(&started)), 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_account_has_all_threads_but_one() {
        for (threads, most) in [(2, 1), (3, 2)] {
            let pool = Blocking::new(threads);
            let (begun, started) = mpsc::channel();
            let run = |account: &'static str| {
                let (release, released) = mpsc::channel::<()>();
                let (pool, begun) = (pool.clone(), begun.clone());
                tokio::spawn(account::on_behalf_of(account, async move {
                    let work = move || {
                        begun.send(account).expect("the test listens");
                        released.recv().expect_err("the sender is dropped to release");
                    };
                    pool.run(work).await
                }));
                release
            };
            let mut releases: Vec<_> = (0..4).map(|_| run("busy")).collect();
            for _ in 0..most {
                assert_eq!(tokio::task::block_in_place(|| started.recv_timeout(PATIENCE)), Ok("busy"));
            }
            assert!(started.try_recv().is_err(), "{threads}");
            releases.push(run("late"));
            assert_eq!(tokio::task::block_in_place(|| started.recv_timeout(PATIENCE)), Ok("late"), "{threads}");
            assert!(started.try_recv().is_err(), "{threads}");
        }
    }

    fn started_receive(started: &mpsc::Receiver<i32>) -> i32 {
        started.recv_timeout(PATIENCE).expect("work begins")
    }
}
