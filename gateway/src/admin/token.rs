//! `canvas-gateway admin token`: creates, lists and revokes agent tokens.

use app::token::NewToken;
use clap::Subcommand;
use db::tokens::TokenRow;
use domain::account::{Scope, Scopes};
use domain::limits::TOKEN_EXPIRY_DAYS_MAX;
use serde_json::{Value, json};
use uuid::Uuid;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account, budgets_of};
use crate::installation;

/// The subcommands of `admin token`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a token; its secret is shown only once.
    Create {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Label; at most 80 characters.
        #[arg(long)]
        label: String,
        /// Comma-separated scopes, or `all`.
        #[arg(long)]
        scopes: String,
        /// Lifetime in days, 1 to 90; the token does not expire when omitted.
        #[arg(long)]
        expires_days: Option<String>,
        /// Surface of the token: `api`, `cli`, `tool` or `browser`.
        #[arg(long, default_value = "api")]
        surface: String,
        /// Budget, UNIT:PERIOD:MAX: `credits` or `outputs`, a `day`, a `month` or in `total`; repeatable.
        #[arg(long = "budget", value_name = "UNIT:PERIOD:MAX")]
        budgets: Vec<String>,
    },
    /// List the tokens of an account.
    List {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Revoke a token, immediately and permanently.
    Revoke {
        /// Id of the token.
        id: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Create { account, label, scopes, expires_days, surface, budgets } => {
            let new = NewToken {
                budgets: budgets_of(&budgets)?,
                ..parse(&label, &scopes, expires_days.as_deref(), &surface)?
            };
            create(context, &account, &new).await
        }
        Command::List { account } => list(context, &account).await,
        Command::Revoke { id } => revoke(context, &id).await,
    }
}

/// Reads the arguments of a new token.
fn parse(label: &str, scopes: &str, expires_days: Option<&str>, surface: &str) -> Result<NewToken> {
    let days = |text: &str| {
        text.parse().map_err(|_| {
            CommandError::rule(format!("{text:?} is not a number of days from 1 to {TOKEN_EXPIRY_DAYS_MAX}"))
        })
    };
    Ok(NewToken {
        label: label.to_owned(),
        scopes: parse_scopes(scopes)?,
        surface: surface
            .parse()
            .map_err(|_| CommandError::rule(format!("{surface:?} is not a surface: api, cli, tool, browser")))?,
        expires_days: expires_days.map(days).transpose()?,
        budgets: Vec::new(),
    })
}

fn parse_scopes(text: &str) -> Result<Scopes> {
    if text == "all" {
        return Ok(Scopes::from_slice(Scope::ALL));
    }
    text.split(',')
        .map(|name| name.trim().parse().map_err(|_| CommandError::rule(format!("{name:?} is not a scope"))))
        .collect()
}

async fn create(context: &mut Context, name: &str, new: &NewToken) -> Result {
    let keys = installation::keys(&mut context.connection, &context.config.installation_keys()).await?;
    let account = account(context, name).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let (row, token) = app::token::create(&mut transaction, &context.actor, &keys, &account.uid, new).await?;
    db::pool::commit(transaction).await?;
    let scopes: Vec<Scope> = row.scopes.iter().collect();
    Ok(json!({ "id": row.id, "token": token, "scopes": scopes, "expiresAt": row.expires_at, "budgets": row.budgets }))
}

async fn list(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let tokens = db::tokens::list(&mut context.connection, &account.uid).await?;
    Ok(json!({ "tokens": tokens.iter().map(entry).collect::<Vec<_>>() }))
}

fn entry(token: &TokenRow) -> Value {
    json!({
        "id": token.id, "label": token.label, "scopes": token.scopes.iter().collect::<Vec<_>>(),
        "surface": token.surface, "createdAt": token.created_at, "expiresAt": token.expires_at,
        "revokedAt": token.revoked_at, "lastUsedAt": token.last_used_at, "budgets": token.budgets,
    })
}

async fn revoke(context: &mut Context, id: &str) -> Result {
    let unknown = || CommandError::rule(format!("token {id:?} does not exist"));
    let token = Uuid::try_parse(id).map_err(|_| unknown())?;
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let revoked = match app::token::revoke(&mut transaction, &context.actor, token, None).await {
        Err(app::Error::NotFound(_)) => return Err(unknown()),
        revoked => revoked?,
    };
    db::pool::commit(transaction).await?;
    announcer.revoked(&revoked.account).await;
    Ok(json!({ "id": token, "revokedAt": revoked.at }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_known_by_name() {
        let count = |scopes: &str| parse_scopes(scopes).map(|scopes| scopes.iter().count()).ok();
        assert_eq!(count("all"), Some(8));
        assert_eq!(count("canvas:write, canvas:read"), Some(2));
        for wrong in ["", "canvas:delete", "canvas:read,"] {
            assert_eq!(count(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn days_are_a_number() {
        for (days, good) in [("1", true), ("-1", false), ("x", false), ("", false)] {
            assert_eq!(parse("l", "all", Some(days), "api").is_ok(), good, "{days:?}");
        }
    }
}
