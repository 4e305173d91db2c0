//! `GET /jobs/{jobId}`.

use axum::extract::State;
use domain::job::JobDocument;
use http::HeaderMap;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::problem::Result;
use crate::routes::runs::{Target, read_record};
use crate::state::App;

/// Read a job, or wait for it to change
#[utoipa::path(
    get, path = "/jobs/{jobId}", operation_id = "getJob", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: answer when the job changes, after 1 to 30 seconds at the latest (an extension)."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known: waits are measured from it."),
    ),
    responses(
        (status = 200, body = JobDocument, description = "It is over."),
        (status = 202, body = JobDocument, description = "It is under way."),
        (status = 304, description = "Unchanged."),
    )
)]
pub async fn read(State(app): State<App>, caller: Caller<ManageJobs>, params: PathText, headers: HeaderMap) -> Result {
    let JobInPath(id) = params.parameter("jobId")?;
    read_record(&app, &caller, Target::of_job(id)?, &headers).await
}
