//! One run of a job's task.

use std::fmt::Display;
use std::time::Duration;

use db::jobs::Ending;
use db::jobs::outputs::{self, Held, JobOutput, OutputState};
use domain::job::{CancelReason, ChosenModel, Failure, JobStatus, Record};
use domain::model::ProviderKind;
use futures_util::future::join_all;
use serde_json::Value;
use spine::{Decision, Lease, Task};
use tokio::time::{sleep, timeout};

use super::{Generator, Maker};
use crate::{Error, Stop, decision};

/// How long a provider may take to hear that a run is not wanted any more.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// Pauses while a result in hand cannot be stored or recorded: it is paid for, and nowhere else. Together shorter than the
/// restart of a server that takes long, and longer than that of one that does not.
const HELD_PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// One run of a job's task, under its lease.
pub struct Turn<'a> {
    /// What it is done with.
    pub generator: &'a Generator,
    /// The job, as it was taken up.
    pub job: &'a Record,
    /// The model that it runs.
    pub model: &'a ChosenModel,
    /// What entitles to it.
    pub lease: &'a Lease,
}

impl Turn<'_> {
    /// What may change the output at `position`.
    pub fn held(&self, position: i32) -> Held {
        Held { job: self.job.id, lease_token: self.lease.token(), position }
    }

    /// Whether somebody asked to stop the job.
    pub fn is_canceled(&self) -> bool {
        self.job.status == JobStatus::Canceling || self.lease.is_cancel_requested()
    }

    /// Whether the run may begin something that is seen outside.
    ///
    /// # Errors
    /// [`Stop::Canceled`], [`Stop::Stale`].
    pub fn check(&self) -> Result<(), Stop> {
        check(self.lease)
    }

    /// Waits for `work`, but no longer than until somebody asks to stop.
    ///
    /// # Errors
    /// [`Stop::Canceled`].
    pub async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        unless_canceled(self.lease, work).await
    }

    /// Tries again for a while what an outage keeps from being stored or recorded.
    ///
    /// # Errors
    /// As the last attempt.
    pub async fn patiently<T, F: Future<Output = Result<T, Stop>>>(
        &self,
        attempt: impl FnMut() -> F,
    ) -> Result<T, Stop> {
        patiently(self.job.id, attempt).await
    }

    /// Gives an output up; `orphan`: a provider may have made it all the same.
    ///
    /// # Errors
    /// [`Stop::Stale`], and when the database fails.
    pub async fn fail(&self, output: &JobOutput, failure: &Failure, orphan: bool) -> Result<(), Stop> {
        if orphan {
            note_orphan(self.model.provider, self.job.id, output.position, output.run.as_ref());
        }
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::failed(&mut connection, self.held(output.position), failure, orphan).await?)
    }

    /// Ends a job that somebody asked to stop, and asks the provider to stop what can be stopped (decisions 9.5).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn cancel(&self, task: &Task, outputs: &[JobOutput]) -> Result<Decision, Error> {
        let runs: Vec<providers::Run> = outputs
            .iter()
            .filter(|output| output.state == OutputState::Submitted)
            .filter_map(|output| serde_json::from_value(output.run.clone()?).ok())
            .collect();
        if !runs.is_empty() {
            match self.maker().await {
                Ok(Maker::Remote(remote)) => {
                    let stop = async |run: &providers::Run| {
                        let stopped = timeout(CANCEL_LIMIT, remote.provider.cancel(run)).await;
                        tracing::info!(job.id = %self.job.id, run = run.id, ?stopped, "asked the provider to stop {}", run.id);
                    };
                    join_all(runs.iter().map(stop)).await;
                }
                Err(Stop::Error(error)) => return Err(error),
                // The connection is gone, and with it the way to stop anything.
                Ok(Maker::Embedded(_)) | Err(_) => {}
            }
        }
        let ending = Ending::Canceled(CancelReason::UserRequested);
        Ok(decision(&self.generator.worker.conclude(task, self.lease, &ending).await?))
    }
}

/// See [`Turn::check`].
pub(super) fn check(lease: &Lease) -> Result<(), Stop> {
    if lease.is_cancel_requested() {
        return Err(Stop::Canceled);
    }
    if lease.check() { Ok(()) } else { Err(Stop::Stale) }
}

/// Waits for `work`, but no longer than until somebody asks to stop what the lease is for.
///
/// # Errors
/// [`Stop::Canceled`].
pub async fn unless_canceled<T>(lease: &Lease, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::select! {
        biased;
        () = lease.cancelled() => Err(Stop::Canceled),
        done = work => Ok(done),
    }
}

/// Tries again for a while what an outage, or another transaction, keeps from being stored or recorded; `of`: what has it.
///
/// # Errors
/// As the last attempt.
pub async fn patiently<T, E: Passing, F: Future<Output = Result<T, E>>>(
    of: impl Display,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    for pause in HELD_PAUSES {
        let outcome = attempt().await;
        let Some(error) = outcome.as_ref().err().and_then(Passing::passing) else { return outcome };
        tracing::warn!(error = error as &dyn std::error::Error, job.id = %of, "what {of} has waits for {pause:?}");
        drop(outcome);
        sleep(pause).await;
    }
    attempt().await
}

/// What may be an error that passes by itself.
pub trait Passing {
    /// That error.
    fn passing(&self) -> Option<&Error>;
}

impl Passing for Error {
    fn passing(&self) -> Option<&Error> {
        let is_lost_race = matches!(self, Error::Database(error) if error.is_transient());
        (self.is_outage() || is_lost_race).then_some(self)
    }
}

impl Passing for Stop {
    fn passing(&self) -> Option<&Error> {
        if let Stop::Error(error) = self { error.passing() } else { None }
    }
}

/// Tells the operator of an output, the one at `position` of `of`, that `provider` may have made, and charged, for nothing; `run`: what
/// it was recorded as.
pub fn note_orphan(provider: ProviderKind, of: impl Display, position: impl Display, run: Option<&Value>) {
    let provider = provider.as_str();
    metrics::counter!("canvas_possible_orphans_total", "provider" => provider).increment(1);
    tracing::warn!(job.id = %of, %position, provider, ?run, "output {position} of {of} may have been made unknown to us");
}

/// Whether a change of an output took place, as the way on.
pub(super) fn recorded(done: bool) -> Result<(), Stop> {
    if done { Ok(()) } else { Err(Stop::Stale) }
}
