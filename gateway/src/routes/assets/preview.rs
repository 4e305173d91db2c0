//! `GET /assets/preview` and `GET /assets/video`: the stored bytes of one image, or a rendition of it, and those of one video, for
//! the holder of a token (docs/reference/assets.md#preview-responses).

use axum::Extension;
use axum::extract::{OriginalUri, State};
use db::assets::Content;
use http::{HeaderMap, Method};
use serde::Deserialize;
use service::shares::Key;
use utoipa::IntoParams;

use super::image::{self, RenditionWidth};
use crate::address::ClientAddress;
use crate::admission::{InProgress, admitted};
use crate::extract::query::QueryReader;
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::openapi::errors::CredentialErrors;
use crate::preview::Opens;
use crate::problem::{Problem, Result};
use crate::state::App;
use crate::stored::Selection;

/// How long a browser may reuse the bytes, also after the holder has lost the right to them.
const AGE_MAX_SECONDS: u64 = 300;

/// The part of a preview URL that clients may add.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// Largest width of the rendition in pixels.
    w: Option<RenditionWidth>,
}

/// Download an image by its preview URL
///
/// Streams the bytes of one image, or of the poster of one video, to whoever holds its preview URL. It takes no bearer
/// token. Use the `previewUrl` of a response as it is; never build one and never store one. `w` may be added to ask
/// for a smaller rendition.
#[utoipa::path(
    get, path = "/assets/preview", operation_id = "getAssetPreview", tag = "Assets",
    security(()),
    params(
        ("token" = String, Query, description = "The token of a `previewUrl`. Never build one."),
        PreviewQuery,
        ("Range" = Option<String>, Header, description = "One byte range."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        CredentialErrors, (status = 404), (status = 416), (status = 422),
        (status = 200, description = "The image.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 206, description = "The requested range.", content((Binary = "image/png"), (Binary = "image/jpeg"), (Binary = "image/webp"), (Binary = "image/gif"))),
        (status = 304, description = "The image still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn preview(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    Extension(address): Extension<ClientAddress>,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    // Whatever its form: one that the service did not make is 401.
    let token = query.verbatim("token");
    let asked = query.read::<PreviewQuery>();
    let selection = query.take(Selection::from_headers(&method, &headers));
    query.finish()?;
    let (Some(token), Some(PreviewQuery { w }), Some(selection)) = (token, asked, selection) else {
        return Err(Problem::Unauthorized);
    };
    let width = w.map(u32::from);
    let (asset, max_age, place) = open(&app, Opens::Image, token, address).await?;
    let asset = asset.into_image().ok_or(Problem::NotFound("preview"))?;
    image::serve(&app, &asset, width, max_age, &selection, trace, &place).await
}

/// Play a video by its URL
///
/// Streams the MP4 file of one video to whoever holds its `videoUrl`, for players that send no bearer token. Supports
/// one byte range, so that players can seek. Use the `videoUrl` of a response as it is; never build one and never
/// store one.
#[utoipa::path(
    get, path = "/assets/video", operation_id = "getAssetVideo", tag = "Assets",
    security(()),
    params(
        ("token" = String, Query, description = "The token of a `videoUrl`. Never build one."),
        ("Range" = Option<String>, Header, description = "One byte range."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        CredentialErrors, (status = 404), (status = 416),
        (status = 200, description = "The video.", content_type = "video/mp4", body = Binary),
        (status = 206, description = "The requested range.", content_type = "video/mp4", body = Binary),
        (status = 304, description = "The video still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn video(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    Extension(address): Extension<ClientAddress>,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let token = query.verbatim("token");
    let selection = query.take(Selection::from_headers(&method, &headers));
    query.finish()?;
    let (Some(token), Some(selection)) = (token, selection) else { return Err(Problem::Unauthorized) };
    let (asset, max_age, place) = open(&app, Opens::Video, token, address).await?;
    image::serve(&app, &asset, None, max_age, &selection, trace, &place).await
}

/// What a token opens, for how many seconds it may be cached, and a place among the requests in progress: that of the address, because
/// whoever holds a URL is nobody to its owner.
async fn open(app: &App, opens: Opens, token: &str, address: ClientAddress) -> Result<(Content, u64, InProgress)> {
    let opened = app.previews.open(opens, &app.keys, token, service::clock::now()).ok_or(Problem::Unauthorized)?;
    let place = InProgress::new(admitted(&app.requests, &Key::Address(address.into()), 1).await?);
    let asset = db::assets::content(&mut *app.connection().await?, &opened.asset, None).await?;
    let asset = asset.filter(|asset| asset.preview_epoch == opened.epoch).ok_or(Problem::NotFound("asset"))?;
    Ok((asset, opened.remaining.min(AGE_MAX_SECONDS), place))
}
