//! How many requests one destination gets at once.
//!
//! **Guarantee.** Of all that this process has in hand for one destination at most so many are being sent, and no destination
//! waits for another.
//!
//! **Mechanism.** A semaphore a destination, there for as long as somebody holds or awaits a place in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of all destinations.
#[derive(Debug)]
pub(crate) struct Gate {
    at_once: usize,
    destinations: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place at a destination, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    destination: &'a str,
    permit: Option<OwnedSemaphorePermit>,
}

impl Gate {
    /// One that lets `at_once` through to each destination.
    pub(crate) fn new(at_once: usize) -> Self {
        Self { at_once, destinations: Mutex::default() }
    }

    /// Waits for a place, in the order of asking.
    pub(crate) async fn enter<'a>(&'a self, destination: &'a str) -> Place<'a> {
        // Made before the wait, so that who gives up waiting tidies up as well.
        let mut place = Place { gate: self, destination, permit: None };
        let semaphore =
            self.lock().entry(destination.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.at_once))).clone();
        place.permit = semaphore.acquire_owned().await.ok();
        place
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        // The map is whole after every statement, so that a poisoned lock guards a valid value.
        self.destinations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit = None;
        let mut destinations = self.gate.lock();
        // Nobody holds or awaits a place any more; nobody can begin to, while the map is locked.
        if destinations.get(self.destination).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            destinations.remove(self.destination);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_destination_waits_for_itself_alone_and_leaves_nothing_behind() {
        let gate = Gate::new(2);
        let (one, two) = (gate.enter("a:443").await, gate.enter("a:443").await);
        assert!(gate.enter("a:443").now_or_never().is_none(), "the third waits");
        assert!(gate.enter("b:443").now_or_never().is_some(), "another destination does not");
        drop(one);
        let three = gate.enter("a:443").await;
        drop((two, three));
        assert!(gate.lock().is_empty());
    }
}
