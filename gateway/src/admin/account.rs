//! `canvas-gateway admin account`: creates, enables, disables, limits and deletes accounts.

use app::purge::CanvasPurge;
use clap::Subcommand;
use db::account_list::{self, AccountFilter};
use db::audit::{self, Event};
use db::purge;
use domain::account::{Role, is_email};
use domain::budget::{BudgetOwner, BudgetState};
use domain::id::{AccountUid, CanvasHandle, is_plain_id};
use serde_json::json;

use super::announcer::Announcer;
use super::{CommandError, Context, Result, account, amount, budgets_of, work};
use crate::console::admin::ListedAccount;

/// The subcommands of `admin account`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create an account.
    Create {
        /// Email address; unique regardless of case.
        #[arg(long)]
        email: String,
        /// Plain id; generated when omitted.
        #[arg(long)]
        uid: Option<String>,
        /// Initial credits.
        #[arg(long, default_value = "0")]
        credits: String,
    },
    /// List accounts, newest first.
    List {
        /// A part of the uid, the email or the name.
        #[arg(long)]
        query: Option<String>,
        /// Role: `member` or `admin`.
        #[arg(long)]
        role: Option<String>,
    },
    /// Give an account a role; an `admin` manages the installation in the console.
    Role {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Role: `member` or `admin`.
        #[arg(long)]
        role: String,
    },
    /// Enable a disabled account; its tokens work again.
    Enable {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Disable an account and reject all its tokens.
    Disable {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Show the stored bytes and the storage quota of an account; --bytes changes the quota.
    Quota {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Maximum bytes of its assets, videos and canvases; `none` for no limit, `default` for CANVAS_ACCOUNT_STORAGE_MAX.
        #[arg(long)]
        bytes: Option<String>,
    },
    /// Show the budgets of an account and what is spent of them; --budget replaces them.
    Budget {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Budget, UNIT:PERIOD:MAX: `credits` or `outputs`, a `day`, a `month` or in `total`; repeatable. `none` for no budget.
        #[arg(long = "budget", value_name = "UNIT:PERIOD:MAX")]
        budgets: Vec<String>,
    },
    /// Show the stored bytes of an account by kind: assets, originals, videos and canvases.
    Storage {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
    },
    /// Count the stored bytes again, of one account or of all, and correct the counters; while the service runs.
    Recount {
        /// Uid or email of the account; all accounts when omitted.
        #[arg(long)]
        account: Option<String>,
    },
    /// Delete an account and everything it owns, permanently; refused while it has active work. Its ledger is kept.
    Purge {
        /// Uid or email of the account.
        #[arg(long)]
        account: String,
        /// Cancel the active work first.
        #[arg(long)]
        cancel_jobs: bool,
        /// Confirm the deletion.
        #[arg(long, required = true)]
        yes: bool,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Result {
    match command {
        Command::Create { email, uid, credits } => create(context, &email, uid, &credits).await,
        Command::List { query, role } => list(context, query, role.as_deref()).await,
        Command::Role { account, role } => set_role(context, &account, &role).await,
        Command::Enable { account } => enable(context, &account).await,
        Command::Disable { account } => disable(context, &account).await,
        Command::Quota { account, bytes } => quota(context, &account, bytes.as_deref()).await,
        Command::Budget { account, budgets } => budget(context, &account, &budgets).await,
        Command::Storage { account } => storage(context, &account).await,
        Command::Recount { account } => recount(context, account.as_deref()).await,
        Command::Purge { account, cancel_jobs, .. } => purge(context, &account, cancel_jobs).await,
    }
}

async fn create(context: &mut Context, email: &str, uid: Option<String>, credits: &str) -> Result {
    let credits = amount(credits, 0)?;
    if !is_email(email) {
        return Err(CommandError::rule(format!("{email:?} is not an email address")));
    }
    let uid = match uid {
        None => AccountUid::generate(),
        Some(uid) if is_plain_id(&uid) => AccountUid::from_stored(uid),
        Some(uid) => return Err(CommandError::rule(format!("{uid:?} is not a plain id"))),
    };
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let account = app::account::create(&mut transaction, &context.actor, &uid, email, credits).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "email": account.email, "creditBalance": account.credit_balance }))
}

fn parse_role(text: &str) -> Result<Role> {
    text.parse().map_err(|_| CommandError::rule(format!("{text:?} is not a role: member, admin")))
}

