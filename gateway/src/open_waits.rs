//! The number of open waits of a token (docs/reference/conventions.md#limits-on-open-waits).
//!
//! **Guarantee.** A token has at most 64 over all gateways. The waits of a crashed gateway are released after the lease of
//! [`TERMS`].
//!
//! **Mechanism.** Each wait is held in Redis under a short lease, and one background task of the process renews all leases in one
//! round trip. In addition the gateway counts its own waits; this count alone applies while Redis is unavailable. When Redis is
//! available again, the next renewal registers the open waits there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::time::sleep;
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// Maximum open waits and streams of one token.
const WAITS_MAX: usize = 64;

/// The lease of waits and its renewal interval.
#[derive(Clone, Copy)]
struct LeaseTimes {
    lease: Duration,
    renewal: Duration,
}

/// The interval is a third of the lease, so that two lost renewals have no effect.
const TERMS: LeaseTimes = LeaseTimes { lease: Duration::from_secs(15), renewal: Duration::from_secs(5) };

/// Counts open waits by token.
pub struct Waits {
    cache: cache::Cache,
    here: Arc<Here>,
    lease: Duration,
}

/// An open wait; closed on drop, or by [`Wait::close`] before the response.
pub struct Wait {
    place: Option<Place>,
}

/// A wait's registration in this gateway and in Redis.
struct Place {
    cache: cache::Cache,
    here: Arc<Here>,
    token: Uuid,
    id: Uuid,
}

/// The waits of this gateway.
#[derive(Default)]
struct Here {
    /// Open waits by token and id; the value says whether the wait is registered in Redis.
    open: Mutex<HashMap<Uuid, HashMap<Uuid, bool>>>,
    /// Exclusive for a renewal, shared for releases: a released wait is not renewed afterwards.
    renewing: RwLock<()>,
}

impl Waits {
    /// An empty counter, and the background task that renews leases, which runs as long as the process serves.
    pub fn new(cache: cache::Cache) -> (Self, impl Future<Output = ()> + Send) {
        Self::on(TERMS, cache)
    }

    fn on(times: LeaseTimes, cache: cache::Cache) -> (Self, impl Future<Output = ()> + Send) {
        let waits = Self { cache, here: Arc::default(), lease: times.lease };
        let (cache, here) = (waits.cache.clone(), waits.here.clone());
        let renewing = async move {
            loop {
                sleep(times.renewal).await;
                here.renew(&cache, times.lease).await;
            }
        };
        (waits, renewing)
    }

    /// Opens a wait for a token; 429 when it has too many.
    pub async fn open(&self, token: Uuid) -> Result<Wait> {
        let id = self.here.open(token).ok_or_else(too_many)?;
        // The value exists before the wait is registered, so that a client that disconnects meanwhile leaves nothing behind.
        let place = Place { cache: self.cache.clone(), here: self.here.clone(), token, id };
        let wait = Wait { place: Some(place) };
        match self.cache.hold(&key(token), &id.to_string(), WAITS_MAX, self.lease).await {
            Some(false) => Err(too_many()),
            Some(true) | None => {
                self.here.admit(token, id);
                Ok(wait)
            }
        }
    }
}

/// The Redis key of a token's waits.
fn key(token: Uuid) -> String {
    format!("waits:{token}")
}

fn too_many() -> Problem {
    Problem::RateLimited(format!("the token has {WAITS_MAX} open waits and streams"), 1)
}

impl Here {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, HashMap<Uuid, bool>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a wait in this gateway, if there is room, before the other gateways are asked through Redis.
    fn open(&self, token: Uuid) -> Option<Uuid> {
        let mut open = self.lock();
        let waits = open.entry(token).or_default();
        if waits.len() >= WAITS_MAX {
            return None;
        }
        let id = Uuid::now_v7();
        waits.insert(id, false);
        Some(id)
    }

    /// Renewed only from now on: a renewal would register it without checking the limit.
    fn admit(&self, token: Uuid, id: Uuid) {
        if let Some(counts) = self.lock().get_mut(&token).and_then(|waits| waits.get_mut(&id)) {
            *counts = true;
        }
    }

    fn close(&self, token: Uuid, id: Uuid) {
        let mut open = self.lock();
        if let Some(waits) = open.get_mut(&token) {
            waits.remove(&id);
            if waits.is_empty() {
                open.remove(&token);
            }
        }
    }

    /// The registered waits with their keys.
    fn held(&self) -> Vec<(String, String)> {
        let open = self.lock();
        let counting = |(token, waits): (&Uuid, &HashMap<Uuid, bool>)| {
            let key = key(*token);
            let ids = waits.iter().filter(|(_, counts)| **counts).map(|(id, _)| id.to_string());
            ids.map(|id| (key.clone(), id)).collect::<Vec<_>>()
        };
        open.iter().flat_map(counting).collect()
    }

