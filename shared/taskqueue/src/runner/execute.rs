//! One run of one task, from the call of the handler to the final state of the row.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use db::deadline::with_deadline;
use db::{PgPool, tasks};
use domain::limits::TASK_CLAIMS_MAX;
use domain::message::Queue;
use futures_util::FutureExt;
use service::{account, chain, trace_span};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::lease::{Kept, Lease};
use crate::{Decision, Handler, HandlerResult, Task};

/// The time for which a run whose lease is lost may continue before it is dropped. A run that has just
/// settled its task also finds the lease gone, and needs the time to report it.
const LOST_GRACE: Duration = Duration::from_secs(1);
/// The pause between two attempts to reschedule a task while the database is unavailable.
const RESCHEDULE_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Execution {
    pub(super) task: Task,
    pub(super) kept: Kept,
    pub(super) pool: PgPool,
    pub(super) queue: Queue,
    /// Pause before the task is retried after an unexpected failure.
    pub(super) retry_pause: Duration,
    pub(super) run_limit: Duration,
    pub(super) abort: CancellationToken,
}

/// The end of a run.
enum RunExit {
    Returned(HandlerResult),
    Panicked(Box<dyn Any + Send>),
    /// The run exceeded its limit.
    Overdue,
    /// The lease was lost.
    Lost,
    /// The process must exit.
    Aborted,
}

/// Next state of a task whose run has not ended it.
#[derive(Clone, Copy)]
enum GiveUp {
    /// Scheduled again after a failure.
    Retry(Duration),
    /// Scheduled again as planned.
    Snooze(Duration),
    /// Ready at once, as if it had not been claimed.
    Release,
}

