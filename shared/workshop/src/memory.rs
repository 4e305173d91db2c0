//! Budgets of bytes: files in hand ([`InHand`](crate::generation::InHand)), and pixels ([`Pixels`](crate::Pixels)).
//!
//! **Guarantee.** What is held at once was admitted by its size, first come first served, so that what is large is not passed
//! over for ever by what is small; what is larger than the whole budget is admitted alone. **Reason.** Dozens of jobs are in
//! hand at once, and the number of files says nothing about memory: one may have fifty megabytes.
//!
//! Files and pixels have a budget each, on purpose: a provider may take ten minutes to answer, and what waits for it must not
//! keep pixel work from its own. Who holds files may wait for pixels, never the other way round, so that no two wait for each
//! other.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What one permit stands for: fine enough for thumbnails, coarse enough for a `u32` of permits.
pub(crate) const UNIT_BYTES: u64 = 64 * 1024;

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

    /// Waits until `bytes` may be held. A holder must not wait for a second admission to the same budget: two that do could
    /// wait for each other.
    pub async fn admit(&self, bytes: u64) -> OwnedSemaphorePermit {
        let admitted = self.free.clone().acquire_many_owned(self.units_of(bytes)).await;
        admitted.expect("nothing closes the semaphore")
    }

    /// At most all there are: what never fits goes alone.
    fn units_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units)
    }

    /// How much may be held.
    pub(crate) fn budget_bytes(&self) -> u64 {
        u64::from(self.units) * UNIT_BYTES
    }

    /// What is held, or about to be by who is next.
    pub fn held_bytes(&self) -> u64 {
        (self.units as usize - self.free.available_permits()) as u64 * UNIT_BYTES
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
        assert!(timeout(soon, memory.admit(UNIT_BYTES)).await.is_ok());
        drop(held);
        let all = timeout(soon, memory.admit(u64::MAX)).await.expect("is admitted");
        assert_eq!(memory.held_bytes(), 4 * UNIT_BYTES);
        assert!(timeout(soon, memory.admit(1)).await.is_err(), "alone");
        drop(all);
        assert!(timeout(soon, memory.admit(1)).await.is_ok());
    }
}
