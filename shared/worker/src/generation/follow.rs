//! Follows an output that a provider has or may have.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput};
use domain::job::{Failure, FailureCode};
use providers::{CallError, Calls, Class, Media, Output, Polled, ProtocolCapabilities};
use taskqueue::Lease;
use tokio::time::timeout;

use super::task_run::{CANCEL_LIMIT, check, recorded, unless_canceled};
use super::{GenerationKind, Generator, ProviderDriver, RemoteBackend, Step};
use crate::Interrupt;

/// Upper limit of the poll interval. A run is polled after a tenth of the time that it has taken so
/// far, but no more often than its provider advises. A run of several minutes is polled a few dozen
/// times; the end of a run of seconds is noticed with a delay of at most a tenth.
const POLL_MAX: Duration = Duration::from_secs(15);
const POLL_SHARE: u32 = 10;
/// The number of repeated look-ups without a result before an output is abandoned. They are
/// repeated because the providers' lists are not immediately consistent.
const LOOKS_MAX: i32 = 2;
/// The delay before a failed look-up is repeated.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The failure of an output that exceeded its deadline.
pub(super) fn overdue() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "The provider did not finish in time.")
}

/// The failure of an output whose submit was interrupted with an unknown outcome.
fn unknown() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "Whether the provider took the work is not known.")
}

/// Returns `true` if the failure of a poll is that of the call, so that it says nothing of the run: the
/// provider refused the key or the account, or the call could not be made.
fn is_of_the_call(call_error: &CallError) -> bool {
    match call_error.class {
        // The answer to a call has a status. Without one, the run itself ended in this way.
        Class::Authentication | Class::OutOfCredit => call_error.status.is_some(),
        Class::Runtime => true,
        _ => false,
    }
}

/// Result of polling a provider's run.
#[derive(Debug)]
pub enum Heard {
    /// The run continues, as far as is known.
    Unfinished {
        /// Time until the next poll.
        again_in: Duration,
        /// Progress from 0 to 1, if the provider reports it.
        share: Option<f64>,
    },
    /// No call slot became free in time.
    Crowded,
    /// The run has a result.
    Done(Output),
    Failed(CallError),
    /// The provider canceled the run.
    Stopped,
}

impl Generator {
    /// Polls `run`, which was recorded `running_for` ago, once.
    ///
    /// # Errors
    /// [`Interrupt::Canceled`], [`Interrupt::Stale`].
    pub async fn hear(
        &self,
        remote: &RemoteBackend,
        media: Media,
        lease: &Lease,
        run: &providers::Run,
        running_for: Duration,
    ) -> Result<Heard, Interrupt> {
        let Some(place) = self.calls.enter(&remote.line).await else { return Ok(Heard::Crowded) };
        check(lease)?;
        let polled = unless_canceled(lease, remote.provider.poll(run)).await?;
        drop(place);
        let again_in = self.poll_pause(&remote.provider.capabilities(media), running_for);
        Ok(match polled {
            Polled::Running(share) => Heard::Unfinished { again_in, share },
            Polled::Unavailable(call_error) => {
                Heard::Unfinished { again_in: again_in.max(call_error.retry_after.unwrap_or_default()), share: None }
            }
            Polled::Done(result) => Heard::Done(result),
            Polled::Failed(call_error) => Heard::Failed(call_error),
            Polled::Canceled => Heard::Stopped,
        })
    }

    /// Minimum interval between polls of a run.
    pub(super) fn poll_every(&self, capabilities: &ProtocolCapabilities) -> Duration {
        self.settings.poll_every.unwrap_or(capabilities.poll_every)
    }

    fn poll_pause(&self, capabilities: &ProtocolCapabilities, running_for: Duration) -> Duration {
        self.poll_every(capabilities).max((running_for / POLL_SHARE).min(POLL_MAX))
    }
}

