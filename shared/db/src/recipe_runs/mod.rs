//! Recipe runs (docs/reference/recipes.md#reciperun).
//!
//! **Guarantee.** A run's outputs become terminal one after the other and once each. A worker's write takes effect only while
//! the run is unfinished, the lease on the run's task is current and the delegation (token, session, account, role) is valid. A
//! finished run leaves no node waiting for it and no credit reserved under its id.
//!
//! **Mechanism.** Every step of a worker is one transaction in the global lock order (account, canvas, run). It begins with
//! [`LockedRun::lock`], which locks the canvas and then increments the run's version under these conditions. An image step is a
//! separate job, which takes its part of the reservation along ([`crate::ledger::transfer`]) and settles it itself, so that the
//! end of a run does not wait for jobs that still have to settle. Such a job places nothing and charges nothing when the run's
//! delegation is no longer valid at the job's end ([`is_delegated`]). The steps themselves are in the application layer.
//!
//! **Reason.** A worker whose lease expired, a cancel and a revocation may coincide. The first transaction to commit counts,
//! and the others find nothing to do.

mod delegation;
mod locked;

use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId, NodeId, RecipeId};
use domain::recipe::Version;
use domain::recipe::run::{Plan, RunFailure, RunId, RunOutput, RunRecord};
use domain::review::CompletionReview;
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

pub use delegation::{Delegation, is_delegated};
pub use locked::{LockedRun, MadeTargets, account_of, begin, made_targets};

use crate::error::known;
use crate::{Result, deliveries};

