//! The rows that the completion of a job locks and ends.

use std::collections::HashSet;
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

/// Size of the largest canvas whose job is completed together with others, in nodes and in bytes. The completion reads all of it.
const TOGETHER_NODES_MAX: i32 = 500;
const TOGETHER_BYTES_MAX: i64 = 1024 * 1024;

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
    /// Its revision before the end.
    pub revision: String,
    /// Role of the job's account; `None`: it may no longer read the canvas.
    pub role: Option<AccessRole>,
}

impl JobCanvas {
    /// Whether the job's account may still write to the canvas.
    pub fn is_writable(&self) -> bool {
        self.role.is_some_and(AccessRole::may_write)
    }
}

/// A row of [`lock`] or [`lock_all`].
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
    role: Option<String>,
    storage_max: Option<i64>,
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
            storage_max: self.storage_max,
            canvas: match (self.key, owner, self.revision) {
                (Some(key), Some(owner), Some(revision)) => Some(JobCanvas { key, owner, revision, role }),
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

/// Locks the account that paid for the job, then the canvas, then the job. Each is read after the previous lock was
/// obtained; the role is read and locked the same way. The condition on `account` is always true: it makes the account's
/// lock the first also where there is no canvas. The storage quota is read as of the start of the statement: a quota that
/// is set meanwhile applies to the next job. `None`: there is no such job.
#[tracing::instrument(skip_all, name = "db.job.lock")]
pub async fn lock(conn: &mut PgConnection, id: JobId) -> Result<Option<LockedJob>> {
    let locked = sqlx::query_as!(
        LockRow,
        r#"WITH account AS MATERIALIZED (
               SELECT uid FROM accounts
               WHERE uid = (SELECT account_uid FROM jobs WHERE id = $1 AND credit_cost > 0) FOR NO KEY UPDATE
           ), canvas AS MATERIALIZED (
               SELECT key, owner_uid, revision FROM canvases
               WHERE key = (SELECT canvas_key FROM jobs WHERE id = $1) AND (SELECT count(*) FROM account) >= 0
               FOR UPDATE
           )
           SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.request AS "request: _", j.recipe_run,
                  j.canvas_sequence, j.remove_targets, j.credit_cost, now()::timestamptz(3) AS "now!", t.surface, t.label, c.key AS "key?",
                  c.owner_uid AS "owner_uid?", c.revision AS "revision?",
                  CASE WHEN c.owner_uid = j.account_uid THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = j.account_uid
                       FOR SHARE)
                  END AS role,
                  (SELECT storage_max FROM accounts WHERE uid = coalesce(c.owner_uid, j.account_uid)) AS storage_max
           FROM jobs j JOIN tokens t ON t.id = j.token_id LEFT JOIN canvas c ON true
           WHERE j.id = $1 FOR NO KEY UPDATE OF j"#,
        id.0
    );
    locked.fetch_optional(conn).await?.map(LockRow::job).transpose()
}

/// Of these jobs, those whose completion may be written together with others: it locks nothing but task, canvas, job and output,
/// and its canvas is small. Left out are steps of Recipe runs, jobs that cost credit, jobs without a canvas, and results that count
/// against a quota. `storage_max` is the quota of an account without its own; 0: no limit.
#[tracing::instrument(skip_all, name = "db.job.completable_together")]
pub async fn completable_together(conn: &mut PgConnection, ids: &[JobId], storage_max: i64) -> Result<HashSet<JobId>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = sqlx::query_scalar!(
        "SELECT j.id FROM unnest((SELECT $1::uuid[])) AS asked (id)
         CROSS JOIN LATERAL (
             SELECT id, canvas_key FROM jobs
             WHERE id = asked.id AND credit_cost = 0 AND recipe_run IS NULL AND NOT remove_targets LIMIT 1
         ) j
         CROSS JOIN LATERAL (
             SELECT owner_uid FROM canvases WHERE key = j.canvas_key AND node_count <= $2 AND graph_bytes <= $3 LIMIT 1
         ) c
         CROSS JOIN LATERAL (SELECT storage_max FROM accounts WHERE uid = c.owner_uid LIMIT 1) a
         WHERE coalesce(a.storage_max, $4) = 0",
        &ids,
        TOGETHER_NODES_MAX,
        TOGETHER_BYTES_MAX,
        storage_max,
    );
    Ok(found.fetch_all(conn).await?.into_iter().map(JobId).collect())
}

