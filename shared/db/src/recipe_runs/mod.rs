//! Runs of Recipes (decisions 13.6, 13.7).
//!
//! **Guarantee.** A run's outputs become terminal one after the other and each once; what a worker writes takes place only
//! while the run is not over, its lease on the run's task holds and the delegation does: token, session, account, role. A
//! run that is over leaves no node waiting for it and no credit reserved under its id.
//!
//! **Mechanism.** Every step a worker takes is one transaction in the one lock order (account, canvas, run) that begins with
//! [`Scene::enter`], which locks the canvas and then counts up the run's version on these conditions. An image step is a
//! job of its own, which takes its share of the reservation along ([`crate::ledger::transfer`]) and settles it by itself, so
//! that the end of a run need not wait for jobs that still settle theirs. Such a job places nothing, and charges nothing for it,
//! when the run's delegation no longer holds as it ends ([`is_delegated`], [`crate::jobs::conclude`]).
//!
//! **Reason.** A worker that was thought dead, a cancel and a revocation may all meet in one moment; whichever transaction
//! is first is the one that counts, and the others find nothing to do.

mod delegation;
mod end;
mod steps;

#[cfg(test)]
mod tests;

use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, CanvasId, JobId, NodeId, RecipeId};
use domain::recipe::Version;
use domain::recipe::run::{Plan, RunFailure, RunId, RunOutput, RunRecord};
use domain::review::CompletionReview;
use sqlx::PgConnection;
use sqlx::types::Json;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

pub use delegation::is_delegated;
pub use end::{RunEnding, cancel, conclude};
pub use steps::{
    ImageStep, Stepped, begin, begin_image, begin_text, cancel_output, end_image, end_text, mark_outputs, picture_of,
};

use crate::error::known;
use crate::{Result, deliveries};

/// A run to accept.
#[derive(Debug)]
pub struct NewRun<'a> {
    /// Its id, and that of its task and its reservation.
    pub id: RunId,
    /// Who starts it and pays for it.
    pub account: &'a AccountUid,
    /// The token that it is started with.
    pub token_id: Uuid,
    /// What is run.
    pub recipe: (&'a RecipeId, Version),
    /// Key and handle of the canvas.
    pub canvas: (i64, &'a CanvasHandle),
    /// The instance's sticky.
    pub instance: &'a NodeId,
    /// What is asked for, resolved.
    pub plan: &'a Plan,
}

/// Accepts a run: `queued`, every output `pending`. Reservation ([`Plan::credit_cost`]), task and output nodes
/// ([`mark_outputs`]) are the caller's in the same transaction.
#[instrument(skip_all, name = "db.recipe_run.insert")]
pub async fn insert(conn: &mut PgConnection, run: &NewRun<'_>) -> Result<()> {
    let (canvas_key, canvas) = run.canvas;
    let (recipe, version) = run.recipe;
    sqlx::query!(
        "INSERT INTO recipe_runs (id, account_uid, token_id, status, recipe_id, recipe_version, canvas_key, canvas_owner,
                                  canvas_id, instance_node, plan, reserved)
         VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, $9, $10, $11)",
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

struct Row {
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

/// The run of `id` if it is `account`'s, with its outputs and the state of its webhook.
#[instrument(skip_all, name = "db.recipe_run.get")]
pub async fn get(conn: &mut PgConnection, id: RunId, account: &AccountUid) -> Result<Option<RunRecord>> {
    Ok(read(conn, id).await?.filter(|run| run.account == *account))
}

/// The run of `id`, whoever's it is.
async fn read(conn: &mut PgConnection, id: RunId) -> Result<Option<RunRecord>> {
    let row = sqlx::query_as!(
        Row,
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
    }))
}
