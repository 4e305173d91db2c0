//! `DELETE /runs/{runId}`.

use axum::Extension;
use axum::extract::State;
use domain::recipe::run::RunDocument;
use http::Uri;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::runs::{CancelQuery, Target, cancel_record, removes_targets};
use crate::state::App;

/// Cancel a run
///
/// Asks an image, Action or Recipe run to stop. Use it for work whose result is no longer wanted. Work that has
/// not been taken is canceled at once; other work stops at its next step. A provider may still charge work that it
/// has accepted. Stored outputs are never removed, and a terminal run is returned unchanged. With `removeTargets=true`,
/// which also needs the scope `canvas:write`, the empty nodes that its start made for it are deleted.
#[utoipa::path(
    delete, path = "/runs/{runId}", operation_id = "cancelRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(
        ("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle."),
        CancelQuery,
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The run is over.", body = RunDocument),
        (status = 202, description = "The run stops at its next step.", body = RunDocument),
    )
)]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller<ManageJobs>,
    params: PathText,
    uri: Uri,
    Extension(trace): Extension<Trace>,
) -> Result {
    let (run, removes_targets) = combine_violations(params.parameter("runId"), removes_targets(&uri))?;
    cancel_record(&app, &caller, || Target::of_run(run), removes_targets, trace).await
}
