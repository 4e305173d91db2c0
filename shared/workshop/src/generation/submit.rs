//! The one call that costs money.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use providers::{Fault, Idempotency, Order, Output, Submission};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::follow::overdue;
use super::turn::recorded;
use super::{Craft, Drive, Step};
use crate::Stop;

/// How long a provider may take for an output besides ten times its model's estimate: providers queue for minutes on a busy
/// day, and a result that comes late is paid for all the same (providers.md 0.4 advises ten minutes for a picture).
const PATIENCE: Duration = Duration::from_secs(600);
/// See [`PATIENCE`].
const PATIENCE_FACTOR: u32 = 10;
/// How long a submit to a queue is waited for after somebody asked to stop: its answer names the run that is to be stopped.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl<C: Craft> Drive<'_, C> {
    /// A place for the call of a submit, to be had before its pictures are loaded: a job whose provider is busy would load them
    /// again and again. Nothing when none became free in time.
    pub async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        self.turn.generator.calls.enter(&self.remote.line).await
    }

    /// Submits an output, once, from the place that its call has.
    ///
    /// # Errors
    /// [`Stop`] when there will be no result, and when the run ends.
    pub async fn submit(
        &self,
        output: &JobOutput,
        order: &Order,
        _place: OwnedSemaphorePermit,
    ) -> Result<Step<C::Made>, Stop> {
        if output.is_overdue() {
            let failure = output.failure.clone().unwrap_or_else(overdue);
            return Err(Stop::from(failure).with_orphan(output.state != OutputState::Ready));
        }
        let generator = self.turn.generator;
        self.turn.check()?;
        let estimated = Duration::from_secs(order.model.estimated_seconds.into());
        let patience = generator.settings.patience.unwrap_or(PATIENCE + estimated * PATIENCE_FACTOR);
        let begun = {
            let mut connection = generator.worker.connection().await?;
            outputs::begin_submit(&mut connection, self.turn.held(output.position), patience).await?
        };
        recorded(begun)?;
        spine::failpoint!("generation.submitting");
        let submission = tokio::select! {
            biased;
            submission = self.remote.provider.submit(order) => submission,
            () = self.stopped() => {
                // It is under way, nobody has refused it, and nobody can take it back.
                self.note_accepted(output).await?;
                return Err(Stop::Canceled);
            }
        };
        spine::failpoint!("generation.accepted");
        match submission {
            Submission::Accepted(run) => self.record_run(output, &run).await,
            Submission::Done(result) => {
                self.note_accepted(output).await?;
                self.take_inline(&result).await
            }
            Submission::Refused(fault) => self.refused(output, &fault).await,
            Submission::Unknown(fault) => self.unknown(output, &fault).await,
        }
    }

    /// Waits until somebody asks to stop, and then for as long as the answer is still worth having.
    async fn stopped(&self) {
        self.turn.lease.cancelled().await;
        if self.promises.queues {
            sleep(STOP_PATIENCE).await;
        }
    }

    async fn note_accepted(&self, output: &JobOutput) -> Result<(), Stop> {
        let mut connection = self.turn.generator.worker.connection().await?;
        recorded(outputs::note_accepted(&mut connection, self.turn.held(output.position)).await?)
    }

    /// Takes a result that came with the answer, or lies where the answer says. There is no run to ask again, so that a
    /// download is tried again here.
    async fn take_inline(&self, result: &Output) -> Result<Step<C::Made>, Stop> {
        let pauses = self.turn.generator.settings.pauses;
        let mut pauses = pauses.iter().filter(|_| matches!(result, Output::Remote(_)));
        loop {
            match (self.fetch(result).await?, pauses.next()) {
                (Ok(made), _) => return Ok(Step::Made(made, None)),
                (Err(_), Some(pause)) => self.turn.unless_canceled(sleep(*pause)).await?,
                (Err(failure), None) => return Err(failure.into()),
            }
        }
    }

    /// Records a provider's run. Nothing else tells of it, so that an outage is waited out.
    pub(super) async fn record_run(&self, output: &JobOutput, run: &providers::Run) -> Result<Step<C::Made>, Stop> {
        let document = serde_json::to_value(run).expect("a run is plain data");
        let due_in = self.poll_every();
        let recorded = self.turn.patiently(|| async {
            let mut connection = self.turn.generator.worker.connection().await?;
            let held = self.turn.held(output.position);
            recorded(outputs::submitted(&mut connection, held, &document, due_in).await?)
        });
        if let Err(stop) = recorded.await {
            let (id, run) = (self.turn.job.id, &run.id);
            tracing::error!(job.id = %id, run, "run {run} of {id} could not be recorded and may have been made for nothing");
            return Err(stop);
        }
        spine::failpoint!("generation.submitted");
        Ok(Step::Wait(due_in))
    }

    /// What was surely not accepted is submitted again, a few times, where that may help and is soon enough.
    async fn refused(&self, output: &JobOutput, fault: &Fault) -> Result<Step<C::Made>, Stop> {
        let generator = self.turn.generator;
        let pause = self.pause_before(output.attempts).map(|pause| pause.max(fault.retry_after.unwrap_or_default()));
        let pause = pause.filter(|pause| fault.is_retryable() && *pause <= generator.settings.wait_max);
        let Some(pause) = pause else { return Err(fault.failure().into()) };
        let mut connection = generator.worker.connection().await?;
        let held = self.turn.held(output.position);
        recorded(outputs::put_back(&mut connection, held, &fault.failure(), pause).await?)?;
        Ok(Step::Wait(pause))
    }

    /// What may have been accepted is never just submitted again: it is looked into where the provider allows it, else given
    /// up (reliability.md 2).
    async fn unknown(&self, output: &JobOutput, fault: &Fault) -> Result<Step<C::Made>, Stop> {
        let is_first = output.state == OutputState::Ready;
        // A provider that refuses to begin the same twice says of the second only that there was a first.
        let met = output.failure.clone().filter(|_| !is_first).unwrap_or_else(|| fault.failure());
        let can_tell = self.promises.finds || (self.promises.idempotency == Idempotency::Rejected && is_first);
        let Some(pause) = self.pause_before(0).filter(|_| can_tell) else { return Err(Stop::orphaned(met)) };
        let mut connection = self.turn.generator.worker.connection().await?;
        recorded(outputs::note_unknown(&mut connection, self.turn.held(output.position), &met, pause).await?)?;
        Ok(Step::Wait(pause))
    }
}
