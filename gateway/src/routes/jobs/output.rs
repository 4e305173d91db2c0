//! `GET /jobs/{jobId}/output`: a finished video (decisions 9.9).

use axum::extract::State;
use blob::BlobKey;
use domain::job::{JobKind, JobStatus};
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::openapi::Binary;
use crate::problem::{ErrorEnvelope, Problem, Result};
use crate::routes::runs::{View, load};
use crate::state::App;
use crate::stored;

/// What it is served as.
const MEDIA_TYPE: &str = "video/mp4";

/// Download a finished video
#[utoipa::path(
    get, path = "/jobs/{jobId}/output", operation_id = "getJobOutput", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        ("Range" = Option<String>, Header, description = "One range of bytes."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known."),
    ),
    responses(
        (status = 200, content_type = "video/mp4", body = Binary),
        (status = 206, content_type = "video/mp4", body = Binary, description = "The range."),
        (status = 304, description = "Unchanged."),
        (status = 409, body = ErrorEnvelope, description = "It is not finished."),
        (status = 416, body = ErrorEnvelope, description = "No such range."),
    )
)]
pub async fn output(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    headers: HeaderMap,
) -> Result {
    let JobInPath(id) = params.parameter("jobId")?;
    let id = id.ok_or(Problem::NotFound("job"))?;
    let record = load(&app, &caller.account, View::Job, id).await?;
    if record.kind == JobKind::Video && !record.status.is_terminal() {
        return Err(Problem::Conflict("the video is not finished".into(), None));
    }
    let video = record.outcome.video.filter(|_| record.status == JobStatus::Succeeded);
    let video = video.ok_or(Problem::NotFound("video"))?;
    let mut response = stored::serve(&app, BlobKey(video.blob_key), MEDIA_TYPE, &headers).await?;
    let headers = response.headers_mut();
    stored::set(headers, CACHE_CONTROL, "private, no-store")?;
    stored::set(headers, CONTENT_DISPOSITION, &format!("attachment; filename=\"{}.mp4\"", id.0))?;
    Ok(response)
}
