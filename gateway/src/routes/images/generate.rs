//! `POST /images/generate`.

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

/// Generate images
///
/// Queues one generated image for each target node. Use it to make images from a prompt; it needs `prompt` or
/// `promptNodeId`, and references and Elements guide the result. The scope element:read is needed as well when
/// `elements` is not empty. Credit is reserved on acceptance, charged for each stored output and returned for the
/// others. The service never retries a start in a way that could charge twice, and a replay starts nothing.
#[utoipa::path(
    post, path = "/images/generate", operation_id = "generateImages", tag = "Images", request_body = ImageStart,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    params(("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since.")),
    responses(
        WriteErrors,
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The job is queued, or is a replay of an earlier start.", body = ImageJob),
        (status = 402),
    )
)]
pub async fn generate(
    State(app): State<App>,
    caller: Caller<GenerateImages>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    super::start(&app, &caller, JobOperation::Generate, &headers, body, trace).await
}
