//! From the outbox to the broker. A task in every process that commits outbox rows; any number may run.
//!
//! Rows are leased, published, and deleted when the broker has confirmed them. A relay that dies in between leaves rows
//! whose lease runs out after ten seconds; what it had published is published again, and costs an empty claim.
//!
//! A row that was deleted beside a transaction that stays open, such as a dump, is walked past by whoever looks for the first one:
//! turns begin at a [`Floor`].

use std::sync::Arc;
use std::time::Duration;

use broker::{Message, Publisher};
use db::PgPool;
use db::outbox::{self, WakeUpRow};
use db::pool::limited;
use service::telemetry::TraceContext;
use service::{chain, trace_span};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::Span;
use tracing::field::Empty;

use crate::survey::{Scope, Surveys, rested};

/// One for the batches, one for the measurements.
const CONNECTIONS: u32 = 2;
/// Rows in a batch: the window of publishes that are not confirmed.
const BATCH: u16 = 200;
/// How long a batch is this relay's; longer than a publish with its confirms may take (5 s).
const HOLD: Duration = Duration::from_secs(10);
/// How long rows that another process committed, or nobody nudged about, may go unseen.
const POLL: Duration = Duration::from_millis(100);
/// Pause after trouble with database or broker.
const TROUBLE_PAUSE: Duration = Duration::from_secs(1);
/// How often the lag is measured.
const MEASURE: Duration = Duration::from_secs(5);

/// Wakes the relay of this process. To be used after the commit of an enqueue.
#[derive(Clone, Debug, Default)]
pub struct Nudge(Arc<Notify>);

impl Nudge {
    /// "There is something in the outbox." Never blocks; many nudges are as good as one.
    pub fn nudge(&self) {
        self.0.notify_one();
    }

    /// Returns when there was a nudge since the last return.
    pub async fn nudged(&self) {
        self.0.notified().await;
    }
}

/// Publishes outbox rows.
#[derive(Debug)]
pub struct Relay {
    pool: PgPool,
    publisher: Publisher,
    nudge: Nudge,
}

impl Relay {
    /// A relay from the database of `pool`, through connections of its own, to `publisher`.
    pub fn new(pool: &PgPool, publisher: Publisher) -> Self {
        Self { pool: db::pool::beside(pool, CONNECTIONS), publisher, nudge: Nudge::default() }
    }

    /// To wake it.
    pub fn nudge(&self) -> Nudge {
        self.nudge.clone()
    }

    /// Publishes until `stop`, then takes one more turn, for what was committed last, and closes the publisher.
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.measure() => {}
            () = self.publish_until(&stop) => {}
        }
        if *self.publisher.connected().borrow()
            && let Err(error) = self.turn(0).await
        {
            tracing::warn!(error = chain(&error), "outbox relay could not take its last turn");
        }
        self.publisher.close().await;
    }

    async fn publish_until(&self, stop: &CancellationToken) {
        let mut connected = self.publisher.connected();
        let mut floor = Floor::new();
        loop {
            // Rows that cannot be published are left alone.
            if !matches!(stop.run_until_cancelled(connected.wait_for(|connected| *connected)).await, Some(Ok(_))) {
                return;
            }
            // Never interrupted: rows that it leased would wait for the lease to run out.
            let pause = match self.turn_from(&mut floor).await {
                Ok(Turn::More) => Duration::ZERO,
                Ok(Turn::Drained) => POLL,
                Ok(Turn::Stuck) => TROUBLE_PAUSE,
                Err(error) => {
                    tracing::warn!(error = chain(&error), "outbox relay cannot use the database");
                    TROUBLE_PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.nudge.nudged(), if pause == POLL => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// One batch, behind a survey if one is due. What comes to nothing is made later, and holds up no batch.
    async fn turn_from(&self, floor: &mut Floor) -> db::Result<Turn> {
        if let Some(scope) = floor.surveys.due() {
            let began = Instant::now();
            let from = if scope == Scope::Whole { 0 } else { floor.id };
            match limited(async { outbox::lowest(&mut *self.pool.acquire().await?, from).await }).await {
                Ok(lowest) => floor.raise(lowest),
                Err(error) => tracing::warn!(error = chain(&error), "cannot see where the outbox begins"),
            }
            floor.surveys.made(scope, began);
        }
        self.turn(floor.id).await
    }

    /// One batch of the rows from `floor` on.
    async fn turn(&self, floor: i64) -> db::Result<Turn> {
        let claimed = async { outbox::claim_batch(&mut *self.pool.acquire().await?, floor, BATCH, HOLD).await };
        let batch = limited(claimed).await?;
        let mut turn = if batch.full { Turn::More } else { Turn::Drained };
        if batch.rows.is_empty() {
            return Ok(turn);
        }
        crate::failpoint!("relay.claimed");
        let sent = self.publish(batch.rows).await;
        crate::failpoint!("relay.published");
        if !sent.failures.is_empty() {
            turn = Turn::Stuck;
            tracing::warn!(
                rows = sent.failures.len(),
                error = sent.failures[0],
                "wake-ups were not sent and stay in the outbox"
            );
        }
        if !sent.ids.is_empty() {
            limited(async { outbox::confirm(&mut *self.pool.acquire().await?, &sent.ids).await }).await?;
        }
        Ok(turn)
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
            // Without an answer the gauges keep what they had; readiness tells of the database.
            if let Ok(stats) = limited(stats).await {
                metrics::gauge!("canvas_outbox_rows").set(stats.rows as f64);
                metrics::gauge!("canvas_outbox_lag_seconds").set(stats.oldest.unwrap_or_default().as_secs_f64());
            }
            sleep(rested(MEASURE, began.elapsed())).await;
        }
    }
}

/// The span of a publish, in the trace of what caused the wake-up, and the context that goes with the message; none where nothing did.
fn traced(row: &WakeUpRow) -> (Span, Option<String>) {
    let Some(cause) = row.traceparent.as_deref().and_then(TraceContext::parse) else { return (Span::none(), None) };
    let trace = cause.child();
    let queue = row.queue.as_str();
    let span = trace_span!(trace, Producer, "publish", queue = queue, task.id = %row.task, error_type = Empty);
    (span, Some(trace.to_string()))
}

/// The id from which on rows are looked for, so that what was deleted is not read again with every turn. What a survey found is the
/// floor from the next one on, so that who drew an id and was about to commit is not passed over; who took longer is found by the
/// next survey of everything, and its task by an idle look before that.
struct Floor {
    id: i64,
    found: i64,
    surveys: Surveys,
}

impl Floor {
    fn new() -> Self {
        Self { id: 0, found: 0, surveys: Surveys::new() }
    }

    fn raise(&mut self, lowest: i64) {
        self.id = lowest.min(std::mem::replace(&mut self.found, lowest));
    }
}

/// What to do after a batch.
enum Turn {
    /// There may be more rows.
    More,
    /// There were no more.
    Drained,
    /// Some were not sent.
    Stuck,
}

struct Sent {
    ids: Vec<i64>,
    /// Why the others were not, one each.
    failures: Vec<String>,
}
