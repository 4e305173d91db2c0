//! One run of the task of a job.

use std::fmt::Display;
use std::time::Duration;

use app::job::Completion;
use db::jobs::outputs::{self, JobOutput, LeasedOutput, OutputState};
use domain::job::{CancelReason, ChosenModel, Failure, JobStatus, Record};
use domain::model::ProviderKind;
use futures_util::future::join_all;
use serde_json::Value;
use taskqueue::{Decision, Lease, Task};
use tokio::time::{sleep, timeout};

use super::{Backend, Generator};
use crate::{Error, Interrupt, decision};

/// Time limit for a provider's answer to a cancellation.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// Delays between attempts to store or record a finished result, which is paid for and exists
/// nowhere else. Their sum covers the restart of most servers.
const RESULT_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// One run of the task of a job, under its lease.
pub struct TaskRun<'a> {
    /// The generator that the run uses.
    pub generator: &'a Generator,
    /// The job, as it was begun.
    pub job: &'a Record,
    /// The model that the job runs.
    pub model: &'a ChosenModel,
    /// The lease on the job's task.
    pub lease: &'a Lease,
}

impl TaskRun<'_> {
    /// The preconditions of a change of the output at `position`.
    pub fn leased(&self, position: i32) -> LeasedOutput {
        LeasedOutput { job: self.job.id, lease_token: self.lease.token(), position }
    }

    /// Returns `true` if a cancel of the job was requested.
    pub fn is_canceled(&self) -> bool {
        self.job.status == JobStatus::Canceling || self.lease.is_cancel_requested()
    }

    /// Checks that the run may start an external effect.
    ///
    /// # Errors
    /// [`Interrupt::Canceled`], [`Interrupt::Stale`].
    pub fn check(&self) -> Result<(), Interrupt> {
        check(self.lease)
    }

    /// Waits for `work` until cancellation is requested.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Canceled`].
    pub async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupt> {
        unless_canceled(self.lease, work).await
    }

    /// Retries for a while if an outage prevents storing or recording something.
    ///
    /// # Errors
    ///
    /// The error of the last attempt.
    pub async fn retry_during_outage<T, F: Future<Output = Result<T, Interrupt>>>(
        &self,
        attempt: impl FnMut() -> F,
    ) -> Result<T, Interrupt> {
        retry_during_outage(self.job.id, attempt).await
    }

    /// Abandons an output. `orphan` says that a provider may have made it anyway.
    ///
    /// # Errors
    ///
    /// [`Interrupt::Stale`]; also if the database fails.
    pub async fn fail(&self, output: &JobOutput, failure: &Failure, orphan: bool) -> Result<(), Interrupt> {
        if orphan {
            note_orphan(self.model.provider, self.job.id, output.position, output.run.as_ref());
        }
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::failed(&mut connection, self.leased(output.position), failure, orphan).await?)
    }

    /// Completes a canceled job, and asks the provider to cancel its runs where possible.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub async fn cancel(&self, task: &Task, outputs: &[JobOutput]) -> Result<Decision, Error> {
        let runs: Vec<providers::Run> = outputs
            .iter()
            .filter(|output| output.state == OutputState::Submitted)
            .filter_map(|output| serde_json::from_value(output.run.clone()?).ok())
            .collect();
        if !runs.is_empty() {
            match self.backend().await {
                Ok(Backend::Remote(remote)) => {
                    let stop = async |run: &providers::Run| {
                        let stopped = timeout(CANCEL_LIMIT, remote.provider.cancel(run)).await;
                        tracing::info!(job.id = %self.job.id, run = run.id, ?stopped, "asked the provider to stop {}", run.id);
                    };
                    join_all(runs.iter().map(stop)).await;
                }
                Err(Interrupt::Error(error)) => return Err(error),
                // The connection was deleted, so nothing can be canceled at the provider.
                Ok(Backend::Embedded(_)) | Err(_) => {}
            }
        }
        let completion = Completion::Canceled(CancelReason::UserRequested);
        Ok(decision(&self.generator.worker.complete(task, self.lease, &completion).await?))
    }
}

/// Implements [`TaskRun::check`].
pub(super) fn check(lease: &Lease) -> Result<(), Interrupt> {
    if lease.is_cancel_requested() {
        return Err(Interrupt::Canceled);
    }
    if lease.check() { Ok(()) } else { Err(Interrupt::Stale) }
}

/// Waits for `work` until the cancellation of the lease's task is requested.
///
/// # Errors
///
/// [`Interrupt::Canceled`].
pub async fn unless_canceled<T>(lease: &Lease, work: impl Future<Output = T>) -> Result<T, Interrupt> {
    tokio::select! {
        biased;
        () = lease.cancelled() => Err(Interrupt::Canceled),
        done = work => Ok(done),
    }
}

/// Retries for a while if an outage, or a conflict with another transaction, prevents storing or
/// recording something. `of` identifies the owner of the work in logs.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry_during_outage<T, E: Passing, F: Future<Output = Result<T, E>>>(
    of: impl Display,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    for pause in RESULT_PAUSES {
        let outcome = attempt().await;
        let Some(error) = outcome.as_ref().err().and_then(Passing::passing) else { return outcome };
        tracing::warn!(error = error as &dyn std::error::Error, job.id = %of, "the result of {of} is not stored yet and waits for {pause:?}");
        drop(outcome);
        sleep(pause).await;
    }
    attempt().await
}

/// An error that may be temporary.
pub trait Passing {
    /// The temporary error, if it is one.
    fn passing(&self) -> Option<&Error>;
}

impl Passing for Error {
    fn passing(&self) -> Option<&Error> {
        let is_lost_race = matches!(self, Error::Database(error) if error.is_transient());
        (self.is_outage() || is_lost_race).then_some(self)
    }
}

impl Passing for Interrupt {
    fn passing(&self) -> Option<&Error> {
        if let Interrupt::Error(error) = self { error.passing() } else { None }
    }
}

/// Logs that `provider` may have made and charged an unused output, the one at `position` of `of`.
/// `run` is the recorded run.
pub fn note_orphan(provider: ProviderKind, of: impl Display, position: impl Display, run: Option<&Value>) {
    let provider = provider.as_str();
    metrics::counter!("canvas_possible_orphans_total", "provider" => provider).increment(1);
    tracing::warn!(
        job.id = %of, %position, provider, ?run,
        "a provider may have made output {position} of {of}, which was given up"
    );
}

/// Returns `Stale` unless a change of an output took effect.
pub(super) fn recorded(done: bool) -> Result<(), Interrupt> {
    if done { Ok(()) } else { Err(Interrupt::Stale) }
}
