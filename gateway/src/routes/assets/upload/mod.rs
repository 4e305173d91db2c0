//! `POST /assets`: an image or a video, streamed into the object store as it arrives (docs/reference/assets.md#upload).
//!
//! Only the header of an image, and the boxes of a video, are parsed here, while the bytes pass. Memory is bounded by one part of a
//! multipart upload, and the index of a video, whatever the size of the file and the number of concurrent uploads.

mod convert;
pub mod file_name;
mod film;
pub mod receive;

use app::Key;
use app::storage;
use app::upload::{UploadLink, Uploaded};
use axum::Extension;
use axum::body::{Body, HttpBody};
use axum::extract::{OriginalUri, State};
use db::blobs::PutFile;
use db::links::SecretHash;
use domain::account::Scope;
use domain::asset::{AssetRead, UploadMetadata};
use domain::id::{CanvasHandle, CanvasRef, CanvasReference};
use domain::link::Slot;
use domain::message::ReadyTasks;
use http::HeaderName;
use serde::Deserialize;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use self::convert::convert;
use self::receive::{Declared, EMPTY, Received, declared_type, store};
use crate::extract::caller::{Caller, UploadAsset};
use crate::extract::canvas::require_writer;
use crate::extract::header::single;
use crate::extract::idempotency::{fingerprint_without_defaults, is_key};
use crate::extract::json::{JsonBody, declared_length};
use crate::extract::names;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::openapi::errors::WriteErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

const PATH: &str = "/assets";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The node of an upload.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UploadNode {
    /// No node shows it.
    None,
}

/// Where an upload goes, and what of it.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct UploadQuery {
    /// Canvas that stores the upload and shows it in a new node.
    #[param(value_type = Option<CanvasReference>)]
    canvas_id: Option<CanvasRef>,
    /// `none` stores the upload in the canvas without a node that shows it, as for a mask.
    #[param(value_type = Option<UploadNode>, inline)]
    node: Option<UploadNode>,
    /// What happens to private metadata: `auto` removes it and keeps the original for the owner, `keep` leaves it in the file that
    /// everybody gets, `strip` removes it for good. Into a canvas of another account, `auto` means `strip`. Default: the operator's
    /// setting, usually `auto`.
    metadata: Option<UploadMetadata>,
}

