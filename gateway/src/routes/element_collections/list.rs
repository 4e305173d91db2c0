//! `GET /element-collections`.

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::element::{CollectionList, Listed};
use domain::limits::{PAGE_DEFAULT, PAGE_MAX};

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::page::{ListScope, page, page_request};
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
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items in a page. Default: 50."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the previous page."),
    ),
    responses(ScopeErrors, (status = 200, description = "One page of collections.", body = CollectionList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadElements>, OriginalUri(uri): OriginalUri) -> Result {
    let scope = ListScope::new("element collections", &caller.account, &[]);
    let mut query = QueryReader::new(&uri);
    let request = page_request::<After>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
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
