//! `canvas-gateway admin session`: signs people in and revokes sessions.

use clap::Subcommand;
use domain::limits::{SIGNIN_LINK_MINUTES, SIGNIN_LINK_MINUTES_MAX};
use serde_json::json;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account};
use crate::installation;

/// The subcommands of `admin session`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a link that signs the account in once, in the browser.
    Link {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Minutes until the link expires, 1 to 1440; 15 when omitted.
        #[arg(long)]
        minutes: Option<String>,
    },
    /// Revoke all sessions of an account and with them every token issued under them.
    Revoke {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Link { account, minutes } => link(context, &account, minutes.as_deref()).await,
        Command::Revoke { account } => revoke(context, &account).await,
    }
}

async fn link(context: &mut Context, name: &str, minutes: Option<&str>) -> Result {
    let minutes = match minutes {
        None => SIGNIN_LINK_MINUTES,
        Some(text) => {
            text.parse().ok().filter(|minutes| (1..=SIGNIN_LINK_MINUTES_MAX).contains(minutes)).ok_or_else(|| {
                CommandError::rule(format!("{text:?} is not a number of minutes from 1 to {SIGNIN_LINK_MINUTES_MAX}"))
            })?
        }
    };
    let keys = installation::keys(&mut context.connection, &context.config.installation_keys()).await?;
    let account = account(context, name).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let place = (&keys, context.config.public_url.as_str());
    let link = app::session::create_link(&mut transaction, &context.actor, place, &account.uid, (minutes, false));
    let (url, expires_at) = link.await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "url": url, "expiresAt": expires_at }))
}

async fn revoke(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let revoked = app::session::revoke_all(&mut transaction, &context.actor, &account.uid).await?;
    db::pool::commit(transaction).await?;
    announcer.revoked(&account.uid).await;
    Ok(json!({ "uid": account.uid, "revokedSessions": revoked }))
}
