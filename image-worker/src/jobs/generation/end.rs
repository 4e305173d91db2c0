//! The end of an image job: everything durable becomes visible at once (decisions 9.3, 10.6).

use db::jobs::outputs::{self, JobOutput, OutputState};
use db::jobs::{Concluded, Ending, Placement};
use domain::id::JobId;
use domain::job::{CancelReason, Failure, FailureCode, JobStatus, Request};
use futures_util::future::join_all;
use spine::{Decision, Lease, Task};
use tokio::time::timeout;

use super::maker::Maker;
use super::steps::CANCEL_LIMIT;
use super::{Error, Generator, Run};
use crate::jobs::action::decision;

impl Run<'_> {
    /// Ends a job whose outputs have all ended.
    pub(super) async fn end(&self, task: &Task) -> Result<Decision, Error> {
        let worker = &self.generator.worker;
        let outputs = self.outputs().await?;
        let ending = match failure_of(&outputs) {
            None => Ending::Succeeded(placements(&outputs)),
            Some(failure) => Ending::Failed(failure, placements(&outputs)),
        };
        let mut connection = worker.connection().await?;
        if db::jobs::mark_finalizing(&mut connection, self.job.id, self.lease.token()).await? {
            worker.announce(self.job.id).await;
        }
        drop(connection);
        match worker.conclude(task, self.lease, &ending).await? {
            Concluded::BlobGone => {
                // It was put hours ago, and there is no other copy.
                let failure =
                    Failure::new(FailureCode::OutputFinalizationFailed, "the result was lost before it was shown");
                let ending = Ending::Failed(failure, Vec::new());
                Ok(decision(&worker.conclude(task, self.lease, &ending).await?))
            }
            concluded => Ok(decision(&concluded)),
        }
    }

    /// Ends a job that somebody asked to stop, and asks the provider to stop what can be stopped (decisions 9.5). What was made
    /// altogether before it was heard is a success: it is paid for.
    pub(super) async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let outputs = self.outputs().await?;
        if outputs.iter().all(|output| output.state == OutputState::Stored) {
            return self.end(task).await;
        }
        let under_way: Vec<providers::Run> = outputs
            .iter()
            .filter(|output| output.state == OutputState::Submitted)
            .filter_map(|output| serde_json::from_value(output.run.clone()?).ok())
            .collect();
        if !under_way.is_empty()
            && let Ok(Maker::Remote(remote)) = self.maker().await?
        {
            let stop = |run| {
                let provider = &remote.provider;
                async move { (run, timeout(CANCEL_LIMIT, provider.cancel(run)).await) }
            };
            for (run, stopped) in join_all(under_way.iter().map(stop)).await {
                tracing::info!(job.id = %self.job.id, run = run.id, ?stopped, "asked the provider to stop {}", run.id);
            }
        }
        let ending = Ending::Canceled(CancelReason::UserRequested);
        Ok(decision(&self.generator.worker.conclude(task, self.lease, &ending).await?))
    }

    async fn outputs(&self) -> Result<Vec<JobOutput>, Error> {
        Ok(outputs::list(&mut *self.generator.worker.connection().await?, self.job.id).await?)
    }
}

/// Ends the job of a task that killed its workers, or failed them, too often: with what was made by then, and without asking
/// anybody for anything.
pub(super) async fn exhausted(generator: &Generator, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    match give_up(generator, task, lease).await {
        Err(Error::Database(error)) if error.is_unreadable() => {
            tracing::error!(error = &error as &dyn std::error::Error, job.id = %task.id, "job {} cannot be read", task.id);
            generator.worker.abandon(task, lease).await
        }
        outcome => outcome,
    }
}

async fn give_up(generator: &Generator, task: &Task, lease: &Lease) -> Result<Decision, Error> {
    let (worker, id) = (&generator.worker, JobId(task.id));
    let mut connection = worker.connection().await?;
    let job = db::jobs::begin(&mut connection, id, lease.token()).await?;
    let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
        drop(connection);
        return worker.settle(task, lease).await;
    };
    let outputs = outputs::list(&mut connection, id).await?;
    drop(connection);
    let made = placements(&outputs);
    let is_whole = matches!(&job.request, Request::Image(request) if request.targets.len() == made.len());
    let given_up = Failure::new(FailureCode::RuntimeFailed, "the work failed again and again and was given up");
    let ending = match job.status {
        _ if is_whole => Ending::Succeeded(made),
        JobStatus::Canceling => Ending::Canceled(CancelReason::UserRequested),
        _ => Ending::Failed(failure_of(&outputs).unwrap_or(given_up), made),
    };
    Ok(decision(&worker.conclude(task, lease, &ending).await?))
}

/// What is stored, in the order of the targets.
fn placements(outputs: &[JobOutput]) -> Vec<Placement> {
    outputs.iter().filter_map(|output| output.placement.clone()).collect()
}

/// Why a job of these outputs fails: as the first that failed did, and how many did when there are several.
fn failure_of(outputs: &[JobOutput]) -> Option<Failure> {
    let failed = || outputs.iter().filter(|output| output.state == OutputState::Failed);
    let first = failed().find_map(|output| output.failure.clone())?;
    let message = match outputs.len() {
        1 => first.message,
        all => format!("{} of {all} outputs failed. {}", failed().count(), first.message),
    };
    Some(Failure { message, ..first })
}
