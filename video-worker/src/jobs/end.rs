//! The end of a video job: video, credit, record and notifications in one transaction.

use app::job::{Completion, CompletionResult, VideoOutput};
use db::jobs::outputs::JobOutput;
use domain::job::Failure;
use taskqueue::{Decision, Task};
use worker::{Error, Interrupt, decision};

use super::run::Run;

impl Run<'_> {
    /// Completes the job with its stored video: as an asset in its target, or in its record if it has none.
    pub(super) async fn finish(&self, task: &Task, video: VideoOutput) -> Result<Decision, Error> {
        taskqueue::failpoint!("generation.stored");
        if !self.task_run.lease.check() {
            return Ok(Decision::Stale);
        }
        let video = self.described(video).await;
        let completion = match &self.request.target {
            Some(node) => Completion::Succeeded(vec![self.placement(node, video).await?]),
            None => Completion::SucceededVideo(video),
        };
        match self.task_run.generator.worker.complete(task, self.task_run.lease, &completion).await? {
            // The video is fetched or made again.
            CompletionResult::BlobGone => Err(Error::BlobGone),
            concluded => Ok(decision(&concluded)),
        }
    }

    /// Ends a job without a video. `orphan` says that a provider may have made one anyway.
    pub(super) async fn fail(
        &self,
        task: &Task,
        output: &JobOutput,
        failure: Failure,
        orphan: bool,
    ) -> Result<Decision, Error> {
        if !output.state.is_terminal() {
            match self.task_run.fail(output, &failure, orphan).await {
                Ok(()) => {}
                Err(Interrupt::Error(error)) => return Err(error),
                Err(_) => return Ok(Decision::Stale),
            }
        }
        let completion = Completion::Failed(failure, Vec::new());
        Ok(decision(&self.task_run.generator.worker.complete(task, self.task_run.lease, &completion).await?))
    }
}
