//! The kinds of tasks, each: load → run → make durable → Decision.

mod action;
pub mod generation;
mod import;
mod recipe;
mod rendition;
mod store;

use std::sync::Arc;
use std::time::Duration;

use db::PgPool;
use db::jobs::{Concluded, Ending, Terms, Windows};
use domain::id::JobId;
use domain::job::{FailureCode, Record};
use domain::message::TaskKind;
use service::blocking::Panicked;
use spine::{Decision, Handler, Lease, Nudge, Outcome, Task};
use tokio::sync::Semaphore;

pub use import::IMPORTS_MAX;

use crate::actions::NotUnderstood;
use crate::pixels::Pixels;

/// How often a transaction is run that lost against another one, before it is left to the next claim.
const TRANSACTION_TRIES: usize = 4;

/// Pauses after each claim on which the object store or the database failed, in seconds; the last one serves for all that
/// follow: short at first, because most outages are the restart of a server, and together longer than any restart takes.
const OUTAGE_PAUSES: [u64; 4] = [1, 5, 30, 120];

/// What the kinds of work share. Clones share it, too.
#[derive(Clone)]
pub struct Worker {
    /// Connections to the database.
    pub pool: PgPool,
    /// Where pictures are.
    pub blobs: blob::Store,
    /// To tell those who wait for a change.
    pub cache: cache::Cache,
    /// To wake the relay after commits that enqueue.
    pub nudge: Nudge,
    /// Where pixel work runs.
    pub pixels: Pixels,
    /// The way out to foreign files.
    pub egress: egress::Client,
    /// Places for imports: [`IMPORTS_MAX`].
    pub imports: Arc<Semaphore>,
    /// The origin of `canvasUrl` in events.
    pub public_url: String,
    /// How long records are kept.
    pub windows: Windows,
}

