//! `GET /canvases/{canvasId}/changes?since=<revision>`: what a client that knows a revision has to read again
//! (decisions 4.7, 18.16).

use axum::extract::{OriginalUri, State};
use domain::canvas::{Activity, Changes};
use domain::limits::BASE_REVISION_MAX;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::OnCanvas;
use crate::extract::query::QueryReader;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::App;

/// What changed between two revisions.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanvasChanges {
    /// The revision that was asked for.
    since: String,
    /// The revision that this leads to.
    revision: String,
    /// `false`: `since` is none of the last 1000 revisions; the lists are empty, and the canvas is to be read again.
    complete: bool,
    /// What was made and deleted since is in no list.
    #[serde(flatten)]
    changes: Changes,
    /// The newest 50 entries since, newest first.
    activity: Vec<Activity>,
}

/// Read what changed since a revision
///
/// Every node and connection that was made, changed or deleted since, once; what came and went in between is in no list (an
/// extension).
#[utoipa::path(
    get, path = "/canvases/{canvasId}/changes", operation_id = "getCanvasChanges", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("since" = String, Query, min_length = 1, max_length = 200, description = "A revision that is known."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
    ),
    responses((status = 200, body = CanvasChanges))
)]
pub async fn changes(State(app): State<App>, on: OnCanvas<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let since = query.text("since", BASE_REVISION_MAX);
    match &since {
        None if query.first("since").is_none() => query.refuse("since", "is required"),
        Some(text) if text.is_empty() => query.refuse("since", "must have at least 1 characters"),
        _ => {}
    }
    both(on.named(), query.finish())?;
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
