//! What happens to a video that a provider has, or may have.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput};
use domain::job::{Failure, FailureCode};
use providers::{Artifact, Calls, Fault, Media, Output, Polled, Promises};
use tokio::time::timeout;

use super::Error;
use super::maker::Remote;
use super::run::{Run, Step, Stop, orphaned, recorded};
use super::store::Content;
use super::submit::overdue;

/// A run is looked at after a tenth of the time that it has taken, but at least as often as this, and no more often than its
/// provider advises.
const POLL_MAX: Duration = Duration::from_secs(15);
const POLL_SHARE: u32 = 10;

/// Look-ups after the first that find no run before a video is given up: lists lag behind what they list.
const LOOKS_MAX: i32 = 2;

/// Before a look-up that could not be made is made again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a result is counted with while it is fetched: what it may have at most.
const RESULT_BYTES: u64 = domain::limits::UPLOAD_MAX;

/// How long a provider may take to hear that a run is not wanted any more.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// A video that was being submitted by a worker which has not told what came of it.
fn unknown() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "Whether the provider took the work is not known.")
}

impl Run<'_> {
    /// Asks how the video's run is.
    pub(super) async fn follow(&self, remote: &Remote, promises: &Promises, output: &JobOutput) -> Result<Step, Stop> {
        let run = output.run.clone().and_then(|run| serde_json::from_value(run).ok());
        let unreadable = || Failure::new(FailureCode::RuntimeFailed, "the record of the provider's run cannot be read");
        let run: providers::Run = run.ok_or_else(|| orphaned(unreadable()))?;
        if output.is_overdue() {
            // Best effort: nobody will look for it again.
            let _ = timeout(CANCEL_LIMIT, remote.provider.cancel(&run)).await;
            return Err(orphaned(overdue()));
        }
        let Some(place) = self.worker.calls.enter(&remote.line).await else { return Ok(Step::Wait(Calls::RETURN)) };
        self.check()?;
        let polled = self.unless_canceled(remote.provider.poll(&run)).await?;
        drop(place);
        let pause = self.poll_every(promises).max((output.running_for / POLL_SHARE).min(POLL_MAX));
        match polled {
            Polled::Running(share) => {
                if let Some(share) = share {
                    self.note_progress(share).await;
                }
                self.put_off(pause, false).await
            }
            Polled::Trouble(fault) => self.put_off(pause.max(fault.retry_after.unwrap_or_default()), false).await,
            Polled::Done(result) => self.take(remote, output, &result, pause).await,
            Polled::Failed(fault) => Err(fault.failure().into()),
            Polled::Canceled => {
                Err(Failure::new(FailureCode::ProviderRejected, "The provider stopped the work.").into())
            }
        }
    }

    /// Fetches a run's video. What does not arrive, or is none, may be an error page of the moment: the run is asked anew, a
    /// few times.
    async fn take(&self, remote: &Remote, output: &JobOutput, result: &Output, pause: Duration) -> Result<Step, Stop> {
        let _admitted = self.unless_canceled(self.worker.memory.admit(RESULT_BYTES)).await?;
        let fetched = self.unless_canceled(remote.provider.fetch(Media::Video, result)).await?;
        match self.checked(fetched).await? {
            Ok(content) => {
                spine::failpoint!("generation.fetched");
                Ok(Step::Made(content))
            }
            Err(failure) => match self.pause_before(output.tries) {
                Some(wait) => self.put_off(wait.max(pause), true).await,
                None => Err(failure.into()),
            },
        }
    }

    /// A result that is what a job's output is served as: an MP4 (decisions 9.9).
    pub(super) async fn checked(&self, fetched: Result<Artifact, Fault>) -> Result<Result<Content, Failure>, Stop> {
        match fetched {
            Ok(Artifact { bytes, media_type: "video/mp4" }) => {
                let hashing = self.worker.pixels.run(0, move || Content::of(bytes));
                Ok(Ok(hashing.await.map_err(Error::Panicked)?))
            }
            Ok(_) => Ok(Err(Failure::new(FailureCode::ProviderUnavailable, "The provider's result is no MP4."))),
            Err(fault) => Ok(Err(fault.failure())),
        }
    }

    /// Finds out what came of a submit that nobody knows the outcome of, where that can be found out.
    pub(super) async fn look_up(&self, remote: &Remote, promises: &Promises, output: &JobOutput) -> Result<Step, Stop> {
        let met = output.failure.clone().unwrap_or_else(unknown);
        let Some(model) = remote.model.as_ref().filter(|_| promises.finds && !output.is_overdue()) else {
            return Err(orphaned(met));
        };
        let Some(place) = self.worker.calls.enter(&remote.line).await else { return Ok(Step::Wait(Calls::RETURN)) };
        self.check()?;
        let order = self.order(model, self.blank());
        let found = self.unless_canceled(remote.provider.find(&order)).await?;
        drop(place);
        match found {
            Ok(Some(run)) => self.record_run(promises, &run).await,
            Ok(None) if output.tries < LOOKS_MAX => {
                self.put_off(self.pause_before(output.tries).unwrap_or(LOOK_AGAIN), true).await
            }
            Err(fault) if fault.is_retryable() => {
                self.put_off(LOOK_AGAIN.max(fault.retry_after.unwrap_or_default()), false).await
            }
            Ok(None) | Err(_) => Err(orphaned(met)),
        }
    }

    /// How long from submit, and from poll to poll, at least.
    pub(super) fn poll_every(&self, promises: &Promises) -> Duration {
        self.worker.settings.poll_every.unwrap_or(promises.poll_every)
    }

    /// Puts the next step off; `tried` counts it as one that did not work out.
    async fn put_off(&self, due_in: Duration, tried: bool) -> Result<Step, Stop> {
        let mut connection = self.worker.connection().await?;
        recorded(outputs::put_off(&mut connection, self.held(), due_in, tried).await?)?;
        Ok(Step::Wait(due_in))
    }

    /// The pause before what was tried `tries` times besides the first is tried again, while it may be.
    pub(super) fn pause_before(&self, tries: i32) -> Option<Duration> {
        let tries = usize::try_from(tries).ok()?;
        self.worker.settings.pauses.get(tries).copied()
    }
}
