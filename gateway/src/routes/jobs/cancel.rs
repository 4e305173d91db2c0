//! `DELETE /jobs/{jobId}`.

use axum::Extension;
use axum::extract::State;
use domain::job::JobDocument;
use http::Uri;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::observe::Trace;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::runs::{CancelQuery, Target, cancel_record, removes_targets};
use crate::state::App;

/// Cancel a job
///
/// Asks an image, Action or video job to stop. Use it for work whose result is no longer wanted. A job that no
/// worker has taken is canceled at once. Work that a provider has accepted may still finish and be charged. Stored
/// outputs are never removed, and a terminal job is returned unchanged. With `removeTargets=true`, which also needs the
/// scope `canvas:write`, the empty nodes that its start made for it are deleted.
#[utoipa::path(
    delete, path = "/jobs/{jobId}", operation_id = "cancelJob", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(
        ("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle."),
        CancelQuery,
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The job is over.", body = JobDocument),
        (status = 202, description = "The job stops at its next step.", body = JobDocument),
    )
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    uri: Uri,
    Extension(trace): Extension<Trace>,
) -> Result {
    let (JobInPath(id), removes_targets) = combine_violations(params.parameter("jobId"), removes_targets(&uri))?;
    cancel_record(&app, &caller, || Target::of_job(id), removes_targets, trace).await
}
