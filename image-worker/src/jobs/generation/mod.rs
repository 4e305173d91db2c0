//! Image generation, edit and variations: each output of a job is one order to one model, made durable by itself and shown
//! with the others when all have ended (decisions 9.3, 10.6).
//!
//! **Mechanism.** A run of the task takes every output one step further ([`steps`]), all at once: at a provider
//! ([`workshop::generation`]), or here ([`embedded`]). What is made is looked at and kept ([`keep`]), and what will not be made
//! is put on record. When every output has ended one transaction ends the job ([`end`]).

mod embedded;
mod end;
mod keep;
mod order;
mod references;
mod steps;

use domain::job::{ImageRequest, Request};
use domain::message::TaskKind;
use spine::{Decision, Handler, Lease, Outcome, Task};
use workshop::generation::{Generator, Turn};
use workshop::{Error, Stop, TakenUp, wait_out};

/// Runs image jobs.
#[derive(Clone)]
pub struct Images(pub Generator);

/// One run of a job's task.
struct Run<'a> {
    turn: Turn<'a>,
    request: &'a ImageRequest,
    /// Whether the job is a step of a Recipe run.
    is_step: bool,
}

impl Handler for Images {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Image => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Image => self.0.worker.give_up(task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.0.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}

impl Images {
    /// Takes every output of the task's job a step further.
    async fn step(&self, task: &Task, lease: &Lease) -> Result<Decision, Error> {
        let worker = &self.0.worker;
        let TakenUp { job, outputs } = match worker.take_up(task, lease).await? {
            Ok(taken_up) => taken_up,
            Err(decision) => return Ok(decision),
        };
        let Request::Image(request) = &job.request else { return Err(Error::WrongQueue(task.kind)) };
        let is_step = db::jobs::is_step(&mut *worker.connection().await?, job.id).await?;
        let turn = Turn { generator: &self.0, job: &job, model: &request.model, lease };
        let run = Run { turn, request, is_step };
        let advanced = if run.turn.is_canceled() { Err(Stop::Canceled) } else { run.advance(&outputs).await };
        match advanced {
            Ok(Some(_)) if run.turn.is_canceled() => run.cancel(task).await,
            Ok(Some(after)) => Ok(Decision::Later { after }),
            Ok(None) => run.end(task).await,
            Err(Stop::Failed { failure, .. }) => run.fail(task, &outputs, &failure).await,
            Err(Stop::Canceled) => run.cancel(task).await,
            Err(Stop::Stale) => Ok(Decision::Stale),
            Err(Stop::Error(error)) => Err(error),
        }
    }
}
