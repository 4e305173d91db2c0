//! The completion of a job, in one transaction (docs/architecture.md#completing-a-job).
//!
//! **Guarantee.** Task, assets, nodes, revision, activity, job, history, credit and webhook event change together or not at
//! all, and once per job: a second worker finds no task to settle. A target node is always freed, and no credit stays reserved.
//!
//! **Mechanism.** One statement locks the account row where credit is at stake, then the canvas row, then the job. The task is
//! settled under its fencing token. Then rows are written in the global lock order: account, canvas, job, task, storage, asset
//! and blob, the task of the Recipe run that waits for the job. Under the canvas lock, the transaction checks again that the
//! account may write to the canvas and, for a step of a Recipe run, that the run's delegation holds.
//!
//! **Reason.** A crash between any two of these writes would leave a state that needs manual repair.

use db::canvases::NewActivity;
use db::deliveries::NewEvent;
use db::jobs::{JobCanvas, JobEnd, LockedJob};
use db::{Error, PgConnection, Result};
use domain::canvas::ActivityType;
use domain::event::Event;
use domain::graph::Node;
use domain::id::{JobId, NodeId};
use domain::job::{
    CancelReason, Failure, FailureCode, JobDocument, JobOutcome, JobStatus, Output, Placement, Record, Request,
    StoredVideo,
};
use domain::message::Queue;
use domain::origin::{AiGenerated, Origin};
use domain::review::CompletionReview;
use uuid::Uuid;

use super::completion::{Completion, CompletionContext, CompletionResult};
use super::placement::{self, PlacedOutput};
use crate::canvas;
use crate::removal::Removal;

/// Completes a job under the lease on its task. A success becomes the failure `output_finalization_failed` when the canvas is gone,
/// the account may no longer write to it, or the job is a step of a Recipe run whose delegation no longer holds. In these cases
/// nothing is placed and nothing is charged. When only the target node is gone, the asset is stored anyway.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.complete")]
pub async fn complete(
    conn: &mut PgConnection,
    id: JobId,
    lease_token: Uuid,
    completion: Completion,
    context: &CompletionContext<'_>,
) -> Result<CompletionResult> {
    let Some(job) = db::jobs::lock(conn, id).await? else { return Ok(CompletionResult::Stale) };
    if let (Some(review), Some(canvas)) = (context.review, &job.canvas)
        && !review.is_current(canvas)
    {
        return Ok(CompletionResult::ReviewOutdated);
    }
    if !db::tasks::settle(conn, id.0, lease_token).await? {
        return Ok(CompletionResult::Stale);
    }
    end(conn, &job, completion, context).await
}

/// What a completion comes to, given what the transaction has locked.
struct Decision {
    status: JobStatus,
    placements: Vec<Placement>,
    video: Option<StoredVideo>,
    failure: Option<Failure>,
    cancel_reason: Option<CancelReason>,
}

impl Decision {
    fn new(status: JobStatus) -> Self {
        Self { status, placements: Vec::new(), video: None, failure: None, cancel_reason: None }
    }

    fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::new(JobStatus::Failed) }
    }

    fn not_finalized(message: &str) -> Self {
        Self::failed(Failure::new(FailureCode::OutputFinalizationFailed, message))
    }
}

/// Ends a locked job, whose task is settled.
pub(super) async fn end(
    conn: &mut PgConnection,
    job: &LockedJob,
    completion: Completion,
    context: &CompletionContext<'_>,
) -> Result<CompletionResult> {
    let Some(decision) = decide(conn, job, completion, context).await? else { return Ok(CompletionResult::BlobGone) };
    let Decision { status, placements, video, failure, cancel_reason } = decision;
    if !job.status.may_become(status) {
        return Ok(CompletionResult::Stale);
    }
    let targets = match &job.canvas {
        Some(canvas) => Some((canvas, WaitingTargets::find(conn, job, canvas, &placements).await?)),
        None => None,
    };
    settle_credit(conn, job, status, placements.len() + usize::from(video.is_some())).await?;
    let placed = match targets {
        Some((canvas, targets)) => targets.place(conn, job, canvas, (status, &placements), context).await?,
        None => Some(CanvasEnd::default()),
    };
    let Some(CanvasEnd { images, revision, completion_review }) = placed else { return Ok(CompletionResult::BlobGone) };
    let outcome = JobOutcome { images, video, failure, completion_review };
    let written = JobEnd {
        status,
        outcome: &outcome,
        cancel_reason,
        revision: revision.as_deref(),
        retention: context.windows.after(job.kind, status),
    };
    let record = db::jobs::end(conn, job.id, &written).await?;
    if let Some(run) = job.recipe_run
        && db::tasks::make_ready(conn, run.0).await?
    {
        context.ready.add(Queue::Recipe, run.0);
    }
    record_event(conn, job, &record, context).await?;
    Ok(CompletionResult::Done(Box::new(record)))
}

