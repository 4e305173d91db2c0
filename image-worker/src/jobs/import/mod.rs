//! Imports: a public picture, or the gallery of a product page, onto a canvas (decisions 14).
//!
//! **Guarantee.** Nothing is seen of an import before the one transaction that ends it, which is fenced by the lease; what
//! was stored for nothing is swept. Everything that a foreign server or file can do ends in an outcome and not in an error:
//! only what is ours to mend is tried again.
//!
//! **Mechanism.** [`gather`] fetches, judges and stores; [`place`] ends. An import waits for others more than it works, so
//! it takes one of few places of its own: slow pages never hold the slots of Actions and renditions. What the files of imports
//! take in memory is bounded by itself ([`files`]), for the same reason: a slow server must not keep pixels from their own.

mod files;
mod gather;
mod picture;
mod place;

use std::time::Duration;

use db::imports::Import;
use domain::import::{Failure, FailureKind, Outcome};
use domain::message::TaskKind;
use spine::{Decision, Lease, Task};
use tokio::sync::Semaphore;
use workshop::{Error, Memory, TRANSACTION_TRIES, Worker};

use self::files::Rooms;
use self::gather::{Gathered, gather};
use self::place::{Ended, conclude};

/// Imports that a worker has in hand at once.
pub const IMPORTS_MAX: usize = 8;

/// How long an import waits that finds no place.
const NO_PLACE_PAUSE: Duration = Duration::from_millis(500);

/// What the imports of a process share.
#[derive(Debug)]
pub(super) struct Imports {
    /// [`IMPORTS_MAX`] of them.
    places: Semaphore,
    /// For the files that they have in hand.
    files: Memory,
}

impl Imports {
    /// With so many bytes for files.
    pub(super) fn new(files_bytes: u64) -> Self {
        Self { places: Semaphore::new(IMPORTS_MAX), files: Memory::new(files_bytes) }
    }
}

/// Carries out the import of a task, when there is a place for it.
pub(super) async fn run(worker: &Worker, imports: &Imports, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let Ok(_place) = imports.places.try_acquire() else { return Ok(Decision::Later { after: NO_PLACE_PAUSE }) };
    let Some(rooms) = Rooms::enter(&imports.files) else { return Ok(Decision::Later { after: NO_PLACE_PAUSE }) };
    let Some(import) = load(worker, task).await? else { return worker.settle(task, lease).await };
    let gathered = gather(worker, rooms, &import.request, lease).await?;
    spine::failpoint!("import.gathered");
    end(worker, task, lease, &import, &gathered).await
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
