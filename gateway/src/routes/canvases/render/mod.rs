//! `GET /canvases/{canvasId}/render`: a canvas as a picture (decisions 3.10, 1.9).
//!
//! The SVG is drawn here from the graph and the renditions that are there; a PNG of it is an image-worker's work
//! (decisions 6.4). A render in which a rendition is missing carries no `ETag`: the same revision will look different.

mod accept;
mod document;
mod png;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::extract::caller::ReadCanvas;
use crate::extract::canvas::OnCanvas;
use crate::observe::Trace;
use crate::openapi::Binary;
use crate::problem::{Problem, Result};
use crate::reply::none_match;
use crate::state::App;
use accept::Form;

/// Render a canvas as SVG or PNG
#[utoipa::path(
    get, path = "/canvases/{canvasId}/render", operation_id = "renderCanvas", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known."),
    ),
    responses(
        (status = 200, description = "SVG 1.1, self-contained, at most 8 MiB; or a PNG of it, the longest side at most 2048 pixels.",
         content((String = "image/svg+xml"), (Binary = "image/png"))),
        (status = 304, description = "Unchanged."),
    )
)]
pub async fn render(
    State(app): State<App>,
    Extension(trace): Extension<Trace>,
    on: OnCanvas<ReadCanvas>,
    headers: HeaderMap,
) -> Result {
    let (handle, record, _) = on.readable()?;
    let form = Form::accepted(&headers).ok_or(Problem::NotAcceptable("image/svg+xml and image/png"))?;
    let drawn = document::current(&app, &on.caller.account, handle, record, trace).await?;
    let etag = drawn.complete.then(|| format!("W/\"{}-{}\"", drawn.revision, form.suffix()));
    if etag.as_ref().is_some_and(|etag| none_match(&headers, etag)) {
        return dressed(StatusCode::NOT_MODIFIED.into_response(), etag.as_deref());
    }
    let mut response = match form {
        Form::Svg => drawn.document.into_response(),
        Form::Png => {
            let object = png::of(&app, &on.caller.account, &drawn.document, trace).await?;
            let mut response = Body::from_stream(object.stream).into_response();
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(object.size));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Opened by itself in a browser, the document may show its own pictures and do nothing.
    let policy = HeaderValue::from_static("default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox");
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    dressed(response, etag.as_deref())
}

/// What caches need to know.
fn dressed(mut response: Response, etag: Option<&str>) -> Result {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("Authorization, Accept, Accept-Encoding"));
    if let Some(etag) = etag {
        headers.insert(ETAG, HeaderValue::from_str(etag).map_err(Problem::internal)?);
    }
    Ok(response)
}
