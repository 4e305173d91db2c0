//! The rows that the completion of a job locks and ends.

use std::time::Duration;

use domain::Timestamp;
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor};
use domain::id::{AccountUid, JobId};
use domain::job::{CancelReason, JobKind, JobOperation, JobOutcome, JobStatus, Record, Request};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::Json;

use super::row::JobRow;
use crate::Result;
use crate::error::known;

/// A job about to end, with its account, its canvas and itself locked.
#[derive(Clone, Debug)]
pub struct LockedJob {
    /// Id of the job.
    pub id: JobId,
    /// Status of the job before its end.
    pub status: JobStatus,
    /// Time of the transaction, as it is stored as the time of the end.
    pub now: Timestamp,
    /// Kind of the job.
    pub kind: JobKind,
    /// Operation of the job.
    pub operation: JobOperation,
    /// The request, resolved and normalized.
    pub request: Request,
    /// Credits reserved for the job. The account's row is locked if there are any.
    pub reserved: i64,
    /// Storage quota in bytes of the account that will own the results; 0: no limit; `None`: the operator's default applies.
    pub storage_max: Option<i64>,
    /// The canvas that the job writes to, if it has one that still exists.
    pub canvas: Option<JobCanvas>,
    /// Who started the job.
    pub actor: Actor,
    /// The Recipe run that waits for this job, if the job is a step of one.
    pub recipe_run: Option<RunId>,
    /// Sequence of the canvas's change that accepted the job, or the Recipe run of which it is a step: the nodes that this change
    /// created were made for it.
    pub canvas_sequence: Option<i64>,
    /// Whether the end deletes those of its targets that were made for it and are still empty.
    pub removes_targets: bool,
}

/// The locked canvas of a job about to end.
#[derive(Clone, Debug)]
pub struct JobCanvas {
    /// Key of the canvas.
    pub key: i64,
    /// Owner of the canvas.
    pub owner: AccountUid,
    /// Role of the job's account; `None`: it may no longer read the canvas.
    pub role: Option<AccessRole>,
}

impl JobCanvas {
    /// Whether the job's account may still write to the canvas.
    pub fn is_writable(&self) -> bool {
        self.role.is_some_and(AccessRole::may_write)
    }
}

/// Locks the account that paid for the job, then the canvas, then the job. Each is read after the previous lock was
/// obtained; the role is read and locked the same way. The condition on `account` is always true: it makes the account's
/// lock the first also where there is no canvas. The storage quota is read as of the start of the statement: a quota that
/// is set meanwhile applies to the next job. `None`: there is no such job.
#[tracing::instrument(skip_all, name = "db.job.lock")]
pub async fn lock(conn: &mut PgConnection, id: JobId) -> Result<Option<LockedJob>> {
    let Some(job) = sqlx::query!(
        r#"WITH account AS MATERIALIZED (
               SELECT uid FROM accounts
               WHERE uid = (SELECT account_uid FROM jobs WHERE id = $1 AND credit_cost > 0) FOR NO KEY UPDATE
           ), canvas AS MATERIALIZED (
               SELECT key, owner_uid FROM canvases
               WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1) AND (SELECT count(*) FROM account) >= 0
               FOR UPDATE
           )
           SELECT j.account_uid, j.kind, j.operation, j.status, j.request AS "request: Json<Request>", j.recipe_run,
                  j.canvas_sequence, j.remove_targets, j.credit_cost, now()::timestamptz(3) AS "now!", t.surface, t.label, c.key AS "key?",
                  c.owner_uid AS "owner_uid?",
                  CASE WHEN c.owner_uid = j.account_uid THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = j.account_uid
                       FOR SHARE)
                  END AS role,
                  (SELECT storage_max FROM accounts WHERE uid = coalesce(c.owner_uid, j.account_uid)) AS storage_max
           FROM jobs j JOIN tokens t ON t.id = j.token_id LEFT JOIN canvas c ON true
           WHERE j.id = $1 FOR NO KEY UPDATE OF j"#,
        id.0
    )
    .fetch_optional(conn)
    .await?
    else {
        return Ok(None);
    };
    let role = job.role.as_deref().map(|role| known::<AccessRole>("canvas_shares.role", role)).transpose()?;
    let owner = job.owner_uid.map(AccountUid::from_stored);
    Ok(Some(LockedJob {
        id,
        status: known("jobs.status", &job.status)?,
        now: job.now.into(),
        kind: known("jobs.kind", &job.kind)?,
        operation: known("jobs.operation", &job.operation)?,
        request: job.request.0,
        reserved: job.credit_cost,
        storage_max: job.storage_max,
        canvas: job.key.zip(owner).map(|(key, owner)| JobCanvas { key, owner, role }),
        actor: Actor {
            owner_uid: AccountUid::from_stored(job.account_uid),
            surface: known::<Surface>("tokens.surface", &job.surface)?,
            label: job.label,
        },
        recipe_run: job.recipe_run.map(RunId),
        canvas_sequence: job.canvas_sequence,
        removes_targets: job.remove_targets,
    }))
}

