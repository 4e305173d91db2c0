//! `GET /assets/preview`: the stored bytes of one picture, or a rendition of it, to whoever holds the token (decisions 6.4).

use axum::Extension;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use blob::BlobKey;
use domain::asset::AssetRecord;
use domain::limits::RENDITION_WIDTHS;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::extract::query::QueryReader;
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::problem::{Problem, Result};
use crate::rendition::Rendition;
use crate::state::App;
use crate::stored;

/// The widths that can be asked for, for the document.
pub struct RenditionWidth;

impl PartialSchema for RenditionWidth {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(RENDITION_WIDTHS)).into()
    }
}

impl ToSchema for RenditionWidth {}

/// Serve a picture to the holder of its preview URL
#[utoipa::path(
    get, path = "/assets/preview", operation_id = "getAssetPreview", tag = "Assets",
    params(
        ("token" = String, Query, description = "Out of a `previewUrl`; never to be built."),
        ("w" = Option<RenditionWidth>, Query, description = "A rendition no wider than 64, 128, 256, 512, 1024 or 2048 pixels (an extension)."),
        ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known."),
    ),
    responses(
        (status = 200, content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 206, description = "The range.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 304, description = "Unchanged."),
    )
)]
pub async fn preview(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let token = query.first("token");
    let width = query.text("w", 8).and_then(|text| {
        let width = RENDITION_WIDTHS.into_iter().find(|width| width.to_string() == text);
        if width.is_none() {
            query.refuse("w", "must be one of 64, 128, 256, 512, 1024, 2048");
        }
        width
    });
    if token.is_none() {
        query.refuse("token", "is required");
    }
    query.finish()?;
    let opened =
        app.previews.open(&app.keys, token.unwrap_or_default(), service::clock::now()).ok_or(Problem::Unauthorized)?;
    let asset =
        db::assets::get(&mut *app.connection().await?, &opened.asset).await?.ok_or(Problem::NotFound("asset"))?;
    let picture = match width {
        None => Picture { key: asset.blob_key, media_type: asset.mime_type },
        Some(width) => rendition(&app, &asset, width, trace).await?,
    };
    serve(&app, &picture, opened.remaining, &headers).await
}

/// What is served.
struct Picture {
    key: Uuid,
    media_type: String,
}

/// The rendition, made on first demand by an image-worker.
async fn rendition(app: &App, asset: &AssetRecord, width: u32, trace: Trace) -> Result<Picture> {
    match crate::rendition::rendition(app, asset.blob_key, width, &asset.handle.owner, trace).await? {
        Rendition::Ready { key, media_type } => Ok(Picture { key, media_type }),
        Rendition::Undecodable => Err(Problem::unprocessable("w", "the picture cannot be read")),
        Rendition::GivenUp => Err(Problem::unprocessable("w", "no rendition of the picture could be made")),
    }
}

async fn serve(app: &App, picture: &Picture, remaining: u64, headers: &HeaderMap) -> Result {
    let response = stored::serve(app, BlobKey(picture.key), &picture.media_type, headers).await?;
    dressed(response, remaining)
}

/// What a browser needs to know of foreign bytes: that they are nothing else, and how long they may be kept.
fn dressed(mut response: Response, remaining: u64) -> Result {
    let headers = response.headers_mut();
    stored::set(headers, CACHE_CONTROL, &format!("private, max-age={remaining}"))?;
    stored::set(headers, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox")?;
    stored::set(headers, HeaderName::from_static("cross-origin-resource-policy"), "cross-origin")?;
    Ok(response)
}
