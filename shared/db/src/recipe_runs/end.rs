//! The end of a run, in one transaction: outputs, nodes, credit, review, revision, activity, webhook event and run change
//! together or not at all, once a run.

use domain::canvas::ActivityType;
use domain::graph::Node;
use domain::id::AccountUid;
use domain::job::JobStatus;
use domain::recipe::run::{OutputStatus, RunFailure, RunFailureCode, RunId, RunRecord, RunStatus};
use domain::review::CompletionReview;
use domain::webhook::Event;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use super::read;
use super::steps::{NodeChange, Scene, account_of, free, picture_of};
use crate::canvases::{self, NewActivity};
use crate::deliveries::{self, NewEvent};
use crate::jobs::{self, Cancellation, Terms};
use crate::{Error, Result, accounts, assets, ledger, tasks};

/// How a worker ends a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnding {
    /// Every output is terminal: it succeeded when all of them did.
    Over,
    /// It cannot go on.
    Failed(RunFailure),
}

/// Ends a run under the lease on its task. Whatever the ending, a delegation that no longer holds fails the run with
/// `delegation_revoked`. Outputs that are not terminal are canceled, a job that makes one is asked to stop; one that has made it
/// by then leaves it to the run. `None`: the run is over already, or the lease is no longer current.
#[instrument(skip_all, name = "db.recipe_run.conclude")]
pub async fn conclude(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    ending: &RunEnding,
    terms: &Terms<'_>,
    child_revision: &str,
) -> Result<Option<RunRecord>> {
    let Some(account) = account_of(conn, id).await? else { return Ok(None) };
    accounts::lock(conn, &account).await?;
    let Some(scene) = Scene::enter(conn, id, Some(lease_token)).await? else { return Ok(None) };
    if !tasks::settle(conn, id.0, lease_token).await? {
        return Ok(None);
    }
    let Some(run) = read(conn, id).await? else { return Ok(None) };
    let revoked = RunFailure {
        code: RunFailureCode::DelegationRevoked,
        message: "the token, its session, its account or its role on the canvas no longer holds".into(),
        retryable: false,
        output_key: None,
    };
    let (status, failure) = match ending {
        _ if !scene.holds => (RunStatus::Failed, Some(revoked)),
        RunEnding::Failed(failure) => (RunStatus::Failed, Some(failure.clone())),
        RunEnding::Over => match first_missing(&run) {
            None => (RunStatus::Succeeded, None),
            Some(failure) => (RunStatus::Failed, Some(failure)),
        },
    };
    end(conn, &scene, &run, status, failure, terms, child_revision).await.map(Some)
}

/// Stops the run of `id` if it is `account`'s, at once and for good (decisions 9.5): with every output that is not there
/// yet; a job that makes one follows as jobs do. The record as it is now, and whether this stopped it; `None`: there is no
/// such run. A worker that has it in hand finds that it is over.
#[instrument(skip_all, name = "db.recipe_run.cancel")]
pub async fn cancel(
    conn: &mut PgConnection,
    id: RunId,
    account: &AccountUid,
    terms: &Terms<'_>,
    child_revision: &str,
) -> Result<Option<(RunRecord, bool)>> {
    if account_of(conn, id).await?.as_ref() != Some(account) {
        return Ok(None);
    }
    accounts::lock(conn, account).await?;
    let Some(scene) = Scene::enter(conn, id, None).await? else {
        return Ok(read(conn, id).await?.map(|run| (run, false)));
    };
    tasks::request_cancel(conn, id.0).await?;
    let Some(run) = read(conn, id).await? else { return Ok(None) };
    let failure = RunFailure {
        code: RunFailureCode::RunCanceled,
        message: "the run was canceled".into(),
        retryable: false,
        output_key: None,
    };
    let run = end(conn, &scene, &run, RunStatus::Canceled, Some(failure), terms, child_revision).await?;
    Ok(Some((run, true)))
}

/// Why a run whose outputs are all terminal has not succeeded: its first output that is missing by itself, with its own reason.
fn first_missing(run: &RunRecord) -> Option<RunFailure> {
    let missing = |status: OutputStatus| {
        let found = run.plan.steps.iter().zip(&run.outputs).find(|(_, output)| output.status == status);
        found.map(|(step, output)| {
            let cause = output.failure.clone().unwrap_or_else(|| RunFailure {
                code: RunFailureCode::StepFailed,
                message: format!("{} was canceled", step.label),
                retryable: false,
                output_key: None,
            });
            RunFailure { output_key: Some(step.key.clone()), ..cause }
        })
    };
    missing(OutputStatus::Failed).or_else(|| missing(OutputStatus::Canceled))
}

