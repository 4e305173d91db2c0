//! The rows that the completion of a job locks and ends.

use std::collections::HashMap;
use std::time::Duration;

use domain::Timestamp;
use domain::account::Surface;
use domain::canvas::{AccessRole, Actor};
use domain::id::{AccountUid, CanvasHandle, CanvasId, JobId};
use domain::job::{CancelReason, JobKind, JobOperation, JobOutcome, JobStatus, Record, Request};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use uuid::Uuid;

use super::row::JobRow;
use crate::Result;
use crate::error::known;

/// Size of the largest canvas that is small, in nodes and in bytes. The end of a job reads and reviews all of it under its lock.
const SMALL_NODES_MAX: i32 = 500;
const SMALL_BYTES_MAX: i64 = 1024 * 1024;

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
    /// The canvas that the job writes to, if it has one that still exists.
    pub canvas: Option<JobCanvas>,
    /// Who started the job.
    pub actor: Actor,
    /// The Recipe run that waits for this job, if the job is a step of one.
    pub recipe_run: Option<RunId>,
    /// Sequence of the canvas's change that accepted the job, or the Recipe run of which it is a step: the nodes that this change
    /// created were made for it.
    pub canvas_sequence: Option<i64>,
    /// `true` if the end deletes those of its targets that were made for it and are still empty.
    pub removes_targets: bool,
}

/// The locked canvas of a job about to end.
#[derive(Clone, Debug)]
pub struct JobCanvas {
    /// Key of the canvas.
    pub key: i64,
    /// Owner of the canvas.
    pub owner: AccountUid,
    /// Its revision before the end.
    pub revision: String,
    /// `true` if it has more than 500 nodes or 1 MiB.
    pub is_large: bool,
    /// Role of the job's account; `None`: it may no longer read the canvas.
    pub role: Option<AccessRole>,
}

impl JobCanvas {
    /// Returns `true` if the job's account may still write to the canvas.
    pub fn is_writable(&self) -> bool {
        self.role.is_some_and(AccessRole::may_write)
    }
}

/// A row of [`lock`].
struct LockRow {
    id: Uuid,
    account_uid: String,
    kind: String,
    operation: String,
    status: String,
    request: Json<Request>,
    recipe_run: Option<Uuid>,
    canvas_sequence: Option<i64>,
    remove_targets: bool,
    credit_cost: i64,
    now: DateTime<Utc>,
    surface: String,
    label: String,
    key: Option<i64>,
    owner_uid: Option<String>,
    revision: Option<String>,
    is_large: Option<bool>,
    role: Option<String>,
}

impl LockRow {
    fn job(self) -> Result<LockedJob> {
        let role = self.role.as_deref().map(|role| known::<AccessRole>("canvas_shares.role", role)).transpose()?;
        let owner = self.owner_uid.map(AccountUid::from_stored);
        Ok(LockedJob {
            id: JobId(self.id),
            status: known("jobs.status", &self.status)?,
            now: self.now.into(),
            kind: known("jobs.kind", &self.kind)?,
            operation: known("jobs.operation", &self.operation)?,
            request: self.request.0,
            reserved: self.credit_cost,
            canvas: match (self.key, owner, self.revision, self.is_large) {
                (Some(key), Some(owner), Some(revision), Some(is_large)) => {
                    Some(JobCanvas { key, owner, revision, is_large, role })
                }
                _ => None,
            },
            actor: Actor {
                owner_uid: AccountUid::from_stored(self.account_uid),
                surface: known::<Surface>("tokens.surface", &self.surface)?,
                label: self.label,
            },
            recipe_run: self.recipe_run.map(RunId),
            canvas_sequence: self.canvas_sequence,
            removes_targets: self.remove_targets,
        })
    }
}

/// Locks the accounts that paid for the jobs, then the canvases, then the jobs, each in the order of its keys. Each is read after the
/// previous locks were obtained; the roles are read and locked the same way. The counts are always true: they make the locks come in
/// this order. Jobs that do not exist are left out.
#[tracing::instrument(skip_all, name = "db.job.lock")]
pub async fn lock(conn: &mut PgConnection, ids: &[JobId]) -> Result<Vec<LockedJob>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    // Sub-selects for the arrays let the plan be reused (see `accounts::authenticate`).
    let locked = sqlx::query_as!(
        LockRow,
        r#"WITH asked AS MATERIALIZED (
               SELECT account_uid, canvas_key, credit_cost FROM jobs WHERE id = ANY((SELECT $1::uuid[])::uuid[])
           ), account AS MATERIALIZED (
               SELECT uid FROM accounts
               WHERE uid = ANY(ARRAY(SELECT account_uid FROM asked WHERE credit_cost > 0)) ORDER BY uid FOR NO KEY UPDATE
           ), canvas AS MATERIALIZED (
               SELECT key, owner_uid, revision, node_count > $2 OR graph_bytes > $3 AS is_large FROM canvases
               WHERE key = ANY(ARRAY(SELECT canvas_key FROM asked)) AND (SELECT count(*) FROM account) >= 0
               ORDER BY key FOR UPDATE
           ), job AS MATERIALIZED (
               SELECT * FROM jobs
               WHERE id = ANY((SELECT $1::uuid[])::uuid[]) AND (SELECT count(*) FROM canvas) >= 0
               ORDER BY id FOR NO KEY UPDATE
           )
           SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.request AS "request: _", j.recipe_run,
                  j.canvas_sequence, j.remove_targets, j.credit_cost, now()::timestamptz(3) AS "now!", t.surface, t.label, c.key AS "key?",
                  c.owner_uid AS "owner_uid?", c.revision AS "revision?", c.is_large AS "is_large?",
                  CASE WHEN c.owner_uid = j.account_uid THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = j.account_uid
                       FOR SHARE)
                  END AS role
           FROM job j
           CROSS JOIN LATERAL (SELECT surface, label FROM tokens WHERE id = j.token_id LIMIT 1) t
           LEFT JOIN canvas c ON c.key = j.canvas_key"#,
        &ids,
        SMALL_NODES_MAX,
        SMALL_BYTES_MAX,
    );
    locked.fetch_all(conn).await?.into_iter().map(LockRow::job).collect()
}

