//! Imports a public image, or the gallery of a product page, onto a canvas
//! (docs/reference/imports.md#how-an-import-runs).
//!
//! **Guarantee.** Nothing of an import is visible before the single transaction that completes it,
//! which is fenced by the lease. Stored blobs that nothing refers to are deleted later. Whatever a
//! foreign server or file does results in an outcome, not an error: only internal failures are
//! retried.
//!
//! **Mechanism.** [`gather`] fetches, checks and stores; [`place`] completes. An import mostly
//! waits for foreign servers, so imports have a separate queue with a few slots: slow pages never
//! occupy the slots of Actions and renditions, and free slots are shared fairly among accounts. The
//! files of imports have a separate memory budget ([`files`]) for the same reason: a slow server
//! must not block memory for pixels.

mod files;
mod gather;
mod image;
mod place;

use db::imports::Import;
use db::tasks::NewTask;
use domain::channel;
use domain::import::{Failure, FailureKind, ImportOutcome};
use domain::message::{Queue, ReadyTasks, TaskKind};
use service::shares::Shares;
use taskqueue::{Decision, Handler, Lease, Task};
use worker::{Error, TRANSACTION_TRIES, Worker, wait_out};

pub(crate) use self::image::Look;

use self::files::FilePermits;
use self::gather::{Gathered, gather};
use self::place::{Ended, conclude};

/// Maximum number of imports that a worker processes concurrently.
pub const IMPORTS_MAX: usize = 8;

/// The task handler for imports. Clones share everything.
#[derive(Clone)]
pub struct Imports {
    worker: Worker,
    files: Shares,
}

impl Imports {
    /// Creates the handler from the resources that all kinds of work share, and the memory budget
    /// for files of imports.
    pub fn new(worker: Worker, files: Shares) -> Self {
        Self { worker, files }
    }
}

impl Handler for Imports {
    async fn run(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        self.worker.free_work.declare();
        let outcome = match task.kind {
            TaskKind::Import => run(&self.worker, &self.files, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> taskqueue::HandlerResult {
        let outcome = match task.kind {
            TaskKind::Import => exhausted(&self.worker, task, lease).await,
            // A kind that belongs in another queue: this process knows nothing that waits for it,
            // and its record needs an operator.
            _ => self.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

async fn run(worker: &Worker, files: &Shares, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(import) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let permits = FilePermits::enter(files).await;
    let gathered = gather(worker, &task.fairness_key, permits, &import.request, lease).await?;
    taskqueue::failpoint!("import.gathered");
    end(worker, task, lease, &import, &gathered).await
}

/// Moves an import that the previous release queued among Actions to the queue of imports. To be removed after the next release.
pub(super) async fn hand_over(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let mut transaction = db::pool::begin(&worker.pool).await?;
    if !db::tasks::settle(&mut transaction, task.id, lease.token()).await? {
        return Ok(Decision::Stale);
    }
    let moved = NewTask {
        id: task.id,
        queue: Queue::Import,
        kind: TaskKind::Import,
        fairness_key: &task.fairness_key,
        due_in: None,
        traceparent: task.traceparent.as_deref(),
    };
    db::tasks::enqueue(&mut transaction, &moved).await?;
    db::pool::commit(transaction).await?;
    worker.waker.wake(Queue::Import, task.id);
    Ok(Decision::Done)
}

/// Completes the import of a task whose runs crashed or failed too often.
pub(super) async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let failure = |field: &str| Failure {
        kind: FailureKind::Internal,
        field: field.into(),
        message: "the import failed again and again and was given up".into(),
        full: None,
        is_heic: false,
    };
    match load(worker, task).await {
        Ok(Some(import)) => {
            let failed = Gathered::Failed(failure(import.request.url_field()));
            end(worker, task, lease, &import, &failed).await
        }
        Ok(None) => worker.settle(task, lease).await,
        Err(Error::Database(error)) if error.is_unreadable() => {
            tracing::error!(error = &error as &dyn std::error::Error, import.id = %task.id, "cannot read the record of import {}", task.id);
            let mut transaction = db::pool::begin(&worker.pool).await?;
            if !db::tasks::settle(&mut transaction, task.id, lease.token()).await? {
                return Ok(Decision::Stale);
            }
            db::imports::finish(&mut transaction, task.id, &ImportOutcome::Failed(failure("canvasId"))).await?;
            db::pool::commit(transaction).await?;
            worker.cache.notify([channel_of(task)]).await;
            Ok(Decision::Fail { code: FailureKind::Internal.as_str() })
        }
        Err(error) => Err(error),
    }
}

/// The channel of those who wait for the import of a task.
fn channel_of(task: &Task) -> String {
    format!("{}:{}", TaskKind::Import, task.id)
}

/// The import of a task; `None` when it is complete.
async fn load(worker: &Worker, task: &Task) -> Result<Option<Import>, Error> {
    Ok(db::imports::of_task(&mut *worker.connection().await?, task.id).await?)
}

/// Completes an import and notifies waiters. A transaction that conflicts with another one is repeated.
async fn end(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    import: &Import,
    gathered: &Gathered,
) -> Result<Decision, Error> {
    let (mut tries, ready) = (0, ReadyTasks::new());
    let ended = loop {
        tries += 1;
        match conclude(worker, task, lease, import, gathered, &ready).await {
            Err(Error::Database(error)) if error.is_transient() && tries < TRANSACTION_TRIES => {}
            ended => break ended?,
        }
    };
    let outcome = match ended {
        Ended::Done(outcome) => *outcome,
        Ended::Stale => return Ok(Decision::Stale),
        Ended::BlobGone => return Err(Error::BlobGone),
    };
    taskqueue::failpoint!("import.committed");
    worker.waker.wake_all(&ready);
    let canvas = matches!(outcome, ImportOutcome::Imported(_)).then(|| channel::canvas(&import.canvas));
    worker.cache.notify([Some(channel_of(task)), canvas].into_iter().flatten()).await;
    let (result, decision) = match &outcome {
        ImportOutcome::Imported(_) => ("imported", Decision::Done),
        ImportOutcome::Review(review) => (review.reason.as_str(), Decision::Done),
        ImportOutcome::Failed(failure) => (failure.kind.as_str(), Decision::Fail { code: failure.kind.as_str() }),
    };
    metrics::counter!("canvas_imports_total", "result" => result).increment(1);
    tracing::info!(import.id = %task.id, result, "import {} ended: {result}", task.id);
    Ok(decision)
}
