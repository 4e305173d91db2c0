//! A worker's way through a job, as far as its lease reaches.

use domain::id::JobId;
use domain::job::{JobStatus, Record};
use sqlx::PgConnection;
use uuid::Uuid;

use super::row::{Row, select_jobs, select_written};
use crate::Result;
use crate::blobs::{Staged, with_staged};

/// Takes up a job under a lease on its task and sets it `running`: from `queued`, or from `finalizing` when an earlier
/// worker died there. A job that is `running` already is continued, one that is `canceling` stays so; the record says
/// which. `None`: the lease is no longer current, or the job is gone.
#[tracing::instrument(skip_all, name = "db.job.begin")]
pub async fn begin(conn: &mut PgConnection, id: JobId, lease_token: Uuid) -> Result<Option<Record>> {
    let taken = select_written!(
        ["WITH written AS (
              UPDATE jobs SET status = 'running', version = version + 1, updated_at = now(),
                     started_at = coalesce(started_at, now())
              WHERE id = $1 AND status = ANY($3)
                AND EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2)
              RETURNING *
          ), noted AS (
              INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
          )"]
        id.0,
        lease_token,
        &states_before(JobStatus::Running)
    );
    if let Some(taken) = taken.fetch_optional(&mut *conn).await? {
        return taken.record().map(Some);
    }
    // Nothing to change, or nothing that is ours.
    select_jobs!(
        "WHERE j.id = $1 AND EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2)",
        id.0,
        lease_token
    )
    .fetch_optional(conn)
    .await?
    .map(Row::record)
    .transpose()
}

/// Says that the work is done and its result is being made durable. False when the lease is no longer current or a
/// cancel came first; neither keeps the result from being concluded, which looks for itself.
#[tracing::instrument(skip_all, name = "db.job.mark_finalizing")]
pub async fn mark_finalizing(conn: &mut PgConnection, id: JobId, lease_token: Uuid) -> Result<bool> {
    transition(conn, id, JobStatus::Finalizing, Some(lease_token)).await
}

/// [`mark_finalizing`] and [`stage`](crate::blobs::stage) for the one result of a job, in one statement and so with one commit:
/// whether the job is finalizing now, and where its result is to go. The result is staged in any case.
#[tracing::instrument(skip_all, name = "db.job.finalize_and_stage")]
pub async fn finalize_and_stage(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    sha256: &[u8; 32],
) -> Result<(bool, Staged)> {
    macro_rules! select_both {
        ([$($with:literal),*] $($argument:expr),*) => {
            sqlx::query!(
                $($with +)* r#" SELECT key AS "key!", existing AS "existing!", EXISTS (SELECT FROM moved) AS "moved!" FROM staged"#,
                $($argument),*
            )
        };
    }
    let row = with_staged!(
        select_both!
        ["WITH moved AS (
              UPDATE jobs SET status = 'finalizing', version = version + 1, updated_at = now()
              WHERE id = $3 AND status = ANY($4) AND EXISTS (SELECT FROM tasks t WHERE t.id = $3 AND t.lease_token = $5)
              RETURNING id, version, status
          ), noted AS (
              INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved
          ),"]
        sha256,
        Uuid::now_v7(),
        id.0,
        &states_before(JobStatus::Finalizing),
        lease_token
    );
    let row = row.fetch_one(conn).await?;
    Ok((row.moved, Staged::read(row.key, row.existing)))
}

/// Notes how far a video is, in percent; below 100, which is success. It never goes back (decisions 11.3). False when it is
/// no further than it was, the lease is no longer current or the job is not running.
#[tracing::instrument(skip_all, name = "db.job.note_progress")]
pub async fn note_progress(conn: &mut PgConnection, id: JobId, lease_token: Uuid, percent: f64) -> Result<bool> {
    let Some(percent) = unfinished_percent(percent) else { return Ok(false) };
    let done = sqlx::query!(
        "UPDATE jobs SET progress = $3, version = version + 1, updated_at = now()
         WHERE id = $1 AND kind = 'video' AND status IN ('running', 'finalizing') AND progress < $3
           AND EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2)",
        id.0,
        lease_token,
        percent,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How far work is that is not finished, whatever a provider says; nothing when that is no number.
pub(super) fn unfinished_percent(told: f64) -> Option<f64> {
    /// The furthest that unfinished work is.
    const FURTHEST: f64 = 99.0;
    told.is_finite().then(|| told.clamp(0.0, FURTHEST))
}

/// Whether somebody asked to stop the job, as the record says; its worker may not have heard of it yet.
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

/// Brings a job to an unfinished state that may follow its present one; with a lease only while it is current. Whether
/// it took place.
pub(super) async fn transition(
    conn: &mut PgConnection,
    id: JobId,
    next: JobStatus,
    lease_token: Option<Uuid>,
) -> Result<bool> {
    let done = sqlx::query!(
        "WITH moved AS (
             UPDATE jobs SET status = $2, version = version + 1, updated_at = now(),
                    started_at = CASE WHEN $2 = 'running' THEN coalesce(started_at, now()) ELSE started_at END
             WHERE id = $1 AND status = ANY($3)
               AND ($4::uuid IS NULL OR EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $4))
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
