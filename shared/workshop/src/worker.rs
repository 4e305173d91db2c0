//! What every kind of work has at hand, and the way of a job: taken up, then ended in one transaction.

use std::time::Duration;

use db::PgPool;
use db::jobs::outputs::{self, JobOutput, OutputState};
use db::jobs::{Concluded, Ending, Placement, Terms, Windows};
use domain::id::JobId;
use domain::job::{CancelReason, Failure, FailureCode, JobKind, JobStatus, Record};
use spine::{Decision, Lease, Nudge, Task};

use crate::{Error, Pixels};

/// How often a transaction is run that lost against another one, before it is left to the next claim.
pub const TRANSACTION_TRIES: usize = 4;

/// What kinds of work share. Clones share it, too.
#[derive(Clone)]
pub struct Worker {
    /// Connections to the database.
    pub pool: PgPool,
    /// Where files are.
    pub blobs: blob::Store,
    /// To tell those who wait for a change.
    pub cache: cache::Cache,
    /// To wake the relay after commits that enqueue.
    pub nudge: Nudge,
    /// Where pixel work runs.
    pub pixels: Pixels,
    /// The way out to providers and foreign files.
    pub egress: egress::Client,
    /// The origin of `canvasUrl` in events.
    pub public_url: String,
    /// How long records are kept.
    pub windows: Windows,
    /// Bytes that an account without a quota of its own may store; 0: no limit.
    pub storage_max: i64,
}

/// A job in hand.
pub struct TakenUp {
    /// Its record.
    pub job: Record,
    /// Its outputs in their order: as many as it has targets, one for a video.
    pub outputs: Vec<JobOutput>,
}

impl Worker {
    /// A connection to the database.
    ///
    /// # Errors
    /// When none is to be had.
    pub async fn connection(&self) -> Result<db::Connection, Error> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// Takes up the job of a task, and opens its outputs the first time; the inner error is what to answer when there is
    /// nothing to do.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn take_up(&self, task: &Task, lease: &Lease) -> Result<Result<TakenUp, Decision>, Error> {
        let id = JobId(task.id);
        let mut connection = self.connection().await?;
        let job = db::jobs::begin(&mut connection, id, lease.token()).await?;
        let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
            drop(connection);
            return self.settle(task, lease).await.map(Err);
        };
        let count = job.request.targets().len().max(1);
        let opened = outputs::open(&mut connection, id, lease.token(), count).await?;
        drop(connection);
        let Some((outputs, is_fresh)) = opened else { return Ok(Err(Decision::Stale)) };
        if is_fresh {
            self.announce(id).await;
        }
        Ok(Ok(TakenUp { job, outputs }))
    }

    /// Ends a task that has nothing to do.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settle(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let settled = db::tasks::settle(&mut *self.connection().await?, task.id, lease.token()).await?;
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }

    /// Ends a job in one transaction, and tells everybody whom it concerns. A transaction that lost against another one
    /// is run again; after one whose end is not known the record is asked.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn conclude(&self, task: &Task, lease: &Lease, ending: &Ending) -> Result<Concluded, Error> {
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
            spine::failpoint!("job.committed");
            self.nudge.nudge();
            self.announce(id).await;
            tell(record);
        }
        Ok(concluded)
    }

    /// The same with outputs that are stored and made by nobody again: when the blob of one is gone the job fails, and shows none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn conclude_stored(&self, task: &Task, lease: &Lease, ending: &Ending) -> Result<Decision, Error> {
        let mut concluded = self.conclude(task, lease, ending).await?;
        if concluded == Concluded::BlobGone {
            // It was put long ago, and there is no other copy.
            let lost = Failure::new(FailureCode::OutputFinalizationFailed, "the result was lost before it was shown");
            concluded = self.conclude(task, lease, &Ending::Failed(lost, Vec::new())).await?;
        }
        Ok(decision(&concluded))
    }

    /// Ends the job of a task that killed its workers, or failed them, too often: with what was made by then, and without
    /// asking anybody for anything.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn give_up(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        match self.try_to_give_up(task, lease).await {
            Err(Error::Database(error)) if error.is_unreadable() => {
                tracing::error!(error = &error as &dyn std::error::Error, job.id = %task.id, "job {} cannot be read", task.id);
                self.abandon(task, lease).await
            }
            outcome => outcome,
        }
    }

    async fn try_to_give_up(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let id = JobId(task.id);
        let mut connection = self.connection().await?;
        let job = db::jobs::begin(&mut connection, id, lease.token()).await?;
        let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
            drop(connection);
            return self.settle(task, lease).await;
        };
        let outputs = outputs::list(&mut connection, id).await?;
        drop(connection);
        let made = placements(&outputs);
        let is_whole = !made.is_empty() && made.len() == job.request.targets().len();
        let met = || outputs.iter().find_map(|output| output.failure.clone());
        let given_up = || Failure::new(FailureCode::RuntimeFailed, "the work failed again and again and was given up");
        let ending = match job.status {
            _ if is_whole => Ending::Succeeded(made),
            JobStatus::Canceling => Ending::Canceled(CancelReason::UserRequested),
            _ => Ending::Failed(failure_of(&outputs).or_else(met).unwrap_or_else(given_up), made),
        };
        self.conclude_stored(task, lease, &ending).await
    }

    /// What the end of a job takes from the process, with `revision` for the canvas.
    pub fn terms<'a>(&'a self, revision: &'a str, traceparent: Option<&'a str>) -> Terms<'a> {
        Terms {
            revision,
            public_url: &self.public_url,
            windows: &self.windows,
            traceparent,
            review: canvas::review::review_of_job,
            storage_max: self.storage_max,
        }
    }

    /// Wakes those who wait for a change of a job.
    pub async fn announce(&self, id: JobId) {
        self.cache.notify(&format!("job:{id}")).await;
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
        // The run of a Recipe whose step it was goes on.
        self.nudge.nudge();
        self.announce(id).await;
        Ok(Decision::Fail { code: FailureCode::RuntimeFailed.as_str() })
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

    /// The job if it is over, its task settled, as far as can be told.
    async fn ended(&self, id: JobId) -> Option<Record> {
        let mut connection = self.connection().await.ok()?;
        db::jobs::get_ended(&mut connection, id).await.ok()?
    }
}

