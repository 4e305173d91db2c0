//! Image generation, edit and variations: each output of a job is one order to one model. Outputs become durable one by one and
//! visible together when all are terminal (docs/reference/images.md#several-outputs).
//!
//! **Mechanism.** One run of the task advances every output by one step ([`steps`]), all concurrently: at a provider
//! ([`worker::generation`]), or in a decoder ([`embedded`]). Results are verified and stored ([`keep`]), and failures are
//! recorded. When every output is terminal, one transaction completes the job ([`end`]).

mod embedded;
mod end;
mod image;
mod keep;
mod masks;
mod order;
mod references;
mod steps;

use domain::job::{ImageRequest, Request};
use domain::message::TaskKind;
use taskqueue::{Decision, Handler, HandlerResult, Lease, Task};
use worker::generation::{Generator, TaskRun};
use worker::{Error, Interrupt, TakenUp, wait_out};

pub(crate) use embedded::Draw;
pub(crate) use masks::{Lay, Prepare};

/// The task handler for image jobs.
#[derive(Clone)]
pub struct Images(pub Generator);

/// One run of a job's task.
struct Run<'a> {
    task_run: TaskRun<'a>,
    request: &'a ImageRequest,
    /// `true` if the job is a step of a Recipe run.
    is_step: bool,
}

impl Handler for Images {
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let outcome = match task.kind {
            TaskKind::Image => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let outcome = match task.kind {
            TaskKind::Image => self.0.worker.give_up(task, lease).await,
            // A kind that belongs in another queue: this process knows nothing that waits for it,
            // and its record needs an operator.
            _ => self.0.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

impl Images {
    /// Advances every output of the task's job by one step.
    async fn step(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let worker = &self.0.worker;
        let TakenUp { job, outputs } = match worker.take_up(task, lease).await? {
            Ok(taken_up) => taken_up,
            Err(decision) => return Ok(decision),
        };
        let Request::Image(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
        let is_step = db::jobs::is_step(&mut *worker.connection().await?, job.id).await?;
        let task_run = TaskRun { generator: &self.0, job: &job, model: &request.model, lease };
        let run = Run { task_run, request, is_step };
        let advanced = if run.task_run.is_canceled() { Err(Interrupt::Canceled) } else { run.advance(&outputs).await };
        match advanced {
            Ok(Some(_)) if run.task_run.is_canceled() => run.cancel(task).await,
            Ok(Some(after)) => Ok(Decision::Snooze { after }),
            Ok(None) => run.end(task).await,
            Err(Interrupt::Failed { failure, .. }) => run.fail(task, &outputs, &failure).await,
            Err(Interrupt::Canceled) => run.cancel(task).await,
            Err(Interrupt::Stale) => Ok(Decision::Stale),
            Err(Interrupt::Error(error)) => Err(error),
        }
    }
}
