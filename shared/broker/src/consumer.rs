//! Supervised consuming.
//!
//! One task owns connection, channel and consumer, and builds all three anew whenever any of them ends. Each time is a
//! *generation*; a delivery carries the number of its own, and its acknowledgement is dropped when that generation is
//! over: the broker has put the message back already, and the number of a delivery means something else on a new channel.
//!
//! The broker sends no more than `prefetch` messages that are not acknowledged, so every buffer here is bounded by it.

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

/// Limit for writing an acknowledgement; a connection that takes longer is given up.
const ACK_LIMIT: Duration = Duration::from_secs(2);

/// A message in hand. Dropped without an acknowledgement it comes back when the consumer's connection ends.
#[derive(Debug)]
pub struct Delivery {
    /// What it says.
    pub wake_up: WakeUp,
    acker: lapin::Acker,
    generation: u64,
    line: Arc<Line>,
}

/// What deliveries share with the supervisor.
#[derive(Debug, Default)]
struct Line {
    generation: AtomicU64,
    /// An acknowledgement did not get through.
    broken: Notify,
}

impl Line {
    fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }
}

impl Delivery {
    /// Acknowledges. `false`: its generation is over, or the connection is; the message comes again. Takes at most two
    /// seconds.
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

/// Wake-ups of one queue, over a connection that it keeps up by itself.
#[derive(Debug)]
pub struct Consumer {
    deliveries: mpsc::Receiver<Delivery>,
    live: watch::Receiver<bool>,
    stop: DropGuard,
    supervisor: Option<JoinHandle<()>>,
}

impl Consumer {
    /// Starts to consume, and keeps at it until it is closed or dropped. `prefetch` is how many messages may be
    /// unacknowledged: as many as there are slots.
    pub fn start(config: Config, queue: Queue, prefetch: u16) -> Self {
        // To RabbitMQ zero means 2000 on a quorum queue.
        let prefetch = prefetch.max(1);
        let (sender, deliveries) = mpsc::channel(usize::from(prefetch));
        let (live_sender, live) = watch::channel(false);
        let stop = CancellationToken::new();
        let supervisor = Supervisor { config, queue, prefetch, line: Arc::default(), sender, live: live_sender };
        let supervisor = tokio::spawn(supervisor.run(stop.clone()));
        Self { deliveries, live, stop: stop.drop_guard(), supervisor: Some(supervisor) }
    }

    /// Whether it is consuming, now and whenever that changes.
    pub fn live(&self) -> watch::Receiver<bool> {
        self.live.clone()
    }

    /// The next message, whenever it comes. Cancel safe.
    pub async fn next(&mut self) -> Delivery {
        match self.deliveries.recv().await {
            Some(delivery) => delivery,
            // The supervisor ended, which it does only when told to: there is no more to come.
            None => std::future::pending().await,
        }
    }

    /// The next message, if it is there.
    pub fn try_next(&mut self) -> Option<Delivery> {
        self.deliveries.try_recv().ok()
    }

    /// Stops consuming; the broker puts back what is not acknowledged.
    pub async fn close(&mut self) {
        self.stop.token().cancel();
        if let Some(supervisor) = self.supervisor.take() {
            // It neither panics nor is it aborted.
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
                    // From here on no acknowledgement of this generation is sent.
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

    /// Connects and subscribes. A broker that is just starting may take a subscription and never answer it, on a connection that is
    /// alive otherwise: that is given up, too.
    async fn open(&self) -> Result<(Link, lapin::Consumer), Error> {
        let link = Link::open(&self.config, "consumer", false).await?;
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

    /// Passes deliveries on until something ends.
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
                        "undecodable message goes to the dead letters"
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
