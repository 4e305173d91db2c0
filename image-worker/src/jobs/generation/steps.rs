//! What happens to the outputs of a job in one run: each goes one step further, all at once.

use std::time::Duration;

use db::jobs::outputs::{self, JobOutput, OutputState};
use domain::job::{Failure, FailureCode};
use futures_util::future::{join, join_all};
use providers::{Calls, Idempotency, Media, Output, Polled, Promises};
use tokio::time::{sleep, timeout};

use super::maker::{Maker, Remote};
use super::{Run, Step, Stop, recorded};

/// A step that is due as soon as this is waited for, instead of parking the task once more.
const SOON: Duration = Duration::from_millis(50);
/// A run is looked at after a tenth of the time that it has taken, but at least as often as this, and no more often than its
/// provider advises: what takes minutes is asked for a few dozen times, and what takes seconds is late by a tenth.
const POLL_MAX: Duration = Duration::from_secs(15);
const POLL_SHARE: u32 = 10;
/// Submits of an output whose first had an unknown outcome, to a provider that refuses to begin it twice.
const REPEATS_MAX: i32 = 1;
/// Look-ups after the first that find no run before an output is given up: lists lag behind what they list.
const LOOKS_MAX: i32 = 2;
/// Before a look-up that could not be made is made again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// What a result is counted with while it is fetched: what it may have at most.
const RESULT_BYTES: u64 = domain::limits::UPLOAD_MAX;
/// How long a provider may take to hear that a run is not wanted any more.
pub(super) const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// An output that took longer than its deadline.
pub(super) fn overdue() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "The provider did not finish in time.")
}

/// An output that was being submitted by a worker which has not told what came of it.
fn unknown() -> Failure {
    Failure::new(FailureCode::ProviderTimeout, "Whether the provider took the work is not known.")
}

