//! `admin credits …`

use clap::Subcommand;
use serde_json::json;

use super::{Context, Result, account, amount};

/// What can be done with credit.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give an account credits.
    Grant {
        /// Uid or email.
        #[arg(long)]
        account: String,
        /// At least 1.
        #[arg(long)]
        amount: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Grant { account: name, amount: text } = command;
    let amount = amount(&text, 1)?;
    let account = account(context, &name).await?;
    let balance = db::ledger::grant(&mut context.connection, &account.uid, amount).await?;
    Ok(json!({ "uid": account.uid, "creditBalance": balance }))
}
