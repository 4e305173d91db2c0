//! `GET /jobs/{jobId}/output`: downloads a finished video (docs/reference/videos.md#download).

use axum::extract::State;
use blob::BlobKey;
use domain::asset::AssetMediaType;
use domain::id::{AccountUid, JobId};
use domain::job::{JobKind, JobStatus};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use http::{HeaderMap, Method};
use uuid::Uuid;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::openapi::Binary;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::runs::{View, load};
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

/// The video of a job, in the object store.
pub struct JobVideo {
    pub blob_key: Uuid,
    pub sha256: Vec<u8>,
    /// Size in bytes.
    pub bytes: u64,
}

/// The video of a job of an account.
///
/// # Errors
///
/// 409 before the end of the job, 404 if it has no video.
pub async fn video_of(app: &App, account: &AccountUid, id: JobId) -> Result<JobVideo> {
    let record = load(app, account, View::Job, id).await?;
    if record.kind == JobKind::Video && !record.status.is_terminal() {
        return Err(Problem::Conflict("the video is not finished".into(), None));
    }
    let video = record.outcome.video.filter(|_| record.status == JobStatus::Succeeded);
    let video = video.ok_or(Problem::NotFound("video"))?;
    let mut connection = app.connection().await?;
    if let Some(asset) = &video.asset {
        // The file belongs to the asset, and goes with it.
        db::assets::get(&mut connection, asset).await?.ok_or(Problem::NotFound("video"))?;
    }
    let sha256 = db::blobs::sha256(&mut connection, video.blob_key).await?.ok_or(Problem::NotFound("video"))?;
    Ok(JobVideo { blob_key: video.blob_key, sha256, bytes: video.bytes })
}
