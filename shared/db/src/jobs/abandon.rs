//! The end of a job whose record cannot be read.
//!
//! **Guarantee.** Every task has an end: what [`conclude`](super::conclude) cannot decode is ended here by statements that
//! look at no stored document. **What is left out**: activity, review and webhook event, which are made of the record; a delivery
//! that waits for the event fails.

use domain::canvas::Changes;
use domain::id::{JobId, NodeId};
use domain::job::{Failure, FailureCode, JobStatus, Outcome};
use domain::webhook::DeliveryError;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::Terms;
use super::work::states_before;
use super::{outputs, settlement};
use crate::canvases::{self, Change};
use crate::{Result, tasks};

/// Ends a job as `runtime_failed` under the lease on its task, and frees its nodes. `false`: the lease is no longer current,
/// roll back.
#[tracing::instrument(skip_all, name = "db.job.abandon")]
pub async fn abandon(conn: &mut PgConnection, id: JobId, lease_token: Uuid, terms: &Terms<'_>) -> Result<bool> {
    let reserved = settlement::hold(conn, id).await?;
    let canvas_key = sqlx::query_scalar!(
        "SELECT key FROM canvases WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1) FOR UPDATE",
        id.0
    )
    .fetch_optional(&mut *conn)
    .await?;
    // The fence comes before any effect, and the job before its task, in the one order of locks.
    sqlx::query!("SELECT FROM jobs WHERE id = $1 FOR NO KEY UPDATE", id.0).fetch_optional(&mut *conn).await?;
    if !tasks::settle(conn, id.0, lease_token).await? {
        return Ok(false);
    }
    let failure = Failure::new(FailureCode::RuntimeFailed, "the work failed again and again and was given up");
    let outcome = Outcome { failure: Some(failure), ..Outcome::default() };
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
        terms.windows.failed.as_secs_f64(),
        &states_before(JobStatus::Failed),
        terms.windows.video.as_secs_f64(),
    )
    .execute(&mut *conn)
    .await?;
    let closed = outputs::close(conn, id).await?;
    settlement::settle(conn, id, reserved, 0, closed.orphans).await?;
    sqlx::query!(
        "UPDATE webhook_deliveries SET status = 'failed', error_code = $2
         WHERE job_id = $1 AND body IS NULL AND status = 'pending'",
        id.0,
        DeliveryError::FinalizationFailed.as_str(),
    )
    .execute(&mut *conn)
    .await?;
    if let Some(canvas_key) = canvas_key {
        free_nodes(conn, canvas_key, id, terms.revision).await?;
    }
    let recipe_run = sqlx::query_scalar!("SELECT recipe_run FROM jobs WHERE id = $1", id.0).fetch_one(&mut *conn);
    if let Some(run) = recipe_run.await? {
        tasks::wake(conn, run).await?;
    }
    Ok(true)
}

/// Frees the nodes that wait for a job, in a canvas that the transaction holds, and gives the canvas its next revision.
async fn free_nodes(conn: &mut PgConnection, canvas_key: i64, id: JobId, revision: &str) -> Result<()> {
    // `queued`, which the note said since the start, is as long as `failed`: the size of the graph stays.
    let freed = sqlx::query_scalar!(
        r#"UPDATE nodes SET active_job = NULL,
                  server = CASE WHEN json_typeof(server -> 'job') = 'object'
                                THEN jsonb_set(server::jsonb, '{job,status}', to_jsonb($3::text))::json ELSE server END
           WHERE canvas_key = $1 AND active_job = $2 RETURNING id"#,
        canvas_key,
        id.0,
        JobStatus::Failed.as_str(),
    )
    .fetch_all(&mut *conn)
    .await?;
    if freed.is_empty() {
        return Ok(());
    }
    let changed_node_ids = freed.into_iter().map(NodeId::from_stored).collect();
    let change = Change {
        revision,
        title: None,
        nodes_delta: 0,
        connections_delta: 0,
        bytes_delta: 0,
        changes: &Changes { changed_node_ids, ..Changes::default() },
        activity: None,
    };
    canvases::commit_change(conn, canvas_key, &change).await?;
    Ok(())
}
