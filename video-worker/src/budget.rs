//! Budgets of bytes: files in hand (`CANVAS_GENERATION_MEMORY_MIB`), and pixels with the threads that work on them
//! (`CANVAS_IMAGE_MEMORY_MIB`).
//!
//! **Guarantee.** What is held at once was admitted by its size, first come first served; what is larger than the whole budget
//! is admitted alone. Work on pixels holds its bytes until it has really ended, because a thread cannot be stopped from
//! outside.
//!
//! The two are apart, on purpose: a provider may take minutes to answer, and what waits for it must not keep films from theirs.
//! Who holds files may wait for pixels, never the other way round, so that no two wait for each other.

use std::sync::Arc;

use service::blocking::{Blocking, Panicked};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one permit stands for.
const UNIT_BYTES: u64 = 64 * 1024;

/// A budget of bytes. Clones share it.
#[derive(Clone, Debug)]
pub struct Memory {
    free: Arc<Semaphore>,
    units: u32,
}

impl Memory {
    /// A budget of so many bytes.
    pub fn new(budget_bytes: u64) -> Self {
        let units = u32::try_from(budget_bytes / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits until `bytes` may be held. A holder must not wait for a second admission to the same budget.
    pub async fn admit(&self, bytes: u64) -> OwnedSemaphorePermit {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units);
        let admitted = self.free.clone().acquire_many_owned(units).await;
        admitted.expect("nothing closes the semaphore")
    }
}

/// Threads for work on pixels, and the memory for it. Clones share both.
#[derive(Clone, Debug)]
pub struct Pixels {
    threads: Blocking,
    memory: Memory,
}

impl Pixels {
    /// So many threads, and so many bytes altogether.
    pub fn new(threads: usize, budget_bytes: u64) -> Self {
        Self { threads: Blocking::new(threads), memory: Memory::new(budget_bytes) }
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
        let memory = self.memory.admit(memory_bytes).await;
        self.threads
            .run(move || {
                let _held = memory;
                work()
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_fit_waits_and_what_never_fits_goes_alone() {
        let memory = Memory::new(4 * UNIT_BYTES);
        let soon = Duration::from_millis(1);
        let held = memory.admit(3 * UNIT_BYTES).await;
        assert!(timeout(soon, memory.admit(2 * UNIT_BYTES)).await.is_err());
        drop(held);
        let all = timeout(soon, memory.admit(u64::MAX)).await.expect("is admitted");
        assert!(timeout(soon, memory.admit(1)).await.is_err(), "alone");
        drop(all);
        assert!(timeout(soon, memory.admit(1)).await.is_ok());
    }

    #[tokio::test]
    async fn pixels_are_given_back_when_the_work_has_ended() {
        let pixels = Pixels::new(1, UNIT_BYTES);
        assert!(pixels.run(u64::MAX, || panic!("a codec")).await.is_err());
        assert_eq!(pixels.run(u64::MAX, || 1).await.expect("runs"), 1);
    }
}
