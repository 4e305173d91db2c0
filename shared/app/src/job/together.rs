//! The completion of several jobs in one transaction.
//!
//! **Guarantee.** As for each job by itself (`complete`): whatever a completion changes is committed together, once per job.
//!
//! **Mechanism.** The same steps, each as one statement for all jobs. Only completions of the common kind take part: an Image
//! Action that succeeded, without credit, quota or Recipe run, on a small canvas that nobody else writes to at the moment. The rows
//! are locked in the global order. Canvases and jobs are not waited for, so that no job waits for the canvas of another; what else
//! is waited for, such as equal content, has the short limit of [`db::pool::begin_briefly`].
//!
//! **Reason.** Small jobs cost their statements. Together, several need as many as one.

use std::collections::{HashMap, HashSet};
use std::{mem, slice};

use db::canvases::{Skeleton, WorkChange};
use db::jobs::{JobCanvas, JobEnd, LockedJob};
use db::{PgConnection, Result};
use domain::graph::Node;
use domain::id::JobId;
use domain::job::{JobOutcome, JobStatus, Placement, Record, Request};
use domain::review::DetachedOutput;
use uuid::Uuid;

use super::complete::{activity, output, record_event};
use super::completion::{CompletionContext, CompletionResult};
use super::placement::{self, PlacedOutput};

/// A job that succeeded with one output.
#[derive(Clone, Debug)]
pub struct Success {
    pub id: JobId,
    /// Token of the lease on its task.
    pub lease_token: Uuid,
    /// The output.
    pub placement: Placement,
    /// W3C trace context of the work that ends the job.
    pub traceparent: String,
}

/// A success whose job is locked and whose task is settled.
struct Part<'a> {
    /// Its place among the successes.
    index: usize,
    success: &'a Success,
    job: &'a LockedJob,
    canvas: &'a JobCanvas,
    /// The canvas's next revision.
    revision: String,
    skeleton: Skeleton,
    /// The target and the growth of the graph in bytes, if the target still waited for the job.
    filled: Option<(Node, i64)>,
}

/// What the completion of a job together with others came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Attempt {
    /// It was completed, or its lease was lost.
    Completed(CompletionResult),
    /// Another transaction has locked it or its canvas, or another job of its canvas was completed. It was left as it is.
    Busy,
    /// It has to be completed by itself. It was left as it is.
    Alone,
}

/// Completes those of the jobs that can be completed together. The jobs differ. Returns a result for each job, in order. `None`: the blob of an output was removed, every job
/// has to be completed by itself, and the caller rolls back.
///
/// # Errors
///
/// If the database fails. The caller rolls back.
#[tracing::instrument(skip_all, name = "app.job.complete_together")]
pub async fn complete_together(
    conn: &mut PgConnection,
    successes: &[Success],
    context: &CompletionContext<'_>,
) -> Result<Option<Vec<Attempt>>> {
    let mut results = vec![Attempt::Alone; successes.len()];
    let ids: Vec<JobId> = successes.iter().map(|success| success.id).collect();
    let able = db::jobs::completable_together(conn, &ids, context.storage_max).await?;
    let ids: Vec<JobId> = able.iter().copied().collect();
    let locked = db::jobs::lock_all(conn, &ids).await?;
    let locked: HashMap<JobId, &LockedJob> = locked.iter().map(|job| (job.id, job)).collect();
    let mine = || successes.iter().filter(|success| locked.get(&success.id).is_some_and(|job| is_common(job)));
    let leases: Vec<(Uuid, Uuid)> = mine().map(|success| (success.id.0, success.lease_token)).collect();
    let settled: HashSet<Uuid> = db::tasks::settle_all(conn, &leases).await?.into_iter().collect();
    let mut parts = Vec::with_capacity(settled.len());
    for (index, success) in successes.iter().enumerate() {
        let Some(&job) = locked.get(&success.id) else {
            if able.contains(&success.id) {
                results[index] = Attempt::Busy;
            }
            continue;
        };
        match &job.canvas {
            _ if !is_common(job) => {}
            Some(canvas) if settled.contains(&success.id.0) => parts.push(Part {
                index,
                success,
                job,
                canvas,
                revision: service::random::revision(),
                skeleton: Skeleton::default(),
                filled: None,
            }),
            _ => results[index] = Attempt::Completed(CompletionResult::Stale),
        }
    }
    if parts.is_empty() {
        return Ok(Some(results));
    }
    let keys: Vec<i64> = parts.iter().map(|part| part.canvas.key).collect();
    let mut skeletons = db::canvases::skeletons(conn, &keys).await?;
    for part in &mut parts {
        part.skeleton = skeletons.remove(&part.canvas.key).unwrap_or_default();
        part.fill();
    }
    let outputs: Vec<PlacedOutput<'_>> = parts.iter().map(Part::output).collect();
    if !placement::store(conn, &outputs, context.ready).await? {
        return Ok(None);
    }
    commit(conn, &parts).await?;
    for (index, record) in end(conn, parts, context).await? {
        results[index] = Attempt::Completed(CompletionResult::Done(Box::new(record)));
    }
    Ok(Some(results))
}

