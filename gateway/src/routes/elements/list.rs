//! `GET /elements` (docs/reference/elements.md#list-elements).

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::element::{ElementList, Lifecycle, Listed};
use domain::limits::PAGE_MAX;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadElements};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::source_health::Sources;
use crate::state::App;

/// Which Elements are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ElementFilter {
    /// Lifecycle of the Elements. Default: `active`.
    state: Option<Lifecycle>,
    /// Text that occurs in name or guidelines. Case-insensitive.
    #[serde(default)]
    #[param(max_length = 160)]
    search: String,
}

/// List Elements
///
/// Returns one page of Elements, each in its current version. Use `search` to find one by name or guidelines and
/// `state=archived` for archived ones. It never lists earlier versions.
#[utoipa::path(
    get, path = "/elements", operation_id = "listElements", tag = "Elements",
    security(("bearer" = ["element:read"])),
    params(ElementFilter, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of Elements.", body = ElementList))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadElements>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let ElementFilter { state, search } = query.read().unwrap_or_default();
    let state = state.unwrap_or(Lifecycle::Active);
    let scope = ListScope::new("elements", &caller.account, &[state.as_str(), &search]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
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
    let sources = Sources::check(&app, &caller.account, found.iter().map(|element| &element.content)).await?;
    let elements = found.into_iter().map(|element| {
        let health = sources.health(&element.content);
        element.document(health, Listed::Yes)
    });
    Ok(reply::ok(&ElementList { elements: elements.collect(), page }))
}
