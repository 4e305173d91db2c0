//! `POST /images/variations`.

use axum::Extension;
use axum::extract::State;
use domain::job::{ImageJob, JobOperation, StartQuote};
use http::HeaderMap;

use super::body::ImageStart;
use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::json::JsonBody;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::problem::Result;
use crate::state::App;

/// Create variations of images
///
/// Queues variations of reference images, one for each target node. Use it to get alternatives; it needs at
/// least one reference or `source`, and a prompt is optional. The scope element:read is needed as well when
/// `elements` is not empty. The source images are never changed. Credit works as in image generation.
#[utoipa::path(
    post, path = "/images/variations", operation_id = "varyImages", tag = "Images", request_body = ImageStart,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    params(("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since.")),
    responses(
        WriteErrors,
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The job is queued, or is a replay of an earlier start.", body = ImageJob),
        (status = 402),
    )
)]
pub async fn variations(
    State(app): State<App>,
    caller: Caller<GenerateImages>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    super::start(&app, &caller, JobOperation::Variations, &headers, body, trace).await
}
