//! Queues in front of the connection pool.
//!
//! Writers of one canvas take their turns in Postgres by its row's lock, each holding a connection while it waits. Without a
//! queue before that, one busy canvas would hold every connection of the process and stop all other accounts. Who waits
//! here holds nothing. Names share a fixed number of queues by hash: now and then two wait for each other without need.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::problem::{Problem, Result};

/// Queues; many more than requests run at once, so that names rarely share one.
const QUEUES: usize = 512;
/// Longest wait for anything that there is a limited number of.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Lets at most so many at once through for each name.
pub struct Turnstile {
    queues: Vec<Semaphore>,
    hasher: RandomState,
}

impl Turnstile {
    /// One that lets `at_once` through for each name.
    pub fn new(at_once: usize) -> Self {
        Self { queues: (0..QUEUES).map(|_| Semaphore::new(at_once)).collect(), hasher: RandomState::new() }
    }

    /// Waits for a turn; 503 when it does not come in time.
    pub async fn pass(&self, name: &str) -> Result<SemaphorePermit<'_>> {
        let queue = &self.queues[self.hasher.hash_one(name) as usize % QUEUES];
        admitted(queue.acquire(), "too many requests wait for the same thing").await
    }
}

/// What a semaphore gives out, waited for within bounds; 503 that says `full` in the log when it does not come in time.
pub async fn admitted<P>(turn: impl Future<Output = Result<P, AcquireError>>, full: &'static str) -> Result<P> {
    match tokio::time::timeout(WAIT_MAX, turn).await {
        Ok(permit) => permit.map_err(Problem::internal),
        Err(_) => Err(Problem::Unavailable(full.into(), Some(1))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_name_waits_for_itself_and_gives_up_in_the_end() {
        let turnstile = Turnstile::new(2);
        let first = turnstile.pass("a").await.expect("free");
        let second = turnstile.pass("a").await.expect("free");
        assert!(matches!(turnstile.pass("a").await, Err(Problem::Unavailable(..))));
        drop(first);
        assert!(turnstile.pass("a").await.is_ok());
        drop(second);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_one_of_few_places_is_told_when_to_come_back() {
        let places = Semaphore::new(1);
        let held = admitted(places.acquire(), "full").await.expect("free");
        let began = tokio::time::Instant::now();
        let refused = admitted(places.acquire(), "full").await;
        assert!(matches!(refused, Err(Problem::Unavailable(_, Some(1)))));
        assert_eq!(began.elapsed(), WAIT_MAX);
        let (next, ()) = tokio::join!(admitted(places.acquire(), "full"), async { drop(held) });
        assert!(next.is_ok());
    }
}
