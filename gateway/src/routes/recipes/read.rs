//! `GET /recipes/{recipeId}`: the newest version, or exactly the one asked for.

use axum::extract::{OriginalUri, State};
use domain::id::RecipeId;
use domain::recipe::{RecipeRead, Version};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::caller::{Caller, ReadCanvas};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::models::steps::of_recipe;
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result, combine_violations};
use crate::reply;
use crate::state::App;

/// The version that is read.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct VersionQuery {
    /// Exactly this version. Default: the newest.
    #[param(max_length = 80)]
    version: Option<String>,
}

/// Read a Recipe
///
/// Returns one Recipe with its input and output ports. Use it to learn which inputs a run needs, which model makes each
/// output for the caller, and what a run costs. `version` pins a
/// version, which never changes; without it the newest is returned. It runs nothing.
#[utoipa::path(
    get, path = "/recipes/{recipeId}", operation_id = "getRecipe", tag = "Recipes",
    security(("bearer" = ["canvas:read"])),
    params(
        ("recipeId" = String, Path, pattern = "^(recipe:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        VersionQuery,
    ),
    responses(ReadErrors, (status = 200, description = "The Recipe.", body = RecipeRead))
)]
pub async fn read(
    State(app): State<App>,
    caller: Caller<ReadCanvas>,
    params: PathText,
    OriginalUri(uri): OriginalUri,
) -> Result {
    let mut query = QueryReader::new(&uri);
    let VersionQuery { version } = query.read().unwrap_or_default();
    let (id, ()) = combine_violations(params.parameter::<RecipeId>("recipeId"), query.finish())?;
    let version = version.map(|version| version.parse::<Version>());
    let version = version.transpose().map_err(|_| Problem::NotFound("recipe version"))?;
    let mut connection = app.connection().await?;
    let found = db::recipes::find(&mut connection, &caller.account, &id, version).await?;
    let missing = if version.is_some() { "recipe version" } else { "recipe" };
    let recipe = found.ok_or(Problem::NotFound(missing))?;
    let models = app.runnable(&mut connection, &caller.account).await?;
    Ok(reply::ok(&RecipeRead { recipe: recipe.document(&of_recipe(&models, &recipe.definition)) }))
}
