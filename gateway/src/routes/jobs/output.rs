//! `GET /jobs/{jobId}/output`: downloads a finished video (docs/reference/videos.md#download).

use axum::extract::State;
use blob::BlobKey;
use domain::asset::AssetMediaType;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use http::{HeaderMap, Method};

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::openapi::Binary;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::runs::video_of;
use crate::state::App;
use crate::stored::{self, Selection, Served};

/// Download a finished video
///
/// Streams the MP4 file of a video job that has succeeded. Supports one byte range, so that players can seek and
/// downloads can resume. It never waits: a job that is not over is a conflict.
#[utoipa::path(
    get, path = "/jobs/{jobId}/output", operation_id = "getJobOutput", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        ("Range" = Option<String>, Header, description = "One byte range."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The video.", content_type = "video/mp4", body = Binary),
        (status = 206, description = "The requested range.", content_type = "video/mp4", body = Binary),
        (status = 304, description = "The video still has the entity tag in `If-None-Match`."),
        (status = 409, description = "The job is not over yet."),
        (status = 416, description = "The range is outside the video."),
    )
)]
pub async fn output(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let selection = Selection::from_headers(&method, &headers).map_err(Problem::Invalid);
    let (JobInPath(id), selection) = combine_violations(params.parameter("jobId"), selection)?;
    let id = id.ok_or(Problem::NotFound("job"))?;
    let video = video_of(&app, &caller.account, id).await?;
    let served = Served {
        key: BlobKey(video.blob_key),
        sha256: &video.sha256,
        owner: &caller.account,
        media_type: AssetMediaType::Mp4.as_str(),
    };
    let mut response = stored::serve(&app, served, &selection).await?;
    let headers = response.headers_mut();
    stored::set(headers, CACHE_CONTROL, "private, no-store")?;
    stored::set(headers, CONTENT_DISPOSITION, &format!("attachment; filename=\"{}.mp4\"", id.0))?;
    Ok(response)
}
