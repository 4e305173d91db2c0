//! What becomes of a job's record after its end (decisions 9.3).
//!
//! A success is kept 24 h unread, or 15 min from its first showing; then it is `expired`, a tombstone that goes after 7
//! days. Failures and cancels go after 24 h, a video 30 days after its end, however it ended (decisions 18.9). The asset and
//! the node outlive them all, and so does the answer to the start's idempotency key, which keeps the last form of the record,
//! without images.
//!
//! **Guarantee.** Time alone decides what a read shows, to the moment: whether a sweep has been there makes no difference, and
//! nothing brings back what is overdue.
//!
//! **Mechanism.** A row says how long it is overdue, and a read takes it as the sweep would leave it ([`Row::aged`],
//! [`Row::is_over`]), without a write or a further statement. [`expire`] counts the tombstone's window from the end of the one
//! before, not from its own moment; [`mark_finalized`] leaves alone what is overdue.

use std::time::Duration;

use domain::id::JobId;
use domain::idempotency::Outcome;
use domain::job::{JobKind, JobStatus};
use serde_json::Value;
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
    /// A video job, however it ended, with its video.
    pub video: Duration,
}

impl Windows {
    /// How many seconds a job that ended so is kept before its next step.
    pub(super) fn after(&self, kind: JobKind, status: JobStatus) -> f64 {
        let window = match (kind, status) {
            (JobKind::Video, _) => self.video,
            (_, JobStatus::Succeeded) => self.unread,
            (_, JobStatus::Expired) => self.tombstone,
            _ => self.failed,
        };
        window.as_secs_f64()
    }
}

impl Row {
    /// The row as [`expire`] leaves it when it is due, although nobody swept yet.
    pub(super) fn aged(mut self) -> Self {
        if let (true, Some(0.0..), Some(due)) = (self.expires(), self.overdue_seconds, self.retain_until) {
            self.status = JobStatus::Expired.as_str().to_owned();
            self.version += 1;
            self.updated_at = due;
        }
        self
    }

    /// Whether [`remove`] is due, although nobody swept yet: for what would expire before, with the window of a `tombstone`.
    pub(super) fn is_over(&self, tombstone: Duration) -> bool {
        let kept = if self.expires() { tombstone.as_secs_f64() } else { 0.0 };
        self.overdue_seconds.is_some_and(|overdue| overdue >= kept)
    }

    fn expires(&self) -> bool {
        self.status == JobStatus::Succeeded.as_str() && self.kind != JobKind::Video.as_str()
    }
}

/// Notes that a terminal record was shown for the first time: to its account, or in a webhook attempt. A success is kept
/// `window` from now. False when it was shown before, is overdue, or is not terminal.
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

/// What [`remove`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Records that are gone.
    pub removed: u64,
    /// Records that cannot be read, and are looked at again in an hour.
    pub unreadable: u64,
}

/// Lets at most `limit` successes whose time has come expire, in one statement, and says how many. Nothing is announced
/// (decisions 9.3). Safe from many processes at once, as [`remove`] is: rows that another one holds are passed over.
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

/// Removes at most `limit` records whose time is over, in the caller's transaction. One that cannot be read is put off and
/// holds up no other. `public_url` is the origin of `canvasUrl` in what idempotency keys keep.
#[tracing::instrument(skip_all, name = "db.job.remove")]
pub async fn remove(conn: &mut PgConnection, public_url: &str, limit: i64) -> Result<Removed> {
    // Ids alone: a record that cannot be decoded must not fail the statement that finds the others. By account, so that two
    // transactions count the storage of several in one order.
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
                tracing::error!(job.id = %id, error = &error as &dyn std::error::Error, "job {id} cannot be read to be removed");
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

/// Removes a record and leaves its last form to its idempotency key.
async fn remove_one(conn: &mut PgConnection, id: JobId, public_url: &str) -> Result<()> {
    let outcome = Outcome::Job { id: id.0, snapshot: last_form(conn, id, public_url).await? };
    sqlx::query!("UPDATE idempotency_keys SET outcome = $2 WHERE job_id = $1", id.0, Json(outcome) as _)
        .execute(&mut *conn)
        .await?;
    sqlx::query!("DELETE FROM jobs WHERE id = $1", id.0).execute(conn).await?;
    Ok(())
}

/// What is told of a job from the end of its record on, to whoever sends its start again: the record without images and
/// preview. `None`: the record is removed, and its idempotency key has it.
#[tracing::instrument(skip_all, name = "db.job.last_form")]
pub async fn last_form(conn: &mut PgConnection, id: JobId, public_url: &str) -> Result<Option<Value>> {
    let Some(row) = select_jobs!("WHERE j.id = $1", id.0).fetch_optional(conn).await? else { return Ok(None) };
    let last = row.aged().record()?.document(public_url, |_| None).without_results();
    let last = serde_json::to_value(&last);
    Ok(Some(last.map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?))
}
