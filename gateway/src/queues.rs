//! The state of the queues and their workers, as this gateway has read it (docs/reference/status.md).
//!
//! **Guarantee.** The state is at most about two seconds old. It is the only one that the service shows: status, records, dry runs
//! and metrics agree.
//!
//! **Mechanism.** The state is read when it is needed and kept. Only one request at a time reads it; the others wait for that.

use std::sync::Arc;
use std::time::Duration;

use db::Connection;
use db::deadline::with_deadline;
use db::workers::{self, Queues};
use domain::Timestamp;
use domain::message::Queue;
use domain::queue::{WaitCause, WaitingFor};
use service::chain;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::state::App;

/// How long a state is kept.
const FRESH: Duration = Duration::from_secs(2);
/// The cost of a state grows with the number of ready tasks. It is kept for at least this many times the duration of its reading.
const REST: u32 = 20;
/// Interval of the metrics.
const MEASURE: Duration = Duration::from_secs(5);

/// The last state of the queues, and until when it is kept.
#[derive(Debug, Default)]
pub struct LastSeen(Mutex<Option<(Arc<Queues>, Instant)>>);

impl App {
    /// The state of the queues.
    pub async fn queues(&self, conn: &mut Connection) -> db::Result<Arc<Queues>> {
        let mut last = self.last_seen.0.lock().await;
        if let Some((queues, until)) = &*last
            && Instant::now() < *until
        {
            return Ok(queues.clone());
        }
        let began = Instant::now();
        let queues = Arc::new(workers::queues(conn, self.config.worker_silent).await?);
        *last = Some((queues.clone(), Instant::now() + FRESH.max(began.elapsed() * REST)));
        Ok(queues)
    }

    /// The cause of the wait of work that was accepted at `since`. A state that cannot be read does not fail the start.
    pub async fn waiting_when_accepted(&self, queue: Queue, since: Timestamp) -> Option<WaitingFor> {
        let queues = async { self.queues(&mut db::pool::acquire(&self.pool).await?).await };
        match queues.await {
            Ok(queues) => Some(queues.ready(queue, since)),
            Err(error) => {
                tracing::debug!(error = chain(&error), "cannot read the state of the queues");
                None
            }
        }
    }

    /// The state of the queue in a dry run: only that no worker would do the work.
    pub async fn waiting_if_started(&self, queue: Queue) -> Option<WaitingFor> {
        let waiting = self.waiting_when_accepted(queue, service::clock::now().into()).await;
        waiting.filter(|waiting| waiting.what == WaitCause::Worker)
    }
}

/// Publishes the number of workers of each queue, for how long none was seen, and how long its oldest work has waited. Workers
/// that are gone cannot do so themselves.
pub async fn measure(app: App, stopping: CancellationToken) {
    while stopping.run_until_cancelled(sleep(MEASURE)).await.is_some() {
        let queues = async { app.queues(&mut db::pool::acquire(&app.pool).await?).await };
        match with_deadline(queues).await {
            Ok(queues) => {
                for status in queues.status() {
                    let queue = status.queue;
                    let workers = f64::from(status.workers);
                    metrics::gauge!("canvas_queue_workers", "queue" => queue.as_str()).set(workers);
                    let silent_for = queues.silent_for(queue).as_secs_f64();
                    metrics::gauge!("canvas_queue_silent_seconds", "queue" => queue.as_str()).set(silent_for);
                    let waiting = status.oldest_waiting_seconds as f64;
                    metrics::gauge!("canvas_queue_oldest_waiting_seconds", "queue" => queue.as_str()).set(waiting);
                }
            }
            // Readiness reports the database.
            Err(error) => tracing::debug!(error = chain(&error), "cannot read the state of the queues"),
        }
    }
}
