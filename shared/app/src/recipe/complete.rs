//! The end of a Recipe run, in one transaction: outputs, nodes, credit, review, revision, activity, webhook event and run change
//! together or not at all, and once per run.

use std::collections::HashSet;

use db::canvases::NewActivity;
use db::deliveries::NewEvent;
use db::ledger::Unused;
use db::recipe_runs::LockedRun;
use db::{Error, PgConnection, Result};
use domain::canvas::ActivityType;
use domain::event::Event;
use domain::graph::Node;
use domain::id::{AccountUid, JobId, NodeId};
use domain::job::JobStatus;
use domain::message::Queue;
use domain::recipe::run::{OutputStatus, RunFailure, RunFailureCode, RunId, RunRecord, RunStatus};
use domain::review::DetachedOutput;
use tracing::instrument;
use uuid::Uuid;

use super::step::{image_of, waiting};
use crate::job::{self, Cancellation, CompletionContext};
use crate::removal::Removal;
use crate::{canvas, target};

/// How a worker ends a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCompletion {
    /// Every output is terminal. The run succeeds if all of them succeeded.
    Finished,
    /// The delegation was found to be no longer valid, even if it is valid again.
    Revoked,
    /// The run cannot continue.
    Failed(RunFailure),
}

/// Ends a run under the lease on its task. In any case, a run whose delegation is no longer valid fails with
/// `delegation_revoked`. Unfinished outputs are canceled, and their jobs are asked to stop; an image that a job has finished
/// by then is kept. `None`: the run has ended already, or the lease is no longer current.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.complete")]
pub async fn complete(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    completion: &RunCompletion,
    context: &CompletionContext<'_>,
) -> Result<Option<RunRecord>> {
    let Some(account) = db::recipe_runs::account_of(conn, id).await? else { return Ok(None) };
    db::accounts::lock(conn, &account).await?;
    let Some(run) = LockedRun::lock(conn, id, Some(lease_token)).await? else { return Ok(None) };
    if !db::tasks::settle(conn, id.0, lease_token).await? {
        return Ok(None);
    }
    let record = run.record(conn).await?;
    let revoked = || RunFailure {
        code: RunFailureCode::DelegationRevoked,
        message: "the token, its session, its account or its role on the canvas is no longer valid".into(),
        retryable: false,
        output_key: None,
    };
    let failure = match completion {
        _ if !run.delegation.holds => Some(revoked()),
        RunCompletion::Revoked => Some(revoked()),
        RunCompletion::Failed(failure) => Some(failure.clone()),
        RunCompletion::Finished => first_missing(&record),
    };
    let status = if failure.is_none() { RunStatus::Succeeded } else { RunStatus::Failed };
    end(conn, &run, &record, status, failure, context).await.map(Some)
}

/// Cancels the run of `id` if it belongs to `account`, immediately and with all its unfinished outputs; their jobs are canceled
/// like any job. Returns the current record and whether this call canceled the run; `None`: there is no such run. A worker that
/// holds the run's lease finds that it has ended.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.cancel")]
pub async fn cancel(
    conn: &mut PgConnection,
    id: RunId,
    account: &AccountUid,
    context: &CompletionContext<'_>,
) -> Result<Option<(RunRecord, bool)>> {
    if db::recipe_runs::account_of(conn, id).await?.as_ref() != Some(account) {
        return Ok(None);
    }
    db::accounts::lock(conn, account).await?;
    let Some(run) = LockedRun::lock(conn, id, None).await? else {
        return Ok(db::recipe_runs::get(conn, id, account).await?.map(|record| (record, false)));
    };
    db::tasks::request_cancel(conn, id.0).await?;
    let record = run.record(conn).await?;
    let failure = RunFailure {
        code: RunFailureCode::RunCanceled,
        message: "the run was canceled".into(),
        retryable: false,
        output_key: None,
    };
    let record = end(conn, &run, &record, RunStatus::Canceled, Some(failure), context).await?;
    Ok(Some((record, true)))
}

