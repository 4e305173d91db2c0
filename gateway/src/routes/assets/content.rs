//! `GET /assets/{assetId}/content`: the stored bytes of an asset, or a rendition of it, under the caller's rights
//! (docs/reference/assets.md#content).

use axum::Extension;
use axum::extract::{OriginalUri, State};
use http::header::VARY;
use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use utoipa::IntoParams;

use super::image::{self, RenditionWidth};
use super::read::named;
use crate::extract::caller::{Caller, ReadAsset};
use crate::extract::path::PathText;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::state::App;
use crate::stored::Selection;

/// How long a browser may reuse the bytes. They never change, but a caller can lose access to them.
const MAX_AGE_SECONDS: u64 = 3600;

/// Which bytes are sent.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ContentQuery {
    /// Largest width of the rendition in pixels, of a video: of its poster. Without it: the stored bytes.
    w: Option<RenditionWidth>,
    /// Whether to send the file as it was uploaded, with its private metadata. 404 for anybody but the owner, and where there is
    /// none. Not together with `w`.
    #[serde(default)]
    original: bool,
}

/// Download the image or video of an asset
///
/// Streams the stored bytes of one asset to a caller that may read it: its owner, and the members of the canvas that
/// it is stored in. Use it with a bearer token instead of a URL, which expires. `w` asks for a smaller rendition, of
/// the image or of the poster of the video, and `original` for the file as it was uploaded, which only the owner gets.
/// Supports one byte range, so that players can seek.
#[utoipa::path(
    get, path = "/assets/{assetId}/content", operation_id = "getAssetContent", tag = "Assets",
    security(("bearer" = ["asset:read"])),
    params(
        ("assetId" = String, Path, pattern = "^(asset:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        OwnerQuery,
        ContentQuery,
        ("Range" = Option<String>, Header, description = "One byte range."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        ReadErrors, (status = 416), (status = 422),
        (status = 200, description = "The image or video.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"), (Binary = "image/avif"), (Binary = "image/heic"), (Binary = "video/mp4"))),
        (status = 206, description = "The requested range.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"), (Binary = "image/avif"), (Binary = "image/heic"), (Binary = "video/mp4"))),
        (status = 304, description = "The file still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn content(
    State(app): State<App>,
    caller: Caller<ReadAsset>,
    Extension(trace): Extension<Trace>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let ContentQuery { w, original: wants_original } = query.read().unwrap_or_default();
    let width = w.map(u32::from);
    if wants_original && width.is_some() {
        query.refuse("original", "cannot be combined with w");
    }
    let selection = Selection::from_headers(&method, &headers).map_err(Problem::Invalid);
    let (handle, selection) = combine_violations(named(&params, query, &caller.account), selection)?;
    let mut connection = app.connection().await?;
    let asset = if wants_original {
        db::assets::original(&mut connection, &handle, &caller.account).await?.ok_or(Problem::NotFound("original"))?
    } else {
        let asset = db::assets::content(&mut connection, &handle, Some(&caller.account)).await?;
        asset.ok_or(Problem::NotFound("asset"))?
    };
    drop(connection);
    let asset = match width {
        Some(_) => asset.into_image().ok_or_else(|| Problem::unprocessable("w", "the video has no poster"))?,
        None => asset,
    };
    let mut response = image::serve(&app, &asset, width, MAX_AGE_SECONDS, &selection, trace, &caller.place).await?;
    // A browser that is used with another token asks again.
    response.headers_mut().append(VARY, HeaderValue::from_static("Authorization"));
    Ok(response)
}
