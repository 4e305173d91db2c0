//! A worker's way through a run, step by step.

use domain::canvas::{Actor, Changes};
use domain::graph::Node;
use domain::id::{AccountUid, AssetHandle, JobId, NodeId};
use domain::job::{JobOperation, JobStatus, Record, Request};
use domain::recipe::run::{OutputStatus, RunFailure, RunId, RunRecord};
use serde_json::{Map, Value, json};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::delegation::Delegation;
use super::read;
use crate::canvases::{self, Change, GraphWrites};
use crate::jobs::{self, NewJob};
use crate::{Result, ledger};

/// What came of a worker's step. The transaction is to be committed after `Done` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// It took place.
    Done,
    /// The run is over, the output is not where the step begins, or the lease is no longer current.
    Stale,
    /// Token, session, account or role no longer holds: the run is to be ended with `delegation_revoked`.
    Revoked,
}

/// Takes up a run under a lease on its task and sets it `running` if it was queued; the record as it is now, and whether this
/// set it so. `None`: the lease is no longer current.
#[instrument(skip_all, name = "db.recipe_run.begin")]
pub async fn begin(conn: &mut PgConnection, id: RunId, lease_token: Uuid) -> Result<Option<(RunRecord, bool)>> {
    let set = sqlx::query!(
        "UPDATE recipe_runs SET status = 'running', version = version + 1, started_at = now(), updated_at = now()
         WHERE id = $1 AND status = 'queued'
           AND EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2)",
        id.0,
        lease_token
    )
    .execute(&mut *conn)
    .await?;
    let held = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM tasks WHERE id = $1 AND lease_token = $2) AS "held!""#,
        id.0,
        lease_token
    )
    .fetch_one(&mut *conn)
    .await?;
    if !held {
        return Ok(None);
    }
    Ok(read(conn, id).await?.map(|run| (run, set.rows_affected() == 1)))
}

/// A run and its canvas, locked, its version counted up.
pub(super) struct Scene {
    pub(super) id: RunId,
    pub(super) account: AccountUid,
    pub(super) token_id: Uuid,
    pub(super) actor: Actor,
    /// Key and owner, while the canvas is there.
    pub(super) canvas: Option<(i64, AccountUid)>,
    /// Whether the account may still see the canvas.
    pub(super) is_readable: bool,
    /// Whether token, session, account and role hold.
    pub(super) holds: bool,
}

impl Scene {
    /// Locks the canvas, then the run if it is not over and, with a lease, while that is current. `None`: it is, or is not.
    pub(super) async fn enter(conn: &mut PgConnection, id: RunId, lease_token: Option<Uuid>) -> Result<Option<Self>> {
        let canvas = sqlx::query!(
            "SELECT key, owner_uid FROM canvases WHERE key = (SELECT canvas_key FROM recipe_runs WHERE id = $1) FOR UPDATE",
            id.0
        )
        .fetch_optional(&mut *conn)
        .await?;
        // Counted up first: the row is held from here on, and everything below is read after whoever held it before.
        let entered = sqlx::query!(
            "UPDATE recipe_runs SET version = version + 1, updated_at = now()
             WHERE id = $1 AND completed_at IS NULL
               AND ($2::uuid IS NULL OR EXISTS (SELECT FROM tasks t WHERE t.id = $1 AND t.lease_token = $2))",
            id.0,
            lease_token
        )
        .execute(&mut *conn)
        .await?;
        if entered.rows_affected() == 0 {
            return Ok(None);
        }
        let Some(delegation) = Delegation::read(conn, id).await? else { return Ok(None) };
        let canvas = canvas.map(|canvas| (canvas.key, AccountUid::from_stored(canvas.owner_uid)));
        let Delegation { account, token_id, actor, is_readable, holds } = delegation;
        Ok(Some(Self { id, account, token_id, actor, canvas, is_readable, holds }))
    }

    /// Brings one output from a status to another; whether it was in the former.
    pub(super) async fn turn(
        &self,
        conn: &mut PgConnection,
        at: usize,
        from: OutputStatus,
        to: OutputStatus,
    ) -> Result<bool> {
        let turned = sqlx::query!(
            "UPDATE recipe_run_outputs SET status = $4,
                    started_at = CASE WHEN $4 = 'running' THEN now() ELSE started_at END,
                    completed_at = CASE WHEN $5 THEN now() END
             WHERE run_id = $1 AND position = $2 AND status = $3",
            self.id.0,
            position(at),
            from.as_str(),
            to.as_str(),
            to.is_terminal()
        )
        .execute(conn)
        .await?;
        Ok(turned.rows_affected() == 1)
    }

