//! Canceling a job: an intent, which ends the job at once when no worker has it, or when its worker is gone and no other one is
//! seen (docs/reliability.md#cancellation).
//!
//! A job that waits for a provider is scheduled, but work on it continues at the provider. Its task is made ready to cancel the
//! provider's run, as far as possible, and to end the job.

use db::tasks::TaskState;
use db::{PgConnection, Result};
use domain::id::{AccountUid, JobId};
use domain::job::{CancelReason, JobStatus, Record};

use super::completion::{Completion, CompletionContext};
use super::end::{Ending, end_locked};

/// Result of a cancel, with the job's current record. The caller commits the transaction in every case.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The job had ended before.
    Unchanged(Box<Record>),
    /// No worker had the job: it is canceled.
    Canceled(Box<Record>),
    /// A worker has the job or its task is made ready, and stops at its next step. A success that is recorded first stands.
    Requested(Box<Record>),
}

/// Cancels the job of `id` if it belongs to `account`; otherwise `None`.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.cancel")]
pub async fn cancel(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    context: &CompletionContext<'_>,
) -> Result<Option<Cancellation>> {
    let tombstone = context.windows.tombstone;
    let Some(record) = db::jobs::get(conn, id, account, tombstone).await? else { return Ok(None) };
    if record.status.is_terminal() {
        return Ok(Some(Cancellation::Unchanged(Box::new(record))));
    }
    let Some(job) = db::jobs::lock(conn, &[id]).await?.pop() else { return Ok(None) };
    // While the row is locked and not leased, no output changes.
    let state = db::tasks::lock(conn, id.0).await?;
    let is_under_way = db::jobs::outputs::are_under_way(conn, id).await?;
    if state == Some(TaskState::Leased) && !is_under_way {
        // Nobody is left to carry out the cancel, and nothing is left to cancel at a provider.
        db::tasks::release_abandoned(conn, id.0, context.worker_silent).await?;
    }
    if matches!(state, Some(TaskState::Ready | TaskState::Scheduled)) && is_under_way {
        if db::tasks::make_ready_to_cancel(conn, id.0).await? {
            context.ready.add(record.request.route().1, id.0);
        }
        db::jobs::transition(conn, id, JobStatus::Canceling).await?;
        let record = db::jobs::get(conn, id, account, tombstone).await?;
        return Ok(record.map(|record| Cancellation::Requested(Box::new(record))));
    }
    match db::tasks::request_cancel(conn, id.0).await? {
        Some(TaskState::Ready | TaskState::Scheduled) => {
            let completion = &Completion::Canceled(CancelReason::UserRequested);
            let ended = end_locked(conn, &[Ending { job: &job, completion, context: *context }]).await?;
            if let Some(record) = ended.and_then(|mut records| records.pop()) {
                return Ok(Some(Cancellation::Canceled(Box::new(record))));
            }
        }
        // A job that is claimed but has not begun counts as running: a worker has its lease.
        Some(TaskState::Leased) => {
            if record.status == JobStatus::Queued {
                db::jobs::transition(conn, id, JobStatus::Running).await?;
            }
            db::jobs::transition(conn, id, JobStatus::Canceling).await?;
        }
        None => {}
    }
    let Some(record) = db::jobs::get(conn, id, account, tombstone).await?.map(Box::new) else { return Ok(None) };
    Ok(Some(if record.status.is_terminal() {
        Cancellation::Unchanged(record)
    } else {
        Cancellation::Requested(record)
    }))
}
