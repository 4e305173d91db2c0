//! A worker's steps of a job, all conditional on its lease.

use domain::id::JobId;
use domain::job::{JobStatus, Record};
use sqlx::PgConnection;
use uuid::Uuid;

use super::row::{self, JobFilter, JobRow};
use crate::Result;
use crate::blobs::Staged;

/// Begins a job under a lease on its task and sets it `running`: from `queued`, or from `finalizing` when an earlier worker
/// died there. A `running` job is continued, and a `canceling` one stays so; the record shows which. `None`: the lease is no
/// longer current, or the job is gone.
#[tracing::instrument(skip_all, name = "db.job.begin")]
pub async fn begin(conn: &mut PgConnection, id: JobId, lease_token: Uuid) -> Result<Option<Record>> {
    let taken = sqlx::query_as!(
        JobRow,
        r#"WITH written AS (
               UPDATE jobs SET status = 'running', version = version + 1, updated_at = now(),
                      started_at = coalesce(started_at, now())
               WHERE id = $1 AND status = ANY($3)
                 AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)
               RETURNING *
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
        lease_token,
        &states_before(JobStatus::Running),
    );
    if let Some(taken) = taken.fetch_optional(&mut *conn).await? {
        return taken.record().map(Some);
    }
    // Nothing to change, or the lease is not current.
    let held = JobFilter { lease_token: Some(lease_token), ..JobFilter::default() };
    row::read(conn, id, held).await?.map(JobRow::record).transpose()
}

/// Records that the work is done and its result is being made durable. `false` when the lease is no longer current or a cancel
/// came first. Neither prevents the completion, which checks for itself.
#[tracing::instrument(skip_all, name = "db.job.mark_finalizing")]
pub async fn mark_finalizing(conn: &mut PgConnection, id: JobId, lease_token: Uuid) -> Result<bool> {
    advance(conn, id, JobStatus::Finalizing, Some(lease_token)).await
}

/// [`mark_finalizing`] and [`stage`](crate::blobs::stage) for the files of a job's only result, in one statement and thus one
/// commit. Returns whether the job is finalizing now, and where to store each file. The files are staged in any case.
#[tracing::instrument(skip_all, name = "db.job.finalize_and_stage")]
pub async fn finalize_and_stage(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    hashes: &[[u8; 32]],
) -> Result<(bool, Vec<Staged>)> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.to_vec()).collect();
    let keys: Vec<Uuid> = hashes.iter().map(|_| Uuid::now_v7()).collect();
    // Blobs are locked in the order of their keys, as several statements may touch the same ones.
    let rows = sqlx::query!(
        r#"WITH moved AS (
               UPDATE jobs SET status = 'finalizing', version = version + 1, updated_at = now()
               WHERE id = $3 AND status = ANY($4) AND EXISTS (SELECT FROM task_queue t WHERE t.id = $3 AND t.lease_token = $5)
               RETURNING id, version, status
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved
           ), asked AS (
               SELECT * FROM UNNEST($1::bytea[], $2::uuid[]) WITH ORDINALITY AS a (sha256, key, position)
           ), found AS (
               SELECT a.position, b.key, b.touched_at >= now() - interval '1 hour' AS is_fresh
               FROM asked a JOIN blobs b ON b.sha256 = a.sha256 AND b.state = 'stored'
           ), held AS MATERIALIZED (
               SELECT key FROM blobs WHERE key IN (SELECT key FROM found WHERE NOT is_fresh) AND state = 'stored'
               ORDER BY key FOR NO KEY UPDATE
           ), touched AS (
               UPDATE blobs SET touched_at = now() WHERE key IN (SELECT key FROM held) RETURNING key
           ), existing AS (
               SELECT position, key FROM found WHERE is_fresh OR key IN (SELECT key FROM touched)
           ), made AS (
               INSERT INTO blobs (key) SELECT key FROM asked WHERE position NOT IN (SELECT position FROM existing)
           )
           SELECT coalesce(e.key, a.key) AS "key!", e.key IS NOT NULL AS "existing!", EXISTS (SELECT FROM moved) AS "moved!"
           FROM asked a LEFT JOIN existing e USING (position) ORDER BY a.position"#,
        &hashes,
        &keys,
        id.0,
        &states_before(JobStatus::Finalizing),
        lease_token,
    );
    let rows = rows.fetch_all(conn).await?;
    let moved = rows.iter().any(|row| row.moved);
    Ok((moved, rows.into_iter().map(|row| Staged::read(row.key, row.existing)).collect()))
}

/// Records a video's progress in percent, below 100, which means success. Progress never decreases. `false` when it did not
/// increase, the lease is no longer current or the job is not running.
#[tracing::instrument(skip_all, name = "db.job.note_progress")]
pub async fn note_progress(conn: &mut PgConnection, id: JobId, lease_token: Uuid, percent: f64) -> Result<bool> {
    let Some(percent) = unfinished_percent(percent) else { return Ok(false) };
    let done = sqlx::query!(
        "UPDATE jobs SET progress = $3, version = version + 1, updated_at = now()
         WHERE id = $1 AND kind = 'video' AND status IN ('running', 'finalizing') AND progress < $3
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        id.0,
        lease_token,
        percent,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Progress of unfinished work, whatever a provider reports; `None` when that is not a number.
pub(super) fn unfinished_percent(reported: f64) -> Option<f64> {
    /// The highest progress of unfinished work.
    const FURTHEST: f64 = 99.0;
    reported.is_finite().then(|| reported.clamp(0.0, FURTHEST))
}

/// Whether a cancel of the job was requested, according to the record. Its worker may not know yet.
#[tracing::instrument(skip_all, name = "db.job.is_canceling")]
pub async fn is_canceling(conn: &mut PgConnection, id: JobId) -> Result<bool> {
    let canceling = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM jobs WHERE id = $1 AND status = 'canceling') AS "canceling!""#,
        id.0
    );
    Ok(canceling.fetch_one(conn).await?)
}

/// The states from which a job may go to `next`.
pub(super) fn states_before(next: JobStatus) -> Vec<String> {
    JobStatus::ALL.iter().filter(|status| status.may_become(next)).map(ToString::to_string).collect()
}

/// Moves a locked job to an unfinished state that may follow its present one. Returns whether it took effect.
#[tracing::instrument(skip_all, name = "db.job.transition")]
pub async fn transition(conn: &mut PgConnection, id: JobId, next: JobStatus) -> Result<bool> {
    advance(conn, id, next, None).await
}

/// Like [`transition`]; with a lease, only while that is current.
async fn advance(conn: &mut PgConnection, id: JobId, next: JobStatus, lease_token: Option<Uuid>) -> Result<bool> {
    let done = sqlx::query!(
        "WITH moved AS (
             UPDATE jobs SET status = $2, version = version + 1, updated_at = now(),
                    started_at = CASE WHEN $2 = 'running' THEN coalesce(started_at, now()) ELSE started_at END
             WHERE id = $1 AND status = ANY($3)
               AND ($4::uuid IS NULL OR EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $4))
             RETURNING id, version, status
         )
         INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved",
        id.0,
        next.as_str(),
        &states_before(next),
        lease_token,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
