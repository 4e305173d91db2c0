//! A worker's steps of a job, all conditional on its lease.

use std::collections::HashMap;

use domain::id::JobId;
use domain::job::{JobStatus, Record};
use sqlx::PgConnection;
use uuid::Uuid;

use super::row::{self, JobFilter, JobRow};
use crate::Result;
use crate::blobs::Staged;

/// Begins jobs, each under a lease on its task, and sets them `running`: from `queued`, or from `finalizing` when an earlier worker
/// died there. A `running` job is continued, and a `canceling` one stays so; the record shows which. Returns a record for each, in
/// order. `None`: the lease is no longer current, or the job is gone.
#[tracing::instrument(skip_all, name = "db.job.begin")]
pub async fn begin(conn: &mut PgConnection, leased: &[(JobId, Uuid)]) -> Result<Vec<Option<Record>>> {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leased.iter().map(|(id, token)| (id.0, *token)).unzip();
    // Jobs are locked in the order of their ids, as other transactions lock several, too.
    let rows = sqlx::query_as!(
        JobRow,
        r#"WITH held AS MATERIALIZED (
               SELECT id FROM jobs
               WHERE status = ANY((SELECT $3::text[])::text[]) AND id = ANY(ARRAY(
                   SELECT t.id FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[])) AS leased (id, token)
                   JOIN task_queue t ON t.id = leased.id AND t.lease_token = leased.token
                   WHERE t.id = ANY((SELECT $1::uuid[])::uuid[])))
               ORDER BY id FOR NO KEY UPDATE
           ), written AS (
               UPDATE jobs SET status = 'running', version = version + 1, updated_at = now(),
                      started_at = coalesce(started_at, now())
               WHERE id = ANY(ARRAY(SELECT id FROM held)) RETURNING *
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
        &ids,
        &tokens,
        &states_before(JobStatus::Running),
    );
    let rows = rows.fetch_all(&mut *conn).await?.into_iter().map(|row| Ok((JobId(row.id), row.record()?)));
    let mut begun = rows.collect::<Result<HashMap<_, _>>>()?;
    let mut records = Vec::with_capacity(leased.len());
    for &(id, lease_token) in leased {
        // Of two runs of one job, the row tells which has the lease.
        let is_only = leased.iter().filter(|(other, _)| *other == id).count() == 1;
        let record = match begun.remove(&id).filter(|_| is_only) {
            Some(record) => Some(record),
            // Nothing to change, or the lease is not current.
            None => {
                let held = JobFilter { lease_token: Some(lease_token), ..JobFilter::default() };
                row::read(conn, id, held).await?.map(JobRow::record).transpose()?
            }
        };
        records.push(record);
    }
    Ok(records)
}

/// Records that the work is done and its result is being made durable. `false` when the lease is no longer current or a cancel
/// came first. Neither prevents the completion, which checks for itself.
#[tracing::instrument(skip_all, name = "db.job.mark_finalizing")]
pub async fn mark_finalizing(conn: &mut PgConnection, id: JobId, lease_token: Uuid) -> Result<bool> {
    advance(conn, id, JobStatus::Finalizing, Some(lease_token)).await
}

/// The files of a job's only result, to be put.
#[derive(Clone, Debug)]
pub struct ResultFiles {
    /// Id of the job.
    pub id: JobId,
    /// Token of the lease on its task.
    pub lease_token: Uuid,
    /// SHA-256 of each file.
    pub hashes: Vec<[u8; 32]>,
}

/// Where the files of a result are to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedResult {
    /// One entry for each file, in order.
    pub files: Vec<Staged>,
    /// `true` if the job is `finalizing` now: a file is to be put, the lease is current, and no cancel came first.
    pub is_finalizing: bool,
    /// `true` if a cancel of the job was requested.
    pub is_canceling: bool,
}

/// [`stage`](crate::blobs::stage) for the files of several results, and [`mark_finalizing`] for the jobs whose files are not all
/// stored already, in one statement and thus one commit. Returns a result for each job, in order. The files are staged in any
/// case. A job that another transaction has locked is not waited for: it is probably being canceled.
#[tracing::instrument(skip_all, name = "db.job.stage_results")]
pub async fn stage_results(conn: &mut PgConnection, results: &[ResultFiles]) -> Result<Vec<StagedResult>> {
    let files = || results.iter().flat_map(|result| result.hashes.iter().map(move |hash| (result, hash)));
    let hashes: Vec<Vec<u8>> = files().map(|(_, hash)| hash.to_vec()).collect();
    let keys: Vec<Uuid> = files().map(|_| Uuid::now_v7()).collect();
    let jobs: Vec<Uuid> = files().map(|(result, _)| result.id.0).collect();
    let tokens: Vec<Uuid> = files().map(|(result, _)| result.lease_token).collect();
    // Blobs are locked in the order of their keys, as several statements may touch the same ones.
    let rows = sqlx::query!(
        r#"WITH asked AS (
               SELECT * FROM UNNEST((SELECT $1::bytea[]), (SELECT $2::uuid[]), (SELECT $3::uuid[]), (SELECT $4::uuid[]))
                   WITH ORDINALITY AS a (sha256, key, job, token, position)
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
           ), putting AS MATERIALIZED (
               SELECT id FROM jobs
               WHERE status = ANY((SELECT $5::text[])::text[]) AND id = ANY(ARRAY(
                   SELECT t.id FROM asked a JOIN task_queue t ON t.id = a.job AND t.lease_token = a.token
                   WHERE a.position NOT IN (SELECT position FROM existing) AND t.id = ANY((SELECT $3::uuid[])::uuid[])))
               FOR NO KEY UPDATE SKIP LOCKED
           ), moved AS (
               UPDATE jobs SET status = 'finalizing', version = version + 1, updated_at = now()
               WHERE id = ANY(ARRAY(SELECT id FROM putting)) RETURNING id, version, status
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved
           )
           SELECT coalesce(e.key, a.key) AS "key!", e.key IS NOT NULL AS "existing!",
                  a.job IN (SELECT id FROM moved) AS "moved!",
                  coalesce((SELECT status = 'canceling' FROM jobs WHERE id = a.job), false) AS "canceling!"
           FROM asked a LEFT JOIN existing e USING (position) ORDER BY a.position"#,
        &hashes,
        &keys,
        &jobs,
        &tokens,
        &states_before(JobStatus::Finalizing),
    );
    let mut rows = rows.fetch_all(&mut *conn).await?.into_iter();
    let mut staged = Vec::with_capacity(results.len());
    for result in results {
        let mut files = StagedResult { files: Vec::new(), is_finalizing: false, is_canceling: false };
        for row in rows.by_ref().take(result.hashes.len()) {
            files.files.push(Staged::from_row(row.key, row.existing));
            (files.is_finalizing, files.is_canceling) = (row.moved, row.canceling);
        }
        // The statement sees the state before a cancel that was committed meanwhile.
        if !files.is_finalizing && !files.is_canceling && files.files.iter().any(|file| matches!(file, Staged::New(_)))
        {
            files.is_canceling = is_canceling(conn, result.id).await?;
        }
        staged.push(files);
    }
    Ok(staged)
}

async fn is_canceling(conn: &mut PgConnection, id: JobId) -> Result<bool> {
    let canceling = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM jobs WHERE id = $1 AND status = 'canceling') AS "canceling!""#,
        id.0
    );
    Ok(canceling.fetch_one(conn).await?)
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
