//! `canvas-gateway admin session`: revokes sessions.

use clap::Subcommand;
use serde_json::json;

use super::announcer::Announcer;
use super::{Context, Result, account};

/// The subcommands of `admin session`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Revoke all sessions of an account and with them every token issued under them.
    Revoke {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    let Command::Revoke { account: name } = command;
    let account = account(context, &name).await?;
    let announcer = Announcer::prepare(&context.config)?;
    let revoked = db::accounts::revoke_sessions(&mut context.connection, &account.uid).await?;
    announcer.revoked(&account.uid).await;
    Ok(json!({ "uid": account.uid, "revokedSessions": revoked }))
}
