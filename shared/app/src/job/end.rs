//! The end of jobs, in one transaction (docs/architecture.md#ending-jobs).
//!
//! **Guarantee.** Task, assets, nodes, revision, activity, job, history, credit and webhook event change together or not at
//! all, and once per job: a second worker finds no task to settle. A target node is always freed, and no credit stays reserved.
//!
//! **Mechanism.** One function ends one job or several, in whatever way. One statement locks the accounts where credit is at stake,
//! then the canvases, then the jobs. The tasks are settled under their fencing tokens. Then rows are written in the global lock order:
//! account, canvas, job, task, storage, asset and blob, the tasks of the Recipe runs that wait for the jobs. Each step is one statement
//! for all jobs; credit, Recipe runs, removed targets and webhooks cost statements for each job that has them. Under the canvas
//! lock, the transaction checks again that the account may write to the canvas and, for a step of a Recipe run, that the run's
//! delegation holds.
//!
//! **Reason.** A crash between any two of these writes would leave a state that needs manual repair. Small jobs cost their statements;
//! several need as many as one.

use std::collections::{BTreeMap, HashMap, HashSet};

use db::blobs::PutFile;
use db::canvases::{NewActivity, WorkChange};
use db::deliveries::NewEvent;
use db::jobs::{JobCanvas, JobEnd, LockedJob};
use db::{Error, PgConnection, Result};
use domain::alt;
use domain::canvas::ActivityType;
use domain::event::Event;
use domain::graph::{Node, NodeType};
use domain::id::{JobId, NodeId};
use domain::job::{JobOutcome, JobStatus, Output, Placement, Preview, Record, Request, StoredVideo};
use domain::message::{Queue, ReadyTasks};
use domain::origin::{AiGenerated, Origin};
use domain::review::CompletionReview;
use uuid::Uuid;

use super::completion::{Completion, CompletionContext, CompletionResult, VideoOutput};
use super::decision::{Decision, decide};
use super::placement::{self, PlacedOutput};
use crate::canvas;
use crate::removal::Removal;

/// A job to end.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    pub id: JobId,
    /// Token of the lease on its task.
    pub lease_token: Uuid,
    pub completion: &'a Completion,
    pub context: CompletionContext<'a>,
    /// `true` if a large canvas is reviewed under its lock when no review was prepared. Otherwise the job is left as it is
    /// ([`CompletionResult::ReviewNeeded`]).
    pub reviews_large: bool,
}

/// A job to end that is locked and whose task is settled.
#[derive(Clone, Copy)]
pub(super) struct Ending<'a> {
    pub(super) job: &'a LockedJob,
    pub(super) completion: &'a Completion,
    pub(super) context: CompletionContext<'a>,
}