impl<C: GenerationKind> ProviderDriver<'_, C> {
    /// Polls an output's run. The deadline ends only a run that is then unfinished: one that finished
    /// while no worker polled it is paid for and has a result.
    pub(super) async fn follow(&self, output: &JobOutput) -> Result<Step<C::Output>, Interrupt> {
        let run = output.run.clone().and_then(|run| serde_json::from_value(run).ok());
        let unreadable = || Failure::new(FailureCode::RuntimeFailed, "the record of the provider's run cannot be read");
        let run: providers::Run = run.ok_or_else(|| Interrupt::orphaned(unreadable()))?;
        let (generator, lease) = (self.task_run.generator, self.task_run.lease);
        let heard = generator.hear(self.remote, C::MEDIA, lease, &run, output.running_for).await?;
        if output.is_overdue() && matches!(heard, Heard::Unfinished { .. }) {
            // Best effort: nothing will look for the run again.
            let _ = timeout(CANCEL_LIMIT, self.remote.provider.cancel(&run)).await;
            return Err(Interrupt::orphaned(overdue()));
        }
        self.heed(output, heard).await
    }

    /// Acts on the result of polling an output's run.
    ///
    /// # Errors
    ///
    /// [`Interrupt`] if there will be no result, and if the run ends.
    pub async fn heed(&self, output: &JobOutput, heard: Heard) -> Result<Step<C::Output>, Interrupt> {
        match heard {
            Heard::Unfinished { again_in, share } => {
                if let Some(share) = share {
                    self.kind.progress(share).await;
                }
                self.put_off(output, again_in, false).await
            }
            Heard::Crowded => Ok(Step::Wait(Calls::RETURN)),
            Heard::Done(result) => self.take(output, &result).await,
            Heard::Failed(call_error) => {
                Err(Interrupt::from(call_error.failure()).with_orphan(is_of_the_call(&call_error)))
            }
            Heard::Stopped => Err(Failure::new(FailureCode::ProviderRejected, "The provider stopped the work.").into()),
        }
    }

    /// Fetches a run's result. A result that does not arrive or is invalid may be a temporary error
    /// page, so the run is polled again a few times.
    async fn take(&self, output: &JobOutput, result: &Output) -> Result<Step<C::Output>, Interrupt> {
        let generator = self.task_run.generator;
        let admitted = self.task_run.unless_canceled(generator.memory.result(C::RESULT_BYTES)).await?;
        match self.task_run.unless_canceled(self.fetch(result)).await?? {
            Ok(made) => Ok(Step::Finished(made, Some(admitted))),
            Err(failure) => match self.pause_before(output.tries) {
                Some(wait) => {
                    let pause = generator.poll_pause(self.capabilities(), output.running_for);
                    self.put_off(output, wait.max(pause), true).await
                }
                None => Err(failure.into()),
            },
        }
    }

    /// Fetches and validates a result.
    pub(super) async fn fetch(&self, result: &Output) -> Result<Result<C::Output, Failure>, Interrupt> {
        let made = match self.remote.provider.open(C::MEDIA, result).await {
            Ok(incoming) => self.kind.take_in(incoming).await?,
            Err(call_error) => Err(call_error.failure()),
        };
        if made.is_ok() {
            taskqueue::failpoint!("generation.fetched");
        }
        Ok(made)
    }

    /// Determines what happened to a submit of unknown outcome, if the provider supports that. The
    /// deadline ends only look-ups that fail: a run that is found is followed, however late.
    pub(super) async fn look_up(&self, output: &JobOutput) -> Result<Step<C::Output>, Interrupt> {
        let met = output.failure.clone().unwrap_or_else(unknown);
        let Some(model) = self.remote.model.as_ref().filter(|_| self.capabilities.finds) else {
            return Err(Interrupt::orphaned(met));
        };
        let Some(place) = self.task_run.generator.calls.enter(&self.remote.line).await else {
            return Ok(Step::Wait(Calls::RETURN));
        };
        self.task_run.check()?;
        let order = self.kind.blank(model, output.position);
        let found = self.task_run.unless_canceled(self.remote.provider.find(&order)).await?;
        drop(place);
        match found {
            Ok(Some(run)) => self.record_run(output, &run).await,
            Ok(None) if output.tries < LOOKS_MAX => {
                self.put_off(output, self.pause_before(output.tries).unwrap_or(LOOK_AGAIN), true).await
            }
            Err(call_error) if call_error.is_retryable() && !output.is_overdue() => {
                self.put_off(output, LOOK_AGAIN.max(call_error.retry_after.unwrap_or_default()), false).await
            }
            Ok(None) | Err(_) => Err(Interrupt::orphaned(met)),
        }
    }

    /// Schedules an output's next step. `tried` counts a failed attempt.
    async fn put_off(&self, output: &JobOutput, due_in: Duration, tried: bool) -> Result<Step<C::Output>, Interrupt> {
        let mut connection = self.task_run.generator.worker.connection().await?;
        recorded(outputs::put_off(&mut connection, self.task_run.leased(output.position), due_in, tried).await?)?;
        Ok(Step::Wait(due_in))
    }
}
