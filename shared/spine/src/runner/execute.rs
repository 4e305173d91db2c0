//! One run of one task, from the handler's call to the fate of the row.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use db::pool::limited;
use db::{PgPool, tasks};
use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;
use futures_util::FutureExt;
use service::{chain, trace_span};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::lease::{Kept, Lease};
use crate::{Decision, Handler, Outcome, Task};

/// How long a run whose lease is lost may go on before it is dropped. A run that has just settled its task finds the lease
/// gone as well, and gets the time to say so.
const LOST_GRACE: Duration = Duration::from_secs(1);
/// Between two tries to park a task while the database is away.
const PARK_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Execution {
    pub(super) task: Task,
    pub(super) kept: Kept,
    pub(super) pool: PgPool,
    pub(super) queue: Queue,
    /// Until it is tried again, should it fail unexpectedly.
    pub(super) retry_pause: Duration,
    pub(super) run_limit: Duration,
    pub(super) abort: CancellationToken,
}

/// How a run ended.
enum Ending {
    Returned(Outcome),
    Panicked(Box<dyn Any + Send>),
    /// It took too long.
    Overdue,
    /// Somebody else has the task.
    Lost,
    /// The process must end.
    Aborted,
}

/// What became of a task, in a word, and after how long it is due again if it was parked.
type Fate = (&'static str, Option<Duration>);

impl Execution {
    /// Runs the task; after how long it is due again if it was parked.
    pub(super) async fn run(self, handler: Arc<impl Handler>) -> Option<Duration> {
        let span = trace_span!(
            self.task.trace, Consumer, "task", task.id = %self.task.id, task.kind = %self.task.kind,
            queue = self.queue.as_str(), claims = self.task.claims, result = Empty, error_type = Empty
        );
        async {
            let started = Instant::now();
            let ending = self.handle(&*handler).await;
            crate::failpoint!("task.finished");
            let (result, due_in) = self.conclude(ending).await;
            let duration = started.elapsed();
            let labels = [("queue", self.queue.as_str()), ("kind", self.task.kind.as_str()), ("result", result)];
            metrics::histogram!("canvas_task_duration_seconds", &labels).record(duration);
            let span = Span::current();
            span.record("result", result);
            if matches!(result, "failed" | "retry" | "left" | "stale") {
                span.record("error_type", result);
            }
            tracing::info!(
                result,
                duration_ms = duration.as_secs_f64() * 1e3,
                "{} {} ended: {result}",
                self.task.kind,
                self.task.id
            );
            due_in
        }
        .instrument(span)
        .await
    }

    async fn handle(&self, handler: &impl Handler) -> Ending {
        let (task, lease) = (&self.task, &self.kept.lease);
        let work = async {
            if task.claims > TASK_CLAIMS_MAX {
                tracing::error!("{} {} was claimed {} times and is given up", task.kind, task.id, task.claims - 1);
                handler.exhausted(task, lease).await
            } else {
                handler.run(task, lease).await
            }
        };
        tokio::select! {
            biased;
            // A handler that panics leaves nothing of its own behind but what it shares, which is its to keep whole.
            outcome = AssertUnwindSafe(work).catch_unwind() => match outcome {
                Ok(outcome) => Ending::Returned(outcome),
                Err(panic) => Ending::Panicked(panic),
            },
            () = abandoned(lease) => Ending::Lost,
            () = sleep(self.run_limit) => Ending::Overdue,
            () = self.abort.cancelled() => Ending::Aborted,
        }
    }

    /// Brings the row where the ending wants it.
    async fn conclude(&self, ending: Ending) -> Fate {
        let (id, token) = (self.task.id, self.kept.lease.token());
        match ending {
            Ending::Returned(Ok(Decision::Done)) => ("done", None),
            Ending::Returned(Ok(Decision::Parked { after })) => ("parked", Some(after)),
            Ending::Returned(Ok(Decision::Fail { code })) => {
                metrics::counter!("canvas_task_failures_total", "queue" => self.queue.as_str(), "code" => code)
                    .increment(1);
                ("failed", None)
            }
            Ending::Returned(Ok(Decision::Stale)) | Ending::Lost => self.refused(),
            Ending::Returned(Ok(Decision::Retry { after })) => self.park(after, false).await,
            Ending::Returned(Ok(Decision::Later { after })) => self.park(after, true).await,
            Ending::Returned(Err(error)) => {
                tracing::error!(error = chain(&*error), "{} {id} failed unexpectedly", self.task.kind);
                self.park(self.retry_pause, false).await
            }
            Ending::Panicked(panic) => {
                tracing::error!(error = panic_text(&*panic), "{} {id} panicked", self.task.kind);
                metrics::counter!("canvas_task_panics_total", "queue" => self.queue.as_str()).increment(1);
                self.park(self.retry_pause, false).await
            }
            Ending::Overdue => {
                tracing::error!("{} {id} was not done within {:?} and is dropped", self.task.kind, self.run_limit);
                metrics::counter!("canvas_task_overdue_total", "queue" => self.queue.as_str()).increment(1);
                self.park(self.retry_pause, false).await
            }
            Ending::Aborted => {
                let released = async { tasks::release(&mut *self.pool.acquire().await?, id, token).await };
                self.moved(limited(released).await, ("released", None))
            }
        }
    }

    /// Parks the task. While the database is away this is tried again for as long as the lease holds: what is left to its lease
    /// counts as lost with its worker, and after two of those has a process for itself.
    async fn park(&self, after: Duration, went_as_planned: bool) -> Fate {
        let lease = &self.kept.lease;
        let (id, token) = (self.task.id, lease.token());
        let fate = (if went_as_planned { "later" } else { "retry" }, Some(after));
        loop {
            let parked = async {
                let mut conn = self.pool.acquire().await?;
                if went_as_planned {
                    tasks::reschedule(&mut conn, id, token, after).await
                } else {
                    tasks::retry(&mut conn, id, token, after).await
                }
            };
            let parked = limited(parked).await;
            if !parked.as_ref().is_err_and(db::Error::is_outage) {
                return self.moved(parked, fate);
            }
            tokio::select! {
                biased;
                () = self.abort.cancelled() => return self.moved(parked, fate),
                () = lease.lost() => return self.moved(parked, fate),
                () = sleep(PARK_PAUSE) => {}
            }
        }
    }

    fn moved(&self, moved: db::Result<bool>, fate: Fate) -> Fate {
        match moved {
            Ok(true) => fate,
            Ok(false) => self.refused(),
            Err(error) => {
                // The lease runs out, and the task is ready again then.
                tracing::warn!(error = chain(&error), "{} {} is left to its lease", self.task.kind, self.task.id);
                ("left", None)
            }
        }
    }

    fn refused(&self) -> Fate {
        metrics::counter!("canvas_stale_writes_refused_total", "queue" => self.queue.as_str()).increment(1);
        tracing::warn!("{} {} is somebody else's now; its result was dropped", self.task.kind, self.task.id);
        ("stale", None)
    }
}

async fn abandoned(lease: &Lease) {
    lease.lost().await;
    sleep(LOST_GRACE).await;
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}
