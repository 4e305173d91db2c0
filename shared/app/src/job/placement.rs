//! What the completion of a job writes to its canvas.

use db::assets::NewAsset;
use db::jobs::{JobCanvas, LockedJob};
use db::{Error, PgConnection, Result};
use domain::asset::AssetKind;
use domain::graph::Node;
use domain::id::{AssetHandle, JobId, NodeId};
use domain::job::{JobStatus, Placement};

use crate::target::{self, Made};

/// The job's targets that still wait for it. Nothing else changes them while the canvas is locked.
pub(super) async fn waiting(
    conn: &mut PgConnection,
    canvas_key: i64,
    job: JobId,
    targets: &[NodeId],
) -> Result<Vec<Node>> {
    let mut waiting = Vec::new();
    for target in targets {
        let node = db::canvases::node(conn, canvas_key, target).await?;
        waiting.extend(node.filter(|node| node.active_job == Some(job.0)));
    }
    Ok(waiting)
}

/// Stores the outputs' assets, each with the rendition that is always made. `false` when a blob was removed.
pub(super) async fn store(
    conn: &mut PgConnection,
    canvas: &JobCanvas,
    placements: &[Placement],
    traceparent: Option<&str>,
) -> Result<bool> {
    let mut placements: Vec<&Placement> = placements.iter().collect();
    placements.sort_unstable_by_key(|placement| placement.sha256);
    for placement in placements {
        let bytes = column("assets.bytes", placement.bytes)?;
        let adopted = db::blobs::adopt(conn, placement.blob_key, &placement.sha256, bytes).await?;
        let Some(blob_key) = adopted else { return Ok(false) };
        let new = NewAsset {
            handle: asset(canvas, placement),
            canvas_key: Some(canvas.key),
            node: None,
            kind: AssetKind::Image,
            name: placement.name.clone(),
            mime_type: placement.mime_type.clone(),
            width: column("assets.width", placement.width)?,
            height: column("assets.height", placement.height)?,
            bytes,
            blob_key,
        };
        db::assets::insert(conn, &new).await?;
        let size = (new.width, new.height);
        db::renditions::request_eager(conn, blob_key, size, &canvas.owner, traceparent).await?;
    }
    Ok(true)
}

/// Releases waiting nodes, and fills those that have an output. Returns the growth of the graph in bytes.
pub(super) fn fill(
    nodes: &mut [Node],
    canvas: &JobCanvas,
    placements: &[Placement],
    job: &LockedJob,
    status: JobStatus,
) -> i64 {
    let fill = |node: &mut Node| {
        target::release(node, status);
        if let Some(placement) = placements.iter().find(|placement| placement.node == node.id) {
            let made = Made {
                asset: asset(canvas, placement),
                size: (placement.width.into(), placement.height.into()),
                provenance: placement.provenance.clone(),
                at: job.now,
            };
            target::fill(node, job.id, made);
        }
    };
    nodes.iter_mut().map(|node| target::change(node, fill)).sum()
}

/// Handle of the asset of a placement in this canvas.
pub(super) fn asset(canvas: &JobCanvas, placement: &Placement) -> AssetHandle {
    AssetHandle { owner: canvas.owner.clone(), id: placement.asset.clone() }
}

/// Converts a number to the type of its column. The limits on pictures keep it in range.
pub(super) fn column<T, N: TryInto<T> + ToString + Copy>(name: &'static str, number: N) -> Result<T> {
    number.try_into().map_err(|_| Error::Unreadable { column: name, value: number.to_string() })
}