    /// Renews all open waits. `None`: Redis is unavailable.
    async fn renew(&self, cache: &cache::Cache, lease: Duration) -> Option<()> {
        let _alone = self.renewing.write().await;
        let held = self.held();
        if held.is_empty() { Some(()) } else { cache.renew(&held, lease).await }
    }
}

impl Wait {
    /// Closes the wait in all gateways.
    pub async fn close(mut self) {
        if let Some(place) = &self.place {
            place.let_go().await;
        }
        self.place = None;
    }
}

impl Place {
    async fn let_go(&self) {
        self.here.close(self.token, self.id);
        let _renewed = self.here.renewing.read().await;
        self.cache.let_go(&key(self.token), &self.id.to_string()).await;
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        place.here.close(place.token, place.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { place.let_go().await });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::forget;

    use testkit::{redis_prefix, redis_url, wait_for};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn without_redis_a_token_has_at_most_64_open_waits_here() {
        let (waits, _) = Waits::new(cache::Cache::connect("redis://127.0.0.1:1", "nobody").expect("a Redis URL"));
        let token = Uuid::nil();
        let mut open = Vec::new();
        for _ in 0..64 {
            open.push(waits.open(token).await.unwrap_or_else(|_| panic!("within")));
        }
        assert!(matches!(waits.open(token).await, Err(Problem::RateLimited(..))));
        assert!(waits.open(Uuid::max()).await.is_ok(), "another token has its own");
        open.remove(0).close().await;
        open.push(waits.open(token).await.unwrap_or_else(|_| panic!("one was closed")));
        assert!(waits.open(token).await.is_err());
        drop(open.pop());
        assert!(waits.open(token).await.is_ok(), "one was dropped");
    }

    /// One of the gateways that share `prefix` and a working Redis.
    async fn gateway(prefix: &str, times: LeaseTimes) -> (Waits, impl Future<Output = ()> + Send + use<>) {
        let cache = cache::Cache::connect(&redis_url(), prefix).expect("a Redis URL");
        wait_for("redis to be up", LIMIT, async || cache.is_up().then_some(())).await;
        Waits::on(times, cache)
    }

    /// Opens `count` waits, all registered in Redis.
    async fn opened(waits: &Waits, token: Uuid, count: usize) -> Vec<Wait> {
        let mut open = Vec::new();
        for _ in 0..count {
            open.push(waits.open(token).await.unwrap_or_else(|_| panic!("within")));
        }
        // A slow moment may have kept the registration from Redis.
        wait_for("all to be held", LIMIT, async || waits.here.renew(&waits.cache, waits.lease).await).await;
        open
    }

    /// Waits until Redis rejects another wait.
    async fn full(waits: &Waits, token: Uuid) {
        wait_for("a refusal", LIMIT, async || waits.open(token).await.err()).await;
    }

    /// Waits up to `patience` until Redis admits one more.
    async fn free(waits: &Waits, token: Uuid, patience: Duration) {
        let id = Uuid::now_v7().to_string();
        let held = async || waits.cache.hold(&key(token), &id, WAITS_MAX, waits.lease).await.filter(|held| *held);
        wait_for("a place", patience, held).await;
    }

    #[tokio::test]
    async fn the_waits_of_a_gateway_that_died_count_for_a_lease_and_those_of_one_that_lives_go_on() {
        let times = LeaseTimes { lease: Duration::from_secs(3), renewal: Duration::from_millis(500) };
        let (prefix, token) = (redis_prefix(), Uuid::now_v7());
        let (alive, renewing) = gateway(&prefix, times).await;
        let renewing = tokio::spawn(renewing);
        let _open = opened(&alive, token, 60).await;
        // These are neither renewed nor released.
        let (dead, _) = gateway(&prefix, times).await;
        forget(opened(&dead, token, 4).await);
        let (asked, _) = gateway(&prefix, times).await;
        full(&asked, token).await;
        free(&asked, token, times.lease + Duration::from_secs(2)).await;
        // After more than a lease, the waits of the other gateway are still open.
        let _taken = opened(&asked, token, 3).await;
        full(&asked, token).await;
        renewing.abort();
    }

    #[tokio::test]
    async fn a_wait_that_is_closed_while_all_are_renewed_is_open_nowhere() {
        let (prefix, token) = (redis_prefix(), Uuid::now_v7());
        let ((one, _), (two, _)) = (gateway(&prefix, TERMS).await, gateway(&prefix, TERMS).await);
        let open = opened(&one, token, 64).await;
        full(&two, token).await;
        let closing = futures_util::future::join_all(open.into_iter().map(Wait::close));
        tokio::join!(one.here.renew(&one.cache, one.lease), closing);
        assert!(one.here.held().is_empty());
        // All of them, well before the lease expires.
        for _ in 0..64 {
            free(&two, token, TERMS.lease / 3).await;
        }
    }
}
