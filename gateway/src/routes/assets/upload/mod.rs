//! `POST /assets`: a picture, streamed into the object store as it arrives (decisions 6.1 to 6.3).
//!
//! Only the header is read here, as the bytes pass; memory is bounded by one part of a multipart upload, however large
//! the picture and however many come at once.

mod file_name;

use std::time::Duration;

use axum::Extension;
use axum::body::{Body, BodyDataStream, HttpBody};
use axum::extract::{OriginalUri, State};
use blob::{BlobKey, Written};
use bytes::Bytes;
use canvas::placement::{Frame, fitted, free_spot};
use db::assets::NewAsset;
use db::canvases::{Change, GraphWrites, NewActivity};
use domain::account::Scope;
use domain::asset::{AssetKind, AssetRecord};
use domain::canvas::{ActivityType, Changes};
use domain::graph::{Node, NodeType};
use domain::id::{AccountUid, AssetHandle, AssetId, CanvasHandle, NodeId};
use domain::idempotency::Outcome;
use domain::limits::{TITLE_MAX, UPLOAD_MAX};
use futures_util::StreamExt;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use raster::{Format, Header, HeaderError, HeaderReader};
use serde_json::json;

use super::read::AssetRead;
use crate::extract::caller::{Caller, UploadAsset};
use crate::extract::canvas::require_writer;
use crate::extract::idempotency::{fingerprint, is_key, replay};
use crate::extract::json::{Unread, declared_length};
use crate::extract::query::QueryReader;
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::server::pace::Paced;
use crate::state::{App, retrying};
use crate::turnstile::admitted;

const PATH: &str = "/assets";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// What is wrong with a body of no bytes.
const EMPTY: &str = "must not be empty";
/// The time that any upload may take, however small; who drips holds one of few places.
const UPLOAD_TIME_LEAST: Duration = Duration::from_secs(20);
/// And the pace that a large one has to keep beyond that, on the whole.
const UPLOAD_BYTES_PER_SECOND_MIN: u64 = 256 * 1024;
/// And at any time, beyond the same allowance: a link may be slow for a while, but who only drips is not waited for until the end.
const UPLOAD_PACE_MIN: u32 = 64 * 1024;

