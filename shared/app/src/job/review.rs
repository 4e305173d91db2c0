//! The review that the end of a job leaves on a large canvas, made before the end locks the canvas.
//!
//! **Guarantee.** A prepared review is that of the canvas as the end leaves it, with the assets that are stored shortly before, or it
//! is not used.
//!
//! **Mechanism.** The kept graph is brought to the present revision and reviewed with what the end will write. The end uses the
//! review if the locked canvas still has that revision and the end writes the same. Otherwise the caller prepares it again, or the
//! end makes it by itself ([`canvas::review`](crate::canvas::review)).
//!
//! **Reason.** Reading and reviewing ten thousand nodes takes some fifty milliseconds, in which nobody else could write.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use ::canvas::{Graph, review};
use db::PgPool;
use db::jobs::{JobCanvas, LargeCanvas};
use domain::graph::Node;
use domain::id::{AccountUid, AssetHandle, JobId, NodeId};
use domain::job::{JobStatus, Placement};
use domain::lineage::InputRole;
use domain::review::{CompletionReview, Origin, StoredAsset};
use service::shares::{Held, Key, Shares};
use uuid::Uuid;

use super::completion::Completion;
use super::placement;
use crate::Result;
use crate::canvas::stored_assets;
use crate::graphs::{self, Graphs};

/// Memory that the graphs under review take at most, in bytes. A graph that takes more is reviewed alone.
const MEMORY_BYTES: u64 = 128 * 1024 * 1024;
/// How long a review waits for its turn and for memory, before it is left to the end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the reviews of a process. One job of a canvas at a time has a review, because its end makes all others outdated.
pub struct Reviews {
    graphs: Arc<Graphs>,
    turns: Shares,
    memory: Shares,
}

/// The review of a canvas as the end of a job will leave it. While it exists, no other is made for the canvas in this process.
#[derive(Debug)]
pub struct PreparedReview {
    _turn: Held,
    /// The revision of the canvas before the end.
    revision: String,
    status: JobStatus,
    /// The number of outputs that are placed.
    outputs: usize,
    /// The nodes that wait for the job.
    nodes: Vec<NodeId>,
    review: CompletionReview,
}

impl PreparedReview {
    /// Returns `true` if the locked canvas has the revision that was reviewed.
    pub(super) fn is_current(&self, canvas: &JobCanvas) -> bool {
        self.revision == canvas.revision
    }

    /// The review, if it is that of an end that places these outputs and releases these nodes.
    pub(super) fn matching(
        &self,
        canvas: &JobCanvas,
        status: JobStatus,
        placements: &[Placement],
        nodes: &[Node],
    ) -> Option<CompletionReview> {
        let holds = self.is_current(canvas)
            && (self.status, self.outputs, self.nodes.len()) == (status, placements.len(), nodes.len())
            && nodes.iter().all(|node| self.nodes.contains(&node.id));
        holds.then(|| self.review.clone())
    }
}

impl Default for Reviews {
    fn default() -> Self {
        Self::new(Arc::default(), Shares::new("reviews", MEMORY_BYTES, MEMORY_BYTES))
    }
}

impl Reviews {
    /// Reviews the graphs that are kept here, within these bytes. One review takes at most as many as one account may hold.
    pub fn new(graphs: Arc<Graphs>, memory: Shares) -> Self {
        Self { graphs, turns: Shares::new("reviewed_canvases", u64::MAX, 1), memory }
    }

    /// Prepares the review that this completion of a job of the account will leave. `lease_token`: the current lease of the
    /// job's task, or `None` if no worker holds one.
    ///
    /// `None` is returned when the end makes the review by itself, because the canvas is small, the task has another lease, too many
    /// others wait, or the canvas cannot be read, which the end will report.
    #[tracing::instrument(skip_all, name = "app.job.prepare_review")]
    pub async fn prepare(
        &self,
        pool: &PgPool,
        id: JobId,
        account: &AccountUid,
        lease_token: Option<Uuid>,
        completion: &Completion,
    ) -> Option<PreparedReview> {
        self.try_to_prepare(pool, id, account, lease_token, completion).await.unwrap_or_else(|error| {
            tracing::debug!(error = &error as &dyn std::error::Error, job.id = %id, "cannot prepare the review of job {id}");
            None
        })
    }

    async fn try_to_prepare(
        &self,
        pool: &PgPool,
        id: JobId,
        account: &AccountUid,
        lease_token: Option<Uuid>,
        completion: &Completion,
    ) -> Result<Option<PreparedReview>> {
        let large = db::jobs::large_canvas(&mut *db::pool::acquire(pool).await?, id, account, lease_token).await?;
        let Some(LargeCanvas { canvas, bytes, request }) = large else { return Ok(None) };
        let admitted = async {
            let turn = self.turns.hold(&Key::name(&canvas.to_string()), 1).await;
            (turn, self.memory.hold(&Key::account(account.as_str()), graphs::memory_bytes(bytes)).await)
        };
        let Ok((turn, memory)) = tokio::time::timeout(PATIENCE, admitted).await else { return Ok(None) };
        let mut snapshot = db::pool::snapshot(pool).await?;
        let found = db::canvases::find(&mut snapshot, &canvas.owner, &canvas).await?;
        let Some((record, _)) = found else { return Ok(None) };
        let mut graph = if graphs::is_kept(record.graph_bytes) {
            self.graphs.copy(&mut snapshot, &record).await?
        } else {
            let (nodes, connections) = db::canvases::skeleton(&mut snapshot, record.key).await?;
            Graph::new(record.title.clone(), record.graph_bytes, nodes, connections)
        };
        let (status, placements) = match completion {
            Completion::Succeeded(placements) => (JobStatus::Succeeded, placements.as_slice()),
            Completion::SucceededVideo(_) => (JobStatus::Succeeded, &[][..]),
            Completion::Failed(_, placements) => (JobStatus::Failed, placements.as_slice()),
            Completion::Canceled(_) => (JobStatus::Canceled, &[][..]),
        };
        let mut nodes: Vec<Node> = graph.nodes().filter(|node| node.active_job == Some(id.0)).cloned().collect();
        // A review does not depend on the time of the end.
        placement::fill(&mut nodes, &canvas.owner, placements, id, (status, record.updated_at));
        let detached = placement::detached(&canvas.owner, placements, &nodes);
        let ids = nodes.iter().map(|node| node.id.clone()).collect();
        let waiting = graph.replace(nodes);
        let mut assets = stored_assets(&mut snapshot, &graph).await?;
        let sources = request.parents().into_iter().filter(|parent| parent.role != Some(InputRole::Mask));
        let sources: HashSet<AssetHandle> =
            sources.filter(|_| !placements.is_empty()).map(|parent| parent.asset).collect();
        let stored = db::assets::origins(&mut snapshot, &sources).await?;
        let has_sources = (!sources.is_empty()).then_some(stored.len() == sources.len());
        drop(snapshot);
        assets.extend(placements.iter().map(|placement| {
            let size = (placement.width.into(), placement.height.into());
            (placement::asset(&canvas.owner, placement), StoredAsset { origin: Origin::Job, size, has_sources })
        }));
        let review = review::review(&graph, &assets, &detached);
        graph.replace(waiting);
        graph.forget_parsed();
        // Not the skeleton of a graph that is too large.
        self.graphs.keep(&record, &Arc::new(graph));
        drop(memory);
        let (revision, outputs) = (record.revision, placements.len());
        Ok(Some(PreparedReview { _turn: turn, revision, status, outputs, nodes: ids, review }))
    }
}