/// What to answer after an attempt to end a job.
pub fn decision(concluded: &Concluded) -> Decision {
    match concluded {
        Concluded::Done(record) => match &record.outcome.failure {
            Some(failure) => Decision::Fail { code: failure.code.as_str() },
            None => Decision::Done,
        },
        Concluded::Stale | Concluded::BlobGone => Decision::Stale,
    }
}

/// What is stored, in the order of the targets.
pub fn placements(outputs: &[JobOutput]) -> Vec<Placement> {
    outputs.iter().filter_map(|output| output.placement.clone()).collect()
}

/// Why a job of these outputs fails: as the first that failed did, and how many did when there are several.
pub fn failure_of(outputs: &[JobOutput]) -> Option<Failure> {
    let failed = || outputs.iter().filter(|output| output.state == OutputState::Failed);
    let first = failed().find_map(|output| output.failure.clone())?;
    let message = match outputs.len() {
        1 => first.message,
        all => format!("{} of {all} outputs failed. {}", failed().count(), first.message),
    };
    Some(Failure { message, ..first })
}

/// The closing line of a job, and its measures.
fn tell(record: &Record) {
    let (id, status) = (record.id, record.status.as_str());
    let operation = match record.kind {
        JobKind::Video => "video",
        _ => record.operation.as_str(),
    };
    let duration_ms = record.completed_at.zip(record.started_at).map(|(end, start)| end.millis_since(start));
    metrics::counter!("canvas_jobs_total", "operation" => operation, "status" => status).increment(1);
    if let Some(duration_ms) = duration_ms {
        let seconds = Duration::from_millis(duration_ms).as_secs_f64();
        metrics::histogram!("canvas_job_duration_seconds", "operation" => operation).record(seconds);
    }
    tracing::info!(job.id = %id, operation, status, duration_ms, "job {id} {status}");
}