/// Upload a picture
#[utoipa::path(
    post, path = "/assets", operation_id = "uploadAsset", tag = "Assets",
    security(("bearer" = ["asset:read", "image:generate"]), ("bearer" = ["asset:read", "video:generate"])),
    params(
        ("canvasId" = Option<String>, Query, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Stores the upload in this canvas, in a new node."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
        ("X-Service-File-Name" = Option<String>, Header, description = "Percent-encoded UTF-8, at most 255 characters."),
        ("Idempotency-Key" = Option<String>, Header, min_length = 8, max_length = 200, description = "Names this upload, so that sending it again stores nothing twice (an extension)."),
        ("X-Canvas-File-Name" = Option<String>, Header, deprecated, description = "The same, by its earlier name."),
    ),
    request_body(
        description = "At most 52428800 bytes of PNG, JPEG, WebP or GIF.",
        content((Binary = "application/octet-stream"), (Binary = "image/png"), (Binary = "image/jpeg"),
                (Binary = "image/webp"), (Binary = "image/gif")),
    ),
    responses((status = 201, body = AssetRead), (status = 200, body = AssetRead, description = "Replayed."))
)]
pub async fn upload(
    State(app): State<App>,
    caller: Caller<UploadAsset>,
    Extension(trace): Extension<Trace>,
    OriginalUri(uri): OriginalUri,
    body: Unread,
) -> Result {
    let (headers, body) = body.into_parts();
    if declared_length(&headers).is_some_and(|length| length > UPLOAD_MAX) {
        return Err(Problem::PayloadTooLarge(UPLOAD_MAX));
    }
    let declared = declared_format(&headers)?;
    let mut query = QueryReader::new(&uri);
    if body.size_hint().exact() == Some(0) {
        query.refuse("body", EMPTY);
    }
    let canvas = query.canvas();
    let name = file_name::of(&headers).map_err(|message| query.refuse("X-Service-File-Name", message)).ok().flatten();
    let key = headers.get(IDEMPOTENCY_KEY).map(|value| value.to_str().unwrap_or_default().to_owned());
    if key.as_deref().is_some_and(|key| !is_key(key)) {
        query.refuse("Idempotency-Key", "must have 8 to 200 characters");
    }
    query.finish()?;
    let canvas = match canvas {
        None => None,
        Some(canvas) => {
            let handle = canvas.resolve(&caller.account);
            caller.require(&[Scope::CanvasRead, Scope::CanvasWrite])?;
            let (_, role) = db::canvases::find(&mut *app.connection().await?, &caller.account, &handle)
                .await?
                .ok_or(Problem::NotFound("canvas"))?;
            require_writer(role)?;
            Some(handle)
        }
    };
    let owner = canvas.as_ref().map_or(&caller.account, |canvas| &canvas.owner);
    // Before the body is received, so that what is refused in the end does not lie in the store for a day. A replay is answered
    // however full the store is.
    if key.is_none() {
        let length = as_stored(declared_length(&headers).unwrap_or_default());
        let storage = db::storage::get(&mut *app.connection().await?, owner, app.config.storage_max).await?;
        if storage.is_some_and(|storage| !storage.admits(length)) {
            return Err(over_quota());
        }
    }
    let stored = store(&app, &caller, declared_length(&headers), body, declared).await?;
    let resource = canvas.as_ref().map_or_else(|| caller.account.to_string(), ToString::to_string);
    let key = key.map(|key| {
        // What stands for the body is its hash: equal bytes under an equal name are an equal upload.
        let body = json!({ "sha256": stored.written.sha256, "name": name });
        (key, fingerprint(PATH, &resource, &body))
    });
    let upload = Upload { app: &app, caller: &caller, canvas, name, stored, key, trace };
    let turn = app.writers.pass(&resource).await?;
    let (record, replayed) = retrying(|| upload.attempt()).await?;
    drop(turn);
    app.nudge.nudge();
    let location = format!("/assets/{}", record.handle);
    let preview = app.previews.make(&app.keys, &record.handle, service::clock::now());
    let asset = record.document(preview);
    Ok(match replayed {
        true => reply::ok(&AssetRead { asset, replayed: Some(true) }),
        false => reply::created(&location, &AssetRead { asset, replayed: None }),
    })
}

/// An upload that would take the account that is to own it over its quota. Like a canvas that is full it is input that is wrong
/// with respect to what is stored.
fn over_quota() -> Problem {
    Problem::unprocessable("body", "the storage quota of the account that is to own it leaves no room for it")
}

/// A size as the database counts it; uploads are far below what that can hold.
fn as_stored(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The format that the content type promises; `None` for `application/octet-stream`.
fn declared_format(headers: &HeaderMap) -> Result<Option<Format>> {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/octet-stream" => Ok(None),
        "image/png" => Ok(Some(Format::Png)),
        "image/jpeg" => Ok(Some(Format::Jpeg)),
        "image/webp" => Ok(Some(Format::Webp)),
        "image/gif" => Ok(Some(Format::Gif)),
        _ => Err(Problem::UnsupportedMediaType(
            "an upload is application/octet-stream, image/png, image/jpeg, image/webp or image/gif".into(),
        )),
    }
}

/// A picture in the object store that nothing refers to yet.
struct Stored {
    key: BlobKey,
    written: Written,
    header: Header,
}

/// Receives a body in one of the few places there are, at a pace and in a time that fits its size; 503 when no place is free in
/// time.
async fn store(
    app: &App,
    caller: &Caller<UploadAsset>,
    length: Option<u64>,
    body: Body,
    declared: Option<Format>,
) -> Result<Stored> {
    let _turn = app.uploaders.pass(caller.account.as_str()).await?;
    let _place = admitted(app.uploads.acquire(), "too many uploads at once").await?;
    let body = Body::new(Paced::at(UPLOAD_PACE_MIN, UPLOAD_TIME_LEAST, body));
    let seconds = length.unwrap_or(UPLOAD_MAX) / UPLOAD_BYTES_PER_SECOND_MIN;
    match tokio::time::timeout(UPLOAD_TIME_LEAST + Duration::from_secs(seconds), stream(app, body, declared)).await {
        Ok(stored) => stored,
        Err(_) => Err(Problem::invalid("body", "took too long to arrive")),
    }
}

