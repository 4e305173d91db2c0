//! The video-worker: the process behind the queue `video`.
//!
//! It makes the videos of accounts' jobs ([`jobs`]), by the embedded runtime ([`animatic`]) or by asking a provider. A job
//! that waits for a provider holds no slot; films are made on threads of their own and within a budget of memory
//! ([`budget`]). What becomes of old jobs and blobs is the image-worker's to sweep.

pub mod animatic;
pub mod budget;
pub mod jobs;

use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use db::jobs::Windows;
use domain::message::Queue;
use egress::{AllowList, Client, ClientConfig, Guard};
use providers::{Calls, Setup, SetupError};
use service::config::Config;
use service::probes::watch_component;
use spine::{BootError, Process, RunnerOptions};

use budget::{Memory, Pixels};
use jobs::{Settings, Worker};

/// Name of the process.
pub const NAME: &str = "canvas-video-worker";
/// What it is, in a line.
pub const ABOUT: &str = "makes videos";

/// A run of a video job altogether: the longest film on a slow machine, or the slowest call and the time around it. A run that
/// is dropped leaves the outcome of its submit unknown.
const RUN_LIMIT: Duration = Duration::from_secs(900);

/// Boots and works until the process is told to stop.
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
    let (setup, egress) = match (setup(&config), client(&config)) {
        (Ok(setup), Ok(client)) => (setup, client),
        (Err(error), _) => return Ok(refuse_line(&chain(&error))),
        (_, Err(problem)) => return Ok(refuse_line(&problem)),
    };
    let windows = windows(&config);
    let process = Process::start(NAME, config).await?;
    let config = process.config();
    watch_store(&process, &store);
    let worker = Worker {
        pool: process.pool().clone(),
        blobs: store,
        cache,
        nudge: process.nudge(),
        pixels: Pixels::new(available_parallelism().map_or(1, usize::from), config.image_memory_bytes),
        memory: Memory::new(config.generation_memory_bytes),
        egress,
        keys: config.master_keys.clone(),
        setup,
        calls: Calls::new(usize::try_from(config.provider_concurrency).unwrap_or(usize::MAX)),
        settings: Settings::default(),
        public_url: config.public_url.clone(),
        windows,
    };
    let options = process.runner_options(Queue::Video, config.generation_slots);
    process.work(RunnerOptions { run_limit: RUN_LIMIT, ..options }, worker);
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
