//! `admin account …`

use clap::Subcommand;
use domain::id::{AccountUid, is_plain_id};
use serde_json::json;

use super::{Context, Refusal, Result, account, amount};

/// Longest email.
const EMAIL_MAX: usize = 254;

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make an account.
    Create {
        /// Unique, whatever its case.
        #[arg(long)]
        email: String,
        /// A plain id; made when left out.
        #[arg(long)]
        uid: Option<String>,
        /// Credits to begin with.
        #[arg(long, default_value = "0", allow_hyphen_values = true)]
        credits: String,
    },
    /// Let an account's tokens work again.
    Enable {
        /// Uid or email.
        #[arg(long)]
        account: String,
    },
    /// Stop every token of an account.
    Disable {
        /// Uid or email.
        #[arg(long)]
        account: String,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Create { email, uid, credits } => create(context, &email, uid, &credits).await,
        Command::Enable { account } => set_enabled(context, &account, true).await,
        Command::Disable { account } => set_enabled(context, &account, false).await,
    }
}

async fn create(context: &mut Context, email: &str, uid: Option<String>, credits: &str) -> Result {
    let credits = amount(credits, 0)?;
    if !is_email(email) {
        return Err(Refusal::rule(format!("{email:?} is no email address")));
    }
    let uid = match uid {
        None => AccountUid::generate(),
        Some(uid) if is_plain_id(&uid) => AccountUid::from_stored(uid),
        Some(uid) => return Err(Refusal::rule(format!("{uid:?} is no plain id"))),
    };
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let made = db::accounts::create(&mut transaction, &uid, email).await?;
    let account = made.ok_or_else(|| Refusal::rule("an account of this uid or email exists already"))?;
    let balance = db::ledger::grant(&mut transaction, &uid, credits).await?.unwrap_or_default();
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "email": account.email, "creditBalance": balance }))
}

/// A thing before and after one `@`, without white space: more cannot be told without sending mail.
fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    text.len() <= EMAIL_MAX
        && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.chars().any(|character| character.is_whitespace() || character.is_control())
}

async fn set_enabled(context: &mut Context, name: &str, enabled: bool) -> Result {
    let account = account(context, name).await?;
    db::accounts::set_enabled(&mut context.connection, &account.uid, enabled).await?;
    Ok(json!({ "uid": account.uid, "enabled": enabled }))
}
