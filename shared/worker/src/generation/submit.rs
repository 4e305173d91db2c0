//! Submits orders to providers. These are the only calls that cost money.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use providers::{CallError, Idempotency, Order, Output, Submission};
use service::shares::Held;
use tokio::time::sleep;

use super::follow::overdue;
use super::task_run::recorded;
use super::{GenerationKind, ProviderDriver, Step};
use crate::Interrupt;

/// The minimum time that a provider has for an output, in addition to ten times its model's
/// estimate. Under load, providers queue work for minutes, and a late result costs the same.
const PATIENCE: Duration = Duration::from_secs(600);
/// The factor by which a model's estimate is multiplied for the deadline, in addition to
/// [`PATIENCE`].
const PATIENCE_FACTOR: u32 = 10;
/// The time for which the response to a queued submit is awaited after a cancellation, because it identifies
/// the run to cancel.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl<C: GenerationKind> ProviderDriver<'_, C> {
    /// Acquires a slot for the call of a submit before its images are loaded; otherwise a job
    /// whose provider is busy would load them again and again. `None` if no slot became free in
    /// time.
    pub async fn enter(&self) -> Option<Held> {
        self.task_run.generator.calls.enter(&self.remote.line).await
    }

    /// Submits an output once, in its call slot.
    ///
    /// # Errors
    ///
    /// [`Interrupt`] if there will be no result, and if the run ends.
    pub async fn submit(&self, output: &JobOutput, order: &Order, _place: Held) -> Result<Step<C::Output>, Interrupt> {
        if output.is_overdue() {
            let failure = output.failure.clone().unwrap_or_else(overdue);
            return Err(Interrupt::from(failure).with_orphan(output.state != OutputState::Ready));
        }
        let generator = self.task_run.generator;
        self.task_run.check()?;
        let estimated = Duration::from_secs(order.model.estimated_seconds.into());
        let patience = generator.settings.patience.unwrap_or(PATIENCE + estimated * PATIENCE_FACTOR);
        // A cancel before the submit is recorded is free of charge.
        let prepared = match self.task_run.unless_canceled(self.remote.provider.prepare(order)).await? {
            Ok(prepared) => prepared,
            Err(call_error) => return self.refused(output, &call_error).await,
        };
        self.task_run.check()?;
        let begun = {
            let mut connection = generator.worker.connection().await?;
            outputs::begin_submit(&mut connection, self.task_run.leased(output.position), patience).await?
        };
        recorded(begun)?;
        taskqueue::failpoint!("generation.submitting");
        let submission = tokio::select! {
            biased;
            submission = self.remote.provider.submit(order, prepared) => submission,
            () = self.stopped() => {
                // The submit is in progress, was not rejected, and cannot be undone.
                self.note_accepted(output).await?;
                return Err(Interrupt::Canceled);
            }
        };
        taskqueue::failpoint!("generation.accepted");
        match submission {
            Submission::Accepted(run) => self.record_run(output, &run).await,
            Submission::Done(result) => {
                self.note_accepted(output).await?;
                self.take_inline(&result).await
            }
            Submission::Finished(run, result) => {
                self.record_run(output, &run).await?;
                self.take_inline(&result).await
            }
            Submission::Refused(call_error) => self.refused(output, &call_error).await,
            Submission::Unknown(call_error) => self.unknown(output, &call_error).await,
        }
    }

    /// Waits for a cancellation, and then for as long as the response is still useful.
    async fn stopped(&self) {
        self.task_run.lease.cancelled().await;
        if self.capabilities.queues {
            sleep(STOP_PATIENCE).await;
        }
    }

    /// Records that the provider has accepted the submit. The result in memory may have no other copy, so recording is retried
    /// during an outage.
    async fn note_accepted(&self, output: &JobOutput) -> Result<(), Interrupt> {
        let noting = self.task_run.retry_during_outage(|| async {
            let mut connection = self.task_run.generator.worker.connection().await?;
            recorded(outputs::note_accepted(&mut connection, self.task_run.leased(output.position)).await?)
        });
        noting.await
    }

    /// Receives a result that came with the response or is at a URL in the response. Usually there is no run to poll again, so a
    /// download is retried here, and so is storing it during an outage.
    async fn take_inline(&self, result: &Output) -> Result<Step<C::Output>, Interrupt> {
        let pauses = self.task_run.generator.settings.pauses;
        let mut pauses = pauses.iter().filter(|_| matches!(result, Output::Remote(_)));
        loop {
            let fetched = self.task_run.retry_during_outage(|| self.fetch(result)).await?;
            match (fetched, pauses.next()) {
                (Ok(made), _) => return Ok(Step::Finished(made, None)),
                (Err(_), Some(pause)) => self.task_run.unless_canceled(sleep(*pause)).await?,
                (Err(failure), None) => return Err(failure.into()),
            }
        }
    }

    /// Records a provider's run. Nothing else refers to it, so recording is retried during an
    /// outage.
    pub(super) async fn record_run(
        &self,
        output: &JobOutput,
        run: &providers::Run,
    ) -> Result<Step<C::Output>, Interrupt> {
        let document = serde_json::to_value(run).expect("a run is plain data");
        let due_in = self.poll_every();
        let recorded = self.task_run.retry_during_outage(|| async {
            let mut connection = self.task_run.generator.worker.connection().await?;
            let leased = self.task_run.leased(output.position);
            recorded(outputs::submitted(&mut connection, leased, &document, due_in).await?)
        });
        if let Err(interrupt) = recorded.await {
            let (id, run) = (self.task_run.job.id, &run.id);
            tracing::error!(job.id = %id, run, "cannot record run {run} of job {id}: its result may be lost");
            return Err(interrupt);
        }
        taskqueue::failpoint!("generation.submitted");
        Ok(Step::Wait(due_in))
    }

    /// Retries a submit that was certainly not accepted or not sent, up to the permitted number of times, if a
    /// retry can help and is soon enough. The repeat of a submit with an unknown outcome is the last
    /// one: its refusal says nothing of the first submit, so the output may exist.
    async fn refused(&self, output: &JobOutput, call_error: &CallError) -> Result<Step<C::Output>, Interrupt> {
        if output.state != OutputState::Ready {
            return Err(Interrupt::orphaned(output.failure.clone().unwrap_or_else(|| call_error.failure())));
        }
        let generator = self.task_run.generator;
        let pause =
            self.pause_before(output.attempts).map(|pause| pause.max(call_error.retry_after.unwrap_or_default()));
        let pause = pause.filter(|pause| call_error.is_retryable() && *pause <= generator.settings.wait_max);
        let Some(pause) = pause else { return Err(call_error.failure().into()) };
        // Unless the refusal is recorded, the outcome of the submit counts as unknown.
        let returned = self.task_run.retry_during_outage(|| async {
            let mut connection = generator.worker.connection().await?;
            let leased = self.task_run.leased(output.position);
            recorded(outputs::put_back(&mut connection, leased, &call_error.failure(), pause).await?)
        });
        returned.await?;
        Ok(Step::Wait(pause))
    }

    /// A submit that may have been accepted is never simply repeated. It is looked up if the
    /// provider supports that, and otherwise abandoned (docs/reliability.md#provider-submits).
    async fn unknown(&self, output: &JobOutput, call_error: &CallError) -> Result<Step<C::Output>, Interrupt> {
        let is_first = output.state == OutputState::Ready;
        // A provider that rejects duplicates reports about the second submit only that there was a
        // first one.
        let met = output.failure.clone().filter(|_| !is_first).unwrap_or_else(|| call_error.failure());
        let can_find_out =
            self.capabilities.finds || (self.capabilities.idempotency == Idempotency::Rejected && is_first);
        let Some(pause) = self.pause_before(0).filter(|_| can_find_out) else { return Err(Interrupt::orphaned(met)) };
        let mut connection = self.task_run.generator.worker.connection().await?;
        recorded(outputs::note_unknown(&mut connection, self.task_run.leased(output.position), &met, pause).await?)?;
        Ok(Step::Wait(pause))
    }
}
