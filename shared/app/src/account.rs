//! Accounts, by an operator, an administrator or the person (docs/reference/administration.md). Each function writes its event into the
//! audit; the caller commits.

use db::PgConnection;
use db::accounts::{self, Account};
use db::audit::{self, Actor, Event};
use db::ledger::{self, Adjusted};
use domain::Violation;
use domain::account::{Role, display_name, is_email};
use domain::id::AccountUid;
use domain::problem::ErrorReason;

use crate::{Error, Result};

/// Creates an account with `credits`.
///
/// # Errors
///
/// [`Error::Invalid`] if the email is none, [`Error::Conflict`] if an account with this uid or email exists.
pub async fn create(
    conn: &mut PgConnection,
    actor: &Actor,
    uid: &AccountUid,
    email: &str,
    credits: i64,
) -> Result<Account> {
    if !is_email(email) {
        return Err(Error::Invalid(vec![Violation::new("email", "is not an email address")]));
    }
    let made = accounts::create(conn, uid, email).await?;
    let account =
        made.ok_or(Error::Conflict(ErrorReason::State, "an account with this uid or email already exists"))?;
    let balance = db::ledger::grant(conn, uid, credits).await?.unwrap_or_default();
    audit::write(conn, actor, Some(uid), &Event::AccountCreated { credits }).await?;
    Ok(Account { credit_balance: balance, ..account })
}

/// Enables or disables an account. `false`: it already was.
pub async fn set_enabled(conn: &mut PgConnection, actor: &Actor, uid: &AccountUid, enabled: bool) -> Result<bool> {
    let changed = accounts::set_enabled(conn, uid, enabled).await?;
    if changed {
        let event = if enabled { Event::AccountEnabled {} } else { Event::AccountDisabled {} };
        audit::write(conn, actor, Some(uid), &event).await?;
    }
    Ok(changed)
}

/// Gives an account another name: `chosen`, or none when it is empty. Returns what others see then.
pub async fn rename(
    conn: &mut PgConnection,
    actor: &Actor,
    (uid, email): (&AccountUid, &str),
    chosen: &str,
) -> Result<String> {
    let shown = display_name(chosen, email);
    accounts::rename(conn, uid, chosen, &shown).await?;
    audit::write(conn, actor, Some(uid), &Event::AccountRenamed {}).await?;
    Ok(shown)
}

/// Gives an account a role. `false`: it already had it.
pub async fn set_role(conn: &mut PgConnection, actor: &Actor, uid: &AccountUid, role: Role) -> Result<bool> {
    let changed = db::account_list::set_role(conn, uid, role).await?;
    if changed {
        audit::write(conn, actor, Some(uid), &Event::AccountRole { role }).await?;
    }
    Ok(changed)
}

/// A movement of credit by hand.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<'a> {
    /// Credits to add, or to take away if negative.
    pub amount: i64,
    /// Why, for the ledger.
    pub note: Option<&'a str>,
    /// A key under which a repetition moves nothing.
    pub key: Option<&'a str>,
}

/// Adds credits to an account, or takes them away. Returns the balance.
///
/// # Errors
///
/// [`Error::NotFound`] if there is no such account, [`Error::Unprocessable`] if the balance would be below 0, [`Error::Conflict`] if the
/// key was used for another amount.
pub async fn credit(
    conn: &mut PgConnection,
    actor: &Actor,
    uid: &AccountUid,
    Adjustment { amount, note, key }: Adjustment<'_>,
) -> Result<i64> {
    let balance = match ledger::adjust(conn, uid, amount, note, key).await? {
        Adjusted::Done(balance) => balance,
        Adjusted::Repeated(balance) => return Ok(balance),
        Adjusted::OtherRequest => {
            return Err(Error::Conflict(
                ErrorReason::IdempotencyKey,
                "the idempotency key was used for another amount",
            ));
        }
        Adjusted::Overdrawn => return Err(Error::unprocessable("amount", "takes more than the account has")),
        Adjusted::NoAccount => return Err(Error::NotFound("account")),
    };
    audit::write(conn, actor, Some(uid), &Event::AccountCredit { amount, balance }).await?;
    Ok(balance)
}

/// Sets the storage quota of an account: 0 for none, `None` for the default of the configuration.
pub async fn set_quota(conn: &mut PgConnection, actor: &Actor, uid: &AccountUid, max: Option<i64>) -> Result<()> {
    db::storage::set_max(conn, uid, max).await?;
    audit::write(conn, actor, Some(uid), &Event::AccountQuota { max }).await?;
    Ok(())
}
