//! `canvas-gateway admin recipe`: publishes Recipes.

use clap::Subcommand;
use serde_json::{Value, json};

use super::{CommandError, Context, Result};
use crate::catalogue::{self, NotPublished};

/// The subcommands of `admin recipe`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Publish a Recipe as a new one or as its next version; an unchanged Recipe is not published again.
    Publish {
        /// JSON file, or - for standard input, with the fields id?, name, summary?, description?, category, tags?, inputs,
        /// outputs.
        file: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Publish { file } = command;
    let read = match file.as_str() {
        // Blocking is fine here: the process runs a single command.
        "-" => std::io::read_to_string(std::io::stdin()),
        path => tokio::fs::read_to_string(path).await,
    };
    let text = read.map_err(|error| CommandError::rule(format!("{file:?} cannot be read: {error}")))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| CommandError::rule(format!("{file:?} is not JSON: {error}")))?;
    let recipe = catalogue::checked(value).await.map_err(CommandError::Rule)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let (id, version) =
        catalogue::publish(&mut transaction, &context.actor, recipe).await.map_err(|error| match error {
            NotPublished::Database(error) => CommandError::Database(error),
            refused => CommandError::rule(refused.to_string()),
        })?;
    db::pool::commit(transaction).await?;
    Ok(json!({"id": id, "handle": id.handle(), "version": version.to_string()}))
}
