//! The outputs of a job that a model makes, one by one; a video job has one: what was asked of a provider, and what came of it
//! (decisions 9.8, 12.5).
//!
//! **Guarantee.** A submit is on record, under the lease of whoever makes it, before it is made; so whoever finds an output
//! `submitting` that it did not begin itself knows that its outcome is unknown, and nobody ever submits such an output as if it
//! were new. A provider's run is recorded before it is first polled, and a worker that comes later goes on with it.
//!
//! **Mechanism.** Every change is one statement, conditional on the state that it leaves and on the lease of the job's task.
//! Times are the database's: due times, deadlines and what has passed are handed out as durations.
//!
//! **Reason.** Money: hardly a provider honours an idempotency key, so that a second submit is a second charge
//! (reliability.md 2).

use std::time::Duration;

use domain::id::JobId;
use domain::job::Failure;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::Placement;
use crate::Result;
use crate::error::known;
use crate::tasks::seconds;

/// Where an output stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// It may be submitted.
    Ready,
    /// A submit was begun; found by anybody else, its outcome is unknown.
    Submitting,
    /// A provider has it.
    Submitted,
    /// It is stored.
    Stored,
    /// It will not be made.
    Failed,
    /// The job ended before it did.
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

    /// Whether nothing more happens to it.
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

/// An output as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutput {
    /// From 0, in the order of the job's targets.
    pub position: i32,
    /// Where it stands.
    pub state: OutputState,
    /// Submits so far.
    pub attempts: i32,
    /// How often the present state's own work did not work out: repeated submits, look-ups, downloads.
    pub tries: i32,
    /// The provider's run, as it was recorded.
    pub run: Option<Value>,
    /// How long until its next step.
    pub due_in: Duration,
    /// How long ago its run was recorded.
    pub running_for: Duration,
    /// How long until it is given up; `None` before its first submit.
    pub given_up_in: Option<Duration>,
    /// What the job's end needs of it, once it is stored.
    pub placement: Option<Placement>,
    /// Why it failed, or what its last attempt met.
    pub failure: Option<Failure>,
}

impl JobOutput {
    /// Whether its time is over.
    pub fn is_overdue(&self) -> bool {
        self.given_up_in == Some(Duration::ZERO)
    }
}

/// An output under the lease of its job's task: what may change it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The job.
    pub job: JobId,
    /// The fencing token of the job's task.
    pub lease_token: Uuid,
    /// Which output.
    pub position: i32,
}

