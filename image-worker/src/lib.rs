//! The image-worker: everything that touches pixels, and the sweeping of what it leaves behind.
//!
//! It takes tasks of three queues (spine). Of `image`: an Image Action is a job of an account ([`jobs`] drives it, [`actions`]
//! computes it), a rendition is a smaller copy of a picture that somebody wants to look at, an import brings pictures out of the
//! network ([`gallery`] says which of a page). Of `generation`: an image job whose pictures a model makes
//! ([`jobs::generation`]), which mostly waits; so this queue has a runner and many slots of its own, and neither holds up the
//! other. Of `recipe`: the steps of a Recipe run, whose pictures are image jobs. Pictures are decoded here and nowhere else, on threads of their own and within a budget of memory ([`pixels`]).
//!
//! Retention: jobs of kinds `action` and `image` and blobs are this process's to sweep ([`sweep`]); any number of
//! replicas may do so at once.

pub mod actions;
pub mod gallery;
pub mod jobs;
pub mod outline;
pub mod pixels;
pub mod sweep;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use db::jobs::Windows;
use domain::message::Queue;
use egress::{AllowList, Client, ClientConfig, Guard};
use providers::{Calls, Setup, SetupError};
use service::config::Config;
use service::probes::watch_component;
use spine::{BootError, Process, RunnerOptions};

use tokio::sync::Semaphore;

use jobs::generation::{Generator, Memory, Settings};
use jobs::{IMPORTS_MAX, Worker};
use pixels::Pixels;
use sweep::Sweeper;

/// The name of the process.
pub const NAME: &str = "canvas-image-worker";

/// Tasks in hand for each thread of pixel work, besides imports, so that some load and store while others compute.
const SLOTS_PER_THREAD: usize = 2;

/// Recipe runs in hand at once. A turn takes milliseconds, and what waits for a picture is parked.
const RECIPE_SLOTS: usize = 8;

/// A run of an image job altogether: the slowest call, a submit whose answer is the picture, and the time around it. A run
/// that is dropped leaves the outcome of its submit unknown.
const GENERATION_LIMIT: Duration = Duration::from_secs(900);

/// How long every thread for pixels may be held by work that was given up before the process is restarted: longer than the
/// largest picture takes.
const STUCK_PATIENCE: Duration = Duration::from_secs(60);

/// Every thread for pixels is held by work that does not end.
#[derive(Debug, thiserror::Error)]
#[error("every thread for pixels is held by work that was given up")]
struct Stuck;

/// Runs the process until it is told to stop.
///
/// # Errors
/// [`BootError`] when it cannot start.
pub async fn run(config: Config) -> Result<ExitCode, BootError> {
    let store = match blob::Store::open(config.blob_url.as_str()) {
        Ok(store) => store,
        Err(error) => return Ok(refuse("CANVAS_BLOB_URL", &error)),
    };
    let cache = match cache::Cache::connect(config.redis_url.expose(), cache::PREFIX) {
        Ok(cache) => cache,
        Err(error) => return Ok(refuse("CANVAS_REDIS_URL", &error)),
    };
    let (setup, client) = match (setup(&config), client(&config)) {
        (Ok(setup), Ok(client)) => (setup, client),
        (Err(error), _) => return Ok(refuse_line(&chain(&error))),
        (_, Err(problem)) => return Ok(refuse_line(&problem)),
    };
    let windows = windows(&config);
    let process = Process::start(NAME, config).await?;
    let config = process.config();
    let threads = available_parallelism().map_or(1, usize::from);
    let pixels = Pixels::new(threads, config.image_memory_bytes);
    let worker = Worker {
        pool: process.pool().clone(),
        blobs: store.clone(),
        cache,
        nudge: process.nudge(),
        pixels: pixels.clone(),
        egress: client,
        imports: Arc::new(Semaphore::new(IMPORTS_MAX)),
        public_url: config.public_url.clone(),
        windows,
    };
    let sweeper =
        Sweeper { pool: process.pool().clone(), blobs: store.clone(), public_url: config.public_url.clone(), windows };
    let interval = config.sweep;
    watch_store(&process, &store);
    process.spawn("pixel threads", |stop| async move {
        match stop.run_until_cancelled(pixels.stuck(STUCK_PATIENCE)).await {
            Some(()) => Err(Stuck),
            None => Ok(()),
        }
    });
    process.spawn("sweeper", |stop| sweeper.run(interval, stop));
    let generator = Generator {
        worker: worker.clone(),
        keys: config.master_keys.clone(),
        setup,
        calls: Calls::new(usize::try_from(config.provider_concurrency).unwrap_or(usize::MAX)),
        memory: Memory::new(config.generation_memory_bytes),
        settings: Settings::default(),
    };
    let slots = config.generation_slots;
    let options = process.runner_options(Queue::Generation, slots);
    process.work(RunnerOptions { slots, run_limit: GENERATION_LIMIT, ..options }, generator);
    process.work(process.runner_options(Queue::Recipe, RECIPE_SLOTS), worker.clone());
    process.work(process.runner_options(Queue::Image, threads * SLOTS_PER_THREAD + IMPORTS_MAX), worker);
    Ok(process.finish().await)
}

/// Reports whether the object store answers: nothing can be worked on without it.
fn watch_store(process: &Process, store: &blob::Store) {
    let (store, handle) = (store.clone(), process.readiness().component("object store", true));
    let check = move || {
        let store = store.clone();
        async move { store.check().await.map_err(|error| error.to_string()) }
    };
    let lifecycle = process.lifecycle();
    lifecycle.spawn_support("object store watch", watch_component(handle, check, lifecycle.aborted()));
}

/// The configured retention of jobs.
fn windows(config: &Config) -> Windows {
    Windows {
        unread: config.retention_unread,
        finalized: config.retention_finalized,
        tombstone: config.retention_tombstone,
        failed: config.retention_failed,
        video: config.retention_video,
    }
}

/// The models, and what runs the managed ones.
fn setup(config: &Config) -> Result<Setup, SetupError> {
    Setup::load(providers::Settings {
        catalogue: config.model_catalogue.as_deref(),
        url: config.managed_url.as_ref(),
        protocol: &config.managed_protocol,
        key: config.managed_key.as_ref().map(|key| key.expose()),
    })
}

/// The way out that is configured; otherwise one line that names the variable.
fn client(config: &Config) -> Result<Client, String> {
    let read =
        |path: &Path| std::fs::read(path).map_err(|error| format!("CANVAS_EGRESS_CA_FILE: cannot be read: {error}"));
    let allow = AllowList::parse(&config.egress_allow).map_err(|error| format!("CANVAS_EGRESS_ALLOW: {error}"))?;
    let extra_ca_pem = config.egress_ca_file.as_deref().map(read).transpose()?;
    Client::new(ClientConfig { guard: Guard::new(allow), extra_ca_pem })
        .map_err(|error| format!("CANVAS_EGRESS_CA_FILE: {error}"))
}

/// Says in one line which variable is wrong; never its value, which can carry a password.
fn refuse(variable: &str, error: &dyn std::error::Error) -> ExitCode {
    refuse_line(&format!("{variable}: {error}"))
}

fn refuse_line(line: &str) -> ExitCode {
    eprintln!("{NAME}: {line}");
    ExitCode::FAILURE
}

/// An error with what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}
