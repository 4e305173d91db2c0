//! The resources that all kinds of work share, and the steps of a job: it is begun, then completed in one
//! transaction.

use std::sync::Arc;
use std::time::Duration;

use app::job::{Completion, CompletionContext, CompletionResult, End, Reviews};
use db::PgPool;
use db::jobs::Windows;
use db::jobs::outputs::{self, JobOutput, OutputState};
use decoder::Program;
use domain::asset::UploadMetadata;
use domain::channel;
use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::job::{CancelReason, Failure, FailureCode, JobKind, JobStatus, Placement, Record};
use domain::message::ReadyTasks;
use service::account::FreeWork;
use taskqueue::{Decision, Lease, Task, Waker};

use crate::marks::OriginMarks;
use crate::{Error, Pixels};

/// Tries of a transaction that loses conflicts, before it is left to the next claim.
pub const TRANSACTION_TRIES: usize = 4;
/// Tries to prepare the review of a large canvas to which others write all the time. After these, the end of a job makes the
/// review under the lock.
const REVIEW_TRIES: usize = 3;

/// The resources that all kinds of work share. Clones share them too.
#[derive(Clone)]
pub struct Worker {
    pub pool: PgPool,
    pub blobs: blob::Store,
    /// Notifies waiters of changes.
    pub cache: cache::Cache,
    /// Announces tasks after the commits that make them ready.
    pub waker: Waker,
    /// The reviews that jobs leave on large canvases.
    pub reviews: Arc<Reviews>,
    /// The pool for pixel work.
    pub pixels: Pixels,
    /// Outbound HTTP to providers and foreign hosts.
    pub egress: egress::Client,
    /// The origin of `canvasUrl` in events.
    pub public_url: String,
    /// The time for which records are kept.
    pub windows: Windows,
    /// The rule for private metadata of imports and of providers' results. Neither keeps an original.
    pub upload_metadata: UploadMetadata,
    /// A queue whose workers were not seen for this long is silent.
    pub worker_silent: Duration,
    /// The program that decodes HEIF, in an image-worker that has one.
    pub heif: Option<Program>,
    /// How files are marked with their origin.
    pub marks: OriginMarks,
    /// Reports the processor time of free work.
    pub free_work: FreeWork,
}

/// A job whose run has begun.
pub struct TakenUp {
    /// Record of the job.
    pub job: Record,
    /// Its outputs in order: one per target, or one for a video.
    pub outputs: Vec<JobOutput>,
}

impl Worker {
    /// Acquires a connection to the database.
    ///
    /// # Errors
    ///
    /// If none is available.
    pub async fn connection(&self) -> Result<db::Connection, Error> {
        Ok(db::pool::acquire(&self.pool).await?)
    }