/// Ends jobs under the leases on their tasks, and returns a result for each, in order. A success becomes the failure
/// `output_finalization_failed` when the canvas is gone, the account may no longer write to it, or the job is a step of a Recipe run
/// whose delegation no longer holds. In these cases nothing is placed and nothing is charged. When only the target node is gone, the
/// asset is stored anyway.
///
/// The caller commits, unless the results are [`CompletionResult::BlobGone`]: then it rolls back.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.end")]
pub async fn end(conn: &mut PgConnection, ends: &[End<'_>]) -> Result<Vec<CompletionResult>> {
    let ids: Vec<JobId> = ends.iter().map(|end| end.id).collect();
    let locked = db::jobs::lock(conn, &ids).await?;
    let locked: HashMap<JobId, &LockedJob> = locked.iter().map(|job| (job.id, job)).collect();
    let mut results = vec![CompletionResult::Stale; ends.len()];
    let mut able = Vec::with_capacity(ends.len());
    for (index, end) in ends.iter().enumerate() {
        match locked.get(&end.id) {
            Some(job) if end.needs_review(job) => results[index] = CompletionResult::ReviewNeeded,
            Some(&job) if job.status.may_become(end.completion.status()) => able.push((index, job)),
            _ => {}
        }
    }
    let lease = |index: usize| (ends[index].id.0, ends[index].lease_token);
    let leases: Vec<(Uuid, Uuid)> = able.iter().map(|(index, _)| lease(*index)).collect();
    let mut settled = db::tasks::settle_all(conn, &leases).await?;
    able.retain(|(index, _)| settled.remove(&lease(*index)));
    // Those of one canvas one after the other, as each makes a revision.
    let mut are_first = true;
    while !able.is_empty() {
        let mut canvases = HashSet::new();
        let (round, rest): (Vec<_>, Vec<_>) =
            able.into_iter().partition(|(_, job)| job.canvas.as_ref().is_none_or(|canvas| canvases.insert(canvas.key)));
        let endings: Vec<Ending<'_>> = round
            .iter()
            .map(|&(index, job)| {
                let End { completion, context, .. } = ends[index];
                // A prepared review is that of the locked revision.
                let review = context.review.filter(|_| are_first);
                Ending { job, completion, context: CompletionContext { review, ..context } }
            })
            .collect();
        let Some(records) = end_locked(conn, &endings).await? else {
            return Ok(vec![CompletionResult::BlobGone; ends.len()]);
        };
        for ((index, _), record) in round.into_iter().zip(records) {
            results[index] = CompletionResult::Done(Box::new(record));
        }
        (able, are_first) = (rest, false);
    }
    Ok(results)
}

impl End<'_> {
    fn needs_review(&self, job: &LockedJob) -> bool {
        job.canvas.as_ref().is_some_and(|canvas| match self.context.review {
            Some(review) => !review.is_current(canvas),
            None => canvas.is_large && !self.reviews_large,
        })
    }
}

/// Ends locked jobs on different canvases, whose tasks are settled, and returns their records, in order. `None` when the blob of an
/// output was removed: the caller rolls back.
pub(super) async fn end_locked(conn: &mut PgConnection, endings: &[Ending<'_>]) -> Result<Option<Vec<Record>>> {
    let mut parts = Vec::with_capacity(endings.len());
    for ending in endings {
        let decision = decide(conn, ending).await?;
        parts.push(Part::new(ending, decision));
    }
    let Some(adopted) = adopt(conn, &parts).await? else { return Ok(None) };
    find_targets(conn, &mut parts).await?;
    for part in &parts {
        settle_credit(conn, part).await?;
    }
    let outputs: Vec<PlacedOutput<'_>> = parts.iter().flat_map(Part::outputs).collect();
    if let Some(first) = endings.first() {
        placement::store(conn, &outputs, &adopted, first.context.ready).await?;
    }
    write_canvases(conn, &mut parts).await?;
    review(conn, &mut parts).await?;
    write_ends(conn, parts, &adopted).await.map(Some)
}

/// A job that is ending, and what its end does to the canvas.
struct Part<'a> {
    ending: &'a Ending<'a>,
    decision: Decision,
    /// The targets that still wait for the job and that the end does not delete.
    nodes: Vec<Node>,
    /// The targets that the end deletes.
    removal: Removal,
    /// The new revision, if the canvas is changed.
    revision: Option<String>,
    /// The ids of `nodes`.
    changed: Vec<NodeId>,
    /// Growth of the graph in bytes by the changes of `nodes`.
    bytes_delta: i64,
    review: Option<CompletionReview>,
}

impl<'a> Part<'a> {
    fn new(ending: &'a Ending<'a>, decision: Decision) -> Self {
        Self {
            ending,
            decision,
            nodes: Vec::new(),
            removal: Removal::default(),
            revision: None,
            changed: Vec::new(),
            bytes_delta: 0,
            review: None,
        }
    }

