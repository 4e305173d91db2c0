//! `GET /assets/preview`: the stored bytes of one picture, or a rendition of it, for the holder of a preview token
//! (docs/reference/assets.md#preview-responses).

use axum::Extension;
use axum::extract::{OriginalUri, State};
use axum::response::Response;
use blob::BlobKey;
use domain::asset::AssetRecord;
use domain::limits::RENDITION_WIDTHS;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName};
use http::{HeaderMap, Method};
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
use crate::stored::{self, Selection};

/// The allowed widths, for the contract document.
pub struct RenditionWidth;

impl PartialSchema for RenditionWidth {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some(RENDITION_WIDTHS)).into()
    }
}

impl ToSchema for RenditionWidth {}

/// Download a picture by its preview URL
///
/// Streams the bytes of one picture to whoever holds its preview URL. It takes no bearer token. Use the
/// `previewUrl` of a response as it is; never build one and never store one. `w` may be added to ask for a
/// smaller rendition.
#[utoipa::path(
    get, path = "/assets/preview", operation_id = "getAssetPreview", tag = "Assets",
    params(
        ("token" = String, Query, description = "The token of a `previewUrl`. Never build one."),
        ("w" = Option<RenditionWidth>, Query, description = "Largest width of the rendition in pixels (an extension)."),
        ("Range" = Option<String>, Header, description = "One byte range."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        (status = 200, description = "The picture.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 206, description = "The requested range.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 304, description = "The picture still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn preview(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let token = query.verbatim("token");
    let width = query.text("w", 8).and_then(|text| {
        let width = RENDITION_WIDTHS.into_iter().find(|width| width.to_string() == text);
        if width.is_none() {
            query.refuse("w", "must be one of 64, 128, 256, 512, 1024, 2048");
        }
        width
    });
    if !query.has("token") {
        query.refuse("token", "is required");
    }
    let selection = query.take(Selection::of(&method, &headers));
    query.finish()?;
    let (Some(token), Some(selection)) = (token, selection) else { return Err(Problem::Unauthorized) };
    let opened = app.previews.open(&app.keys, token, service::clock::now()).ok_or(Problem::Unauthorized)?;
    let asset =
        db::assets::get(&mut *app.connection().await?, &opened.asset).await?.ok_or(Problem::NotFound("asset"))?;
    let picture = match width {
        None => Picture { key: asset.blob_key, media_type: asset.mime_type },
        Some(width) => rendition(&app, &asset, width, trace).await?,
    };
    serve(&app, &picture, opened.remaining, &selection).await
}

/// The picture that is served.
struct Picture {
    key: Uuid,
    media_type: String,
}

/// The rendition; an image-worker makes it on first demand.
async fn rendition(app: &App, asset: &AssetRecord, width: u32, trace: Trace) -> Result<Picture> {
    match crate::rendition::rendition(app, asset.blob_key, width, &asset.handle.owner, trace).await? {
        Rendition::Ready { key, media_type } => Ok(Picture { key, media_type }),
        Rendition::Undecodable => Err(Problem::unprocessable("w", "the picture cannot be read")),
        Rendition::GivenUp => Err(Problem::unprocessable("w", "no rendition of the picture could be made")),
    }
}

async fn serve(app: &App, picture: &Picture, remaining: u64, selection: &Selection<'_>) -> Result {
    let response = stored::serve(app, BlobKey(picture.key), &picture.media_type, selection).await?;
    dressed(response, remaining)
}

/// Sets the headers that make foreign bytes safe in a browser, and how long they may be cached.
fn dressed(mut response: Response, remaining: u64) -> Result {
    let headers = response.headers_mut();
    stored::set(headers, CACHE_CONTROL, &format!("private, max-age={remaining}"))?;
    stored::set(headers, CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox")?;
    stored::set(headers, HeaderName::from_static("cross-origin-resource-policy"), "cross-origin")?;
    Ok(response)
}
