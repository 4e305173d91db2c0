//! Calls in flight to one provider account (`CANVAS_PROVIDER_CONCURRENCY`).
//!
//! **Guarantee.** This process has no more calls of the protocols in flight for one connection than the limit, and no work
//! holds a slot for long because another's calls are slow: who does not get through in [`TURN`] comes back later. Downloads of
//! results are not counted: they come from other hosts, and are bounded in bytes.
//!
//! **Reason.** Providers limit an account's calls at once, and answer what is beyond with a refusal that costs a retry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long to wait for a place before the slot is handed back.
const TURN: Duration = Duration::from_secs(1);

/// The calls in flight, by connection. Clones share them.
#[derive(Clone, Debug)]
pub struct Calls {
    limit: usize,
    lines: Arc<Mutex<HashMap<String, Arc<Semaphore>>>>,
}

impl Calls {
    /// How long until the next attempt, for who got no place.
    pub const RETURN: Duration = Duration::from_secs(1);

    /// At most `limit` calls at once for each connection, at least one.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), lines: Arc::default() }
    }

    /// A place for one call to `line`; `None` when none became free in time.
    pub async fn enter(&self, line: &str) -> Option<OwnedSemaphorePermit> {
        let entered = timeout(TURN, self.line(line).acquire_owned()).await.ok()?;
        Some(entered.expect("nothing closes the semaphore"))
    }

    fn line(&self, line: &str) -> Arc<Semaphore> {
        // The map is whole after every statement, so that a poisoned lock guards a valid value.
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.contains_key(line) {
            // What nobody uses is forgotten, so that the map does not grow with every connection there ever was.
            lines.retain(|_, places| Arc::strong_count(places) > 1);
        }
        lines.entry(line.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.limit))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_has_so_many_places_and_others_have_their_own() {
        let calls = Calls::new(2);
        let held = (calls.enter("a").await, calls.enter("a").await);
        assert!(held.0.is_some() && held.1.is_some());
        assert!(calls.enter("a").await.is_none(), "waits no longer than its turn");
        assert!(calls.enter("b").await.is_some());
        drop(held);
        assert!(calls.enter("a").await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_in_use_is_not_forgotten() {
        let calls = Calls::new(1);
        let held = calls.enter("a").await;
        for other in 0..10 {
            assert!(calls.enter(&other.to_string()).await.is_some());
        }
        assert!(held.is_some() && calls.enter("a").await.is_none());
        drop(held);
        assert!(calls.enter("z").await.is_some());
        assert!(calls.lines.lock().expect("no panic").len() <= 2, "what nobody uses is gone");
    }
}