    /// Writes nodes of the canvas, and gives it its next revision if there are any or something is told of it.
    pub(super) async fn write(&self, conn: &mut PgConnection, change: NodeChange<'_>) -> Result<()> {
        let changes_nothing = change.nodes.is_empty() && change.activity.is_none();
        let (Some((key, _)), false) = (&self.canvas, changes_nothing) else { return Ok(()) };
        let writes = GraphWrites { nodes: change.nodes.iter().collect(), ..GraphWrites::default() };
        canvases::write_graph(conn, *key, &writes).await?;
        let changed_node_ids = change.nodes.iter().map(|node| node.id.clone()).collect();
        let change = Change {
            revision: change.revision,
            title: None,
            nodes_delta: 0,
            connections_delta: 0,
            bytes_delta: change.bytes_delta,
            changes: &Changes { changed_node_ids, ..Changes::default() },
            activity: change.activity,
        };
        canvases::commit_change(conn, *key, &change).await?;
        Ok(())
    }

    /// A node of the canvas, if it still waits for this run.
    pub(super) async fn waiting(&self, conn: &mut PgConnection, node: &NodeId) -> Result<Option<Node>> {
        let Some((key, _)) = &self.canvas else { return Ok(None) };
        Ok(canvases::node(conn, *key, node).await?.filter(|node| node.active_job == Some(self.id.0)))
    }

    /// Takes credit out of what is reserved under the run's own id.
    async fn spend(&self, conn: &mut PgConnection, amount: i64) -> Result<()> {
        sqlx::query!("UPDATE recipe_runs SET reserved = reserved - $2 WHERE id = $1", self.id.0, amount)
            .execute(conn)
            .await?;
        Ok(())
    }

    /// Notes the picture that an image step left.
    pub(super) async fn note_picture(&self, conn: &mut PgConnection, at: usize, picture: &AssetHandle) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET asset_owner = $3, asset_id = $4 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            picture.owner.as_str(),
            picture.id.as_str()
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    async fn fail(&self, conn: &mut PgConnection, at: usize, failure: &RunFailure) -> Result<()> {
        sqlx::query!(
            "UPDATE recipe_run_outputs SET failure = $3 WHERE run_id = $1 AND position = $2",
            self.id.0,
            position(at),
            Json(failure) as _
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}

/// Nodes to write with their growth in bytes.
pub(super) struct NodeChange<'a> {
    pub(super) revision: &'a str,
    pub(super) nodes: &'a [Node],
    pub(super) bytes_delta: i64,
    pub(super) activity: Option<canvases::NewActivity<'a>>,
}

/// A place in the list of outputs as its column holds it; there are at most 8.
fn position(at: usize) -> i16 {
    i16::try_from(at).unwrap_or(i16::MAX)
}

/// Lets a node wait for nothing any more, and notes how its step of the run stands.
pub(super) fn free(node: &mut Node, run: RunId, status: JobStatus) {
    node.active_job = None;
    let note = json!({"run": run.handle(), "status": status, "operation": "recipe"});
    node.server.insert("job".into(), note);
}

/// Says that a text step is being carried out, before anybody is asked for its text: the record of the submit, which takes place
/// once. One that is `running` already is `Stale`: its worker died over it.
#[instrument(skip_all, name = "db.recipe_run.begin_text")]
pub async fn begin_text(conn: &mut PgConnection, id: RunId, lease_token: Uuid, at: usize) -> Result<Stepped> {
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(Stepped::Stale) };
    if !scene.holds {
        return Ok(Stepped::Revoked);
    }
    Ok(stepped(scene.turn(conn, at, OutputStatus::Pending, OutputStatus::Running).await?))
}

