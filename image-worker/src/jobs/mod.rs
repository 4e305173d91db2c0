//! The kinds of tasks, each: load → run → make durable → Decision.

mod action;
pub mod generation;
mod import;
pub mod recipe;
mod rendition;

use domain::message::TaskKind;
use spine::{Handler, Lease, Outcome, Task};
use workshop::{Error, Worker, wait_out};

pub use import::{IMPORTS_MAX, Imports};

use crate::actions::NotUnderstood;

/// Runs Actions and renditions; what else there is has handlers of its own. Clones share everything.
#[derive(Clone)]
pub struct Tasks(pub Worker);

/// Why a task of this process alone did not work out this time.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The stored request is none that this build carries out.
    #[error("the request cannot be carried out")]
    NotUnderstood(#[source] NotUnderstood),
    /// A render's document could not be rasterised.
    #[error("the document could not be rasterised")]
    Document(#[source] raster::document::DocumentError),
    /// The job of a step is not there.
    #[error("the job of a step is gone")]
    JobGone,
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        Error::Own(trouble.into())
    }
}

impl Handler for Tasks {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let Self(worker) = self;
        let outcome = match task.kind {
            TaskKind::Action => action::run(worker, task, lease).await,
            TaskKind::Rendition => rendition::run(worker, task, lease).await,
            TaskKind::Import => import::hand_over(worker, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let Self(worker) = self;
        let outcome = match task.kind {
            TaskKind::Action => worker.give_up(task, lease).await,
            TaskKind::Rendition => rendition::exhausted(worker, task, lease).await,
            TaskKind::Import => import::exhausted(worker, task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}
