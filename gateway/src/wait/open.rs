//! How many waits a token has open (decisions 1.10).
//!
//! **Guarantee.** A token has at most 64 over all gateways. Those of a gateway that died count for the lease of [`TERMS`] at the longest.
//!
//! **Mechanism.** Each wait is held in Redis under a short lease, and one task of the process renews all of them in one round
//! trip. Beside it this gateway counts its own, which is what counts while Redis cannot be asked (decisions 1.11); when it can be
//! asked again, the next renewal tells it of those that are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::RwLock;
use tokio::time::sleep;
use uuid::Uuid;

use crate::problem::{Problem, Result};

/// Open waits and streams of one token (decisions 1.10).
const WAITS_MAX: usize = 64;

/// How long the waits of a gateway that is gone count, and how often one that is there says so.
#[derive(Clone, Copy)]
struct Terms {
    lease: Duration,
    renewal: Duration,
}

/// A third of the lease, so that two lost renewals lose nothing.
const TERMS: Terms = Terms { lease: Duration::from_secs(15), renewal: Duration::from_secs(5) };

/// Counts open waits by token.
pub struct Waits {
    cache: cache::Cache,
    here: Arc<Here>,
    lease: Duration,
}

/// An open wait; closed on drop, or by [`Wait::close`] before what follows.
pub struct Wait {
    place: Option<Place>,
}

/// A wait's place among those of this gateway, and of all.
struct Place {
    cache: cache::Cache,
    here: Arc<Here>,
    token: Uuid,
    id: Uuid,
}

/// The waits of this gateway.
#[derive(Default)]
struct Here {
    /// By token and id; whether they count at all gateways.
    open: Mutex<HashMap<Uuid, HashMap<Uuid, bool>>>,
    /// Held by a renewal alone, by those who let go together: what was let go is not renewed afterwards.
    renewing: RwLock<()>,
}

impl Waits {
    /// Nothing open yet; and the task that renews what will be, which runs for as long as the process serves.
    pub fn new(cache: cache::Cache) -> (Self, impl Future<Output = ()> + Send) {
        Self::on(TERMS, cache)
    }

    fn on(terms: Terms, cache: cache::Cache) -> (Self, impl Future<Output = ()> + Send) {
        let waits = Self { cache, here: Arc::default(), lease: terms.lease };
        let (cache, here) = (waits.cache.clone(), waits.here.clone());
        let renewing = async move {
            loop {
                sleep(terms.renewal).await;
                here.renew(&cache, terms.lease).await;
            }
        };
        (waits, renewing)
    }

    /// Opens a wait for a token; 429 when it has too many.
    pub async fn open(&self, token: Uuid) -> Result<Wait> {
        let id = self.here.open(token).ok_or_else(too_many)?;
        // A wait before it is held: who hangs up meanwhile leaves nothing behind.
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

/// What a token's waits are held under.
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

    /// A place here, if there is one, for who has still to ask the other gateways.
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

    /// Only now it is renewed: a renewal would hold it without asking how many there are.
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

    /// What is held, with its keys.
    fn held(&self) -> Vec<(String, String)> {
        let open = self.lock();
        let counting = |(token, waits): (&Uuid, &HashMap<Uuid, bool>)| {
            let key = key(*token);
            let ids = waits.iter().filter(|(_, counts)| **counts).map(|(id, _)| id.to_string());
            ids.map(|id| (key.clone(), id)).collect::<Vec<_>>()
        };
        open.iter().flat_map(counting).collect()
    }

    /// Says what is still open. `None`: Redis could not be asked.
    async fn renew(&self, cache: &cache::Cache, lease: Duration) -> Option<()> {
        let _alone = self.renewing.write().await;
        let held = self.held();
        if held.is_empty() { Some(()) } else { cache.renew(&held, lease).await }
    }
}

impl Wait {
    /// Closes it at all gateways.
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

    /// A gateway of those that `prefix` joins, which Redis answers.
    async fn gateway(prefix: &str, terms: Terms) -> (Waits, impl Future<Output = ()> + Send + use<>) {
        let cache = cache::Cache::connect(&redis_url(), prefix).expect("a Redis URL");
        wait_for("redis to be up", LIMIT, async || cache.is_up().then_some(())).await;
        Waits::on(terms, cache)
    }

    /// So many waits, which Redis knows of.
    async fn opened(waits: &Waits, token: Uuid, count: usize) -> Vec<Wait> {
        let mut open = Vec::new();
        for _ in 0..count {
            open.push(waits.open(token).await.unwrap_or_else(|_| panic!("within")));
        }
        // A slow moment may have kept the question from Redis.
        wait_for("all to be held", LIMIT, async || waits.here.renew(&waits.cache, waits.lease).await).await;
        open
    }

    /// Waits until Redis refuses another one.
    async fn full(waits: &Waits, token: Uuid) {
        wait_for("a refusal", LIMIT, async || waits.open(token).await.err()).await;
    }

    /// Waits for `patience` until Redis admits one more.
    async fn free(waits: &Waits, token: Uuid, patience: Duration) {
        let id = Uuid::now_v7().to_string();
        let held = async || waits.cache.hold(&key(token), &id, WAITS_MAX, waits.lease).await.filter(|held| *held);
        wait_for("a place", patience, held).await;
    }

    #[tokio::test]
    async fn the_waits_of_a_gateway_that_died_count_for_a_lease_and_those_of_one_that_lives_go_on() {
        let terms = Terms { lease: Duration::from_secs(3), renewal: Duration::from_millis(500) };
        let (prefix, token) = (redis_prefix(), Uuid::now_v7());
        let (alive, renewing) = gateway(&prefix, terms).await;
        let renewing = tokio::spawn(renewing);
        let _open = opened(&alive, token, 60).await;
        // Nobody renews these, or lets them go.
        let (dead, _) = gateway(&prefix, terms).await;
        forget(opened(&dead, token, 4).await);
        let (asked, _) = gateway(&prefix, terms).await;
        full(&asked, token).await;
        free(&asked, token, terms.lease + Duration::from_secs(2)).await;
        // Longer than a lease after they were opened, the other's are open still.
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
        // All of them, well before a lease is over.
        for _ in 0..64 {
            free(&two, token, TERMS.lease / 3).await;
        }
    }
}
