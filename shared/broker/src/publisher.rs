//! Confirmed publishing.
//!
//! A message is sent if the broker has confirmed it, hence written it to a quorum of disks, and has
//! not returned it as unroutable. An unroutable message is confirmed as well, so `mandatory` is
//! set, and a confirm that carries a returned message counts as a failure. A message that is not
//! known to be sent within five seconds counts as not sent. The caller has it in the outbox and
//! sends it again later.
//!
//! A batch is pipelined: all messages are written before the first confirm is awaited. Only one
//! batch is in progress at a time, so the size of a batch bounds lapin's internal queue, which has
//! no limit of its own.

use std::sync::Arc;
use std::time::Duration;

use domain::message::{Queue, WakeUp};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Confirmation};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::connection::{Backoff, Link};
use crate::{Config, NotSent};

/// Limit for publishing a batch and having all of it confirmed.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// How often the supervisor checks whether the connection is up.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Delivery mode of a message that survives a restart of the broker (AMQP 0-9-1, Basic properties).
const PERSISTENT: u8 = 2;

/// A wake-up message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The queue whose worker is woken.
    pub queue: Queue,
    /// Id of the ready task.
    pub task: Uuid,
    /// W3C trace context of the work that enqueued the task.
    pub traceparent: Option<String>,
}

/// Publishes over its own connection, which it restores itself.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    stop: DropGuard,
    supervisor: JoinHandle<()>,
}

struct Shared {
    config: Config,
    link: watch::Sender<Option<Arc<Link>>>,
    connected: watch::Sender<bool>,
    /// Notified if the current link must be replaced.
    broken: Notify,
    /// Locked by the batch in progress. Contains the publishes of an earlier batch that timed out
    /// because the broker had blocked the link. A confirm that is awaited is never dropped while
    /// its link is alive.
    stuck: Mutex<Option<Stuck>>,
}

struct Stuck {
    link: Arc<Link>,
    publishes: Publishes,
}

type Publishes = FuturesUnordered<BoxFuture<'static, (usize, Result<(), NotSent>)>>;

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("config", &self.config).field("connected", &*self.connected.borrow()).finish()
    }
}

impl Publisher {
    /// Starts to connect and reconnects until it is closed or dropped.
    pub fn start(config: Config) -> Self {
        let shared = Arc::new(Shared {
            config,
            link: watch::Sender::new(None),
            connected: watch::Sender::new(false),
            broken: Notify::new(),
            stuck: Mutex::new(None),
        });
        let stop = CancellationToken::new();
        let supervisor = tokio::spawn(supervise(shared.clone(), stop.clone()));
        Self { shared, stop: stop.drop_guard(), supervisor }
    }

    /// Whether it is connected, as a watch channel.
    pub fn connected(&self) -> watch::Receiver<bool> {
        self.shared.connected.subscribe()
    }

    /// Publishes a batch and returns for each message, in order, whether it was sent. Takes at most
    /// five seconds, plus those of a batch in progress.
    pub async fn publish(&self, messages: &[Message]) -> Vec<Result<(), NotSent>> {
        let all = |reason: NotSent| vec![Err(reason); messages.len()];
        let mut stuck = self.shared.stuck.lock().await;
        let Some(link) = self.shared.link.borrow().clone() else {
            return all(NotSent::Disconnected);
        };
        if link.connection.status().blocked() || still_stuck(&mut stuck, &link) {
            return all(NotSent::Blocked);
        }

        let deadline = Instant::now() + CONFIRM_LIMIT;
        let mut publishes: Publishes = messages
            .iter()
            .enumerate()
            .map(|(index, message)| {
                let queue = self.shared.config.queue(message.queue);
                let publish = publish_one(link.clone(), queue, message.clone());
                async move { (index, publish.await) }.boxed()
            })
            .collect();
        let mut results = all(NotSent::Timeout);
        while let Ok(Some((index, result))) = timeout_at(deadline, publishes.next()).await {
            results[index] = result;
        }

        if publishes.is_empty() {
            // When the next link opens, a missing queue is declared together with the rest of the
            // topology.
            if results.iter().any(|result| matches!(result, Err(NotSent::Failed(_) | NotSent::Unroutable))) {
                self.shared.broken.notify_one();
            }
        } else if link.connection.status().blocked() {
            *stuck = Some(Stuck { link, publishes });
        } else {
            self.shared.broken.notify_one();
        }
        results
    }

    /// Closes the connection to the broker.
    pub async fn close(self) {
        drop(self.stop);
        // The supervisor does not panic and is not aborted.
        let _ = self.supervisor.await;
    }
}

/// Whether publishes of an earlier batch still wait on this link. If not, they are discarded.
fn still_stuck(stuck: &mut Option<Stuck>, link: &Arc<Link>) -> bool {
    if let Some(earlier) = stuck
        && Arc::ptr_eq(&earlier.link, link)
    {
        while let Some(Some(_)) = earlier.publishes.next().now_or_never() {}
        if !earlier.publishes.is_empty() {
            return true;
        }
    }
    *stuck = None;
    false
}

async fn publish_one(link: Arc<Link>, queue: String, message: Message) -> Result<(), NotSent> {
    let wake_up = WakeUp::V1 { task: message.task, traceparent: message.traceparent };
    let body = serde_json::to_vec(&wake_up).map_err(|error| NotSent::Encode(Arc::new(error)))?;
    let properties =
        BasicProperties::default().with_delivery_mode(PERSISTENT).with_content_type("application/json".into());
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let confirm = link
        .channel
        .basic_publish("".into(), queue.into(), options, &body, properties)
        .await
        .map_err(NotSent::Failed)?;
    match confirm.await.map_err(NotSent::Failed)? {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => Err(NotSent::Unroutable),
        // `NotRequested` cannot occur, because the link was opened with confirms. If it did, the
        // outcome would be unknown.
        Confirmation::Nack(None) | Confirmation::NotRequested => Err(NotSent::Refused),
    }
}

async fn supervise(shared: Arc<Shared>, stop: CancellationToken) {
    let mut backoff = Backoff::new();
    let run = async {
        loop {
            match Link::open(&shared.config, "publisher", true).await {
                Ok(link) => {
                    backoff.reset();
                    let link = Arc::new(link);
                    shared.link.send_replace(Some(link.clone()));
                    shared.connected.send_replace(true);
                    tracing::info!("broker publisher connected");
                    until_broken(&shared, &link).await;
                    shared.link.send_replace(None);
                    shared.connected.send_replace(false);
                    tracing::warn!("broker publisher lost its connection");
                    link.close().await;
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "broker publisher cannot connect");
                }
            }
            backoff.pause().await;
        }
    };
    stop.run_until_cancelled(run).await;
    shared.connected.send_replace(false);
    let link = shared.link.send_replace(None);
    if let Some(link) = link {
        link.close().await;
    }
}

async fn until_broken(shared: &Shared, link: &Link) {
    let mut look = interval(WATCH_INTERVAL);
    loop {
        tokio::select! {
            () = shared.broken.notified() => return,
            _ = look.tick() => if !link.is_up() { return },
        }
    }
}
