//! Video jobs: one video each, made by one model, served by the job itself (specification, VideoJob; decisions 9.5, 9.8, 11).
//!
//! **Guarantee.** Every job ends, and its credit is settled then; no video is paid for twice ([`workshop::generation`]).
//!
//! **Mechanism.** A run of the task takes the job one step further ([`run`]) and parks the task until the next step is due.
//! The embedded runtime films here ([`film`]). A finished video is stored and shown in one transaction ([`end`]): what a crash
//! keeps from that is fetched or filmed again, which costs nothing.

mod end;
mod film;
mod pictures;
mod run;

use domain::message::TaskKind;
use spine::{Handler, Lease, Outcome, Task};
use workshop::generation::Generator;
use workshop::{Error, wait_out};

/// Runs video jobs. Clones share everything.
#[derive(Clone)]
pub struct Videos(pub Generator);

impl Handler for Videos {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Video => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        let outcome = match task.kind {
            TaskKind::Video => self.0.worker.give_up(task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.0.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}
