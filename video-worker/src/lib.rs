//! The video-worker: the process of the queue `video`.
//!
//! It makes the videos of jobs ([`jobs`]) with the embedded runtime ([`embedded::video`]) or by
//! calling a provider. A job that waits for a provider holds no slot. Foreign images are
//! decoded and videos encoded by children of the process, which run the same program ([`decoder`]), within a memory budget. The code shared with the image-worker is in `shared/worker`. The
//! image-worker deletes expired jobs and unreferenced blobs.

pub mod jobs;

use std::process::ExitCode;
use std::time::Duration;

use domain::message::Queue;
use service::config::{Config, Part};
use taskqueue::{BootError, RunnerOptions};
use worker::generation::{Generator, RUN_LIMIT};

use jobs::Videos;

/// The name of the process.
pub const NAME: &str = "canvas-video-worker";

/// Claimed tasks per generation slot. Nearly all claimed tasks are polls, which take a moment and a
/// few kilobytes. Whatever takes more has a separate limit: calls per connection, bytes, pixels.
const LOOKS_PER_SLOT: usize = 8;
/// Polls that become due within this time are made together. It is short compared with their
/// minimum interval of seconds.
const GATHER: Duration = Duration::from_millis(500);

/// Runs the process. The future is run in this crate because the crate that runs a future generates
/// its code: otherwise the binary would compile the whole process a second time.
pub fn main() -> ExitCode {
    if let Some(code) = worker::decode::main(jobs::decoder_kinds()) {
        return code;
    }
    taskqueue::main(NAME, Part::VideoWorker, "makes videos", run)
}

/// Starts the process and works until it is stopped.
///
/// # Errors
///
/// [`BootError`] if it cannot start.
async fn run(config: Config) -> Result<ExitCode, BootError> {
    let setup = worker::setup(&config)?;
    let (process, worker) = worker::start(NAME, config).await?;
    let config = process.config();
    let options = process.runner_options(Queue::Video, config.generation_slots * LOOKS_PER_SLOT);
    let (videos, watching) = Videos::new(Generator::new(config, worker, setup));
    // The watch ends with the handler, which the runner drops after its last run.
    process.spawn("watch", |_| watching);
    process.work(RunnerOptions { run_limit: RUN_LIMIT, gather: GATHER, ..options }, videos);
    Ok(process.finish().await)
}
