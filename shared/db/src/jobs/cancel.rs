//! Stopping a job: an intent, and its end where nobody works on it (decisions 9.5).
//!
//! A job that waits for a provider is parked, and yet somebody works on it: a worker is woken to stop the provider, as far as
//! it can be stopped, and to end the job.

use domain::id::{AccountUid, JobId};
use domain::job::{CancelReason, JobStatus, Record};
use sqlx::PgConnection;

use super::conclude::Scene;
use super::{Concluded, Ending, Terms, get, outputs, work};
use crate::Result;
use crate::tasks::{self, TaskState};

/// What a cancel came to; each with the record as it is now. The transaction is to be committed in every case, and after
/// `Canceled` the relay nudged.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// It was over already.
    Unchanged(Box<Record>),
    /// Nobody had taken it: it is over.
    Canceled(Box<Record>),
    /// A worker has it, or is woken for it, and will stop at its next step; a success that comes first stands. The relay
    /// is to be nudged.
    Requested(Box<Record>),
}

/// Stops the job of `id` if it is `account`'s; `None` when it is not.
#[tracing::instrument(skip_all, name = "db.job.cancel")]
pub async fn cancel(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    terms: &Terms<'_>,
) -> Result<Option<Cancellation>> {
    let tombstone = terms.windows.tombstone;
    let Some(record) = get(conn, id, account, tombstone).await? else { return Ok(None) };
    if record.status.is_terminal() {
        return Ok(Some(Cancellation::Unchanged(Box::new(record))));
    }
    let Some(scene) = Scene::lock(conn, id).await? else { return Ok(None) };
    // While the row is locked and nobody's, no output changes.
    let waits = matches!(tasks::lock(conn, id.0).await?, Some(TaskState::Ready | TaskState::Parked));
    if waits && outputs::are_under_way(conn, id).await? {
        tasks::wake_to_cancel(conn, id.0).await?;
        work::transition(conn, id, JobStatus::Canceling, None).await?;
        return Ok(get(conn, id, account, tombstone).await?.map(|record| Cancellation::Requested(Box::new(record))));
    }
    match tasks::request_cancel(conn, id.0).await? {
        Some(TaskState::Ready | TaskState::Parked) => {
            let ending = Ending::Canceled(CancelReason::UserRequested);
            if let Concluded::Done(record) = scene.end(conn, ending, terms).await? {
                return Ok(Some(Cancellation::Canceled(record)));
            }
        }
        // Taken but not begun yet counts as running: a worker has it under a lease.
        Some(TaskState::Leased) => {
            if record.status == JobStatus::Queued {
                work::transition(conn, id, JobStatus::Running, None).await?;
            }
            work::transition(conn, id, JobStatus::Canceling, None).await?;
        }
        None => {}
    }
    let Some(record) = get(conn, id, account, tombstone).await?.map(Box::new) else { return Ok(None) };
    Ok(Some(if record.status.is_terminal() {
        Cancellation::Unchanged(record)
    } else {
        Cancellation::Requested(record)
    }))
}
