//! Publishing, best effort.
//!
//! **Guarantee.** [`Waker::wake`] never waits and never fails. A message may be lost: its task is a row that idle workers find by
//! themselves.
//!
//! **Mechanism.** Messages wait in a queue of [`WAITING_MAX`]; what does not fit is dropped. One task writes them to its
//! connection, one after the other, and restores the connection. Messages that the broker does not accept at the moment, because
//! it is short of memory or disk, are dropped.

use std::time::Duration;

use domain::message::{Queue, ReadyTasks, WakeUp};
use lapin::BasicProperties;
use lapin::options::BasicPublishOptions;
use tokio::sync::{mpsc, watch};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::connection::{Backoff, Link};
use crate::{Config, Error};

/// Maximum number of messages that wait for the connection, about 24 KiB.
pub const WAITING_MAX: usize = 1024;

/// Time limit for writing a message, after which the connection is replaced.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for writing the messages that wait when the publisher stops.
const LAST_LIMIT: Duration = Duration::from_secs(1);

/// How often the publisher checks whether its connection is up.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Announces ready tasks. Use it after the commit that made them ready.
#[derive(Clone, Debug)]
pub struct Waker(mpsc::Sender<(Queue, Uuid)>);

impl Waker {
    /// A waker, and what it announces.
    pub fn new() -> (Self, mpsc::Receiver<(Queue, Uuid)>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// Announces a task of a queue. Never waits: if [`WAITING_MAX`] messages wait already, this one is dropped.
    pub fn wake(&self, queue: Queue, task: Uuid) {
        let _ = self.0.try_send((queue, task));
    }

    /// Announces the tasks that a transaction made ready.
    pub fn wake_all(&self, ready: &ReadyTasks) {
        for (queue, task) in ready.take() {
            self.wake(queue, task);
        }
    }
}

/// Publishes what a [`Waker`] announces, over a connection of its own that it restores.
#[derive(Debug)]
pub struct Publisher {
    config: Config,
    messages: mpsc::Receiver<(Queue, Uuid)>,
    connected: watch::Sender<bool>,
}

impl Publisher {
    /// A publisher, and the waker whose messages it publishes while it [runs](Self::run).
    pub fn new(config: Config) -> (Waker, Self) {
        let (waker, messages) = Waker::new();
        (waker, Self { config, messages, connected: watch::Sender::new(false) })
    }

    /// Whether it is connected, as a watch channel.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.connected.subscribe()
    }

    /// Connects, and publishes until `stop`. Then it writes what waits, within a second, and closes the connection.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut backoff = Backoff::new();
        loop {
            match stop.run_until_cancelled(Link::open(&self.config, "publisher")).await {
                None => return,
                Some(Ok(link)) => {
                    backoff.reset();
                    self.connected.send_replace(true);
                    tracing::info!("broker publisher connected");
                    let is_over = self.publish_on(&link, &stop).await;
                    self.connected.send_replace(false);
                    if !is_over {
                        tracing::warn!("broker publisher lost its connection");
                    }
                    link.close().await;
                    if is_over {
                        return;
                    }
                }
                Some(Err(error)) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "broker publisher cannot connect");
                }
            }
            if stop.run_until_cancelled(backoff.pause()).await.is_none() {
                return;
            }
        }
    }

    /// Publishes until `stop`, then returns `true`, or until the connection is broken.
    async fn publish_on(&mut self, link: &Link, stop: &CancellationToken) -> bool {
        let mut look = interval(WATCH_INTERVAL);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let last = async { while let Ok(message) = self.messages.try_recv() && self.write(link, message).await {} };
                    let _ = timeout(LAST_LIMIT, last).await;
                    return true;
                }
                _ = look.tick() => if !link.is_up() { return false },
                Some(message) = self.messages.recv() => if !self.write(link, message).await { return false },
            }
        }
    }

    /// Writes a message, or drops it while the broker has blocked the connection. `false`: the connection is broken.
    async fn write(&self, link: &Link, (queue, task): (Queue, Uuid)) -> bool {
        // lapin would keep the message until the broker reads again.
        if link.connection.status().blocked() {
            return true;
        }
        match timeout(WRITE_LIMIT, publish(link, self.config.queue(queue), task)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot publish a wake-up message");
                false
            }
            Err(_) => link.connection.status().blocked(),
        }
    }
}

async fn publish(link: &Link, queue: String, task: Uuid) -> Result<(), Error> {
    let body = serde_json::to_vec(&WakeUp::V1 { task }).map_err(Error::Encode)?;
    let properties = BasicProperties::default().with_content_type("application/json".into());
    let written =
        link.channel.basic_publish("".into(), queue.into(), BasicPublishOptions::default(), &body, properties).await;
    written.map_err(Error::Publish)?;
    Ok(())
}
