//! Video jobs: one video each, made by one model, served by the job itself (specification, VideoJob; decisions 9.5, 9.8, 11).
//!
//! **Guarantee.** Every job ends, and its credit is settled then; no video is paid for twice ([`workshop::generation`]).
//!
//! **Mechanism.** A run of the task takes the job one step further ([`run`]) and parks the task until the next step is due; while
//! a provider works on it, it is one of many that are looked at together ([`watch`]). The embedded runtime films here ([`film`]).
//! A video goes into the store as it comes ([`keep`]) and is shown in one transaction ([`end`]): what a crash keeps from that is
//! fetched or filmed again, which costs nothing.

mod end;
mod film;
mod keep;
mod pictures;
mod run;
mod watch;

use std::sync::Arc;

use domain::message::TaskKind;
use spine::{Handler, Lease, Outcome, Task};
use workshop::generation::Generator;
use workshop::{Error, wait_out};

use watch::Watch;

/// Runs video jobs. Clones share everything.
#[derive(Clone)]
pub struct Videos {
    generator: Generator,
    watch: Arc<Watch>,
}

impl Videos {
    /// With what jobs of models need, and the work behind it, to be run; that ends with the last clone.
    pub fn new(generator: Generator) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (watch, work) = Watch::new(&generator.worker);
        (Self { generator, watch: Arc::new(watch) }, work)
    }
}

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
            TaskKind::Video => self.generator.worker.give_up(task, lease).await,
            // Nobody waits for it here; its record's owner would have to mend it.
            _ => self.generator.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}
