//! The kinds of tasks, each: load → run → make durable → Decision.

mod action;
pub mod generation;
mod import;
pub mod recipe;
mod rendition;

use std::sync::Arc;

use domain::message::TaskKind;
use spine::{Handler, Lease, Outcome, Task};
use workshop::{Error, Worker, wait_out};

use import::Imports;

pub use import::IMPORTS_MAX;

use crate::actions::NotUnderstood;

/// Runs every kind of task but image jobs and Recipe runs, which have handlers of their own. Clones share everything.
#[derive(Clone)]
pub struct Tasks {
    worker: Worker,
    imports: Arc<Imports>,
}

impl Tasks {
    /// With what all kinds of work share, and so many bytes of memory for the files that imports have in hand.
    pub fn new(worker: Worker, import_files_bytes: u64) -> Self {
        Self { worker, imports: Arc::new(Imports::new(import_files_bytes)) }
    }
}

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
        let worker = &self.worker;
        let outcome = match task.kind {
            TaskKind::Action => action::run(worker, task, lease).await,
            TaskKind::Rendition => rendition::run(worker, task, lease).await,
            TaskKind::Import => import::run(worker, &self.imports, task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let worker = &self.worker;
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
