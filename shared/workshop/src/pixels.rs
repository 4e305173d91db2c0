//! Where pixel work runs: one thread a processor, and no more pictures in memory than fit.
//!
//! **Guarantee.** The estimated memory of all running work stays within the budget (`CANVAS_IMAGE_MEMORY_MIB`), as
//! [`Memory`] has it.
//!
//! **Mechanism.** Work takes what it was admitted with along to its thread and gives it back when it has really ended, because
//! a thread cannot be stopped from outside: a job that is given up goes on holding what it holds.
//!
//! What is given up too often at once leaves no thread: [`stuck`](Pixels::stuck) tells, so that the process is restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use service::blocking::{Blocking, Panicked};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::sleep;

use crate::Memory;

/// Runs work on pixels. Clones share threads and budget.
#[derive(Clone, Debug)]
pub struct Pixels {
    threads: Blocking,
    memory: Memory,
    thread_count: usize,
    /// Pieces of work that run and that nobody waits for.
    abandoned: Arc<watch::Sender<usize>>,
}

impl Pixels {
    /// A pool of `threads` threads for work that takes `budget_bytes` of memory altogether.
    pub fn new(threads: usize, budget_bytes: u64) -> Self {
        Self {
            threads: Blocking::new(threads),
            memory: Memory::new(budget_bytes),
            thread_count: threads.max(1),
            abandoned: Arc::new(watch::Sender::new(0)),
        }
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.thread_count
    }

    /// Memory that is taken by work that runs or waits for a thread.
    pub fn reserved_bytes(&self) -> u64 {
        self.memory.held_bytes()
    }

    /// How much work has its memory and waits for a thread.
    pub fn waiting(&self) -> usize {
        self.threads.waiting()
    }

    /// Waits until every thread has been held for `patience` by work that was given up: none of it will end, most likely, and
    /// no other work will begin.
    pub async fn stuck(&self, patience: Duration) {
        let mut abandoned = self.abandoned.subscribe();
        loop {
            // The sender is held by `self`, so that neither wait fails.
            let _ = abandoned.wait_for(|&count| count >= self.thread_count).await;
            tokio::select! {
                _ = abandoned.wait_for(|&count| count < self.thread_count) => {}
                () = sleep(patience) => return,
            }
        }
    }

    /// Runs `work`, which takes `memory_bytes`, as soon as memory and a thread are free.
    ///
    /// # Errors
    /// [`Panicked`] when the work did.
    pub async fn run<T: Send + 'static>(
        &self,
        memory_bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Panicked> {
        self.reserve(memory_bytes).await.run(work).await
    }

    /// Waits for `memory_bytes`, to be had before what the work is about is loaded: files, too, take memory.
    ///
    /// A holder must not wait for a second reservation: two that do could wait for each other.
    pub async fn reserve(&self, memory_bytes: u64) -> Reservation {
        let memory = self.memory.admit(memory_bytes).await;
        // A whole number of units is far below 2^52.
        metrics::gauge!("canvas_pixel_memory_bytes").set(self.reserved_bytes() as f64);
        metrics::gauge!("canvas_pixel_waiting").set(self.waiting() as f64);
        Reservation { pixels: self.clone(), memory }
    }
}

/// Memory that is kept free for one piece of work. Given back when the work has ended, or when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    pixels: Pixels,
    memory: OwnedSemaphorePermit,
}

impl Reservation {
    /// Runs `work` as soon as a thread is free.
    ///
    /// # Errors
    /// [`Panicked`] when the work did.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
        let Self { pixels, memory } = self;
        let parted = Arc::new(AtomicBool::new(false));
        let _waiter = Waiter { parted: parted.clone(), abandoned: pixels.abandoned.clone() };
        let running = Running { parted, abandoned: pixels.abandoned.clone() };
        pixels
            .threads
            .run(move || {
                let _held = (memory, running);
                work()
            })
            .await
    }
}

/// Whoever waits for a piece of work. Gone before the work has ended, it leaves it abandoned.
struct Waiter {
    /// Whether one of the two has gone.
    parted: Arc<AtomicBool>,
    abandoned: Arc<watch::Sender<usize>>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if !self.parted.swap(true, Ordering::AcqRel) {
            self.abandoned.send_modify(|count| *count += 1);
        }
    }
}