/// Records that the end of a locked job deletes the targets that were made for it and are still empty.
#[tracing::instrument(skip_all, name = "db.job.remove_targets_at_end")]
pub async fn remove_targets_at_end(conn: &mut PgConnection, id: JobId) -> Result<()> {
    sqlx::query!("UPDATE jobs SET remove_targets = true WHERE id = $1", id.0).execute(conn).await?;
    Ok(())
}

/// How a job ends.
#[derive(Clone, Copy, Debug)]
pub struct JobEnd<'a> {
    /// Terminal status.
    pub status: JobStatus,
    /// Outputs, failure and review.
    pub outcome: &'a JobOutcome,
    /// Why the job was canceled, if it was.
    pub cancel_reason: Option<CancelReason>,
    /// The canvas revision that the end made, if it made one.
    pub revision: Option<&'a str>,
    /// Time until the next retention step of the record.
    pub retention: Duration,
}

/// Makes a locked job terminal and returns its new record.
#[tracing::instrument(skip_all, name = "db.job.end")]
pub async fn end(conn: &mut PgConnection, id: JobId, end: &JobEnd<'_>) -> Result<Record> {
    sqlx::query_as!(
        JobRow,
        r#"WITH written AS (
               UPDATE jobs SET status = $2, version = version + 1, outcome = $3, cancel_reason = $4,
                      canvas_revision = coalesce($5, canvas_revision), completed_at = now(), updated_at = now(),
                      retain_until = now() + make_interval(secs => $6), video_blob = $7
               WHERE id = $1 RETURNING *
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
           )
           SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.version, j.canvas_owner, j.canvas_id, j.canvas_revision,
                  j.request AS "request: _", j.outcome AS "outcome: _", j.estimated_seconds, j.credit_cost, j.progress,
                  j.cancel_reason, j.created_at, j.updated_at, j.queued_at, j.started_at, j.completed_at, j.finalized_at,
                  j.retain_until, extract(epoch FROM now() - j.retain_until)::float8 AS overdue_seconds,
                  CASE WHEN j.kind = 'video' THEN (SELECT o.run ->> 'id' FROM job_outputs o
                                                   WHERE o.job_id = j.id AND o.position = 0) END AS provider_run,
                  d.id AS "delivery_id?", d.status AS "delivery_status?", d.attempts AS "attempts?", d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code
           FROM written j LEFT JOIN webhook_deliveries d ON d.job_id = j.id"#,
        id.0,
        end.status.as_str(),
        Json(end.outcome) as _,
        end.cancel_reason.map(CancelReason::as_str),
        end.revision,
        end.retention.as_secs_f64(),
        end.outcome.video.as_ref().map(|video| video.blob_key)
    )
    .fetch_one(conn)
    .await?
    .record()
}