async fn stream(app: &App, body: Body, declared: Option<Format>) -> Result<Stored> {
    let mut pieces = body.into_data_stream();
    let mut head = Head::new(declared);
    // Foreign bytes are refused before a row or an object is made for them.
    let mut held = Vec::new();
    while !head.is_recognized() {
        match next(&mut pieces).await? {
            Some(piece) => {
                head.push(&piece)?;
                held.push(piece);
            }
            None => break,
        }
    }
    if held.iter().all(Bytes::is_empty) {
        return Err(Problem::invalid("body", EMPTY));
    }
    if !head.is_recognized() {
        // It ended within its magic bytes: cut off (422) or foreign (415).
        return Err(head.finish().err().unwrap_or_else(foreign));
    }
    let key = BlobKey(db::blobs::stage_unknown(&mut *app.connection().await?).await?);
    let mut writer = app.blobs.writer(key);
    for piece in held {
        writer.write(&piece).await?;
    }
    while let Some(piece) = next(&mut pieces).await? {
        if writer.bytes() + piece.len() as u64 > UPLOAD_MAX {
            return Err(Problem::PayloadTooLarge(UPLOAD_MAX));
        }
        head.push(&piece)?;
        writer.write(&piece).await?;
    }
    let header = head.finish()?;
    let written = writer.finish().await?;
    Ok(Stored { key, written, header })
}

async fn next(pieces: &mut BodyDataStream) -> Result<Option<Bytes>> {
    pieces.next().await.transpose().map_err(|_| Problem::invalid("body", "ended before its time, or came too slowly"))
}

fn foreign() -> Problem {
    Problem::UnsupportedMediaType("the body is no PNG, JPEG, WebP or GIF".into())
}

/// Reads the picture's header out of the passing bytes.
struct Head {
    declared: Option<Format>,
    reader: HeaderReader,
    error: Option<HeaderError>,
}

impl Head {
    fn new(declared: Option<Format>) -> Self {
        Self { declared, reader: HeaderReader::new(), error: None }
    }

    fn is_recognized(&self) -> bool {
        self.reader.format().is_some()
    }

    /// Takes the next bytes. A type that is not the declared one is refused at once; what else is wrong with the header
    /// is told at the end, when the size of the body has been judged.
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.error.is_none() {
            match self.reader.push(bytes) {
                Ok(_) => {}
                Err(HeaderError::UnknownFormat) => return Err(foreign()),
                Err(error) => self.error = Some(error),
            }
        }
        match (self.declared, self.reader.format()) {
            (Some(declared), Some(found)) if declared != found => Err(Problem::UnsupportedMediaType(format!(
                "the body is {}, not {} as declared",
                found.media_type(),
                declared.media_type()
            ))),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Header> {
        let read = match self.error {
            Some(error) => Err(error),
            None => self.reader.finish(),
        };
        read.map_err(|error| match error {
            HeaderError::UnknownFormat => foreign(),
            error => Problem::unprocessable("body", error.to_string()),
        })
    }
}

/// An upload whose picture is stored.
struct Upload<'a> {
    app: &'a App,
    caller: &'a Caller<UploadAsset>,
    canvas: Option<CanvasHandle>,
    name: Option<String>,
    stored: Stored,
    key: Option<(String, [u8; 32])>,
    trace: Trace,
}

