//! Saving connections to providers, by an operator or by the person who owns the account (docs/reference/models.md#connections).

use db::PgConnection;
use db::audit::{self, Actor, Event};
use db::connections::{self, BaseUrl, SavedConnection};
use domain::id::AccountUid;
use domain::limits::{CONNECTION_KEY_MAX, CONNECTION_NAME_MAX, CONNECTIONS_MAX};
use domain::model::{ProviderKind, masked};
use domain::problem::ErrorReason;
use service::config::Secret;
use service::keys::KeyRing;
use uuid::Uuid;

use crate::{Error, Result};

/// A connection to save.
#[derive(Debug)]
pub struct NewConnection {
    /// The provider; never `managed`.
    pub provider: ProviderKind,
    /// Name, which identifies the connection together with account and provider.
    pub name: String,
    /// The provider's API key.
    pub key: Secret,
}

/// Why a name cannot be that of a connection, if it cannot.
pub fn wrong_name(name: &str) -> Option<String> {
    let is_wrong =
        name.trim().is_empty() || name.chars().count() > CONNECTION_NAME_MAX || name.chars().any(char::is_control);
    is_wrong.then(|| {
        format!("must have 1 to {CONNECTION_NAME_MAX} characters, not all white space, none a control character")
    })
}

/// Why a text cannot be an API key, if it cannot: keys are sent in a header.
pub fn wrong_key(key: &str) -> Option<String> {
    let is_wrong = key.is_empty() || key.len() > CONNECTION_KEY_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic());
    is_wrong.then(|| format!("must be 1 to {CONNECTION_KEY_MAX} visible ASCII characters"))
}

/// Saves a connection, or replaces the key of the existing one with the same account, provider and name. Returns it with the masked
/// key. The caller has checked name and key.
///
/// # Errors
///
/// A conflict when the account has the maximum number of connections; then the transaction must be dropped.
pub async fn save(
    conn: &mut PgConnection,
    actor: &Actor,
    ring: &KeyRing,
    account: &AccountUid,
    new: &NewConnection,
    base_url: BaseUrl<'_>,
) -> Result<(SavedConnection, String)> {
    let masked_key = masked(new.key.expose());
    let connection = connections::NewConnection {
        account,
        provider: new.provider,
        name: &new.name,
        base_url,
        masked_key: &masked_key,
    };
    db::accounts::lock(conn, account).await?;
    let encrypt = |context: &str| ring.encrypt(context, new.key.expose().as_bytes());
    let saved = connections::save(conn, &connection, encrypt).await?;
    if saved.is_new && connections::count(conn, account).await? > CONNECTIONS_MAX {
        return Err(Error::Conflict(
            ErrorReason::State,
            "the account already has 100 saved connections; delete one first",
        ));
    }
    let event = Event::ConnectionSaved { connection: saved.id, provider: new.provider };
    audit::write(conn, actor, Some(account), &event).await?;
    Ok((saved, masked_key))
}

/// Deletes a connection, of `account` if one is named, and its key.
///
/// # Errors
///
/// [`Error::NotFound`] when there is no such connection.
pub async fn delete(conn: &mut PgConnection, actor: &Actor, id: Uuid, account: Option<&AccountUid>) -> Result<()> {
    let deleted = connections::delete(conn, id, account).await?.ok_or(Error::NotFound("connection"))?;
    audit::write(conn, actor, Some(&deleted), &Event::ConnectionDeleted { connection: id }).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_80_characters() {
        for good in ["n", &"ü".repeat(80), " n "] {
            assert_eq!(wrong_name(good), None, "{good:?}");
        }
        for wrong in ["", "  ", "a\nb", &"n".repeat(81)] {
            assert!(wrong_name(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn a_key_can_be_sent_in_a_header() {
        for good in ["k", "sk-0123_~!", &"k".repeat(4096)] {
            assert_eq!(wrong_key(good), None, "{good:?}");
        }
        for wrong in ["", "a b", "a\n", "ü", &"k".repeat(4097)] {
            assert!(wrong_key(wrong).is_some(), "{wrong:?}");
        }
    }
}
