//! `DELETE /console/canvases/{ownerUid}/{canvasId}`.

use app::purge::CanvasPurge;
use axum::extract::State;
use domain::channel;
use domain::id::CanvasHandle;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::console::owned::{named_canvas, owned_canvas};
use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody, only};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::{App, retrying};

/// Confirmation of the deletion of a canvas.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteCanvas {
    /// Must be `true`.
    #[schema(schema_with = only::<true>)]
    #[expect(dead_code, reason = "the schema admits `true` alone")]
    confirm: bool,
}

impl Input for DeleteCanvas {}

/// A deleted canvas.
#[derive(Serialize, ToSchema)]
pub struct CanvasDeleted {
    /// Handle of the canvas.
    canvas: CanvasHandle,
    /// Always `true`.
    #[schema(schema_with = only::<true>)]
    deleted: bool,
    /// Number of nodes that were deleted with it.
    #[schema(minimum = 0)]
    nodes: i64,
    /// Number of assets that were stored in it and deleted with it.
    #[schema(minimum = 0)]
    assets: i64,
}

/// Delete a canvas
///
/// Deletes a canvas of the person with its nodes, its history, its members and the assets stored in it, for good, after
/// `confirm: true`.
#[utoipa::path(
    delete, path = "/canvases/{ownerUid}/{canvasId}", operation_id = "deleteCanvas", tag = "Deletion",
    request_body = DeleteCanvas,
    params(
        ("ownerUid" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Uid of the person's account."),
        ("canvasId" = String, Path, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Plain id of the canvas."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "What was deleted.", body = CanvasDeleted),
        (status = 409, description = "Jobs or Recipe runs are active on the canvas, whoever started them."),
    )
)]
pub async fn delete(State(app): State<App>, person: Person, path: PathText, body: JsonBody) -> Result {
    let (DeleteCanvas { .. }, canvas) = combine_violations(body.json().await, named_canvas(&path))?;
    let purge = retrying(async || {
        let mut transaction = app.transaction().await?;
        owned_canvas(&mut transaction, &person.account, &canvas).await?;
        let purge = app::purge::canvas(&mut transaction, person.actor(), &canvas).await?;
        db::pool::commit(transaction).await?;
        Ok(purge)
    });
    let CanvasPurge::Done(purged, others) = purge.await? else {
        let why = "work is active on the canvas; wait for it or cancel it, and delete the canvas again";
        return Err(Problem::conflict(why));
    };
    app.announce(others.iter().chain([&canvas]).map(channel::canvas).collect());
    Ok(reply::ok(&CanvasDeleted { canvas, deleted: true, nodes: purged.nodes, assets: purged.assets }))
}
