//! What happens to an output that a provider has, or may have.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput};
use domain::job::{Failure, FailureCode};
use providers::{Calls, Fault, Media, Output, Polled, Promises};
use spine::Lease;
use tokio::time::timeout;

use super::turn::{CANCEL_LIMIT, check, recorded, unless_canceled};
use super::{Craft, Drive, Generator, Remote, Step};
use crate::Stop;

/// A run is looked at after a tenth of the time that it has taken, but at least as often as this, and no more often than its
/// provider advises: what takes minutes is asked for a few dozen times, and what takes seconds is late by a tenth.
const POLL_MAX: Duration = Duration::from_secs(15);
const POLL_SHARE: u32 = 10;
/// Look-ups after the first that find no run before an output is given up: lists lag behind what they list.
const LOOKS_MAX: i32 = 2;
/// Before a look-up that could not be made is made again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// An output that took longer than its deadline.
pub(super) fn overdue() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "The provider did not finish in time.")
}

/// An output that was being submitted by a worker which has not told what came of it.
fn unknown() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "Whether the provider took the work is not known.")
}

/// What a look at a provider's run told.
#[derive(Debug)]
pub enum Heard {
    /// It goes on, as far as can be told.
    Unfinished {
        /// How long until it is looked at again.
        again_in: Duration,
        /// How far it is, from 0 to 1, where the provider says.
        share: Option<f64>,
    },
    /// No place for a call became free in time.
    Crowded,
    /// There is a result.
    Done(Output),
    /// There will be none.
    Failed(Fault),
    /// The provider stopped it.
    Stopped,
}

impl Generator {
    /// Asks once how `run` is, which was recorded `running_for` ago.
    ///
    /// # Errors
    /// [`Stop::Canceled`], [`Stop::Stale`].
    pub async fn hear(
        &self,
        remote: &Remote,
        media: Media,
        lease: &Lease,
        run: &providers::Run,
        running_for: Duration,
    ) -> Result<Heard, Stop> {
        let Some(place) = self.calls.enter(&remote.line).await else { return Ok(Heard::Crowded) };
        check(lease)?;
        let polled = unless_canceled(lease, remote.provider.poll(run)).await?;
        drop(place);
        let again_in = self.poll_pause(&remote.provider.promises(media), running_for);
        Ok(match polled {
            Polled::Running(share) => Heard::Unfinished { again_in, share },
            Polled::Trouble(fault) => {
                Heard::Unfinished { again_in: again_in.max(fault.retry_after.unwrap_or_default()), share: None }
            }
            Polled::Done(result) => Heard::Done(result),
            Polled::Failed(fault) => Heard::Failed(fault),
            Polled::Canceled => Heard::Stopped,
        })
    }

    /// How long from poll to poll of a run at least.
    pub(super) fn poll_every(&self, promises: &Promises) -> Duration {
        self.settings.poll_every.unwrap_or(promises.poll_every)
    }

    fn poll_pause(&self, promises: &Promises, running_for: Duration) -> Duration {
        self.poll_every(promises).max((running_for / POLL_SHARE).min(POLL_MAX))
    }
}

