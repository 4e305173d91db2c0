//! How many deliveries of each destination this process has in hand, counts ahead and sends at once.
//!
//! **Guarantee.** At most [`DESTINATION_CAP`] requests to a destination are in flight, and at most [`BEGUN_CAP`] attempts are
//! counted whose requests have not ended. No destination waits for another.
//!
//! **Mechanism.** The number of deliveries in hand of a destination is adaptive. Every attempt that succeeds soon raises it by
//! one. One that fails, or is not over in time, lowers it to the minimum, and the deliveries in excess, of which no attempt is
//! counted, are released to the queue. While a destination has not shown that it is fast, an attempt is counted only when it
//! can be sent at once.
//!
//! **Reason.** Counting, sending and recording take a few milliseconds each, so a fast receiver gets as many deliveries a
//! second as are in any of these steps: requests in flight must not wait for our disk. A receiver that is slow or dead would
//! hold the slots of others with them, and each attempt that is counted and not sent when the process dies is lost to its
//! delivery.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Maximum number of concurrent requests to one destination in this process.
pub const DESTINATION_CAP: usize = 4;
/// Maximum number of attempts of one destination that are counted, those in flight included.
pub const BEGUN_CAP: usize = 3 * DESTINATION_CAP;
/// Number of deliveries in hand of a destination that is new to this process.
pub const IN_HAND: usize = 4 * DESTINATION_CAP;
/// The same of a destination that fails or is slow: enough that the next requests are ready while the previous ones run.
pub const IN_HAND_MIN: usize = 2 * DESTINATION_CAP;
/// The same of a destination that has been fast for a while.
pub const IN_HAND_MAX: usize = 16 * DESTINATION_CAP;
/// An attempt that takes no longer is fast. One destination must not hold this many deliveries for much longer than this.
pub const FAST: Duration = Duration::from_millis(500);

/// The destinations of which deliveries are in hand. Nothing is kept of others. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct Destinations(Arc<Mutex<HashMap<Arc<str>, Destination>>>);

#[derive(Debug)]
struct Destination {
    in_hand: usize,
    most_in_hand: usize,
    begun: Arc<Semaphore>,
    sending: Arc<Semaphore>,
    /// Notified when `most_in_hand` has fallen.
    lowered: Arc<Notify>,
}

impl Destination {
    fn new() -> Self {
        Self {
            in_hand: 0,
            most_in_hand: IN_HAND,
            begun: Arc::new(Semaphore::new(BEGUN_CAP)),
            sending: Arc::new(Semaphore::new(DESTINATION_CAP)),
            lowered: Arc::default(),
        }
    }
}

/// A delivery in hand, until it is dropped.
#[derive(Debug)]
pub struct InHand {
    destinations: Destinations,
    key: Arc<str>,
    begun: Arc<Semaphore>,
    sending: Arc<Semaphore>,
    lowered: Arc<Notify>,
    counts: bool,
}

/// The right to count an attempt, and the place of its request if it has one already.
#[derive(Debug)]
pub struct Place {
    _begun: OwnedSemaphorePermit,
    sending: Option<OwnedSemaphorePermit>,
}

impl Destinations {
    /// Takes a delivery of the destination `key` in hand.
    pub fn take(&self, key: &str) -> InHand {
        let mut destinations = self.lock();
        let key: Arc<str> = key.into();
        let destination = destinations.entry(key.clone()).or_insert_with(Destination::new);
        destination.in_hand += 1;
        InHand {
            begun: destination.begun.clone(),
            sending: destination.sending.clone(),
            lowered: destination.lowered.clone(),
            destinations: self.clone(),
            key,
            counts: true,
        }
    }

