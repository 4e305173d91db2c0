//! `canvas-gateway admin credits`: grants credits.

use clap::Subcommand;
use serde_json::json;

use super::{Context, Result, account, amount};

/// The subcommands of `admin credits`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Grant credits to an account.
    Grant {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Number of credits; at least 1.
        #[arg(long)]
        amount: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Grant { account: name, amount: text } = command;
    let amount = amount(&text, 1)?;
    let account = account(context, &name).await?;
    let adjustment = app::account::Adjustment { amount, note: None, key: None };
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let balance = app::account::credit(&mut transaction, &context.actor, &account.uid, adjustment).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "creditBalance": balance }))
}
