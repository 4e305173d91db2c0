//! The Recipe catalog: Recipes that ship with the service and Recipes that operators publish
//! (docs/reference/recipes.md#publishing).

use db::audit::{Actor, Event};
use db::recipes::Published;
use domain::Violation;
use domain::id::RecipeId;
use domain::recipe::Version;
use domain::recipe::file::{RecipeFile, SHIPPED};
use serde_json::Value;

use crate::extract::json::{self, Input};
use crate::problem::Problem;

impl Input for RecipeFile {}

/// Why a Recipe was not published.
#[derive(Debug, thiserror::Error)]
pub enum NotPublished {
    #[error(transparent)]
    Database(#[from] db::Error),
    /// The id belongs to a private workflow.
    #[error("the id {0} belongs to a private workflow")]
    Taken(RecipeId),
}

/// A file that breaks no rule.
pub fn check(file: RecipeFile) -> Result<RecipeFile, Vec<Violation>> {
    match file.violations() {
        violations if violations.is_empty() => Ok(file),
        violations => Err(violations),
    }
}

/// The Recipe file in `value`, checked against the same schema as workflows; otherwise every violation.
pub async fn checked(value: Value) -> Result<RecipeFile, String> {
    json::validate(value, &mut json::values(None), None, check).await.map_err(|problem| match problem {
        Problem::Invalid(violations) => {
            let reported: Vec<String> =
                violations.iter().map(|wrong| format!("{} {}", wrong.field, wrong.message)).collect();
            format!("the recipe is not valid: {}", reported.join("; "))
        }
        other => format!("the recipe is not valid: {other:?}"),
    })
}

/// Publishes a checked file, and writes a new version into the audit; returns the id and the version.
pub async fn publish(
    conn: &mut db::PgConnection,
    actor: &Actor,
    file: RecipeFile,
) -> Result<(RecipeId, Version), NotPublished> {
    let id = file.recipe_id().unwrap_or_else(RecipeId::generate);
    match db::recipes::publish(conn, &id, &file.definition()).await? {
        Published::Version(version) => {
            let event = Event::RecipePublished { recipe: id.clone(), version: version.0.into() };
            db::audit::write(conn, actor, None, &event).await?;
            Ok((id, version))
        }
        Published::Unchanged(version) => Ok((id, version)),
        Published::Taken => Err(NotPublished::Taken(id)),
    }
}

/// Publishes the shipped Recipes. A Recipe that the catalog holds unchanged is skipped, so that every migration can call this.
pub async fn publish_shipped(conn: &mut db::PgConnection) -> Result<(), db::Error> {
    let mut transaction = db::pool::begin_on(conn).await?;
    for (name, text) in SHIPPED {
        let file: RecipeFile = serde_json::from_str(text).expect("a test reads every file that ships");
        if let Err(error) = publish(&mut transaction, &Actor::command("migrate"), file).await {
            match error {
                NotPublished::Database(error) => return Err(error),
                NotPublished::Taken(_) => tracing::warn!(recipe = name, "{error}; the recipe was not published"),
            }
        }
    }
    db::pool::commit(transaction).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::extract::json::block_on;

    #[test]
    fn what_ships_is_within_the_ranges_of_its_schema() {
        for (name, text) in SHIPPED {
            let value = serde_json::from_str(text).expect("is JSON");
            if let Err(wrong) = block_on(checked(value)) {
                panic!("{name}: {wrong}");
            }
        }
    }

    #[test]
    fn everything_that_is_wrong_with_a_file_is_reported() {
        let wrong = json!({"name": "", "category": "None", "inputs": [], "outputs": [], "more": 1});
        let message = block_on(checked(wrong)).expect_err("is rejected");
        for field in ["name", "category", "inputs", "outputs", "more"] {
            assert!(message.contains(&format!("{field} ")), "{field}: {message}");
        }
    }
}