/// The result of a task, as a label, and when it is due again if it was rescheduled or released.
type TaskOutcome = (&'static str, Option<Duration>);

impl Execution {
    /// Runs the task. Returns when it is due again if it was rescheduled or released.
    pub(super) async fn run(self, handler: Arc<impl Handler>) -> Option<Duration> {
        let span = trace_span!(
            self.task.trace, Consumer, "task", task.id = %self.task.id, task.kind = %self.task.kind,
            queue = self.queue.as_str(), claims = self.task.claims, result = Empty, error_type = Empty
        );
        async {
            let started = Instant::now();
            let exit = self.handle(&*handler).await;
            crate::failpoint!("task.finished");
            let (result, due_in) = self.conclude(exit).await;
            let duration = started.elapsed();
            let labels = [("queue", self.queue.as_str()), ("kind", self.task.kind.as_str()), ("result", result)];
            metrics::histogram!("canvas_task_duration_seconds", &labels).record(duration);
            let span = Span::current();
            span.record("result", result);
            if matches!(result, "failed" | "retry" | "abandoned" | "stale") {
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

    async fn handle(&self, handler: &impl Handler) -> RunExit {
        let (task, lease) = (&self.task, &self.kept.lease);
        let account = task.tenant.as_deref().unwrap_or(&task.fairness_key);
        // On the heap: without optimization, each of the futures around it keeps several copies on the stack.
        let work = Box::pin(account::on_behalf_of(account, async {
            if task.claims > TASK_CLAIMS_MAX {
                tracing::error!("{} {} was claimed {} times and is abandoned", task.kind, task.id, task.claims - 1);
                handler.exhausted(task, lease).await
            } else {
                if crate::failpoint::armed() {
                    crate::failpoint::reach(&format!("task.run.{}", task.id)).await;
                }
                handler.run(task, lease).await
            }
        }));
        tokio::select! {
            biased;
            // A handler that panics leaves only shared state behind, which it must keep consistent.
            outcome = AssertUnwindSafe(work).catch_unwind() => match outcome {
                Ok(outcome) => RunExit::Returned(outcome),
                Err(panic) => RunExit::Panicked(panic),
            },
            () = abandoned(lease) => RunExit::Lost,
            () = sleep(self.run_limit) => RunExit::Overdue,
            () = self.abort.cancelled() => RunExit::Aborted,
        }
    }

    /// Brings the row into the state that the end of the run requires.
    async fn conclude(&self, exit: RunExit) -> TaskOutcome {
        let (id, token) = (self.task.id, self.kept.lease.token());
        match exit {
            RunExit::Returned(Ok(Decision::Done)) => ("done", None),
            RunExit::Returned(Ok(Decision::Rescheduled { after })) => ("rescheduled", Some(after)),
            RunExit::Returned(Ok(Decision::Fail { code })) => {
                metrics::counter!("canvas_task_failures_total", "queue" => self.queue.as_str(), "code" => code)
                    .increment(1);
                ("failed", None)
            }
            RunExit::Returned(Ok(Decision::Stale)) | RunExit::Lost => self.refused(),
            RunExit::Returned(Ok(Decision::Retry { after })) => self.give_up(GiveUp::Retry(after)).await,
            RunExit::Returned(Ok(Decision::Snooze { after })) => self.give_up(GiveUp::Snooze(after)).await,
            RunExit::Returned(Ok(Decision::Release)) => self.give_up(GiveUp::Release).await,
            RunExit::Returned(Err(error)) => {
                tracing::error!(error = chain(&*error), "{} {id} failed unexpectedly", self.task.kind);
                self.give_up(GiveUp::Retry(self.retry_pause)).await
            }
            RunExit::Panicked(panic) => {
                tracing::error!(error = panic_text(&*panic), "{} {id} panicked", self.task.kind);
                metrics::counter!("canvas_task_panics_total", "queue" => self.queue.as_str()).increment(1);
                self.give_up(GiveUp::Retry(self.retry_pause)).await
            }
            RunExit::Overdue => {
                tracing::error!(
                    "{} {id} exceeded its time limit of {:?} and was aborted",
                    self.task.kind,
                    self.run_limit
                );
                metrics::counter!("canvas_task_overdue_total", "queue" => self.queue.as_str()).increment(1);
                self.give_up(GiveUp::Retry(self.retry_pause)).await
            }
            RunExit::Aborted => {
                let released = async { tasks::release(&mut *self.pool.acquire().await?, id, token).await };
                let released = with_deadline(released).await.map(|released| released.then_some(Duration::ZERO));
                self.moved(released, "released")
            }
        }
    }

    /// Gives the task up. While the database is unavailable, this is retried for as long as the lease lasts: a task whose
    /// lease expires counts as lost with its worker, and after two losses it is quarantined.
    async fn give_up(&self, how: GiveUp) -> TaskOutcome {
        let lease = &self.kept.lease;
        let (id, token) = (self.task.id, lease.token());
        let result = match how {
            GiveUp::Retry(_) => "retry",
            GiveUp::Snooze(_) => "snoozed",
            GiveUp::Release => "released",
        };
        loop {
            let given_up = async {
                let mut conn = self.pool.acquire().await?;
                match how {
                    GiveUp::Retry(after) => tasks::retry(&mut conn, id, token, after).await,
                    GiveUp::Snooze(after) => tasks::reschedule(&mut conn, id, token, after).await,
                    GiveUp::Release => {
                        tasks::release(&mut conn, id, token).await.map(|released| released.then_some(Duration::ZERO))
                    }
                }
            };
            let given_up = with_deadline(given_up).await;
            if !given_up.as_ref().is_err_and(db::Error::is_outage) {
                return self.moved(given_up, result);
            }
            tokio::select! {
                biased;
                () = self.abort.cancelled() => return self.moved(given_up, result),
                () = lease.lost() => return self.moved(given_up, result),
                () = sleep(RESCHEDULE_PAUSE) => {}
            }
        }
    }

    /// `moved`: when the task is due again; `None` if the lease was lost.
    fn moved(&self, moved: db::Result<Option<Duration>>, result: &'static str) -> TaskOutcome {
        match moved {
            Ok(Some(due_in)) => (result, Some(due_in)),
            Ok(None) => self.refused(),
            Err(error) => {
                // The lease expires, and the task becomes ready again.
                tracing::warn!(
                    error = chain(&error),
                    "{} {} stays leased until its lease expires",
                    self.task.kind,
                    self.task.id
                );
                ("abandoned", None)
            }
        }
    }

    fn refused(&self) -> TaskOutcome {
        metrics::counter!("canvas_stale_writes_refused_total", "queue" => self.queue.as_str()).increment(1);
        tracing::warn!("{} {}: lease lost, result discarded", self.task.kind, self.task.id);
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
