//! `POST /canvases/{canvasId}/set-aside` and `GET /canvases/{canvasId}/set-aside/{batchId}`: batches that are named instead of sent again
//! (docs/reference/operations.md#batches-that-are-set-aside).

use std::str::FromStr;

use axum::extract::State;
use domain::id::CanvasReference;
use domain::limits::SET_ASIDE_BODY_MAX;
use domain::operation::{BatchId, BatchSetAside};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::extract::caller::{ReadCanvas, WriteCanvas};
use crate::extract::canvas::{CanvasAccess, require_writer};
use crate::extract::json::{Input, JsonBody};
use crate::extract::path::PathText;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// A batch to set aside.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBatchAside {
    /// Operations. Their forms are checked when the batch is applied.
    #[schema(value_type = Vec<Object>, min_items = 1, max_items = 200)]
    operations: Vec<Map<String, Value>>,
}

impl Input for SetBatchAside {
    const LIMIT: usize = SET_ASIDE_BODY_MAX;
}

/// The id of a batch in a path.
struct InPath(String);

impl FromStr for InPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match BatchId::fits(text) {
            true => Ok(Self(text.to_owned())),
            false => Err("must be 6 letters"),
        }
    }
}

/// Set a batch aside
///
/// Keeps the operations of a batch for 10 minutes under 6 letters, so that a client can name them instead of sending them again. Use it
/// where a batch would be repeated through a language model. Nothing is applied or checked. An account has at most 20: its oldest
/// one makes room.
#[utoipa::path(
    post, path = "/canvases/{canvasId}/set-aside", operation_id = "setBatchAside", tag = "Batches", request_body = SetBatchAside,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    params(("canvasId" = CanvasReference, Path, description = "Plain id or handle."), OwnerQuery),
    responses(ReadErrors, (status = 201, description = "The batch with its id.", body = BatchSetAside))
)]
pub async fn set_aside(State(app): State<App>, on: CanvasAccess<WriteCanvas>, body: JsonBody) -> Result {
    let sent = body.json::<SetBatchAside>().await.map_err(|problem| problem.and(on.violations()))?;
    let (handle, record, role) = on.readable()?;
    require_writer(role)?;
    on.caller.require_acceptable()?;
    let id = service::random::letters::<{ BatchId::LETTERS }>();
    let mut transaction = app.transaction().await?;
    let of = (record.key, id.as_str());
    let batch = db::set_aside::create(&mut transaction, &on.caller.account, of, sent.operations).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::created(&format!("/canvases/{handle}/set-aside/{id}"), &batch))
}

/// Read a batch that was set aside
///
/// Returns the operations that the caller's account has set aside for this canvas. 404 when they were never set aside, or no longer are.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/set-aside/{batchId}", operation_id = "getBatchSetAside", tag = "Batches",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        ("batchId" = BatchId, Path, description = "The id of the batch."),
        OwnerQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The batch.", body = BatchSetAside))
)]
pub async fn read(State(app): State<App>, on: CanvasAccess<ReadCanvas>, params: PathText) -> Result {
    let (InPath(id), _) = combine_violations(params.parameter("batchId"), on.named())?;
    let (_, record, _) = on.readable()?;
    let mut connection = app.connection().await?;
    let found = db::set_aside::find(&mut connection, &on.caller.account, (record.key, &id)).await?;
    Ok(reply::ok(&found.ok_or(Problem::NotFound("batch"))?))
}
