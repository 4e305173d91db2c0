//! Removing the outputs of a Recipe run with the run (docs/reference/jobs.md#remove-targets).

use db::canvases::NewActivity;
use db::recipe_runs::{Delegation, LockedRun};
use db::{PgConnection, Result};
use domain::canvas::ActivityType;
use domain::id::AccountUid;
use domain::recipe::run::RunId;
use tracing::instrument;

use super::complete::find_empty;

/// Removes the outputs that the start of a run of `account` made and that are still empty: at once if the run has ended, otherwise
/// at its end. Returns whether the canvas changed. Nothing is removed when the account may no longer write to the canvas.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.remove_targets")]
pub async fn remove_targets(conn: &mut PgConnection, id: RunId, account: &AccountUid) -> Result<bool> {
    let Some(record) = db::recipe_runs::get(conn, id, account).await? else { return Ok(false) };
    db::accounts::lock(conn, account).await?;
    // Locks the canvas, also of a run that has ended.
    if let Some(run) = LockedRun::lock(conn, id, None).await? {
        run.remove_targets_at_end(conn).await?;
        return Ok(false);
    }
    let delegation = Delegation::read(conn, id).await?.filter(|delegation| delegation.is_writable);
    let made = db::recipe_runs::made_targets(conn, id).await?;
    let (Some(delegation), Some(made)) = (delegation, made) else { return Ok(false) };
    let Some(canvas_key) = made.canvas_key else { return Ok(false) };
    let removal = find_empty(conn, canvas_key, made.sequence, &record, id).await?;
    if removal.is_empty() {
        return Ok(false);
    }
    let activity = NewActivity {
        kind: ActivityType::OperationsApplied,
        actor: &delegation.actor,
        summary: removal.summary(),
        nodes: &[],
    };
    removal.write(conn, canvas_key, &service::random::revision(), (&[], 0), Some(activity)).await?;
    Ok(true)
}
