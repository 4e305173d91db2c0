//! Completion of an image job: all durable results become visible at once (docs/reference/jobs.md#results).

use app::job::Completion;
use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::Failure;
use taskqueue::{Decision, Task};
use worker::{Error, Interrupt, failure_of, placements};

use super::Run;
use super::steps::outcome;

impl Run<'_> {
    /// Completes a job whose outputs are all terminal.
    pub(super) async fn end(&self, task: &Task) -> Result<Decision, Error> {
        let (worker, job, lease) = (&self.task_run.generator.worker, self.task_run.job, self.task_run.lease);
        let outputs = self.outputs().await?;
        let completion = match failure_of(&outputs) {
            None => Completion::Succeeded(placements(&outputs)),
            Some(failure) => Completion::Failed(failure, placements(&outputs)),
        };
        let mut connection = worker.connection().await?;
        if db::jobs::mark_finalizing(&mut connection, job.id, lease.token()).await? {
            worker.announce(&job.account, job.id, None).await;
        }
        drop(connection);
        worker.complete_stored(task, lease, &completion).await
    }

    /// Fails a job that can make no further outputs.
    pub(super) async fn fail(&self, task: &Task, outputs: &[JobOutput], failure: &Failure) -> Result<Decision, Error> {
        let open: Vec<&JobOutput> = outputs.iter().filter(|output| !output.state.is_terminal()).collect();
        match outcome(self.fail_all(&open, failure).await) {
            Ok(_) => self.end(task).await,
            Err(Interrupt::Error(error)) => Err(error),
            Err(_) => Ok(Decision::Stale),
        }
    }

    /// Completes a canceled job. If all outputs were made before the cancellation was noticed, the
    /// job succeeds, because they are paid for.
    pub(super) async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let outputs = self.outputs().await?;
        if outputs.iter().all(|output| output.state == OutputState::Stored) {
            return self.end(task).await;
        }
        self.task_run.cancel(task, &outputs).await
    }

    async fn outputs(&self) -> Result<Vec<JobOutput>, Error> {
        Ok(outputs::list(&mut *self.task_run.generator.worker.connection().await?, self.task_run.job.id).await?)
    }
}
