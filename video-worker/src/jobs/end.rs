//! The end of a video job: the video, its credit and everything that tells of it in one transaction (decisions 9.5, 12.4).

use db::jobs::outputs::JobOutput;
use db::jobs::{Concluded, Ending, Film};
use domain::job::Failure;
use spine::{Decision, Task};
use workshop::files::{Content, PUTS_MAX};
use workshop::{Error, Stop, decision};

use super::run::Run;

impl Run<'_> {
    /// Stores the video and shows it.
    pub(super) async fn finish(&self, task: &Task, content: &Content) -> Result<Decision, Error> {
        let (worker, lease) = (&self.turn.generator.worker, self.turn.lease);
        for _ in 0..PUTS_MAX {
            if !lease.check() {
                return Ok(Decision::Stale);
            }
            let put = self.turn.patiently(|| async { Ok(worker.put(content).await?) });
            let blob_key = match put.await {
                Ok(blob_key) => blob_key,
                Err(Stop::Error(error)) => return Err(error),
                Err(_) => return Ok(Decision::Stale),
            };
            spine::failpoint!("generation.stored");
            // A length in memory is below 2^63.
            let film = Film { blob_key, sha256: content.sha256, bytes: content.bytes.len() as u64 };
            match worker.conclude(task, lease, &Ending::Filmed(film)).await? {
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
