//! `GET /actions` (docs/reference/actions.md#list-actions).

use actions::DefinedAction;
use axum::extract::{OriginalUri, State};
use domain::action::{ActionList, ActionPage, ActionSummaries};
use domain::limits::{ACTION_QUERY_MAX, PAGE_DEFAULT, PAGE_MAX};
use domain::page::CatalogEntry;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::page::{ListScope, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// List Image Actions
///
/// Returns the eight deterministic image transformations with their inputs and parameters. Use it to build a form
/// or to choose an Action; `view=summary` is enough to choose. It runs nothing.
#[utoipa::path(
    get, path = "/actions", operation_id = "listActions", tag = "Image Actions",
    security(("bearer" = ["canvas:read"])),
    params(
        ("q" = Option<String>, Query, max_length = 240, description = "Text that occurs in slug, title or summary. Case-insensitive."),
        ("view" = Option<String>, Query, pattern = "^summary$", description = "`summary`: each item as `key`, `name` and a `summary` of one line."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items in a page. Default: 50."),
        ("cursor" = Option<String>, Query, max_length = 8192, description = "`nextCursor` of the previous page."),
    ),
    responses(ScopeErrors, (status = 200, description = "One page of Actions.", body = ActionPage))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let text = query.text("q", ACTION_QUERY_MAX).unwrap_or_default().to_lowercase();
    let in_short = query.wants_summary();
    let scope = ListScope::new("actions", &caller.account, &[&text]);
    // The position of an Action is the index of its slug in the fixed order.
    let request = page_request::<String>(&app, &mut query, &scope, PAGE_DEFAULT, PAGE_MAX);
    query.finish()?;
    let matches = |action: &&DefinedAction| {
        [&action.slug, &action.title, &action.summary].iter().any(|field| field.to_lowercase().contains(&text))
    };
    let start = request
        .after
        .and_then(|slug| actions::all().iter().position(|action| action.slug == slug))
        .map_or(0, |last| last + 1);
    let mut actions: Vec<&'static DefinedAction> = actions::all()[start..].iter().filter(matches).collect();
    let page = page(&app, &scope, request.limit, &mut actions, |action| &action.slug);
    let entry = |action: &&DefinedAction| CatalogEntry::new(action.id.clone(), &action.title, &action.summary);
    Ok(reply::ok(&match in_short {
        true => ActionPage::Summary(ActionSummaries { actions: actions.iter().map(entry).collect(), page }),
        false => {
            ActionPage::Full(ActionList { actions: actions.iter().map(|action| action.document()).collect(), page })
        }
    }))
}
