//! A worker's steps of a Recipe run. Each is one transaction (see [`db::recipe_runs`]).

use db::jobs::NewJob;
use db::recipe_runs::LockedRun;
use db::{PgConnection, Result};
use domain::graph::Node;
use domain::id::{AssetHandle, JobId, NodeId};
use domain::job::{JobOperation, JobStatus, Record, Request};
use domain::metadata::Provenance;
use domain::recipe::run::{OutputStatus, RunFailure, RunId};
use tracing::instrument;
use uuid::Uuid;

use crate::canvas;
use crate::target::{self, Work};

/// Result of a worker's step. Only after `Done` does the caller commit the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// The step took effect.
    Done,
    /// The run has ended, the output is not in the state that the step requires, or the lease is no longer current.
    Stale,
    /// Token, session, account or role is no longer valid: the caller must end the run with `delegation_revoked`.
    Revoked,
}

impl StepResult {
    fn done_if(took_effect: bool) -> Self {
        if took_effect { Self::Done } else { Self::Stale }
    }
}

/// Locks a run for a step under a lease, with its canvas. The inner error is the result to return: the run cannot take a step.
async fn lock(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
) -> Result<std::result::Result<(LockedRun, i64), StepResult>> {
    let Some(run) = LockedRun::lock(conn, id, Some(lease_token)).await? else { return Ok(Err(StepResult::Stale)) };
    let canvas_key = run.canvas_key.filter(|_| run.delegation.holds);
    Ok(canvas_key.map(|key| (run, key)).ok_or(StepResult::Revoked))
}

/// Records that a text step is being carried out, before a provider is asked for the text: the record of the submit, which
/// takes place once. For a step that is already `running` the result is `Stale`: its worker died during the request.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.begin_text")]
pub async fn begin_text(conn: &mut PgConnection, id: RunId, lease_token: Uuid, at: usize) -> Result<StepResult> {
    let (run, _) = match lock(conn, id, lease_token).await? {
        Ok(locked) => locked,
        Err(result) => return Ok(result),
    };
    Ok(StepResult::done_if(run.advance(conn, at, OutputStatus::Pending, OutputStatus::Running).await?))
}

/// Ends a text step: with its text, which is charged and written to its node, or with its failure.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.end_text")]
pub async fn end_text(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    made: &std::result::Result<(String, Provenance), RunFailure>,
) -> Result<StepResult> {
    let (run, canvas_key) = match lock(conn, id, lease_token).await? {
        Ok(locked) => locked,
        Err(result) => return Ok(result),
    };
    let status = if made.is_ok() { OutputStatus::Succeeded } else { OutputStatus::Failed };
    if !run.advance(conn, at, OutputStatus::Running, status).await? {
        return Ok(StepResult::Stale);
    }
    let record = run.record(conn).await?;
    let step = &record.plan.steps[at];
    match made {
        Ok((text, _)) => {
            run.set_text(conn, at, text).await?;
            run.spend(conn, step.model.credit_cost).await?;
        }
        Err(failure) => run.set_failure(conn, at, failure).await?,
    }
    let Some(mut node) = waiting(conn, canvas_key, id, &step.node).await? else { return Ok(StepResult::Done) };
    match made {
        Ok((text, provenance)) => {
            let bytes_delta = target::change(&mut node, |node| {
                target::release(node, JobStatus::Succeeded);
                target::fill_text(node, text, provenance.clone());
            });
            canvas::write_nodes(conn, canvas_key, &service::random::revision(), &[node], bytes_delta).await?;
        }
        Err(_) => release(conn, canvas_key, node, JobStatus::Failed).await?,
    }
    Ok(StepResult::Done)
}

/// The image job of a step.
#[derive(Clone, Debug)]
pub struct ImageStep<'a> {
    pub job: JobId,
    /// Generate or edit.
    pub operation: JobOperation,
    /// The request, resolved and normalized.
    pub request: &'a Request,
    /// Estimated duration in seconds, at least 1.
    pub estimated_seconds: i32,
    /// The job's part of the run's reservation.
    pub credit_cost: i64,
    /// W3C trace context of the run.
    pub traceparent: Option<&'a str>,
}

