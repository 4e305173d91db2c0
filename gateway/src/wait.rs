//! Waiting for a job to change: long polls and event streams (decisions 1.10).
//!
//! A change is announced through Redis; Postgres alone is believed. `cache::Watch` also wakes its waiter by time, more
//! often while Redis is out of order, so that a lost announcement costs little.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::id::JobId;
use http::HeaderMap;
use uuid::Uuid;

use crate::extract::prefer;
use crate::problem::{Problem, Result};
use crate::state::App;

/// Open waits and streams of one token (decisions 1.10).
const WAITS_MAX: usize = 64;
/// How long an open wait counts that nobody closes or renews: its process died. Longer than any poll or import waits.
const LEASE: Duration = Duration::from_secs(90);

/// Counts open waits by token: over all gateways in Redis, and over this one here, which is what counts while Redis cannot
/// be asked (decisions 1.11).
pub struct Waits {
    cache: cache::Cache,
    here: Arc<Mutex<HashMap<Uuid, usize>>>,
}

/// An open wait; closed on drop, or by [`Wait::close`] before what follows.
pub struct Wait {
    place: Option<Place>,
    _here: Here,
}

/// A wait's place among those of all gateways.
struct Place {
    cache: cache::Cache,
    key: String,
    id: String,
}

/// A wait's place among those of this gateway.
struct Here {
    open: Arc<Mutex<HashMap<Uuid, usize>>>,
    token: Uuid,
}

impl Waits {
    /// Nothing open yet.
    pub fn new(cache: cache::Cache) -> Self {
        Self { cache, here: Default::default() }
    }

    /// Opens a wait for a token; 429 when it has too many.
    pub async fn open(&self, token: Uuid) -> Result<Wait> {
        let here = self.open_here(token)?;
        let place = Place { cache: self.cache.clone(), key: format!("waits:{token}"), id: Uuid::now_v7().to_string() };
        // A wait before it is held: who hangs up meanwhile leaves nothing behind.
        let wait = Wait { place: Some(place), _here: here };
        match wait.renew().await {
            Some(false) => Err(too_many()),
            Some(true) | None => Ok(wait),
        }
    }

    /// Does something under a wait. It is closed before the outcome is there, so that who is answered can wait again.
    pub async fn during<T>(&self, token: Uuid, work: impl Future<Output = Result<T>>) -> Result<T> {
        let wait = self.open(token).await?;
        let outcome = work.await;
        wait.close().await;
        outcome
    }

    fn open_here(&self, token: Uuid) -> Result<Here> {
        let mut open = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(token).or_default();
        if *count >= WAITS_MAX {
            return Err(too_many());
        }
        *count += 1;
        Ok(Here { open: self.here.clone(), token })
    }
}

fn too_many() -> Problem {
    Problem::RateLimited(format!("the token has {WAITS_MAX} open waits and streams"), 1)
}

impl Wait {
    /// Says that it is still open, which one that lasts has to do more often than every [`LEASE`]. Whether it counts among
    /// those of all gateways; `None`: Redis could not be asked.
    pub async fn renew(&self) -> Option<bool> {
        let place = self.place.as_ref()?;
        place.cache.hold(&place.key, &place.id, WAITS_MAX, LEASE).await
    }

    /// Closes it in all gateways.
    pub async fn close(mut self) {
        if let Some(place) = &self.place {
            place.let_go().await;
        }
        self.place = None;
    }
}

impl Place {
    async fn let_go(&self) {
        self.cache.let_go(&self.key, &self.id).await;
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let (Some(place), Ok(runtime)) = (self.place.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { place.let_go().await });
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.token);
            }
        }
    }
}

/// The channel on which a job's changes are announced.
pub fn job_channel(id: JobId) -> String {
    format!("job:{id}")
}

/// `Prefer: wait=N` (RFC 7240), clamped to 1 to 30 seconds; a malformed one is ignored.
pub fn preferred_wait(headers: &HeaderMap) -> Option<u64> {
    prefer::values(headers, "wait").find_map(|value| {
        let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| value.parse::<u64>().unwrap_or(u64::MAX).clamp(1, 30))
    })
}

/// Announced changes of one channel. Made *before* the first look at Postgres, so that no change falls between.
pub struct Changes<'a> {
    app: &'a App,
    watch: cache::Watch,
}

impl<'a> Changes<'a> {
    /// Listens to `channel`.
    pub fn of(app: &'a App, channel: &str) -> Self {
        Self { app, watch: app.cache.subscribe(channel) }
    }

    /// Returns when it is time to look at Postgres again, or at once when the process stops.
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
        assert_eq!(preferred("wait=99999999999999999999"), Some(30));
        for malformed in ["wait=-1", "wait=1.5", "wait=", "wait", "wait=ten", "return=minimal"] {
            assert_eq!(preferred(malformed), None, "{malformed}");
        }
    }

    #[tokio::test]
    async fn without_redis_a_token_has_at_most_64_open_waits_here() {
        let waits = Waits::new(cache::Cache::connect("redis://127.0.0.1:1", "nobody").expect("a Redis URL"));
        let token = Uuid::nil();
        let mut open = Vec::new();
        for _ in 0..64 {
            open.push(waits.open(token).await.unwrap_or_else(|_| panic!("within")));
        }
        assert!(matches!(waits.open(token).await, Err(Problem::RateLimited(..))));
        assert!(waits.open(Uuid::max()).await.is_ok(), "another token has its own");
        open.pop();
        let during = waits.during(token, async { Ok(waits.open(token).await.is_err()) }).await;
        assert!(during.is_ok_and(|refused| refused), "the work itself is the 64th");
        assert!(waits.open(token).await.is_ok(), "and its wait is closed");
    }
}
