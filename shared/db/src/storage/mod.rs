//! Storage quotas of accounts and the bytes that they use.
//!
//! **Guarantee.** Transactions that call [`hold`] never exceed an account's quota together. **Mechanism.** Triggers count assets,
//! videos and canvases in `account_storage`, canvases in steps of 64 KiB. `hold` locks that row if there is a quota, so that the
//! second of two transactions sees what the first stored. In the lock order the row comes between the canvas and the blobs. Without
//! a quota nothing waits. The quota of an account without its own is that of the pool ([`connect`](crate::pool::connect)).

use domain::id::AccountUid;
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;

/// Stored bytes of an account and its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Bytes that its assets, videos and canvases use.
    pub bytes: i64,
    /// Quota in bytes; 0: no limit.
    pub max: i64,
}

/// Reads what an account stores at the moment. `None`: there is no account.
#[instrument(skip_all, name = "db.storage.get")]
pub async fn get(conn: &mut PgConnection, account: &AccountUid) -> Result<Option<Storage>> {
    let storage = sqlx::query_as!(
        Storage,
        r#"SELECT coalesce(s.bytes, 0) AS "bytes!", storage_limit(a) AS "max!"
           FROM accounts a LEFT JOIN account_storage s ON s.account_uid = a.uid WHERE a.uid = $1"#,
        account.as_str(),
    );
    Ok(storage.fetch_optional(conn).await?)
}

/// Asks whether an account may store `more` bytes. Returns its storage if not.
#[instrument(skip_all, name = "db.storage.look")]
pub async fn look(conn: &mut PgConnection, account: &AccountUid, more: i64) -> Result<Option<Storage>> {
    admit(conn, account, more, false).await
}

/// [`look`], for a transaction that is about to store them: the answer stays true until it ends.
#[instrument(skip_all, name = "db.storage.hold")]
pub async fn hold(conn: &mut PgConnection, account: &AccountUid, more: i64) -> Result<Option<Storage>> {
    admit(conn, account, more, true).await
}

async fn admit(conn: &mut PgConnection, account: &AccountUid, more: i64, hold: bool) -> Result<Option<Storage>> {
    let full = sqlx::query_as!(
        Storage,
        r#"SELECT bytes AS "bytes!", max AS "max!" FROM admit_storage($1, $2, $3) WHERE NOT is_admitted"#,
        account.as_str(),
        more,
        hold,
    );
    Ok(full.fetch_optional(conn).await?)
}

/// Sets an account's own quota, 0 for no limit, or restores the operator's default.
#[instrument(skip_all, name = "db.storage.set_max")]
pub async fn set_max(conn: &mut PgConnection, account: &AccountUid, max: Option<i64>) -> Result<()> {
    sqlx::query!("UPDATE accounts SET storage_max = $2, storage_from = NULL WHERE uid = $1", account.as_str(), max)
        .execute(conn)
        .await?;
    Ok(())
}

/// The kinds of what an account stores, in bytes as they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Images, as they are served.
    pub assets: i64,
    /// Files of images as they were uploaded, which are kept for their private metadata.
    pub originals: i64,
    /// Videos of kept jobs.
    pub videos: i64,
    /// Canvases with their changes and undoable deletions.
    pub canvases: i64,
}

/// Measures what an account stores, from its rows.
#[instrument(skip_all, name = "db.storage.parts")]
pub async fn parts(conn: &mut PgConnection, account: &AccountUid) -> Result<Parts> {
    let parts = sqlx::query_as!(
        Parts,
        r#"SELECT coalesce(sum(asset_counted(bytes, NULL)), 0)::bigint AS "assets!",
                  coalesce(sum(asset_counted(bytes, original_bytes) - asset_counted(bytes, NULL)), 0)::bigint AS "originals!",
                  (SELECT coalesce(sum(b.bytes), 0)::bigint FROM jobs j JOIN blobs b ON b.key = j.video_blob
                   WHERE j.account_uid = $1) AS "videos!",
                  (SELECT coalesce(sum(counted), 0)::bigint FROM canvases WHERE owner_uid = $1) AS "canvases!"
           FROM assets WHERE owner_uid = $1"#,
        account.as_str(),
    );
    Ok(parts.fetch_one(conn).await?)
}

/// Measures at most `limit` canvases with keys after `after` again, of one account or of all. Returns the last key, or `None` when
/// there are no more canvases. The transaction locks them until it ends, since a sum is right only while nobody writes.
#[instrument(skip_all, name = "db.storage.recount_canvases")]
pub async fn recount_canvases(
    conn: &mut PgConnection,
    account: Option<&AccountUid>,
    after: i64,
    limit: i64,
) -> Result<Option<i64>> {
    let keys = sqlx::query_scalar!(
        "SELECT key FROM canvases WHERE key > $1 AND ($2::text IS NULL OR owner_uid = $2) ORDER BY key LIMIT $3 FOR UPDATE",
        after,
        account.map(AccountUid::as_str),
        limit,
    );
    let keys = keys.fetch_all(&mut *conn).await?;
    // The trigger counts each, also one that was not counted yet.
    sqlx::query!(
        "UPDATE canvases c SET history_bytes =
             (SELECT coalesce(sum(bytes), 0) FROM canvas_changes WHERE canvas_key = c.key)
             + (SELECT coalesce(sum(bytes), 0) FROM deleted_nodes WHERE canvas_key = c.key)
             + (SELECT coalesce(sum(bytes), 0) FROM deleted_connections WHERE canvas_key = c.key)
         WHERE key = ANY($1)",
        &keys
    )
    .execute(conn)
    .await?;
    Ok(keys.last().copied())
}

/// Sets the counter of an account to what its rows come to. Returns what was added. The lock keeps out of the sum what commits
/// later and adds itself.
#[instrument(skip_all, name = "db.storage.recount")]
pub async fn recount(conn: &mut PgConnection, account: &AccountUid) -> Result<i64> {
    let before = sqlx::query_scalar!(
        "INSERT INTO account_storage AS s (account_uid, bytes) VALUES ($1, 0)
         ON CONFLICT (account_uid) DO UPDATE SET bytes = s.bytes RETURNING bytes",
        account.as_str()
    );
    let before = before.fetch_one(&mut *conn).await?;
    let Parts { assets, originals, videos, canvases } = parts(conn, account).await?;
    let now = assets + originals + videos + canvases;
    sqlx::query!("UPDATE account_storage SET bytes = $2 WHERE account_uid = $1", account.as_str(), now)
        .execute(conn)
        .await?;
    Ok(now - before)
}

/// Lists at most `limit` accounts that were not purged, with uids after `after`.
#[instrument(skip_all, name = "db.storage.accounts")]
pub async fn accounts(conn: &mut PgConnection, after: &str, limit: i64) -> Result<Vec<AccountUid>> {
    let uids = sqlx::query_scalar!(
        "SELECT uid FROM accounts WHERE uid > $1 AND purged_at IS NULL ORDER BY uid LIMIT $2",
        after,
        limit
    );
    Ok(uids.fetch_all(conn).await?.into_iter().map(AccountUid::from_stored).collect())
}

#[cfg(test)]
mod tests;