/// Begins an image step: inserts and enqueues its job, with its part of the reservation and its node.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.begin_image")]
pub async fn begin_image(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    step: &ImageStep<'_>,
) -> Result<StepResult> {
    let Some(account) = db::recipe_runs::account_of(conn, id).await? else { return Ok(StepResult::Stale) };
    db::accounts::lock(conn, &account).await?;
    let (run, canvas_key) = match lock(conn, id, lease_token).await? {
        Ok(locked) => locked,
        Err(result) => return Ok(result),
    };
    if !run.advance(conn, at, OutputStatus::Pending, OutputStatus::Running).await? {
        return Ok(StepResult::Stale);
    }
    let record = run.record(conn).await?;
    let revision = service::random::revision();
    let job = NewJob {
        id: step.job,
        account: &account,
        token_id: run.delegation.token_id,
        operation: step.operation,
        canvas: Some((canvas_key, &record.canvas)),
        canvas_revision: Some(&revision),
        request: step.request,
        estimated_seconds: step.estimated_seconds,
        credit_cost: step.credit_cost,
        recipe_run: Some(id),
        about: None,
        traceparent: step.traceparent,
    };
    db::jobs::insert(conn, &job).await?;
    run.set_job(conn, at, step.job).await?;
    run.spend(conn, step.credit_cost).await?;
    db::ledger::transfer(conn, &account, id, step.job, step.credit_cost).await?;
    // A node that was deleted before the step is treated like one that is deleted later: the job runs without it.
    if let Some(mut node) = waiting(conn, canvas_key, id, &record.plan.steps[at].node).await? {
        let work = Work::Job(step.job, step.operation);
        let bytes_delta = target::change(&mut node, |node| target::rebind(node, work));
        canvas::write_nodes(conn, canvas_key, &revision, &[node], bytes_delta).await?;
    }
    Ok(StepResult::Done)
}

/// Ends an image step as its job ended: with its image, or with its failure. A job that was canceled on its own leaves a
/// canceled output.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.end_image")]
pub async fn end_image(
    conn: &mut PgConnection,
    id: RunId,
    lease_token: Uuid,
    at: usize,
    job: &Record,
    failure: Option<&RunFailure>,
) -> Result<StepResult> {
    let (run, _) = match lock(conn, id, lease_token).await? {
        Ok(locked) => locked,
        Err(result) => return Ok(result),
    };
    let image = image_of(job);
    let status = match (job.status, image) {
        (JobStatus::Canceled, _) => OutputStatus::Canceled,
        (_, Some(_)) => OutputStatus::Succeeded,
        (_, None) => OutputStatus::Failed,
    };
    if !run.advance(conn, at, OutputStatus::Running, status).await? {
        return Ok(StepResult::Stale);
    }
    if let Some(failure) = failure {
        run.set_failure(conn, at, failure).await?;
    }
    if let Some(image) = image {
        run.set_image(conn, at, image).await?;
    }
    Ok(StepResult::Done)
}

/// The image that the job of a step made. A success whose record has expired counts: its image is placed and charged, and a
/// client that reads the job before the run records it must not change the run's result.
pub fn image_of(job: &Record) -> Option<&AssetHandle> {
    let made = matches!(job.status, JobStatus::Succeeded | JobStatus::Expired);
    job.outcome.images.first().filter(|_| made).map(|image| &image.asset)
}

/// Cancels an output that cannot be made because an output that it depends on is missing. Its node is freed.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[instrument(skip_all, name = "app.recipe_run.cancel_output")]
pub async fn cancel_output(conn: &mut PgConnection, id: RunId, lease_token: Uuid, at: usize) -> Result<StepResult> {
    let (run, canvas_key) = match lock(conn, id, lease_token).await? {
        Ok(locked) => locked,
        Err(result) => return Ok(result),
    };
    if !run.advance(conn, at, OutputStatus::Pending, OutputStatus::Canceled).await? {
        return Ok(StepResult::Stale);
    }
    let record = run.record(conn).await?;
    if let Some(node) = waiting(conn, canvas_key, id, &record.plan.steps[at].node).await? {
        release(conn, canvas_key, node, JobStatus::Canceled).await?;
    }
    Ok(StepResult::Done)
}

/// A node of the run's canvas, if it still waits for the run.
pub(super) async fn waiting(
    conn: &mut PgConnection,
    canvas_key: i64,
    run: RunId,
    node: &NodeId,
) -> Result<Option<Node>> {
    Ok(db::canvases::node(conn, canvas_key, node).await?.filter(|node| node.active_job == Some(run.0)))
}

/// Releases a node, which the canvas's next revision shows.
async fn release(conn: &mut PgConnection, canvas_key: i64, mut node: Node, status: JobStatus) -> Result<()> {
    let bytes_delta = target::change(&mut node, |node| target::release(node, status));
    canvas::write_nodes(conn, canvas_key, &service::random::revision(), &[node], bytes_delta).await
}
