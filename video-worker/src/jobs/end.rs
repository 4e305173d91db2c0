//! The end of a video job: the video, its credit and everything that tells of it in one transaction (decisions 9.5, 12.4).

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use db::jobs::{Concluded, Ending, Film, Terms};
use domain::id::JobId;
use domain::job::{CancelReason, Failure, FailureCode, JobStatus, Record};
use spine::{Decision, Lease, Task};
use tokio::time::timeout;

use super::maker::Maker;
use super::poll::CANCEL_LIMIT;
use super::run::{Run, Stop};
use super::store::{self, Content};
use super::{Error, Worker};

/// How often a transaction is run that lost against another one, before it is left to the next claim.
const TRANSACTION_TRIES: usize = 4;

/// How often a video is put anew because the sweeper took its blob before it was referred to. Once is hardly possible: a blob
/// is left alone for 24 h.
const PUTS_MAX: usize = 3;

impl Run<'_> {
    /// Stores the video and shows it.
    pub(super) async fn finish(&self, task: &Task, content: &Content) -> Result<Decision, Error> {
        let worker = self.worker;
        for _ in 0..PUTS_MAX {
            if !self.lease.check() {
                return Ok(Decision::Stale);
            }
            let put = self.patiently(|| async { Ok(store::put(worker, content).await?) });
            let blob_key = match put.await {
                Ok(blob_key) => blob_key,
                Err(Stop::Error(error)) => return Err(error),
                Err(_) => return Ok(Decision::Stale),
            };
            spine::failpoint!("generation.stored");
            // A length in memory is below 2^63.
            let film = Film { blob_key, sha256: content.sha256, bytes: content.bytes.len() as u64 };
            match worker.conclude(task, self.lease, &Ending::Filmed(film)).await? {
                Concluded::BlobGone => {}
                concluded => return Ok(decision(&concluded)),
            }
        }
        Err(Error::BlobGone)
    }

    /// Ends a job that will have no video; `orphan`: a provider may have made one all the same.
    pub(super) async fn fail(
        &self,
        task: &Task,
        output: &JobOutput,
        failure: Failure,
        orphan: bool,
    ) -> Result<Decision, Error> {
        if !output.state.is_terminal() {
            if orphan {
                let (id, provider) = (self.job.id, self.request.model.provider.as_str());
                metrics::counter!("canvas_possible_orphans_total", "provider" => provider).increment(1);
                tracing::warn!(job.id = %id, run = ?output.run, "the video of {id} may have been made unknown to us");
            }
            let mut connection = self.worker.connection().await?;
            if !outputs::failed(&mut connection, self.held(), &failure, orphan).await? {
                return Ok(Decision::Stale);
            }
        }
        let ending = Ending::Failed(failure, Vec::new());
        Ok(decision(&self.worker.conclude(task, self.lease, &ending).await?))
    }

    /// Ends a job that somebody asked to stop, and asks the provider to stop what can be stopped (decisions 9.5).
    pub(super) async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let outputs = outputs::list(&mut *self.worker.connection().await?, self.job.id).await?;
        let under_way = outputs.iter().find(|output| output.state == OutputState::Submitted);
        let run: Option<providers::Run> = under_way.and_then(|output| serde_json::from_value(output.run.clone()?).ok());
        if let Some(run) = run {
            match self.maker().await {
                Ok(Maker::Remote(remote)) => {
                    let stopped = timeout(CANCEL_LIMIT, remote.provider.cancel(&run)).await;
                    tracing::info!(job.id = %self.job.id, run = run.id, ?stopped, "asked the provider to stop {}", run.id);
                }
                Err(Stop::Error(error)) => return Err(error),
                // The connection is gone, and with it the way to stop anything.
                Ok(Maker::Embedded(_)) | Err(_) => {}
            }
        }
        let ending = Ending::Canceled(CancelReason::UserRequested);
        Ok(decision(&self.worker.conclude(task, self.lease, &ending).await?))
    }
}

impl Worker {
    /// Ends the job of a task that killed its workers, or failed them, too often, without asking anybody for anything.
    pub(super) async fn give_up(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
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
        let met = outputs.into_iter().find_map(|output| output.failure);
        let given_up = || Failure::new(FailureCode::RuntimeFailed, "the work failed again and again and was given up");
        let ending = match job.status {
            JobStatus::Canceling => Ending::Canceled(CancelReason::UserRequested),
            _ => Ending::Failed(met.unwrap_or_else(given_up), Vec::new()),
        };
        Ok(decision(&self.conclude(task, lease, &ending).await?))
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

    /// Ends a job in one transaction, and tells everybody whom it concerns. A transaction that lost against another one is run
    /// again; after one whose end is not known the record is asked.
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
            self.nudge.nudge();
            self.announce(id).await;
            tell(record);
        }
        Ok(concluded)
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

    fn terms<'a>(&'a self, revision: &'a str, traceparent: Option<&'a str>) -> Terms<'a> {
        Terms {
            revision,
            public_url: &self.public_url,
            windows: &self.windows,
            traceparent,
            review: canvas::review::review_of_job,
        }
    }

    /// Wakes those who wait for a change of a job.
    pub(super) async fn announce(&self, id: JobId) {
        self.cache.notify(&format!("job:{id}")).await;
    }
}

fn decision(concluded: &Concluded) -> Decision {
    match concluded {
        Concluded::Done(record) => match &record.outcome.failure {
            Some(failure) => Decision::Fail { code: failure.code.as_str() },
            None => Decision::Done,
        },
        Concluded::Stale | Concluded::BlobGone => Decision::Stale,
    }
}

/// The closing line of a job, and its measures.
fn tell(record: &Record) {
    let (id, operation, status) = (record.id, "video", record.status.as_str());
    let duration_ms = record.completed_at.zip(record.started_at).map(|(end, start)| end.millis_since(start));
    metrics::counter!("canvas_jobs_total", "operation" => operation, "status" => status).increment(1);
    if let Some(duration_ms) = duration_ms {
        let seconds = Duration::from_millis(duration_ms).as_secs_f64();
        metrics::histogram!("canvas_job_duration_seconds", "operation" => operation).record(seconds);
    }
    tracing::info!(job.id = %id, operation, status, duration_ms, "job {id} {status}");
}
