//! `GET /canvases/{canvasId}`: the whole graph, out of the document cache where its revision is known (decisions 1.9).

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::canvas::{Activity, Canvas, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle};
use http::header::{CACHE_CONTROL, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::OnCanvas;
use crate::problem::{Problem, Result};
use crate::reply::{self, none_match};
use crate::state::App;

/// A canvas and what happened to it.
#[derive(Serialize, ToSchema)]
pub struct CanvasRead {
    /// The whole graph.
    canvas: Canvas,
    /// The newest 50 entries, newest first.
    activity: Vec<Activity>,
}

/// Read a canvas whole
#[utoipa::path(
    get, path = "/canvases/{canvasId}", operation_id = "getCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known."),
    ),
    responses((status = 200, body = CanvasRead), (status = 304, description = "Unchanged."))
)]
pub async fn read(State(app): State<App>, on: OnCanvas<ReadCanvas>, headers: HeaderMap) -> Result {
    let (handle, record, _) = on.readable()?;
    if none_match(&headers, &etag(&record.revision)) {
        return Ok(cacheable(&record.revision, StatusCode::NOT_MODIFIED.into_response()));
    }
    match app.documents.get(record.key, &record.revision) {
        Some(document) => Ok(cacheable(&record.revision, reply::document(document))),
        None => {
            let (revision, document) = load(&app, &on.caller.account, handle, record).await?;
            Ok(cacheable(&revision, reply::document(document)))
        }
    }
}

fn etag(revision: &str) -> String {
    format!("W/\"{revision}\"")
}

/// The document and its revision, out of one snapshot: a write since the caller was admitted is in both or in neither.
async fn load(
    app: &App,
    caller: &AccountUid,
    handle: &CanvasHandle,
    admitted: &CanvasRecord,
) -> Result<(String, Bytes)> {
    // Before a connection is taken, which others need meanwhile.
    let room = app.documents.room(admitted.graph_bytes).await?;
    // Of many that waited for room one has made it by now.
    if let Some(document) = app.documents.get(admitted.key, &admitted.revision) {
        return Ok((admitted.revision.clone(), document));
    }
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, caller, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let read = document_of(&mut snapshot, &record).await?;
    drop(snapshot);
    let document = room.house_json(&read)?;
    app.documents.put(record.key, &record.revision, document.clone());
    Ok((record.revision, document))
}

/// The full read of a canvas.
pub async fn document_of(connection: &mut db::PgConnection, record: &CanvasRecord) -> Result<CanvasRead> {
    let (nodes, connections) = db::canvases::graph(&mut *connection, record.key).await?;
    let activity = db::canvases::activity(connection, record.key).await?;
    let nodes = nodes.into_iter().map(Into::into).collect();
    let connections = connections.into_iter().map(Into::into).collect();
    Ok(CanvasRead { canvas: record.document(nodes, connections), activity })
}

fn cacheable(revision: &str, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Authorization, Accept, Accept-Encoding"));
    if let Ok(etag) = HeaderValue::from_str(&etag(revision)) {
        headers.insert(ETAG, etag);
    }
    response
}