impl Run<'_> {
    /// Takes every output that is due a step further; when the next step of any is due.
    pub(super) async fn advance(&self, outputs: &[JobOutput]) -> Result<Step, Stop> {
        let open = outputs.iter().filter(|output| !output.state.is_terminal());
        let (due, later): (Vec<&JobOutput>, Vec<&JobOutput>) = open.partition(|output| output.due_in <= SOON);
        let mut next = later.iter().map(|output| output.due_in).min();
        if let Some(wait) = due.iter().map(|output| output.due_in).max() {
            sleep(wait).await;
            let steps = match self.maker().await? {
                Ok(Maker::Embedded(model)) => join_all(due.iter().map(|output| self.draw(&model, output))).await,
                Ok(Maker::Remote(remote)) => self.ask(&remote, &due).await,
                Err(failure) => self.fail_all(&due, &failure).await,
            };
            for step in outcome(steps)? {
                if let Step::Wait(wait) = step {
                    next = Some(next.map_or(wait, |next| next.min(wait)));
                }
            }
        }
        Ok(next.map_or(Step::Over, Step::Wait))
    }

    /// Asks a provider: for what is to be submitted, together, because the references are loaded once; and for everything
    /// else.
    async fn ask(&self, remote: &Remote, due: &[&JobOutput]) -> Vec<Result<Step, Stop>> {
        let promises = remote.provider.promises(Media::Picture);
        let is_to_submit = |output: &&&JobOutput| match output.state {
            OutputState::Ready => true,
            OutputState::Submitting => {
                promises.idempotency == Idempotency::Rejected && output.tries < REPEATS_MAX && remote.model.is_some()
            }
            _ => false,
        };
        let (submits, others): (Vec<&JobOutput>, Vec<&JobOutput>) = due.iter().partition(is_to_submit);
        let others = others.iter().map(|output| async {
            match output.state {
                OutputState::Submitting => self.look_up(remote, &promises, output).await,
                _ => self.follow(remote, &promises, output).await,
            }
        });
        let (mut steps, others) = join(self.submit_all(remote, &promises, &submits), join_all(others)).await;
        steps.extend(others);
        steps
    }

    /// Gives outputs up for one reason; what may have been submitted may have been made all the same.
    pub(super) async fn fail_all(&self, outputs: &[&JobOutput], failure: &Failure) -> Vec<Result<Step, Stop>> {
        join_all(outputs.iter().map(|output| self.fail(output, failure, output.state != OutputState::Ready))).await
    }

    /// Asks how an output's run is.
    async fn follow(&self, remote: &Remote, promises: &Promises, output: &JobOutput) -> Result<Step, Stop> {
        let run = output.run.clone().and_then(|run| serde_json::from_value(run).ok());
        let Some(run) = run else {
            let failure = Failure::new(FailureCode::RuntimeFailed, "the record of the provider's run cannot be read");
            return self.fail(output, &failure, true).await;
        };
        if output.is_overdue() {
            // Best effort: nobody will look for it again.
            let _ = timeout(CANCEL_LIMIT, remote.provider.cancel(&run)).await;
            return self.fail(output, &overdue(), true).await;
        }
        let Some(place) = self.generator.calls.enter(&remote.line).await else { return Ok(Step::Wait(Calls::RETURN)) };
        self.check()?;
        let polled = self.unless_canceled(remote.provider.poll(&run)).await?;
        drop(place);
        let pause = self.poll_every(promises).max((output.running_for / POLL_SHARE).min(POLL_MAX));
        match polled {
            Polled::Running(_) => self.put_off(output, pause, false).await,
            Polled::Trouble(fault) => {
                self.put_off(output, pause.max(fault.retry_after.unwrap_or_default()), false).await
            }
            Polled::Done(result) => self.take(remote, output, &result, pause).await,
            Polled::Failed(fault) => self.fail(output, &fault.failure(), false).await,
            Polled::Canceled => {
                let failure = Failure::new(FailureCode::ProviderRejected, "The provider stopped the work.");
                self.fail(output, &failure, false).await
            }
        }
    }

    /// Fetches a run's result and makes it durable. What does not arrive, or is no picture, may be an error page of the moment:
    /// the run is asked anew, a few times.
    async fn take(&self, remote: &Remote, output: &JobOutput, result: &Output, pause: Duration) -> Result<Step, Stop> {
        let _admitted = self.unless_canceled(self.generator.memory.admit(RESULT_BYTES)).await?;
        let fetched = self.unless_canceled(remote.provider.fetch(Media::Picture, result)).await?;
        let made = match fetched {
            Ok(artifact) => self.look_at(artifact).await?,
            Err(fault) => Err(fault.failure()),
        };
        match made {
            Ok(made) => {
                spine::failpoint!("generation.fetched");
                self.keep(output, &made, &self.instruction()).await
            }
            Err(failure) => match self.pause_before(output.tries) {
                Some(wait) => self.put_off(output, wait.max(pause), true).await,
                None => self.fail(output, &failure, false).await,
            },
        }
    }

    /// Finds out what came of a submit that nobody knows the outcome of, where that can be found out.
    async fn look_up(&self, remote: &Remote, promises: &Promises, output: &JobOutput) -> Result<Step, Stop> {
        let met = output.failure.clone().unwrap_or_else(unknown);
        let Some(model) = remote.model.as_ref().filter(|_| promises.finds && !output.is_overdue()) else {
            return self.fail(output, &met, true).await;
        };
        let Some(place) = self.generator.calls.enter(&remote.line).await else { return Ok(Step::Wait(Calls::RETURN)) };
        self.check()?;
        let pictures = self.request.references.iter().map(|reference| providers::Picture {
            bytes: bytes::Bytes::new(),
            media_type: "image/png",
            role: reference.role,
        });
        let order = self.order(model, output.position, pictures.collect());
        let found = self.unless_canceled(remote.provider.find(&order)).await?;
        drop(place);
        match found {
            Ok(Some(run)) => self.record_run(promises, output, &run).await,
            Ok(None) if output.tries < LOOKS_MAX => {
                self.put_off(output, self.pause_before(output.tries).unwrap_or(LOOK_AGAIN), true).await
            }
            Err(fault) if fault.is_retryable() => {
                self.put_off(output, LOOK_AGAIN.max(fault.retry_after.unwrap_or_default()), false).await
            }
            Ok(None) | Err(_) => self.fail(output, &met, true).await,
        }
    }

    /// Records a provider's run. Nothing else tells of it, so that an outage is waited out.
    pub(super) async fn record_run(
        &self,
        promises: &Promises,
        output: &JobOutput,
        run: &providers::Run,
    ) -> Result<Step, Stop> {
        let document = serde_json::to_value(run).expect("a run is plain data");
        let due_in = self.poll_every(promises);
        let recorded = self.patiently(|| async {
            let mut connection = self.generator.worker.connection().await?;
            recorded(outputs::submitted(&mut connection, self.held(output), &document, due_in).await?)
        });
        if let Err(stop) = recorded.await {
            let (id, run) = (self.job.id, &run.id);
            tracing::error!(job.id = %id, run, "run {run} of {id} could not be recorded and may have been made for nothing");
            return Err(stop);
        }
        spine::failpoint!("generation.submitted");
        Ok(Step::Wait(due_in))
    }

    /// How long from submit, and from poll to poll, at least.
    fn poll_every(&self, promises: &Promises) -> Duration {
        self.generator.settings.poll_every.unwrap_or(promises.poll_every)
    }

    /// Puts an output's next step off; `tried` counts it as one that did not work out.
    pub(super) async fn put_off(&self, output: &JobOutput, due_in: Duration, tried: bool) -> Result<Step, Stop> {
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::put_off(&mut connection, self.held(output), due_in, tried).await?)?;
        Ok(Step::Wait(due_in))
    }

    /// The pause before what was tried `tries` times besides the first is tried again, while it may be.
    pub(super) fn pause_before(&self, tries: i32) -> Option<Duration> {
        let tries = usize::try_from(tries).ok()?;
        self.generator.settings.pauses.get(tries).copied()
    }
}

/// All steps, or the reason why the run ends: a lost lease before everything, a cancel before trouble, because it ends all.
fn outcome(steps: Vec<Result<Step, Stop>>) -> Result<Vec<Step>, Stop> {
    let mut done = Vec::with_capacity(steps.len());
    let mut worst: Option<Stop> = None;
    for step in steps {
        match (step, &worst) {
            (Ok(step), _) => done.push(step),
            (Err(Stop::Stale), _) => worst = Some(Stop::Stale),
            (Err(_), Some(Stop::Stale)) => {}
            (Err(Stop::Canceled), _) => worst = Some(Stop::Canceled),
            (Err(_), Some(_)) => {}
            (Err(stop), None) => worst = Some(stop),
        }
    }
    worst.map_or(Ok(done), Err)
}
