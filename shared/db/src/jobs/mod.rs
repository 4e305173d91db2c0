//! Jobs: the record of work that clients see, from its acceptance to its removal.
//!
//! **Guarantee.** A job changes its state only along the transitions of `domain::job::JobStatus`. Each change is one statement
//! that is conditional on the previous state, increments `version` and adds a row to `job_history`. A worker's write takes
//! effect only while its lease on the job's task is current.
//!
//! **Mechanism.** The task (`tasks`) records who works; the job records what clients see. A worker advances a job with
//! [`begin`] and [`mark_finalizing`], or [`stage_results`]. [`lock`] and [`end`] are the first and the last statement of its
//! completion; [`abandon`] ends a job whose record cannot be read. [`outputs`] holds the outputs of an image job. [`expire`] and
//! [`remove`] apply the retention of records.
//!
//! A job whose worker died or released it stays `running` until another worker claims and continues it. It never returns to
//! `queued`: clients cannot act on the difference, and the start of the job remains its first start.

mod abandon;
mod end;
pub mod operation;
pub mod outputs;
mod retention;
mod row;
mod settlement;
mod start;
pub mod waiting;
mod work;

use std::time::Duration;

use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::job::{JobOperation, Record, Request};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

pub use abandon::{Abandoned, abandon};
pub use end::{
    JobCanvas, JobEnd, LockedJob, completable_together, end, end_all, lock, lock_all, remove_targets_at_end,
};
pub use retention::{Removed, Windows, expire, last_form, mark_finalized, remove};
pub use settlement::settle;
pub use start::{StartFacts, StartQuestion, read_for_start};
pub use work::{
    ResultFiles, StagedResult, begin, begin_all, mark_finalizing, note_progress, stage_results, transition,
};

use crate::Result;
use row::{JobFilter, JobRow};

/// A job to accept.
#[derive(Clone, Debug)]
pub struct NewJob<'a> {
    /// Id of the job and of its task.
    pub id: JobId,
    /// The account that starts the job and pays for it.
    pub account: &'a AccountUid,
    /// Id of the token that starts the job; names the actor of its activity.
    pub token_id: Uuid,
    pub operation: JobOperation,
    /// Key and handle of the canvas that the job writes to.
    pub canvas: Option<(i64, &'a CanvasHandle)>,
    /// The canvas revision that the start made.
    pub canvas_revision: Option<&'a str>,
    /// The request, resolved and normalized.
    pub request: &'a Request,
    /// Estimated duration in seconds, at least 1.
    pub estimated_seconds: i32,
    /// Credits reserved for the job.
    pub credit_cost: i64,
    /// The Recipe run that the job is a step of.
    pub recipe_run: Option<RunId>,
    /// W3C trace context of the request that starts the job.
    pub traceparent: Option<&'a str>,
}

