//! The one call that costs money.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::{Failure, FailureCode};
use providers::{Calls, Fault, Idempotency, Media, Output, Promises, Submission};
use tokio::time::sleep;

use super::maker::{Remote, model_gone};
use super::pictures::Reader;
use super::run::{Run, Step, Stop, orphaned, recorded};

/// How long a provider may take besides ten times its model's estimate: providers queue for minutes on a busy day, and a
/// result that comes late is paid for all the same.
const PATIENCE: Duration = Duration::from_secs(600);

/// See [`PATIENCE`].
const PATIENCE_FACTOR: u32 = 10;

/// How long a submit to a queue is waited for after somebody asked to stop: its answer names the run that is to be stopped.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// A video that took longer than its deadline.
pub(super) fn overdue() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "The provider did not finish in time.")
}

impl Run<'_> {
    /// Submits the video, once.
    pub(super) async fn submit(&self, remote: &Remote, promises: &Promises, output: &JobOutput) -> Result<Step, Stop> {
        let may_be_there = output.state != OutputState::Ready;
        if output.is_overdue() {
            let failure = output.failure.clone().unwrap_or_else(overdue);
            return Err(Stop::from(failure).with_orphan(may_be_there));
        }
        let Some(model) = &remote.model else { return Err(Stop::from(model_gone()).with_orphan(may_be_there)) };
        let pictures = self.pictures(Reader::Provider(promises.picture_bytes_max)).await;
        let mut pictures = pictures.map_err(|stop| stop.with_orphan(may_be_there))?;
        let _admitted = pictures.admitted.take();
        let order = self.order(model, pictures);
        let Some(_place) = self.worker.calls.enter(&remote.line).await else { return Ok(Step::Wait(Calls::RETURN)) };
        self.check()?;
        let estimated = Duration::from_secs(model.estimated_seconds.into());
        let patience = self.worker.settings.patience.unwrap_or(PATIENCE + estimated * PATIENCE_FACTOR);
        let begun = {
            let mut connection = self.worker.connection().await?;
            outputs::begin_submit(&mut connection, self.held(), patience).await?
        };
        recorded(begun)?;
        spine::failpoint!("generation.submitting");
        let submission = tokio::select! {
            biased;
            submission = remote.provider.submit(&order) => submission,
            () = self.stopped(promises) => {
                // It is under way, nobody has refused it, and nobody can take it back.
                self.note_accepted().await?;
                return Err(Stop::Canceled);
            }
        };
        spine::failpoint!("generation.accepted");
        match submission {
            Submission::Accepted(run) => self.record_run(promises, &run).await,
            Submission::Done(result) => {
                self.note_accepted().await?;
                self.take_inline(remote, &result).await
            }
            Submission::Refused(fault) => self.refused(output, &fault).await,
            Submission::Unknown(fault) => self.unknown(promises, output, &fault).await,
        }
    }

    /// Waits until somebody asks to stop, and then for as long as the answer is still worth having.
    async fn stopped(&self, promises: &Promises) {
        self.lease.cancelled().await;
        if promises.queues {
            sleep(STOP_PATIENCE).await;
        }
    }

    async fn note_accepted(&self) -> Result<(), Stop> {
        let mut connection = self.worker.connection().await?;
        recorded(outputs::note_accepted(&mut connection, self.held()).await?)
    }

    /// Takes a video that came with the answer, or lies where the answer says. There is no run to ask again, so that a
    /// download is tried again here.
    async fn take_inline(&self, remote: &Remote, result: &Output) -> Result<Step, Stop> {
        let mut pauses = self.worker.settings.pauses.iter().filter(|_| matches!(result, Output::Remote(_)));
        loop {
            let fetched = self.unless_canceled(remote.provider.fetch(Media::Video, result)).await?;
            match (self.checked(fetched).await?, pauses.next()) {
                (Ok(content), _) => return Ok(Step::Made(content)),
                (Err(_), Some(pause)) => self.unless_canceled(sleep(*pause)).await?,
                (Err(failure), None) => return Err(failure.into()),
            }
        }
    }

    /// Records a provider's run. Nothing else tells of it, so that an outage is waited out.
    pub(super) async fn record_run(&self, promises: &Promises, run: &providers::Run) -> Result<Step, Stop> {
        let document = serde_json::to_value(run).expect("a run is plain data");
        let due_in = self.poll_every(promises);
        let recorded = self.patiently(|| async {
            let mut connection = self.worker.connection().await?;
            recorded(outputs::submitted(&mut connection, self.held(), &document, due_in).await?)
        });
        if let Err(stop) = recorded.await {
            let (id, run) = (self.job.id, &run.id);
            tracing::error!(job.id = %id, run, "run {run} of {id} could not be recorded and may have been made for nothing");
            return Err(stop);
        }
        spine::failpoint!("generation.submitted");
        Ok(Step::Wait(due_in))
    }

    /// What was surely not accepted is submitted again, a few times, where that may help and is soon enough.
    async fn refused(&self, output: &JobOutput, fault: &Fault) -> Result<Step, Stop> {
        let pause = self.pause_before(output.attempts).map(|pause| pause.max(fault.retry_after.unwrap_or_default()));
        let pause = pause.filter(|pause| fault.is_retryable() && *pause <= self.worker.settings.wait_max);
        let Some(pause) = pause else { return Err(fault.failure().into()) };
        let mut connection = self.worker.connection().await?;
        recorded(outputs::put_back(&mut connection, self.held(), &fault.failure(), pause).await?)?;
        Ok(Step::Wait(pause))
    }

    /// What may have been accepted is never just submitted again: it is looked into where the provider allows it, else given
    /// up (reliability.md 2).
    async fn unknown(&self, promises: &Promises, output: &JobOutput, fault: &Fault) -> Result<Step, Stop> {
        let is_first = output.state == OutputState::Ready;
        // A provider that refuses to begin the same twice says of the second only that there was a first.
        let met = output.failure.clone().filter(|_| !is_first).unwrap_or_else(|| fault.failure());
        let can_tell = promises.finds || (promises.idempotency == Idempotency::Rejected && is_first);
        let Some(pause) = self.pause_before(0).filter(|_| can_tell) else { return Err(orphaned(met)) };
        let mut connection = self.worker.connection().await?;
        recorded(outputs::note_unknown(&mut connection, self.held(), &met, pause).await?)?;
        Ok(Step::Wait(pause))
    }
}
