//! The webhook dispatcher: signs and delivers webhooks, schedules retries, and isolates
//! destinations from each other (docs/reference/webhooks.md#delivery,
//! docs/reliability.md#webhooks).
//!
//! A delivery is a task of the queue `webhook` whose fairness key is its destination. The
//! [runner](taskqueue::Runner) claims tasks fairly among destinations: at most [`CLAIMED_INITIAL`] deliveries
//! of one destination, up to [`CLAIMED_MAX`] while it is fast and [`CLAIMED_MIN`] while it is not, and
//! at most [`account_cap`] of one account. The [`Dispatcher`] makes one attempt, at most
//! [`DESTINATION_CAP`] per destination at once, and settles or reschedules the delivery. A slow or
//! unreachable destination thus occupies a limited number of slots. A delivery that waits for its next
//! attempt occupies none.

mod attempt_outcome;
mod destinations;
mod dispatch;
mod journal;
mod retention;
mod schedule;
mod signature;

use std::process::ExitCode;
use std::time::Duration;

use domain::message::Queue;
use egress::Client;
use providers::Setup;
use service::config::{Config, Part};
use taskqueue::{BootError, Process, RunnerOptions};

pub use destinations::{CLAIMED_INITIAL, CLAIMED_MAX, CLAIMED_MIN, COUNTED_CAP, DESTINATION_CAP};
pub use dispatch::{Dispatcher, Settings};
pub use journal::Journal;
pub use schedule::Backoff;

/// The name of the process.
pub const NAME: &str = "canvas-webhook-dispatcher";
/// Maximum number of claimed deliveries unless `CANVAS_SLOTS` is set. Deliveries mostly wait, so
/// this is far above the number of cores. It is also large enough that a few unreachable
/// destinations do not use up an account's share.
const SLOTS: usize = 256;
/// The time limit of a run: an attempt of 10 s, and the time to count and record it during a
/// restart of the database.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Maximum number of claimed deliveries of one account, over all its destinations, in a process
/// with `slots` slots. It is a quarter of the slots, so that an account whose destinations are all
/// unreachable leaves most slots to others. It is at least enough for two destinations, so that one
/// unreachable destination does not block the account's other ones.
pub const fn account_cap(slots: usize) -> usize {
    let (quarter, least) = (slots / 4, 2 * CLAIMED_INITIAL);
    if quarter > least { quarter } else { least }
}

/// Runs the process. The future is run in this crate because the crate that runs a future generates
/// its code: otherwise the binary would compile the whole process a second time.
pub fn main() -> ExitCode {
    taskqueue::main(NAME, Part::WebhookDispatcher, "delivers signed webhooks", run)
}

/// Starts the dispatcher and runs it until it is stopped.
///
/// # Errors
///
/// [`BootError`] if the process cannot start.
async fn run(config: Config) -> Result<ExitCode, BootError> {
    let allowed = egress::Settings { allow: &config.egress_allow, ca_file: config.egress_ca_file.as_deref() };
    let client = Client::load(allowed).map_err(|error| BootError::Setting(error.into()))?;
    // The dispatcher runs no model and uses no Redis and no object store, and needs no settings of them. A wrong one stops every process
    // alike.
    Setup::load(&config).map_err(|error| BootError::Setting(error.into()))?;
    if let Some(url) = &config.redis_url {
        cache::Cache::check_url(url.expose())
            .map_err(|error| BootError::Setting(format!("CANVAS_REDIS_URL: {error}").into()))?;
    }
    if let Some(url) = &config.blob_url {
        blob::Store::check_url(url.as_str())
            .map_err(|error| BootError::Setting(format!("CANVAS_BLOB_URL: {error}").into()))?;
    }
    let settings = Settings { backoff: Backoff(config.webhook_backoff), ..Settings::default() };
    let (keys, finalized, sweep) = (config.master_keys.clone(), config.retention_finalized, config.sweep);
    let process = Process::start(NAME, config).await?;
    let pool = process.pool().clone();
    let (journal, writing) = Journal::new(pool.clone(), finalized);
    // The writer ends with the dispatcher, which the runner drops after its last attempt.
    process.spawn("journal", |_| writing);
    process.spawn("retention", |stop| retention::run(pool.clone(), sweep, stop));
    let options = process.runner_options(Queue::Webhook, SLOTS);
    let options = RunnerOptions {
        fairness_key_cap: Some(CLAIMED_INITIAL),
        tenant_cap: Some(account_cap(options.slots)),
        run_limit: RUN_LIMIT,
        ..options
    };
    process.work(options, Dispatcher::new(pool, journal, keys, client, settings));
    Ok(process.finish().await)
}
