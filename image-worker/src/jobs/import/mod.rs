//! Imports: a public picture, or the gallery of a product page, onto a canvas (decisions 14).
//!
//! **Guarantee.** Nothing is seen of an import before the one transaction that ends it, which is fenced by the lease; what
//! was stored for nothing is swept. Everything that a foreign server or file can do ends in an outcome and not in an error:
//! only what is ours to mend is tried again.
//!
//! **Mechanism.** [`gather`] fetches, judges and stores; [`place`] ends. An import waits for others more than it works, so
//! imports have a queue and few places of their own: slow pages never hold the slots of Actions and renditions, and a place that
//! is free goes to whose turn it is between accounts. What the files of imports take in memory is bounded by itself ([`files`]),
//! for the same reason: a slow server must not keep pixels from their own.

mod files;
mod gather;
mod picture;
mod place;

use db::imports::Import;
use db::tasks::NewTask;
use domain::import::{Failure, FailureKind, Outcome};
use domain::message::{Queue, TaskKind};
use spine::{Decision, Handler, Lease, Task};
use workshop::{Error, Memory, TRANSACTION_TRIES, Worker, wait_out};

use self::files::Rooms;
use self::gather::{Gathered, gather};
use self::place::{Ended, conclude};

/// Imports that a worker has in hand at once.
pub const IMPORTS_MAX: usize = 8;

/// Carries out imports. Clones share everything.
#[derive(Clone)]
pub struct Imports {
    worker: Worker,
    files: Memory,
}

impl Imports {
    /// With what all kinds of work share, and the memory for the files that imports have in hand.
    pub fn new(worker: Worker, files: Memory) -> Self {
        Self { worker, files }
    }
}

impl Handler for Imports {
    async fn run(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        let outcome = match task.kind {
            TaskKind::Import => run(&self.worker, &self.files, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> spine::Outcome {
        let outcome = match task.kind {
            TaskKind::Import => exhausted(&self.worker, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

async fn run(worker: &Worker, files: &Memory, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(import) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let rooms = Rooms::enter(files).await;
    let gathered = gather(worker, rooms, &import.request, lease).await?;
    spine::failpoint!("import.gathered");
    end(worker, task, lease, &import, &gathered).await
}

/// Moves an import that a process of the release before queued among Actions to the queue of imports. Goes with the release after
/// this one.
pub(super) async fn hand_over(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let mut transaction = db::pool::begin(&worker.pool).await?;
    if !db::tasks::settle(&mut transaction, task.id, lease.token()).await? {
        return Ok(Decision::Stale);
    }
    let moved = NewTask {
        id: task.id,
        queue: Queue::Import,
        kind: TaskKind::Import,
        lane: &task.lane,
        due_in: None,
        traceparent: task.traceparent.as_deref(),
    };
    db::tasks::enqueue(&mut transaction, &moved).await?;
    db::pool::commit(transaction).await?;
    worker.nudge.nudge();
    Ok(Decision::Done)
}

/// Ends the import of a task that killed its workers, or failed them, too often.
pub(super) async fn exhausted(worker: &Worker, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Some(import) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let failure = Failure {
        kind: FailureKind::Internal,
        field: import.request.url_field().into(),
        message: "the import failed again and again and was given up".into(),
    };
    end(worker, task, lease, &import, &Gathered::Failed(failure)).await
}

/// What the task is to bring; nothing when it is over.
async fn load(worker: &Worker, task: &Task) -> Result<Option<Import>, Error> {
    Ok(db::imports::of_task(&mut *worker.connection().await?, task.id).await?)
}

/// Ends an import and tells those who wait. A transaction that lost against another one is run again.
async fn end(
    worker: &Worker,
    task: &Task,
    lease: &Lease,
    import: &Import,
    gathered: &Gathered,
) -> Result<Decision, Error> {
    let mut tries = 0;
    let ended = loop {
        tries += 1;
        match conclude(worker, task, lease, import, gathered).await {
            Err(Error::Database(error)) if error.is_transient() && tries < TRANSACTION_TRIES => {}
            ended => break ended?,
        }
    };
    let outcome = match ended {
        Ended::Done(outcome) => outcome,
        Ended::Stale => return Ok(Decision::Stale),
        Ended::BlobGone => return Err(Error::BlobGone),
    };
    spine::failpoint!("import.committed");
    worker.nudge.nudge();
    worker.cache.notify(&format!("{}:{}", TaskKind::Import, task.id)).await;
    let (result, decision) = match &outcome {
        Outcome::Imported(_) => ("imported", Decision::Done),
        Outcome::Review(review) => (review.reason.as_str(), Decision::Done),
        Outcome::Failed(failure) => (failure.kind.as_str(), Decision::Fail { code: failure.kind.as_str() }),
    };
    metrics::counter!("canvas_imports_total", "result" => result).increment(1);
    tracing::info!(import.id = %task.id, result, "import {} ended: {result}", task.id);
    Ok(decision)
}