/// The canvas that a job of this account writes to and its serialized size, if it is too large for [`completable_together`].
/// `lease_token`: the current lease of the job's task, or `None` if no worker holds one. The result is `None` for any other lease.
#[tracing::instrument(skip_all, name = "db.job.large_canvas")]
pub async fn large_canvas(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    lease_token: Option<Uuid>,
) -> Result<Option<(CanvasHandle, i64)>> {
    let found = sqlx::query!(
        "SELECT c.owner_uid, c.id, c.graph_bytes FROM jobs j JOIN canvases c ON c.key = j.canvas_key
         WHERE j.id = $1 AND j.account_uid = $2 AND (c.node_count > $3 OR c.graph_bytes > $4)
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = j.id AND t.lease_token IS NOT DISTINCT FROM $5)",
        id.0,
        account.as_str(),
        TOGETHER_NODES_MAX,
        TOGETHER_BYTES_MAX,
        lease_token,
    );
    Ok(found.fetch_optional(conn).await?.map(|canvas| {
        let owner = AccountUid::from_stored(canvas.owner_uid);
        (CanvasHandle { owner, id: CanvasId::from_stored(canvas.id) }, canvas.graph_bytes)
    }))
}

/// [`lock`] for several jobs that are [completable together](completable_together), without waiting: jobs that are locked already,
/// or whose canvas is, are left out. Of the jobs on one canvas, one is locked.
#[tracing::instrument(skip_all, name = "db.job.lock_all")]
pub async fn lock_all(conn: &mut PgConnection, ids: &[JobId]) -> Result<Vec<LockedJob>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let locked = sqlx::query_as!(
        LockRow,
        r#"WITH chosen AS MATERIALIZED (
               SELECT DISTINCT ON (canvas_key) id, canvas_key FROM jobs
               WHERE id = ANY((SELECT $1::uuid[])::uuid[]) AND canvas_key IS NOT NULL
               ORDER BY canvas_key, id
           ), canvas AS MATERIALIZED (
               SELECT key, owner_uid, revision FROM canvases
               WHERE key = ANY(ARRAY(SELECT canvas_key FROM chosen)) FOR UPDATE SKIP LOCKED
           ), job AS MATERIALIZED (
               SELECT * FROM jobs
               WHERE id = ANY(ARRAY(SELECT id FROM chosen WHERE canvas_key IN (SELECT key FROM canvas)))
               FOR NO KEY UPDATE SKIP LOCKED
           )
           SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.request AS "request: _", j.recipe_run,
                  j.canvas_sequence, j.remove_targets, j.credit_cost, now()::timestamptz(3) AS "now!", t.surface, t.label, c.key AS "key?",
                  c.owner_uid AS "owner_uid?", c.revision AS "revision?",
                  CASE WHEN c.owner_uid = j.account_uid THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = c.key AND s.account_uid = j.account_uid
                       FOR SHARE)
                  END AS role,
                  (SELECT storage_max FROM accounts WHERE uid = c.owner_uid) AS storage_max
           FROM job j JOIN canvas c ON c.key = j.canvas_key
           CROSS JOIN LATERAL (SELECT surface, label FROM tokens WHERE id = j.token_id LIMIT 1) t"#,
        &ids,
    );
    locked.fetch_all(conn).await?.into_iter().map(LockRow::job).collect()
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
pub async fn end(conn: &mut PgConnection, id: JobId, end: &JobEnd<'_>) -> Result<Record> {
    let mut records = end_all(conn, &[(id, *end)]).await?;
    records.pop().ok_or_else(|| sqlx::Error::RowNotFound.into())
}

/// [`end`] for several jobs. The order of the records is not defined.
#[tracing::instrument(skip_all, name = "db.job.end")]
pub async fn end_all(conn: &mut PgConnection, ends: &[(JobId, JobEnd<'_>)]) -> Result<Vec<Record>> {
    fn column<'a, T>(ends: &[(JobId, JobEnd<'a>)], of: impl Fn(JobId, &JobEnd<'a>) -> T) -> Vec<T> {
        ends.iter().map(|(id, end)| of(*id, end)).collect()
    }
    let rows = sqlx::query_as!(
        JobRow,
        r#"WITH ended AS (
               SELECT * FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::jsonb[]), (SELECT $4::text[]),
                                    (SELECT $5::text[]), (SELECT $6::float8[]), (SELECT $7::uuid[]))
                   AS e (id, status, outcome, reason, revision, retention, video)
           ), written AS (
               UPDATE jobs SET status = e.status, version = version + 1, outcome = e.outcome, cancel_reason = e.reason,
                      canvas_revision = coalesce(e.revision, canvas_revision), completed_at = now(), updated_at = now(),
                      retain_until = now() + make_interval(secs => e.retention), video_blob = e.video
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
        &column(ends, |_, end| end.outcome.video.as_ref().map(|video| video.blob_key)) as &[Option<Uuid>],
    );
    rows.fetch_all(conn).await?.into_iter().map(JobRow::record).collect()
}