    /// How many deliveries of the destination may be in hand; `None` if none is.
    pub fn most_in_hand(&self, key: &str) -> Option<usize> {
        self.lock().get(key).map(|destination| destination.most_in_hand)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Destination>> {
        // The map is consistent after every statement, so a poisoned lock guards a valid value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InHand {
    /// Waits until an attempt may be counted. `None`: the delivery is in excess and must be released.
    pub async fn place(&mut self) -> Option<Place> {
        let (begun, sending) = (self.begun.clone(), self.sending.clone());
        let (destinations, key) = (self.destinations.clone(), self.key.clone());
        let place = async move {
            let begun = begun.acquire_owned().await.expect("nothing closes the semaphore");
            let is_fast = destinations.most_in_hand(&key).is_some_and(|most| most > IN_HAND);
            let sending = if is_fast { None } else { Some(acquire(sending).await) };
            Place { _begun: begun, sending }
        };
        let mut place = std::pin::pin!(place);
        let lowered = self.lowered.clone();
        loop {
            // Created before the check, so that no notification is missed.
            let lowered = lowered.notified();
            if self.leave_if_in_excess() {
                return None;
            }
            tokio::select! {
                biased;
                place = &mut place => return Some(place),
                () = lowered => {}
            }
        }
    }

    /// Waits for the place of the request, unless `place` has it.
    pub async fn send(&self, place: &mut Place) {
        if place.sending.is_none() {
            place.sending = Some(acquire(self.sending.clone()).await);
        }
    }

    /// Notes that an attempt succeeded within [`FAST`].
    pub fn is_fast(&self) {
        if let Some(destination) = self.destinations.lock().get_mut(&self.key) {
            destination.most_in_hand = IN_HAND_MAX.min(destination.most_in_hand + 1);
        }
    }

    /// Notes that an attempt failed or takes longer than [`FAST`].
    pub fn is_slow(&self) {
        if let Some(destination) = self.destinations.lock().get_mut(&self.key) {
            destination.most_in_hand = IN_HAND_MIN;
        }
        self.lowered.notify_waiters();
    }

    fn leave_if_in_excess(&mut self) -> bool {
        let mut destinations = self.destinations.lock();
        let Some(destination) = destinations.get_mut(&self.key) else { return false };
        let is_in_excess = destination.in_hand > destination.most_in_hand;
        if is_in_excess {
            destination.in_hand -= 1;
            self.counts = false;
        }
        is_in_excess
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        if !self.counts {
            return;
        }
        let mut destinations = self.destinations.lock();
        if let Some(destination) = destinations.get_mut(&self.key) {
            destination.in_hand -= 1;
            if destination.in_hand == 0 {
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
    fn fast(times: usize) -> (Destinations, InHand) {
        let destinations = Destinations::default();
        let first = destinations.take("a");
        for _ in 0..times {
            first.is_fast();
        }
        (destinations, first)
    }

    #[test]
    fn a_new_destination_gets_an_attempt_counted_only_when_it_can_be_sent() {
        let destinations = Destinations::default();
        let mut deliveries: Vec<InHand> = (0..=DESTINATION_CAP).map(|_| destinations.take("a")).collect();
        let mut places: Vec<Option<Place>> = deliveries.iter_mut().map(|delivery| now(delivery.place())?).collect();
        assert!(places.pop().is_some_and(|last| last.is_none()), "it waits");
        assert!(places.iter().all(|place| place.as_ref().is_some_and(|place| place.sending.is_some())));
        let mut other = destinations.take("b");
        assert!(now(other.place()).flatten().is_some(), "no destination waits for another");
    }

    #[test]
    fn a_fast_destination_gets_a_limited_number_of_attempts_counted_ahead_and_no_more_sent() {
        let (destinations, _first) = fast(1);
        let mut deliveries: Vec<InHand> = (0..=BEGUN_CAP).map(|_| destinations.take("a")).collect();
        let mut places: Vec<Place> =
            deliveries.iter_mut().filter_map(|delivery| now(delivery.place()).flatten()).collect();
        assert_eq!(places.len(), BEGUN_CAP);
        let sent = places.iter_mut().filter_map(|place| now(deliveries[0].send(place))).count();
        assert_eq!(sent, DESTINATION_CAP);
    }

    #[test]
    fn the_number_in_hand_grows_with_success_and_falls_at_a_failure() {
        let (destinations, first) = fast(0);
        assert_eq!(destinations.most_in_hand("a"), Some(IN_HAND));
        first.is_fast();
        assert_eq!(destinations.most_in_hand("a"), Some(IN_HAND + 1));
        (0..1000).for_each(|_| first.is_fast());
        assert_eq!(destinations.most_in_hand("a"), Some(IN_HAND_MAX));
        first.is_slow();
        assert_eq!(destinations.most_in_hand("a"), Some(IN_HAND_MIN));
    }

    #[tokio::test]
    async fn deliveries_in_excess_are_released_when_their_destination_fails_and_those_that_are_counted_stay() {
        let (destinations, first) = fast(IN_HAND_MAX);
        let (ready, mut is_ready) = tokio::sync::mpsc::unbounded_channel();
        let waiting: Vec<_> = (1..IN_HAND_MAX)
            .map(|_| {
                let (mut delivery, ready) = (destinations.take("a"), ready.clone());
                tokio::spawn(async move {
                    let place = delivery.place().await;
                    if place.is_some() {
                        ready.send(()).expect("is heard");
                        std::future::pending::<()>().await;
                    }
                })
            })
            .collect();
        for _ in 0..BEGUN_CAP {
            is_ready.recv().await;
        }
        // Everything else waits for its place by now.
        tokio::task::yield_now().await;
        first.is_slow();
        let mut released = 0;
        for task in &waiting {
            let within = tokio::time::timeout(Duration::from_millis(200), async {
                while !task.is_finished() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
            // Those that are counted never end.
            released += usize::from(released < IN_HAND_MAX - 1 - BEGUN_CAP && within.await.is_ok());
        }
        assert_eq!(released, IN_HAND_MAX - 1 - BEGUN_CAP, "the rest of those in hand have an attempt counted");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn nothing_is_kept_of_a_destination_without_deliveries() {
        let (destinations, first) = fast(3);
        let mut second = destinations.take("a");
        let place = now(second.place());
        drop((first, second, place));
        assert_eq!(destinations.most_in_hand("a"), None);
        assert!(destinations.lock().is_empty());
    }
}