impl Upload<'_> {
    /// One transaction: key, canvas, storage, blob, asset, node, revision, rendition. The asset, and whether it is an earlier one.
    async fn attempt(&self) -> Result<(AssetRecord, bool)> {
        let mut transaction = self.app.transaction().await?;
        let conn = &mut *transaction;
        let account = &self.caller.account;
        if let Some((key, fingerprint)) = &self.key {
            let taken = db::idempotency::take(conn, account, key, fingerprint).await?;
            if let Some(outcome) = replay(taken)? {
                return Ok((replayed(conn, account, outcome).await?, true));
            }
        }
        let canvas = match &self.canvas {
            None => None,
            Some(handle) => {
                let (record, role) =
                    db::canvases::lock(conn, account, handle).await?.ok_or(Problem::NotFound("canvas"))?;
                require_writer(role)?;
                Some(record)
            }
        };
        let Stored { key, written, header } = &self.stored;
        let bytes = as_stored(written.bytes);
        let owner = canvas.as_ref().map_or(account, |canvas| &canvas.handle.owner);
        if !db::storage::hold(conn, owner, self.app.config.storage_max).await?.admits(bytes) {
            return Err(over_quota());
        }
        let blob_key = db::blobs::adopt(conn, key.0, &written.sha256, bytes)
            .await?
            .ok_or_else(|| Problem::internal("an upload was swept before it was stored"))?;
        let node = canvas.as_ref().map(|_| NodeId::generate());
        let asset = NewAsset {
            handle: AssetHandle { owner: owner.clone(), id: AssetId::generate() },
            canvas_key: canvas.as_ref().map(|canvas| canvas.key),
            node: node.clone(),
            kind: AssetKind::Image,
            name: self.name.clone().unwrap_or_else(|| format!("upload.{}", header.format.extension())),
            mime_type: header.format.media_type().into(),
            width: i32::try_from(header.width).map_err(Problem::internal)?,
            height: i32::try_from(header.height).map_err(Problem::internal)?,
            bytes,
            blob_key,
        };
        let record = db::assets::insert(conn, &asset).await?;
        if let (Some(canvas), Some(node)) = (&canvas, node) {
            self.place(conn, canvas, node, &record).await?;
        }
        let traceparent = self.trace.0.to_string();
        db::renditions::request_eager(conn, blob_key, (asset.width, asset.height), owner, Some(&traceparent)).await?;
        if let Some((key, _)) = &self.key {
            let outcome = Outcome::Asset { handle: record.handle.clone() };
            db::idempotency::store(conn, account, key, &outcome).await?;
        }
        db::pool::commit(transaction).await?;
        Ok((record, false))
    }

    /// A new image node at the first free spot to the right of the content (decisions 6.2).
    async fn place(
        &self,
        conn: &mut db::PgConnection,
        canvas: &domain::canvas::CanvasRecord,
        id: NodeId,
        asset: &AssetRecord,
    ) -> Result<()> {
        let (width, height) = fitted(f64::from(asset.width), f64::from(asset.height));
        let frames = db::canvases::frames(conn, canvas.key).await?;
        let frames = frames.into_iter().map(|frame| Frame::new(frame.position, frame.width, frame.height));
        let provenance = json!({
            "kind": "upload", "references": [], "elements": [], "createdAt": asset.created_at,
        });
        let node = Node {
            id,
            kind: NodeType::Image,
            title: asset.name.chars().take(TITLE_MAX).collect(),
            position: free_spot(frames, width, height),
            width,
            height,
            agent_owned: self.caller.surface.is_agent(),
            metadata: Default::default(),
            server: [("provenance".to_owned(), provenance)].into_iter().collect(),
            asset: Some(asset.handle.clone()),
            active_job: None,
        };
        let bytes_delta = canvas::size::serialized_size(&node);
        if canvas.node_count as usize >= domain::limits::CANVAS_NODES_MAX
            || canvas.graph_bytes + bytes_delta > domain::limits::CANVAS_BYTES_MAX
        {
            return Err(Problem::unprocessable("canvasId", "the canvas is full"));
        }
        db::canvases::write_graph(conn, canvas.key, &GraphWrites { nodes: vec![&node], ..GraphWrites::default() })
            .await?;
        let nodes = [node.id.clone()];
        let change = Change {
            revision: &service::random::revision(),
            title: None,
            nodes_delta: 1,
            connections_delta: 0,
            bytes_delta,
            changes: &Changes { changed_node_ids: nodes.to_vec(), ..Changes::default() },
            activity: Some(NewActivity {
                kind: ActivityType::AssetUploaded,
                actor: &self.caller.actor(),
                summary: "uploaded a picture".into(),
                nodes: &nodes,
            }),
        };
        db::canvases::commit_change(conn, canvas.key, &change).await?;
        Ok(())
    }
}

/// The asset of an earlier, equal upload; its bytes that came again are left to the sweeper.
async fn replayed(conn: &mut db::PgConnection, caller: &AccountUid, outcome: Outcome) -> Result<AssetRecord> {
    let Outcome::Asset { handle } = outcome else {
        return Err(Problem::internal("the outcome of an upload is of another kind"));
    };
    let found = db::assets::get_readable(conn, caller, &handle).await?;
    found.map(|(asset, _)| asset).ok_or(Problem::NotFound("asset"))
}