/// The large canvas of a job.
#[derive(Clone, Debug)]
pub struct LargeCanvas {
    /// Handle of the canvas.
    pub canvas: CanvasHandle,
    /// Its serialized size.
    pub bytes: i64,
    /// The request of the job.
    pub request: Request,
}

/// The canvas that a job of this account writes to, if it is [large](JobCanvas::is_large).
/// `lease_token`: the current lease of the job's task, or `None` if no worker holds one. The result is `None` for any other lease.
#[tracing::instrument(skip_all, name = "db.job.large_canvas")]
pub async fn large_canvas(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    lease_token: Option<Uuid>,
) -> Result<Option<LargeCanvas>> {
    let found = sqlx::query!(
        r#"SELECT c.owner_uid, c.id, c.graph_bytes, j.request AS "request: Json<Request>"
           FROM jobs j JOIN canvases c ON c.key = j.canvas_key
           WHERE j.id = $1 AND j.account_uid = $2 AND (c.node_count > $3 OR c.graph_bytes > $4)
             AND EXISTS (SELECT FROM task_queue t WHERE t.id = j.id AND t.lease_token IS NOT DISTINCT FROM $5)"#,
        id.0,
        account.as_str(),
        SMALL_NODES_MAX,
        SMALL_BYTES_MAX,
        lease_token,
    );
    Ok(found.fetch_optional(conn).await?.map(|row| {
        let (owner, id) = (AccountUid::from_stored(row.owner_uid), CanvasId::from_stored(row.id));
        LargeCanvas { canvas: CanvasHandle { owner, id }, bytes: row.graph_bytes, request: row.request.0 }
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

/// Makes locked jobs terminal, and returns their new records, in order.
#[tracing::instrument(skip_all, name = "db.job.end")]
pub async fn end(conn: &mut PgConnection, ends: &[(JobId, JobEnd<'_>)]) -> Result<Vec<Record>> {
    fn column<'a, T>(ends: &[(JobId, JobEnd<'a>)], of: impl Fn(JobId, &JobEnd<'a>) -> T) -> Vec<T> {
        ends.iter().map(|(id, end)| of(*id, end)).collect()
    }
    let rows = sqlx::query_as!(
        JobRow,
        r#"WITH ended AS (
               SELECT * FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::jsonb[]), (SELECT $4::text[]),
                                    (SELECT $5::text[]), (SELECT $6::float8[]), (SELECT $7::uuid[]), (SELECT $8::uuid[]))
                   AS e (id, status, outcome, reason, revision, retention, video, poster)
           ), written AS (
               UPDATE jobs SET status = e.status, version = version + 1, outcome = e.outcome, cancel_reason = e.reason,
                      canvas_revision = coalesce(e.revision, canvas_revision), completed_at = now(), updated_at = now(),
                      retain_until = now() + make_interval(secs => e.retention), video_blob = e.video, video_poster = e.poster
               FROM ended e WHERE jobs.id = e.id AND jobs.id = ANY((SELECT $1::uuid[])::uuid[]) RETURNING jobs.*
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
           )
           SELECT j.id AS "id!", j.account_uid AS "account_uid!", j.kind AS "kind!", j.operation AS "operation!",
                  j.status AS "status!", j.version AS "version!", j.canvas_owner, j.canvas_id, j.canvas_revision,
                  j.request AS "request!: _", j.outcome AS "outcome: _", j.estimated_seconds AS "estimated_seconds!",
                  j.credit_cost AS "credit_cost!", j.progress AS "progress!", j.cancel_reason, j.created_at AS "created_at!",
                  j.updated_at AS "updated_at!", j.queued_at, j.started_at, j.completed_at, j.finalized_at,
                  j.retain_until, extract(epoch FROM now() - j.retain_until)::float8 AS overdue_seconds,
                  CASE WHEN j.kind = 'video' THEN (SELECT o.run ->> 'id' FROM job_outputs o
                                                   WHERE o.job_id = j.id AND o.position = 0) END AS provider_run,
                  d.id AS "delivery_id?", d.status AS "delivery_status?", d.attempts AS "attempts?", d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code
           FROM written j LEFT JOIN LATERAL (SELECT * FROM webhook_deliveries WHERE job_id = j.id LIMIT 1) d ON true"#,
        &column(ends, |id, _| id.0),
        &column(ends, |_, end| end.status.to_string()),
        &column(ends, |_, end| Json(end.outcome)) as _,
        &column(ends, |_, end| end.cancel_reason.map(|reason| reason.as_str().to_owned())) as &[Option<String>],
        &column(ends, |_, end| end.revision.map(str::to_owned)) as &[Option<String>],
        &column(ends, |_, end| end.retention.as_secs_f64()),
        // The file of a video that became an asset belongs to the asset.
        &column(ends, |_, end| end.outcome.video.as_ref().filter(|it| it.asset.is_none()).map(|it| it.blob_key))
            as &[Option<Uuid>],
        &column(ends, |_, end| end.outcome.video.as_ref()?.poster.as_ref().map(|it| it.blob_key)) as &[Option<Uuid>],
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| Ok((JobId(row.id), row.record()?)));
    let mut records = rows.collect::<Result<HashMap<_, _>>>()?;
    ends.iter().map(|(id, _)| records.remove(id).ok_or_else(|| sqlx::Error::RowNotFound.into())).collect()
}
