//! Setting budgets, by an operator or by the person who owns the account (docs/reference/authentication.md#budgets).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use domain::budget::{Budget, BudgetOwner, BudgetState, violations};
use domain::id::AccountUid;
use uuid::Uuid;

use crate::{Error, Result};

/// Replaces the budgets of a token of the account, in force for its next start, and writes that into the audit. Returns them with what is
/// spent.
///
/// # Errors
///
/// The rules of budgets, and [`Error::NotFound`].
pub async fn set_for_token(
    conn: &mut PgConnection,
    actor: &Actor,
    account: &AccountUid,
    token: Uuid,
    budgets: &[Budget],
) -> Result<Vec<BudgetState>> {
    check(budgets)?;
    if !db::tokens::exists(conn, account, token).await? {
        return Err(Error::NotFound("token"));
    }
    db::budgets::set(conn, account, Some(token), budgets).await?;
    let event = Event::TokenLimits { token, budgets: budgets.to_vec() };
    audit::write(conn, actor, Some(account), &event).await?;
    let mut set = db::budgets::of_each(conn, account, &[token], BudgetOwner::Token).await?;
    Ok(set.remove(&token).unwrap_or_default())
}

/// Replaces the budgets of an app of the account that has not ended, as [`set_for_token`] does those of a token.
///
/// # Errors
///
/// The rules of budgets, and [`Error::NotFound`].
pub async fn set_for_app(
    conn: &mut PgConnection,
    actor: &Actor,
    account: &AccountUid,
    app: Uuid,
    budgets: &[Budget],
) -> Result<Vec<BudgetState>> {
    check(budgets)?;
    if !db::oauth::exists(conn, account, app).await? {
        return Err(Error::NotFound("app"));
    }
    db::budgets::set(conn, account, Some(app), budgets).await?;
    let event = Event::AppLimits { app, budgets: budgets.to_vec() };
    audit::write(conn, actor, Some(account), &event).await?;
    let mut set = db::budgets::of_each(conn, account, &[app], BudgetOwner::App).await?;
    Ok(set.remove(&app).unwrap_or_default())
}

/// Replaces the budgets of the account itself, in force for its next start, and writes that into the audit.
///
/// # Errors
///
/// The rules of budgets.
pub async fn set_for_account(
    conn: &mut PgConnection,
    actor: &Actor,
    account: &AccountUid,
    budgets: &[Budget],
) -> Result<()> {
    check(budgets)?;
    db::budgets::set(conn, account, None, budgets).await?;
    let event = Event::AccountBudget { budgets: budgets.to_vec() };
    Ok(audit::write(conn, actor, Some(account), &event).await?)
}

pub(crate) fn check(budgets: &[Budget]) -> Result<()> {
    let violations = violations(budgets);
    if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
}
