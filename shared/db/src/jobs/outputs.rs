//! The outputs of a job that a model makes, with one row each: what was submitted to a provider and with which result. A video
//! job has one output.
//!
//! **Guarantee.** A submit is recorded, under the lease of the worker that makes it, before it is made. A worker that finds an
//! output `submitting` that it did not begin itself knows that the outcome is unknown, and never submits it again as if it were
//! new (docs/reliability.md#provider-submits). A provider's run is recorded before it is first polled, and a later worker
//! continues with it.
//!
//! **Mechanism.** Every change is one statement, conditional on the previous state and on the lease of the job's task. Times
//! are the database's: due times, deadlines and elapsed times are returned as durations.
//!
//! **Reason.** Cost: hardly any provider honors idempotency keys, so a second submit is a second charge.

use std::time::Duration;

use domain::id::JobId;
use domain::job::{Failure, Placement};
use serde_json::Value;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::types::Json;
use sqlx::{PgConnection, Postgres};
use uuid::Uuid;

use crate::Result;
use crate::error::known;
use crate::tasks::seconds;

/// State of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// The output may be submitted.
    Ready,
    /// A submit was begun. For any other worker its outcome is unknown.
    Submitting,
    /// A provider accepted the submit.
    Submitted,
    /// The output is stored.
    Stored,
    /// The output failed.
    Failed,
    /// The job ended first.
    Canceled,
}

impl OutputState {
    const fn as_str(self) -> &'static str {
        match self {
            OutputState::Ready => "ready",
            OutputState::Submitting => "submitting",
            OutputState::Submitted => "submitted",
            OutputState::Stored => "stored",
            OutputState::Failed => "failed",
            OutputState::Canceled => "canceled",
        }
    }

    /// Returns `true` if the state is terminal.
    pub const fn is_terminal(self) -> bool {
        matches!(self, OutputState::Stored | OutputState::Failed | OutputState::Canceled)
    }
}

impl std::str::FromStr for OutputState {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        use OutputState::{Canceled, Failed, Ready, Stored, Submitted, Submitting};
        let all = [Ready, Submitting, Submitted, Stored, Failed, Canceled];
        all.into_iter().find(|state| state.as_str() == text).ok_or(())
    }
}

/// An output and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutput {
    /// Position of the output, from 0 in the order of the job's targets.
    pub position: i32,
    /// State of the output.
    pub state: OutputState,
    /// Number of submits so far.
    pub attempts: i32,
    /// How often work failed in the present state: repeated submits, look-ups, downloads.
    pub tries: i32,
    /// The provider's run, as it was recorded.
    pub run: Option<Value>,
    /// Time until the next step is due.
    pub due_in: Duration,
    /// Time since the provider's run was recorded.
    pub running_for: Duration,
    /// Time until the deadline; `None` before the first submit.
    pub given_up_in: Option<Duration>,
    /// The placement that ending the job requires, once the output is stored.
    pub placement: Option<Placement>,
    /// Why the output failed, or the error of its last attempt.
    pub failure: Option<Failure>,
}

impl JobOutput {
    /// Returns `true` if the deadline has passed.
    pub fn is_overdue(&self) -> bool {
        self.given_up_in == Some(Duration::ZERO)
    }
}

/// An output under the lease of its job's task. Required to change the output.
#[derive(Clone, Copy, Debug)]
pub struct LeasedOutput {
    /// Id of the job.
    pub job: JobId,
    /// Fencing token of the job's task.
    pub lease_token: Uuid,
    /// Position of the output.
    pub position: i32,
}

/// Reads the job's outputs in order, after inserting `count` new ones if there are none, and returns whether it inserted them.
/// `None`: the lease is no longer current.
#[tracing::instrument(skip_all, name = "db.job.outputs.open")]
pub async fn open(
    conn: &mut PgConnection,
    job: JobId,
    lease_token: Uuid,
    count: usize,
) -> Result<Option<(Vec<JobOutput>, bool)>> {
    let found = list(conn, job).await?;
    if !found.is_empty() {
        return Ok(Some((found, false)));
    }
    // A request has at most four targets, so the conversion does not saturate.
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let made = sqlx::query!(
        "INSERT INTO job_outputs (job_id, position)
         SELECT t.id, position FROM task_queue t, generate_series(0, $3::integer - 1) AS position
         WHERE t.id = $1 AND t.lease_token = $2
         ON CONFLICT DO NOTHING",
        job.0,
        lease_token,
        count,
    )
    .execute(&mut *conn)
    .await?;
    if made.rows_affected() == 0 {
        return Ok(None);
    }
    Ok(Some((list(conn, job).await?, true)))
}

