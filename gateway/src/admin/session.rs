//! `admin session …`

use clap::Subcommand;
use serde_json::json;

use super::revocation::Revocation;
use super::{Context, Result, account};

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Revoke an account's sessions and thereby every token under them.
    Revoke {
        /// Uid or email.
        #[arg(long)]
        account: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Revoke { account: name } = command;
    let account = account(context, &name).await?;
    let revocation = Revocation::prepare(&context.config)?;
    let revoked = db::accounts::revoke_sessions(&mut context.connection, &account.uid).await?;
    revocation.announce(&account.uid).await;
    Ok(json!({ "uid": account.uid, "revokedSessions": revoked }))
}