/// Accepts a job: `queued`, with its first history row, its task with the fairness key of its account, and the wake-up
/// message for the task. Returns the record, with its webhook if that was inserted before. One statement, so that all of them
/// exist or none. The caller wakes the relay after the commit. The task gets its position as in
/// [`tasks::enqueue`](crate::tasks::enqueue).
#[tracing::instrument(skip_all, name = "db.job.insert")]
pub async fn insert(conn: &mut PgConnection, job: &NewJob<'_>) -> Result<Record> {
    let handle = job.canvas.map(|(_, handle)| handle);
    let (kind, queue, task) = job.request.route();
    sqlx::query_as!(
        JobRow,
        r#"WITH written AS (
               INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, canvas_key, canvas_owner, canvas_id,
                                 canvas_revision, request, estimated_seconds, credit_cost, recipe_run, queued_at,
                                 canvas_sequence)
               VALUES ($1, $4, $6, $7, $8, 'queued', $9, $10, $11, $12, $13, $14, $15, $16, now(),
                       CASE WHEN $16::uuid IS NULL THEN (SELECT sequence + 1 FROM canvases WHERE key = $9)
                            ELSE (SELECT canvas_sequence FROM recipe_runs WHERE id = $16) END)
               RETURNING *
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
           ), place AS (
               SELECT greatest(
                   (SELECT max(fair_seq) + 1 FROM task_queue
                    WHERE queue = $2 AND fairness_key = $4 AND state = 'ready' AND fair_seq >= floor),
                   coalesce(greatest(
                       (SELECT max(fair_seq) FROM task_queue WHERE queue = $2 AND state = 'leased' AND fair_seq >= floor),
                       (SELECT min(fair_seq) FROM task_queue WHERE queue = $2 AND state = 'ready' AND fair_seq >= floor)
                   ), drawn)
               ) AS fair_seq
               FROM nextval('task_turns') AS drawn, task_floor($2) AS floor
           ), task AS (
               INSERT INTO task_queue (id, queue, kind, fairness_key, fair_seq, traceparent)
               SELECT $1, $2, $3, $4, fair_seq, $5 FROM place
           ), announced AS (
               INSERT INTO outbox (queue, task_id, traceparent) VALUES ($2, $1, $5)
           )
           SELECT j.id, j.account_uid, j.kind, j.operation, j.status, j.version, j.canvas_owner, j.canvas_id, j.canvas_revision,
                  j.request AS "request: _", j.outcome AS "outcome: _", j.estimated_seconds, j.credit_cost, j.progress,
                  j.cancel_reason, j.created_at, j.updated_at, j.queued_at, j.started_at, j.completed_at, j.finalized_at,
                  j.retain_until, extract(epoch FROM now() - j.retain_until)::float8 AS overdue_seconds,
                  NULL AS provider_run,
                  d.id AS "delivery_id?", d.status AS "delivery_status?", d.attempts AS "attempts?", d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code
           FROM written j LEFT JOIN webhook_deliveries d ON d.job_id = j.id"#,
        job.id.0,
        queue.as_str(),
        task.as_str(),
        job.account.as_str(),
        job.traceparent,
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
        job.recipe_run.map(|run| run.0),
    )
    .fetch_one(conn)
    .await?
    .record()
}

/// Reads the job of `id` if it belongs to `account`, with the state of its webhook. Retention is applied as of this moment,
/// even if the sweep has not run yet. `tombstone` is how long an expired record is kept.
#[tracing::instrument(skip_all, name = "db.job.get")]
pub async fn get(
    conn: &mut PgConnection,
    id: JobId,
    account: &AccountUid,
    tombstone: Duration,
) -> Result<Option<Record>> {
    let row = row::read(conn, id, JobFilter { account: Some(account), ..JobFilter::default() }).await?;
    row.filter(|row| !row.is_over(tombstone)).map(|row| row.aged().record()).transpose()
}

/// Whether a job is a step of a Recipe run. A step has no activity entries of its own.
#[tracing::instrument(skip_all, name = "db.job.is_step")]
pub async fn is_step(conn: &mut PgConnection, id: JobId) -> Result<bool> {
    let is_step = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM jobs WHERE id = $1 AND recipe_run IS NOT NULL) AS "is_step!""#,
        id.0
    );
    Ok(is_step.fetch_one(conn).await?)
}

/// Reads the job of `id` if it has ended and no worker has its task: for a caller that does not know whether the transaction
/// that ended it was committed.
#[tracing::instrument(skip_all, name = "db.job.get_ended")]
pub async fn get_ended(conn: &mut PgConnection, id: JobId) -> Result<Option<Record>> {
    row::read(conn, id, JobFilter { is_ended: true, ..JobFilter::default() }).await?.map(JobRow::record).transpose()
}

/// Counts the account's active work, up to `cap`, as [`read_for_start`] does.
#[tracing::instrument(skip_all, name = "db.job.count_active")]
pub async fn count_active(conn: &mut PgConnection, account: &AccountUid, cap: i64) -> Result<i64> {
    let question = StartQuestion { account, cap, canvas_key: None, nodes: &[], pictures: &[] };
    Ok(read_for_start(conn, &question).await?.active)
}
