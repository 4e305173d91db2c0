//! Saved connections to third-party providers (docs/reference/models.md#connections).
//!
//! **Guarantee.** A connection belongs to one account: every function that returns one to a request takes the account. Its key
//! is encrypted whenever it enters or leaves this module. Replacing a key keeps the connection's id, and with it every model key
//! that derives from the id.

use domain::Timestamp;
use domain::id::AccountUid;
use domain::model::ProviderKind;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

pub use sealed::{SealedKey, next_to_rewrap, sealed_counts, store_reencrypted};

use crate::Result;
use crate::error::known;

mod sealed;

/// A connection without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Id of the connection.
    pub id: Uuid,
    pub provider: ProviderKind,
    /// Name, unique within account and provider.
    pub name: String,
    /// Base URL of the provider, if the operator set one.
    pub base_url: Option<String>,
    /// The key in masked form, as responses show it.
    pub masked_key: String,
    /// When the connection was first saved. Orders the models of connections (docs/reference/models.md#model-order).
    pub created_at: Timestamp,
}

/// The data that a call through a connection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub provider: ProviderKind,
    /// Base URL of the provider, if the operator set one.
    pub base_url: Option<String>,
    /// The key, encrypted under the context that [`context`] returns.
    pub sealed_key: String,
}

/// A connection to save.
#[derive(Clone, Debug)]
pub struct NewConnection<'a> {
    /// The account that owns it.
    pub account: &'a AccountUid,
    /// The third-party provider.
    pub provider: ProviderKind,
    /// Name, which identifies the connection together with account and provider.
    pub name: &'a str,
    /// Change of the base URL.
    pub base_url: BaseUrl<'a>,
    /// The key in masked form, as responses show it.
    pub masked_key: &'a str,
}

/// Change of the base URL of a connection, which operators set, by a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseUrl<'a> {
    /// An existing connection keeps its base URL; a new one has none.
    Keep,
    /// The connection gets this base URL, or none.
    Set(Option<&'a str>),
}

/// The context that a connection's key is encrypted under.
pub fn context(id: Uuid) -> String {
    format!("connection:{id}")
}

/// A connection that was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedConnection {
    /// Id of the connection.
    pub id: Uuid,
    /// `true` if it is new. Otherwise the key of an existing one was replaced.
    pub is_new: bool,
}

/// Number of an account's connections.
#[instrument(skip_all, name = "db.connection.count")]
pub async fn count(conn: &mut PgConnection, account: &AccountUid) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM provider_connections WHERE account_uid = $1"#,
        account.as_str()
    );
    Ok(count.fetch_one(conn).await?)
}

/// Saves a connection, or replaces key and base URL of the existing one with the same account, provider and name, which keeps its
/// id. `encrypt` encrypts the key under the [`context`] that it receives. The caller's transaction holds
/// the account's lock ([`accounts::lock`](crate::accounts::lock)), so that two concurrent calls cannot encrypt for different ids.
#[instrument(skip_all, name = "db.connection.save")]
pub async fn save(
    conn: &mut PgConnection,
    new: &NewConnection<'_>,
    encrypt: impl FnOnce(&str) -> String,
) -> Result<SavedConnection> {
    let known = sqlx::query_scalar!(
        "SELECT id FROM provider_connections WHERE account_uid = $1 AND provider = $2 AND name = $3",
        new.account.as_str(),
        new.provider.as_str(),
        new.name,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let id = known.unwrap_or_else(Uuid::now_v7);
    sqlx::query!(
        "INSERT INTO provider_connections (id, account_uid, provider, name, base_url, sealed_key, masked_key)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE
         SET base_url = CASE WHEN $8 THEN provider_connections.base_url ELSE excluded.base_url END,
             sealed_key = excluded.sealed_key, masked_key = excluded.masked_key, updated_at = now()",
        id,
        new.account.as_str(),
        new.provider.as_str(),
        new.name,
        match new.base_url {
            BaseUrl::Keep => None,
            BaseUrl::Set(url) => url,
        },
        encrypt(&context(id)),
        new.masked_key,
        new.base_url == BaseUrl::Keep,
    )
    .execute(conn)
    .await?;
    Ok(SavedConnection { id, is_new: known.is_none() })
}

/// Lists the account's connections, oldest first.
#[instrument(skip_all, name = "db.connection.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Connection>> {
    let rows = sqlx::query_as!(
        ProviderConnectionRow,
        "SELECT id, provider, name, base_url, masked_key, created_at FROM provider_connections
         WHERE account_uid = $1 ORDER BY created_at, id",
        account.as_str(),
    )
    .fetch_all(conn)
    .await?;
    // During an upgrade, a process of the next release may save a connection of a kind that this one does not know.
    Ok(rows.into_iter().filter_map(ProviderConnectionRow::connection).collect())
}

/// Reads what a call through the account's connection needs. `None` when the account does not have this connection, or no longer.
#[instrument(skip_all, name = "db.connection.credentials")]
pub async fn credentials(conn: &mut PgConnection, account: &AccountUid, id: Uuid) -> Result<Option<Credentials>> {
    let row = sqlx::query!(
        "SELECT provider, base_url, sealed_key FROM provider_connections WHERE account_uid = $1 AND id = $2",
        account.as_str(),
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let provider = known("provider_connections.provider", &row.provider)?;
        Ok(Credentials { provider, base_url: row.base_url, sealed_key: row.sealed_key })
    })
    .transpose()
}

/// Deletes a connection, of `account` if one is named. Returns the account that it was of. Jobs that use it fail at their next call.
#[instrument(skip_all, name = "db.connection.delete")]
pub async fn delete(conn: &mut PgConnection, id: Uuid, account: Option<&AccountUid>) -> Result<Option<AccountUid>> {
    let deleted = sqlx::query_scalar!(
        "DELETE FROM provider_connections WHERE id = $1 AND ($2::text IS NULL OR account_uid = $2) RETURNING account_uid",
        id,
        account.map(AccountUid::as_str)
    );
    Ok(deleted.fetch_optional(conn).await?.map(AccountUid::from_stored))
}

struct ProviderConnectionRow {
    id: Uuid,
    provider: String,
    name: String,
    base_url: Option<String>,
    masked_key: String,
    created_at: DateTime<Utc>,
}

impl ProviderConnectionRow {
    /// `None` when this process does not know the provider.
    fn connection(self) -> Option<Connection> {
        Some(Connection {
            id: self.id,
            provider: self.provider.parse().ok()?,
            name: self.name,
            base_url: self.base_url,
            masked_key: self.masked_key,
            created_at: self.created_at.into(),
        })
    }
}

#[cfg(test)]
mod tests;