/// Lists the job's outputs in order; empty before a worker first claimed the job.
#[tracing::instrument(skip_all, name = "db.job.outputs.list")]
pub async fn list(conn: &mut PgConnection, job: JobId) -> Result<Vec<JobOutput>> {
    let rows = sqlx::query!(
        r#"SELECT position, state, attempts, tries, run, placement AS "placement: Json<Placement>",
                  failure AS "failure: Json<Failure>",
                  extract(epoch FROM due_at - now())::float8 AS "due_in!",
                  coalesce(extract(epoch FROM now() - submitted_at), 0)::float8 AS "running_for!",
                  extract(epoch FROM deadline_at - now())::float8 AS given_up_in
           FROM job_outputs WHERE job_id = $1 ORDER BY position"#,
        job.0
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(JobOutput {
                position: row.position,
                state: known("job_outputs.state", &row.state)?,
                attempts: row.attempts,
                tries: row.tries,
                run: row.run,
                due_in: seconds(row.due_in).unwrap_or_default(),
                running_for: seconds(row.running_for).unwrap_or_default(),
                given_up_in: row.given_up_in.and_then(seconds),
                placement: row.placement.map(|placement| placement.0),
                failure: row.failure.map(|failure| failure.0),
            })
        })
        .collect()
}

/// Executes a change of an output. Returns whether it took effect.
async fn change(conn: &mut PgConnection, change: Query<'_, Postgres, PgArguments>) -> Result<bool> {
    Ok(change.execute(conn).await?.rows_affected() == 1)
}

/// Records that the output is about to be submitted: a `ready` one, or one whose submit had an unknown outcome at a provider
/// that rejects a duplicate. The first call sets the deadline, `patience` from now. `false`: the lease or the state does not
/// permit it.
#[tracing::instrument(skip_all, name = "db.job.outputs.begin_submit")]
pub async fn begin_submit(conn: &mut PgConnection, leased: LeasedOutput, patience: Duration) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET state = 'submitting', attempts = attempts + 1,
                tries = CASE state WHEN 'submitting' THEN tries + 1 ELSE 0 END,
                deadline_at = coalesce(deadline_at, now() + make_interval(secs => $4))
         WHERE job_id = $1 AND position = $3 AND state IN ('ready', 'submitting')
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        patience.as_secs_f64(),
    );
    change(conn, changed).await
}

/// Returns an output to `ready` whose submit was certainly not accepted, to be repeated after `due_in`. A submit that failed
/// before it was begun counts as an attempt, too. `false`: no longer held.
#[tracing::instrument(skip_all, name = "db.job.outputs.put_back")]
pub async fn put_back(conn: &mut PgConnection, leased: LeasedOutput, met: &Failure, due_in: Duration) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET state = 'ready', attempts = attempts + (state = 'ready')::integer, tries = 0, failure = $4,
                due_at = now() + make_interval(secs => $5)
         WHERE job_id = $1 AND position = $3 AND state IN ('ready', 'submitting')
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        Json(met) as _,
        due_in.as_secs_f64(),
    );
    change(conn, changed).await
}

/// Records that the outcome of a submit is unknown, and the error. It is looked up after `due_in`. `false`: no longer held.
#[tracing::instrument(skip_all, name = "db.job.outputs.note_unknown")]
pub async fn note_unknown(
    conn: &mut PgConnection,
    leased: LeasedOutput,
    met: &Failure,
    due_in: Duration,
) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET failure = $4, due_at = now() + make_interval(secs => $5)
         WHERE job_id = $1 AND position = $3 AND state = 'submitting'
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        Json(met) as _,
        due_in.as_secs_f64(),
    );
    change(conn, changed).await
}

/// Records the provider's run of an output, to be polled after `due_in`. `false`: no longer held.
#[tracing::instrument(skip_all, name = "db.job.outputs.submitted")]
pub async fn submitted(conn: &mut PgConnection, leased: LeasedOutput, run: &Value, due_in: Duration) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET state = 'submitted', run = $4, accepted = true, tries = 0, failure = NULL, submitted_at = now(),
                due_at = now() + make_interval(secs => $5)
         WHERE job_id = $1 AND position = $3 AND state = 'submitting'
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        run,
        due_in.as_secs_f64(),
    );
    change(conn, changed).await
}

