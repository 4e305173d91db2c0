//! Writes of the completion of a job to its canvas.

use std::collections::HashMap;

use db::assets::NewAsset;
use db::jobs::{JobCanvas, LockedJob};
use db::renditions::NewRendition;
use db::{Error, PgConnection, Result};
use domain::Timestamp;
use domain::asset::{AssetKind, Poster, VideoDetails};
use domain::graph::Node;
use domain::id::{AccountUid, AssetHandle, JobId};
use domain::job::{JobStatus, PlacedVideo, Placement};
use domain::limits::RENDITION_EAGER;
use domain::lineage;
use domain::message::ReadyTasks;
use domain::origin::Origin;
use domain::review::DetachedOutput;
use uuid::Uuid;

use crate::target::{self, Made};

/// An output to store in a canvas.
pub(super) struct PlacedOutput<'a> {
    pub(super) job: &'a LockedJob,
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
    for PlacedOutput { job, canvas, placement, traceparent } in outputs {
        let blob_key = *adopted.get(&placement.blob_key).unwrap_or(&placement.blob_key);
        let video = placement.video.as_ref().map(|video| details(video, adopted));
        let credit_cost = job.request.model().map_or(0, |model| model.credit_cost);
        let new = NewAsset {
            handle: asset(&canvas.owner, placement),
            canvas_key: Some(canvas.key),
            node: None,
            kind: if video.is_some() { AssetKind::Video } else { AssetKind::Image },
            name: placement.name.clone(),
            mime_type: placement.mime_type.clone(),
            width: column("assets.width", placement.width)?,
            height: column("assets.height", placement.height)?,
            bytes: column("assets.bytes", placement.bytes)?,
            blob_key,
            origin: placement.origin.map(Origin::service),
            metadata_removed: placement.metadata_removed.clone(),
            original: None,
            video,
            made: lineage::Made::new(&placement.provenance, &job.actor, credit_cost),
            parents: job.request.parents(),
        };
        // Of a video, its poster has renditions.
        let source = match &new.video {
            None => Some(blob_key),
            Some(video) => video.poster.as_ref().map(|poster| poster.blob_key),
        };
        for (source_key, width) in source
            .into_iter()
            .flat_map(|key| db::renditions::eager_widths((new.width, new.height)).map(move |it| (key, it)))
        {
            let preview = placement.preview.as_ref().filter(|_| width == RENDITION_EAGER);
            match preview.and_then(|preview| Some((preview, *adopted.get(&preview.blob_key)?))) {
                Some((preview, key)) => renditions.push(NewRendition {
                    source_key,
                    width,
                    blob_key: key,
                    mime_type: preview.mime_type.clone(),
                }),
                None => requests.push((source_key, width, &canvas.owner, traceparent)),
            }
        }
        assets.push(new);
    }
    db::assets::insert_all(conn, &assets).await?;
    if !renditions.is_empty() {
        db::renditions::insert_all(conn, &renditions).await?;
    }
    // In the order of their keys, as several transactions may request the same ones.
    requests.sort_by_key(|(source_key, width, ..)| (*source_key, *width));
    for (source_key, width, owner, traceparent) in requests {
        db::renditions::request(conn, source_key, width, owner, *traceparent, ready).await?;
    }
    Ok(())
}

/// What is stored of a video. A poster whose blob was removed is left out.
fn details(video: &PlacedVideo, adopted: &HashMap<Uuid, Uuid>) -> VideoDetails {
    let poster = video.poster.as_ref().and_then(|poster| {
        Some(Poster { blob_key: *adopted.get(&poster.blob_key)?, mime_type: poster.mime_type.clone() })
    });
    VideoDetails { duration_ms: video.facts.duration_ms, has_audio: video.facts.has_audio, poster }
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
        if let Some(placement) = placements.iter().find(|placement| placement.node == node.id) {
            let made = Made {
                asset: asset(owner, placement),
                size: (placement.width.into(), placement.height.into()),
                provenance: placement.provenance.clone(),
                at,
            };
            target::fill(node, job, made);
        }
        target::release(node, status);
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
