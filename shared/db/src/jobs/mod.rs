//! Jobs: the product's record of work, from its acceptance to its removal.
//!
//! **Guarantee.** A job goes through the states of `domain::job::JobStatus` only as they may follow each other, each
//! change is one statement that is conditional on the state it leaves, counts up `version` and is noted in
//! `job_history`; what a worker writes takes place only while its lease on the job's task holds.
//!
//! **Mechanism.** The task (`tasks`) says who works, the job says what is seen. [`begin`] and [`mark_finalizing`], or
//! [`finalize_and_stage`], are a worker's way forward, [`conclude`] is the way to an end, for workers and for cancels of work
//! that nobody took ([`abandon`] where the record cannot be read); [`outputs`] are what an image job is made of; [`cancel`] is the intent; [`expire`] and [`remove`] are what becomes of the record afterwards (decisions 9.3).
//!
//! A job whose worker died or handed it back stays `running` until another worker takes it and goes on: there is no
//! way back to `queued`, because nobody could tell the two apart from outside and the first start stays the start.

mod abandon;
mod cancel;
mod conclude;
mod ending;
pub mod operation;
pub mod outputs;
mod retention;
mod row;
mod settlement;
mod shown;
mod target;
pub mod waiting;
mod work;

use std::time::Duration;

use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::job::{JobOperation, Record, Request};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

pub use abandon::abandon;
pub use cancel::{Cancellation, cancel};
pub use conclude::conclude;
pub use ending::{Concluded, Ending, Film, Placement, Review, Terms};
pub use retention::{Removed, Windows, expire, last_form, mark_finalized, remove};
pub use target::mark_targets;
pub(crate) use target::serialized_bytes;
pub use work::{begin, finalize_and_stage, is_canceling, mark_finalizing, note_progress};

use crate::Result;
use crate::tasks::with_task;
use row::{Row, select_jobs, select_written};

/// A job to accept.
#[derive(Clone, Debug)]
pub struct NewJob<'a> {
    /// Its id, and that of its task.
    pub id: JobId,
    /// Who starts it and pays for it.
    pub account: &'a AccountUid,
    /// The token that it is started with; names the actor of its activity.
    pub token_id: Uuid,
    /// What is asked for.
    pub operation: JobOperation,
    /// Key and handle of the canvas that it writes to.
    pub canvas: Option<(i64, &'a CanvasHandle)>,
    /// The revision that its start made.
    pub canvas_revision: Option<&'a str>,
    /// What is asked, resolved and normalized.
    pub request: &'a Request,
    /// Guidance, at least 1.
    pub estimated_seconds: i32,
    /// Credits that are reserved for it.
    pub credit_cost: i64,
    /// The Recipe run whose step it is.
    pub recipe_run: Option<RunId>,
    /// W3C trace context of what starts it.
    pub traceparent: Option<&'a str>,
}

/// Accepts a job: `queued`, with its first line of history, its task, in the lane of its account, and the wake-up that
/// announces it; the record, with its webhook if that was stored before. One statement, so that none of them is there
/// without the others. The caller nudges its relay after the commit.
#[tracing::instrument(skip_all, name = "db.job.insert")]
pub async fn insert(conn: &mut PgConnection, job: &NewJob<'_>) -> Result<Record> {
    let handle = job.canvas.map(|(_, handle)| handle);
    let (kind, queue, task) = job.request.route();
    with_task!(
        select_written!
        ["WITH written AS (
              INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, canvas_key, canvas_owner, canvas_id,
                                canvas_revision, request, estimated_seconds, credit_cost, recipe_run, queued_at)
              VALUES ($1, $4, $8, $9, $10, 'queued', $11, $12, $13, $14, $15, $16, $17, $18, now())
              RETURNING *
          ), noted AS (
              INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
          ),"]
        job.id.0,
        queue.as_str(),
        task.as_str(),
        job.account.as_str(),
        None::<f64>,
        job.traceparent,
        None::<&str>,
        job.token_id,
        kind.as_str(),
        job.operation.as_str(),
        job.canvas.map(|(key, _)| key),
        handle.map(|handle| handle.owner.as_str()),
        handle.map(|handle| handle.id.as_str()),
        job.canvas_revision,
        Json(job.request) as _,
        job.estimated_seconds,
        job.credit_cost,
        job.recipe_run.map(|run| run.0)
    )
    .fetch_one(conn)
    .await?
    .record()
}

/// The job of `id` if it is `account`'s, with the state of its webhook: as it is at this moment, whenever its record was swept
/// last (decisions 9.3). `tombstone` is how long an expired one is kept.
#[tracing::instrument(skip_all, name = "db.job.get")]
pub async fn get(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    tombstone: Duration,
) -> Result<Option<Record>> {
    let row =
        select_jobs!("WHERE j.id = $1 AND j.account_uid = $2", id.0, account.as_str()).fetch_optional(conn).await?;
    row.filter(|row| !row.is_over(tombstone)).map(|row| row.aged().record()).transpose()
}

/// Whether a job is a step of a Recipe run, which it is told by: it has no activity of its own (decisions 13.6).
#[tracing::instrument(skip_all, name = "db.job.is_step")]
pub async fn is_step(conn: &mut PgConnection, id: JobId) -> Result<bool> {
    let is_step = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM jobs WHERE id = $1 AND recipe_run IS NOT NULL) AS "is_step!""#,
        id.0
    );
    Ok(is_step.fetch_one(conn).await?)
}

/// The job of `id` if it is over and nobody works on it any more: for whoever does not know whether the transaction that
/// was to end it took place.
#[tracing::instrument(skip_all, name = "db.job.get_ended")]
pub async fn get_ended(conn: &mut PgConnection, id: JobId) -> Result<Option<Record>> {
    select_jobs!(
        "WHERE j.id = $1 AND j.completed_at IS NOT NULL AND NOT EXISTS (SELECT FROM tasks t WHERE t.id = j.id)",
        id.0
    )
    .fetch_optional(conn)
    .await?
    .map(Row::record)
    .transpose()
}

/// How many unfinished jobs and Recipe runs the account has, counted no further than `cap` (decisions 1.12). The jobs of a
/// Recipe run are part of it (decisions 18.13).
#[tracing::instrument(skip_all, name = "db.job.count_active")]
pub async fn count_active(conn: &mut PgConnection, account: &AccountUid, cap: i64) -> Result<i64> {
    Ok(sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM jobs
               WHERE account_uid = $1 AND completed_at IS NULL AND recipe_run IS NULL
               UNION ALL
               SELECT FROM recipe_runs WHERE account_uid = $1 AND status IN ('queued', 'running')
               LIMIT $2
           ) AS active"#,
        account.as_str(),
        cap,
    )
    .fetch_one(conn)
    .await?)
}

#[cfg(test)]
pub(crate) mod tests;
