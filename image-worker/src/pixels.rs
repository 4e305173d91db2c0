//! Where pixel work runs: one thread a processor, and no more pictures in memory than fit.
//!
//! **Guarantee.** The estimated memory of all running work stays within the budget, or one single piece of work runs
//! that is larger than all of it. Who comes first is admitted first, so that a large picture is not passed over for
//! ever by small ones.
//!
//! **Mechanism.** A fair semaphore whose permits are units of memory; work takes its permits along to its thread and
//! gives them back when it has really ended, because a thread cannot be stopped from outside: a job that is given up
//! goes on holding what it holds.
//!
//! **Reason.** The number of pictures says nothing about memory: a hundred megapixels are ten thousand thumbnails.

use std::sync::Arc;

use service::blocking::{Blocking, Panicked};
use tokio::sync::Semaphore;

/// What one permit stands for: fine enough for thumbnails, coarse enough for a `u32` of permits.
const UNIT_BYTES: u64 = 64 * 1024;

/// Runs work on pixels. Clones share threads and budget.
#[derive(Clone, Debug)]
pub struct Pixels {
    threads: Blocking,
    memory: Arc<Semaphore>,
    units: u32,
}

impl Pixels {
    /// A pool of `threads` threads for work that takes `budget_bytes` of memory altogether.
    pub fn new(threads: usize, budget_bytes: u64) -> Self {
        let units = u32::try_from(budget_bytes / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { threads: Blocking::new(threads), memory: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Memory that is taken by work that runs or waits for a thread.
    pub fn reserved_bytes(&self) -> u64 {
        (self.units as usize - self.memory.available_permits()) as u64 * UNIT_BYTES
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
        let units = u32::try_from(memory_bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units);
        let memory = Arc::clone(&self.memory)
            .acquire_many_owned(units)
            .await
            .expect("nothing closes the semaphore while the pool is alive");
        // A whole number of units is far below 2^52.
        metrics::gauge!("canvas_pixel_memory_bytes").set(self.reserved_bytes() as f64);
        self.threads
            .run(move || {
                let _memory = memory;
                work()
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use super::*;

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
    async fn work_larger_than_the_whole_budget_runs_alone() {
        let pixels = Pixels::new(2, 2 * UNIT_BYTES);
        let free = pixels.run(u64::MAX, {
            let memory = Arc::clone(&pixels.memory);
            move || memory.available_permits()
        });
        assert_eq!(free.await.expect("no panic"), 0);
        assert_eq!(pixels.memory.available_permits(), 2);
    }

    #[tokio::test]
    async fn a_panic_gives_its_memory_back() {
        let pixels = Pixels::new(1, UNIT_BYTES);
        assert!(pixels.run(1, || panic!("bad pixels")).await.is_err());
        assert_eq!(pixels.memory.available_permits(), 1);
    }
}
