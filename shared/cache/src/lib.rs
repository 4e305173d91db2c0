//! Redis: rate limits, the processor time that accounts used, counts of what is held open, change
//! notification, and messages that nobody keeps. No data depends on Redis (docs/reliability.md#redis).
//!
//! **Guarantee.** No call fails, and none takes longer than 50 ms. If Redis does not answer, a rate
//! limit lets the request pass, the caller of a hold counts locally, the reader of a lost
//! notification finds the change by polling Postgres, and a message is lost.
//!
//! **Mechanism.** One supervised connection with a circuit breaker (`link`) serves commands, and
//! another one (`subscriptions`) multiplexes all subscriptions of the process. Both are restored
//! for as long as the [`Cache`] lives.
//!
//! **Reason.** The API must work without Redis.

mod holds;
mod limit;
mod link;
mod subscriptions;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use limit::{Bucket, Quota, RateDecision};
pub use subscriptions::{Messages, Watch};

use limit::Mode;
use link::Link;
use subscriptions::Subscriptions;

/// Why a cache cannot be used at all: an error of the configuration, never the state of Redis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL is not a Redis URL.
    #[error("not a Redis URL")]
    Url(#[source] redis::RedisError),
}

/// The prefix of the service's keys and channels.
pub const PREFIX: &str = "canvas:";

/// A handle to Redis. Clones share its connections, which close when the last clone is dropped.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    prefix: String,
    link: Link,
    subscriptions: Subscriptions,
    /// Milliseconds of processor time of an account; unset without a limit.
    cpu: OnceLock<Quota>,
}

fn client(url: &str) -> Result<redis::Client, Error> {
    redis::Client::open(url).map_err(Error::Url)
}

