//! `GET /runs/{runId}`.

use axum::extract::{OriginalUri, State};
use domain::recipe::run::RunDocument;
use http::{HeaderMap, Method};

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Result, combine_violations};
use crate::runs::{Detail, RunView, Target, read_record};
use crate::state::App;

/// Read a run, or wait for it to change
///
/// Returns an image, Action or Recipe run. Use it to wait for a result: poll about every 1.5 seconds, or send
/// `Prefer: wait=N` to get the answer as soon as the run changes. With `If-None-Match` the wait starts from a
/// known state, so no change is missed. Reading never advances or charges work; the first read of a terminal run
/// starts its retention window.
#[utoipa::path(
    get, path = "/runs/{runId}", operation_id = "getRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(
        ("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle."),
        RunView,
        ("Prefer" = Option<String>, Header, description = "`wait=N`: wait up to N seconds, 1 to 30, for a change."),
        ("If-None-Match" = Option<String>, Header, description = "A known `ETag`. The answer is 304 when it still matches; a wait starts from that state."),
    ),
    responses(
        ReadErrors,
        (status = 200, description = "The run is over.", body = RunDocument),
        (status = 202, description = "The run is not over yet.", body = RunDocument),
        (status = 304, description = "The run still has the entity tag in `If-None-Match`."),
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
    let (run, detail) = combine_violations(params.parameter("runId"), Detail::from_uri(&uri))?;
    read_record(&app, &caller, Target::of_run(run)?, detail, &method, &headers).await
}