/// Records that the provider accepted a submit whose response is missing. A cancel charges it. `false`: no longer held.
#[tracing::instrument(skip_all, name = "db.job.outputs.note_accepted")]
pub async fn note_accepted(conn: &mut PgConnection, leased: LeasedOutput) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET accepted = true
         WHERE job_id = $1 AND position = $3 AND state = 'submitting'
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
    );
    change(conn, changed).await
}

/// Schedules the next step after `due_in`; `tried` counts a failed try. `false`: no longer held, or terminal.
#[tracing::instrument(skip_all, name = "db.job.outputs.put_off")]
pub async fn put_off(conn: &mut PgConnection, leased: LeasedOutput, due_in: Duration, tried: bool) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET due_at = now() + make_interval(secs => $4), tries = tries + $5::boolean::integer
         WHERE job_id = $1 AND position = $3 AND state IN ('submitting', 'submitted')
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        due_in.as_secs_f64(),
        tried,
    );
    change(conn, changed).await
}

/// Records that the output's image is stored. An output of the embedded runtime goes straight from `ready`. `false`: no
/// longer held, or terminal.
#[tracing::instrument(skip_all, name = "db.job.outputs.stored")]
pub async fn stored(conn: &mut PgConnection, leased: LeasedOutput, placement: &Placement) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET state = 'stored', placement = $4, failure = NULL
         WHERE job_id = $1 AND position = $3 AND state IN ('ready', 'submitting', 'submitted')
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        Json(placement) as _,
    );
    change(conn, changed).await
}

/// Marks an output as failed; `orphan`: a provider may have made it all the same. `false`: no longer held, or terminal.
#[tracing::instrument(skip_all, name = "db.job.outputs.failed")]
pub async fn failed(conn: &mut PgConnection, leased: LeasedOutput, failure: &Failure, orphan: bool) -> Result<bool> {
    let changed = sqlx::query!(
        "UPDATE job_outputs SET state = 'failed', failure = $4, orphan = $5
         WHERE job_id = $1 AND position = $3 AND state IN ('ready', 'submitting', 'submitted')
           AND EXISTS (SELECT FROM task_queue t WHERE t.id = $1 AND t.lease_token = $2)",
        leased.job.0,
        leased.lease_token,
        leased.position,
        Json(failure) as _,
        orphan,
    );
    change(conn, changed).await
}

/// Returns `true` if a provider may be working on an output of the job. If so, a worker carries out the cancel.
#[tracing::instrument(skip_all, name = "db.job.outputs.are_under_way")]
pub async fn are_under_way(conn: &mut PgConnection, job: JobId) -> Result<bool> {
    let under_way = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM job_outputs WHERE job_id = $1 AND state IN ('submitting', 'submitted'))
           AS "under_way!""#,
        job.0
    );
    Ok(under_way.fetch_one(conn).await?)
}

/// Outputs that end with the job: how many a provider accepted without failing, and how many it may have made without the
/// service knowing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Number of outputs that a cancel charges.
    pub accepted: i64,
    /// Number of possible orphans, to be looked up when the provider's bill differs from the ledger.
    pub orphans: i32,
}

/// Ends the outputs of a job that has ended: unfinished ones become `canceled`. One whose submit had an unknown outcome is a
/// possible orphan. If the job has failed, an accepted one is, too: nothing is charged for it.
#[tracing::instrument(skip_all, name = "db.job.outputs.close")]
pub async fn close(conn: &mut PgConnection, job: JobId, has_failed: bool) -> Result<Closed> {
    sqlx::query!(
        "UPDATE job_outputs SET state = 'canceled', orphan = state <> 'ready' AND (NOT accepted OR $2)
         WHERE job_id = $1 AND state IN ('ready', 'submitting', 'submitted')",
        job.0,
        has_failed,
    )
    .execute(&mut *conn)
    .await?;
    let row = sqlx::query!(
        r#"SELECT count(*) FILTER (WHERE accepted AND state <> 'failed') AS "accepted!",
                  count(*) FILTER (WHERE orphan)::integer AS "orphans!"
           FROM job_outputs WHERE job_id = $1"#,
        job.0
    )
    .fetch_one(conn)
    .await?;
    Ok(Closed { accepted: row.accepted, orphans: row.orphans })
}
