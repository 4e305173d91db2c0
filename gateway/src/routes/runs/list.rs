//! `GET /runs` (docs/reference/jobs.md#list-runs).

use axum::extract::{OriginalUri, State};
use db::runs::{After, Filter};
use domain::job::{JobStatus, RunKind, RunList};
use domain::limits::{PAGE_DEFAULT, PAGE_MAX};

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::page::{ListScope, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// List runs and jobs
///
/// Returns one page of summaries of the work that the account started and that still has a record, newest first:
/// image, Action and video jobs, and Recipe runs. Use it to find work again after its id was lost. A job of a Recipe
/// run is not listed by itself. Listing a terminal record does not start its retention window.
#[utoipa::path(
    get, path = "/runs", operation_id = "listRuns", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(
        ("kind" = Option<RunKind>, Query, description = "Only work of this kind."),
        ("status" = Option<JobStatus>, Query, description = "Only work in this status."),
        ("canvasId" = Option<String>, Query, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle of a canvas: only work that writes to it."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner of the resource, when its plain id is given."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items in a page. Default: 50."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the previous page."),
    ),
    responses(ReadErrors, (status = 200, description = "One page of runs.", body = RunList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ManageJobs>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let kind = query.named("kind", RunKind::ALL);
    let status = query.named("status", JobStatus::ALL);
    let canvas = query.canvas().map(|canvas| canvas.resolve(&caller.account));
    let named = canvas.as_ref().map(ToString::to_string).unwrap_or_default();
    let filters = [kind.map_or("", RunKind::as_str), status.map_or("", JobStatus::as_str), &named];
    let scope = ListScope::new("runs", &caller.account, &filters);
    let request = page_request::<After>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
    query.finish()?;
    let mut connection = app.connection().await?;
    let canvas_key = match &canvas {
        None => None,
        Some(handle) => {
            let found = db::canvases::find(&mut connection, &caller.account, handle).await?;
            Some(found.ok_or(Problem::NotFound("canvas"))?.0.key)
        }
    };
    let filter = Filter { kind, status, canvas_key };
    let (limit, tombstone) = (i64::from(request.limit) + 1, app.config.retention_tombstone);
    let after = request.after.as_ref();
    let mut found = db::runs::list(&mut connection, &caller.account, filter, after, limit, tombstone).await?;
    let page = page(&app, &scope, request.limit, &mut found, |(position, _)| *position);
    let active: Vec<_> =
        found.iter().filter(|(_, run)| !run.status.is_terminal()).map(|(position, _)| position.id).collect();
    if !active.is_empty() {
        let queues = app.queues(&mut connection).await?;
        let mut waits = db::workers::waiting_for(&mut connection, &queues, &active).await?;
        for (position, run) in &mut found {
            run.waiting_for = waits.remove(&position.id);
        }
    }
    Ok(reply::ok(&RunList { runs: found.into_iter().map(|(_, run)| run).collect(), page }))
}
