//! `GET /canvases/{canvasId}/review`: what is left to fix on a canvas as it is (decisions 4.7).

use axum::extract::State;
use canvas::{Graph, Touched};
use domain::canvas::CanvasSummary;
use domain::review::{StoredAssets, Validation};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::OnCanvas;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A canvas and what is left to fix on it.
#[derive(Serialize, ToSchema)]
pub struct CanvasReview {
    /// The canvas.
    canvas: CanvasSummary,
    /// Findings and review.
    validation: Validation,
}

/// Review a canvas as it is
///
/// Findings and completion review of the stored canvas (an extension).
#[utoipa::path(
    get, path = "/canvases/{canvasId}/review", operation_id = "reviewCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
    ),
    responses((status = 200, body = CanvasReview))
)]
pub async fn review(State(app): State<App>, on: OnCanvas<ReadCanvas>) -> Result {
    let (handle, record, _) = on.readable()?;
    let room = app.documents.room(record.graph_bytes).await?;
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, role) =
        db::canvases::find(&mut snapshot, &on.caller.account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let (nodes, connections) = db::canvases::skeleton(&mut snapshot, record.key).await?;
    let graph = Graph::new(record.title.clone(), record.graph_bytes, nodes, connections);
    let assets = stored_assets(&mut snapshot, &graph).await?;
    let validation = canvas::validate(&graph, &Touched::default(), &assets);
    let review = CanvasReview { canvas: record.summary(Some(role)), validation };
    Ok(reply::private(reply::document(room.house_json(&review)?)))
}

/// The stored ones among the assets that a graph names: what a validation asks about.
pub(super) async fn stored_assets(connection: &mut db::PgConnection, graph: &Graph) -> Result<StoredAssets> {
    let named = canvas::review::named_assets(graph).collect();
    Ok(db::assets::origins(connection, &named).await?)
}
