//! Storage quotas of accounts and the bytes that they use.
//!
//! **Guarantee.** Transactions that call [`hold`] never exceed an account's quota together. **Mechanism.** Triggers count
//! assets and videos in `account_storage`. `hold` locks that row if there is a quota, so that the second of two transactions
//! sees what the first stored. In the lock order the row comes between the canvas and the blobs. Without a quota nothing waits.

use domain::id::AccountUid;
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// Stored bytes of an account and its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Bytes that its assets and videos use.
    pub bytes: i64,
    /// Quota in bytes; 0: no limit.
    pub max: i64,
}

impl Storage {
    /// Returns `true` if `more` bytes may be stored in addition.
    pub fn admits(self, more: i64) -> bool {
        self.max == 0 || self.bytes.saturating_add(more) <= self.max
    }
}

/// Reads what an account stores at the moment; `default_max` applies if it has no quota of its own. `None`: there is no
/// account.
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

/// Like [`get`], for a transaction that is about to store something: the result stays true until it ends.
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

/// Sets an account's own quota, 0 for no limit, or restores the operator's default.
#[instrument(skip_all, name = "db.storage.set_max")]
pub async fn set_max(conn: &mut PgConnection, account: &AccountUid, max: Option<i64>) -> Result<()> {
    sqlx::query!("UPDATE accounts SET storage_max = $2 WHERE uid = $1", account.as_str(), max).execute(conn).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