/// Upload an image or a video
///
/// Stores the body as a private asset. Private metadata, such as the place of a photograph, is removed from the file that
/// everybody gets; the owner alone can download the original. An AVIF is converted to JPEG or PNG, and its owner keeps the original;
/// so is HEIC where the operator has set a decoder for it, otherwise it is 415 with a remedy in `details`. Any other file is stored unchanged. Use it to bring in an image from a
/// file. With `canvasId` the asset belongs to that canvas and, without `node=none`, a new image or video node shows it; this also
/// needs the scopes canvas:read and canvas:write. Name the file with the header `X-Service-File-Name`, never in the query. Send `Idempotency-Key` to make a retry safe.
/// Only the image's header is read: a damaged image is stored, and fails the work that reads it. A video is an MP4 file with H.264 or
/// AV1, and AAC, Opus or no sound, declared as `video/mp4`.
#[utoipa::path(
    post, path = "/assets", operation_id = "uploadAsset", tag = "Assets",
    security(("bearer" = ["asset:read", "image:generate"]), ("bearer" = ["asset:read", "video:generate"])),
    params(
        UploadQuery,
        OwnerQuery,
        ("X-Service-File-Name" = Option<String>, Header, description = "Name of the file: percent-encoded UTF-8, at most 255 characters. Default: `upload.<ext>`."),
        ("Idempotency-Key" = Option<String>, Header, min_length = 8, max_length = 200, description = "Key of this upload: a retry with the same key stores nothing again."),
        ("X-Canvas-File-Name" = Option<String>, Header, deprecated, description = "Former name of `X-Service-File-Name`."),
    ),
    request_body(
        description = "At most 52428800 bytes of PNG, JPEG, WebP, GIF or AVIF, or of HEIC where the operator has set a decoder for it, or 524288000 bytes of MP4, declared as video/mp4.",
        content((Binary = "application/octet-stream"), (Binary = "image/png"), (Binary = "image/jpeg"),
                (Binary = "image/webp"), (Binary = "image/gif"), (Binary = "image/avif"), (Binary = "image/heic"),
                (Binary = "image/heif")),
    ),
    responses(WriteErrors, (status = 201, description = "The stored asset.", body = AssetRead), (status = 200, description = "A replay: an earlier upload with this key stored the asset.", body = AssetRead))
)]
pub async fn upload(
    State(app): State<App>,
    caller: Caller<UploadAsset>,
    Extension(trace): Extension<Trace>,
    OriginalUri(uri): OriginalUri,
    body: JsonBody,
) -> Result {
    let (headers, body) = body.into_parts();
    let declared = declared_type(&app, &headers)?;
    let bytes_max = declared.bytes_max();
    if declared_length(&headers).is_some_and(|length| length > bytes_max) {
        return Err(Problem::PayloadTooLarge(bytes_max));
    }
    let mut query = QueryReader::new(&uri);
    if body.size_hint().exact() == Some(0) {
        query.refuse("body", EMPTY);
    }
    let UploadQuery { canvas_id, node, metadata } = query.read().unwrap_or_default();
    let OwnerQuery { owner_uid } = query.read().unwrap_or_default();
    let canvas = query.canvas(canvas_id, owner_uid);
    let name = query.take(file_name::from_headers(&headers)).flatten();
    let key = query.take(single(&headers, &IDEMPOTENCY_KEY).map_err(|repeated| vec![repeated])).flatten();
    let key = key.map(|value| value.to_str().unwrap_or_default().to_owned());
    if key.as_deref().is_some_and(|key| !is_key(key)) {
        query.refuse("Idempotency-Key", "must have 8 to 200 characters");
    }
    query.finish()?;
    let canvas = match canvas {
        None => None,
        Some(canvas) => {
            caller.require(&[Scope::CanvasRead, Scope::CanvasWrite])?;
            let conn = &mut *app.connection().await?;
            let handle = names::resolve(conn, canvas, &caller.account).await?;
            let (_, role) =
                db::canvases::find(conn, &caller.account, &handle).await?.ok_or(Problem::NotFound("canvas"))?;
            require_writer(role)?;
            Some(handle)
        }
    };
    let place = Place { canvas, is_shown: node.is_none() };
    let length = declared_length(&headers);
    let upload = Upload { place, name, metadata, key, link: None, declared, length, body };
    let Uploaded { asset: record, replayed, .. } = upload.perform(&app, &caller, trace).await?;
    let location = format!("/assets/{}", record.handle);
    let urls = app.previews.urls(&app.keys, &record, service::clock::now());
    let asset = record.document(&caller.account, urls);
    Ok(match replayed {
        true => reply::ok(&AssetRead::new(asset, Some(true))),
        false => reply::created(&location, &AssetRead::new(asset, None)),
    })
}

/// Where an upload goes.
pub struct Place {
    /// Canvas that stores it. The caller may write to it.
    pub canvas: Option<CanvasHandle>,
    /// `true` if a new node of the canvas shows it.
    pub is_shown: bool,
}

/// An upload through a link: what it declared, and the lease of the link, which the request holds.
#[derive(Clone, Copy)]
pub struct FromLink<'a> {
    pub hash: &'a SecretHash,
    pub lease: Uuid,
    pub slot: &'a Slot,
}

impl FromLink<'_> {
    /// Rejects a file that differs from the declared one.
    fn check(&self, received: &PutFile) -> Result<()> {
        let Slot { bytes, sha256, .. } = self.slot;
        if let Some(bytes) = bytes.filter(|bytes| as_stored(*bytes) != received.bytes) {
            return Err(Problem::unprocessable("bytes", format!("is {}, not {bytes} as declared", received.bytes)));
        }
        let received = hex(&received.sha256);
        match sha256 {
            Some(declared) if *declared != received => {
                Err(Problem::unprocessable("sha256", format!("is {received}, not {declared} as declared")))
            }
            _ => Ok(()),
        }
    }
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An upload whose request is checked.
pub struct Upload<'a> {
    pub place: Place,
    /// Name of the file; without one it gets a default.
    pub name: Option<String>,
    pub metadata: Option<UploadMetadata>,
    pub key: Option<String>,
    pub link: Option<FromLink<'a>>,
    pub declared: Declared,
    /// Declared length of the body.
    pub length: Option<u64>,
    pub body: Body,
}