    /// Begins the job of a task, and opens its outputs the first time. The inner error is the
    /// decision to return if there is nothing to do.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn take_up(&self, task: &Task, lease: &Lease) -> Result<Result<TakenUp, Decision>, Error> {
        let id = JobId(task.id);
        let mut connection = self.connection().await?;
        let job = db::jobs::begin(&mut connection, &[(id, lease.token())]).await?.pop().flatten();
        let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
            drop(connection);
            return self.settle(task, lease).await.map(Err);
        };
        let count = job.request.targets().len().max(1);
        let opened = outputs::open(&mut connection, id, lease.token(), count).await?;
        drop(connection);
        let Some((outputs, is_fresh)) = opened else { return Ok(Err(Decision::Stale)) };
        if is_fresh {
            self.announce(&job.account, id, None).await;
        }
        Ok(Ok(TakenUp { job, outputs }))
    }

    /// Settles a task that has nothing to do.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn settle(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let settled = db::tasks::settle(&mut *self.connection().await?, task.id, lease.token()).await?;
        Ok(if settled { Decision::Done } else { Decision::Stale })
    }

    /// Ends jobs in this transaction, and commits it unless the blob of an output was removed. Then it announces the tasks in `ready`,
    /// which the contexts of the ends name. The caller [announces](Self::announce_end) the jobs that have ended.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn end(
        &self,
        mut transaction: db::pool::Transaction,
        ends: &[End<'_>],
        ready: &ReadyTasks,
    ) -> db::Result<Vec<CompletionResult>> {
        let completed = app::job::end(&mut transaction, ends).await?;
        // Otherwise, dropping the transaction rolls it back.
        if !completed.contains(&CompletionResult::BlobGone) {
            db::pool::commit(transaction).await?;
            self.waker.wake_all(ready);
        }
        Ok(completed)
    }

    /// Ends a job in a transaction of its own and notifies its waiters. A transaction that lost a conflict is repeated. If it is
    /// unknown whether this or an earlier transaction was committed, the record tells.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn complete(
        &self,
        task: &Task,
        lease: &Lease,
        completion: &Completion,
    ) -> Result<CompletionResult, Error> {
        let (id, lease_token, traceparent) = (JobId(task.id), lease.token(), task.trace.to_string());
        let (mut conflicts, mut preparations, mut review) = (0, 0, None);
        let ready = ReadyTasks::new();
        let completed = loop {
            let context = self.completion_context(Some(&traceparent), &ready);
            let context = CompletionContext { review: review.as_ref(), ..context };
            let reviews_large = preparations > 0 && review.is_none();
            let end = End { id, lease_token, completion, context, reviews_large };
            match self.end_alone(&end, &ready).await {
                Err(error) if error.is_transient() && conflicts + 1 < TRANSACTION_TRIES => conflicts += 1,
                Ok(CompletionResult::ReviewNeeded) => {
                    // One review of a canvas exists at a time.
                    drop(review.take());
                    if preparations < REVIEW_TRIES {
                        let account = account_of(task);
                        review = self.reviews.prepare(&self.pool, id, &account, Some(lease_token), completion).await;
                    }
                    preparations += 1;
                }
                completed => break completed,
            }
        };
        // Lets the next job of the canvas begin its review.
        drop(review);
        let completed = match completed {
            Ok(CompletionResult::Stale) | Err(_) => match self.ended(id).await {
                Some(record) if record.status == completion.status() => CompletionResult::Done(Box::new(record)),
                _ => completed?,
            },
            Ok(completed) => completed,
        };
        if let CompletionResult::Done(record) = &completed {
            self.announce_end(record).await;
        }
        Ok(completed)
    }

    async fn end_alone(&self, end: &End<'_>, ready: &ReadyTasks) -> db::Result<CompletionResult> {
        // Drops the tasks that a rolled-back attempt made ready.
        ready.take();
        let mut completed = self.end(db::pool::begin(&self.pool).await?, std::slice::from_ref(end), ready).await?;
        Ok(completed.pop().unwrap_or(CompletionResult::Stale))
    }

    /// Notifies the waiters of a job whose end is committed, logs it and counts it.
    pub async fn announce_end(&self, record: &Record) {
        taskqueue::failpoint!("job.committed");
        self.cache.notify(record.channels()).await;
        log_completion(record);
    }

    /// Like [`complete`](Self::complete), for outputs that are stored and cannot be made again: if
    /// the blob of one was removed, the job fails without outputs.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn complete_stored(
        &self,
        task: &Task,
        lease: &Lease,
        completion: &Completion,
    ) -> Result<Decision, Error> {
        let mut completed = self.complete(task, lease, completion).await?;
        if completed == CompletionResult::BlobGone {
            // The blob was the only copy and was stored long ago.
            let lost = Failure::new(FailureCode::OutputFinalizationFailed, "the result was lost before it was shown");
            completed = self.complete(task, lease, &Completion::Failed(lost, Vec::new())).await?;
        }
        Ok(decision(&completed))
    }

    /// Completes the job of a task whose runs crashed or failed too often, with the outputs made so
    /// far and without calling a provider.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn give_up(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        match self.try_to_give_up(task, lease).await {
            Err(Error::Database(error)) if error.is_unreadable() => {
                tracing::error!(error = &error as &dyn std::error::Error, job.id = %task.id, "cannot read the record of job {}", task.id);
                self.abandon(task, lease).await
            }
            outcome => outcome,
        }
    }

    async fn try_to_give_up(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let id = JobId(task.id);
        let mut connection = self.connection().await?;
        let job = db::jobs::begin(&mut connection, &[(id, lease.token())]).await?.pop().flatten();
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
        let completion = match job.status {
            _ if is_whole => Completion::Succeeded(made),
            JobStatus::Canceling => Completion::Canceled(CancelReason::UserRequested),
            _ => Completion::Failed(failure_of(&outputs).or_else(met).unwrap_or_else(given_up), made),
        };
        self.complete_stored(task, lease, &completion).await
    }

    /// The parts of the process that the completion of a job or a Recipe run requires.
    pub fn completion_context<'a>(
        &'a self,
        traceparent: Option<&'a str>,
        ready: &'a ReadyTasks,
    ) -> CompletionContext<'a> {
        CompletionContext {
            public_url: &self.public_url,
            windows: &self.windows,
            traceparent,
            ready,
            worker_silent: self.worker_silent,
            review: None,
        }
    }

    /// Wakes those who wait for a job or Recipe run, those who follow the work of its account, and those who follow the canvas
    /// if that has changed. Called after each commit that changes one of them.
    pub async fn announce(&self, account: &AccountUid, id: JobId, canvas: Option<&CanvasHandle>) {
        let channels = [Some(channel::job(id)), Some(channel::runs(account)), canvas.map(channel::canvas)];
        self.cache.notify(channels.into_iter().flatten()).await;
    }

    /// Completes a job whose stored record cannot be read, so that no other way is possible.
    async fn abandon(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let id = JobId(task.id);
        let mut transaction = db::pool::begin(&self.pool).await?;
        let ready = ReadyTasks::new();
        let context = self.completion_context(None, &ready);
        let Some(abandoned) = app::job::abandon(&mut transaction, id, lease.token(), &context).await? else {
            return Ok(Decision::Stale);
        };
        db::pool::commit(transaction).await?;
        // Lets the Recipe run continue that contains the job as a step.
        self.waker.wake_all(&ready);
        let canvas = abandoned.canvas.as_ref().map(|(_, handle)| handle);
        self.announce(&account_of(task), id, canvas).await;
        Ok(Decision::Fail { code: FailureCode::RuntimeFailed.as_str() })
    }

    /// The job if it has ended and its task is known to be settled.
    async fn ended(&self, id: JobId) -> Option<Record> {
        let mut connection = self.connection().await.ok()?;
        db::jobs::get_ended(&mut connection, id).await.ok()?
    }
}

