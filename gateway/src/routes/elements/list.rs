//! `GET /elements` (docs/reference/elements.md#list-elements).

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::element::{ElementList, Lifecycle, Listed};
use domain::limits::{ELEMENT_QUERY_MAX, PAGE_DEFAULT, PAGE_MAX};

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::page::{ListScope, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::source_health::Sources;
use crate::state::App;

/// List Elements
///
/// Returns one page of Elements, each in its current version. Use `search` to find one by name or guidelines and
/// `state=archived` for archived ones. It never lists earlier versions.
#[utoipa::path(
    get, path = "/elements", operation_id = "listElements", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(
        ("state" = Option<Lifecycle>, Query, description = "Lifecycle of the Elements. Default: `active`."),
        ("search" = Option<String>, Query, max_length = 160, description = "Text that occurs in name or guidelines. Case-insensitive."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items in a page. Default: 50."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the previous page."),
    ),
    responses(ScopeErrors, (status = 200, description = "One page of Elements.", body = ElementList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadElements>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let state = query.text("state", 1024).and_then(|name| {
        let state = name.parse::<Lifecycle>();
        state.map_err(|_| query.refuse("state", "must be `active` or `archived`")).ok()
    });
    let state = state.unwrap_or(Lifecycle::Active);
    let search = query.text("search", ELEMENT_QUERY_MAX).unwrap_or_default();
    let scope = ListScope::new("elements", &caller.account, &[state.as_str(), &search]);
    let request = page_request::<After>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = {
        let mut connection = app.connection().await?;
        db::elements::list(&mut connection, &caller.account, state, &search, after, limit).await?
    };
    let page = page(&app, &scope, request.limit, &mut found, |element| After {
        updated_at: element.updated_at,
        handle: element.id.handle(),
    });
    let sources = Sources::of(&app, &caller.account, found.iter().map(|element| &element.content)).await?;
    let elements = found.into_iter().map(|element| {
        let health = sources.health(&element.content);
        element.document(health, Listed::Yes)
    });
    Ok(reply::ok(&ElementList { elements: elements.collect(), page }))
}
