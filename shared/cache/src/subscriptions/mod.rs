//! One connection per process that multiplexes all waiters for changes.
//!
//! **Guarantee.** [`changed`](Watch::changed) of a [`Watch`] returns soon after each announced
//! change, and after half a second at the latest (five seconds while the subscription is live),
//! whatever happens to Redis.
//!
//! **Mechanism.** Waiters of one channel share one reference-counted subscription. A subscription
//! that becomes live or is lost counts as a change, because an announcement may have been missed:
//! the waiters then read Postgres. While the subscription is not live, they read after 25, 50, 100, 200 and 400 ms, then every
//! 500 ms: most work that is waited for ends soon after its start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Client;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

mod connection;

/// The first interval between polls without Redis. Each further one is twice as long.
const FIRST_LOOK_WITHOUT_REDIS: Duration = Duration::from_millis(25);
/// The longest interval between polls without Redis.
const LOOK_WITHOUT_REDIS: Duration = Duration::from_millis(500);
/// Interval of polls with a live subscription. Publishing is best effort, so an announcement may be
/// lost.
const LOOK_WHEN_LIVE: Duration = Duration::from_secs(5);
/// Far above the permitted number of long polls. Further waiters poll as without Redis.
const CHANNELS_MAX: usize = 20_000;
/// Messages that wait for a reader. Of more, the oldest are lost.
const MESSAGES_MAX: usize = 256;

/// The state of one channel's subscription.
#[derive(Clone, Copy, Default)]
struct Signal {
    live: bool,
    /// The number of announcements so far, including gains and losses of the subscription.
    changes: u64,
}

/// Commands that the connection still has to send, in order.
enum Command {
    Subscribe(String),
    Unsubscribe(String),
}

#[derive(Default)]
struct Registry {
    channels: HashMap<String, watch::Sender<Signal>>,
    /// `None` without a connection: the next connection starts by subscribing to all of `channels`.
    commands: Option<Vec<Command>>,
}

struct Hub {
    registry: Mutex<Registry>,
    commanded: Notify,
    channels_max: usize,
    messages: broadcast::Sender<Arc<[u8]>>,
}

pub(crate) struct Subscriptions {
    hub: Arc<Hub>,
    prefix: String,
    _connection: AbortOnDropHandle<()>,
}

impl Subscriptions {
    pub(crate) fn start(client: Client, prefix: String) -> Self {
        let hub = Arc::new(Hub::new(CHANNELS_MAX));
        let connection = tokio::spawn(connection::supervise(client, hub.clone()));
        Self { hub, prefix, _connection: AbortOnDropHandle::new(connection) }
    }

    pub(crate) fn subscribe(&self, channel: &str) -> Watch {
        Watch::new(&self.hub, format!("{}{channel}", self.prefix))
    }

    pub(crate) fn messages(&self) -> Messages {
        Messages { _hub: self.hub.clone(), received: self.hub.messages.subscribe() }
    }
}

/// The messages of all channels that a process watches.
pub struct Messages {
    /// Keeps the sender, without which there is no next message to wait for.
    _hub: Arc<Hub>,
    received: broadcast::Receiver<Arc<[u8]>>,
}

impl Messages {
    /// The next message. Those that came while too many waited are left out.
    pub async fn next(&mut self) -> Arc<[u8]> {
        loop {
            match self.received.recv().await {
                Ok(message) => return message,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// A waiter for changes of one channel.
pub struct Watch {
    hub: Arc<Hub>,
    channel: String,
    signal: watch::Receiver<Signal>,
    /// The sender of a channel beyond the limit, which is not registered. It is kept because waiting without a sender returns at
    /// once.
    unregistered: Option<watch::Sender<Signal>>,
    seen: u64,
    /// The next interval between polls without Redis.
    pause: Duration,
}

impl Watch {
    fn new(hub: &Arc<Hub>, channel: String) -> Self {
        let (signal, unregistered) = hub.join(&channel);
        let seen = signal.borrow().changes;
        Self { hub: hub.clone(), channel, signal, unregistered, seen, pause: FIRST_LOOK_WITHOUT_REDIS }
    }

    /// Returns when Postgres should be read again: after a change that was announced since the last
    /// return (or the subscription), or because an announcement may have been missed.
    pub async fn changed(&mut self) {
        let seen = self.seen;
        let limit = if self.signal.borrow().live {
            LOOK_WHEN_LIVE
        } else {
            let pause = self.pause;
            self.pause = LOOK_WITHOUT_REDIS.min(2 * pause);
            pause
        };
        // Gains and losses of the subscription also count as changes, so the limit stays correct
        // during the whole wait.
        let _ = timeout(limit, self.signal.wait_for(|signal| signal.changes != seen)).await;
        self.seen = self.signal.borrow().changes;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.unregistered.is_none() {
            self.hub.leave(&self.channel);
        }
    }
}

impl Hub {
    fn new(channels_max: usize) -> Self {
        let messages = broadcast::Sender::new(MESSAGES_MAX);
        Self { registry: Mutex::default(), commanded: Notify::new(), channels_max, messages }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        // Every change under the lock is complete, so a panic elsewhere leaves no partial state.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver of the channel, and its sender if there are too many channels to register it.
    fn join(&self, channel: &str) -> (watch::Receiver<Signal>, Option<watch::Sender<Signal>>) {
        let mut registry = self.registry();
        if let Some(signal) = registry.channels.get(channel) {
            return (signal.subscribe(), None);
        }
        let (signal, receiver) = watch::channel(Signal::default());
        if registry.channels.len() >= self.channels_max {
            return (receiver, Some(signal));
        }
        registry.channels.insert(channel.to_owned(), signal);
        self.command(&mut registry, Command::Subscribe(channel.to_owned()));
        (receiver, None)
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

    /// A new connection was established: returns the subscriptions that it needs.
    fn connected(&self) -> Vec<Command> {
        let mut registry = self.registry();
        registry.commands = Some(Vec::new());
        registry.channels.keys().cloned().map(Command::Subscribe).collect()
    }

    /// The connection was lost: every waiter polls for itself.
    fn lost(&self) {
        let mut registry = self.registry();
        registry.commands = None;
        for signal in registry.channels.values() {
            signal.send_modify(|signal| *signal = Signal { live: false, changes: signal.changes + 1 });
        }
    }

    /// The commands requested since the last call.
    fn take_commands(&self) -> Vec<Command> {
        self.registry().commands.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Something was published on `channel`: an announcement, which is empty, or a message.
    fn receive(&self, channel: &str, message: &[u8]) {
        if message.is_empty() {
            self.signal(channel);
        } else {
            // A process that reads no messages has no receiver.
            let _ = self.messages.send(message.into());
        }
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
