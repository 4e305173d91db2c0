//! The video-worker: the process behind the queue `video`.
//!
//! No request makes video work yet, so that every task in its queue is one that this build does not understand. It ends
//! such a task, loudly, instead of leaving it to wait for ever.

pub mod animatic;

use std::process::ExitCode;

use db::PgPool;
use domain::message::Queue;
use service::config::Config;
use spine::{BootError, Decision, Handler, Lease, Outcome, Process, Task};

/// Name of the process.
pub const NAME: &str = "canvas-video-worker";
/// What it is, in a line.
pub const ABOUT: &str = "makes videos";

/// Tasks at once: they wait for providers most of the time.
const SLOTS: usize = 16;

/// Boots and works until the process is told to stop.
pub async fn run(config: Config) -> Result<ExitCode, BootError> {
    let process = Process::start(NAME, config).await?;
    let handler = Unknown { pool: process.pool().clone() };
    process.work(process.runner_options(Queue::Video, SLOTS), handler);
    Ok(process.finish().await)
}

/// Ends tasks of kinds that this build does not know.
#[derive(Debug)]
pub struct Unknown {
    /// Where the tasks are.
    pub pool: PgPool,
}

impl Handler for Unknown {
    async fn run(&self, task: &Task, lease: &Lease) -> Outcome {
        tracing::error!("no worker for {} {} in the queue of videos: it is ended", task.kind, task.id);
        let mut conn = self.pool.acquire().await?;
        let settled = db::tasks::settle(&mut conn, task.id, lease.token()).await?;
        Ok(if settled { Decision::Fail { code: "unknown_kind" } } else { Decision::Stale })
    }

    async fn exhausted(&self, task: &Task, lease: &Lease) -> Outcome {
        self.run(task, lease).await
    }
}
