//! Writes of the completion of a job to its canvas.

use std::collections::HashMap;

use db::assets::NewAsset;
use db::jobs::JobCanvas;
use db::renditions::NewRendition;
use db::{Error, PgConnection, Result};
use domain::Timestamp;
use domain::asset::AssetKind;
use domain::graph::Node;
use domain::id::{AccountUid, AssetHandle, JobId};
use domain::job::{JobStatus, Placement};
use domain::limits::RENDITION_EAGER;
use domain::message::ReadyTasks;
use domain::origin::Origin;
use domain::review::DetachedOutput;
use uuid::Uuid;

use crate::target::{self, MadeImage};

/// An output to store in a canvas.
pub(super) struct PlacedOutput<'a> {
    pub(super) canvas: &'a JobCanvas,
    pub(super) placement: &'a Placement,
    /// W3C trace context of the work that made it.
    pub(super) traceparent: Option<&'a str>,
}

/// Stores the assets of outputs, each with the renditions that are always made, whose tasks it adds to `ready`. `adopted` has the keys
/// of the stored files by those that were put. A preview whose blob was removed is made again.
pub(super) async fn store(
    conn: &mut PgConnection,
    outputs: &[PlacedOutput<'_>],
    adopted: &HashMap<Uuid, Uuid>,
    ready: &ReadyTasks,
) -> Result<()> {
    if outputs.is_empty() {
        return Ok(());
    }
    let (mut assets, mut renditions, mut requests) = (Vec::with_capacity(outputs.len()), Vec::new(), Vec::new());
    for PlacedOutput { canvas, placement, traceparent } in outputs {
        let blob_key = *adopted.get(&placement.blob_key).unwrap_or(&placement.blob_key);
        let new = NewAsset {
            handle: asset(&canvas.owner, placement),
            canvas_key: Some(canvas.key),
            node: None,
            kind: AssetKind::Image,
            name: placement.name.clone(),
            mime_type: placement.mime_type.clone(),
            width: column("assets.width", placement.width)?,
            height: column("assets.height", placement.height)?,
            bytes: column("assets.bytes", placement.bytes)?,
            blob_key,
            origin: placement.origin.map(Origin::service),
            metadata_removed: placement.metadata_removed.clone(),
            original: None,
            video: None,
        };
        for width in db::renditions::eager_widths((new.width, new.height)) {
            let preview = placement.preview.as_ref().filter(|_| width == RENDITION_EAGER);
            match preview.and_then(|preview| Some((preview, *adopted.get(&preview.blob_key)?))) {
                Some((preview, key)) => renditions.push(NewRendition {
                    source_key: blob_key,
                    width,
                    blob_key: key,
                    mime_type: preview.mime_type.clone(),
                }),
                None => requests.push((blob_key, width, &canvas.owner, traceparent)),
            }
        }
        assets.push(new);
    }
    db::assets::insert_all(conn, &assets).await?;
    if !renditions.is_empty() {
        db::renditions::insert_all(conn, &renditions).await?;
    }
    // In the order of their keys, as several transactions may request the same ones.
    requests.sort_by_key(|(blob_key, width, ..)| (*blob_key, *width));
    for (blob_key, width, owner, traceparent) in requests {
        db::renditions::request(conn, blob_key, width, owner, *traceparent, ready).await?;
    }
    Ok(())
}

/// Releases nodes that waited for a job, which ended `at` this time with `status`, and fills those that have an output. Returns the
/// growth of the graph in bytes.
pub(super) fn fill(
    nodes: &mut [Node],
    owner: &AccountUid,
    placements: &[Placement],
    job: JobId,
    (status, at): (JobStatus, Timestamp),
) -> i64 {
    let fill = |node: &mut Node| {
        target::release(node, status);
        if let Some(placement) = placements.iter().find(|placement| placement.node == node.id) {
            let made = MadeImage {
                asset: asset(owner, placement),
                size: (placement.width.into(), placement.height.into()),
                provenance: placement.provenance.clone(),
                at,
            };
            target::fill(node, job, made);
        }
    };
    nodes.iter_mut().map(|node| target::change(node, fill)).sum()
}

/// Handle of the asset of a placement in a canvas of this owner.
pub(super) fn asset(owner: &AccountUid, placement: &Placement) -> AssetHandle {
    AssetHandle { owner: owner.clone(), id: placement.asset.clone() }
}

/// The outputs that none of the nodes shows, because theirs were deleted.
pub(super) fn detached(owner: &AccountUid, placements: &[Placement], nodes: &[Node]) -> Vec<DetachedOutput> {
    let is_detached = |placement: &&Placement| nodes.iter().all(|node| node.id != placement.node);
    let of =
        |placement: &Placement| DetachedOutput { node: placement.node.clone(), asset: Some(asset(owner, placement)) };
    placements.iter().filter(is_detached).map(of).collect()
}

/// Converts a number to the type of its column. The limits on images keep it in range.
pub(super) fn column<T, N: TryInto<T> + ToString + Copy>(name: &'static str, number: N) -> Result<T> {
    number.try_into().map_err(|_| Error::Unreadable { column: name, value: number.to_string() })
}
