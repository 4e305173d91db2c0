//! The image-worker: all work on pixels, and the deletion of expired records and unreferenced
//! blobs.
//!
//! It processes tasks of four queues (`taskqueue`):
//!
//! - `image`: Image Actions, which are jobs of an account ([`jobs`] runs them, [`actions`] computes
//!   them), and renditions, which are smaller copies of images.
//! - `import`: imports of images from the network ([`gallery`] selects those of a page).
//! - `generation`: image jobs, whose images a model makes ([`jobs::generation`]). They mostly wait,
//!   so this queue has a separate runner with many slots. Neither queue delays the other.
//! - `recipe`: the steps of Recipe runs ([`jobs::recipe`]), whose texts may come from a provider.
//!   Their images are made by separate image jobs.
//!
//! The code shared with the video-worker is in `shared/worker`. Foreign images are decoded by children of the process, which
//! run the same program ([`decoder`]).
//!
//! Retention: this process deletes expired jobs of the kinds `action` and `image`, and unreferenced
//! blobs ([`sweep`]). Any number of replicas may do so concurrently.

pub mod gallery;
pub mod jobs;
pub mod sweep;

use std::process::ExitCode;

use decoder::Program;
use domain::limits::UPLOAD_MAX;
use domain::message::Queue;
use service::config::{Config, Part};
use service::shares::Shares;
use taskqueue::{BootError, RunnerOptions};
use worker::Worker;
use worker::generation::{Generator, RUN_LIMIT};

use jobs::generation::Images;
use jobs::recipe::Recipes;
use jobs::{IMPORTS_MAX, Imports, Tasks};
use sweep::Sweeper;

/// The name of the process.
pub const NAME: &str = "canvas-image-worker";

/// Concurrent tasks per pixel thread, so that some load and store while others compute.
const SLOTS_PER_THREAD: usize = 2;

/// Additional concurrent tasks, because the smallest ones wait for the database and the store more
/// than they compute, and because a quarter of all is reserved.
const SLOTS_BEYOND: usize = 12;

/// Divisor of `CANVAS_IMAGE_MEMORY_MIB` that gives the separate budget for files of imports: five
/// of the largest files by default.
const IMPORT_FILES_SHARE: u64 = 4;

/// Runs the process. The future is run in this crate because the crate that runs a future generates
/// its code: otherwise the binary would compile the whole process a second time.
pub fn main() -> ExitCode {
    if let Some(code) = worker::decode::main(jobs::decoder_kinds()) {
        return code;
    }
    taskqueue::main(
        NAME,
        Part::ImageWorker,
        "carries out Image Actions and image generation and makes smaller copies of images",
        run,
    )
}

/// Runs the process until it is stopped.
///
/// # Errors
///
/// [`BootError`] if it cannot start.
async fn run(config: Config) -> Result<ExitCode, BootError> {
    let heif = config.heif_command.as_ref().map(|path| Program::new(decoder::this_program(), path));
    if let Some(program) = &heif {
        program.check().map_err(|error| BootError::Setting(format!("CANVAS_HEIF_COMMAND: {error}").into()))?;
    }
    let setup = worker::setup(&config)?;
    let (process, worker) = worker::start(NAME, config).await?;
    let worker = Worker { heif, ..worker };
    let config = process.config();
    let sweeper = Sweeper {
        pool: worker.pool.clone(),
        blobs: worker.blobs.clone(),
        public_url: worker.public_url.clone(),
        windows: worker.windows,
    };
    let interval = config.sweep;
    process.spawn("sweeper", |stop| sweeper.run(interval, stop));
    let generator = Generator::new(config, worker.clone(), setup);
    let slots = config.generation_slots;
    // `CANVAS_SLOTS` limits pixel work. Work that waits for a provider or for the network has
    // separate limits.
    let patient = |queue| RunnerOptions { slots, run_limit: RUN_LIMIT, ..process.runner_options(queue, slots) };
    let (images, recipes) = (patient(Queue::Generation), patient(Queue::Recipe));
    process.work(images, Images(generator.clone()));
    process.work(recipes, Recipes(generator));
    let files = config.image_memory_bytes / IMPORT_FILES_SHARE;
    // One account has at most three quarters of it, and room for a file.
    let files = Shares::new("import_files", files, (files / 4 * 3).max(UPLOAD_MAX));
    let imports = RunnerOptions { slots: IMPORTS_MAX, ..process.runner_options(Queue::Import, IMPORTS_MAX) };
    process.work(imports, Imports::new(worker.clone(), files));
    let slots = worker.pixels.threads() * SLOTS_PER_THREAD + SLOTS_BEYOND;
    let (tasks, steps) = Tasks::new(worker);
    process.spawn("steps of Actions", |_| steps);
    process.work(process.runner_options(Queue::Image, slots), tasks);
    Ok(process.finish().await)
}
