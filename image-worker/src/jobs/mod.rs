//! The kinds of tasks, each: load → run → make durable → Decision.

mod action;
mod rendition;
mod store;

use std::time::Duration;

use db::PgPool;
use db::jobs::{Concluded, Ending, Terms, Windows};
use domain::id::JobId;
use domain::job::Record;
use domain::message::TaskKind;
use service::blocking::Panicked;
use spine::{Decision, Handler, Lease, Nudge, Outcome, Task};

use crate::actions::NotUnderstood;
use crate::pixels::Pixels;

/// How often a transaction is run that lost against another one, before it is left to the next claim.
const TRANSACTION_TRIES: usize = 4;

/// What the kinds of work share.
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
    /// The engine panicked.
    #[error("the engine failed")]
    Panicked(#[source] Panicked),
    /// The result's blob was swept again and again.
    #[error("the result was swept before it was referred to")]
    BlobGone,
    /// The task is not this process's kind of work.
    #[error("a task of kind {0} in the wrong queue")]
    WrongQueue(TaskKind),
}

impl Handler for Worker {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        match task.kind {
            TaskKind::Action => action::run(self, task, lease).await,
            TaskKind::Rendition => rendition::run(self, task, lease).await,
            kind => Err(Error::WrongQueue(kind).into()),
        }
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        match task.kind {
            TaskKind::Action => action::exhausted(self, task, lease).await,
            TaskKind::Rendition => rendition::exhausted(self, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.settle(task, lease).await,
        }
    }
}

impl Worker {
    async fn connection(&self) -> Result<db::Connection, Error> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// Ends a task that has nothing to do.
    async fn settle(&self, task: &Task, lease: &Lease) -> Outcome {
        let settled = db::tasks::settle(&mut *self.connection().await?, task.id, lease.token()).await?;
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }

    /// Ends a job in one transaction, and tells everybody whom it concerns. A transaction that lost against another one
    /// is run again.
    async fn conclude(&self, task: &Task, lease: &Lease, ending: &Ending) -> Result<Concluded, Error> {
        let id = JobId(task.id);
        let mut tries = 0;
        let concluded = loop {
            tries += 1;
            match self.try_to_conclude(id, task, lease, ending).await {
                Err(error) if error.is_transient() && tries < TRANSACTION_TRIES => {}
                result => break result?,
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

    async fn try_to_conclude(&self, id: JobId, task: &Task, lease: &Lease, ending: &Ending) -> db::Result<Concluded> {
        let revision = service::random::revision();
        let traceparent = task.trace.to_string();
        let terms = Terms {
            revision: &revision,
            public_url: &self.public_url,
            windows: &self.windows,
            traceparent: Some(&traceparent),
        };
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
