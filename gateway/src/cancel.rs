//! Canceling work of any account, for an operator or an administrator, under the same rules as its account
//! (docs/reference/jobs.md#cancel).

use app::job::{Cancellation, CompletionContext};
use db::PgConnection;
use db::audit::{self, Actor, Event};
use db::purge::Active;
use domain::id::JobId;
use domain::job::JobStatus;
use domain::message::ReadyTasks;
use domain::recipe::run::RunId;
use service::config::Config;

/// The result of a cancel.
pub struct Canceled {
    /// The state of the work.
    pub status: String,
    /// The channels on which the cancel is announced; none when nothing has changed.
    pub channels: Vec<String>,
}

/// The public handle of a job or run.
pub fn handle(active: &Active) -> String {
    if active.is_recipe { RunId(active.id).handle() } else { JobId(active.id).job_handle() }
}

/// Cancels a job or run, and writes that into the audit if it changed something. A terminal one keeps its state. `None`: it no longer
/// exists. The caller commits.
pub async fn cancel(
    conn: &mut PgConnection,
    config: &Config,
    actor: &Actor,
    active: &Active,
) -> app::Result<Option<Canceled>> {
    let windows = taskqueue::windows(config);
    // Nobody announces them: idle workers find them.
    let ready = ReadyTasks::new();
    let completion = CompletionContext {
        public_url: &config.public_url,
        windows: &windows,
        traceparent: None,
        ready: &ready,
        worker_silent: config.worker_silent,
        review: None,
    };
    let canceled = if active.is_recipe {
        let run = app::recipe::cancel(conn, RunId(active.id), &active.account, &completion);
        run.await?.map(|(run, is_news)| {
            let channels = if is_news { run.channels() } else { Vec::new() };
            Canceled { status: run.status.to_string(), channels }
        })
    } else {
        let id = JobId(active.id);
        let known = db::jobs::get(conn, id, &active.account, windows.tombstone).await?;
        let is_canceling = known.is_some_and(|job| job.status == JobStatus::Canceling);
        let cancellation = app::job::cancel(conn, id, &active.account, &completion).await?;
        cancellation.map(|cancellation| match cancellation {
            Cancellation::Requested(job) if is_canceling => {
                Canceled { status: job.status.to_string(), channels: Vec::new() }
            }
            Cancellation::Unchanged(job) => Canceled { status: job.status.to_string(), channels: Vec::new() },
            Cancellation::Canceled(job) | Cancellation::Requested(job) => {
                Canceled { status: job.status.to_string(), channels: job.channels() }
            }
        })
    };
    if canceled.as_ref().is_some_and(|canceled| !canceled.channels.is_empty()) {
        let event = Event::WorkCanceled { work: active.id, recipe: active.is_recipe };
        audit::write(conn, actor, Some(&active.account), &event).await?;
    }
    Ok(canceled)
}
