//! Retention of job records (docs/reference/jobs.md#retention).
//!
//! An unread success is kept 24 h, or 15 min from the moment it was first shown. Then it is `expired`, a tombstone that is kept
//! 7 days. Failures and cancels are kept 24 h. A video is kept 30 days after its end, whatever its status. The asset and the
//! node outlive the record. So does the response stored for the start's idempotency key, which keeps the last form of the
//! record, without images.
//!
//! **Guarantee.** Only the time decides what a read shows. Whether a sweep has run makes no difference, and an overdue record
//! never comes back.
//!
//! **Mechanism.** A row carries how long it is overdue, and a read treats it as the sweep would leave it ([`JobRow::aged`],
//! [`JobRow::is_over`]), without a write or another statement. [`expire`] counts the tombstone's window from the end of the
//! previous window, not from the time of the sweep. [`mark_finalized`] does not change an overdue record.

use std::time::Duration;

use domain::id::JobId;
use domain::idempotency::StoredOutcome;
use domain::job::{JobKind, JobStatus};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;

use super::row::{self, JobFilter, JobRow};
use crate::{Error, Result};

/// How long records are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// A success that was not read.
    pub unread: Duration,
    /// A success, from its first read.
    pub finalized: Duration,
    /// An expired record.
    pub tombstone: Duration,
    /// A failed or canceled job.
    pub failed: Duration,
    /// A video job, however it ended, with its video.
    pub video: Duration,
}

impl Windows {
    /// Time until the next retention step of a job of this kind and status.
    pub fn after(&self, kind: JobKind, status: JobStatus) -> Duration {
        match (kind, status) {
            (JobKind::Video, _) => self.video,
            (_, JobStatus::Succeeded) => self.unread,
            (_, JobStatus::Expired) => self.tombstone,
            _ => self.failed,
        }
    }
}

impl JobRow {
    /// The row as [`expire`] will leave it, if that is due.
    pub(super) fn aged(mut self) -> Self {
        if let (true, Some(0.0..), Some(due)) = (self.expires(), self.overdue_seconds, self.retain_until) {
            self.status = JobStatus::Expired.as_str().to_owned();
            self.version += 1;
            self.updated_at = due;
        }
        self
    }

    /// Returns `true` if [`remove`] is due. A row that should have expired by now is counted with the window of a `tombstone`.
    pub(super) fn is_over(&self, tombstone: Duration) -> bool {
        let kept = if self.expires() { tombstone.as_secs_f64() } else { 0.0 };
        self.overdue_seconds.is_some_and(|overdue| overdue >= kept)
    }

    fn expires(&self) -> bool {
        self.status == JobStatus::Succeeded.as_str() && self.kind != JobKind::Video.as_str()
    }
}

/// Records that a terminal record was shown for the first time, to its account or in a webhook attempt. A success is then kept
/// `window` from now. `false` when it was shown before, is overdue, or is not terminal.
#[tracing::instrument(skip_all, name = "db.job.mark_finalized")]
pub async fn mark_finalized(conn: &mut PgConnection, id: JobId, window: Duration) -> Result<bool> {
    let done = sqlx::query!(
        "UPDATE jobs SET finalized_at = now(),
                retain_until = CASE WHEN status = 'succeeded' AND kind <> 'video' THEN now() + make_interval(secs => $2)
                                    ELSE retain_until END
         WHERE id = $1 AND finalized_at IS NULL AND retain_until > now()
           AND status IN ('succeeded', 'failed', 'canceled')",
        id.0,
        window.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Result of [`remove`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of records removed.
    pub removed: u64,
    /// Number of records that cannot be read and were put off by an hour.
    pub unreadable: u64,
}

/// Expires at most `limit` successes that are due, in one statement. Returns their number. No event is sent. Safe to run from
/// many processes at once, as is [`remove`]: locked rows are skipped.
#[tracing::instrument(skip_all, name = "db.job.expire")]
pub async fn expire(conn: &mut PgConnection, windows: &Windows, limit: i64) -> Result<u64> {
    let expired = sqlx::query!(
        "WITH due AS (
             SELECT id FROM jobs WHERE retain_until <= now() AND status = 'succeeded' AND kind <> 'video'
             ORDER BY retain_until LIMIT $1 FOR UPDATE SKIP LOCKED
         ), moved AS (
             UPDATE jobs SET status = 'expired', version = version + 1, updated_at = retain_until,
                    retain_until = retain_until + make_interval(secs => $2)
             FROM due WHERE jobs.id = due.id RETURNING jobs.id, version, status
         )
         INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM moved",
        limit,
        windows.tombstone.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(expired.rows_affected())
}

/// Removes at most `limit` records that are due, in the caller's transaction. A record that cannot be read is put off and does
/// not block others. `public_url` is the origin of `canvasUrl` in what idempotency keys keep.
#[tracing::instrument(skip_all, name = "db.job.remove")]
pub async fn remove(conn: &mut PgConnection, public_url: &str, limit: i64) -> Result<Removed> {
    // Selects ids only: a record that cannot be decoded must not fail the statement that finds the others. Ordered by account,
    // so that two transactions update the storage counters of several accounts in the same order.
    let due = sqlx::query_scalar!(
        "WITH due AS MATERIALIZED (
             SELECT id, account_uid FROM jobs WHERE retain_until <= now()
               AND (status IN ('failed', 'canceled', 'expired') OR (kind = 'video' AND status = 'succeeded'))
             ORDER BY retain_until LIMIT $1 FOR UPDATE SKIP LOCKED
         )
         SELECT id FROM due ORDER BY account_uid",
        limit
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut done = Removed::default();
    for id in due {
        match remove_one(conn, JobId(id), public_url).await {
            Ok(()) => done.removed += 1,
            Err(error) if error.is_unreadable() => {
                tracing::error!(job.id = %id, error = &error as &dyn std::error::Error, "job {id} cannot be decoded to be removed");
                sqlx::query!("UPDATE jobs SET retain_until = now() + interval '1 hour' WHERE id = $1", id)
                    .execute(&mut *conn)
                    .await?;
                done.unreadable += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Removes a record and stores its last form with its idempotency key.
async fn remove_one(conn: &mut PgConnection, id: JobId, public_url: &str) -> Result<()> {
    let outcome = StoredOutcome::Job { id: id.0, more: Vec::new(), snapshot: last_form(conn, id, public_url).await? };
    sqlx::query!("UPDATE idempotency_keys SET outcome = $2 WHERE job_id = $1", id.0, Json(outcome) as _)
        .execute(&mut *conn)
        .await?;
    sqlx::query!("DELETE FROM jobs WHERE id = $1", id.0).execute(conn).await?;
    Ok(())
}

/// The last form of a job's record, which a replayed start gets after the record was removed: without images and preview.
/// `None`: the record was removed, and its idempotency key has the last form.
#[tracing::instrument(skip_all, name = "db.job.last_form")]
pub async fn last_form(conn: &mut PgConnection, id: JobId, public_url: &str) -> Result<Option<Value>> {
    let Some(row) = row::read(conn, id, JobFilter::default()).await? else { return Ok(None) };
    let last = row.aged().record()?.document(public_url, |_| None).without_results();
    let last = serde_json::to_value(&last);
    Ok(Some(last.map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?))
}
