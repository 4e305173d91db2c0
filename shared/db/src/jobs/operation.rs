//! Jobs and Recipe runs as operators see them: account, state and worker.

use chrono::{DateTime, Utc};
use domain::id::AccountUid;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A job or run, in the form in which it is printed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedJob {
    /// Id, without its kind.
    #[serde(skip)]
    pub id: Uuid,
    /// The account that started it.
    pub account: String,
    /// `image`, `action`, `video` or `recipe`.
    pub kind: String,
    pub operation: String,
    /// State of the job or run.
    pub status: String,
    /// Credits reserved, or charged after the end.
    pub credit_cost: i64,
    /// `canvas:<ownerUid>:<id>`.
    pub canvas: Option<String>,
    /// State of its task as stored: `ready`, `parked` (scheduled) or `leased`; `None` after the end.
    pub task: Option<String>,
    /// How often a worker claimed it.
    pub claims: Option<i32>,
    /// The worker that holds its lease.
    pub worker: Option<String>,
    /// When it is due. It is not claimed earlier.
    #[serde(skip)]
    pub due_at: Option<DateTime<Utc>>,
    /// When it was accepted.
    #[serde(skip)]
    pub created_at: DateTime<Utc>,
    /// When a worker first claimed it.
    #[serde(skip)]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(skip)]
    pub completed_at: Option<DateTime<Utc>>,
}

impl ListedJob {
    /// `true` if it is a Recipe run.
    pub fn is_recipe(&self) -> bool {
        self.kind == "recipe"
    }
}

/// The id in `job:<uuid>`, `run:<uuid>`, `run:recipe-<uuid>`, or the id alone.
pub fn parse_id(text: &str) -> Option<Uuid> {
    let plain = text.strip_prefix("job:").or_else(|| text.strip_prefix("run:")).unwrap_or(text);
    Uuid::try_parse(plain.strip_prefix("recipe-").unwrap_or(plain)).ok()
}

/// Filter of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobFilter<'a> {
    pub id: Option<Uuid>,
    pub account: Option<&'a AccountUid>,
    /// Only these states; `None`: any state.
    pub statuses: Option<&'a [String]>,
    /// Only those before the one with this id.
    pub before: Option<Uuid>,
}

/// Lists the newest `limit` jobs and runs, newest first.
#[tracing::instrument(skip_all, name = "db.job.list")]
pub async fn list(conn: &mut PgConnection, wanted: JobFilter<'_>, limit: i64) -> Result<Vec<ListedJob>> {
    let rows = sqlx::query_as!(
        ListedJob,
        r#"SELECT w.id AS "id!", w.account_uid AS "account!", w.kind AS "kind!", w.operation AS "operation!",
                  w.status AS "status!", w.credit_cost AS "credit_cost!", w.canvas,
                  t.state AS "task?", t.claims AS "claims?", t.lease_owner AS worker, t.due_at AS "due_at?",
                  w.created_at AS "created_at!", w.started_at, w.completed_at
           FROM (
               (SELECT id, account_uid, kind, operation, status, credit_cost,
                       'canvas:' || canvas_owner || ':' || canvas_id AS canvas, created_at, started_at, completed_at
                FROM jobs
                WHERE ($1::uuid IS NULL OR id = $1) AND ($2::text IS NULL OR account_uid = $2)
                  AND ($3::text[] IS NULL OR status = ANY($3)) AND ($5::uuid IS NULL OR id < $5)
                ORDER BY id DESC LIMIT $4)
               UNION ALL
               (SELECT id, account_uid, 'recipe', 'recipe', status, reserved,
                       'canvas:' || canvas_owner || ':' || canvas_id, created_at, started_at, completed_at
                FROM recipe_runs
                WHERE ($1::uuid IS NULL OR id = $1) AND ($2::text IS NULL OR account_uid = $2)
                  AND ($3::text[] IS NULL OR status = ANY($3)) AND ($5::uuid IS NULL OR id < $5)
                ORDER BY id DESC LIMIT $4)
           ) AS w LEFT JOIN task_queue t ON t.id = w.id
           ORDER BY w.id DESC LIMIT $4"#,
        wanted.id,
        wanted.account.map(AccountUid::as_str),
        wanted.statuses,
        limit,
        wanted.before,
    );
    Ok(rows.fetch_all(conn).await?)
}

/// A state that a job was in.
#[derive(Clone, Debug)]
pub struct Step {
    /// The state.
    pub status: String,
    /// When the job entered the state.
    pub at: DateTime<Utc>,
}

/// Lists every state that a job was in, in order; empty for a Recipe run.
#[tracing::instrument(skip_all, name = "db.job.history")]
pub async fn history(conn: &mut PgConnection, id: Uuid) -> Result<Vec<Step>> {
    let steps = sqlx::query_as!(Step, "SELECT status, at FROM job_history WHERE job_id = $1 ORDER BY version", id);
    Ok(steps.fetch_all(conn).await?)
}

/// A submit to a provider.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Submit {
    /// Position of the output, from 0 in the order of the job's targets.
    pub position: i32,
    /// `ready`, `submitting`, `submitted`, `stored`, `failed` or `canceled`.
    pub state: String,
    /// Number of submits so far.
    pub attempts: i32,
    /// The provider's id of the run.
    pub provider_run: Option<String>,
    /// `true` if the provider may have begun a run whose outcome is unknown.
    pub orphan: bool,
}

/// Lists the outputs of a job that providers make.
#[tracing::instrument(skip_all, name = "db.job.submits")]
pub async fn submits(conn: &mut PgConnection, id: Uuid) -> Result<Vec<Submit>> {
    let submits = sqlx::query_as!(
        Submit,
        "SELECT position, state, attempts, run ->> 'id' AS provider_run, orphan
         FROM job_outputs WHERE job_id = $1 ORDER BY position",
        id
    );
    Ok(submits.fetch_all(conn).await?)
}