async fn end(
    conn: &mut PgConnection,
    scene: &Scene,
    run: &RunRecord,
    status: RunStatus,
    failure: Option<RunFailure>,
    terms: &Terms<'_>,
    child_revision: &str,
) -> Result<RunRecord> {
    let id = scene.id;
    for (at, output) in run.outputs.iter().enumerate().filter(|(_, output)| !output.status.is_terminal()) {
        let Some(job) = output.job else { continue };
        let terms = Terms { revision: child_revision, ..*terms };
        let stopped = jobs::cancel(conn, job, &scene.account, &terms).await?;
        // Made before this, though the run has not heard of it: it is on the canvas and paid for.
        if let Some(Cancellation::Unchanged(job)) = stopped
            && let Some(picture) = picture_of(&job)
            && scene.turn(conn, at, OutputStatus::Running, OutputStatus::Succeeded).await?
        {
            scene.note_picture(conn, at, picture).await?;
        }
    }
    sqlx::query!(
        "UPDATE recipe_run_outputs SET status = 'canceled', completed_at = now()
         WHERE run_id = $1 AND status IN ('pending', 'running')",
        id.0
    )
    .execute(&mut *conn)
    .await?;
    let reserved = sqlx::query_scalar!("SELECT reserved FROM recipe_runs WHERE id = $1", id.0).fetch_one(&mut *conn);
    let reserved = reserved.await?;
    ledger::give_back(conn, &scene.account, id.0, reserved).await?;
    sqlx::query!(
        "UPDATE recipe_runs SET status = $2, failure = $3, reserved = 0, completed_at = now() WHERE id = $1",
        id.0,
        status.as_str(),
        failure.map(Json) as _
    )
    .execute(&mut *conn)
    .await?;
    let (nodes, bytes_delta) = freed(conn, scene, run).await?;
    let concerned: Vec<_> = run.plan.steps.iter().map(|step| step.node.clone()).collect();
    let activity = NewActivity {
        kind: ActivityType::RecipeFinished,
        actor: &scene.actor,
        summary: match status {
            RunStatus::Canceled => "a Recipe run was canceled".to_owned(),
            ended => format!("a Recipe run {ended}"),
        },
        nodes: &concerned,
    };
    scene
        .write(conn, NodeChange { revision: terms.revision, nodes: &nodes, bytes_delta, activity: Some(activity) })
        .await?;
    if let (Some((key, _)), true) = (&scene.canvas, scene.is_readable) {
        let review = reviewed(conn, *key, terms).await?;
        sqlx::query!("UPDATE recipe_runs SET review = $2 WHERE id = $1", id.0, Json(review) as _)
            .execute(&mut *conn)
            .await?;
    }
    announce(conn, id, terms).await
}

/// The output nodes that still wait for the run, freed, and by how much they grow.
async fn freed(conn: &mut PgConnection, scene: &Scene, run: &RunRecord) -> Result<(Vec<Node>, i64)> {
    let (mut nodes, mut bytes_delta) = (Vec::new(), 0);
    for step in &run.plan.steps {
        let Some(mut node) = scene.waiting(conn, &step.node).await? else { continue };
        let before = jobs::serialized_bytes(&node)?;
        free(&mut node, scene.id, JobStatus::Canceled);
        bytes_delta += jobs::serialized_bytes(&node)? - before;
        nodes.push(node);
    }
    Ok((nodes, bytes_delta))
}

/// Reviews the canvas as the transaction sees it (decisions 5.4).
async fn reviewed(conn: &mut PgConnection, canvas_key: i64, terms: &Terms<'_>) -> Result<CompletionReview> {
    let (nodes, connections) = canvases::skeleton(conn, canvas_key).await?;
    let named = nodes.iter().flat_map(Node::named_assets).collect();
    let assets = assets::origins(conn, &named).await?;
    Ok((terms.review)(nodes, connections, &assets, &[]))
}

/// Fixes the webhook's event, where one is wanted, and gives the record as it is now.
async fn announce(conn: &mut PgConnection, id: RunId, terms: &Terms<'_>) -> Result<RunRecord> {
    let unreadable = |value: String| Error::Unreadable { column: "recipe_runs", value };
    let record = read(conn, id).await?.ok_or_else(|| unreadable("gone".into()))?;
    if record.webhook.is_some() {
        let event_id = Uuid::now_v7();
        let at = record.completed_at.ok_or_else(|| unreadable("completed_at".into()))?;
        let event = Event::recipe_run(event_id, at, &record);
        let body = serde_json::to_vec(&event).map_err(|error| unreadable(error.to_string()))?;
        let event = NewEvent { id: event_id, kind: event.kind, body: &body, traceparent: terms.traceparent };
        deliveries::complete(conn, domain::id::JobId(id.0), &event).await?;
        return read(conn, id).await?.ok_or_else(|| unreadable("gone".into()));
    }
    Ok(record)
}