/// All pages, as the console shows them.
async fn list(context: &mut Context, text: Option<String>, role: Option<&str>) -> Result {
    let filter = AccountFilter { text, role: role.map(parse_role).transpose()?, ..AccountFilter::default() };
    let found = account_list::list(&mut context.connection, &filter, None, i64::MAX).await?;
    Ok(json!({ "accounts": found.into_iter().map(ListedAccount::from).collect::<Vec<_>>() }))
}

async fn set_role(context: &mut Context, name: &str, role: &str) -> Result {
    let role = parse_role(role)?;
    let account = account(context, name).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    app::account::set_role(&mut transaction, &context.actor, &account.uid, role).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({ "uid": account.uid, "role": role }))
}

async fn enable(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    set_enabled(context, &account.uid, true).await?;
    Ok(json!({ "uid": account.uid, "enabled": true }))
}

async fn disable(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let announcer = Announcer::prepare(&context.config)?;
    set_enabled(context, &account.uid, false).await?;
    announcer.revoked(&account.uid).await;
    Ok(json!({ "uid": account.uid, "enabled": false }))
}

async fn set_enabled(context: &mut Context, uid: &AccountUid, enabled: bool) -> Result<()> {
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    app::account::set_enabled(&mut transaction, &context.actor, uid, enabled).await?;
    db::pool::commit(transaction).await?;
    Ok(())
}

async fn quota(context: &mut Context, name: &str, bytes: Option<&str>) -> Result {
    let wanted = bytes.map(limit).transpose()?;
    let account = account(context, name).await?;
    if let Some(max) = wanted {
        let mut transaction = db::pool::begin_on(&mut context.connection).await?;
        app::account::set_quota(&mut transaction, &context.actor, &account.uid, max).await?;
        db::pool::commit(transaction).await?;
    }
    let storage = db::storage::get(&mut context.connection, &account.uid).await?;
    let storage = storage.ok_or_else(|| CommandError::rule(format!("account {name:?} does not exist")))?;
    let max = (storage.max > 0).then_some(storage.max);
    Ok(json!({ "uid": account.uid, "storedBytes": storage.bytes, "maxBytes": max }))
}

async fn budget(context: &mut Context, name: &str, wanted: &[String]) -> Result {
    let wanted = match wanted {
        [] => None,
        [none] if none == "none" => Some(Vec::new()),
        texts => Some(budgets_of(texts)?),
    };
    let account = account(context, name).await?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    if let Some(budgets) = wanted {
        app::budget::set_for_account(&mut transaction, &context.actor, &account.uid, &budgets).await?;
    }
    let budgets = db::budgets::list(&mut transaction, &account.uid, &[], BudgetOwner::Account).await?;
    db::pool::commit(transaction).await?;
    let budgets: Vec<BudgetState> = budgets.into_iter().map(|(_, budget)| budget).collect();
    Ok(json!({ "uid": account.uid, "budgets": budgets }))
}

async fn storage(context: &mut Context, name: &str) -> Result {
    let account = account(context, name).await?;
    let db::storage::Parts { assets, originals, videos, canvases } =
        db::storage::parts(&mut context.connection, &account.uid).await?;
    let mut shown = quota(context, name, None).await?;
    shown["parts"] = json!({ "assets": assets, "originals": originals, "videos": videos, "canvases": canvases });
    Ok(shown)
}

/// Canvases or accounts that a recount reads at a time.
const RECOUNTED: i64 = 100;

/// Counts canvases in short transactions, because writers of a canvas wait meanwhile, and then the sum of each account.
async fn recount(context: &mut Context, name: Option<&str>) -> Result {
    let only = match name {
        Some(name) => Some(account(context, name).await?.uid),
        None => None,
    };
    let connection = &mut context.connection;
    let mut last = Some(0);
    while let Some(after) = last {
        let mut transaction = db::pool::begin_on(connection).await?;
        last = db::storage::recount_canvases(&mut transaction, only.as_ref(), after, RECOUNTED).await?;
        db::pool::commit(transaction).await?;
    }
    let mut accounts = match &only {
        Some(uid) => vec![uid.clone()],
        None => db::storage::accounts(connection, "", RECOUNTED).await?,
    };
    let (mut counted, mut corrected) = (0_u64, 0_u64);
    while let Some(last) = accounts.last().cloned() {
        for uid in &accounts {
            let mut transaction = db::pool::begin_on(connection).await?;
            let added = db::storage::recount(&mut transaction, uid).await?;
            db::pool::commit(transaction).await?;
            counted += 1;
            corrected += u64::from(added != 0);
        }
        accounts = match only {
            Some(_) => Vec::new(),
            None => db::storage::accounts(connection, last.as_str(), RECOUNTED).await?,
        };
    }
    let event = Event::AccountsRecounted { accounts: counted, corrected };
    audit::write(connection, &context.actor, only.as_ref(), &event).await?;
    Ok(json!({ "accounts": counted, "corrected": corrected }))
}

