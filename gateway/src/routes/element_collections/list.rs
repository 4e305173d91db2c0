//! `GET /element-collections`.

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::element::{CollectionList, Listed};
use domain::limits::PAGE_MAX;

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// List Element collections
///
/// Returns one page of the account's collections. Use it to find a collection's id. It never returns members: each
/// Element lists its collections.
#[utoipa::path(
    get, path = "/element-collections", operation_id = "listElementCollections", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "One page of collections.", body = CollectionList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadElements>, OriginalUri(uri): OriginalUri) -> Result {
    let scope = ListScope::new("element collections", &caller.account, &[]);
    let mut query = QueryReader::new(&uri);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let mut connection = app.connection().await?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = db::element_collections::list(&mut connection, &caller.account, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |collection| After {
        updated_at: collection.updated_at,
        handle: collection.id.handle(),
    });
    let collections = found.into_iter().map(|collection| collection.document(Listed::Yes)).collect();
    Ok(reply::ok(&CollectionList { collections, page }))
}