/// The target nodes of a job that still wait for it: those that it releases and those that it deletes.
struct WaitingTargets {
    nodes: Vec<Node>,
    removal: Removal,
}

/// What the end of a job left on its canvas.
#[derive(Default)]
struct CanvasEnd {
    images: Vec<Output>,
    /// The new revision, if the canvas was changed.
    revision: Option<String>,
    completion_review: Option<CompletionReview>,
}

impl WaitingTargets {
    async fn find(
        conn: &mut PgConnection,
        job: &LockedJob,
        canvas: &JobCanvas,
        placements: &[Placement],
    ) -> Result<Self> {
        let mut nodes = placement::waiting(conn, canvas.key, job.id, job.request.targets()).await?;
        let removal = removal(conn, job, canvas, placements).await?;
        nodes.retain(|node| !removal.contains(&node.id));
        Ok(Self { nodes, removal })
    }

    /// Stores the outputs, shows them in the nodes, and reviews the canvas. `None` when the blob of an output was removed.
    async fn place(
        self,
        conn: &mut PgConnection,
        job: &LockedJob,
        canvas: &JobCanvas,
        (status, placements): (JobStatus, &[Placement]),
        context: &CompletionContext<'_>,
    ) -> Result<Option<CanvasEnd>> {
        let Self { mut nodes, removal } = self;
        let traceparent = context.traceparent;
        let outputs: Vec<_> =
            placements.iter().map(|placement| PlacedOutput { canvas, placement, traceparent }).collect();
        if !placement::store(conn, &outputs, context.ready).await? {
            return Ok(None);
        }
        // A job whose targets were all deleted still leaves its activity, and with it a revision. A step of a Recipe run leaves no
        // activity of its own, a video has no targets.
        let leaves_activity = job.recipe_run.is_none() && !job.request.targets().is_empty();
        let is_changed = leaves_activity || !nodes.is_empty() || !removal.is_empty();
        let revision = is_changed.then(service::random::revision);
        let bytes_delta = placement::fill(&mut nodes, &canvas.owner, placements, job.id, (status, job.now));
        if let Some(revision) = &revision {
            let changed: Vec<NodeId> = nodes.iter().map(|node| node.id.clone()).collect();
            let activity = leaves_activity.then(|| activity(job, status, &changed));
            removal.write(conn, canvas.key, revision, (&nodes, bytes_delta), activity).await?;
        }
        let images = placements.iter().map(|placement| output(canvas, placement)).collect();
        let mut placed = CanvasEnd { images, revision, completion_review: None };
        if canvas.role.is_some() {
            let prepared = context.review.filter(|_| removal.is_empty());
            let prepared = prepared.and_then(|review| review.of(canvas, status, placements, &nodes));
            placed.completion_review = Some(match prepared {
                Some(review) => review,
                None => {
                    let detached = placement::detached(&canvas.owner, placements, &nodes);
                    canvas::review(conn, canvas.key, |_| detached).await?
                }
            });
        }
        Ok(Some(placed))
    }
}

/// The targets that the end of the job deletes: those that were made for it and get no output, if that was asked for.
async fn removal(
    conn: &mut PgConnection,
    job: &LockedJob,
    canvas: &JobCanvas,
    placements: &[Placement],
) -> Result<Removal> {
    if !job.removes_targets || !canvas.is_writable() {
        return Ok(Removal::default());
    }
    let is_idle = |node: &Node| {
        node.active_job.is_none_or(|work| work == job.id.0)
            && placements.iter().all(|placement| placement.node != node.id)
    };
    Removal::find(conn, canvas.key, job.canvas_sequence, job.request.targets(), is_idle).await
}

/// What the job comes to. `None` when the blob of a video was removed.
async fn decide(
    conn: &mut PgConnection,
    job: &LockedJob,
    completion: Completion,
    context: &CompletionContext<'_>,
) -> Result<Option<Decision>> {
    let has_room = has_room(conn, job, &completion, context).await?;
    // The work is done and cannot be repeated, so the failure is that of a result that cannot be made durable.
    let without_room = || Decision::not_finalized("the result would exceed the storage quota");
    Ok(Some(match completion {
        Completion::SucceededVideo(_) if !has_room => without_room(),
        Completion::SucceededVideo(video) => {
            let bytes = placement::column("blobs.bytes", video.bytes)?;
            let adopted = db::blobs::adopt(conn, video.blob_key, &video.sha256, bytes).await?;
            let Some(blob_key) = adopted else { return Ok(None) };
            Decision {
                video: Some(StoredVideo { blob_key, bytes: video.bytes }),
                ..Decision::new(JobStatus::Succeeded)
            }
        }
        Completion::Succeeded(placements) => match obstacle(conn, job).await? {
            Some(message) => Decision::not_finalized(message),
            None if !has_room => without_room(),
            None => Decision { placements, ..Decision::new(JobStatus::Succeeded) },
        },
        Completion::Failed(failure, made) => {
            let is_placed = has_room && !made.is_empty() && obstacle(conn, job).await?.is_none();
            Decision { placements: if is_placed { made } else { Vec::new() }, ..Decision::failed(failure) }
        }
        Completion::Canceled(reason) => Decision { cancel_reason: Some(reason), ..Decision::new(JobStatus::Canceled) },
    }))
}

