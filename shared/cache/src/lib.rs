//! Redis: rate limits, counts of what is held open, and change notification. Losing Redis loses nothing.
//!
//! **Guarantee.** No call fails and none takes longer than 50 ms (decisions 1.12): a rate limit that cannot be asked lets
//! the request pass, a hold that cannot be taken is for its asker to count, a notification that cannot be sent is found by
//! the reader's own look at Postgres.
//! **Mechanism.** One supervised connection behind a circuit breaker (`link`) for commands, and one that multiplexes all
//! subscriptions of the process (`subscriptions`). Both are rebuilt for as long as the [`Cache`] lives.
//! **Reason.** Nothing of the contract may depend on Redis being up (decisions 1.11).

mod holds;
mod limit;
mod link;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

pub use limit::{Quota, RateDecision};
pub use subscriptions::Watch;

use link::Link;
use subscriptions::Subscriptions;

/// Why a cache cannot be used at all: configuration, never the state of Redis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not that of a Redis.
    #[error("not a Redis URL")]
    Url(#[source] redis::RedisError),
}

/// What the keys and channels of the service begin with.
pub const PREFIX: &str = "canvas:";

/// A handle to Redis; clones share its connections, which close with the last of them.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    prefix: String,
    link: Link,
    subscriptions: Subscriptions,
}

impl Cache {
    /// Begins to connect to `url` (`redis://…` or `rediss://…`) and returns at once, whether Redis is there or not. Every key and channel
    /// begins with `prefix` and a colon, which `prefix` may end with; processes that talk to each other have the same one.
    /// Must be called inside a Tokio runtime.
    pub fn connect(url: &str, prefix: &str) -> Result<Self, Error> {
        // The client takes the process's provider; that somebody installed the same one before is no error.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = redis::Client::open(url).map_err(Error::Url)?;
        let prefix = format!("{}:", prefix.trim_end_matches(':'));
        let inner = Inner {
            link: Link::start(client.clone()),
            subscriptions: Subscriptions::start(client, prefix.clone()),
            prefix,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Whether commands reach Redis at the moment. Nothing but reports may depend on it.
    pub fn is_up(&self) -> bool {
        self.inner.link.is_up()
    }

    /// Waits until it is known whether Redis is there: for a process that makes its one call at its start, which would be given up
    /// while the connection is still being made. Takes no longer than the connection may, two seconds.
    pub async fn settled(&self) {
        self.inner.link.settled().await;
    }

    /// Takes one request out of `key`'s quota and says whether it may pass. `None`: Redis could not be asked, and the
    /// request passes.
    pub async fn rate_limit(&self, key: &str, quota: Quota) -> Option<RateDecision> {
        self.decide("rate_limit", key, quota, 1).await
    }

    /// What [`rate_limit`](Self::rate_limit) would say, without taking anything: for limits that count only failures.
    pub async fn peek(&self, key: &str, quota: Quota) -> Option<RateDecision> {
        self.decide("peek", key, quota, 0).await
    }

    /// Holds `id` under `key` for `lease`, or for another lease, unless `most` are held by anybody; says whether it is held.
    /// `None`: Redis could not be asked.
    pub async fn hold(&self, key: &str, id: &str, most: usize, lease: Duration) -> Option<bool> {
        let key = self.hold_key(key);
        self.inner.link.call("hold", async |connection| holds::hold(connection, &key, id, most, lease).await).await
    }

    /// Holds all of `held`, pairs of a key and what is held under it, for another lease, in one round trip; also what Redis has
    /// lost meanwhile, whatever is held besides. `None`: Redis could not be asked.
    pub async fn renew(&self, held: &[(impl AsRef<str>, impl AsRef<str>)], lease: Duration) -> Option<()> {
        let held: Vec<(String, &str)> =
            held.iter().map(|(key, id)| (self.hold_key(key.as_ref()), id.as_ref())).collect();
        self.inner.link.call("renew", async |connection| holds::renew(connection, &held, lease).await).await
    }

    /// Lets go of what is held; best effort, for its lease ends anyway.
    pub async fn let_go(&self, key: &str, id: &str) {
        let mut command = redis::cmd("ZREM");
        command.arg(self.hold_key(key)).arg(id);
        let _: Option<u64> =
            self.inner.link.call("let_go", async |connection| command.query_async(connection).await).await;
    }

    fn hold_key(&self, key: &str) -> String {
        format!("{}held:{key}", self.inner.prefix)
    }

    /// Wakes everybody who waits for `channel`, in all processes; best effort.
    pub async fn notify(&self, channel: &str) {
        let mut command = redis::cmd("PUBLISH");
        command.arg(format!("{}{channel}", self.inner.prefix)).arg("");
        let _: Option<u64> =
            self.inner.link.call("notify", async |connection| command.query_async(connection).await).await;
    }

    /// Begins to watch `channel`. No change that is committed after this is missed, so: subscribe, look at Postgres, then
    /// wait for [`changed`](Watch::changed) before each further look.
    pub fn subscribe(&self, channel: &str) -> Watch {
        self.inner.subscriptions.subscribe(channel)
    }

    async fn decide(&self, operation: &'static str, key: &str, quota: Quota, cost: u32) -> Option<RateDecision> {
        let key = format!("{}rate:{key}", self.inner.prefix);
        self.inner.link.call(operation, async |connection| limit::decide(connection, &key, quota, cost).await).await
    }
}

#[cfg(test)]
mod tests;
