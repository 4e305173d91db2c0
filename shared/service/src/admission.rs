//! Limits on what is in progress at once: bytes of memory ([`ByteBudget`]), and holders of a key ([`KeyedLimit`]).
//!
//! **Guarantee.** The held amount never exceeds the limit. Waiters are admitted in the order in which they began to wait, so that
//! small requests do not overtake a large one forever. A permit is released when it is dropped, also by a panic. A waiter that is
//! dropped leaves its queue and holds nothing.
//!
//! **Mechanism.** The semaphores of tokio, which are fair. They are never closed, so that an acquisition cannot fail. A wait has no
//! time limit of its own: the caller decides how long to wait and what it means that the wait was in vain.
//!
//! **Reason.** The number of requests or jobs does not determine their memory, and one busy account must not take what all share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one semaphore permit: small enough for thumbnails and short documents, large enough that the permits of 4 TiB fit a
/// `u32`.
const UNIT_BYTES: u64 = 1024;

/// A budget of bytes, counted in KiB. Clones share it.
///
/// A request larger than the whole budget takes all of it, and so is admitted alone. Callers that must reject such a request compare
/// it with [`total_bytes`](Self::total_bytes).
#[derive(Clone, Debug)]
pub struct ByteBudget {
    free: Arc<Semaphore>,
    units: u32,
}

/// Bytes held of a [`ByteBudget`], released on drop.
#[derive(Debug)]
pub struct MemoryPermit(OwnedSemaphorePermit);

/// The units that `bytes` take, rounded up.
fn units_of(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

impl ByteBudget {
    /// A budget of `bytes`, rounded down to KiB, and at least one KiB.
    pub fn new(bytes: u64) -> Self {
        let units = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits until `bytes`, rounded up to KiB, are free. Nothing waits for zero bytes.
    ///
    /// A holder must not wait for a second permit of the same budget, because two such holders could deadlock.
    pub async fn acquire(&self, bytes: u64) -> MemoryPermit {
        let permit = self.free.clone().acquire_many_owned(units_of(bytes).min(self.units)).await;
        MemoryPermit(permit.expect("nothing closes the semaphore"))
    }

    /// The size of the budget.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.units) * UNIT_BYTES
    }

    /// The bytes that are held, including those already assigned to the first waiter.
    pub fn held_bytes(&self) -> u64 {
        (self.units as usize - self.free.available_permits()) as u64 * UNIT_BYTES
    }
}

impl MemoryPermit {
    /// Releases what exceeds `bytes`, rounded up to KiB. A permit for less stays as it is.
    pub fn shrink_to(&mut self, bytes: u64) {
        let surplus = self.0.num_permits().saturating_sub(units_of(bytes) as usize);
        drop(self.0.split(surplus));
    }
}

/// At most a fixed number of holders for each key. Keys do not wait for each other. Clones share the limit.
///
/// An entry exists while its key is held or awaited, so that memory does not grow with the keys that were ever used.
#[derive(Clone, Debug)]
pub struct KeyedLimit {
    per_key: usize,
    entries: Arc<Entries>,
}

#[derive(Debug, Default)]
struct Entries(Mutex<HashMap<Arc<str>, Arc<Semaphore>>>);

impl Entries {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Semaphore>>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot of a key in a [`KeyedLimit`], released on drop.
#[derive(Debug)]
pub struct KeyPermit {
    entries: Arc<Entries>,
    key: Arc<str>,
    /// `None` while the slot is awaited.
    slot: Option<OwnedSemaphorePermit>,
}

impl KeyedLimit {
    /// Admits `per_key` holders for each key, and at least one.
    pub fn new(per_key: usize) -> Self {
        Self { per_key: per_key.max(1), entries: Arc::default() }
    }

    /// Waits for a slot of `key`.
    pub async fn acquire(&self, key: &str) -> KeyPermit {
        let key: Arc<str> = key.into();
        let slots =
            self.entries.lock().entry(key.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.per_key))).clone();
        // Created before the wait, so that the entry of a waiter that is dropped is removed too.
        let mut permit = KeyPermit { entries: self.entries.clone(), key, slot: None };
        permit.slot = Some(slots.acquire_owned().await.expect("nothing closes the semaphore"));
        permit
    }
}

