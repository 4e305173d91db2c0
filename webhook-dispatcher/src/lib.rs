//! The webhook dispatcher: signs, delivers, schedules, isolates (decisions 15; reliability.md 2, "Webhooks").
//!
//! A delivery is a task of the queue `webhook` whose lane is its destination. The [runner](spine::Runner) claims it, fair
//! between destinations, with never more than [`IN_HAND`] of one destination and never more than [`account_cap`] of one account
//! in hand; the [`Dispatcher`] makes one attempt, never more than [`DESTINATION_CAP`] of one destination at once, and settles or
//! parks it. A destination that is slow or dead thus holds up so many slots and no more, and what waits for a later attempt is
//! parked and costs nothing.

mod batch;
mod dispatch;
mod gate;
mod journal;
mod retention;
mod schedule;
mod signature;
mod verdict;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use domain::message::Queue;
use egress::{AllowList, Client, ClientConfig, Guard};
use service::config::Config;
use spine::{BootError, Process, RunnerOptions};

pub use batch::BatchError;
pub use dispatch::{Dispatcher, Settings};
pub use journal::Journal;
pub use schedule::Backoff;

/// The name of the process.
pub const NAME: &str = "canvas-webhook-dispatcher";
/// Attempts under way to one destination in this process (reliability.md 2).
pub const DESTINATION_CAP: usize = 4;
/// Deliveries of one destination in hand in this process: while some are being sent others are claimed, counted and recorded, many in
/// one commit. With no more in hand than are sent at once a quick receiver would wait for our disk most of the time.
pub const IN_HAND: usize = 4 * DESTINATION_CAP;
/// Attempts under way altogether unless `CANVAS_SLOTS` says otherwise: mostly waiting, so far more than there are cores, and so
/// many that an account's share is not used up by a few dead destinations.
const SLOTS: usize = 256;
/// A run altogether: an attempt of 10 s, and the time to count and to record it while the database restarts.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Attempts under way for one account in a process of `slots`, over all its destinations: a quarter, so that one account whose
/// destinations are all dead, under as many names as it likes, leaves the others most of the slots; and at least two destinations'
/// worth, so that one dead destination never takes what its account's others need.
pub const fn account_cap(slots: usize) -> usize {
    let (quarter, least) = (slots / 4, 2 * IN_HAND);
    if quarter > least { quarter } else { least }
}

/// Boots the dispatcher and runs it until it is stopped.
///
/// # Errors
///
/// [`BootError`] when the process cannot start.
pub async fn run(config: Config) -> Result<ExitCode, BootError> {
    let client = match client(&config) {
        Ok(client) => client,
        Err(problem) => {
            eprintln!("{NAME}: {problem}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let settings = Settings { backoff: Backoff(config.webhook_backoff), ..Settings::default() };
    let (keys, finalized, sweep) = (config.master_keys.clone(), config.retention_finalized, config.sweep);
    let process = Process::start(NAME, config).await?;
    let pool = process.pool().clone();
    let (journal, writing) = Journal::new(pool.clone(), finalized);
    // It ends with the dispatcher, which the runner drops when its last attempt has ended.
    process.spawn("journal", |_| writing);
    process.spawn("retention", |stop| retention::run(pool.clone(), sweep, stop));
    let options = process.runner_options(Queue::Webhook, SLOTS);
    let options = RunnerOptions {
        lane_cap: Some(IN_HAND),
        tenant_cap: Some(account_cap(options.slots)),
        run_limit: RUN_LIMIT,
        ..options
    };
    process.work(options, Dispatcher::new(pool, journal, keys, client, settings));
    Ok(process.finish().await)
}

/// The way out that is configured; otherwise one line that names the variable.
fn client(config: &Config) -> Result<Client, String> {
    let allow = AllowList::parse(&config.egress_allow).map_err(|error| format!("CANVAS_EGRESS_ALLOW: {error}"))?;
    let extra_ca_pem = config.egress_ca_file.as_deref().map(read).transpose()?;
    Client::new(ClientConfig { guard: Guard::new(allow), extra_ca_pem })
        .map_err(|error| format!("CANVAS_EGRESS_CA_FILE: {error}"))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("CANVAS_EGRESS_CA_FILE: cannot be read: {error}"))
}