impl Upload<'_> {
    /// Receives the body, stores it and makes the asset.
    pub async fn perform(self, app: &App, caller: &Caller<UploadAsset>, trace: Trace) -> Result<Uploaded> {
        let Self { place: Place { canvas, is_shown }, name, metadata, key, link, declared, length, body } = self;
        let owner = canvas.as_ref().map_or(&caller.account, |canvas| &canvas.owner);
        // Checked before the body is received, so that a rejected upload does not stay in the store for a day. A replay is answered
        // even when the quota is exhausted.
        if key.is_none() {
            caller.require_acceptable()?;
            let place = storage::Place { owner, caller: &caller.account, field: Some("body") };
            let counted = storage::of_files([as_stored(length.unwrap_or_default())]);
            place.require(&mut *app.connection().await?, counted).await?;
        }
        let rule = match metadata.unwrap_or(app.upload_metadata) {
            UploadMetadata::Auto if *owner != caller.account => UploadMetadata::Strip,
            rule => rule,
        };
        let (stored, name) = match store(app, caller, length, body, (declared, rule)).await? {
            Received::Kept(stored) => (*stored, name),
            Received::Converted(upload, kind) => {
                if let Some(link) = &link {
                    link.check(&upload)?;
                }
                let stored = convert(app, caller, (upload, kind), rule, trace).await?;
                let name = name.map(|name| converted_name(&name, stored.extension));
                (stored, name)
            }
        };
        if let Some(link) = &link {
            link.check(&stored.upload)?;
        }
        taskqueue::failpoint!("upload.received");
        let sha256 = stored.upload.sha256;
        let default_name = format!("upload.{}", stored.extension);
        let resource = canvas.as_ref().map_or_else(|| caller.account.to_string(), ToString::to_string);
        let key = key.map(|key| {
            // The fingerprint contains the hash of the body: equal bytes under an equal name are an equal upload.
            let mut body = json!({ "sha256": sha256, "name": name });
            if let Some(metadata) = metadata.filter(|metadata| *metadata != app.upload_metadata) {
                body["metadata"] = json!(metadata);
            }
            if canvas.is_some() && !is_shown {
                body["node"] = json!("none");
            }
            let fingerprint = fingerprint_without_defaults(PATH, &resource, body, |body| {
                if body["name"] == default_name {
                    body["name"] = json!(null);
                }
            });
            (key, fingerprint)
        });
        let upload = app::upload::UploadAsset {
            caller,
            canvas: canvas.as_ref(),
            is_shown,
            name: name.unwrap_or(default_name),
            file: stored.file,
            key: key.as_ref().map(|(text, fingerprint)| Key { text, fingerprint }),
            link: link.map(|FromLink { hash, lease, slot }| UploadLink {
                hash,
                lease,
                sha256,
                cell: slot.cell.as_ref(),
            }),
            traceparent: trace.0.to_string(),
            ready: ReadyTasks::new(),
        };
        let permit = app.writers.pass(&caller.account, &resource).await?;
        let uploaded = caller.run(app, &upload).await?;
        taskqueue::failpoint!("upload.committed");
        drop(permit);
        app.waker.wake_all(&upload.ready);
        Ok(uploaded)
    }
}

/// Extensions of the files that are converted.
const CONVERTED: [&str; 3] = ["avif", "heic", "heif"];

/// The name of a converted file: with the extension of what it became, if it had that of what it was.
fn converted_name(name: &str, new: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension))
            if CONVERTED.iter().any(|it| extension.eq_ignore_ascii_case(it)) && !stem.is_empty() =>
        {
            format!("{stem}.{new}")
        }
        _ => name.to_owned(),
    }
}

/// A size as the database stores it; uploads are far below the maximum.
fn as_stored(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
