//! Starts a worker process.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use providers::Setup;
use service::account::{CpuUse, FreeWork};
use service::chain;
use service::config::Config;
use service::probes::watch_component;
use taskqueue::{BootError, Process};

use crate::marks::OriginMarks;
use crate::{Pixels, Worker};

/// The time for which all pixel threads may be blocked by abandoned work before the process is restarted. It
/// is longer than the largest image takes.
const STUCK_PATIENCE: Duration = Duration::from_secs(60);

/// All pixel threads are blocked by work that does not end.
#[derive(Debug, thiserror::Error)]
#[error("all pixel threads are blocked by abandoned work")]
struct Stuck;

/// Starts the process `name` with what all its kinds of work share.
///
/// # Errors
///
/// [`BootError`] if a setting is invalid or the process cannot start. The database, the object
/// store and Redis need not be available.
pub async fn start(name: &'static str, config: Config) -> Result<(Process, Worker), BootError> {
    // Errors name the variable and never its value: a URL can contain a password.
    let blobs = blob::Store::open(config.blob_url()?.as_str())
        .map_err(|error| BootError::Setting(format!("CANVAS_BLOB_URL: {error}").into()))?;
    cache::Cache::check_url(config.redis_url()?.expose())
        .map_err(|error| BootError::Setting(format!("CANVAS_REDIS_URL: {error}").into()))?;
    let settings = egress::Settings { allow: &config.egress_allow, ca_file: config.egress_ca_file.as_deref() };
    let egress = egress::Client::load(settings).map_err(|error| BootError::Setting(error.into()))?;
    let windows = taskqueue::windows(&config);
    let process = Process::start(name, config).await?;
    let config = process.config();
    // After logging is set up, so that an unavailable Redis is logged.
    let cache = cache::Cache::connect(config.redis_url()?.expose(), cache::PREFIX)
        .map_err(|error| BootError::Setting(format!("CANVAS_REDIS_URL: {error}").into()))?;
    cache.limit_cpu(config.account_cpu_seconds);
    let threads = available_parallelism().map_or(1, usize::from);
    let pixels = Pixels::new(threads, config.image_memory_bytes, decoder::this_program());
    pixels.check().await.map_err(|error| BootError::Setting(format!("cannot start a decoder: {error}").into()))?;
    watch_store(&process, &blobs);
    process.spawn("pixel threads", {
        let pixels = pixels.clone();
        |stop| async move {
            match stop.run_until_cancelled(pixels.stuck(STUCK_PATIENCE)).await {
                Some(()) => Err(Stuck),
                None => Ok(()),
            }
        }
    });
    let (free_work, mut used) = FreeWork::new();
    process.spawn("processor time", {
        let cache = cache.clone();
        |stop| async move {
            // What is used while the process stops is not debited: work that hangs must not keep it.
            while let Some(Some(CpuUse { account, time })) = stop.run_until_cancelled(used.recv()).await {
                let milliseconds = time.as_micros().div_ceil(1000);
                cache.debit_cpu(&account, u64::try_from(milliseconds).unwrap_or(u64::MAX)).await;
            }
        }
    });
    let worker = Worker {
        pool: process.pool().clone(),
        blobs,
        cache,
        waker: process.waker(),
        reviews: Arc::default(),
        pixels,
        egress,
        public_url: config.public_url.clone(),
        windows,
        upload_metadata: config.upload_metadata.parse().map_err(|error| BootError::Setting(Box::new(error)))?,
        worker_silent: config.worker_silent,
        heif: None,
        marks: OriginMarks(config.origin_marks),
        free_work,
    };
    Ok((process, worker))
}

/// Loads the models and the runtimes of the managed ones.
///
/// # Errors
///
/// [`BootError`] if a setting is invalid.
pub fn setup(config: &Config) -> Result<Setup, BootError> {
    Setup::load(config).map_err(|error| BootError::Setting(error.into()))
}

/// Reports in `/readyz` whether the object store answers, which all work requires, and whether it
/// has free space, without which work is retried.
fn watch_store(process: &Process, store: &blob::Store) {
    let (lifecycle, readiness) = (process.lifecycle(), process.readiness());
    let (answering, handle) = (store.clone(), readiness.component("object store", true));
    let check = move || {
        let store = answering.clone();
        async move { store.check().await.map_err(|error| chain(&error)) }
    };
    lifecycle.spawn_support("object store watch", watch_component(handle, check, lifecycle.aborted()));
    let (writing, handle) = (store.clone(), readiness.component("object store writes", false));
    let check = move || {
        let store = writing.clone();
        async move { store.check_writable().await.map_err(|error| chain(&error)) }
    };
    lifecycle.spawn_support("object store writes watch", watch_component(handle, check, lifecycle.aborted()));
}
