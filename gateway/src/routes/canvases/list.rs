//! `GET /canvases`.

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::canvas::CanvasList;
use domain::limits::CANVAS_PAGE_MAX;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::page::{ListScope, PagedCanvases, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// List canvases, owned and shared
///
/// Returns one page of canvas summaries, newest update first. Use it to find a canvas; read one canvas to get its
/// graph. Summaries never contain nodes or connections.
#[utoipa::path(
    get, path = "/canvases", operation_id = "listCanvases", tag = "Canvases",
    security(("bearer" = ["canvas:read"])),
    params(PagedCanvases),
    responses(ScopeErrors, (status = 200, description = "One page of canvases.", body = CanvasList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let scope = ListScope::new("canvases", &caller.account, &[]);
    let mut query = QueryReader::new(&uri);
    let request = page_request::<After, CANVAS_PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let mut connection = app.connection().await?;
    let limit = i64::from(request.limit) + 1;
    let mut found = db::canvases::list(&mut connection, &caller.account, request.after.as_ref(), limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |(record, _)| After {
        updated_at: record.updated_at,
        handle: record.handle.to_string(),
    });
    let canvases = found.into_iter().map(|(record, role)| record.summary(Some(role))).collect();
    Ok(reply::ok(&CanvasList { canvases, page }))
}
