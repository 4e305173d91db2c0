//! `GET /canvases/{canvasId}/render`: a canvas or a part of it as an image (docs/reference/canvases.md#render).
//!
//! The gateway draws the SVG from the graph and the available renditions; an image-worker rasterizes it to PNG. A render in which
//! a rendition is missing has no `ETag`, since the same revision will look different later.

mod accept;
mod document;
mod png;
mod view;

use axum::Extension;
use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::{IntoResponse, Response};
use domain::account::Scopes;
use domain::id::CanvasReference;
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::extract::caller::{Grant, ReadCanvas};
use crate::extract::canvas::CanvasAccess;
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::rates::PNG_RENDER_WEIGHT;
use crate::reply::none_match;
use crate::state::App;
use accept::Form;
use view::{RenderQuery, View};

/// Requires canvas:read.
pub struct Render;

impl Grant for Render {
    const ALL: Scopes = ReadCanvas::ALL;
    fn weight(parts: &Parts) -> u32 {
        if Form::accepted(&parts.headers) == Some(Form::Png) { PNG_RENDER_WEIGHT } else { 1 }
    }
}

/// Render a canvas as SVG or PNG
///
/// Draws the canvas as it is stored. Use it to see the layout or to show it to a person. `Accept: image/svg+xml`
/// returns a self-contained SVG document, `Accept: image/png` a PNG of it. User text is escaped, and the
/// document never loads anything from elsewhere. An image whose thumbnail is not ready is drawn as a placeholder.
/// `section` or `nodes` draw a part of the canvas with the connections inside of it; `labels` numbers the nodes, and
/// `X-Canvas-Labels` names them. `theme=dark` draws it in dark colors.
#[utoipa::path(
    get, path = "/canvases/{canvasId}/render", operation_id = "renderCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = CanvasReference, Path, description = "Plain id or handle."),
        OwnerQuery,
        RenderQuery,
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        ReadErrors, (status = 422),
        (status = 200, description = "SVG 1.1, self-contained, at most 8 MiB; or a PNG whose longest side is at most 2048 pixels.",
         content((String = "image/svg+xml"), (Binary = "image/png"))),
        (status = 304, description = "The render still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn render(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    on: CanvasAccess<Render>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let mut view = View::from_query(&mut query);
    combine_violations(on.named(), query.finish())?;
    let (handle, record, _) = on.readable()?;
    let form = Form::accepted(&headers).ok_or_else(|| Problem::NotAcceptable("image/svg+xml and image/png".into()))?;
    view.resolve_refs(&app, record.key).await?;
    // A document has no width of its own.
    view.width = view.width.filter(|_| form == Form::Png);
    let drawn = document::current(&app, &on.caller.account, handle, record, &view, trace).await?;
    let etag = drawn.complete.then(|| format!("W/\"{}-{}{}\"", drawn.revision, form.suffix(), view.tag()));
    if etag.as_ref().is_some_and(|etag| none_match(&headers, etag)) {
        return with_cache_headers(StatusCode::NOT_MODIFIED.into_response(), etag.as_deref());
    }
    let mut response = match form {
        Form::Svg => drawn.document.into_response(),
        Form::Png => {
            let object = png::render(&app, &on.caller, &drawn.document, trace).await?;
            let mut response = Body::from_stream(object.stream).into_response();
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(object.size));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // When a browser opens the document itself, it may show its embedded images and do nothing else.
    let policy = HeaderValue::from_static("default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    if view.labels {
        let labels = HeaderValue::from_maybe_shared(drawn.labels).map_err(Problem::internal)?;
        headers.insert(HeaderName::from_static("x-canvas-labels"), labels);
    }
    with_cache_headers(response, etag.as_deref())
}

/// Sets the caching headers.
fn with_cache_headers(mut response: Response, etag: Option<&str>) -> Result {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Authorization, Accept, Accept-Encoding"));
    if let Some(etag) = etag {
        headers.insert(ETAG, HeaderValue::from_str(etag).map_err(Problem::internal)?);
    }
    Ok(response)
}
