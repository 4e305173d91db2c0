//! Creating agent tokens, by an operator or by the person who owns the account (docs/reference/authentication.md#tokens).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use db::tokens::{Revoked, TokenCreated, TokenRow};
use domain::Violation;
use domain::account::{Scopes, Surface, TokenKind};
use domain::budget::{self, Budget};
use domain::id::AccountUid;
use domain::limits::{TOKEN_EXPIRY_DAYS_MAX, TOKEN_LABEL_MAX};
use domain::problem::ErrorReason;
use service::keys::DerivedKeys;
use uuid::Uuid;

use crate::{Error, Result};

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Label under which its activity is recorded.
    pub label: String,
    /// The scopes that it grants.
    pub scopes: Scopes,
    /// Kind of client that will use it.
    pub surface: Surface,
    /// Days until it expires; `None`: it does not expire.
    pub expires_days: Option<u32>,
    /// What it may spend.
    pub budgets: Vec<Budget>,
}

impl NewToken {
    /// Every rule that the token breaks.
    pub fn violations(&self) -> Vec<Violation> {
        let label = self.label.chars().count();
        let label = (!(1..=TOKEN_LABEL_MAX).contains(&label) || self.label.contains('\0'))
            .then(|| Violation::new("label", format!("must have 1 to {TOKEN_LABEL_MAX} characters")));
        let days = self.expires_days.filter(|days| !(1..=TOKEN_EXPIRY_DAYS_MAX).contains(days));
        let days =
            days.map(|_| Violation::new("expiresDays", format!("must be a number from 1 to {TOKEN_EXPIRY_DAYS_MAX}")));
        label
            .into_iter()
            .chain(lacking_scope(self.scopes))
            .chain(days)
            .chain(budget::violations(&self.budgets))
            .collect()
    }
}

/// The violation of scopes that are empty, or of which one needs another that is not among them.
pub fn lacking_scope(scopes: Scopes) -> Option<Violation> {
    let message = match scopes.lacking_dependency() {
        Some((scope, needed)) => format!("{scope} requires {needed}"),
        None if scopes.is_empty() => "must not be empty".to_owned(),
        None => return None,
    };
    Some(Violation::new("scopes", message))
}

/// Creates a token, and writes that into the audit. Returns it with the bearer token, which is not stored and cannot be shown again.
///
/// # Errors
///
/// The rules of the token, and a conflict when the account has the maximum number of active tokens.
pub async fn create(
    conn: &mut PgConnection,
    actor: &Actor,
    keys: &DerivedKeys,
    account: &AccountUid,
    new: &NewToken,
) -> Result<(TokenRow, String)> {
    let violations = new.violations();
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let (id, secret) = (Uuid::now_v7(), service::random::token_secret());
    let token = db::tokens::NewToken {
        id,
        account,
        label: &new.label,
        scopes: new.scopes,
        surface: new.surface,
        secret_hash: &keys.token_hash(&secret),
        expires_days: new.expires_days,
    };
    let TokenCreated::Done(mut row) = db::tokens::create(conn, &token).await? else {
        return Err(Error::Conflict(ErrorReason::State, "the account already has 20 active tokens; revoke one first"));
    };
    if !new.budgets.is_empty() {
        row.budgets = crate::budget::set_for_token(conn, actor, account, id, &new.budgets).await?;
    }
    let scopes = row.scopes.iter().collect();
    let event = Event::TokenCreated { token: id, scopes, surface: row.surface, expires_at: row.expires_at };
    audit::write(conn, actor, Some(account), &event).await?;
    Ok((row, format!("cba_{id}.{secret}")))
}

/// Revokes a token, of `account` if one is named, for good. Revoking it again changes nothing. The caller announces that access ended.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such token.
pub async fn revoke(
    conn: &mut PgConnection,
    actor: &Actor,
    token: Uuid,
    account: Option<&AccountUid>,
) -> Result<Revoked> {
    let revoked = db::tokens::revoke(conn, TokenKind::Agent, token, account).await?.ok_or(Error::NotFound("token"))?;
    if revoked.is_new {
        audit::write(conn, actor, Some(&revoked.account), &Event::TokenRevoked { token }).await?;
    }
    Ok(revoked)
}

#[cfg(test)]
mod tests {
    use domain::account::Scope;

    use super::*;

    fn fields(label: &str, scopes: &[Scope], expires_days: Option<u32>) -> Vec<String> {
        let scopes = Scopes::from_slice(scopes);
        let label = label.to_owned();
        let new = NewToken { label, scopes, surface: Surface::Api, expires_days, budgets: Vec::new() };
        new.violations().into_iter().map(|violation| violation.field).collect()
    }

    const READ: &[Scope] = &[Scope::CanvasRead];

    #[test]
    fn a_label_has_1_to_80_characters() {
        for good in ["x", &"ü".repeat(80)] {
            assert!(fields(good, READ, None).is_empty(), "{good}");
        }
        for wrong in ["", &"x".repeat(81), "a\0"] {
            assert_eq!(fields(wrong, READ, None), ["label"], "{wrong:?}");
        }
    }

    #[test]
    fn a_token_lives_1_to_90_days() {
        for (days, good) in [(1, true), (90, true), (0, false), (91, false)] {
            assert_eq!(fields("l", READ, Some(days)).is_empty(), good, "{days}");
        }
    }

    #[test]
    fn scopes_come_with_those_that_they_need() {
        assert!(fields("l", Scope::ALL, None).is_empty());
        assert!(fields("l", &[Scope::CanvasWrite, Scope::CanvasRead], None).is_empty());
        assert_eq!(fields("l", &[Scope::CanvasWrite], None), ["scopes"]);
        assert_eq!(fields("l", &[], None), ["scopes"]);
        assert_eq!(fields("", &[], Some(0)), ["label", "scopes", "expiresDays"], "every violation is reported");
    }
}
