//! The end of a video job: the video, its credit and everything that tells of it in one transaction (decisions 9.5, 12.4).

use db::jobs::outputs::JobOutput;
use db::jobs::{Concluded, Ending, Film};
use domain::job::Failure;
use spine::{Decision, Task};
use workshop::{Error, Stop, decision};

use super::run::Run;

impl Run<'_> {
    /// Shows the video, which is in the store.
    pub(super) async fn finish(&self, task: &Task, film: &Film) -> Result<Decision, Error> {
        spine::failpoint!("generation.stored");
        if !self.turn.lease.check() {
            return Ok(Decision::Stale);
        }
        match self.turn.generator.worker.conclude(task, self.turn.lease, &Ending::Filmed(*film)).await? {
            // It is fetched or filmed again.
            Concluded::BlobGone => Err(Error::BlobGone),
            concluded => Ok(decision(&concluded)),
        }
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
            match self.turn.fail(output, &failure, orphan).await {
                Ok(()) => {}
                Err(Stop::Error(error)) => return Err(error),
                Err(_) => return Ok(Decision::Stale),
            }
        }
        let ending = Ending::Failed(failure, Vec::new());
        Ok(decision(&self.turn.generator.worker.conclude(task, self.turn.lease, &ending).await?))
    }
}
