//! Publishes the outbox to the broker. Every process that commits outbox rows runs a relay; any
//! number may run.
//!
//! Rows are leased, published, and deleted when the broker has confirmed them. If a relay dies in
//! between, the lease of its rows expires after ten seconds. The rows are then published again; a
//! duplicate costs only a claim without a result.
//!
//! While a transaction such as a dump stays open, a search for the first row reads all rows that
//! were deleted since. Batches therefore begin at a low-water mark, the [`LowWaterMark`].

use std::sync::Arc;
use std::time::Duration;

use broker::{Message, Publisher};
use db::PgPool;
use db::deadline::with_deadline;
use db::outbox::{self, WakeUpRow};
use service::telemetry::TraceContext;
use service::{chain, trace_span};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;

use crate::refresh::{RefreshSchedule, Scope, rested};

/// One connection for the batches, one for the measurements.
const CONNECTIONS: u32 = 2;
/// The number of rows in a batch, which is also the maximum number of unconfirmed publishes.
const BATCH: u16 = 200;
/// Lease of a batch. Longer than a publish with its confirms may take (5 s).
const HOLD: Duration = Duration::from_secs(10);
/// Minimum time between the beginnings of two batches, unless there are more rows than fit into one. Rows that are committed within
/// it are published together, and rows whose task a busy worker has claimed meanwhile need no message.
const GATHER: Duration = Duration::from_millis(10);
/// Maximum delay for rows that another process committed, or for which this relay was not woken.
const POLL: Duration = Duration::from_millis(100);
/// The pause after an error of the database or the broker.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// How often the size and age of the outbox are measured.
const MEASURE: Duration = Duration::from_secs(5);

/// Wakes the relay of this process. Use it after the commit of an enqueue.
#[derive(Clone, Debug, Default)]
pub struct RelayWaker(Arc<Notify>);

impl RelayWaker {
    /// Signals that the outbox has new rows. Never blocks; several signals may be merged into one.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Returns when there was a signal since the last return.
    pub async fn woken(&self) {
        self.0.notified().await;
    }
}

/// Publishes outbox rows.
#[derive(Debug)]
pub struct Relay {
    pool: PgPool,
    publisher: Publisher,
    waker: RelayWaker,
}

impl Relay {
    /// Creates a relay from the database of `pool`, through its own connections, to `publisher`.
    pub fn new(pool: &PgPool, publisher: Publisher) -> Self {
        Self { pool: db::pool::dedicated_pool(pool, CONNECTIONS), publisher, waker: RelayWaker::default() }
    }

    /// Returns the handle that wakes it.
    pub fn waker(&self) -> RelayWaker {
        self.waker.clone()
    }

