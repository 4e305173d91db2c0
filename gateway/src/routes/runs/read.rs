//! `GET /runs/{runId}`.

use axum::extract::State;
use http::HeaderMap;

use super::{RunDocument, Target};
use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::path::PathText;
use crate::problem::Result;
use crate::state::App;

/// Read a run, or wait for it to change
#[utoipa::path(
    get, path = "/runs/{runId}", operation_id = "getRun", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(
        ("runId" = String, Path, pattern = "^(?:run:)?[A-Za-z0-9_-]{1,180}$", description = "Id or `run:` handle."),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: answer when the run changes, after 1 to 30 seconds at the latest (an extension)."),
        ("If-None-Match" = Option<String>, Header, description = "An `ETag` that is known: waits are measured from it."),
    ),
    responses(
        (status = 200, body = RunDocument, description = "It is over."),
        (status = 202, body = RunDocument, description = "It is under way."),
        (status = 304, description = "Unchanged."),
    )
)]
pub async fn read(State(app): State<App>, caller: Caller<ManageJobs>, params: PathText, headers: HeaderMap) -> Result {
    super::read_record(&app, &caller, Target::of_run(params.parameter("runId")?)?, &headers).await
}
