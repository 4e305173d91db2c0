//! `GET /actions` (docs/reference/actions.md#list-actions).

use actions::DefinedAction;
use axum::extract::{OriginalUri, State};
use domain::action::{ActionList, ActionPage, ActionSummaries, Medium};
use domain::limits::PAGE_MAX;
use domain::page::CatalogEntry;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::{ListView, QueryReader};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Which Actions are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ActionFilter {
    /// Text that occurs in slug, title or summary. Case-insensitive.
    #[serde(default)]
    #[param(max_length = 240)]
    q: String,
    /// What the Actions read. Default: `image`.
    #[param(value_type = Option<Medium>)]
    medium: Option<Medium>,
}

/// List Image Actions
///
/// Returns the deterministic image transformations with their inputs and parameters; with `medium=video` those that
/// read a video. Use it to build a form or to choose an Action; `view=summary` is enough to choose. It runs nothing.
#[utoipa::path(
    get, path = "/actions", operation_id = "listActions", tag = "Image Actions",
    security(("bearer" = ["canvas:read"])),
    params(ActionFilter, ListView, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of Actions.", body = ActionPage))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let ActionFilter { q, medium } = query.read().unwrap_or_default();
    let (text, medium) = (q.to_lowercase(), medium.unwrap_or(Medium::Image));
    let ListView { view } = query.read().unwrap_or_default();
    let scope = ListScope::new("actions", &caller.account, &[&text, medium.as_str()]);
    // The position of an Action is the index of its slug in the fixed order.
    let request = page_request::<String, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let matches = |action: &&DefinedAction| {
        action.medium == medium
            && [&action.slug, &action.title, &action.summary].iter().any(|field| field.to_lowercase().contains(&text))
    };
    let start = request
        .after
        .and_then(|slug| actions::all().iter().position(|action| action.slug == slug))
        .map_or(0, |last| last + 1);
    let mut actions: Vec<&'static DefinedAction> = actions::all()[start..].iter().filter(matches).collect();
    let page = page(&app, &scope, request.limit, &mut actions, |action| &action.slug);
    let entry = |action: &&DefinedAction| CatalogEntry::new(action.id.clone(), &action.title, &action.summary);
    Ok(reply::ok(&match view.is_some() {
        true => ActionPage::Summary(ActionSummaries { actions: actions.iter().map(entry).collect(), page }),
        false => {
            ActionPage::Full(ActionList { actions: actions.iter().map(|action| action.document()).collect(), page })
        }
    }))
}