    /// Publishes until `stop`, then one more batch for the last commits, and closes the publisher.
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.measure() => {}
            () = self.publish_until(&stop) => {}
        }
        if *self.publisher.connected().borrow()
            && let Err(error) = self.relay_batch(0).await
        {
            tracing::warn!(error = chain(&error), "outbox relay could not publish its last batch");
        }
        self.publisher.close().await;
    }

    async fn publish_until(&self, stop: &CancellationToken) {
        let mut connected = self.publisher.connected();
        let mut mark = LowWaterMark::new();
        loop {
            // Rows that cannot be published are not leased.
            if !matches!(stop.run_until_cancelled(connected.wait_for(|connected| *connected)).await, Some(Ok(_))) {
                return;
            }
            // Never interrupted: leased rows would have to wait for their lease to expire.
            let began = Instant::now();
            let pause = match self.relay_batch_from(&mut mark).await {
                Ok(RelayBatch::More) => Duration::ZERO,
                Ok(RelayBatch::Drained) => POLL,
                Ok(RelayBatch::Stuck) => FAILURE_PAUSE,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "outbox relay cannot use the database");
                    FAILURE_PAUSE
                }
            };
            let woken = async {
                self.waker.woken().await;
                sleep_until(began + GATHER).await;
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = woken, if pause == POLL => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Publishes one batch, after a refresh if one is due. If the refresh fails, it is repeated later
    /// and does not delay the batch.
    async fn relay_batch_from(&self, mark: &mut LowWaterMark) -> db::Result<RelayBatch> {
        if let Some(scope) = mark.refreshes.due() {
            let began = Instant::now();
            let from = if scope == Scope::Whole { 0 } else { mark.id };
            match with_deadline(async { outbox::lowest(&mut *self.pool.acquire().await?, from).await }).await {
                Ok(lowest) => mark.raise(lowest),
                Err(error) => tracing::warn!(error = chain(&error), "cannot find the first row of the outbox"),
            }
            mark.refreshes.made(scope, began);
        }
        self.relay_batch(mark.id).await
    }

    /// Publishes one batch of the rows from `mark` on.
    async fn relay_batch(&self, mark: i64) -> db::Result<RelayBatch> {
        let claimed = async { outbox::claim_batch(&mut *self.pool.acquire().await?, mark, BATCH, HOLD).await };
        let batch = with_deadline(claimed).await?;
        let mut result = if batch.full { RelayBatch::More } else { RelayBatch::Drained };
        if batch.rows.is_empty() {
            return Ok(result);
        }
        crate::failpoint!("relay.claimed");
        let sent = self.publish(batch.rows).await;
        crate::failpoint!("relay.published");
        if !sent.failures.is_empty() {
            result = RelayBatch::Stuck;
            tracing::warn!(
                rows = sent.failures.len(),
                error = sent.failures[0],
                "wake-ups were not sent and stay in the outbox"
            );
        }
        if !sent.ids.is_empty() {
            with_deadline(async { outbox::confirm(&mut *self.pool.acquire().await?, &sent.ids).await }).await?;
        }
        Ok(result)
    }

    async fn publish(&self, rows: Vec<WakeUpRow>) -> Sent {
        let started = Instant::now();
        let (rows, messages): (Vec<(i64, Span)>, Vec<Message>) = rows
            .into_iter()
            .map(|row| {
                let (span, traceparent) = traced(&row);
                ((row.id, span), Message { queue: row.queue, task: row.task, traceparent })
            })
            .unzip();
        let mut sent = Sent { ids: Vec::with_capacity(rows.len()), failures: Vec::new() };
        for ((id, span), result) in rows.into_iter().zip(self.publisher.publish(&messages).await) {
            match result {
                Ok(()) => sent.ids.push(id),
                Err(error) => {
                    span.record("error_type", "not_sent");
                    sent.failures.push(chain(&error));
                }
            }
        }
        metrics::histogram!("canvas_outbox_publish_duration_seconds").record(started.elapsed());
        metrics::counter!("canvas_outbox_published_total").increment(sent.ids.len() as u64);
        metrics::counter!("canvas_outbox_failed_total").increment(sent.failures.len() as u64);
        sent
    }

    async fn measure(&self) {
        loop {
            let began = Instant::now();
            let stats = async { outbox::stats(&mut *self.pool.acquire().await?).await };
            // On failure the gauges keep their values. Readiness reports the database.
            if let Ok(stats) = with_deadline(stats).await {
                metrics::gauge!("canvas_outbox_rows").set(stats.rows as f64);
                metrics::gauge!("canvas_outbox_lag_seconds").set(stats.oldest.unwrap_or_default().as_secs_f64());
            }
            sleep(rested(MEASURE, began.elapsed())).await;
        }
    }
}

/// The span of a publish, in the trace of the work that caused the wake-up, and the trace context for the message; none when
/// the row has no trace.
fn traced(row: &WakeUpRow) -> (Span, Option<String>) {
    let Some(cause) = row.traceparent.as_deref().and_then(TraceContext::parse) else { return (Span::none(), None) };
    let trace = cause.child();
    let queue = row.queue.as_str();
    let span = trace_span!(trace, Producer, "publish", queue = queue, task.id = %row.task, error_type = Empty);
    (span, Some(trace.to_string()))
}

/// The id from which rows are searched, so that deleted rows are not read again with every batch.
/// The result of a refresh takes effect at the next refresh, so that a transaction that has drawn an
/// id and is about to commit is not skipped. The row of a slower transaction is found by the next
/// refresh of everything, and its task by an idle poll before that.
struct LowWaterMark {
    id: i64,
    found: i64,
    refreshes: RefreshSchedule,
}

impl LowWaterMark {
    fn new() -> Self {
        Self { id: 0, found: 0, refreshes: RefreshSchedule::new() }
    }

    fn raise(&mut self, lowest: i64) {
        self.id = lowest.min(std::mem::replace(&mut self.found, lowest));
    }
}

/// Result of a batch.
enum RelayBatch {
    /// There may be more rows.
    More,
    /// No more rows were found.
    Drained,
    /// Some rows were not sent.
    Stuck,
}

struct Sent {
    ids: Vec<i64>,
    /// Why rows were not sent, each reason once.
    failures: Vec<String>,
}
