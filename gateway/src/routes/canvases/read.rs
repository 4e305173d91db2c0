//! `GET /canvases/{canvasId}`: the whole graph, from the document cache when its revision is cached
//! (docs/reference/conventions.md#caching).

use std::slice;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use domain::canvas::{CanvasRead, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasReference};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::compression::{Coding, compressed};
use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::CanvasAccess;
use crate::extract::query::OwnerQuery;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::rates::Charges;
use crate::reply::{self, none_match};
use crate::state::App;

/// Length from which on compressed forms of a document are cached beside it, in bytes.
const FORMS_FROM: usize = 64 * 1024;
/// Longest document that is cached beside its forms, in bytes: a quarter of the cache. A longer one would leave them no room.
const KEPT_BESIDE_FORMS: usize = 16 * 1024 * 1024;

/// Read a whole canvas
///
/// Returns the canvas with all nodes, connections and its newest activity. Use it before writing: `revision` is
/// the `baseRevision` of the next write. Send `If-None-Match` to read again only after a change. To follow a
/// canvas that is already known, read its changes instead.
#[utoipa::path(
    get, path = "/canvases/{canvasId}", operation_id = "getCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(ReadErrors, (status = 200, description = "The canvas.", body = CanvasRead), (status = 304, description = "The canvas still has the revision in `If-None-Match`."))
)]
pub async fn read(
    State(app): State<App>,
    Extension(charges): Extension<Charges>,
    on: CanvasAccess<ReadCanvas>,
    headers: HeaderMap,
) -> Result {
    let (handle, record, _) = on.readable()?;
    if none_match(&headers, &etag(&record.revision)) {
        return Ok(cacheable(&record.revision, StatusCode::NOT_MODIFIED.into_response()));
    }
    let read = Read { app: &app, caller: &on.caller.account, handle, record };
    let length = match app.documents.get(record.key, &record.revision) {
        Some(document) => document.len(),
        None => usize::try_from(record.graph_bytes).unwrap_or(usize::MAX),
    };
    match Coding::preferred(&headers).filter(|_| length > FORMS_FROM) {
        Some(coding) => read.coded(&charges, coding).await,
        None => {
            let (revision, document) = read.document(usize::MAX).await?;
            Ok(cacheable(&revision, reply::document(document)))
        }
    }
}

/// A canvas that is read, as it was when the caller was admitted.
struct Read<'a> {
    app: &'a App,
    caller: &'a AccountUid,
    handle: &'a CanvasHandle,
    record: &'a CanvasRecord,
}

impl Read<'_> {
    /// The compressed document, made once for all that read this revision in the same coding.
    async fn coded(&self, charges: &Charges, coding: Coding) -> Result {
        let Self { app, caller, record, .. } = self;
        let turn = match app.documents.form(record.key, &record.revision, coding).await? {
            Ok(form) => {
                let memory = app.documents.hold(caller, form.len() as u64).await?;
                return Ok(coded(&record.revision, memory.into_bytes(form), coding));
            }
            Err(turn) => turn,
        };
        let (revision, document) = self.document(KEPT_BESIDE_FORMS).await?;
        let Some((form, memory)) = compressed(app, charges, coding, slice::from_ref(&document)).await else {
            return Ok(cacheable(&revision, reply::document(document)));
        };
        if revision == record.revision {
            turn.insert(form.clone());
        }
        Ok(coded(&revision, memory.into_bytes(form), coding))
    }

    /// The document and its revision, which is cached unless it is longer than `kept_max`.
    async fn document(&self, kept_max: usize) -> Result<(String, Bytes)> {
        let Self { app, caller, handle, record } = self;
        match app.documents.kept(caller, record.key, &record.revision).await? {
            Some(document) => Ok((record.revision.clone(), document)),
            None => load(app, caller, handle, record, kept_max).await,
        }
    }
}

fn coded(revision: &str, form: Bytes, coding: Coding) -> Response {
    let mut response = cacheable(revision, reply::document(form));
    response.headers_mut().insert(CONTENT_ENCODING, coding.value());
    response
}

fn etag(revision: &str) -> String {
    format!("W/\"{revision}\"")
}

/// The document and its revision, from one snapshot: a write since the caller was admitted is in both or in neither.
async fn load(
    app: &App,
    caller: &AccountUid,
    handle: &CanvasHandle,
    admitted: &CanvasRecord,
    kept_max: usize,
) -> Result<(String, Bytes)> {
    // Taken before a connection, so that no connection is held while waiting for memory.
    let room = app.documents.reserve(caller, admitted.graph_bytes).await?;
    // A concurrent request may have made the document while this one waited for memory.
    if let Some(document) = app.documents.get(admitted.key, &admitted.revision) {
        return Ok((admitted.revision.clone(), room.into_bytes(document)));
    }
    let mut snapshot = db::pool::snapshot(&app.pool).await?;
    let (record, _) = db::canvases::find(&mut snapshot, caller, handle).await?.ok_or(Problem::NotFound("canvas"))?;
    let read = document_of(app, &mut snapshot, &record).await?;
    drop(snapshot);
    let document = Bytes::from(serde_json::to_vec(&read).map_err(Problem::internal)?);
    // Refs are given to a canvas without a revision.
    if document.len() <= kept_max && !record.lacks_refs() {
        app.documents.put(record.key, &record.revision, document.clone());
    }
    Ok((record.revision, room.into_bytes(document)))
}

/// The full read of a canvas. Its graph is only loaded if this process did not write its revision.
pub async fn document_of(app: &App, connection: &mut db::PgConnection, record: &CanvasRecord) -> Result<CanvasRead> {
    let (nodes, connections) = match app.graphs.present(record) {
        Some(graph) => (graph.served_nodes(), graph.served_connections()),
        None => {
            let (nodes, connections) = db::canvases::graph(&mut *connection, record.key).await?;
            (nodes.into_iter().map(Into::into).collect(), connections.into_iter().map(Into::into).collect())
        }
    };
    let activity = db::canvases::activity(connection, record.key).await?;
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
