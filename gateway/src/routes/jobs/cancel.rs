//! `DELETE /jobs/{jobId}`.

use axum::Extension;
use axum::extract::State;
use domain::job::JobDocument;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::{JobInPath, PathText};
use crate::observe::Trace;
use crate::problem::Result;
use crate::routes::runs::{Target, cancel_record};
use crate::state::App;

/// Cancel a job
#[utoipa::path(
    delete, path = "/jobs/{jobId}", operation_id = "cancelJob", tag = "Jobs",
    security(("bearer" = ["job:manage"])),
    params(("jobId" = String, Path, pattern = "^(?:job:)?[0-9a-fA-F-]{36}$", description = "Id or `job:` handle.")),
    responses(
        (status = 200, body = JobDocument, description = "It is over."),
        (status = 202, body = JobDocument, description = "It will stop at its next step."),
    )
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    Extension(trace): Extension<Trace>,
) -> Result {
    let JobInPath(id) = params.parameter("jobId")?;
    cancel_record(&app, &caller, Target::of_job(id)?, trace).await
}
