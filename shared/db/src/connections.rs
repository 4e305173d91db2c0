//! Saved connections to third-party providers (decisions 2.4, 12).
//!
//! **Guarantee.** A connection is its account's alone: every function that gives one to a request takes the account. Its
//! key stands here sealed and leaves only sealed; replacing it keeps the id, and with it every model key that derives from
//! the id (decisions 12.3).

use domain::Timestamp;
use domain::id::AccountUid;
use domain::model::ProviderKind;
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

pub use sealed::{SealedKey, next_to_rewrap, sealed_counts, store_resealed};

use crate::Result;
use crate::error::known;

mod sealed;

/// A connection without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Its id.
    pub id: Uuid,
    /// Whose API it is.
    pub provider: ProviderKind,
    /// For people; unique for the account and provider.
    pub name: String,
    /// The operator's own address of that API.
    pub base_url: Option<String>,
    /// The key as it may be shown.
    pub masked_key: String,
    /// When it was saved first: its place in the order of decisions 10.5.
    pub created_at: Timestamp,
}

/// What a call with a connection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Whose API it is.
    pub provider: ProviderKind,
    /// The operator's own address of that API.
    pub base_url: Option<String>,
    /// The key, sealed in the context that [`context`] names.
    pub sealed_key: String,
}

/// A connection to save.
#[derive(Clone, Debug)]
pub struct NewConnection<'a> {
    /// Whose it is.
    pub account: &'a AccountUid,
    /// Whose API it is; a third party's.
    pub provider: ProviderKind,
    /// With account and provider it names the connection.
    pub name: &'a str,
    /// The operator's own address of that API.
    pub base_url: Option<&'a str>,
    /// The key as it may be shown.
    pub masked_key: &'a str,
}

/// The context that a connection's key is sealed in.
pub fn context(id: Uuid) -> String {
    format!("connection:{id}")
}

/// Saves a connection, or replaces key and address of the one of the same account, provider and name; the id, which an
/// existing one keeps. `seal` seals the key in the [`context`] that it is given. In a transaction that holds the account
/// ([`accounts::lock`](crate::accounts::lock)), so that two at once cannot seal for different ids.
#[instrument(skip_all, name = "db.connection.save")]
pub async fn save(conn: &mut PgConnection, new: &NewConnection<'_>, seal: impl FnOnce(&str) -> String) -> Result<Uuid> {
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
         SET base_url = excluded.base_url, sealed_key = excluded.sealed_key, masked_key = excluded.masked_key,
             updated_at = now()",
        id,
        new.account.as_str(),
        new.provider.as_str(),
        new.name,
        new.base_url,
        seal(&context(id)),
        new.masked_key,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// The account's connections, the oldest first.
#[instrument(skip_all, name = "db.connection.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Connection>> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, provider, name, base_url, masked_key, created_at FROM provider_connections
         WHERE account_uid = $1 ORDER BY created_at, id",
        account.as_str(),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::connection).collect()
}

/// What a call with the account's connection needs; `None` when it has none of this id (any more).
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

/// Deletes a connection, whosesoever; whether there was one. Jobs that run with it fail at their next call.
#[instrument(skip_all, name = "db.connection.delete")]
pub async fn delete(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    let done = sqlx::query!("DELETE FROM provider_connections WHERE id = $1", id).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}

struct Row {
    id: Uuid,
    provider: String,
    name: String,
    base_url: Option<String>,
    masked_key: String,
    created_at: DateTime<Utc>,
}

impl Row {
    fn connection(self) -> Result<Connection> {
        Ok(Connection {
            id: self.id,
            provider: known("provider_connections.provider", &self.provider)?,
            name: self.name,
            base_url: self.base_url,
            masked_key: self.masked_key,
            created_at: self.created_at.into(),
        })
    }
}

#[cfg(test)]
mod tests;
