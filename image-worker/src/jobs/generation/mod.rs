//! Image generation, edit and variations: each output of a job is one order to one model, made durable by itself and shown
//! with the others when all have ended (decisions 9.3, 10.6).
//!
//! **Guarantee.** No output is submitted twice to an effect, whatever crashes ([`db::jobs::outputs`] keeps the record);
//! whatever a provider is doing, a job holds neither a message nor a transaction nor a slot while it waits for the next
//! look; it is looked at no more often than the provider asks, and given up at a deadline. A cancel is heard at every step.
//!
//! **Mechanism.** A run of the task takes every output one step further ([`steps`]), all at once, and parks the task until
//! the next step is due. When every output has ended one transaction ends the job ([`end`]). Who makes the pictures is
//! decided anew in every run ([`maker`]): a connection that was removed meanwhile takes effect at once. Calls in flight are
//! bounded for each connection ([`Calls`]), bytes in hand for all ([`memory`]).
//!
//! **Reason.** Pictures take seconds to minutes, cost money when they are submitted, and hardly a provider lets a submit be
//! repeated (decisions 9.8, 12.5).

mod embedded;
mod end;
mod maker;
mod memory;
mod order;
mod pictures;
mod references;
mod steps;
mod submit;

use std::time::Duration;

use db::jobs::outputs::{self, Held, JobOutput};
use domain::id::JobId;
use domain::job::{Failure, ImageRequest, JobStatus, Record, Request};
use domain::message::TaskKind;
use providers::{Calls, Deadlines, Setup};
use service::keys::KeyRing;
use spine::{Decision, Handler, Lease, Outcome, Task};

use super::{Error, Worker, wait_out};
pub use memory::Memory;

/// How long a provider may take for an output besides ten times its model's estimate: providers queue for minutes on a busy
/// day, and a result that comes late is paid for all the same (providers.md 0.4 advises ten minutes for a picture).
const PATIENCE: Duration = Duration::from_secs(600);
/// See [`PATIENCE`].
const PATIENCE_FACTOR: u32 = 10;

/// How generation waits and repeats. Only tests choose otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How long a call may take.
    pub deadlines: Deadlines,
    /// Pauses before a submit that was surely not accepted, and before a download that failed, is tried again; as many tries
    /// follow the first.
    pub pauses: [Duration; 2],
    /// The longest that a provider's wish to wait is followed. Beyond it the failure is told, as retryable, and who asked decides.
    pub wait_max: Duration,
    /// How long an output may take from its first submit; `None`: as its model's estimate says.
    pub patience: Option<Duration>,
    /// How long from submit, and from poll to poll; `None`: as the provider advises.
    pub poll_every: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            pauses: [1, 5].map(Duration::from_secs),
            wait_max: Duration::from_secs(30),
            patience: None,
            poll_every: None,
        }
    }
}

/// Runs image jobs. Clones share everything.
#[derive(Clone)]
pub struct Generator {
    /// What all kinds of work share.
    pub worker: Worker,
    /// Opens the connections' keys.
    pub keys: KeyRing,
    /// The models, and what runs the managed ones.
    pub setup: Setup,
    /// Calls in flight.
    pub calls: Calls,
    /// References and results in hand.
    pub memory: Memory,
    /// How it waits and repeats.
    pub settings: Settings,
}

/// One run of a job's task.
struct Run<'a> {
    generator: &'a Generator,
    job: &'a Record,
    request: &'a ImageRequest,
    lease: &'a Lease,
    /// Whether the job is a step of a Recipe run.
    is_step: bool,
}

/// Where a step left an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It has ended.
    Over,
    /// Its next step is due then.
    Wait(Duration),
}

/// Why a run ends before its step.
enum Stop {
    /// Somebody asked.
    Canceled,
    /// The lease is lost, or may be.
    Stale,
    /// What nobody foresaw; to be tried again.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl Handler for Generator {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Image => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Image => end::exhausted(self, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

impl Generator {
    /// Takes every output of the task's job a step further.
    async fn step(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let (worker, id) = (&self.worker, JobId(task.id));
        let mut connection = worker.connection().await?;
        let job = db::jobs::begin(&mut connection, id, lease.token()).await?;
        let Some(job) = job.filter(|job| !job.status.is_terminal()) else {
            drop(connection);
            return worker.settle(task, lease).await;
        };
        let Request::Image(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
        let opened = outputs::open(&mut connection, id, lease.token(), request.targets.len()).await?;
        let is_step = db::jobs::is_step(&mut connection, id).await?;
        drop(connection);
        let Some((outputs, is_fresh)) = opened else { return Ok(Decision::Stale) };
        if is_fresh {
            worker.announce(id).await;
        }
        let run = Run { generator: self, job: &job, request, lease, is_step };
        let is_canceled = job.status == JobStatus::Canceling || lease.is_cancel_requested();
        let stop = match if is_canceled { Err(Stop::Canceled) } else { run.advance(&outputs).await } {
            Ok(Step::Wait(_)) if lease.is_cancel_requested() => Some(Stop::Canceled),
            Ok(Step::Wait(after)) => return Ok(Decision::Later { after }),
            Ok(Step::Over) => None,
            Err(stop) => Some(stop),
        };
        match stop {
            None => run.end(task).await,
            Some(Stop::Canceled) => run.cancel(task).await,
            Some(Stop::Stale) => Ok(Decision::Stale),
            Some(Stop::Error(error)) => Err(error),
        }
    }
}

impl Run<'_> {
    /// What may change an output.
    fn held(&self, output: &JobOutput) -> Held {
        Held { job: self.job.id, lease_token: self.lease.token(), position: output.position }
    }

    /// Whether the run may begin something that is seen outside.
    fn check(&self) -> Result<(), Stop> {
        if self.lease.is_cancel_requested() {
            return Err(Stop::Canceled);
        }
        if self.lease.check() { Ok(()) } else { Err(Stop::Stale) }
    }

    /// Waits for `work`, but no longer than until somebody asks to stop.
    async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.lease.cancelled() => Err(Stop::Canceled),
            done = work => Ok(done),
        }
    }

    /// Gives an output up; `orphan`: a provider may have made it all the same.
    async fn fail(&self, output: &JobOutput, failure: &Failure, orphan: bool) -> Result<Step, Stop> {
        if orphan {
            metrics::counter!("canvas_possible_orphans_total", "provider" => self.request.model.provider.as_str())
                .increment(1);
            let (id, position) = (self.job.id, output.position);
            tracing::warn!(job.id = %id, position, run = ?output.run, "output {position} of {id} may have been made unknown to us");
        }
        let mut connection = self.generator.worker.connection().await?;
        recorded(outputs::failed(&mut connection, self.held(output), failure, orphan).await?)?;
        Ok(Step::Over)
    }
}

/// Whether a change of an output took place, as the way on.
fn recorded(done: bool) -> Result<(), Stop> {
    if done { Ok(()) } else { Err(Stop::Stale) }
}
