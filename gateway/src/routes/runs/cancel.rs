//! `DELETE /runs/{runId}`.

use axum::Extension;
use axum::extract::State;

use super::{RunDocument, Target};
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::problem::Result;
use crate::state::App;

/// Cancel a run
#[utoipa::path(
    delete, path = "/runs/{runId}", operation_id = "cancelRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle.")),
    responses(
        (status = 200, body = RunDocument, description = "It is over."),
        (status = 202, body = RunDocument, description = "It will stop at its next step."),
    )
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    Extension(trace): Extension<Trace>,
) -> Result {
    super::cancel_record(&app, &caller, Target::of_run(params.parameter("runId")?)?, trace).await
}