/// The storage limit that an argument asks for: a number of bytes, 0 for no limit, `None` for the default of the configuration.
fn limit(text: &str) -> Result<Option<i64>> {
    match text {
        "none" => Ok(Some(0)),
        "default" => Ok(None),
        number => match number.parse() {
            Ok(bytes) if bytes > 0 => Ok(Some(bytes)),
            _ => Err(CommandError::rule(format!(
                "{text:?} is not a number of bytes from 1 to {}, none or default",
                i64::MAX
            ))),
        },
    }
}

/// Deletes an account in steps, each of which can be repeated: disable the account, wait until its work has stopped, delete its
/// canvases one by one, delete the rest.
async fn purge(context: &mut Context, name: &str, cancel_jobs: bool) -> Result {
    let account = account(context, name).await?;
    let look = async |connection: &mut db::PgConnection| purge::active_of_account(connection, &account.uid).await;
    let active = look(&mut context.connection).await?;
    if !active.is_empty() && !cancel_jobs {
        return Err(work::under_way(active.len()));
    }
    let announcer = Announcer::prepare(&context.config)?;
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    app::account::set_enabled(&mut transaction, &context.actor, &account.uid, false).await?;
    app::session::revoke_all(&mut transaction, &context.actor, &account.uid).await?;
    db::pool::commit(transaction).await?;
    announcer.revoked(&account.uid).await;
    work::quiet(context, cancel_jobs, look).await?;
    let (mut canvases, mut assets) = (0_u64, 0);
    while let Some((changed, gone)) = next_canvas(context, &account.uid, cancel_jobs).await? {
        for canvas in &changed {
            announcer.canvas(canvas).await;
        }
        canvases += 1;
        assets += gone.assets.unsigned_abs();
    }
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    let changed = app::purge::forget_actor(&mut transaction, &account.uid).await?;
    db::pool::commit(transaction).await?;
    for canvas in &changed {
        announcer.canvas(canvas).await;
    }
    let mut transaction = db::pool::begin_on(&mut context.connection).await?;
    db::accounts::lock(&mut transaction, &account.uid).await?;
    // A start that was admitted before the account was disabled has committed by now.
    let late = purge::active_of_account(&mut transaction, &account.uid).await?;
    if !late.is_empty() {
        return Err(work::under_way(late.len()));
    }
    let purged = purge::account(&mut transaction, &account.uid).await?;
    let event = Event::AccountPurged { canvases, assets: assets + purged.assets, tokens: purged.tokens };
    audit::write(&mut transaction, &context.actor, Some(&account.uid), &event).await?;
    db::pool::commit(transaction).await?;
    Ok(json!({
        "uid": account.uid, "purged": true, "canvases": canvases, "assets": assets + purged.assets,
        "tokens": purged.tokens, "connections": purged.connections, "runs": purged.runs,
    }))
}

/// Deletes one more canvas of the account, on which other accounts may be working. Returns all canvases that have changed; `None`
/// when none is left.
async fn next_canvas(
    context: &mut Context,
    account: &AccountUid,
    cancel_jobs: bool,
) -> Result<Option<(Vec<CanvasHandle>, purge::PurgedCanvas)>> {
    loop {
        let mut transaction = db::pool::begin_on(&mut context.connection).await?;
        let Some((key, canvas)) = purge::next_canvas(&mut transaction, account).await? else { return Ok(None) };
        if let CanvasPurge::Done(purged, mut changed) =
            app::purge::canvas(&mut transaction, &context.actor, &canvas).await?
        {
            db::pool::commit(transaction).await?;
            changed.push(canvas);
            return Ok(Some((changed, purged)));
        }
        drop(transaction);
        work::quiet(context, cancel_jobs, async |connection| purge::active_on_canvas(connection, key).await).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes_or_none_or_the_default() {
        for (text, wanted) in
            [("1", Some(1)), ("9223372036854775807", Some(i64::MAX)), ("none", Some(0)), ("default", None)]
        {
            assert_eq!(limit(text).ok(), Some(wanted), "{text}");
        }
        for text in ["", "0", "-1", "1.5", "9223372036854775808", "1GiB", "None"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