impl<C: Craft> Drive<'_, C> {
    /// Asks how an output's run is.
    pub(super) async fn follow(&self, output: &JobOutput) -> Result<Step<C::Made>, Stop> {
        let run = output.run.clone().and_then(|run| serde_json::from_value(run).ok());
        let unreadable = || Failure::new(FailureCode::RuntimeFailed, "the record of the provider's run cannot be read");
        let run: providers::Run = run.ok_or_else(|| Stop::orphaned(unreadable()))?;
        if output.is_overdue() {
            // Best effort: nobody will look for it again.
            let _ = timeout(CANCEL_LIMIT, self.remote.provider.cancel(&run)).await;
            return Err(Stop::orphaned(overdue()));
        }
        let (generator, lease) = (self.turn.generator, self.turn.lease);
        let heard = generator.hear(self.remote, C::MEDIA, lease, &run, output.running_for).await?;
        self.heed(output, heard).await
    }

    /// Does what a look at an output's run calls for.
    ///
    /// # Errors
    /// [`Stop`] when there will be no result, and when the run ends.
    pub async fn heed(&self, output: &JobOutput, heard: Heard) -> Result<Step<C::Made>, Stop> {
        match heard {
            Heard::Unfinished { again_in, share } => {
                if let Some(share) = share {
                    self.craft.progress(share).await;
                }
                self.put_off(output, again_in, false).await
            }
            Heard::Crowded => Ok(Step::Wait(Calls::RETURN)),
            Heard::Done(result) => self.take(output, &result).await,
            Heard::Failed(fault) => Err(fault.failure().into()),
            Heard::Stopped => Err(Failure::new(FailureCode::ProviderRejected, "The provider stopped the work.").into()),
        }
    }

    /// Fetches a run's result. What does not arrive, or is not what it should be, may be an error page of the moment: the run
    /// is asked anew, a few times.
    async fn take(&self, output: &JobOutput, result: &Output) -> Result<Step<C::Made>, Stop> {
        let generator = self.turn.generator;
        let admitted = self.turn.unless_canceled(generator.in_hand.result(C::IN_HAND)).await?;
        match self.turn.unless_canceled(self.fetch(result)).await?? {
            Ok(made) => Ok(Step::Made(made, Some(admitted))),
            Err(failure) => match self.pause_before(output.tries) {
                Some(wait) => {
                    let pause = generator.poll_pause(self.promises(), output.running_for);
                    self.put_off(output, wait.max(pause), true).await
                }
                None => Err(failure.into()),
            },
        }
    }

    /// Fetches a result and looks at it.
    pub(super) async fn fetch(&self, result: &Output) -> Result<Result<C::Made, Failure>, Stop> {
        let made = match self.remote.provider.open(C::MEDIA, result).await {
            Ok(incoming) => self.craft.take_in(incoming).await?,
            Err(fault) => Err(fault.failure()),
        };
        if made.is_ok() {
            spine::failpoint!("generation.fetched");
        }
        Ok(made)
    }

    /// Finds out what came of a submit that nobody knows the outcome of, where that can be found out.
    pub(super) async fn look_up(&self, output: &JobOutput) -> Result<Step<C::Made>, Stop> {
        let met = output.failure.clone().unwrap_or_else(unknown);
        let Some(model) = self.remote.model.as_ref().filter(|_| self.promises.finds && !output.is_overdue()) else {
            return Err(Stop::orphaned(met));
        };
        let Some(place) = self.turn.generator.calls.enter(&self.remote.line).await else {
            return Ok(Step::Wait(Calls::RETURN));
        };
        self.turn.check()?;
        let order = self.craft.blank(model, output.position);
        let found = self.turn.unless_canceled(self.remote.provider.find(&order)).await?;
        drop(place);
        match found {
            Ok(Some(run)) => self.record_run(output, &run).await,
            Ok(None) if output.tries < LOOKS_MAX => {
                self.put_off(output, self.pause_before(output.tries).unwrap_or(LOOK_AGAIN), true).await
            }
            Err(fault) if fault.is_retryable() => {
                self.put_off(output, LOOK_AGAIN.max(fault.retry_after.unwrap_or_default()), false).await
            }
            Ok(None) | Err(_) => Err(Stop::orphaned(met)),
        }
    }

    /// Puts an output's next step off; `tried` counts it as one that did not work out.
    async fn put_off(&self, output: &JobOutput, due_in: Duration, tried: bool) -> Result<Step<C::Made>, Stop> {
        let mut connection = self.turn.generator.worker.connection().await?;
        recorded(outputs::put_off(&mut connection, self.turn.held(output.position), due_in, tried).await?)?;
        Ok(Step::Wait(due_in))
    }
}