/// Why a run whose outputs are all terminal has not succeeded: the reason of its first output that failed on its own.
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
    run: &LockedRun,
    record: &RunRecord,
    status: RunStatus,
    failure: Option<RunFailure>,
    context: &CompletionContext<'_>,
) -> Result<RunRecord> {
    let made = db::recipe_runs::made_targets(conn, run.id).await?.filter(|made| made.are_removed);
    for (at, output) in record.outputs.iter().enumerate().filter(|(_, output)| !output.status.is_terminal()) {
        let Some(job) = output.job else { continue };
        let stopped = job::cancel(conn, job, &run.delegation.account, context).await?;
        // A job that a worker has removes its target when it stops.
        if made.is_some() && matches!(stopped, Some(Cancellation::Requested(_))) {
            db::jobs::remove_targets_at_end(conn, job).await?;
        }
        // The job finished before this, and the run has not recorded it yet: the image is on the canvas and charged.
        if let Some(Cancellation::Unchanged(job)) = stopped
            && let Some(image) = image_of(&job)
            && run.advance(conn, at, OutputStatus::Running, OutputStatus::Succeeded).await?
        {
            run.set_image(conn, at, image).await?;
        }
    }
    let unspent = run.end(conn, status, failure).await?;
    db::ledger::give_back(conn, &run.delegation.account, Unused::of_run(run.id, unspent)).await?;
    if let Some(canvas_key) = run.canvas_key {
        let removal = match made.filter(|_| run.delegation.is_writable) {
            Some(made) => find_empty(conn, canvas_key, made.sequence, record, run.id).await?,
            None => Removal::default(),
        };
        release_nodes(conn, run, canvas_key, record, status, &removal).await?;
        if run.delegation.is_readable {
            let record = run.record(conn).await?;
            let review = canvas::review(conn, canvas_key, |nodes| detached(&record, nodes, &removal)).await?;
            run.set_review(conn, &review).await?;
        }
    }
    record_event(conn, run, context).await
}

/// The outputs that the start of a run made and that show nothing, unless other work than the run will fill them.
pub(super) async fn find_empty(
    conn: &mut PgConnection,
    canvas_key: i64,
    sequence: Option<i64>,
    record: &RunRecord,
    run: RunId,
) -> Result<Removal> {
    let outputs: Vec<NodeId> = record.plan.steps.iter().map(|step| step.node.clone()).collect();
    let is_idle = |node: &Node| node.active_job.is_none_or(|work| work == run.0);
    Removal::find(conn, canvas_key, sequence, &outputs, is_idle).await
}

/// Deletes the nodes of the removal, and releases the other output nodes that still wait for the run, with the activity of its end,
/// and gives the canvas its next revision.
async fn release_nodes(
    conn: &mut PgConnection,
    run: &LockedRun,
    canvas_key: i64,
    record: &RunRecord,
    status: RunStatus,
    removal: &Removal,
) -> Result<()> {
    let (mut nodes, mut bytes_delta) = (Vec::new(), 0);
    for step in &record.plan.steps {
        let node = waiting(conn, canvas_key, run.id, &step.node).await?;
        let Some(mut node) = node.filter(|node| !removal.contains(&node.id)) else { continue };
        bytes_delta += target::change(&mut node, |node| target::release(node, JobStatus::Canceled));
        nodes.push(node);
    }
    let concerned: Vec<NodeId> = record.plan.steps.iter().map(|step| step.node.clone()).collect();
    let activity = NewActivity {
        kind: ActivityType::RecipeFinished,
        actor: &run.delegation.actor,
        summary: match status {
            RunStatus::Canceled => "a Recipe run was canceled".to_owned(),
            ended => format!("a Recipe run {ended}"),
        },
        nodes: &concerned,
    };
    removal.write(conn, canvas_key, &service::random::revision(), (&nodes, bytes_delta), Some(activity)).await
}

/// The outputs whose nodes were deleted, whatever their status; without those that the end of the run removes.
fn detached(record: &RunRecord, nodes: &[Node], removal: &Removal) -> Vec<DetachedOutput> {
    let present: HashSet<&NodeId> = nodes.iter().map(|node| &node.id).collect();
    let outputs = record
        .plan
        .steps
        .iter()
        .zip(&record.outputs)
        .filter(|(step, _)| !present.contains(&step.node) && !removal.contains(&step.node));
    outputs.map(|(step, output)| DetachedOutput { node: step.node.clone(), asset: output.asset.clone() }).collect()
}

/// Stores the webhook's event, if the run has a webhook, and returns the current record.
async fn record_event(conn: &mut PgConnection, run: &LockedRun, context: &CompletionContext<'_>) -> Result<RunRecord> {
    let unreadable = |value: String| Error::Unreadable { column: "recipe_runs", value };
    let record = run.record(conn).await?;
    if record.webhook.is_none() {
        return Ok(record);
    }
    let id = Uuid::now_v7();
    let at = record.completed_at.ok_or_else(|| unreadable("completed_at".into()))?;
    let event = Event::recipe_run(id, at, &record);
    let body = serde_json::to_vec(&event).map_err(|error| unreadable(error.to_string()))?;
    let event = NewEvent { id, kind: event.kind, body: &body, traceparent: context.traceparent };
    if let Some(delivery) = db::deliveries::complete(conn, JobId(run.id.0), &event).await? {
        context.ready.add(Queue::Webhook, delivery);
    }
    run.record(conn).await
}