/// Whether the completion of a locked job still changes nothing beyond task, output, canvas, job and webhook.
fn is_common(job: &LockedJob) -> bool {
    matches!(job.request, Request::Action(_))
        && job.status.may_become(JobStatus::Succeeded)
        && job.canvas.as_ref().is_some_and(JobCanvas::is_writable)
        && !job.removes_targets
}

impl Part<'_> {
    /// Fills the target if it still waits for the job. The size of a node without its client-written metadata grows by as much as
    /// that of the whole node, because a fill changes none of it.
    fn fill(&mut self) {
        let Success { id, placement, .. } = self.success;
        let id = *id;
        let is_waiting = |node: &&mut Node| node.id == placement.node && node.active_job == Some(id.0);
        if let Some(node) = self.skeleton.0.iter_mut().find(is_waiting) {
            let target = slice::from_mut(node);
            let grown = placement::fill(
                target,
                &self.canvas.owner,
                slice::from_ref(placement),
                id,
                (JobStatus::Succeeded, self.job.now),
            );
            self.filled = Some((node.clone(), grown));
        }
    }

    fn output(&self) -> PlacedOutput<'_> {
        PlacedOutput {
            canvas: self.canvas,
            placement: &self.success.placement,
            traceparent: Some(&self.success.traceparent),
        }
    }
}

/// Writes targets, revisions and activity.
async fn commit(conn: &mut PgConnection, parts: &[Part<'_>]) -> Result<()> {
    let changes: Vec<WorkChange<'_>> = parts
        .iter()
        .map(|part| {
            let (node, bytes_delta) = part.filled.as_ref().map_or((None, 0), |(node, grown)| (Some(node), *grown));
            let activity = activity(part.job, JobStatus::Succeeded, node.map_or(&[], |node| slice::from_ref(&node.id)));
            WorkChange { canvas_key: part.canvas.key, revision: &part.revision, node, bytes_delta, activity }
        })
        .collect();
    db::canvases::commit_works(conn, &changes).await
}

/// Ends the jobs, each with its review. Returns their records with the places of the successes.
async fn end(
    conn: &mut PgConnection,
    mut parts: Vec<Part<'_>>,
    context: &CompletionContext<'_>,
) -> Result<Vec<(usize, Record)>> {
    let named = parts.iter().flat_map(|part| &part.skeleton.0).flat_map(Node::named_assets).collect();
    let assets = db::assets::origins(conn, &named).await?;
    let outcomes: Vec<JobOutcome> = parts
        .iter_mut()
        .map(|part| {
            let (nodes, connections) = mem::take(&mut part.skeleton);
            let output = output(part.canvas, &part.success.placement);
            let detached: Vec<DetachedOutput> = match part.filled {
                Some(_) => Vec::new(),
                None => vec![DetachedOutput { node: output.node.clone(), asset: Some(output.asset.clone()) }],
            };
            let review = ::canvas::review::review_of_end(nodes, connections, &assets, &detached);
            JobOutcome { images: vec![output], completion_review: Some(review), ..JobOutcome::default() }
        })
        .collect();
    let ends: Vec<(JobId, JobEnd<'_>)> = parts
        .iter()
        .zip(&outcomes)
        .map(|(part, outcome)| {
            let end = JobEnd {
                status: JobStatus::Succeeded,
                outcome,
                cancel_reason: None,
                revision: Some(&part.revision),
                retention: context.windows.after(part.job.kind, JobStatus::Succeeded),
            };
            (part.job.id, end)
        })
        .collect();
    let mut records: HashMap<JobId, Record> =
        db::jobs::end_all(conn, &ends).await?.into_iter().map(|record| (record.id, record)).collect();
    let mut ended = Vec::with_capacity(parts.len());
    for part in &parts {
        let Some(record) = records.remove(&part.job.id) else { continue };
        let context = CompletionContext { traceparent: Some(&part.success.traceparent), ..*context };
        record_event(conn, part.job, &record, &context).await?;
        ended.push((part.index, record));
    }
    Ok(ended)
}
