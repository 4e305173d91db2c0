//! Waiting for a job to change: long polls and event streams (docs/reference/conventions.md#long-polls).
//!
//! A change is announced through Redis, but only Postgres is authoritative. `cache::Watch` also wakes its waiter periodically,
//! more often while Redis is unavailable, so that a lost announcement only delays the waiter.

mod access;
mod open;

use http::HeaderMap;

use crate::extract::prefer;
use crate::state::App;

pub use access::{during, holds, loss, while_held};
pub use open::{Wait, Waits};

/// `Prefer: wait=N` (RFC 7240), clamped to 1 to 30 seconds; a malformed value is ignored. Of several the first counts.
pub fn preferred_wait(headers: &HeaderMap) -> Option<u64> {
    let value = prefer::values(headers, "wait").next()?;
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.parse::<u64>().unwrap_or(u64::MAX).clamp(1, 30))
}

/// Announced changes of one channel. Create it before the first look at Postgres, so that no change is missed.
pub struct Changes<'a> {
    app: &'a App,
    watch: cache::Watch,
}

impl<'a> Changes<'a> {
    /// Subscribes to `channel`.
    pub fn subscribe(app: &'a App, channel: &str) -> Self {
        Self { app, watch: app.cache.subscribe(channel) }
    }

    /// Returns when it is time to look at Postgres again, or immediately when the process stops.
    pub async fn next(&mut self) {
        self.app.stopping.run_until_cancelled(self.watch.changed()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preferred(value: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert("prefer", value.parse().expect("a header value"));
        preferred_wait(&headers)
    }

    #[test]
    fn a_wait_is_clamped_and_a_malformed_one_ignored() {
        assert_eq!(preferred("wait=5"), Some(5));
        assert_eq!(preferred("respond-async, Wait=\"7\"; x=1"), Some(7));
        assert_eq!(preferred("wait=0"), Some(1));
        assert_eq!(preferred("wait=31"), Some(30));
        assert_eq!(preferred("wait=7, wait=x"), Some(7));
        assert_eq!(preferred("wait=x, wait=7"), None, "the first value counts");
        assert_eq!(preferred("wait=99999999999999999999"), Some(30));
        for malformed in ["wait=-1", "wait=1.5", "wait=", "wait", "wait=ten", "return=minimal"] {
            assert_eq!(preferred(malformed), None, "{malformed}");
        }
    }
}
