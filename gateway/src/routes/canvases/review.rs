//! `GET /canvases/{canvasId}/review`: the findings and the review of a canvas in its present state
//! (docs/reference/canvases.md#review).

use axum::extract::State;
use canvas::{Graph, Touched};
use domain::id::CanvasReference;
use domain::review::CanvasReview;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Review a canvas as it is
///
/// Returns the findings and the completion review of the stored canvas. Use it before reporting that work is
/// done: do not claim completion while `completionReview.doneClaimAllowed` is false. It changes nothing.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/review", operation_id = "reviewCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
    ),
    responses(ReadErrors, (status = 200, description = "Findings and completion review.", body = CanvasReview))
)]
pub async fn review(State(app): State<App>, on: CanvasAccess<ReadCanvas>) -> Result {
    let (handle, record, _) = on.readable()?;
    let room = app.documents.reserve(&on.caller.account, record.graph_bytes).await?;
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, role) =
        db::canvases::find(&mut snapshot, &on.caller.account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let graph = match app.graphs.present(&record) {
        Some(graph) => Graph::clone(&graph),
        None => {
            let (nodes, connections) = db::canvases::skeleton(&mut snapshot, record.key).await?;
            Graph::new(record.title.clone(), record.graph_bytes, nodes, connections)
        }
    };
    let assets = app::canvas::stored_assets(&mut snapshot, &graph).await?;
    let works = db::jobs::owing(&mut snapshot, record.key, &on.caller.account).await?;
    let validation = canvas::validate(&graph, &Touched::default(), &assets, &works);
    let review = CanvasReview { canvas: record.summary(Some(role)), validation };
    Ok(reply::private(reply::document(room.into_json(&review)?)))
}