/// Why a task did not work out this time. It is tried again, a few times (reliability.md 2).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] db::Error),
    /// The object store failed.
    #[error("the object store failed")]
    Store(#[from] blob::Error),
    /// The stored request is none that this build carries out.
    #[error("the request cannot be carried out")]
    NotUnderstood(#[source] NotUnderstood),
    /// An encoder failed.
    #[error("the picture could not be written")]
    Raster(#[source] raster::Error),
    /// A render's document could not be rasterised.
    #[error("the document could not be rasterised")]
    Document(#[source] raster::document::DocumentError),
    /// The engine panicked.
    #[error("the engine failed")]
    Panicked(#[source] Panicked),
    /// The result's blob was swept again and again.
    #[error("the result was swept before it was referred to")]
    BlobGone,
    /// The job of a step is not there.
    #[error("the job of a step is gone")]
    JobGone,
    /// The task is not this process's kind of work.
    #[error("a task of kind {0} in the wrong queue")]
    WrongQueue(TaskKind),
}

impl Error {
    /// Whether what the work needs was not there, as against the work being at fault.
    fn is_outage(&self) -> bool {
        match self {
            Error::Store(_) => true,
            Error::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

impl Handler for Worker {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Action => action::run(self, task, lease).await,
            TaskKind::Rendition => rendition::run(self, task, lease).await,
            TaskKind::Import => import::run(self, task, lease).await,
            TaskKind::Recipe => recipe::run(self, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Action => action::exhausted(self, task, lease).await,
            TaskKind::Rendition => rendition::exhausted(self, task, lease).await,
            TaskKind::Import => import::exhausted(self, task, lease).await,
            TaskKind::Recipe => recipe::exhausted(self, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

/// Turns an outage into a pause; every other failure is the runner's to report.
fn wait_out(task: &Task, outcome: Result<Decision, Error>) -> Outcome {
    match outcome {
        Err(error) if error.is_outage() => {
            let after = Duration::from_secs(outage_pause(task.claims));
            tracing::warn!(error = &error as &dyn std::error::Error, "{} {} waits for {after:?}", task.kind, task.id);
            Ok(Decision::Retry { after })
        }
        outcome => Ok(outcome?),
    }
}

/// How many seconds to wait after an outage on claim `claims`, from 1.
fn outage_pause(claims: i32) -> u64 {
    let index = usize::try_from(claims - 1).unwrap_or(0).min(OUTAGE_PAUSES.len() - 1);
    OUTAGE_PAUSES[index]
}

impl Worker {
    async fn connection(&self) -> Result<db::Connection, Error> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// Ends a task that has nothing to do.
    async fn settle(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let settled = db::tasks::settle(&mut *self.connection().await?, task.id, lease.token()).await?;
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }

    /// Ends a job in one transaction, and tells everybody whom it concerns. A transaction that lost against another one
    /// is run again; after one whose end is not known the record is asked.
    async fn conclude(&self, task: &Task, lease: &Lease, ending: &Ending) -> Result<Concluded, Error> {
        let id = JobId(task.id);
        let mut tries = 0;
        let concluded = loop {
            tries += 1;
            match self.try_to_conclude(id, task, lease, ending).await {
                Err(error) if error.is_transient() && tries < TRANSACTION_TRIES => {}
                Err(error) => match self.ended(id).await {
                    Some(record) => break Concluded::Done(Box::new(record)),
                    None => return Err(error.into()),
                },
                Ok(concluded) => break concluded,
            }
        };
        if let Concluded::Done(record) = &concluded {
            spine::failpoint!("action.committed");
            self.nudge.nudge();
            self.announce(id).await;
            tell(record);
        }
        Ok(concluded)
    }

    /// The job if it is over, its task settled, as far as can be told.
    async fn ended(&self, id: JobId) -> Option<Record> {
        let mut connection = self.connection().await.ok()?;
        db::jobs::get_ended(&mut connection, id).await.ok()?
    }

    /// Ends a job that cannot be ended otherwise, because what is stored of it cannot be read.
    async fn abandon(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let id = JobId(task.id);
        let revision = service::random::revision();
        let mut transaction = db::pool::begin(&self.pool).await?;
        if !db::jobs::abandon(&mut transaction, id, lease.token(), &self.terms(&revision, None)).await? {
            return Ok(Decision::Stale);
        }
        db::pool::commit(transaction).await?;
        self.announce(id).await;
        Ok(Decision::Fail { code: FailureCode::RuntimeFailed.as_str() })
    }

    fn terms<'a>(&'a self, revision: &'a str, traceparent: Option<&'a str>) -> Terms<'a> {
        Terms {
            revision,
            public_url: &self.public_url,
            windows: &self.windows,
            traceparent,
            review: canvas::review::review_of_job,
        }
    }

    async fn try_to_conclude(&self, id: JobId, task: &Task, lease: &Lease, ending: &Ending) -> db::Result<Concluded> {
        let revision = service::random::revision();
        let traceparent = task.trace.to_string();
        let terms = self.terms(&revision, Some(&traceparent));
        let mut transaction = db::pool::begin(&self.pool).await?;
        let concluded = db::jobs::conclude(&mut transaction, id, lease.token(), ending.clone(), &terms).await?;
        // Anything else is rolled back when the transaction is dropped.
        if matches!(concluded, Concluded::Done(_)) {
            db::pool::commit(transaction).await?;
        }
        Ok(concluded)
    }

    /// Wakes those who wait for a change of a job.
    async fn announce(&self, id: JobId) {
        self.cache.notify(&format!("job:{id}")).await;
    }
}

/// The closing line of a job, and its measures.
fn tell(record: &Record) {
    let (id, operation, status) = (record.id, record.operation.as_str(), record.status.as_str());
    let duration_ms = record.completed_at.zip(record.started_at).map(|(end, start)| end.millis_since(start));
    metrics::counter!("canvas_jobs_total", "operation" => operation, "status" => status).increment(1);
    if let Some(duration_ms) = duration_ms {
        let seconds = Duration::from_millis(duration_ms).as_secs_f64();
        metrics::histogram!("canvas_job_duration_seconds", "operation" => operation).record(seconds);
    }
    tracing::info!(job.id = %id, operation, status, duration_ms, "job {id} {status}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_waited_out_longer_and_longer() {
        assert_eq!([1, 2, 3, 4, 5, 9].map(outage_pause), [1, 5, 30, 120, 120, 120]);
    }

    #[test]
    fn only_what_is_missing_is_waited_for() {
        let missing = Error::Store(blob::Error::Missing(uuid::Uuid::nil()));
        let unreadable = Error::Database(db::Error::Unreadable { column: "jobs.kind", value: "x".into() });
        assert!(missing.is_outage() && Error::Database(db::Error::Timeout).is_outage());
        assert!(!unreadable.is_outage() && !Error::BlobGone.is_outage());
    }
}
