//! Limits for each destination: the deliveries that this process claims, counts ahead and sends at once.
//!
//! **Guarantee.** At most [`DESTINATION_CAP`] requests to a destination are in flight, and at most [`COUNTED_CAP`] attempts are
//! counted whose requests have not ended. No destination waits for another.
//!
//! **Mechanism.** The number of claimed deliveries of a destination is adaptive. Every attempt that succeeds soon raises it by
//! one. One that fails, or is not over in time, lowers it to the minimum, and the deliveries in excess, of which no attempt is
//! counted, are released to the queue. While a destination has not shown that it is fast, an attempt is counted only when it
//! can be sent at once.
//!
//! **Reason.** Counting, sending and recording take a few milliseconds each, so a fast receiver gets as many deliveries a
//! second as are in any of these steps: requests in flight must not wait for the database's disk. With as many, a
//! slow or dead receiver would occupy the slots of others. If the process dies, each attempt that was counted and not sent is
//! lost to its delivery.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent requests to one destination in this process.
pub const DESTINATION_CAP: usize = 4;
/// Maximum number of attempts of one destination that are counted, those in flight included.
pub const COUNTED_CAP: usize = 3 * DESTINATION_CAP;
/// Maximum number of claimed deliveries of a destination that is new to this process.
pub const CLAIMED_INITIAL: usize = 4 * DESTINATION_CAP;
/// The same of a destination that fails or is slow: enough that the next requests are ready while the previous ones run.
pub const CLAIMED_MIN: usize = 2 * DESTINATION_CAP;
/// The same of a destination that has been fast for a while.
pub const CLAIMED_MAX: usize = 16 * DESTINATION_CAP;
/// An attempt that takes no longer is fast. One destination must not hold this many deliveries for much longer than this.
pub const FAST: Duration = Duration::from_millis(500);

/// The destinations of which deliveries are claimed. Nothing is kept of others. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Destinations(Arc<Mutex<HashMap<Arc<str>, Destination>>>);

#[derive(Debug)]
struct Destination {
    claimed: usize,
    claim_limit: usize,
    counted: Arc<Semaphore>,
    sending: Arc<Semaphore>,
    /// Notified when `claim_limit` has fallen.
    lowered: Arc<Notify>,
}

impl Destination {
    fn new() -> Self {
        Self {
            claimed: 0,
            claim_limit: CLAIMED_INITIAL,
            counted: Arc::new(Semaphore::new(COUNTED_CAP)),
            sending: Arc::new(Semaphore::new(DESTINATION_CAP)),
            lowered: Arc::default(),
        }
    }
}

/// A claimed delivery, until it is dropped.
#[derive(Debug)]
pub struct ClaimedDelivery {
    destinations: Destinations,
    key: Arc<str>,
    counted: Arc<Semaphore>,
    sending: Arc<Semaphore>,
    lowered: Arc<Notify>,
    /// `true` if it is part of the number of claimed deliveries.
    is_claimed: bool,
}

/// Permission to count an attempt, and to send its request if that may be sent already.
#[derive(Debug)]
pub struct AttemptPermit {
    _counted: OwnedSemaphorePermit,
    sending: Option<OwnedSemaphorePermit>,
}

impl Destinations {
    /// Adds a claimed delivery of the destination `key`.
    pub fn add(&self, key: &str) -> ClaimedDelivery {
        let mut destinations = self.lock();
        let key: Arc<str> = key.into();
        let destination = destinations.entry(key.clone()).or_insert_with(Destination::new);
        destination.claimed += 1;
        ClaimedDelivery {
            counted: destination.counted.clone(),
            sending: destination.sending.clone(),
            lowered: destination.lowered.clone(),
            destinations: self.clone(),
            key,
            is_claimed: true,
        }
    }

