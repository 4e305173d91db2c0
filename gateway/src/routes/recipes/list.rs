//! `GET /recipes` (docs/reference/recipes.md#list-recipes).

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::limits::PAGE_MAX;
use domain::page::CatalogEntry;
use domain::recipe::{RecipeList, RecipePage, RecipeRecord, RecipeSummaries, Visibility, VisibilityFilter};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::{ListView, QueryReader};
use crate::models::steps::of_recipe;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Which Recipes are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RecipeFilter {
    /// Words that must all occur in name, texts, tags, category or outputs. Case-insensitive.
    #[serde(default)]
    #[param(max_length = 500)]
    q: String,
    /// `approved`: the catalog. `private`: the account's own workflows. `all`: both. Default: `approved`.
    visibility: Option<VisibilityFilter>,
}

/// Search Recipes
///
/// Returns one page of Recipes, each in its newest version, most recently changed first. Use `q` to search the
/// catalog and `visibility=private` for the account's own workflows. It runs nothing.
#[utoipa::path(
    get, path = "/recipes", operation_id = "listRecipes", tag = "Recipes",
    security(("bearer" = ["canvas:read"])),
    params(RecipeFilter, ListView, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of Recipes.", body = RecipePage))
)]
pub async fn list(State(app): State<App>, caller: Caller<ReadCanvas>, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let RecipeFilter { q, visibility } = query.read().unwrap_or_default();
    let named = visibility.unwrap_or(VisibilityFilter::Approved);
    let visibility = match named {
        VisibilityFilter::Approved => Some(Visibility::Approved),
        VisibilityFilter::Private => Some(Visibility::Private),
        VisibilityFilter::All => None,
    };
    let ListView { view } = query.read().unwrap_or_default();
    let words: Vec<String> = q.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let scope = ListScope::new("recipes", &caller.account, &[named.as_str(), &q]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut connection = app.connection().await?;
    let mut found = db::recipes::list(&mut connection, &caller.account, visibility, &words, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |recipe| After {
        updated_at: recipe.updated_at,
        handle: recipe.id.handle(),
    });
    if view.is_some() {
        return Ok(reply::ok(&RecipePage::Summary(RecipeSummaries {
            recipes: found.iter().map(entry).collect(),
            page,
        })));
    }
    let models = app.runnable(&mut connection, &caller.account).await?;
    let document = |recipe: &RecipeRecord| recipe.document(&of_recipe(&models, &recipe.definition));
    Ok(reply::ok(&RecipePage::Full(RecipeList { recipes: found.iter().map(document).collect(), page })))
}

/// A Recipe in short. One without a summary and a description is described by its outputs.
fn entry(recipe: &RecipeRecord) -> CatalogEntry {
    let definition = &recipe.definition;
    let line = definition.summary.clone().or_else(|| definition.description.clone());
    let outputs = || definition.outputs.iter().map(|output| &*output.label).collect::<Vec<_>>().join(", ");
    CatalogEntry::new(recipe.id.handle(), &definition.name, &line.unwrap_or_else(outputs))
}
