//! The catalogue of Recipes: what ships with the service, and what operators publish (decisions 13.2, 18.4, 18.15).

use db::recipes::Published;
use domain::Violation;
use domain::id::RecipeId;
use domain::recipe::Version;
use domain::recipe::file::{RecipeFile, SHIPPED};
use serde_json::Value;

use crate::extract::json::{self, Input};
use crate::problem::Problem;
use crate::routes::canvases::workflows::rules::blank_or_long_tags;

impl Input for RecipeFile {
    fn check(&self) -> Vec<Violation> {
        let mut violations = self.violations();
        violations.extend(blank_or_long_tags(&self.tags));
        violations
    }
}

/// Why a Recipe was not published.
#[derive(Debug, thiserror::Error)]
pub enum NotPublished {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] db::Error),
    /// The id is a private workflow's.
    #[error("the id {0} is that of a private workflow")]
    Taken(RecipeId),
}

/// The file in `value`, by the schema that workflows are validated with; else everything that is wrong with it.
pub fn checked(value: Value) -> Result<RecipeFile, String> {
    json::validate::<RecipeFile>(value).map_err(|problem| match problem {
        Problem::Invalid(violations) => {
            let told: Vec<String> =
                violations.iter().map(|wrong| format!("{} {}", wrong.field, wrong.message)).collect();
            format!("the recipe is not valid: {}", told.join("; "))
        }
        other => format!("the recipe is not valid: {other:?}"),
    })
}

/// Publishes a checked file, and says what it is published as.
pub async fn publish(conn: &mut db::PgConnection, file: RecipeFile) -> Result<(RecipeId, Version), NotPublished> {
    let id = file.recipe_id().unwrap_or_else(RecipeId::generate);
    match db::recipes::publish(conn, &id, &file.definition()).await? {
        Published::Version(version) => Ok((id, version)),
        Published::Taken => Err(NotPublished::Taken(id)),
    }
}

/// Publishes what ships. Nothing is done for a Recipe that the catalogue has in this very form, so that every migration may
/// do it.
pub async fn publish_shipped(conn: &mut db::PgConnection) -> Result<(), db::Error> {
    let mut transaction = db::pool::begin_on(conn).await?;
    for (name, text) in SHIPPED {
        let file: RecipeFile = serde_json::from_str(text).expect("a test reads every file that ships");
        if let Err(error) = publish(&mut transaction, file).await {
            match error {
                NotPublished::Database(error) => return Err(error),
                NotPublished::Taken(_) => tracing::warn!(recipe = name, "{error}: it is not published"),
            }
        }
    }
    db::pool::commit(transaction).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ships_is_within_the_ranges_of_its_schema() {
        for (name, text) in SHIPPED {
            let value = serde_json::from_str(text).expect("is JSON");
            if let Err(wrong) = checked(value) {
                panic!("{name}: {wrong}");
            }
        }
    }

    #[test]
    fn everything_that_is_wrong_with_a_file_is_told() {
        let wrong = checked(json!({"name": "", "category": "None", "inputs": [], "outputs": [], "more": 1}));
        let message = wrong.expect_err("is refused");
        for field in ["name", "category", "inputs", "outputs", "more"] {
            assert!(message.contains(&format!("{field} ")), "{field}: {message}");
        }
    }
}
