//! One connection a process that multiplexes everybody who waits for a change.
//!
//! **Guarantee.** A [`Watch`] returns from [`changed`](Watch::changed) soon after each change that is announced, and never
//! later than half a second (five seconds while the subscription is live) whatever happens to Redis.
//! **Mechanism.** Waiters of one channel share one subscription, counted; the last one to leave ends it. A subscription that
//! becomes live and one that is lost both count as a change, because something may have been missed in between: the
//! waiters look at Postgres. While it is not live, they look every 500 ms (decisions 1.10).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Client;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

mod connection;

/// Between looks without Redis (decisions 1.10).
const LOOK_WITHOUT_REDIS: Duration = Duration::from_millis(500);
/// Between looks with a live subscription: publishing is best effort, so that an announcement may be missing.
const LOOK_WHEN_LIVE: Duration = Duration::from_secs(5);
/// Far more than long polls may be open; beyond it waiters look every 500 ms.
const CHANNELS_MAX: usize = 20_000;

/// The state of one channel's subscription.
#[derive(Clone, Copy, Default)]
struct Signal {
    live: bool,
    /// Announcements, gains and losses of the subscription so far.
    changes: u64,
}

/// What the connection has yet to do, in order.
enum Command {
    Subscribe(String),
    Unsubscribe(String),
}

#[derive(Default)]
struct Registry {
    channels: HashMap<String, watch::Sender<Signal>>,
    /// `None` without a connection: the next one begins with all of `channels`.
    commands: Option<Vec<Command>>,
}

#[derive(Default)]
struct Hub {
    registry: Mutex<Registry>,
    commanded: Notify,
}

pub(crate) struct Subscriptions {
    hub: Arc<Hub>,
    prefix: String,
    _connection: AbortOnDropHandle<()>,
}

impl Subscriptions {
    pub(crate) fn start(client: Client, prefix: String) -> Self {
        let hub = Arc::new(Hub::default());
        let connection = tokio::spawn(connection::supervise(client, hub.clone()));
        Self { hub, prefix, _connection: AbortOnDropHandle::new(connection) }
    }

    pub(crate) fn subscribe(&self, channel: &str) -> Watch {
        let channel = format!("{}{channel}", self.prefix);
        let signal = self.hub.join(&channel);
        let seen = signal.borrow().changes;
        Watch { hub: self.hub.clone(), channel, signal, seen }
    }
}

/// Somebody who waits for one channel.
pub struct Watch {
    hub: Arc<Hub>,
    channel: String,
    signal: watch::Receiver<Signal>,
    seen: u64,
}

impl Watch {
    /// Returns when it is time to look at Postgres again: after a change that was announced since the last return (or the
    /// subscription), or because none may have been heard.
    pub async fn changed(&mut self) {
        let seen = self.seen;
        let limit = if self.signal.borrow().live { LOOK_WHEN_LIVE } else { LOOK_WITHOUT_REDIS };
        // Gains and losses of the subscription are changes, too: the limit is right for the whole wait.
        let _ = timeout(limit, self.signal.wait_for(|signal| signal.changes != seen)).await;
        self.seen = self.signal.borrow().changes;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.hub.leave(&self.channel);
    }
}

impl Hub {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        // Every change under the lock is whole: a panic elsewhere leaves nothing half done.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, channel: &str) -> watch::Receiver<Signal> {
        let mut registry = self.registry();
        if let Some(signal) = registry.channels.get(channel) {
            return signal.subscribe();
        }
        let signal = watch::Sender::new(Signal::default());
        let receiver = signal.subscribe();
        if registry.channels.len() < CHANNELS_MAX {
            registry.channels.insert(channel.to_owned(), signal);
            self.command(&mut registry, Command::Subscribe(channel.to_owned()));
        }
        receiver
    }

    /// Called by a waiter that still holds its receiver.
    fn leave(&self, channel: &str) {
        let mut registry = self.registry();
        if registry.channels.get(channel).is_some_and(|signal| signal.receiver_count() <= 1) {
            registry.channels.remove(channel);
            self.command(&mut registry, Command::Unsubscribe(channel.to_owned()));
        }
    }

    fn command(&self, registry: &mut Registry, command: Command) {
        if let Some(commands) = &mut registry.commands {
            commands.push(command);
            self.commanded.notify_one();
        }
    }

    /// The connection is new: what it has to subscribe to.
    fn connected(&self) -> Vec<Command> {
        let mut registry = self.registry();
        registry.commands = Some(Vec::new());
        registry.channels.keys().cloned().map(Command::Subscribe).collect()
    }

    /// The connection is gone: every waiter looks for itself.
    fn lost(&self) {
        let mut registry = self.registry();
        registry.commands = None;
        for signal in registry.channels.values() {
            signal.send_modify(|signal| *signal = Signal { live: false, changes: signal.changes + 1 });
        }
    }

    /// What was asked for since the last call.
    fn take_commands(&self) -> Vec<Command> {
        self.registry().commands.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// `channel` was announced, or its subscription has become live.
    fn signal(&self, channel: &str) {
        if let Some(signal) = self.registry().channels.get(channel) {
            signal.send_modify(|signal| *signal = Signal { live: true, changes: signal.changes + 1 });
        }
    }
}

#[cfg(test)]
mod tests;
