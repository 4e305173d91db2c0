//! The one call that costs money.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use futures_util::future::join_all;
use providers::{Calls, Fault, Idempotency, Media, Order, Output, Picture, Promises, Submission};
use tokio::time::sleep;

use super::maker::{Remote, model_gone};
use super::{PATIENCE, PATIENCE_FACTOR, Run, Step, Stop, recorded};

/// What an answer that holds the result is counted with while it is awaited: a picture of a few megapixels, in base64 and out
/// of it. How large it is shows only when it is there; the adapters cap it.
const ANSWER_BYTES: u64 = 2 * 1024 * 1024;
/// What a file is counted with for each order besides itself: its base64, and the body that this stands in.
const BODY_FACTOR: u64 = 3;
/// How long a submit to a queue is waited for after somebody asked to stop: its answer names the run that is to be stopped.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Submits outputs, each once; their references are loaded once, as soon as there is memory for them.
    pub(super) async fn submit_all(
        &self,
        remote: &Remote,
        promises: &Promises,
        outputs: &[&JobOutput],
    ) -> Vec<Result<Step, Stop>> {
        if outputs.is_empty() {
            return Vec::new();
        }
        let Some(model) = &remote.model else {
            return self.fail_all(outputs, &model_gone()).await;
        };
        let prepared = async {
            let assets = match self.assets().await? {
                Ok(assets) => assets,
                Err(failure) => return Ok(Err(failure)),
            };
            let files: u64 = assets.iter().map(|asset| asset.bytes.unsigned_abs()).sum();
            let each = BODY_FACTOR * files + if promises.inline { ANSWER_BYTES } else { 0 };
            let bytes = files + each * outputs.len() as u64;
            let admitted = self.unless_canceled(self.generator.memory.admit(bytes)).await?;
            Ok(self.pictures(&assets, promises.picture_bytes_max).await?.map(|pictures| (pictures, admitted)))
        };
        let (pictures, _admitted): (Vec<Picture>, _) = match prepared.await {
            Ok(Ok(prepared)) => prepared,
            Ok(Err(failure)) => return self.fail_all(outputs, &failure).await,
            Err(stop) => return vec![Err(stop)],
        };
        let submits = outputs.iter().map(|output| {
            let order = self.order(model, output.position, pictures.clone());
            async move { self.submit(remote, promises, output, &order).await }
        });
        join_all(submits).await
    }

    async fn submit(
        &self,
        remote: &Remote,
        promises: &Promises,
        output: &JobOutput,
        order: &Order,
    ) -> Result<Step, Stop> {
        if output.is_overdue() {
            let failure = output.failure.clone().unwrap_or_else(super::steps::overdue);
            return self.fail(output, &failure, output.state != OutputState::Ready).await;
        }
        let Some(_place) = self.generator.calls.enter(&remote.line).await else {
            return Ok(Step::Wait(Calls::RETURN));
        };
        self.check()?;
        let patience = self.generator.settings.patience;
        let estimated = Duration::from_secs(order.model.estimated_seconds.into());
        let patience = patience.unwrap_or(PATIENCE + estimated * PATIENCE_FACTOR);
        let begun = {
            let mut connection = self.generator.worker.connection().await?;
            outputs::begin_submit(&mut connection, self.held(output), patience).await?
        };
        recorded(begun)?;
        spine::failpoint!("generation.submitting");
        let submission = tokio::select! {
            biased;
            submission = remote.provider.submit(order) => submission,
            () = self.stopped(promises) => {
                // It is under way, nobody has refused it, and nobody can take it back.
                self.note_accepted(output).await?;
                return Err(Stop::Canceled);
            }
        };
        spine::failpoint!("generation.accepted");
        match submission {
            Submission::Accepted(run) => self.record_run(promises, output, &run).await,
            Submission::Done(result) => {
                self.note_accepted(output).await?;
                self.take_inline(remote, output, &result, order).await
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

    async fn note_accepted(&self, output: &JobOutput) -> Result<(), Stop> {
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::note_accepted(&mut connection, self.held(output)).await?)
    }

    /// Makes a result durable that came with the answer. There is no run to ask again, so that a download is tried again here.
    async fn take_inline(
        &self,
        remote: &Remote,
        output: &JobOutput,
        result: &Output,
        order: &Order,
    ) -> Result<Step, Stop> {
        let mut pauses = self.generator.settings.pauses.iter().filter(|_| matches!(result, Output::Remote(_)));
        loop {
            let made = match remote.provider.fetch(Media::Picture, result).await {
                Ok(artifact) => self.look_at(artifact).await?,
                Err(fault) => Err(fault.failure()),
            };
            match (made, pauses.next()) {
                (Ok(made), _) => {
                    spine::failpoint!("generation.fetched");
                    return self.keep(output, &made, &order.instruction()).await;
                }
                (Err(_), Some(pause)) => self.unless_canceled(sleep(*pause)).await?,
                (Err(failure), None) => return self.fail(output, &failure, false).await,
            }
        }
    }

    /// What was surely not accepted is submitted again, a few times, where that may help and is soon enough.
    async fn refused(&self, output: &JobOutput, fault: &Fault) -> Result<Step, Stop> {
        let pause = self.pause_before(output.attempts).map(|pause| pause.max(fault.retry_after.unwrap_or_default()));
        let pause = pause.filter(|pause| fault.is_retryable() && *pause <= self.generator.settings.wait_max);
        let Some(pause) = pause else { return self.fail(output, &fault.failure(), false).await };
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::put_back(&mut connection, self.held(output), &fault.failure(), pause).await?)?;
        Ok(Step::Wait(pause))
    }

    /// What may have been accepted is never just submitted again: it is looked into where the provider allows it, else given
    /// up (reliability.md 2).
    async fn unknown(&self, promises: &Promises, output: &JobOutput, fault: &Fault) -> Result<Step, Stop> {
        let is_first = output.state == OutputState::Ready;
        // A provider that refuses to begin the same twice says of the second only that there was a first.
        let met = output.failure.clone().filter(|_| !is_first).unwrap_or_else(|| fault.failure());
        let can_tell = promises.finds || (promises.idempotency == Idempotency::Rejected && is_first);
        let Some(pause) = self.pause_before(0).filter(|_| can_tell) else { return self.fail(output, &met, true).await };
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::note_unknown(&mut connection, self.held(output), &met, pause).await?)?;
        Ok(Step::Wait(pause))
    }
}
