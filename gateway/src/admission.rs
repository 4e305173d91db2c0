//! Waits for a limited resource, and their end.
//!
//! Writers of one canvas serialize on its row lock in Postgres, each holding a connection while it waits. Without a queue in
//! front of the pool, one busy canvas would take every connection of the process and block all other accounts. A request that
//! waits here holds no connection.

use std::time::Duration;

use service::admission::{KeyPermit, KeyedLimit};

use crate::problem::{Problem, Result};

/// Maximum wait for any limited resource.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A [`KeyedLimit`] of requests for each name, with a bounded wait.
pub struct RequestLimit(KeyedLimit);

impl RequestLimit {
    /// Admits `at_once` requests for each name.
    pub fn new(at_once: usize) -> Self {
        Self(KeyedLimit::new(at_once))
    }

    /// Waits for admission; 503 when it does not come in time.
    pub async fn pass(&self, name: &str) -> Result<KeyPermit> {
        admitted(self.0.acquire(name), "too many requests wait for the same resource").await
    }
}

/// Waits a bounded time for a permit; 503 with `full` in the log when none becomes free.
pub async fn admitted<P>(permit: impl Future<Output = P>, full: &'static str) -> Result<P> {
    let admitted = tokio::time::timeout(WAIT_MAX, permit).await;
    admitted.map_err(|_| Problem::Unavailable(full.into(), Some(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_its_name_and_is_told_when_to_come_back() {
        let limit = RequestLimit::new(1);
        let held = limit.pass("a").await.expect("free");
        assert!(limit.pass("b").await.is_ok(), "another name");
        let began = tokio::time::Instant::now();
        assert!(matches!(limit.pass("a").await, Err(Problem::Unavailable(_, Some(1)))));
        assert_eq!(began.elapsed(), WAIT_MAX);
        let (next, ()) = tokio::join!(limit.pass("a"), async { drop(held) });
        assert!(next.is_ok());
    }
}