/// The job's outputs in their order, `count` fresh ones when there are none yet, and whether there were none. `None`: the
/// lease is no longer current.
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
    // A request has at most four targets (specification, Validation).
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let made = sqlx::query!(
        "INSERT INTO job_outputs (job_id, position)
         SELECT t.id, position FROM tasks t, generate_series(0, $3::integer - 1) AS position
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

/// The job's outputs in their order; none before a worker first took it.
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

/// A change of an output that is held: what is set, in which states, and the values from `$4` on. Whether it took place.
macro_rules! change {
    ($conn:expr, $held:expr, $set:literal, $states:literal $(, $value:expr)* $(,)?) => {{
        let done = sqlx::query!(
            "UPDATE job_outputs SET " + $set + " WHERE job_id = $1 AND position = $3 AND state IN (" + $states
                + ") AND EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2)",
            $held.job.0,
            $held.lease_token,
            $held.position
            $(, $value)*
        );
        Ok(done.execute($conn).await?.rows_affected() == 1)
    }};
}

/// Puts on record that the output is about to be submitted: a ready one, or one whose submit had an unknown outcome at a
/// provider that refuses to begin it twice. The first time sets its deadline, `patience` from now. False: not ours to submit.
#[tracing::instrument(skip_all, name = "db.job.outputs.begin_submit")]
pub async fn begin_submit(conn: &mut PgConnection, held: Held, patience: Duration) -> Result<bool> {
    change!(
        conn,
        held,
        "state = 'submitting', attempts = attempts + 1, tries = CASE state WHEN 'submitting' THEN tries + 1 ELSE 0 END,
         deadline_at = coalesce(deadline_at, now() + make_interval(secs => $4))",
        "'ready', 'submitting'",
        patience.as_secs_f64(),
    )
}

/// Takes a submit back that was surely not accepted, to be tried again after `due_in`. False: not ours.
#[tracing::instrument(skip_all, name = "db.job.outputs.put_back")]
pub async fn put_back(conn: &mut PgConnection, held: Held, met: &Failure, due_in: Duration) -> Result<bool> {
    change!(
        conn,
        held,
        "state = 'ready', tries = 0, failure = $4, due_at = now() + make_interval(secs => $5)",
        "'submitting'",
        Json(met) as _,
        due_in.as_secs_f64(),
    )
}

/// Notes that the outcome of a submit is not known, and what it met; it is looked into after `due_in`. False: not ours.
#[tracing::instrument(skip_all, name = "db.job.outputs.note_unknown")]
pub async fn note_unknown(conn: &mut PgConnection, held: Held, met: &Failure, due_in: Duration) -> Result<bool> {
    change!(
        conn,
        held,
        "failure = $4, due_at = now() + make_interval(secs => $5)",
        "'submitting'",
        Json(met) as _,
        due_in.as_secs_f64(),
    )
}

/// Records the provider's run of a submitted output; it is polled after `due_in`. False: not ours.
#[tracing::instrument(skip_all, name = "db.job.outputs.submitted")]
pub async fn submitted(conn: &mut PgConnection, held: Held, run: &Value, due_in: Duration) -> Result<bool> {
    change!(
        conn,
        held,
        "state = 'submitted', run = $4, accepted = true, tries = 0, failure = NULL, submitted_at = now(),
         due_at = now() + make_interval(secs => $5)",
        "'submitting'",
        run,
        due_in.as_secs_f64(),
    )
}

/// Notes that a submit was begun at the provider although its answer is not there: what a cancel charges. False: not ours.
#[tracing::instrument(skip_all, name = "db.job.outputs.note_accepted")]
pub async fn note_accepted(conn: &mut PgConnection, held: Held) -> Result<bool> {
    change!(conn, held, "accepted = true", "'submitting'")
}

/// Puts the next step off by `due_in`; `tried` counts it as one that did not work out. False: not ours, or over.
#[tracing::instrument(skip_all, name = "db.job.outputs.put_off")]
pub async fn put_off(conn: &mut PgConnection, held: Held, due_in: Duration, tried: bool) -> Result<bool> {
    change!(
        conn,
        held,
        "due_at = now() + make_interval(secs => $4), tries = tries + $5::boolean::integer",
        "'submitting', 'submitted'",
        due_in.as_secs_f64(),
        tried,
    )
}

/// Records that the output's picture is in the store; a ready one was made here, by nobody else. False: not ours, or over.
#[tracing::instrument(skip_all, name = "db.job.outputs.stored")]
pub async fn stored(conn: &mut PgConnection, held: Held, placement: &Placement) -> Result<bool> {
    change!(
        conn,
        held,
        "state = 'stored', placement = $4, failure = NULL",
        "'ready', 'submitting', 'submitted'",
        Json(placement) as _,
    )
}

/// Gives an output up; `orphan`: a provider may have made it all the same. False: not ours, or over.
#[tracing::instrument(skip_all, name = "db.job.outputs.failed")]
pub async fn failed(conn: &mut PgConnection, held: Held, failure: &Failure, orphan: bool) -> Result<bool> {
    change!(
        conn,
        held,
        "state = 'failed', failure = $4, orphan = $5",
        "'ready', 'submitting', 'submitted'",
        Json(failure) as _,
        orphan,
    )
}

/// Whether a provider may be working on an output of the job: then a cancel is a worker's to carry out.
pub(super) async fn are_under_way(conn: &mut PgConnection, job: JobId) -> Result<bool> {
    let under_way = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM job_outputs WHERE job_id = $1 AND state IN ('submitting', 'submitted'))
           AS "under_way!""#,
        job.0
    );
    Ok(under_way.fetch_one(conn).await?)
}

/// What ends with the job: how many outputs a provider accepted and did not fail at, and how many it may have made unknown to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Closed {
    /// What a cancel charges (decisions 12.4).
    pub accepted: i64,
    /// What is looked up at the provider when its bill does not agree with ours.
    pub orphans: i32,
}

/// Ends the outputs of a job that has ended: those that did not are `canceled`, and one in the midst of a submit may be an
/// orphan.
pub(super) async fn close(conn: &mut PgConnection, job: JobId) -> Result<Closed> {
    sqlx::query!(
        "UPDATE job_outputs SET state = 'canceled', orphan = state = 'submitting' AND NOT accepted
         WHERE job_id = $1 AND state IN ('ready', 'submitting', 'submitted')",
        job.0
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
