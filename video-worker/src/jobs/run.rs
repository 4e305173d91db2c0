//! One run of a job's task: a step, or its end.

use std::sync::Arc;
use std::time::Duration;

use db::jobs::outputs::{self, Held, JobOutput, OutputState};
use domain::id::JobId;
use domain::job::{Failure, FailureCode, JobStatus, Record, Request, VideoRequest};
use providers::{Entry, Idempotency, Media, Order, Shape};
use spine::{Decision, Lease, Task};
use tokio::time::sleep;

use super::maker::{Maker, Remote};
use super::pictures::Pictures;
use super::store::Content;
use super::{Error, Worker};

/// A step that is due as soon as this is waited for, instead of parking the task once more.
const SOON: Duration = Duration::from_millis(50);

/// Submits after one of unknown outcome, to a provider that refuses to begin the same twice.
const REPEATS_MAX: i32 = 1;

/// Pauses while what is in hand cannot be stored or recorded: longer together than most restarts of a server.
const PATIENCE: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(20)];

/// One run of a job's task.
pub(super) struct Run<'a> {
    pub worker: &'a Worker,
    pub job: &'a Record,
    pub request: &'a VideoRequest,
    pub lease: &'a Lease,
}

/// Where a step left the video.
pub(super) enum Step {
    /// Its next step is due then.
    Wait(Duration),
    /// It is made.
    Made(Content),
}

/// Why a run ends before its video is made.
pub(super) enum Stop {
    /// Somebody asked.
    Canceled,
    /// The lease is lost, or may be.
    Stale,
    /// There will be no video; `orphan`: a provider may have made it all the same.
    Failed { failure: Failure, orphan: bool },
    /// What nobody foresaw; to be tried again.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, orphan: false }
    }
}

impl Stop {
    /// The same, and whether a provider may have made the video all the same.
    pub(super) fn with_orphan(self, orphan: bool) -> Self {
        match self {
            Self::Failed { failure, .. } => Self::Failed { failure, orphan },
            stop => stop,
        }
    }
}

/// What ends a video of which a provider may have made one all the same.
pub(super) fn orphaned(failure: Failure) -> Stop {
    Stop::from(failure).with_orphan(true)
}

/// Whether a change of the output took place, as the way on.
pub(super) fn recorded(done: bool) -> Result<(), Stop> {
    if done { Ok(()) } else { Err(Stop::Stale) }
}

impl Worker {
    /// Takes the task's job a step further.
    pub(super) async fn step(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let id = JobId(task.id);
        let mut connection = self.connection().await?;
        let job = db::jobs::begin(&mut connection, id, lease.token()).await?;
        let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
            drop(connection);
            return self.settle(task, lease).await;
        };
        let Request::Video(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
        let opened = outputs::open(&mut connection, id, lease.token(), 1).await?;
        drop(connection);
        let Some((outputs, is_fresh)) = opened else { return Ok(Decision::Stale) };
        let Some(output) = outputs.first() else { return Ok(Decision::Stale) };
        if is_fresh {
            self.announce(id).await;
        }
        let run = Run { worker: self, job: &job, request, lease };
        let is_canceled = job.status == JobStatus::Canceling || lease.is_cancel_requested();
        match if is_canceled { Err(Stop::Canceled) } else { run.advance(output).await } {
            Ok(Step::Wait(_)) if lease.is_cancel_requested() => run.cancel(task).await,
            Ok(Step::Wait(after)) => Ok(Decision::Later { after }),
            Ok(Step::Made(content)) => run.finish(task, &content).await,
            Err(Stop::Failed { failure, orphan }) => run.fail(task, output, failure, orphan).await,
            Err(Stop::Canceled) => run.cancel(task).await,
            Err(Stop::Stale) => Ok(Decision::Stale),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}

impl Run<'_> {
    /// The next step of the video, when it is due.
    async fn advance(&self, output: &JobOutput) -> Result<Step, Stop> {
        if output.state.is_terminal() {
            let failure = output.failure.clone();
            return Err(failure.unwrap_or_else(|| Failure::new(FailureCode::RuntimeFailed, "it was given up")).into());
        }
        if output.due_in > SOON {
            return Ok(Step::Wait(output.due_in));
        }
        sleep(output.due_in).await;
        let maker = self.maker().await.map_err(|stop| stop.with_orphan(output.state != OutputState::Ready))?;
        match maker {
            Maker::Embedded(model) => self.film(&model).await,
            Maker::Remote(remote) => self.ask(&remote, output).await,
        }
    }

    /// Asks a provider for what the video's state calls for.
    async fn ask(&self, remote: &Remote, output: &JobOutput) -> Result<Step, Stop> {
        let promises = remote.provider.promises(Media::Video);
        let may_repeat = promises.idempotency == Idempotency::Rejected && output.tries < REPEATS_MAX;
        match output.state {
            OutputState::Ready => self.submit(remote, &promises, output).await,
            OutputState::Submitting if may_repeat && remote.model.is_some() => {
                self.submit(remote, &promises, output).await
            }
            OutputState::Submitting => self.look_up(remote, &promises, output).await,
            _ => self.follow(remote, &promises, output).await,
        }
    }

    /// The order of the video, the same in every attempt but for the bytes of its pictures.
    pub(super) fn order(&self, model: &Arc<Entry>, pictures: Pictures) -> Order {
        let request = self.request;
        Order {
            model: model.clone(),
            capability: request.capability,
            prompt: request.prompt.clone(),
            references: pictures.references,
            shape: Shape::Video {
                first_frame: pictures.first,
                last_frame: pictures.last,
                duration_seconds: request.duration_seconds,
                aspect_ratio: request.aspect_ratio.clone(),
                resolution: request.resolution.clone(),
                generate_audio: request.generate_audio,
            },
            idempotency_key: format!("{}-0", self.job.id.0),
        }
    }

    /// What may change the output.
    pub(super) fn held(&self) -> Held {
        Held { job: self.job.id, lease_token: self.lease.token(), position: 0 }
    }

    /// Whether the run may begin something that is seen outside.
    pub(super) fn check(&self) -> Result<(), Stop> {
        if self.lease.is_cancel_requested() {
            return Err(Stop::Canceled);
        }
        if self.lease.check() { Ok(()) } else { Err(Stop::Stale) }
    }

    /// Waits for `work`, but no longer than until somebody asks to stop.
    pub(super) async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.lease.cancelled() => Err(Stop::Canceled),
            done = work => Ok(done),
        }
    }

    /// Notes how far the video is, from 0 to 1. Nothing hangs on it, so that a failure is only told.
    pub(super) async fn note_progress(&self, share: f64) {
        let id = self.job.id;
        let noted = async {
            let mut connection = self.worker.connection().await?;
            Ok::<_, Error>(db::jobs::note_progress(&mut connection, id, self.lease.token(), share * 100.0).await?)
        };
        match noted.await {
            Ok(true) => self.worker.announce(id).await,
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, job.id = %id, "the progress of {id} is not noted");
            }
        }
    }

    /// Tries again for a while what an outage kept from being stored or recorded.
    pub(super) async fn patiently<T, F: Future<Output = Result<T, Stop>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Stop> {
        for pause in PATIENCE {
            match attempt().await {
                Err(Stop::Error(error)) if error.is_outage() => {
                    let id = self.job.id;
                    tracing::warn!(error = &error as &dyn std::error::Error, job.id = %id, "what {id} has waits for {pause:?}");
                    sleep(pause).await;
                }
                outcome => return outcome,
            }
        }
        attempt().await
    }
}