/// Whether the future owner of the results has room for them. Locks the account's storage: concurrent stores wait.
async fn has_room(
    conn: &mut PgConnection,
    job: &LockedJob,
    completion: &Completion,
    context: &CompletionContext<'_>,
) -> Result<bool> {
    let (owner, bytes) = match (completion, &job.canvas) {
        (Completion::SucceededVideo(video), _) => (&job.actor.owner_uid, video.bytes),
        (Completion::Succeeded(made) | Completion::Failed(_, made), Some(canvas)) if !made.is_empty() => {
            (&canvas.owner, made.iter().map(|placement| placement.bytes).sum())
        }
        _ => return Ok(true),
    };
    if job.storage_max.unwrap_or(context.storage_max) == 0 {
        return Ok(true);
    }
    let storage = db::storage::hold(conn, owner, context.storage_max).await?;
    Ok(storage.admits(placement::column("assets.bytes", bytes)?))
}

/// Why no output can be placed anymore.
async fn obstacle(conn: &mut PgConnection, job: &LockedJob) -> Result<Option<&'static str>> {
    let Some(canvas) = &job.canvas else { return Ok(Some("the canvas was deleted")) };
    if !canvas.is_writable() {
        return Ok(Some("the account may no longer write to the canvas"));
    }
    Ok(match job.recipe_run {
        Some(run) if !db::recipe_runs::is_delegated(conn, run).await? => {
            Some("the token, its session or its account is no longer valid")
        }
        _ => None,
    })
}

/// The output of a placement, as the record shows it.
pub(super) fn output(canvas: &JobCanvas, placement: &Placement) -> Output {
    Output {
        asset: placement::asset(&canvas.owner, placement),
        node: placement.node.clone(),
        media_type: placement.mime_type.clone(),
        width: placement.width,
        height: placement.height,
        bytes: placement.bytes,
        ai_generated: Some(AiGenerated::of(placement.origin.map(Origin::service))),
    }
}

/// The activity entry of the end.
pub(super) fn activity<'a>(job: &'a LockedJob, status: JobStatus, nodes: &'a [NodeId]) -> NewActivity<'a> {
    let title = job.request.title(job.operation);
    let summary = match status {
        JobStatus::Canceled => format!("{title} was canceled"),
        ended => format!("{title} {ended}"),
    };
    NewActivity { kind: ActivityType::JobFinished, actor: &job.actor, summary, nodes }
}

/// Closes the job's outputs and charges them: each durable one or, when the job was canceled, each that a provider
/// accepted. The rest of the reservation is returned.
async fn settle_credit(conn: &mut PgConnection, job: &LockedJob, status: JobStatus, durable: usize) -> Result<()> {
    let model = match &job.request {
        Request::Action(_) => return db::jobs::settle(conn, job.id, job.reserved, 0, 0).await,
        Request::Image(request) => &request.model,
        Request::Video(request) => &request.model,
    };
    let closed = db::jobs::outputs::close(conn, job.id, status == JobStatus::Failed).await?;
    let count = match status {
        JobStatus::Canceled => closed.accepted,
        _ => placement::column("job_outputs", durable)?,
    };
    let charge = model.credit_cost.saturating_mul(count);
    db::jobs::settle(conn, job.id, job.reserved, charge, closed.orphans).await
}

/// Stores the webhook's event, if the job has a webhook.
pub(super) async fn record_event(
    conn: &mut PgConnection,
    job: &LockedJob,
    record: &Record,
    context: &CompletionContext<'_>,
) -> Result<()> {
    if record.webhook.is_none() {
        return Ok(());
    }
    let id = Uuid::now_v7();
    let JobDocument::Image(document) = record.document(context.public_url, |_| None) else { return Ok(()) };
    let event = Event::image_job(id, job.now, *document);
    let body =
        serde_json::to_vec(&event).map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?;
    let event = NewEvent { id, kind: event.kind, body: &body, traceparent: context.traceparent };
    if let Some(delivery) = db::deliveries::complete(conn, job.id, &event).await? {
        context.ready.add(Queue::Webhook, delivery);
    }
    Ok(())
}
