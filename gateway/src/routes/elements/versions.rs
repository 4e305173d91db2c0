//! `GET /elements/{elementId}/versions`.

use axum::extract::{OriginalUri, State};
use domain::element::{Listed, VersionList};
use domain::id::ElementId;
use domain::limits::PAGE_MAX;

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::source_health::Sources;
use crate::state::App;

/// List the versions of an Element
///
/// Returns one page of immutable versions, newest first. Use a `versionHandle` to pin a version in an image
/// request. It never lists other Elements.
#[utoipa::path(
    get, path = "/elements/{elementId}/versions", operation_id = "listElementVersions", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(
        ("elementId" = String, Path, pattern = "^(element:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        Paged,
    ),
    responses(ReadErrors, (status = 200, description = "One page of versions.", body = VersionList))
)]
pub async fn versions(
    State(app): State<App>,
    caller: Caller<ReadElements>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let id = params.parameter::<ElementId>("elementId");
    let mut query = QueryReader::new(&uri);
    let filter = id.as_ref().map(ElementId::as_str).unwrap_or_default();
    let scope = ListScope::new("element versions", &caller.account, &[filter]);
    let request = page_request::<i32, PAGE_MAX>(&app, &mut query, &scope);
    let (id, ()) = combine_violations(id, query.finish())?;
    let mut found = {
        let mut connection = app.connection().await?;
        let limit = i64::from(request.limit) + 1;
        db::elements::versions(&mut connection, &caller.account, &id, request.after, limit).await?
    };
    if found.is_empty() && request.after.is_none() {
        return Err(Problem::NotFound("element"));
    }
    let page = page(&app, &scope, request.limit, &mut found, |version| version.version);
    let sources = Sources::check(&app, &caller.account, found.iter().map(|version| &version.content)).await?;
    let versions = found.into_iter().map(|version| {
        let health = sources.health(&version.content);
        version.document(health, Listed::Yes)
    });
    Ok(reply::ok(&VersionList { versions: versions.collect(), page }))
}
