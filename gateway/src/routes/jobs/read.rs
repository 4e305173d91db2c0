//! `GET /jobs/{jobId}`.

use axum::extract::{OriginalUri, State};
use domain::job::JobDocument;
use http::{HeaderMap, Method};

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::runs::{Detail, RunView, Target, read_record};
use crate::state::App;

/// Read a job, or wait for it to change
///
/// Returns an image, Action or video job. Use it for videos, and for other jobs where only the job id is known:
/// for image and Action jobs it is the same record as the run. `Prefer: wait=N` and `If-None-Match` work as for
/// runs. It never returns Recipe runs, which have no job.
#[utoipa::path(
    get, path = "/jobs/{jobId}", operation_id = "getJob", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        RunView,
        ("Prefer" = Option<String>, Header, description = "`wait=N`: wait up to N seconds, 1 to 30, for a change."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches; a wait starts from that state."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The job is over.", body = JobDocument),
        (status = 202, description = "The job is not over yet.", body = JobDocument),
        (status = 304, description = "The job still has the entity tag in `If-None-Match`."),
    )
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
    method: Method,
    headers: HeaderMap,
) -> Result {
    let (JobInPath(id), detail) = combine_violations(params.parameter("jobId"), Detail::from_uri(&uri))?;
    read_record(&app, &caller, Target::of_job(id)?, detail, &method, &headers).await
}
