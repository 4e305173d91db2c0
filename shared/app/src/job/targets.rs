//! Removing the targets of a job with the job, and giving up what it owes (docs/reference/jobs.md#remove-targets).

use db::canvases::NewActivity;
use db::jobs::LockedJob;
use db::{PgConnection, Result};
use domain::canvas::ActivityType;
use domain::id::{AccountUid, JobId};

use crate::removal::Removal;

/// Removes the targets that were made for a job of `account` and are still empty: at once if the job has ended, otherwise at its
/// end. Returns whether the canvas changed. Nothing is removed when the account may no longer write to the canvas. What an ended
/// job owes is given up.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.remove_targets")]
pub async fn remove_targets(conn: &mut PgConnection, id: JobId, account: &AccountUid) -> Result<bool> {
    let Some(job) = db::jobs::lock(conn, &[id]).await?.pop().filter(|job| job.actor.owner_uid == *account) else {
        return Ok(false);
    };
    if !job.status.is_terminal() {
        db::jobs::remove_targets_at_end(conn, id).await?;
        return Ok(false);
    }
    let removed = remove_now(conn, &job).await?;
    // A start makes a few targets.
    db::jobs::give_up(conn, id, removed as i16).await?;
    Ok(removed > 0)
}

/// Removes the targets of an ended job, and returns their number.
async fn remove_now(conn: &mut PgConnection, job: &LockedJob) -> Result<usize> {
    let Some(canvas) = job.canvas.as_ref().filter(|canvas| canvas.is_writable()) else { return Ok(0) };
    let is_idle = |node: &domain::graph::Node| node.active_job.is_none();
    let targets = job.request.targets();
    let removal = Removal::find(conn, canvas.key, job.canvas_sequence, targets, is_idle).await?;
    if removal.is_empty() {
        return Ok(0);
    }
    let activity = NewActivity {
        kind: ActivityType::OperationsApplied,
        actor: &job.actor,
        summary: removal.summary(),
        nodes: &[],
    };
    removal.write(conn, canvas.key, &service::random::revision(), (&[], 0), Some(activity)).await?;
    Ok(removal.len())
}