/// A run to accept.
#[derive(Debug)]
pub struct NewRun<'a> {
    /// Id of the run, its task and its reservation.
    pub id: RunId,
    /// The account that starts the run and pays for it.
    pub account: &'a AccountUid,
    /// Id of the token that starts the run.
    pub token_id: Uuid,
    /// The Recipe and its version.
    pub recipe: (&'a RecipeId, Version),
    /// Key and handle of the canvas.
    pub canvas: (i64, &'a CanvasHandle),
    /// The sticky node of the instance.
    pub instance: &'a NodeId,
    /// The resolved request.
    pub plan: &'a Plan,
}

/// Accepts a run: `queued`, every output `pending`. In the same transaction the caller reserves the credit
/// ([`Plan::credit_cost`]), enqueues the task and binds the output nodes.
#[instrument(skip_all, name = "db.recipe_run.insert")]
pub async fn insert(conn: &mut PgConnection, run: &NewRun<'_>) -> Result<()> {
    let (canvas_key, canvas) = run.canvas;
    let (recipe, version) = run.recipe;
    sqlx::query!(
        "INSERT INTO recipe_runs (id, account_uid, token_id, status, recipe_id, recipe_version, canvas_key, canvas_owner,
                                  canvas_id, instance_node, plan, reserved, canvas_sequence)
         VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, $9, $10, $11, (SELECT sequence + 1 FROM canvases WHERE key = $6))",
        run.id.0,
        run.account.as_str(),
        run.token_id,
        recipe.as_str(),
        version.0,
        canvas_key,
        canvas.owner.as_str(),
        canvas.id.as_str(),
        run.instance.as_str(),
        Json(run.plan) as _,
        run.plan.credit_cost()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "INSERT INTO recipe_run_outputs (run_id, position) SELECT $1, generate_series(0, $2::integer - 1)",
        run.id.0,
        i32::try_from(run.plan.steps.len()).unwrap_or(i32::MAX)
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct RecipeRunRow {
    id: Uuid,
    account_uid: String,
    status: String,
    version: i32,
    recipe_id: String,
    recipe_version: i32,
    canvas_owner: String,
    canvas_id: String,
    instance_node: String,
    plan: Json<Plan>,
    failure: Option<Json<RunFailure>>,
    review: Option<Json<CompletionReview>>,
    credit_cost: i64,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    completed_at: Option<DateTime<Utc>>,
    updated_at: DateTime<Utc>,
}

struct OutputRow {
    status: String,
    job_id: Option<Uuid>,
    asset_owner: Option<String>,
    asset_id: Option<String>,
    value: Option<String>,
    failure: Option<Json<RunFailure>>,
    started_at: Option<DateTime<Utc>>,
    completed_at: Option<DateTime<Utc>>,
}

impl TryFrom<OutputRow> for RunOutput {
    type Error = crate::Error;

    fn try_from(row: OutputRow) -> Result<Self> {
        let asset = row
            .asset_owner
            .zip(row.asset_id)
            .map(|(owner, id)| AssetHandle { owner: AccountUid::from_stored(owner), id: AssetId::from_stored(id) });
        Ok(Self {
            status: known("recipe_run_outputs.status", &row.status)?,
            job: row.job_id.map(JobId),
            asset,
            value: row.value,
            failure: row.failure.map(|failure| failure.0),
            started_at: row.started_at.map(Into::into),
            completed_at: row.completed_at.map(Into::into),
        })
    }
}

/// Reads the run of `id` if it belongs to `account`, with its outputs and the state of its webhook.
#[instrument(skip_all, name = "db.recipe_run.get")]
pub async fn get(conn: &mut PgConnection, id: RunId, account: &AccountUid) -> Result<Option<RunRecord>> {
    Ok(read(conn, id).await?.filter(|run| run.account == *account))
}

/// Reads the run of `id`, of any account.
async fn read(conn: &mut PgConnection, id: RunId) -> Result<Option<RunRecord>> {
    let row = sqlx::query_as!(
        RecipeRunRow,
        r#"SELECT r.id, r.account_uid, r.status, r.version, r.recipe_id, r.recipe_version, r.canvas_owner, r.canvas_id,
                  r.instance_node, r.plan AS "plan: _", r.failure AS "failure: _", r.review AS "review: _",
                  -- What is reserved and what was charged, of the run and of its jobs, which the ledger outlives. One array
                  -- of their ids, because the index serves no OR over a sub-select: that scans the ledger of everybody.
                  (SELECT coalesce(-sum(l.amount), 0)::bigint FROM ledger l
                   WHERE l.job_id = ANY (r.id || ARRAY(SELECT o.job_id FROM recipe_run_outputs o
                                                       WHERE o.run_id = r.id))) AS "credit_cost!",
                  r.created_at, r.started_at, r.completed_at, r.updated_at
           FROM recipe_runs r WHERE r.id = $1"#,
        id.0
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let outputs = sqlx::query_as!(
        OutputRow,
        r#"SELECT status, job_id, asset_owner, asset_id, value, failure AS "failure: _", started_at, completed_at
           FROM recipe_run_outputs WHERE run_id = $1 ORDER BY position"#,
        id.0
    )
    .fetch_all(&mut *conn)
    .await?;
    Ok(Some(RunRecord {
        id: RunId(row.id),
        account: AccountUid::from_stored(row.account_uid),
        status: known("recipe_runs.status", &row.status)?,
        version: row.version,
        recipe: RecipeId::from_stored(row.recipe_id),
        recipe_version: Version(row.recipe_version),
        canvas: CanvasHandle {
            owner: AccountUid::from_stored(row.canvas_owner),
            id: CanvasId::from_stored(row.canvas_id),
        },
        instance: NodeId::from_stored(row.instance_node),
        plan: row.plan.0,
        outputs: outputs.into_iter().map(TryInto::try_into).collect::<Result<_>>()?,
        failure: row.failure.map(|failure| failure.0),
        completion_review: row.review.map(|review| review.0),
        credit_cost: row.credit_cost,
        created_at: row.created_at.into(),
        started_at: row.started_at.map(Into::into),
        completed_at: row.completed_at.map(Into::into),
        updated_at: row.updated_at.into(),
        webhook: deliveries::state(conn, JobId(id.0)).await?,
        waiting_for: None,
    }))
}