impl Cache {
    /// Starts to connect to `url` (`redis://…` or `rediss://…`) and returns at once, whether Redis is available or not. Every
    /// key and channel begins with `prefix` and a colon; `prefix` may end with the colon. Processes that communicate need the
    /// same prefix. Must be called inside a Tokio runtime.
    pub fn connect(url: &str, prefix: &str) -> Result<Self, Error> {
        // The client uses the process-wide crypto provider. An error means that the same one was installed before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = client(url)?;
        let prefix = format!("{}:", prefix.trim_end_matches(':'));
        let inner = Inner {
            link: Link::start(client.clone()),
            subscriptions: Subscriptions::start(client, prefix.clone()),
            prefix,
            cpu: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Checks the form of a URL, options included, without connecting.
    pub fn check_url(url: &str) -> Result<(), Error> {
        client(url).map(drop)
    }

    /// Returns `true` if commands reach Redis at the moment. For reports only.
    pub fn is_up(&self) -> bool {
        self.inner.link.is_up()
    }

    /// Waits until the first connection is established or has failed. For a process that makes a
    /// single call at its start, which would otherwise time out while connecting. Takes at most two
    /// seconds, the limit for connecting.
    pub async fn settled(&self) {
        self.inner.link.settled().await;
    }

    /// Judges a request of `weight` by all of `buckets`, at least one, in one round trip, and takes it from each of them if it
    /// passes. `None` means that Redis did not answer and the request passes.
    pub async fn take(&self, weight: u32, buckets: &[Bucket]) -> Option<RateDecision> {
        self.decide(Mode::Take, weight, buckets).await
    }

    /// Takes `units` that were used already, whether or not the buckets have them. Best effort.
    pub async fn debit(&self, units: u32, buckets: &[Bucket]) {
        self.decide(Mode::Debit, units, buckets).await;
    }

    /// Limits the processor time of free work to `seconds` an hour for each account, a sixth of it at once; 0: no limit. A process
    /// calls this once, at its start.
    pub fn limit_cpu(&self, seconds: u32) {
        let milliseconds = seconds.saturating_mul(1000);
        if milliseconds > 0 {
            // A second call changes nothing.
            let _ = self.inner.cpu.set(Quota::per_hour(milliseconds, milliseconds / 6));
        }
    }

    /// Debits processor time that free work of an account used. Best effort.
    pub async fn debit_cpu(&self, account: &str, milliseconds: u64) {
        if let Some(bucket) = self.cpu_bucket(account).filter(|_| milliseconds > 0) {
            self.debit(u32::try_from(milliseconds).unwrap_or(u32::MAX), &[bucket]).await;
        }
    }

    /// Whether an account has processor time left for free work. `None` without a limit, and when Redis did not answer: the work may
    /// start.
    pub async fn peek_cpu(&self, account: &str) -> Option<RateDecision> {
        self.decide(Mode::Peek, 1, &[self.cpu_bucket(account)?]).await
    }

    fn cpu_bucket(&self, account: &str) -> Option<Bucket> {
        Some(Bucket { key: format!("cpu:{account}"), quota: *self.inner.cpu.get()? })
    }

    /// Holds `id` under `key` for `lease`, or renews its lease, unless all processes together
    /// already hold `most` ids there. Returns whether it is held. `None` means that Redis did not
    /// answer.
    pub async fn hold(&self, key: &str, id: &str, most: usize, lease: Duration) -> Option<bool> {
        let key = self.hold_key(key);
        self.inner.link.call("hold", async |connection| holds::hold(connection, &key, id, most, lease).await).await
    }

    /// Renews the leases of all of `held`, pairs of a key and an id, in one round trip. Ids that
    /// Redis lost are added, whatever else is held. `None` means that Redis did not answer.
    pub async fn renew(&self, held: &[(impl AsRef<str>, impl AsRef<str>)], lease: Duration) -> Option<()> {
        let held: Vec<(String, &str)> =
            held.iter().map(|(key, id)| (self.hold_key(key.as_ref()), id.as_ref())).collect();
        self.inner.link.call("renew", async |connection| holds::renew(connection, &held, lease).await).await
    }

    /// Releases an id. Best effort: its lease expires anyway.
    pub async fn let_go(&self, key: &str, id: &str) {
        let mut command = redis::cmd("ZREM");
        command.arg(self.hold_key(key)).arg(id);
        let _: Option<u64> =
            self.inner.link.call("let_go", async |connection| command.query_async(connection).await).await;
    }

    /// The ids that all processes hold under each of `keys`, in one round trip. `None` means that Redis did not answer.
    pub async fn held(&self, keys: &[impl AsRef<str>]) -> Option<Vec<Vec<String>>> {
        let keys: Vec<String> = keys.iter().map(|key| self.hold_key(key.as_ref())).collect();
        self.inner.link.call("held", async |connection| holds::held(connection, &keys).await).await
    }

    fn hold_key(&self, key: &str) -> String {
        format!("{}held:{key}", self.inner.prefix)
    }

    /// Wakes all waiters on each of `channels`, in all processes, in one round trip. Best effort.
    pub async fn notify(&self, channels: impl IntoIterator<Item = impl AsRef<str>>) {
        let mut commands = redis::pipe();
        for channel in channels {
            commands.cmd("PUBLISH").arg(format!("{}{}", self.inner.prefix, channel.as_ref())).arg("").ignore();
        }
        if !commands.is_empty() {
            let _: Option<()> =
                self.inner.link.call("notify", async |connection| commands.query_async(connection).await).await;
        }
    }

    /// Sends `message`, which is not empty, to the [`Messages`] of every process that watches `channel`. Best effort.
    pub async fn publish(&self, channel: &str, message: &str) {
        let mut command = redis::cmd("PUBLISH");
        command.arg(format!("{}{channel}", self.inner.prefix)).arg(message);
        let _: Option<u64> =
            self.inner.link.call("publish", async |connection| command.query_async(connection).await).await;
    }

    /// The messages of the channels that this process watches, from now on.
    pub fn messages(&self) -> Messages {
        self.inner.subscriptions.messages()
    }

    /// Starts to watch `channel`. No change that commits after this call is missed if the caller subscribes, then reads
    /// Postgres, and then waits for [`changed`](Watch::changed) before each further read.
    pub fn subscribe(&self, channel: &str) -> Watch {
        self.inner.subscriptions.subscribe(channel)
    }

    async fn decide(&self, mode: Mode, weight: u32, buckets: &[Bucket]) -> Option<RateDecision> {
        let keys: Vec<String> =
            buckets.iter().map(|bucket| format!("{}rate:{}", self.inner.prefix, bucket.key)).collect();
        let call = async |connection: &mut _| limit::decide(connection, mode, weight, buckets, &keys).await;
        self.inner.link.call(mode.name(), call).await
    }
}

#[cfg(test)]
mod tests;
