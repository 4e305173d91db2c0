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
mod debts;
mod end;
pub mod operation;
pub mod outputs;
mod retention;
mod row;
mod settlement;
mod start;
pub mod waiting;
mod work;

use std::slice;
use std::time::Duration;

use domain::asset::AssetKind;
use domain::canvas::Actor;
use domain::id::{AccountUid, AssetHandle, CanvasHandle, JobId};
use domain::job::{JobOperation, Record, Request};
use domain::recipe::run::RunId;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

pub use abandon::{Abandoned, abandon};
pub use debts::{give_up, make_up, may_be_retried, owing};
pub use end::{JobCanvas, JobEnd, LargeCanvas, LockedJob, end, large_canvas, lock, remove_targets_at_end};
pub use retention::{Removed, Windows, expire, last_form, mark_finalized, remove};
pub use settlement::settle;
pub use start::{StartFacts, StartQuestion, read_for_start};
pub use work::{ResultFiles, StagedResult, begin, mark_finalizing, note_progress, stage_results, transition};

use crate::Result;
use crate::error::known;
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
    /// Key of the canvas that the request names, and how many wanted outputs no target stands for.
    pub about: Option<(i64, i16)>,
    /// W3C trace context of the request that starts the job.
    pub traceparent: Option<&'a str>,
}

/// Accepts a job: `queued`, with its first history row, and its task with the fairness key of its account,
/// which the caller announces after the commit. Returns the record, with its webhook if that was inserted before.
pub async fn insert(conn: &mut PgConnection, job: &NewJob<'_>) -> Result<Record> {
    insert_all(conn, slice::from_ref(job)).await?.pop().ok_or_else(|| sqlx::Error::RowNotFound.into())
}

