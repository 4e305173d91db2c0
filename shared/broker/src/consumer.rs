//! Supervised consuming.
//!
//! One task owns the connection, the channel and the consumer, and rebuilds all three whenever one
//! of them ends. Each rebuild starts a new *generation*. A delivery carries the number of its
//! generation. If that generation has ended, its acknowledgement is dropped: the broker has already
//! requeued the message, and on a new channel its delivery tag means another message.
//!
//! The broker sends at most `prefetch` unacknowledged messages, which bounds every buffer here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::message::{Queue, WakeUp};
use futures_util::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions};
use lapin::types::FieldTable;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{Backoff, Link, SETUP_LIMIT};
use crate::{Config, Error};

/// Time limit for writing an acknowledgement. A connection that takes longer is abandoned.
const ACK_LIMIT: Duration = Duration::from_secs(2);

/// A received message. When dropped without an acknowledgement, it is redelivered after the consumer's connection ends.
#[derive(Debug)]
pub struct Delivery {
    /// Content of the message.
    pub wake_up: WakeUp,
    acker: lapin::Acker,
    generation: u64,
    line: Arc<Line>,
}

/// State that deliveries share with the supervisor.
#[derive(Debug, Default)]
struct Line {
    generation: AtomicU64,
    /// Notified when an acknowledgement could not be written.
    broken: Notify,
}

impl Line {
    fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }
}

impl Delivery {
    /// Acknowledges the message. Returns `false` if its generation or the connection has ended, so
    /// that the message is redelivered. Takes at most two seconds.
    pub async fn ack(self) -> bool {
        if !self.line.is_current(self.generation) {
            return false;
        }
        match timeout(ACK_LIMIT, self.acker.ack(BasicAckOptions::default())).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(_)) | Err(_) => {
                self.line.broken.notify_one();
                false
            }
        }
    }
}

/// Receives the wake-up messages of one queue, over a connection that it restores itself.
#[derive(Debug)]
pub struct Consumer {
    deliveries: mpsc::Receiver<Delivery>,
    live: watch::Receiver<bool>,
    stop: DropGuard,
    supervisor: Option<JoinHandle<()>>,
}

impl Consumer {
    /// Starts to consume and continues until it is closed or dropped. `prefetch` is the maximum
    /// number of unacknowledged messages: the number of slots.
    pub fn start(config: Config, queue: Queue, prefetch: u16) -> Self {
        // RabbitMQ reads zero as 2000 for a quorum queue.
        let prefetch = prefetch.max(1);
        let (sender, deliveries) = mpsc::channel(usize::from(prefetch));
        let (live_sender, live) = watch::channel(false);
        let stop = CancellationToken::new();
        let supervisor = Supervisor { config, queue, prefetch, line: Arc::default(), sender, live: live_sender };
        let supervisor = tokio::spawn(supervisor.run(stop.clone()));
        Self { deliveries, live, stop: stop.drop_guard(), supervisor: Some(supervisor) }
    }

    /// Whether it is consuming, as a watch channel.
    pub fn live(&self) -> watch::Receiver<bool> {
        self.live.clone()
    }

    /// Waits for the next message. Cancel safe.
    pub async fn next(&mut self) -> Delivery {
        match self.deliveries.recv().await {
            Some(delivery) => delivery,
            // The supervisor ends only when it is closed: no more messages follow.
            None => std::future::pending().await,
        }
    }

    /// The next message, if one is buffered.
    pub fn try_next(&mut self) -> Option<Delivery> {
        self.deliveries.try_recv().ok()
    }

    /// Stops consuming. The broker requeues what is not acknowledged.
    pub async fn close(&mut self) {
        self.stop.token().cancel();
        if let Some(supervisor) = self.supervisor.take() {
            // The task does not panic and is not aborted.
            let _ = supervisor.await;
        }
        self.deliveries.close();
    }
}

struct Supervisor {
    config: Config,
    queue: Queue,
    prefetch: u16,
    line: Arc<Line>,
    sender: mpsc::Sender<Delivery>,
    live: watch::Sender<bool>,
}

impl Supervisor {
    async fn run(self, stop: CancellationToken) {
        let queue = self.queue;
        let mut backoff = Backoff::new();
        while !stop.is_cancelled() {
            match stop.run_until_cancelled(self.open()).await {
                None => return,
                Some(Ok((link, consumer))) => {
                    backoff.reset();
                    let generation = self.line.generation.fetch_add(1, Ordering::AcqRel) + 1;
                    self.live.send_replace(true);
                    tracing::info!(%queue, generation, "consuming from {queue}");
                    stop.run_until_cancelled(self.pump(consumer, generation)).await;
                    // From here on, no acknowledgement of this generation is sent.
                    self.line.generation.fetch_add(1, Ordering::AcqRel);
                    self.live.send_replace(false);
                    if !stop.is_cancelled() {
                        tracing::warn!(%queue, generation, "consumer of {queue} lost its connection");
                    }
                    link.close().await;
                }
                Some(Err(error)) => {
                    tracing::warn!(%queue, error = &error as &dyn std::error::Error, "cannot consume from {queue}");
                }
            }
            stop.run_until_cancelled(backoff.pause()).await;
        }
    }

    /// Connects and subscribes. A broker that is starting may accept a subscription and never
    /// answer it, on a connection that is otherwise alive. Such an attempt also times out.
    async fn open(&self) -> Result<(Link, lapin::Consumer), Error> {
        let link = Link::open(&self.config, "consumer").await?;
        let subscribed = timeout(SETUP_LIMIT, self.subscribe(&link)).await;
        match subscribed.unwrap_or(Err(Error::Timeout { limit: SETUP_LIMIT })) {
            Ok(consumer) => Ok((link, consumer)),
            Err(error) => {
                link.close().await;
                Err(error)
            }
        }
    }

    async fn subscribe(&self, link: &Link) -> Result<lapin::Consumer, Error> {
        let name = self.config.queue(self.queue);
        let failed = |source| Error::Consume { queue: name.clone(), source };
        link.channel.basic_qos(self.prefetch, BasicQosOptions::default()).await.map_err(failed)?;
        let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
        link.channel.basic_consume(name.as_str().into(), "".into(), options, arguments).await.map_err(failed)
    }

    /// Forwards deliveries until the connection, the consumer or the supervisor ends.
    async fn pump(&self, mut consumer: lapin::Consumer, generation: u64) {
        loop {
            let delivery = tokio::select! {
                delivery = consumer.next() => delivery,
                () = self.line.broken.notified() => return,
            };
            let Some(Ok(delivery)) = delivery else { return };
            match serde_json::from_slice::<WakeUp>(&delivery.data) {
                Ok(wake_up) => {
                    let delivery = Delivery { wake_up, acker: delivery.acker, generation, line: self.line.clone() };
                    if self.sender.send(delivery).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    metrics::counter!("canvas_broker_undecodable_total", "queue" => self.queue.as_str()).increment(1);
                    tracing::error!(
                        queue = %self.queue, error = &error as &dyn std::error::Error, size_bytes = delivery.data.len(),
                        "undecodable message is dead-lettered"
                    );
                    let reject = delivery.acker.reject(BasicRejectOptions { requeue: false });
                    if !matches!(timeout(ACK_LIMIT, reject).await, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }
}