/// A piece of work, begun or about to.
struct Running {
    parted: Arc<AtomicBool>,
    abandoned: Arc<watch::Sender<usize>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.parted.swap(true, Ordering::AcqRel) {
            // Wraps, were this to overtake the waiter's own step, until that has been taken.
            self.abandoned.send_modify(|count| *count = count.wrapping_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::memory::UNIT_BYTES;

    #[tokio::test(flavor = "multi_thread")]
    async fn work_waits_for_memory_in_turn() {
        let pixels = Pixels::new(4, 4 * UNIT_BYTES);
        let (release, released) = mpsc::channel::<()>();
        let (started_sender, started) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let pixels = pixels.clone();
            async move {
                pixels
                    .run(3 * UNIT_BYTES, move || {
                        started_sender.send(()).expect("the test listens");
                        released.recv().expect_err("dropped to release");
                    })
                    .await
            }
        });
        started.await.expect("the first begins");
        assert!(pixels.run(UNIT_BYTES, || ()).await.is_ok(), "what still fits runs beside it");
        let second_ran = Arc::new(AtomicBool::new(false));
        let mut second = Box::pin(pixels.run(2 * UNIT_BYTES, {
            let second_ran = Arc::clone(&second_ran);
            move || second_ran.store(true, Ordering::SeqCst)
        }));
        tokio::select! {
            biased;
            _ = &mut second => panic!("two units are not free"),
            () = tokio::task::yield_now() => {}
        }
        assert!(!second_ran.load(Ordering::SeqCst));
        drop(release);
        first.await.expect("joins").expect("no panic");
        second.await.expect("no panic");
        assert!(second_ran.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn threads_that_are_all_held_by_abandoned_work_are_noticed() {
        let pixels = Pixels::new(2, 8 * UNIT_BYTES);
        let (releases, works): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                let (begun, started) = tokio::sync::oneshot::channel();
                let pixels = pixels.clone();
                let work = tokio::spawn(async move {
                    let work = move || {
                        begun.send(()).expect("the test listens");
                        released.recv().expect_err("dropped to release");
                    };
                    pixels.run(UNIT_BYTES, work).await
                });
                (release, (work, started))
            })
            .unzip();
        let patience = Duration::from_millis(50);
        let stuck = tokio::spawn({
            let pixels = pixels.clone();
            async move { pixels.stuck(patience).await }
        });
        for (count, (work, started)) in works.into_iter().enumerate() {
            started.await.expect("begins");
            assert_eq!(*pixels.abandoned.borrow(), count);
            work.abort();
            assert!(work.await.expect_err("is given up").is_cancelled());
        }
        tokio::time::timeout(Duration::from_secs(20), stuck).await.expect("is noticed").expect("ends");
        drop(releases);
        let mut abandoned = pixels.abandoned.subscribe();
        abandoned.wait_for(|&count| count == 0).await.expect("they end");
    }

    #[tokio::test]
    async fn work_larger_than_the_whole_budget_runs_alone() {
        let pixels = Pixels::new(2, 2 * UNIT_BYTES);
        let held = pixels.run(u64::MAX, {
            let memory = pixels.memory.clone();
            move || memory.held_bytes()
        });
        assert_eq!(held.await.expect("no panic"), 2 * UNIT_BYTES);
        assert_eq!(pixels.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn memory_is_reserved_before_the_work_and_given_back_without_it() {
        let pixels = Pixels::new(1, 2 * UNIT_BYTES);
        let reservation = pixels.reserve(2 * UNIT_BYTES).await;
        assert_eq!(pixels.reserved_bytes(), 2 * UNIT_BYTES);
        let mut second = Box::pin(pixels.reserve(1));
        tokio::select! {
            biased;
            _ = &mut second => panic!("nothing is free"),
            () = tokio::task::yield_now() => {}
        }
        drop(reservation);
        assert!(second.await.run(|| ()).await.is_ok());
        assert_eq!(pixels.reserved_bytes(), 0);
    }

    #[tokio::test]
    async fn a_panic_gives_its_memory_back() {
        let pixels = Pixels::new(1, UNIT_BYTES);
        assert!(pixels.run(1, || panic!("bad pixels")).await.is_err());
        assert_eq!(pixels.reserved_bytes(), 0);
    }
}
