//! Video jobs: one video each, made by one model and served by the job itself
//! (docs/reference/videos.md).
//!
//! **Guarantee.** Every job ends, and its credit is settled then. No video is paid for twice
//! ([`worker::generation`]).
//!
//! **Mechanism.** One run of the task advances the job by one step ([`run`]) and reschedules the
//! task for the next step. While a provider works on the video, many such jobs are polled together
//! ([`watch`]). The embedded runtime makes its videos in a decoder ([`embedded`]). A video is
//! stored as it arrives ([`keep`]) and becomes visible in one transaction ([`end`]). After a crash
//! before that transaction, it is fetched or made again, which costs nothing.

mod embedded;
mod end;
mod images;
mod keep;
mod run;
mod watch;

use std::sync::Arc;

use decoder::Kind;
use domain::message::TaskKind;
use taskqueue::{Handler, HandlerResult, Lease, Task};
use worker::generation::Generator;
use worker::{Error, wait_out};

use watch::Watch;

/// What decoders do for this worker alone.
pub fn decoder_kinds() -> [Kind; 1] {
    [Kind::of::<embedded::Film>()]
}

/// Runs video jobs. Clones share everything.
#[derive(Clone)]
pub struct Videos {
    generator: Generator,
    watch: Arc<Watch>,
}

impl Videos {
    /// Creates the handler from what all jobs that run models need. Also returns the worker of the
    /// shared statements, which the caller must run; it ends with the last clone.
    pub fn new(generator: Generator) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (watch, work) = Watch::new(&generator.worker);
        (Self { generator, watch: Arc::new(watch) }, work)
    }
}

impl Handler for Videos {
    async fn run(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let outcome = match task.kind {
            TaskKind::Video => self.step(task, lease).await,
            kind => Err(Error::WrongQueue(kind)),
        };
        wait_out(task, outcome)
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> HandlerResult {
        let outcome = match task.kind {
            TaskKind::Video => self.generator.worker.give_up(task, lease).await,
            // Nothing waits for this task here, and no retry would help.
            _ => self.generator.worker.settle(task, lease).await,
        };
        wait_out(task, outcome)
    }
}
