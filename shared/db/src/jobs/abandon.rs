//! The statements that end a job whose record cannot be read. They read no stored document.

use domain::id::{AccountUid, CanvasHandle, CanvasId, JobId};
use domain::job::{Failure, FailureCode, JobOutcome, JobStatus};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::work::states_before;
use super::{Windows, outputs, settlement};
use crate::{Result, deliveries, tasks};

/// Work that ending a job left to do.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// Key and handle of its canvas, which is locked and whose nodes may still wait for the job.
    pub canvas: Option<(i64, CanvasHandle)>,
    /// The Recipe run that waits for the job.
    pub recipe_run: Option<Uuid>,
}

/// Ends a job as `runtime_failed` under the lease on its task, after locking its account, canvas and itself. `None`: the lease is
/// no longer current, and the caller must roll back.
#[tracing::instrument(skip_all, name = "db.job.abandon")]
pub async fn abandon(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    windows: &Windows,
) -> Result<Option<Abandoned>> {
    let reserved = settlement::hold(conn, id).await?;
    let canvas = sqlx::query!(
        "SELECT key, owner_uid, id FROM canvases WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1) FOR UPDATE",
        id.0
    )
    .fetch_optional(&mut *conn)
    .await?;
    // The fencing check comes before any effect. The job is locked before its task, as the lock order requires.
    sqlx::query!("SELECT FROM jobs WHERE id = $1 FOR NO KEY UPDATE", id.0).fetch_optional(&mut *conn).await?;
    if !tasks::settle(conn, id.0, lease_token).await? {
        return Ok(None);
    }
    let failure = Failure::new(FailureCode::RuntimeFailed, "the work failed repeatedly and was abandoned");
    let outcome = JobOutcome { failure: Some(failure), ..JobOutcome::default() };
    sqlx::query!(
        "WITH ended AS (
             UPDATE jobs SET status = $2, version = version + 1, outcome = $3, completed_at = now(), updated_at = now(),
                    retain_until = now() + make_interval(secs => CASE WHEN kind = 'video' THEN $6::float8 ELSE $4::float8 END)
             WHERE id = $1 AND status = ANY($5)
             RETURNING id, version, status
         )
         INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM ended",
        id.0,
        JobStatus::Failed.as_str(),
        Json(outcome) as _,
        windows.failed.as_secs_f64(),
        &states_before(JobStatus::Failed),
        windows.video.as_secs_f64(),
    )
    .execute(&mut *conn)
    .await?;
    let closed = outputs::close(conn, id, true).await?;
    settlement::settle(conn, id, reserved, 0, closed.orphans).await?;
    deliveries::give_up(conn, id).await?;
    let recipe_run = sqlx::query_scalar!("SELECT recipe_run FROM jobs WHERE id = $1", id.0).fetch_one(conn).await?;
    let canvas = canvas.map(|row| {
        (row.key, CanvasHandle { owner: AccountUid::from_stored(row.owner_uid), id: CanvasId::from_stored(row.id) })
    });
    Ok(Some(Abandoned { canvas, recipe_run }))
}