/// The account of a task that works on a job or Recipe run: its fairness key.
pub fn account_of(task: &Task) -> AccountUid {
    AccountUid::from_stored(task.fairness_key.clone())
}

/// The decision after an attempt to complete a job.
pub fn decision(completed: &CompletionResult) -> Decision {
    match completed {
        CompletionResult::Done(record) => match &record.outcome.failure {
            Some(failure) => Decision::Fail { code: failure.code.as_str() },
            None => Decision::Done,
        },
        CompletionResult::Stale | CompletionResult::BlobGone | CompletionResult::ReviewNeeded => Decision::Stale,
    }
}

/// The stored outputs, in the order of the targets.
pub fn placements(outputs: &[JobOutput]) -> Vec<Placement> {
    outputs.iter().filter_map(|output| output.placement.clone()).collect()
}

/// The failure of a job of these outputs: that of the first failed output, with the number of failed ones if there are several.
pub fn failure_of(outputs: &[JobOutput]) -> Option<Failure> {
    let failed = || outputs.iter().filter(|output| output.state == OutputState::Failed);
    let first = failed().find_map(|output| output.failure.clone())?;
    let message = match outputs.len() {
        1 => first.message,
        all => format!("{} of {all} outputs failed. {}", failed().count(), first.message),
    };
    Some(Failure { message, ..first })
}

/// Logs the end of a job and records its metrics.
fn log_completion(record: &Record) {
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
