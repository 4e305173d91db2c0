//! What becomes of a job's record after its end (decisions 9.3).
//!
//! A success is kept 24 h unread, or 15 min from its first showing; then it is `expired`, a tombstone that goes after 7
//! days. Failures and cancels go after 24 h. The asset and the node outlive them all, and so does the answer to the
//! start's idempotency key, which keeps the last form of the record, without images.

use std::time::Duration;

use domain::id::JobId;
use domain::idempotency::Outcome;
use domain::job::{ImageJob, JobStatus};
use sqlx::PgConnection;
use sqlx::types::Json;

use super::row::{Row, select_jobs};
use crate::{Error, Result};

/// How long records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// A success that nobody has seen.
    pub unread: Duration,
    /// A success, from its first showing.
    pub finalized: Duration,
    /// An expired record.
    pub tombstone: Duration,
    /// A failed or canceled job.
    pub failed: Duration,
}

impl Windows {
    /// How many seconds a job that ended so is kept before its next step.
    pub(super) fn after(&self, status: JobStatus) -> f64 {
        match status {
            JobStatus::Succeeded => self.unread.as_secs_f64(),
            JobStatus::Expired => self.tombstone.as_secs_f64(),
            _ => self.failed.as_secs_f64(),
        }
    }
}

/// Notes that a terminal record was shown for the first time: to its account, or in a webhook attempt. A success is kept
/// `window` from now. False when it was shown before, or is not terminal.
#[tracing::instrument(skip_all, name = "db.job.mark_finalized")]
pub async fn mark_finalized(conn: &mut PgConnection, id: JobId, window: Duration) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE jobs SET finalized_at = now(),
                retain_until = CASE WHEN status = 'succeeded' THEN now() + make_interval(secs => $2)
                                    ELSE retain_until END
         WHERE id = $1 AND finalized_at IS NULL AND status IN ('succeeded', 'failed', 'canceled')",
        id.0,
        window.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Successes that became `expired`.
    pub expired: u64,
    /// Records that were removed.
    pub removed: u64,
}

/// Takes at most `limit` records of each kind whose time has come their next step. Safe from many processes at once: rows
/// that another one holds are passed over. Nothing is announced (decisions 9.3). `public_url` is the origin of
/// `canvasUrl` in what idempotency keys keep.
#[tracing::instrument(skip_all, name = "db.job.sweep")]
pub async fn sweep(conn: &mut PgConnection, windows: &Windows, public_url: &str, limit: i64) -> Result<Swept> {
    let expired = sqlx::query!(
        "WITH due AS (
             SELECT id FROM jobs WHERE retain_until <= now() AND status = 'succeeded'
             ORDER BY retain_until LIMIT $1 FOR UPDATE SKIP LOCKED
         ), moved AS (
             UPDATE jobs SET status = 'expired', version = version + 1, updated_at = now(),
                    retain_until = now() + make_interval(secs => $2)
             FROM due WHERE jobs.id = due.id RETURNING jobs.id, version, status
         )
         INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved",
        limit,
        windows.after(JobStatus::Expired),
    )
    .execute(&mut *conn)
    .await?
    .rows_affected();
    let due = select_jobs!(
        "WHERE j.retain_until <= now() AND j.status IN ('failed', 'canceled', 'expired')
         ORDER BY j.retain_until LIMIT $1 FOR UPDATE OF j SKIP LOCKED",
        limit
    )
    .fetch_all(&mut *conn)
    .await?;
    let removed = due.len() as u64;
    for row in due {
        remove(conn, row, public_url).await?;
    }
    Ok(Swept { expired, removed })
}

/// Removes a record and leaves its last form, without images and preview, to its idempotency key.
async fn remove(conn: &mut PgConnection, row: Row, public_url: &str) -> Result<()> {
    let record = row.record()?;
    let id = record.id;
    let last = ImageJob { images: None, webhook: None, ..record.document(public_url, |_| None) };
    let snapshot =
        serde_json::to_value(&last).map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?;
    let outcome = Outcome::Job { id: id.0, snapshot: Some(snapshot) };
    sqlx::query!("UPDATE idempotency_keys SET outcome = $2 WHERE job_id = $1", id.0, Json(outcome) as _)
        .execute(&mut *conn)
        .await?;
    sqlx::query!("DELETE FROM jobs WHERE id = $1", id.0).execute(conn).await?;
    Ok(())
}