    /// Maximum number of claimed deliveries of the destination; `None` if none is claimed.
    pub fn claim_limit(&self, key: &str) -> Option<usize> {
        self.lock().get(key).map(|destination| destination.claim_limit)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Destination>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClaimedDelivery {
    /// Waits until an attempt may be counted. `None`: the delivery is in excess and must be released.
    pub async fn permit(&mut self) -> Option<AttemptPermit> {
        let (counted, sending) = (self.counted.clone(), self.sending.clone());
        let (destinations, key) = (self.destinations.clone(), self.key.clone());
        let permit = async move {
            let counted = acquire(counted).await;
            let is_fast = destinations.claim_limit(&key).is_some_and(|limit| limit > CLAIMED_INITIAL);
            let sending = if is_fast { None } else { Some(acquire(sending).await) };
            AttemptPermit { _counted: counted, sending }
        };
        let mut permit = std::pin::pin!(permit);
        let lowered = self.lowered.clone();
        loop {
            // Created before the check, so that no notification is missed.
            let lowered = lowered.notified();
            if self.release_if_in_excess() {
                return None;
            }
            tokio::select! {
                biased;
                permit = &mut permit => return Some(permit),
                () = lowered => {}
            }
        }
    }

    /// Waits until the request may be sent, unless `permit` allows it already.
    pub async fn wait_to_send(&self, permit: &mut AttemptPermit) {
        if permit.sending.is_none() {
            permit.sending = Some(acquire(self.sending.clone()).await);
        }
    }

    /// Notes that an attempt succeeded within [`FAST`].
    pub fn note_fast(&self) {
        if let Some(destination) = self.destinations.lock().get_mut(&self.key) {
            destination.claim_limit = CLAIMED_MAX.min(destination.claim_limit + 1);
        }
    }

    /// Notes that an attempt failed or takes longer than [`FAST`].
    pub fn note_slow(&self) {
        if let Some(destination) = self.destinations.lock().get_mut(&self.key) {
            destination.claim_limit = CLAIMED_MIN;
        }
        self.lowered.notify_waiters();
    }

    fn release_if_in_excess(&mut self) -> bool {
        let mut destinations = self.destinations.lock();
        let Some(destination) = destinations.get_mut(&self.key) else { return false };
        let is_in_excess = destination.claimed > destination.claim_limit;
        if is_in_excess {
            destination.claimed -= 1;
            self.is_claimed = false;
        }
        is_in_excess
    }
}

impl Drop for ClaimedDelivery {
    fn drop(&mut self) {
        if !self.is_claimed {
            return;
        }
        let mut destinations = self.destinations.lock();
        if let Some(destination) = destinations.get_mut(&self.key) {
            destination.claimed -= 1;
            if destination.claimed == 0 {
                destinations.remove(&self.key);
            }
        }
    }
}

async fn acquire(semaphore: Arc<Semaphore>) -> OwnedSemaphorePermit {
    semaphore.acquire_owned().await.expect("nothing closes the semaphore")
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// The output of a future that is ready now.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// A destination that has been fast this many times, and the delivery by which it was.
    fn fast(times: usize) -> (Destinations, ClaimedDelivery) {
        let destinations = Destinations::default();
        let first = destinations.add("a");
        for _ in 0..times {
            first.note_fast();
        }
        (destinations, first)
    }

    #[test]
    fn a_new_destination_gets_an_attempt_counted_only_when_it_can_be_sent() {
        let destinations = Destinations::default();
        let mut deliveries: Vec<ClaimedDelivery> = (0..=DESTINATION_CAP).map(|_| destinations.add("a")).collect();
        let mut permits: Vec<Option<AttemptPermit>> =
            deliveries.iter_mut().map(|delivery| now(delivery.permit())?).collect();
        assert!(permits.pop().is_some_and(|last| last.is_none()), "it waits");
        assert!(permits.iter().all(|permit| permit.as_ref().is_some_and(|permit| permit.sending.is_some())));
        let mut other = destinations.add("b");
        assert!(now(other.permit()).flatten().is_some(), "no destination waits for another");
    }

    #[test]
    fn a_fast_destination_gets_a_limited_number_of_attempts_counted_ahead_and_no_more_sent() {
        let (destinations, _first) = fast(1);
        let mut deliveries: Vec<ClaimedDelivery> = (0..=COUNTED_CAP).map(|_| destinations.add("a")).collect();
        let mut permits: Vec<AttemptPermit> =
            deliveries.iter_mut().filter_map(|delivery| now(delivery.permit()).flatten()).collect();
        assert_eq!(permits.len(), COUNTED_CAP);
        let sent = permits.iter_mut().filter_map(|permit| now(deliveries[0].wait_to_send(permit))).count();
        assert_eq!(sent, DESTINATION_CAP);
    }

    #[test]
    fn the_claim_limit_grows_with_success_and_falls_at_a_failure() {
        let (destinations, first) = fast(0);
        assert_eq!(destinations.claim_limit("a"), Some(CLAIMED_INITIAL));
        first.note_fast();
        assert_eq!(destinations.claim_limit("a"), Some(CLAIMED_INITIAL + 1));
        (0..1000).for_each(|_| first.note_fast());
        assert_eq!(destinations.claim_limit("a"), Some(CLAIMED_MAX));
        first.note_slow();
        assert_eq!(destinations.claim_limit("a"), Some(CLAIMED_MIN));
    }

    #[tokio::test]
    async fn deliveries_in_excess_are_released_when_their_destination_fails_and_those_that_are_counted_stay() {
        let (destinations, first) = fast(CLAIMED_MAX);
        let (ready, mut is_ready) = tokio::sync::mpsc::unbounded_channel();
        let waiting: Vec<_> = (1..CLAIMED_MAX)
            .map(|_| {
                let (mut delivery, ready) = (destinations.add("a"), ready.clone());
                tokio::spawn(async move {
                    let permit = delivery.permit().await;
                    if permit.is_some() {
                        ready.send(()).expect("is heard");
                        std::future::pending::<()>().await;
                    }
                })
            })
            .collect();
        for _ in 0..COUNTED_CAP {
            is_ready.recv().await;
        }
        // Everything else waits for its permit by now.
        tokio::task::yield_now().await;
        first.note_slow();
        let mut released = 0;
        for task in &waiting {
            let within = tokio::time::timeout(Duration::from_millis(200), async {
                while !task.is_finished() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            // Those that are counted never end.
            released += usize::from(released < CLAIMED_MAX - 1 - COUNTED_CAP && within.await.is_ok());
        }
        assert_eq!(released, CLAIMED_MAX - 1 - COUNTED_CAP, "the rest of the claimed ones have an attempt counted");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn nothing_is_kept_of_a_destination_without_deliveries() {
        let (destinations, first) = fast(3);
        let mut second = destinations.add("a");
        let permit = now(second.permit());
        drop((first, second, permit));
        assert_eq!(destinations.claim_limit("a"), None);
        assert!(destinations.lock().is_empty());
    }
}
