//! `canvas-gateway admin token`: creates, lists and revokes agent tokens.

use clap::Subcommand;
use db::tokens::{NewToken, TokenCreated, TokenRow};
use domain::account::{Scope, Scopes, Surface};
use domain::limits::{ACTIVE_TOKENS_MAX, TOKEN_EXPIRY_DAYS_MAX, TOKEN_LABEL_MAX};
use serde_json::{Value, json};
use uuid::Uuid;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account};
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
        Command::Create { account, label, scopes, expires_days, surface } => {
            let wanted = Wanted::parse(&label, &scopes, expires_days.as_deref(), &surface)?;
            create(context, &account, wanted).await
        }
        Command::List { account } => list(context, &account).await,
        Command::Revoke { id } => revoke(context, &id).await,
    }
}

struct Wanted {
    label: String,
    scopes: Scopes,
    expires_days: Option<u32>,
    surface: Surface,
}

impl Wanted {
    fn parse(label: &str, scopes: &str, expires_days: Option<&str>, surface: &str) -> Result<Self> {
        let length = label.chars().count();
        if length == 0 || length > TOKEN_LABEL_MAX || label.contains('\0') {
            return Err(CommandError::rule(format!("a label must have 1 to {TOKEN_LABEL_MAX} characters")));
        }
        let scopes = parse_scopes(scopes)?;
        if let Some((scope, needed)) = scopes.lacking_dependency() {
            return Err(CommandError::rule(format!("{scope} requires {needed}")));
        }
        let days = |text: &str| {
            text.parse().ok().filter(|days| (1..=TOKEN_EXPIRY_DAYS_MAX).contains(days)).ok_or_else(|| {
                CommandError::rule(format!("{text:?} is not a number of days from 1 to {TOKEN_EXPIRY_DAYS_MAX}"))
            })
        };
        Ok(Self {
            label: label.to_owned(),
            scopes,
            expires_days: expires_days.map(days).transpose()?,
            surface: surface
                .parse()
                .map_err(|_| CommandError::rule(format!("{surface:?} is not a surface: api, cli, tool, browser")))?,
        })
    }
}

fn parse_scopes(text: &str) -> Result<Scopes> {
    if text == "all" {
        return Ok(Scopes::of(&Scope::ALL));
    }
    text.split(',')
        .map(|name| name.trim().parse().map_err(|_| CommandError::rule(format!("{name:?} is not a scope"))))
        .collect()
}

async fn create(context: &mut Context, name: &str, wanted: Wanted) -> Result {
    let keys = installation::keys(&mut context.connection, &context.ring).await?;
    let account = account(context, name).await?;
    let secret = service::random::token_secret();
    let id = Uuid::now_v7();
    let token = NewToken {
        id,
        account: &account.uid,
        label: &wanted.label,
        scopes: wanted.scopes,
        surface: wanted.surface,
        secret_hash: &keys.token_hash(&secret),
        expires_days: wanted.expires_days,
    };
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let TokenCreated::Done(expires_at) = db::tokens::create(&mut transaction, &token).await? else {
        return Err(CommandError::rule(format!("the account already has {ACTIVE_TOKENS_MAX} active tokens")));
    };
    db::pool::commit(transaction).await?;
    let scopes: Vec<Scope> = wanted.scopes.iter().collect();
    Ok(json!({ "id": id, "token": format!("cba_{id}.{secret}"), "scopes": scopes, "expiresAt": expires_at }))
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
        "revokedAt": token.revoked_at, "lastUsedAt": token.last_used_at,
    })
}

async fn revoke(context: &mut Context, id: &str) -> Result {
    let unknown = || CommandError::rule(format!("token {id:?} does not exist"));
    let token = Uuid::try_parse(id).map_err(|_| unknown())?;
    let announcer = Announcer::prepare(&context.config)?;
    let revoked = db::tokens::revoke(&mut context.connection, token, None).await?;
    let (account, revoked_at) = revoked.ok_or_else(unknown)?;
    announcer.revoked(&account).await;
    Ok(json!({ "id": token, "revokedAt": revoked_at }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(label: &str, scopes: &str, days: Option<&str>) -> Result<Wanted> {
        Wanted::parse(label, scopes, days, "api")
    }

    #[test]
    fn a_label_has_1_to_80_characters() {
        assert!(parse("x", "canvas:read", None).is_ok());
        assert!(parse(&"ü".repeat(80), "canvas:read", None).is_ok());
        assert!(parse(&"x".repeat(81), "canvas:read", None).is_err());
        assert!(parse("", "canvas:read", None).is_err());
    }

    #[test]
    fn a_token_lives_1_to_90_days() {
        for (days, good) in [("1", true), ("90", true), ("0", false), ("91", false), ("-1", false), ("x", false)] {
            assert_eq!(parse("l", "canvas:read", Some(days)).is_ok(), good, "{days}");
        }
    }

    #[test]
    fn scopes_are_known_and_complete() {
        assert_eq!(parse("l", "all", None).map(|wanted| wanted.scopes.iter().count()).ok(), Some(8));
        assert!(parse("l", "", None).is_err());
        assert!(parse("l", "canvas:delete", None).is_err());
        assert!(parse("l", "canvas:write", None).is_err());
        assert!(parse("l", "canvas:write, canvas:read", None).is_ok());
    }
}
