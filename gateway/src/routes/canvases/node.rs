//! `GET /canvases/{canvasId}/nodes/{nodeId}` (docs/reference/canvases.md#read-a-node).

use axum::extract::State;
use domain::asset::AssetUrls;
use domain::canvas::NodeRead;
use domain::id::{CanvasReference, NodeId};
use domain::origin::AiGenerated;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::names;
use crate::extract::path::PathText;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Read one node with its connections
///
/// Returns one node, its incoming and outgoing connections and short-lived URLs of what it shows: of its image, or
/// of its video and the poster of that. Use it to look at one node of a large canvas. It never returns other nodes.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/nodes/{nodeId}", operation_id = "getNode", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        ("nodeId" = String, Path, pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id, ref or handle."),
        OwnerQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The node.", body = NodeRead))
)]
pub async fn node(State(app): State<App>, on: CanvasAccess<ReadCanvas>, params: PathText) -> Result {
    let (mut id, _) = combine_violations(params.parameter::<NodeId>("nodeId"), on.named())?;
    let (handle, record, _) = on.readable()?;
    names::resolve_nodes(&app, record.key, std::slice::from_mut(&mut id)).await?;
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, role) =
        db::canvases::find(&mut snapshot, &on.caller.account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let node = db::canvases::node(&mut snapshot, record.key, &id).await?.ok_or(Problem::NotFound("node"))?;
    let (incoming, outgoing) = db::canvases::connections_of(&mut snapshot, record.key, &id).await?;
    // An asset can be deleted while a node names it.
    let shown = match &node.asset {
        Some(asset) => db::assets::get(&mut snapshot, asset).await?,
        None => None,
    };
    let ai_generated = shown.as_ref().map(|asset| AiGenerated::from_origin(asset.origin));
    let urls = shown.map(|asset| app.previews.urls(&app.keys, &asset, service::clock::now()));
    let (preview, video) = urls.map_or((None, None), |AssetUrls { preview, video }| (preview, video));
    Ok(reply::ok(&NodeRead {
        node: node.into(),
        incoming: incoming.into_iter().map(Into::into).collect(),
        outgoing: outgoing.into_iter().map(Into::into).collect(),
        canvas: record.summary(Some(role)),
        preview_expires_in_seconds: preview.as_ref().map(|preview| preview.expires_in_seconds),
        preview_url: preview.map(|preview| preview.url),
        video_expires_in_seconds: video.as_ref().map(|video| video.expires_in_seconds),
        video_url: video.map(|video| video.url),
        ai_generated,
    }))
}
