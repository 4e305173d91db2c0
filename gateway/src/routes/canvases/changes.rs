//! `GET /canvases/{canvasId}/changes?since=<revision>`: what a client that knows a revision has to read again
//! (docs/reference/canvases.md#changes-since-a-revision).

use axum::extract::{OriginalUri, State};
use domain::canvas::{Activity, Changes};
use domain::limits::BASE_REVISION_MAX;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// Changes between two revisions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanvasChanges {
    /// The revision that the request named.
    since: String,
    /// The current revision.
    revision: String,
    /// Whether the lists are complete. `false`: `since` is not one of the last 1000 revisions; the lists are empty, and the
    /// canvas must be read again.
    complete: bool,
    /// Changed nodes and connections. What was both created and deleted since `since` is in no list.
    #[serde(flatten)]
    changes: Changes,
    /// Activity entries since `since`, at most 50, newest first.
    activity: Vec<Activity>,
}

/// Read what changed since a revision
///
/// Returns the ids of nodes and connections that were created, changed or deleted since a known revision, each
/// once. Use it to follow a canvas without reading it whole. Whatever was both created and deleted since then is
/// in no list. The last 1000 revisions are covered; for an older or unknown one `complete` is false and the
/// canvas must be read again. This operation is an extension.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/changes", operation_id = "getCanvasChanges", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("since" = String, Query, min_length = 1, max_length = 200, description = "A known revision."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner of the resource, when its plain id is given."),
    ),
    responses((status = 200, description = "The changes since `since`.", body = CanvasChanges))
)]
pub async fn changes(State(app): State<App>, on: CanvasAccess<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let since = query.text("since", BASE_REVISION_MAX);
    match &since {
        None if !query.has("since") => query.refuse("since", "is required"),
        Some(text) if text.is_empty() => query.refuse("since", "must have at least 1 character"),
        _ => {}
    }
    combine_violations(on.named(), query.finish())?;
    let (handle, ..) = on.readable()?;
    let since = since.unwrap_or_default();
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) =
        db::canvases::find(&mut snapshot, &on.caller.account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let found = db::canvases::changes_since(&mut snapshot, record.key, &since).await?;
    let complete = found.is_some();
    let (changes, activity) = found.map(|found| (found.changes, found.activity)).unwrap_or_default();
    Ok(reply::ok(&CanvasChanges { since, revision: record.revision, complete, changes, activity }))
}