/// Ends a text step: with its text, which is charged and written to its node, or with why there is none.
#[instrument(skip_all, name = "db.recipe_run.end_text")]
pub async fn end_text(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    made: &std::result::Result<(String, Map<String, Value>), RunFailure>,
    revision: &str,
) -> Result<Stepped> {
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(Stepped::Stale) };
    if !scene.holds {
        return Ok(Stepped::Revoked);
    }
    let status = if made.is_ok() { OutputStatus::Succeeded } else { OutputStatus::Failed };
    if !scene.turn(conn, at, OutputStatus::Running, status).await? {
        return Ok(Stepped::Stale);
    }
    let Some(run) = read(conn, id).await? else { return Ok(Stepped::Stale) };
    let step = &run.plan.steps[at];
    let job_status = match made {
        Ok((text, _)) => {
            sqlx::query!(
                "UPDATE recipe_run_outputs SET value = $3 WHERE run_id = $1 AND position = $2",
                id.0,
                position(at),
                text
            )
            .execute(&mut *conn)
            .await?;
            scene.spend(conn, step.model.credit_cost).await?;
            JobStatus::Succeeded
        }
        Err(failure) => {
            scene.fail(conn, at, failure).await?;
            JobStatus::Failed
        }
    };
    let Some(mut node) = scene.waiting(conn, &step.node).await? else { return Ok(Stepped::Done) };
    let before = jobs::serialized_bytes(&node)?;
    free(&mut node, id, job_status);
    if let Ok((text, provenance)) = made {
        // The service's text takes the place of the client's, which is outside its cap (decisions 3.5).
        node.metadata.remove("content");
        node.server.insert("content".into(), text.as_str().into());
        node.server.insert("provenance".into(), Value::Object(provenance.clone()));
    }
    let bytes_delta = jobs::serialized_bytes(&node)? - before;
    scene.write(conn, NodeChange { revision, nodes: &[node], bytes_delta, activity: None }).await?;
    Ok(Stepped::Done)
}

/// The image job of a step.
#[derive(Clone, Debug)]
pub struct ImageStep<'a> {
    /// The job's id.
    pub job: JobId,
    /// Generate or edit.
    pub operation: JobOperation,
    /// What is asked for.
    pub request: &'a Request,
    /// Guidance, at least 1.
    pub estimated_seconds: i32,
    /// Its share of the run's reservation.
    pub credit_cost: i64,
    /// A fresh revision, for the canvas.
    pub revision: &'a str,
    /// W3C trace context of the run.
    pub traceparent: Option<&'a str>,
}

/// Begins an image step: makes its job, with its share of the reservation and its node, and enqueues it.
#[instrument(skip_all, name = "db.recipe_run.begin_image")]
pub async fn begin_image(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    step: &ImageStep<'_>,
) -> Result<Stepped> {
    let Some(account) = account_of(conn, id).await? else { return Ok(Stepped::Stale) };
    crate::accounts::lock(conn, &account).await?;
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(Stepped::Stale) };
    let (true, Some((key, _))) = (scene.holds, &scene.canvas) else { return Ok(Stepped::Revoked) };
    if !scene.turn(conn, at, OutputStatus::Pending, OutputStatus::Running).await? {
        return Ok(Stepped::Stale);
    }
    let Some(run) = read(conn, id).await? else { return Ok(Stepped::Stale) };
    let job = NewJob {
        id: step.job,
        account: &scene.account,
        token_id: scene.token_id,
        operation: step.operation,
        canvas: Some((*key, &run.canvas)),
        canvas_revision: Some(step.revision),
        request: step.request,
        estimated_seconds: step.estimated_seconds,
        credit_cost: step.credit_cost,
        recipe_run: Some(id),
        traceparent: step.traceparent,
    };
    jobs::insert(conn, &job).await?;
    sqlx::query!(
        "UPDATE recipe_run_outputs SET job_id = $3 WHERE run_id = $1 AND position = $2",
        id.0,
        position(at),
        step.job.0
    )
    .execute(&mut *conn)
    .await?;
    scene.spend(conn, step.credit_cost).await?;
    ledger::transfer(conn, &scene.account, id.0, step.job.0, step.credit_cost).await?;
    // A node that was deleted meanwhile is as good as one that is deleted later (decisions 9.6).
    if let Some(mut node) = scene.waiting(conn, &run.plan.steps[at].node).await? {
        let before = jobs::serialized_bytes(&node)?;
        node.active_job = Some(step.job.0);
        let (job, status) = (step.job, JobStatus::Queued);
        let note =
            json!({"id": job.job_handle(), "run": job.run_handle(), "status": status, "operation": step.operation});
        node.server.insert("job".into(), note);
        let bytes_delta = jobs::serialized_bytes(&node)? - before;
        let change = NodeChange { revision: step.revision, nodes: &[node], bytes_delta, activity: None };
        scene.write(conn, change).await?;
    }
    Ok(Stepped::Done)
}

