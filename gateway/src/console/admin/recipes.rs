//! `/console/admin/recipes`: the Recipes of the catalog.

use axum::extract::{OriginalUri, State};
use db::canvases::After;
use domain::Timestamp;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use domain::recipe::file::RecipeFile;
use domain::recipe::{RecipeRecord, Visibility};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::administrator::Administrator;
use crate::catalogue::{self, NotPublished};
use crate::extract::json::JsonBody;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A page of the catalog, last changed first.
#[derive(Serialize, ToSchema)]
pub struct CatalogList {
    /// The Recipes.
    recipes: Vec<CatalogRecipe>,
    /// Position in the list.
    page: Page,
}

/// A Recipe of the catalog.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogRecipe {
    /// Plain id of the Recipe.
    id: String,
    /// Its name.
    name: String,
    /// Its newest version.
    version: String,
    /// When that was published.
    updated_at: Timestamp,
}

impl From<RecipeRecord> for CatalogRecipe {
    fn from(recipe: RecipeRecord) -> Self {
        Self {
            id: recipe.id.to_string(),
            name: recipe.definition.name,
            version: recipe.version.to_string(),
            updated_at: recipe.updated_at,
        }
    }
}

/// List the catalog
///
/// Returns one page of the Recipes of the catalog, last changed first.
#[utoipa::path(
    get, path = "/recipes", operation_id = "listCatalog", tag = "Recipes",
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "One page of the catalog.", body = CatalogList))
)]
pub async fn list(State(app): State<App>, admin: Administrator, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("console/admin/recipes", &admin.account, &[]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let conn = &mut *app.connection().await?;
    let mut found = db::recipes::list(conn, &admin.account, Some(Visibility::Approved), &[], after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |recipe| After {
        updated_at: recipe.updated_at,
        handle: recipe.id.handle(),
    });
    Ok(reply::ok(&CatalogList { recipes: found.into_iter().map(CatalogRecipe::from).collect(), page }))
}

/// A published version.
#[derive(Serialize, ToSchema)]
pub struct RecipePublished {
    /// Plain id of the Recipe.
    id: String,
    /// Its version, which an equal file does not change.
    version: String,
}

/// Publish a Recipe
///
/// Publishes a Recipe file as a new Recipe or as the next version of one. An unchanged Recipe is not published again.
#[utoipa::path(
    post, path = "/recipes", operation_id = "publishRecipe", tag = "Recipes", request_body = RecipeFile,
    responses(
        ScopeErrors,
        (status = 201, description = "The version.", body = RecipePublished),
        (status = 409, description = "The id belongs to a private workflow."),
    )
)]
pub async fn publish(State(app): State<App>, admin: Administrator, body: JsonBody) -> Result {
    let file = body.checked(catalogue::check).await?;
    let mut transaction = app.transaction().await?;
    let published = catalogue::publish(&mut transaction, admin.actor(), file).await;
    let (id, version) = published.map_err(|error| match error {
        NotPublished::Database(error) => error.into(),
        taken => Problem::conflict(taken.to_string()),
    })?;
    db::pool::commit(transaction).await?;
    let published = RecipePublished { id: id.to_string(), version: version.to_string() };
    Ok(reply::with_status(StatusCode::CREATED, &published))
}
