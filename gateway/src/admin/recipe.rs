//! `admin recipe …`

use clap::Subcommand;
use serde_json::{Value, json};

use super::{Context, Refusal, Result};
use crate::catalogue::{self, NotPublished};

/// What can be done with the catalogue.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Publish a Recipe: as new, as its next version, or, unchanged, not at all.
    Publish {
        /// A JSON file, or - for standard input: id?, name, summary?, description?, category, tags?, inputs, outputs.
        file: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Publish { file } = command;
    let read = match file.as_str() {
        // One command of one person: nothing else of this process waits.
        "-" => std::io::read_to_string(std::io::stdin()),
        path => tokio::fs::read_to_string(path).await,
    };
    let text = read.map_err(|error| Refusal::rule(format!("{file:?} cannot be read: {error}")))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| Refusal::rule(format!("{file:?} is no JSON: {error}")))?;
    let recipe = catalogue::checked(value).map_err(Refusal::Rule)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let (id, version) = catalogue::publish(&mut transaction, recipe).await.map_err(|error| match error {
        NotPublished::Database(error) => Refusal::Database(error),
        refused => Refusal::rule(refused.to_string()),
    })?;
    db::pool::commit(transaction).await?;
    Ok(json!({"id": id, "handle": id.handle(), "version": version.to_string()}))
}
