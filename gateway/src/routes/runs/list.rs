//! `GET /runs` (docs/reference/jobs.md#list-runs).

use axum::extract::{OriginalUri, State};
use db::runs::{ACTIONS_APART, After, Filter};
use domain::id::{CanvasRef, CanvasReference};
use domain::job::{JobStatus, RunKind, RunList};
use domain::limits::PAGE_MAX;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ManageJobs};
use crate::extract::names;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::{OwnerQuery, QueryReader};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// Which runs are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct RunFilter {
    /// Only work of this kind.
    kind: Option<RunKind>,
    /// Only work in this status.
    status: Option<JobStatus>,
    /// Plain id or handle of a canvas: only work that writes to it.
    #[param(value_type = Option<CanvasReference>)]
    canvas_id: Option<CanvasRef>,
}

/// List runs and jobs
///
/// Returns one page of summaries of the work that the account started and that still has a record, newest first:
/// image, Action and video jobs, and Recipe runs. Use it to find work again after its id was lost. A job of a Recipe
/// run is not listed by itself. Listing a terminal record does not start its retention window.
#[utoipa::path(
    get, path = "/runs", operation_id = "listRuns", tag = "Runs",
    security(("bearer" = ["job:manage"])),
    params(RunFilter, OwnerQuery, Paged),
    responses(ReadErrors, (status = 200, description = "One page of runs.", body = RunList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ManageJobs>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let RunFilter { kind, status, canvas_id } = query.read().unwrap_or_default();
    let OwnerQuery { owner_uid } = query.read().unwrap_or_default();
    let canvas = query.canvas(canvas_id, owner_uid);
    let mut connection = app.connection().await?;
    let canvas = names::resolve_some(&mut connection, canvas, &caller.account).await?;
    let named = canvas.as_ref().map(ToString::to_string).unwrap_or_default();
    let filters = [kind.map_or("", RunKind::as_str), status.map_or("", JobStatus::as_str), &named];
    let scope = ListScope::new("runs", &caller.account, &filters);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
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
    for (_, run) in found.iter_mut().filter(|(_, run)| run.kind == RunKind::Action) {
        let titles = run.title.split(ACTIONS_APART).map(|slug| actions::find(slug).map_or(slug, |it| &it.title));
        run.title = titles.collect::<Vec<_>>().join(ACTIONS_APART);
    }
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