/// Ends an image step as its job ended: with its picture, or with why there is none. A job that was canceled by itself leaves
/// a canceled output (decisions 18.19).
#[instrument(skip_all, name = "db.recipe_run.end_image")]
pub async fn end_image(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    job: &Record,
    failure: Option<&RunFailure>,
) -> Result<Stepped> {
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(Stepped::Stale) };
    if !scene.holds {
        return Ok(Stepped::Revoked);
    }
    let picture = picture_of(job);
    let status = match (job.status, picture) {
        (JobStatus::Canceled, _) => OutputStatus::Canceled,
        (_, Some(_)) => OutputStatus::Succeeded,
        (_, None) => OutputStatus::Failed,
    };
    if !scene.turn(conn, at, OutputStatus::Running, status).await? {
        return Ok(Stepped::Stale);
    }
    if let Some(failure) = failure {
        scene.fail(conn, at, failure).await?;
    }
    if let Some(picture) = picture {
        scene.note_picture(conn, at, picture).await?;
    }
    Ok(Stepped::Done)
}

/// The picture that the job of a step left. A success whose record has expired counts: its picture is placed and paid for,
/// and who reads the job before the run takes it up must not change what becomes of the run (decisions 9.3).
pub fn picture_of(job: &Record) -> Option<&AssetHandle> {
    let made = matches!(job.status, JobStatus::Succeeded | JobStatus::Expired);
    job.outcome.images.first().filter(|_| made).map(|image| &image.asset)
}

/// Cancels an output that cannot be made, because one that it is made from is not there. Its node is freed.
#[instrument(skip_all, name = "db.recipe_run.cancel_output")]
pub async fn cancel_output(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    revision: &str,
) -> Result<Stepped> {
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(Stepped::Stale) };
    if !scene.holds {
        return Ok(Stepped::Revoked);
    }
    if !scene.turn(conn, at, OutputStatus::Pending, OutputStatus::Canceled).await? {
        return Ok(Stepped::Stale);
    }
    let Some(run) = read(conn, id).await? else { return Ok(Stepped::Stale) };
    if let Some(mut node) = scene.waiting(conn, &run.plan.steps[at].node).await? {
        let before = jobs::serialized_bytes(&node)?;
        free(&mut node, id, JobStatus::Canceled);
        let bytes_delta = jobs::serialized_bytes(&node)? - before;
        scene.write(conn, NodeChange { revision, nodes: &[node], bytes_delta, activity: None }).await?;
    }
    Ok(Stepped::Done)
}

fn stepped(took_place: bool) -> Stepped {
    if took_place { Stepped::Done } else { Stepped::Stale }
}

/// Whose a run is.
pub(super) async fn account_of(conn: &mut PgConnection, id: RunId) -> Result<Option<AccountUid>> {
    let account = sqlx::query_scalar!("SELECT account_uid FROM recipe_runs WHERE id = $1", id.0);
    Ok(account.fetch_optional(conn).await?.map(AccountUid::from_stored))
}

/// Binds the output nodes to a run that is being accepted, in a canvas whose row the transaction holds: they are `pending`
/// from here on. By how many bytes the graph grows; `None` when one is gone or waits for other work.
#[instrument(skip_all, name = "db.recipe_run.mark_outputs")]
pub async fn mark_outputs(
    conn: &mut PgConnection,
    canvas_key: i64,
    id: RunId,
    outputs: &[NodeId],
) -> Result<Option<i64>> {
    let (mut nodes, mut bytes_delta) = (Vec::new(), 0);
    for output in outputs {
        let node = canvases::node(conn, canvas_key, output).await?;
        let Some(mut node) = node.filter(|node| node.active_job.is_none()) else { return Ok(None) };
        let before = jobs::serialized_bytes(&node)?;
        free(&mut node, id, JobStatus::Queued);
        node.active_job = Some(id.0);
        bytes_delta += jobs::serialized_bytes(&node)? - before;
        nodes.push(node);
    }
    let writes = GraphWrites { nodes: nodes.iter().collect(), ..GraphWrites::default() };
    canvases::write_graph(conn, canvas_key, &writes).await?;
    Ok(Some(bytes_delta))
}
