//! The kinds of tasks, each in four steps: load, run, make durable, return a decision.

mod action;
mod conversion;
pub mod generation;
mod import;
pub mod recipe;
mod rendition;
mod steps;

use decoder::Kind;
use domain::message::TaskKind;
use taskqueue::{Handler, HandlerResult, Lease, Task};
use worker::{Error, Worker, wait_out};

pub use import::{IMPORTS_MAX, Imports};

use actions::NotUnderstood;
use steps::Steps;

/// The task handler for Actions and renditions; all other tasks have separate handlers. Clones
/// share everything.
#[derive(Clone)]
pub struct Tasks {
    worker: Worker,
    steps: Steps,
}

impl Tasks {
    /// Creates the handler and the worker of its steps, which the caller must run. It ends when the last clone of the handler is
    /// dropped.
    pub fn new(worker: Worker) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (steps, work) = Steps::new(&worker);
        (Self { worker, steps }, work)
    }
}

/// What decoders do for this worker alone.
pub fn decoder_kinds() -> [Kind; 8] {
    [
        Kind::of::<action::Act>(),
        Kind::of::<action::ActOnFrame>(),
        Kind::of::<conversion::Convert>(),
        Kind::of::<generation::Draw>(),
        Kind::of::<generation::Lay>(),
        Kind::of::<generation::Prepare>(),
        Kind::of::<import::Look>(),
        Kind::of::<rendition::Reduce>(),
    ]
}

/// The reason why the run of a task failed.
#[derive(Debug, thiserror::Error)]
enum ExecutionError {
    /// This build cannot execute the stored request.
    #[error("cannot execute the request")]
    NotUnderstood(#[source] NotUnderstood),
    /// The job of a step is missing.
    #[error("the job of a step is missing")]
    JobGone,
}

impl From<ExecutionError> for Error {
    fn from(error: ExecutionError) -> Self {
        Error::Own(error.into())
    }
}

impl Handler for Tasks {
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let Self { worker, steps } = self;
        worker.free_work.declare();
        let outcome = match task.kind {
            TaskKind::Action => action::run(worker, steps, task, lease).await,
            TaskKind::Rendition => rendition::run(worker, task, lease).await,
            TaskKind::Import => import::hand_over(worker, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let Self { worker, .. } = self;
        let outcome = match task.kind {
            TaskKind::Action => worker.give_up(task, lease).await,
            TaskKind::Rendition => rendition::exhausted(worker, task, lease).await,
            TaskKind::Import => import::exhausted(worker, task, lease).await,
            // A kind that belongs in another queue: this process knows nothing that waits for it,
            // and its record needs an operator.
            _ => worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}
