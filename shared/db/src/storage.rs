//! What an account may store, and what it stores.
//!
//! **Guarantee.** With [`hold`] no two transactions together take an account over its limit. **Mechanism.** Triggers count
//! assets and videos in `account_storage`; `hold` locks that row where there is a limit, so that of two transactions the
//! second sees what the first stored. It stands between the canvas and the blobs in the order of locks (decisions 3.7). Where
//! there is no limit nobody waits.

use domain::id::AccountUid;
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// Bytes of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// What its assets and videos take.
    pub bytes: i64,
    /// What they may take; 0: no limit.
    pub max: i64,
}

impl Storage {
    /// Whether so many bytes more may be stored.
    pub fn admits(self, more: i64) -> bool {
        self.max == 0 || self.bytes.saturating_add(more) <= self.max
    }
}

/// What an account stores at the moment; `default_max` holds where it has no limit of its own. `None`: there is no account.
#[instrument(skip_all, name = "db.storage.get")]
pub async fn get(conn: &mut PgConnection, account: &AccountUid, default_max: i64) -> Result<Option<Storage>> {
    let storage = sqlx::query_as!(
        Storage,
        r#"SELECT coalesce(s.bytes, 0) AS "bytes!", coalesce(a.storage_max, $2) AS "max!"
           FROM accounts a LEFT JOIN account_storage s ON s.account_uid = a.uid WHERE a.uid = $1"#,
        account.as_str(),
        default_max,
    );
    Ok(storage.fetch_optional(conn).await?)
}

/// The same for a transaction that is about to store something: what it sees stays true until it ends.
#[instrument(skip_all, name = "db.storage.hold")]
pub async fn hold(conn: &mut PgConnection, account: &AccountUid, default_max: i64) -> Result<Storage> {
    let storage = sqlx::query_as!(
        Storage,
        r#"WITH account AS (
               SELECT uid, coalesce(storage_max, $2) AS max FROM accounts WHERE uid = $1
           ), held AS (
               INSERT INTO account_storage AS s (account_uid, bytes) SELECT uid, 0 FROM account WHERE max > 0
               ON CONFLICT (account_uid) DO UPDATE SET bytes = s.bytes RETURNING bytes
           )
           SELECT coalesce((SELECT bytes FROM held), 0) AS "bytes!", max AS "max!" FROM account"#,
        account.as_str(),
        default_max,
    );
    Ok(storage.fetch_one(conn).await?)
}

/// Gives an account a limit of its own, 0 for none, or the operator's default again.
#[instrument(skip_all, name = "db.storage.set_max")]
pub async fn set_max(conn: &mut PgConnection, account: &AccountUid, max: Option<i64>) -> Result<()> {
    sqlx::query!("UPDATE accounts SET storage_max = $2 WHERE uid = $1", account.as_str(), max).execute(conn).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
