//! The end of a Recipe run whose record cannot be read.
//!
//! **Guarantee.** Every task ends: a run whose plan or outputs [`complete`](super::complete) cannot decode is ended here without
//! reading them. **Left out**: activity, review and webhook event, which are made from the record. A delivery that waits for the
//! event fails.

use db::ledger::Unused;
use db::recipe_runs::LockedRun;
use db::{PgConnection, Result};
use domain::id::JobId;
use domain::job::JobStatus;
use domain::recipe::run::{RunFailure, RunId, RunStatus};
use tracing::instrument;
use uuid::Uuid;

use crate::job::{self, CompletionContext};
use crate::target;

/// Fails a run under the lease on its task, cancels its jobs, frees its nodes and returns its credit. Returns the run as it was
/// locked. `None`: the run has ended already, or the lease is no longer current, and the caller must roll back.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.abandon")]
pub async fn abandon(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    failure: RunFailure,
    context: &CompletionContext<'_>,
) -> Result<Option<LockedRun>> {
    let Some(account) = db::recipe_runs::account_of(conn, id).await? else { return Ok(None) };
    db::accounts::lock(conn, &account).await?;
    let Some(run) = LockedRun::lock(conn, id, Some(lease_token)).await? else { return Ok(None) };
    if !db::tasks::settle(conn, id.0, lease_token).await? {
        return Ok(None);
    }
    for job in run.unfinished_jobs(conn).await? {
        // A savepoint: a cancel that fails halfway has already deleted the job's task.
        let mut attempt = db::pool::begin_on(conn).await?;
        match job::cancel(&mut attempt, job, &account, context).await {
            // A job that cannot be ended like this keeps its task, and ends by itself.
            Err(error) if error.is_unreadable() => drop(attempt),
            canceled => {
                canceled?;
                db::pool::commit(attempt).await?;
            }
        }
    }
    let unspent = run.end(conn, RunStatus::Failed, Some(failure)).await?;
    db::ledger::give_back(conn, &account, Unused::of_run(id, unspent)).await?;
    if let Some(canvas_key) = run.canvas_key {
        target::release_all(conn, canvas_key, id.0, JobStatus::Canceled).await?;
    }
    db::deliveries::give_up(conn, JobId(id.0)).await?;
    Ok(Some(run))
}
