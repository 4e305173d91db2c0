//! The start of a worker process.

use std::thread::available_parallelism;
use std::time::Duration;

use providers::Setup;
use service::chain;
use service::config::Config;
use service::probes::watch_component;
use spine::{BootError, Process};

use crate::{Pixels, Worker};

/// How long every thread for pixels may be held by work that was given up before the process is restarted: longer than the
/// largest picture takes.
const STUCK_PATIENCE: Duration = Duration::from_secs(60);

/// Every thread for pixels is held by work that does not end.
#[derive(Debug, thiserror::Error)]
#[error("every thread for pixels is held by work that was given up")]
struct Stuck;

/// Boots the process `name` and what its kinds of work share.
///
/// # Errors
/// [`BootError`] when a setting is refused or the process cannot start; neither database, object store nor Redis need be there.
pub async fn start(name: &'static str, config: Config) -> Result<(Process, Worker), BootError> {
    // The variables by name and never by value: a URL can carry a password.
    let blobs = blob::Store::open(config.blob_url.as_str())
        .map_err(|error| BootError::Setting(format!("CANVAS_BLOB_URL: {error}").into()))?;
    let settings = egress::Settings { allow: &config.egress_allow, ca_file: config.egress_ca_file.as_deref() };
    let egress = egress::Client::load(settings).map_err(|error| BootError::Setting(error.into()))?;
    let windows = spine::windows(&config);
    let process = Process::start(name, config).await?;
    let config = process.config();
    // Not before there is a log: that Redis is away is told once.
    let cache = cache::Cache::connect(config.redis_url.expose(), cache::PREFIX)
        .map_err(|error| BootError::Setting(format!("CANVAS_REDIS_URL: {error}").into()))?;
    let threads = available_parallelism().map_or(1, usize::from);
    let pixels = Pixels::new(threads, config.image_memory_bytes);
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
    let worker = Worker {
        pool: process.pool().clone(),
        blobs,
        cache,
        nudge: process.nudge(),
        pixels,
        egress,
        public_url: config.public_url.clone(),
        windows,
        storage_max: config.storage_max,
    };
    Ok((process, worker))
}

/// The models, and what runs the managed ones.
///
/// # Errors
/// [`BootError`] when a setting is refused.
pub fn setup(config: &Config) -> Result<Setup, BootError> {
    Setup::load(config).map_err(|error| BootError::Setting(error.into()))
}

/// Reports whether the object store answers, without which nothing can be worked on, and whether it has room: work is tried
/// again until it has.
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
