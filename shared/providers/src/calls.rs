//! Limits concurrent calls to one provider account (`CANVAS_PROVIDER_CONCURRENCY`).
//!
//! **Guarantee.** This process has no more protocol calls in flight per connection than the limit.
//! No task occupies a worker slot for long because the calls of other tasks are slow: a task that
//! gets no permit within [`TURN`] is rescheduled. Downloads of results are not counted: they come
//! from other hosts and are limited in bytes.
//!
//! **Reason.** Providers limit the concurrent calls of an account and reject calls above the limit,
//! which costs a retry.

use std::time::Duration;

use service::shares::{Held, Key, Shares};
use tokio::time::timeout;

/// The time for which a call waits for a permit before the task releases its slot.
const TURN: Duration = Duration::from_secs(1);

/// The calls in flight per connection. Clones share them.
#[derive(Clone, Debug)]
pub struct Calls(Shares);

impl Calls {
    /// Delay until the next attempt of a task that got no permit.
    pub const RETURN: Duration = Duration::from_secs(1);

    /// Permits at most `limit` concurrent calls per connection, and at least one.
    pub fn new(limit: usize) -> Self {
        Self(Shares::new("provider_calls", u64::MAX, limit as u64))
    }

    /// A permit for one call to `line`; `None` if none became free in time.
    pub async fn enter(&self, line: &str) -> Option<Held> {
        timeout(TURN, self.0.hold(&Key::name(line), 1)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_its_own_connection_and_no_longer_than_its_turn() {
        let calls = Calls::new(1);
        let held = calls.enter("a").await;
        let began = Instant::now();
        assert!(held.is_some() && calls.enter("a").await.is_none());
        assert_eq!(began.elapsed(), TURN);
        assert!(calls.enter("b").await.is_some());
        drop(held);
        assert!(calls.enter("a").await.is_some());
    }
}