impl Drop for KeyPermit {
    fn drop(&mut self) {
        self.slot = None;
        let mut entries = self.entries.lock();
        // Holders and waiters have a reference each. The map has the only one when there is neither, and nobody can get another
        // while it is locked.
        if entries.get(&self.key).is_some_and(|slots| Arc::strong_count(slots) == 1) {
            entries.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Waker};

    use super::*;

    const KIB: u64 = UNIT_BYTES;

    /// The output of a future that is ready now.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        poll(pin!(future))
    }

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_request_takes_its_size_rounded_up_and_at_most_the_whole_budget() {
        let budget = ByteBudget::new(4 * KIB + KIB / 2);
        assert_eq!(budget.total_bytes(), 4 * KIB);
        for (bytes, taken) in
            [(0, 0), (1, 1), (KIB, 1), (KIB + 1, 2), (4 * KIB - 1, 4), (4 * KIB, 4), (4 * KIB + 1, 4), (u64::MAX, 4)]
        {
            let held = now(budget.acquire(bytes));
            assert!(held.is_some(), "{bytes}");
            assert_eq!(budget.held_bytes(), taken * KIB, "{bytes}");
            drop(held);
            assert_eq!(budget.held_bytes(), 0, "{bytes}");
        }
    }

    #[test]
    fn what_fits_is_admitted_and_what_does_not_waits() {
        let budget = ByteBudget::new(4 * KIB);
        let held = now(budget.acquire(3 * KIB)).expect("fits");
        assert!(now(budget.acquire(2 * KIB)).is_none(), "one is free");
        let rest = now(budget.clone().acquire(KIB)).expect("fits exactly");
        assert!(now(budget.acquire(1)).is_none(), "clones share the budget");
        assert!(now(budget.acquire(0)).is_some(), "nothing waits for nothing");
        drop((held, rest));
        let all = now(budget.acquire(u64::MAX)).expect("is admitted alone");
        assert!(now(budget.acquire(1)).is_none());
        drop(all);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn budgets_of_all_sizes_admit_something() {
        for bytes in [0, 1, KIB - 1] {
            let budget = ByteBudget::new(bytes);
            assert_eq!(budget.total_bytes(), KIB);
            let held = now(budget.acquire(KIB)).expect("a unit is free");
            assert!(now(budget.acquire(1)).is_none());
            drop(held);
        }
        assert_eq!(ByteBudget::new(u64::MAX).total_bytes(), u64::from(u32::MAX) * KIB);
    }

    #[test]
    fn small_requests_do_not_overtake_a_large_one() {
        let budget = ByteBudget::new(4 * KIB);
        let held = [now(budget.acquire(2 * KIB)), now(budget.acquire(KIB))];
        let (mut large, mut small) = (pin!(budget.acquire(3 * KIB)), pin!(budget.acquire(KIB)));
        assert!(poll(large.as_mut()).is_none());
        assert!(poll(small.as_mut()).is_none(), "is behind the large one, although it would fit");
        let [two, one] = held;
        drop(one);
        assert!(poll(large.as_mut()).is_none() && poll(small.as_mut()).is_none());
        drop(two);
        let large = poll(large).expect("is first");
        assert!(poll(small).is_some());
        drop(large);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_waiter_that_is_dropped_gives_back_what_it_had_been_assigned() {
        let budget = ByteBudget::new(4 * KIB);
        let held = now(budget.acquire(3 * KIB));
        let mut large = Box::pin(budget.acquire(4 * KIB));
        assert!(poll(large.as_mut()).is_none());
        assert_eq!(budget.held_bytes(), 4 * KIB, "what is free is the waiter's");
        let mut small = pin!(budget.acquire(KIB));
        assert!(poll(small.as_mut()).is_none());
        drop(large);
        assert!(poll(small).is_some(), "those behind it go on");
        drop(held);
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_permit_shrinks_and_lets_others_in_but_never_grows() {
        let budget = ByteBudget::new(4 * KIB);
        let mut held = now(budget.acquire(4 * KIB)).expect("fits");
        let mut next = pin!(budget.acquire(2 * KIB));
        assert!(poll(next.as_mut()).is_none());
        for (bytes, left) in [(u64::MAX, 4), (4 * KIB, 4), (2 * KIB + 1, 3)] {
            held.shrink_to(bytes);
            assert!(poll(next.as_mut()).is_none());
            assert_eq!(held.0.num_permits(), left, "{bytes}");
        }
        held.shrink_to(2 * KIB);
        let next = poll(next).expect("fits now");
        held.shrink_to(0);
        assert_eq!(budget.held_bytes(), 2 * KIB);
        held.shrink_to(KIB);
        drop((held, next));
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_key_waits_for_itself_alone_and_leaves_nothing_behind() {
        let limit = KeyedLimit::new(2);
        let (one, two) = (now(limit.acquire("a")), now(limit.clone().acquire("a")));
        assert!(one.is_some() && two.is_some());
        assert!(now(limit.acquire("a")).is_none(), "the third waits");
        assert!(now(limit.acquire("b")).is_some(), "another key does not");
        assert_eq!(limit.entries.lock().len(), 1, "what nobody uses is gone");
        drop(one);
        assert!(now(limit.acquire("a")).is_some());
        assert!(!limit.entries.lock().is_empty(), "one is still held");
        drop(two);
        assert!(limit.entries.lock().is_empty());
    }

    #[test]
    fn a_limit_of_none_admits_one() {
        let limit = KeyedLimit::new(0);
        let held = now(limit.acquire("a"));
        assert!(held.is_some() && now(limit.acquire("a")).is_none());
    }

    #[test]
    fn waiters_of_a_key_are_admitted_in_order() {
        let limit = KeyedLimit::new(1);
        let held = now(limit.acquire("a"));
        let (mut first, mut second) = (pin!(limit.acquire("a")), pin!(limit.acquire("a")));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        drop(held);
        assert!(poll(second.as_mut()).is_none(), "the slot is the first one's");
        assert!(now(limit.acquire("a")).is_none(), "nobody overtakes");
        drop(poll(first).expect("is first"));
        assert!(poll(second).is_some());
        assert!(limit.entries.lock().is_empty());
    }

    #[test]
    fn a_waiter_that_is_dropped_takes_no_slot_and_leaves_no_entry() {
        let limit = KeyedLimit::new(1);
        let held = now(limit.acquire("a"));
        let (mut first, mut second) = (Box::pin(limit.acquire("a")), Box::pin(limit.acquire("a")));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        drop(held);
        // The slot has been assigned to the first.
        drop(first);
        assert!(now(limit.acquire("a")).is_none(), "it is passed on to the second");
        drop(second);
        assert!(limit.entries.lock().is_empty());
        assert!(now(limit.acquire("a")).is_some());
    }

    #[test]
    fn a_waiter_that_is_dropped_does_not_reset_the_limit_of_the_holders() {
        let limit = KeyedLimit::new(1);
        let held = now(limit.acquire("a"));
        for _ in 0..3 {
            assert!(now(limit.acquire("a")).is_none());
        }
        drop(held);
        assert!(limit.entries.lock().is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn tasks_on_many_threads_never_exceed_the_limit_and_leave_no_entry() {
        const PER_KEY: usize = 2;
        let limit = KeyedLimit::new(PER_KEY);
        let holders: Arc<[AtomicUsize; 3]> = Arc::default();
        let tasks: Vec<_> = (0..24)
            .map(|task| {
                let (limit, holders) = (limit.clone(), holders.clone());
                tokio::spawn(async move {
                    for round in 0..200 {
                        let key = (task + round) % holders.len();
                        let name = key.to_string();
                        let waiting = limit.acquire(&name);
                        // Every fifth waiter gives up.
                        let permit = match round % 5 {
                            0 => now(waiting),
                            _ => Some(waiting.await),
                        };
                        if permit.is_some() {
                            assert!(holders[key].fetch_add(1, Ordering::SeqCst) < PER_KEY);
                            tokio::task::yield_now().await;
                            holders[key].fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("the limit holds");
        }
        assert!(limit.entries.lock().is_empty());
    }
}
