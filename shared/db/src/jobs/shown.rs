//! What the end of a job leaves on its canvas: assets, nodes, revision, activity and a review.

use domain::asset::AssetKind;
use domain::canvas::{AccessRole, Changes};
use domain::graph::Node;
use domain::id::{AccountUid, AssetHandle, JobId, NodeId};
use domain::job::{JobOperation, JobStatus, Output};
use domain::review::CompletionReview;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};

use super::{Placement, Review, Terms, target};
use crate::assets::{self, NewAsset};
use crate::canvases::{self, Change, NewActivity};
use crate::{Error, Result, blobs, renditions};

/// The canvas of a job about to end, locked.
pub(super) struct Canvas {
    key: i64,
    pub owner: AccountUid,
    /// Whether the job's account may still see it.
    pub readable: bool,
    /// Whether the job's account may still write to it.
    pub writable: bool,
}

/// What a node is told of the end of its job.
pub(super) struct End {
    pub job: JobId,
    pub operation: JobOperation,
    pub status: JobStatus,
    pub at: DateTime<Utc>,
}

impl Canvas {
    /// A canvas whose row the transaction holds, and what the job's account is there.
    pub(super) fn held(key: i64, owner: AccountUid, role: Option<AccessRole>) -> Self {
        Self { key, owner, readable: role.is_some(), writable: role.is_some_and(AccessRole::may_write) }
    }

    /// Those of a job's targets that still wait for it. Nobody else changes them while the canvas is locked.
    pub(super) async fn waiting(&self, conn: &mut PgConnection, job: JobId, targets: &[NodeId]) -> Result<Vec<Node>> {
        let mut waiting = Vec::new();
        for target in targets {
            let node = canvases::node(conn, self.key, target).await?;
            waiting.extend(node.filter(|node| node.active_job == Some(job.0)));
        }
        Ok(waiting)
    }

    /// Stores the outputs' assets, each with the rendition that is made unasked; false when a blob is gone.
    pub(super) async fn store(
        &self,
        conn: &mut PgConnection,
        placements: &[Placement],
        terms: &Terms<'_>,
    ) -> Result<bool> {
        let mut placements: Vec<&Placement> = placements.iter().collect();
        placements.sort_unstable_by_key(|placement| placement.sha256);
        for placement in placements {
            let bytes = column("assets.bytes", placement.bytes)?;
            let adopted = blobs::adopt(conn, placement.blob_key, &placement.sha256, bytes).await?;
            let Some(blob_key) = adopted else { return Ok(false) };
            let asset = NewAsset {
                handle: self.asset(placement),
                canvas_key: Some(self.key),
                node: None,
                kind: AssetKind::Image,
                name: placement.name.clone(),
                mime_type: placement.mime_type.clone(),
                width: column("assets.width", placement.width)?,
                height: column("assets.height", placement.height)?,
                bytes,
                blob_key,
            };
            assets::insert(conn, &asset).await?;
            let size = (asset.width, asset.height);
            renditions::request_eager(conn, blob_key, size, &self.owner, terms.traceparent).await?;
        }
        Ok(true)
    }

    /// Fills waiting nodes with their outputs, or just frees them; by how many bytes the graph grows.
    pub(super) fn fill(&self, nodes: &mut [Node], placements: &[Placement], end: &End) -> Result<i64> {
        let mut bytes_delta = 0;
        for node in nodes {
            let before = target::serialized_bytes(node)?;
            target::free(node, end.job, end.status, end.operation);
            if let Some(placement) = placements.iter().find(|placement| placement.node == node.id) {
                let provenance = placement.provenance.clone();
                target::fill(node, end.job, self.asset(placement), provenance, end.at.into());
            }
            bytes_delta += target::serialized_bytes(node)? - before;
        }
        Ok(bytes_delta)
    }

    /// Writes what became of nodes, and gives the canvas its next revision with them.
    pub(super) async fn commit(
        &self,
        conn: &mut PgConnection,
        revision: &str,
        nodes: &[Node],
        changed: &[NodeId],
        bytes_delta: i64,
        activity: Option<NewActivity<'_>>,
    ) -> Result<()> {
        let change = Change {
            revision,
            title: None,
            nodes_delta: 0,
            connections_delta: 0,
            bytes_delta,
            changes: &Changes { changed_node_ids: changed.to_vec(), ..Changes::default() },
            activity,
        };
        canvases::commit_work(conn, self.key, nodes, &change).await?;
        Ok(())
    }

    /// Reviews the canvas as the transaction sees it; `homeless` are the outputs whose nodes are gone.
    pub(super) async fn review(
        &self,
        conn: &mut PgConnection,
        homeless: &[Output],
        review: Review,
    ) -> Result<CompletionReview> {
        let (nodes, connections) = canvases::skeleton(conn, self.key).await?;
        let named = nodes.iter().flat_map(Node::named_assets).collect();
        let assets = assets::origins(conn, &named).await?;
        Ok(review(nodes, connections, &assets, homeless))
    }

    /// The asset of a placement here.
    pub(super) fn asset(&self, placement: &Placement) -> AssetHandle {
        AssetHandle { owner: self.owner.clone(), id: placement.asset.clone() }
    }
}

/// A number in the type of its column, which the limits on pictures keep it within.
pub(super) fn column<T, N: TryInto<T> + ToString + Copy>(name: &'static str, number: N) -> Result<T> {
    number.try_into().map_err(|_| Error::Unreadable { column: name, value: number.to_string() })
}