    fn job(&self) -> &'a LockedJob {
        self.ending.job
    }

    fn canvas(&self) -> Option<&'a JobCanvas> {
        self.job().canvas.as_ref()
    }

    fn outputs(&self) -> impl Iterator<Item = PlacedOutput<'_>> {
        let (job, traceparent) = (self.job(), self.ending.context.traceparent);
        self.canvas().into_iter().flat_map(move |canvas| {
            let placements = self.decision.placements.iter();
            placements.map(move |placement| PlacedOutput { job, canvas, placement, traceparent })
        })
    }

    /// Returns `true` if the end is an activity of the canvas, and thus a revision, also when all targets were deleted. A step of a Recipe
    /// run leaves no activity of its own, a video without a target writes to no canvas.
    fn leaves_activity(&self) -> bool {
        self.job().recipe_run.is_none() && !self.job().request.targets().is_empty()
    }
}

/// Lets the transaction refer to the files of all results. Returns the keys to refer to; `None` when the file of an output was removed.
async fn adopt(conn: &mut PgConnection, parts: &[Part<'_>]) -> Result<Option<HashMap<Uuid, Uuid>>> {
    let file = |key, sha256, bytes| -> Result<PutFile> {
        Ok(PutFile { key, sha256, bytes: placement::column("blobs.bytes", bytes)? })
    };
    let (mut files, mut needed) = (Vec::new(), Vec::new());
    for Decision { placements, video, .. } in parts.iter().map(|part| &part.decision) {
        if let Some(VideoOutput { blob_key, sha256, bytes, poster, .. }) = video {
            files.push(file(*blob_key, *sha256, *bytes)?);
            needed.push(*blob_key);
            if let Some(poster) = poster {
                files.push(file(poster.blob_key, poster.sha256, poster.bytes)?);
            }
        }
        for Placement { sha256, blob_key, bytes, preview, video, .. } in placements {
            files.push(file(*blob_key, *sha256, *bytes)?);
            needed.push(*blob_key);
            let poster = video.as_ref().and_then(|video| video.poster.as_ref());
            for image in preview.iter().chain(poster) {
                files.push(file(image.blob_key, image.sha256, image.bytes)?);
            }
        }
    }
    if files.is_empty() {
        return Ok(Some(HashMap::new()));
    }
    let adopted = db::blobs::adopt_all(conn, &files).await?;
    Ok(needed.iter().all(|key| adopted.contains_key(key)).then_some(adopted))
}

/// Finds the targets that still wait for the jobs. Nothing else changes them while the canvases are locked.
async fn find_targets(conn: &mut PgConnection, parts: &mut [Part<'_>]) -> Result<()> {
    let mut targets = Vec::new();
    for (job, canvas) in parts.iter().filter_map(|part| Some((part.job(), part.canvas()?))) {
        targets.extend(job.request.targets().iter().map(|target| (canvas.key, target, job.id)));
    }
    if targets.is_empty() {
        return Ok(());
    }
    let mut waiting: HashMap<Option<Uuid>, Vec<Node>> = HashMap::new();
    for node in db::canvases::waiting(conn, &targets).await? {
        waiting.entry(node.active_job).or_default().push(node);
    }
    for part in parts {
        let removal = removal(conn, part).await?;
        part.nodes = waiting.remove(&Some(part.job().id.0)).unwrap_or_default();
        part.nodes.retain(|node| !removal.contains(&node.id));
        part.removal = removal;
    }
    Ok(())
}

/// The targets that the end of the job deletes: those that were made for it and get no output, if that was asked for.
async fn removal(conn: &mut PgConnection, part: &Part<'_>) -> Result<Removal> {
    let job = part.job();
    let Some(canvas) = part.canvas().filter(|canvas| job.removes_targets && canvas.is_writable()) else {
        return Ok(Removal::default());
    };
    let is_idle = |node: &Node| {
        node.active_job.is_none_or(|work| work == job.id.0)
            && part.decision.placements.iter().all(|placement| placement.node != node.id)
    };
    Removal::find(conn, canvas.key, job.canvas_sequence, job.request.targets(), is_idle).await
}

/// Fills and releases the targets, and gives the canvases their next revisions.
async fn write_canvases(conn: &mut PgConnection, parts: &mut [Part<'_>]) -> Result<()> {
    for part in parts.iter_mut() {
        let (job, leaves_activity) = (part.job(), part.leaves_activity());
        let Some(canvas) = part.canvas() else { continue };
        if leaves_activity || !part.nodes.is_empty() || !part.removal.is_empty() {
            part.revision = Some(service::random::revision());
        }
        let Decision { status, placements, .. } = &part.decision;
        part.bytes_delta = placement::fill(&mut part.nodes, &canvas.owner, placements, job.id, (*status, job.now));
        part.changed = part.nodes.iter().map(|node| node.id.clone()).collect();
    }
    let mut changes = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        let (Some(canvas), Some(revision)) = (part.canvas(), part.revision.as_deref()) else { continue };
        let Part { nodes, removal, changed, bytes_delta, decision, .. } = part;
        let activity = part.leaves_activity().then(|| activity(part.job(), decision.status, changed));
        let (canvas_key, bytes_delta) = (canvas.key, *bytes_delta);
        if removal.is_empty() {
            changes.push(WorkChange { canvas_key, revision, nodes, bytes_delta, activity });
        } else {
            removal.write(conn, canvas_key, revision, (nodes, bytes_delta), activity).await?;
        }
    }
    if !changes.is_empty() {
        db::canvases::commit_works(conn, &changes).await?;
    }
    Ok(())
}

/// Reviews the canvases as the ends leave them.
async fn review(conn: &mut PgConnection, parts: &mut [Part<'_>]) -> Result<()> {
    let (mut asked, mut canvases) = (Vec::new(), Vec::new());
    for part in parts.iter_mut() {
        let Some(canvas) = part.canvas().filter(|canvas| canvas.role.is_some()) else { continue };
        let Decision { status, placements, .. } = &part.decision;
        let prepared = part.ending.context.review.filter(|_| part.removal.is_empty());
        part.review = prepared.and_then(|review| review.matching(canvas, *status, placements, &part.nodes));
        if part.review.is_none() {
            canvases.push((canvas.key, placement::detached(&canvas.owner, placements, &part.nodes)));
            asked.push(part);
        }
    }
    let reviews = canvas::reviews(conn, &canvases).await?;
    for (part, review) in asked.into_iter().zip(reviews) {
        part.review = Some(review);
    }
    Ok(())
}

/// Makes the jobs terminal, wakes what waits for them and stores the webhooks' events. Returns the records.
async fn write_ends(
    conn: &mut PgConnection,
    mut parts: Vec<Part<'_>>,
    adopted: &HashMap<Uuid, Uuid>,
) -> Result<Vec<Record>> {
    let outcome = |part: &mut Part<'_>| {
        let (canvas, decision) = (part.canvas(), &mut part.decision);
        let nodes = &part.nodes;
        let (videos, images): (Vec<_>, Vec<_>) =
            decision.placements.iter().partition(|placement| placement.video.is_some());
        let of_job = |video: &VideoOutput| {
            let blob_key = *adopted.get(&video.blob_key)?;
            // A poster that was removed is left out.
            let stored =
                |poster: &Preview| Some(Preview { blob_key: *adopted.get(&poster.blob_key)?, ..poster.clone() });
            let poster = video.poster.as_ref().and_then(stored);
            Some(StoredVideo { blob_key, bytes: video.bytes, asset: None, facts: video.facts, poster })
        };
        let of_canvas = |canvas: &JobCanvas| {
            let made = videos.first()?;
            let (blob_key, asset) = (*adopted.get(&made.blob_key)?, placement::asset(&canvas.owner, made));
            let facts = made.video.as_ref()?.facts;
            Some(StoredVideo { blob_key, bytes: made.bytes, asset: Some(asset), facts, poster: None })
        };
        JobOutcome {
            images: canvas
                .into_iter()
                .flat_map(|canvas| images.iter().map(move |made| output(canvas, made, nodes)))
                .collect(),
            video: decision.video.as_ref().and_then(of_job).or_else(|| canvas.and_then(of_canvas)),
            failure: decision.failure.take(),
            completion_review: part.review.take(),
        }
    };
    let outcomes: Vec<JobOutcome> = parts.iter_mut().map(outcome).collect();
    let ends: Vec<(JobId, JobEnd<'_>)> = parts
        .iter()
        .zip(&outcomes)
        .map(|(part, outcome)| {
            let Decision { status, cancel_reason, .. } = part.decision;
            let retention = part.ending.context.windows.after(part.job().kind, status);
            let revision = part.revision.as_deref();
            (part.job().id, JobEnd { status, outcome, cancel_reason, revision, retention })
        })
        .collect();
    let records = db::jobs::end(conn, &ends).await?;
    let runs: BTreeMap<Uuid, &ReadyTasks> =
        parts.iter().filter_map(|part| Some((part.job().recipe_run?.0, part.ending.context.ready))).collect();
    for (run, ready) in runs {
        if db::tasks::make_ready(conn, run).await? {
            ready.add(Queue::Recipe, run);
        }
    }
    for (part, record) in parts.iter().zip(&records) {
        record_event(conn, part.job(), record, &part.ending.context).await?;
    }
    Ok(records)
}

/// The output of a placement, as the record shows it. `nodes` are the targets that are still there.
fn output(canvas: &JobCanvas, placement: &Placement, nodes: &[Node]) -> Output {
    let alt = match nodes.iter().find(|node| node.id == placement.node) {
        Some(node) => node.alt().into_owned(),
        None => alt::of_generated(NodeType::Image, placement.provenance.prompt.as_deref()).into_owned(),
    };
    Output {
        asset: placement::asset(&canvas.owner, placement),
        node: placement.node.clone(),
        media_type: placement.mime_type.clone(),
        width: placement.width,
        height: placement.height,
        bytes: placement.bytes,
        ai_generated: Some(AiGenerated::from_origin(placement.origin.map(Origin::service))),
        alt: Some(alt),
        masked: placement.masked,
    }
}

/// The activity entry of the end.
fn activity<'a>(job: &'a LockedJob, status: JobStatus, nodes: &'a [NodeId]) -> NewActivity<'a> {
    let title = job.request.title(job.operation);
    let summary = match status {
        JobStatus::Canceled => format!("{title} was canceled"),
        ended => format!("{title} {ended}"),
    };
    NewActivity { kind: ActivityType::JobFinished, actor: &job.actor, summary, nodes }
}

/// Closes the job's outputs and charges them: each durable one or, when the job was canceled, each that a provider
/// accepted. The rest of the reservation is returned.
async fn settle_credit(conn: &mut PgConnection, part: &Part<'_>) -> Result<()> {
    let (job, Decision { status, placements, video, .. }) = (part.job(), &part.decision);
    let model = match &job.request {
        Request::Action(_) => return db::jobs::settle(conn, job.id, job.reserved, 0, 0).await,
        Request::Image(request) => &request.model,
        Request::Video(request) => &request.model,
    };
    let closed = db::jobs::outputs::close(conn, job.id, *status == JobStatus::Failed).await?;
    let count = match status {
        JobStatus::Canceled => closed.accepted,
        _ => placement::column("job_outputs", placements.len() + usize::from(video.is_some()))?,
    };
    let charge = model.credit_cost.saturating_mul(count);
    db::jobs::settle(conn, job.id, job.reserved, charge, closed.orphans).await
}

/// Stores the webhook's event, if the job has a webhook.
async fn record_event(
    conn: &mut PgConnection,
    job: &LockedJob,
    record: &Record,
    context: &CompletionContext<'_>,
) -> Result<()> {
    if record.webhook.is_none() {
        return Ok(());
    }
    let id = Uuid::now_v7();
    let event = Event::of_job(id, job.now, record.document(context.public_url, |_| None));
    let body =
        serde_json::to_vec(&event).map_err(|error| Error::Unreadable { column: "jobs", value: error.to_string() })?;
    let event = NewEvent { id, kind: event.kind, body: &body, traceparent: context.traceparent };
    if let Some(delivery) = db::deliveries::complete(conn, job.id, &event).await? {
        context.ready.add(Queue::Webhook, delivery);
    }
    Ok(())
}
