//! The end of an image job: everything durable becomes visible at once (decisions 9.3, 10.6).

use db::jobs::Ending;
use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::Failure;
use spine::{Decision, Task};
use workshop::{Error, Stop, failure_of, placements};

use super::Run;
use super::steps::outcome;

impl Run<'_> {
    /// Ends a job whose outputs have all ended.
    pub(super) async fn end(&self, task: &Task) -> Result<Decision, Error> {
        let (worker, job, lease) = (&self.turn.generator.worker, self.turn.job.id, self.turn.lease);
        let outputs = self.outputs().await?;
        let ending = match failure_of(&outputs) {
            None => Ending::Succeeded(placements(&outputs)),
            Some(failure) => Ending::Failed(failure, placements(&outputs)),
        };
        let mut connection = worker.connection().await?;
        if db::jobs::mark_finalizing(&mut connection, job, lease.token()).await? {
            worker.announce(job).await;
        }
        drop(connection);
        worker.conclude_stored(task, lease, &ending).await
    }

    /// Ends a job of which nothing more can be made.
    pub(super) async fn fail(&self, task: &Task, outputs: &[JobOutput], failure: &Failure) -> Result<Decision, Error> {
        let open: Vec<&JobOutput> = outputs.iter().filter(|output| !output.state.is_terminal()).collect();
        match outcome(self.fail_all(&open, failure).await) {
            Ok(_) => self.end(task).await,
            Err(Stop::Error(error)) => Err(error),
            Err(_) => Ok(Decision::Stale),
        }
    }

    /// Ends a job that somebody asked to stop. What was made altogether before it was heard is a success: it is paid for.
    pub(super) async fn cancel(&self, task: &Task) -> Result<Decision, Error> {
        let outputs = self.outputs().await?;
        if outputs.iter().all(|output| output.state == OutputState::Stored) {
            return self.end(task).await;
        }
        self.turn.cancel(task, &outputs).await
    }

    async fn outputs(&self) -> Result<Vec<JobOutput>, Error> {
        Ok(outputs::list(&mut *self.turn.generator.worker.connection().await?, self.turn.job.id).await?)
    }
}