/// [`insert`] for several jobs. The order of the records is not defined. One statement, so that every job has all of it or nothing.
/// The tasks get their positions as in [`tasks::enqueue`](crate::tasks::enqueue), those of one key one after the other.
#[tracing::instrument(skip_all, name = "db.job.insert")]
pub async fn insert_all(conn: &mut PgConnection, jobs: &[NewJob<'_>]) -> Result<Vec<Record>> {
    fn column<'a, T>(jobs: &[NewJob<'a>], of: impl Fn(&NewJob<'a>) -> T) -> Vec<T> {
        jobs.iter().map(of).collect()
    }
    fn of_canvas(jobs: &[NewJob<'_>], of: impl Fn(&CanvasHandle) -> String) -> Vec<Option<String>> {
        column(jobs, |job| job.canvas.map(|(_, handle)| of(handle)))
    }
    let rows = sqlx::query_as!(
        JobRow,
        r#"WITH asked AS MATERIALIZED (
               SELECT a.*, nextval('task_turns') AS drawn
               FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::text[]), (SELECT $4::text[]), (SELECT $5::text[]),
                           (SELECT $6::uuid[]), (SELECT $7::text[]), (SELECT $8::text[]), (SELECT $9::bigint[]),
                           (SELECT $10::text[]), (SELECT $11::text[]), (SELECT $12::text[]), (SELECT $13::jsonb[]),
                           (SELECT $14::int4[]), (SELECT $15::bigint[]), (SELECT $16::uuid[]), (SELECT $17::bigint[]),
                           (SELECT $18::int2[]))
                   AS a (id, queue, task, account, traceparent, token, kind, operation, canvas_key, canvas_owner, canvas_id,
                         revision, request, seconds, credit_cost, run, about, unmet)
           ), written AS (
               INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, canvas_key, canvas_owner, canvas_id,
                                 canvas_revision, request, estimated_seconds, credit_cost, recipe_run, about_canvas, unmet,
                                 queued_at, canvas_sequence)
               SELECT id, account, token, kind, operation, 'queued', canvas_key, canvas_owner, canvas_id, revision, request,
                      seconds, credit_cost, run, about, unmet, now(),
                      CASE WHEN run IS NULL THEN (SELECT sequence + 1 FROM canvases WHERE key = canvas_key)
                           ELSE (SELECT canvas_sequence FROM recipe_runs WHERE id = run) END
               FROM asked
               RETURNING *
           ), noted AS (
               INSERT INTO job_history (job_id, version, status) SELECT id, version, status FROM written
           ), place AS (
               SELECT queue, account, greatest(
                   (SELECT max(fair_seq) + 1 FROM task_queue t
                    WHERE t.queue = keys.queue AND t.fairness_key = keys.account AND t.state = 'ready' AND t.fair_seq >= floor),
                   coalesce(greatest(
                       (SELECT max(fair_seq) FROM task_queue t WHERE t.queue = keys.queue AND t.state = 'leased' AND t.fair_seq >= floor),
                       (SELECT min(fair_seq) FROM task_queue t WHERE t.queue = keys.queue AND t.state = 'ready' AND t.fair_seq >= floor)
                   ), drawn)
               ) AS fair_seq
               FROM (
                   -- Keys that come together to an empty queue begin at the same position.
                   SELECT queue, account, min(min(drawn)) OVER (PARTITION BY queue) AS drawn FROM asked GROUP BY queue, account
               ) AS keys, task_floor(queue) AS floor
           ), task AS (
               INSERT INTO task_queue (id, queue, kind, fairness_key, fair_seq, traceparent)
               SELECT id, queue, task, account, fair_seq + row_number() OVER (PARTITION BY queue, account ORDER BY drawn) - 1,
                      traceparent
               FROM asked JOIN place USING (queue, account)
           )
           SELECT j.id AS "id!", j.account_uid AS "account_uid!", j.kind AS "kind!", j.operation AS "operation!",
                  j.status AS "status!", j.version AS "version!", j.canvas_owner, j.canvas_id, j.canvas_revision,
                  j.request AS "request!: _", j.outcome AS "outcome: _", j.estimated_seconds AS "estimated_seconds!",
                  j.credit_cost AS "credit_cost!", j.progress AS "progress!", j.cancel_reason, j.created_at AS "created_at!",
                  j.updated_at AS "updated_at!", j.queued_at, j.started_at, j.completed_at, j.finalized_at,
                  j.retain_until, extract(epoch FROM now() - j.retain_until)::float8 AS overdue_seconds,
                  NULL AS provider_run,
                  d.id AS "delivery_id?", d.status AS "delivery_status?", d.attempts AS "attempts?", d.next_attempt_at,
                  d.last_attempt_at, d.delivered_at, d.last_status, d.error_code
           FROM written j LEFT JOIN LATERAL (SELECT * FROM webhook_deliveries WHERE job_id = j.id LIMIT 1) d ON true"#,
        &column(jobs, |job| job.id.0),
        &column(jobs, |job| job.request.route().1.to_string()),
        &column(jobs, |job| job.request.route().2.to_string()),
        &column(jobs, |job| job.account.to_string()),
        &column(jobs, |job| job.traceparent.map(str::to_owned)) as &[Option<String>],
        &column(jobs, |job| job.token_id),
        &column(jobs, |job| job.request.route().0.to_string()),
        &column(jobs, |job| job.operation.to_string()),
        &column(jobs, |job| job.canvas.map(|(key, _)| key)) as &[Option<i64>],
        &of_canvas(jobs, |handle| handle.owner.to_string()) as &[Option<String>],
        &of_canvas(jobs, |handle| handle.id.to_string()) as &[Option<String>],
        &column(jobs, |job| job.canvas_revision.map(str::to_owned)) as &[Option<String>],
        &column(jobs, |job| Json(job.request)) as _,
        &column(jobs, |job| job.estimated_seconds),
        &column(jobs, |job| job.credit_cost),
        &column(jobs, |job| job.recipe_run.map(|run| run.0)) as &[Option<Uuid>],
        &column(jobs, |job| job.about.map(|(canvas_key, _)| canvas_key)) as &[Option<i64>],
        &column(jobs, |job| job.about.map_or(0, |(_, unmet)| unmet)),
    );
    rows.fetch_all(conn).await?.into_iter().map(JobRow::record).collect()
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

/// Locks a job, so that its video stays with it until the transaction ends. Returns who started it.
#[tracing::instrument(skip_all, name = "db.job.hold_video")]
pub async fn hold_video(conn: &mut PgConnection, id: JobId) -> Result<Option<Actor>> {
    let row = sqlx::query!(
        "SELECT j.account_uid, t.surface, t.label FROM jobs j JOIN tokens t ON t.id = j.token_id
         WHERE j.id = $1 FOR NO KEY UPDATE OF j",
        id.0
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (owner_uid, label) = (AccountUid::from_stored(row.account_uid), row.label);
    Ok(Some(Actor { owner_uid, surface: known("tokens.surface", &row.surface)?, label }))
}

/// Hands the video of a locked job to the asset that the transaction has made of it. The job no longer refers to its files.
#[tracing::instrument(skip_all, name = "db.job.hand_over_video")]
pub async fn hand_over_video(conn: &mut PgConnection, id: JobId, asset: &AssetHandle) -> Result<()> {
    sqlx::query!(
        "UPDATE jobs SET video_blob = NULL, video_poster = NULL, version = version + 1, updated_at = now(),
                outcome = jsonb_set(outcome #- '{video,poster}', '{video,asset}', $2)
         WHERE id = $1",
        id.0,
        Json(asset) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns `true` if a job is a step of a Recipe run. A step has no activity entries of its own.
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
    let question = StartQuestion {
        account,
        canvas_key: None,
        nodes: Vec::new(),
        images: Vec::new(),
        kind: AssetKind::Image,
        outputs: (account, 0),
    };
    Ok(read_for_start(conn, cap, &question).await?.active)
}
