//! Permanent removal of an asset, a canvas or an account.
//!
//! **Guarantee.** Nothing that unfinished work uses is removed: a start and a purge lock the same row (the canvas, the
//! account), and the second sees what the first did. **What stays**: blobs, until the sweeper finds that nothing refers to
//! them; other accounts' copies of what was on the purged account's canvases, and handles of removed records; and the account's
//! uid and ledger, which explains balances and contains no names.

use domain::id::{AccountUid, AssetHandle, CanvasHandle, CanvasId, NodeId};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;

/// Unfinished work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    /// Id of the job or Recipe run.
    pub id: Uuid,
    /// `true` if it is a Recipe run, whose jobs belong to it.
    pub is_recipe: bool,
    /// The account that started it.
    pub account: AccountUid,
}

/// Lists the unfinished work of an account, including jobs of Recipe runs, which may outlast their run.
#[instrument(skip_all, name = "db.purge.active_of_account")]
pub async fn active_of_account(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Active>> {
    let rows = sqlx::query!(
        r#"SELECT id AS "id!", false AS "is_recipe!" FROM jobs
           WHERE account_uid = $1 AND completed_at IS NULL
           UNION ALL
           SELECT id, true FROM recipe_runs WHERE account_uid = $1 AND status IN ('queued', 'running')
           ORDER BY 2 DESC, 1"#,
        account.as_str()
    )
    .fetch_all(conn)
    .await?;
    let active = |id, is_recipe| Active { id, is_recipe, account: account.clone() };
    Ok(rows.into_iter().map(|row| active(row.id, row.is_recipe)).collect())
}

/// Lists the unfinished work on a canvas, of any account.
#[instrument(skip_all, name = "db.purge.active_on_canvas")]
pub async fn active_on_canvas(conn: &mut PgConnection, canvas_key: i64) -> Result<Vec<Active>> {
    let rows = sqlx::query!(
        r#"SELECT id AS "id!", false AS "is_recipe!", account_uid AS "account_uid!" FROM jobs
           WHERE canvas_key = $1 AND completed_at IS NULL
           UNION ALL
           SELECT id, true, account_uid FROM recipe_runs WHERE canvas_key = $1 AND status IN ('queued', 'running')
           ORDER BY 2 DESC, 1"#,
        canvas_key
    )
    .fetch_all(conn)
    .await?;
    let active = |id, is_recipe, account| Active { id, is_recipe, account: AccountUid::from_stored(account) };
    Ok(rows.into_iter().map(|row| active(row.id, row.is_recipe, row.account_uid)).collect())
}

/// Returns the key of a canvas, which stays locked until the transaction ends, so that nothing is started on it meanwhile.
#[instrument(skip_all, name = "db.purge.lock_canvas")]
pub async fn lock_canvas(conn: &mut PgConnection, canvas: &CanvasHandle) -> Result<Option<i64>> {
    let key = sqlx::query_scalar!(
        "SELECT key FROM canvases WHERE owner_uid = $1 AND id = $2 FOR UPDATE",
        canvas.owner.as_str(),
        canvas.id.as_str()
    );
    Ok(key.fetch_optional(conn).await?)
}

/// Records that were removed with a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgedCanvas {
    /// Number of its nodes.
    pub nodes: i64,
    /// Number of the assets that were stored in it.
    pub assets: i64,
}

/// Deletes a canvas that the transaction has locked, with everything stored in it.
#[instrument(skip_all, name = "db.purge.canvas")]
pub async fn canvas(conn: &mut PgConnection, key: i64) -> Result<PurgedCanvas> {
    let purged = sqlx::query_as!(
        PurgedCanvas,
        r#"SELECT (SELECT count(*) FROM nodes WHERE canvas_key = $1) AS "nodes!",
                  (SELECT count(*) FROM assets WHERE canvas_key = $1) AS "assets!""#,
        key
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query!("DELETE FROM canvases WHERE key = $1", key).execute(conn).await?;
    Ok(purged)
}

/// Key and handle of any canvas of an account.
#[instrument(skip_all, name = "db.purge.next_canvas")]
pub async fn next_canvas(conn: &mut PgConnection, account: &AccountUid) -> Result<Option<(i64, CanvasHandle)>> {
    let row = sqlx::query!("SELECT key, id FROM canvases WHERE owner_uid = $1 LIMIT 1 FOR UPDATE", account.as_str());
    let canvas = |id| CanvasHandle { owner: account.clone(), id: CanvasId::from_stored(id) };
    Ok(row.fetch_optional(conn).await?.map(|row| (row.key, canvas(row.id))))
}

/// Deletes an asset. Returns its size in bytes with that of its original, or `None` when there is none. Nodes that show it keep its
/// handle, and reviews no longer count them as durable.
#[instrument(skip_all, name = "db.purge.asset")]
pub async fn asset(conn: &mut PgConnection, handle: &AssetHandle) -> Result<Option<i64>> {
    let bytes = sqlx::query_scalar!(
        r#"DELETE FROM assets WHERE owner_uid = $1 AND id = $2 RETURNING bytes + coalesce(original_bytes, 0) AS "bytes!""#,
        handle.owner.as_str(),
        handle.id.as_str()
    );
    Ok(bytes.fetch_optional(conn).await?)
}

/// The records that a removal deletes.
#[derive(Clone, Copy, Debug)]
pub enum Removed<'a> {
    Asset(&'a AssetHandle),
    /// The assets that are stored in the canvas with this key.
    AssetsOf(i64),
}

impl<'a> Removed<'a> {
    fn columns(self) -> (Option<&'a str>, Option<&'a str>, Option<i64>) {
        match self {
            Removed::Asset(handle) => (Some(handle.owner.as_str()), Some(handle.id.as_str()), None),
            Removed::AssetsOf(canvas_key) => (None, None, Some(canvas_key)),
        }
    }
}

/// Key of a canvas, and its nodes that show something.
pub type Showing = (i64, Vec<NodeId>);

/// Locks the canvases that show what is removed, in the order of their keys; without the removed canvas itself.
#[instrument(skip_all, name = "db.purge.lock_showing")]
pub async fn lock_showing(conn: &mut PgConnection, removed: Removed<'_>) -> Result<()> {
    let (owner, id, canvas_key) = removed.columns();
    sqlx::query!(
        "SELECT FROM canvases WHERE key IN (
             SELECT n.canvas_key FROM assets a JOIN nodes n ON n.asset_owner = a.owner_uid AND n.asset_id = a.id
             WHERE (a.owner_uid = $1 AND a.id = $2 OR a.canvas_key = $3) AND n.canvas_key IS DISTINCT FROM $3
         ) ORDER BY key FOR UPDATE",
        owner,
        id,
        canvas_key,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Lists the nodes that show what is removed, by canvas; without those of the removed canvas itself.
#[instrument(skip_all, name = "db.purge.showing")]
pub async fn showing(conn: &mut PgConnection, removed: Removed<'_>) -> Result<Vec<Showing>> {
    let (owner, id, canvas_key) = removed.columns();
    let rows = sqlx::query!(
        r#"SELECT n.canvas_key, array_agg(n.id ORDER BY n.id) AS "nodes!"
           FROM assets a JOIN nodes n ON n.asset_owner = a.owner_uid AND n.asset_id = a.id
           WHERE (a.owner_uid = $1 AND a.id = $2 OR a.canvas_key = $3) AND n.canvas_key IS DISTINCT FROM $3
           GROUP BY n.canvas_key ORDER BY n.canvas_key"#,
        owner,
        id,
        canvas_key,
    )
    .fetch_all(conn)
    .await?;
    let nodes = |ids: Vec<String>| ids.into_iter().map(NodeId::from_stored).collect();
    Ok(rows.into_iter().map(|row| (row.canvas_key, nodes(row.nodes))).collect())
}

/// Locks an asset, after every write that holds it ([`assets::hold`](crate::assets::hold)) has ended.
#[instrument(skip_all, name = "db.purge.lock_asset")]
pub async fn lock_asset(conn: &mut PgConnection, handle: &AssetHandle) -> Result<()> {
    let (owner, id) = (handle.owner.as_str(), handle.id.as_str());
    sqlx::query!("SELECT FROM assets WHERE owner_uid = $1 AND id = $2 FOR UPDATE", owner, id).execute(conn).await?;
    Ok(())
}

/// Removes the labels of an account from the activity of all canvases, which its own are not among any more, and from what it made of
/// the assets of others. Returns the canvases that recorded some activity, and locks them. The account must be disabled, so that it does nothing more.
#[instrument(skip_all, name = "db.purge.forget_actor")]
pub async fn forget_actor(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Showing>> {
    let uid = account.as_str();
    sqlx::query!(
        "SELECT FROM canvases WHERE key IN (
             SELECT canvas_key FROM canvas_changes WHERE activity #>> '{actor,ownerUid}' = $1
         ) ORDER BY key FOR UPDATE",
        uid
    )
    .execute(&mut *conn)
    .await?;
    let keys = sqlx::query_scalar!(
        r#"WITH forgotten AS (
               UPDATE canvas_changes SET activity = jsonb_set(activity, '{actor,label}', '"deleted account"')
               WHERE activity #>> '{actor,ownerUid}' = $1 RETURNING canvas_key
           ) SELECT DISTINCT canvas_key AS "key!" FROM forgotten ORDER BY 1"#,
        uid
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!(
        r#"UPDATE assets SET made = jsonb_set(made, '{by,label}', '"deleted account"')
           WHERE made #>> '{by,ownerUid}' = $1 AND owner_uid <> $1"#,
        uid
    )
    .execute(conn)
    .await?;
    Ok(keys.into_iter().map(|key| (key, Vec::new())).collect())
}

/// Records that were removed with an account, apart from its canvases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgedAccount {
    /// Number of its tokens.
    pub tokens: u64,
    /// Number of its saved connections.
    pub connections: u64,
    /// Number of its own assets.
    pub assets: u64,
    /// Number of records of its jobs and runs.
    pub runs: u64,
}

/// Deletes everything of an account without canvases and unfinished work. The transaction has locked its row, which is blanked:
/// it is not found anymore, and its email may be used again.
#[instrument(skip_all, name = "db.purge.account")]
pub async fn account(conn: &mut PgConnection, account: &AccountUid) -> Result<PurgedAccount> {
    let uid = account.as_str();
    // Rows that refer to tokens, jobs or nodes are deleted first.
    sqlx::query!("DELETE FROM campaigns WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM imports WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!(
        "WITH gone AS (DELETE FROM webhook_deliveries WHERE account_uid = $1 RETURNING id)
         DELETE FROM task_queue USING gone WHERE task_queue.id = gone.id",
        uid
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("DELETE FROM idempotency_keys WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    let runs = sqlx::query!("DELETE FROM recipe_runs WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    let jobs = sqlx::query!("DELETE FROM jobs WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM elements WHERE owner_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM element_collections WHERE owner_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM recipes WHERE owner_uid = $1", uid).execute(&mut *conn).await?;
    let connections =
        sqlx::query!("DELETE FROM provider_connections WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM canvas_shares WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    let assets = sqlx::query!("DELETE FROM assets WHERE owner_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM capability_links WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM set_aside WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM signin_links WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    crate::audit::forget_account(conn, account).await?;
    sqlx::query!("DELETE FROM ledger_notes WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM budgets WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM identities WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM oauth_grants WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM device_misses WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    let tokens = sqlx::query!("DELETE FROM tokens WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM account_sessions WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    // Deferred triggers would otherwise run at the commit and count for an account whose counter was deleted.
    sqlx::query!("SET CONSTRAINTS ALL IMMEDIATE").execute(&mut *conn).await?;
    sqlx::query!("DELETE FROM account_storage WHERE account_uid = $1", uid).execute(&mut *conn).await?;
    sqlx::query!(
        "UPDATE accounts SET email = 'purged:' || uid, display_name = '', enabled = false, disabled_by = NULL, storage_max = NULL,
                purged_at = now()
         WHERE uid = $1",
        uid
    )
    .execute(&mut *conn)
    .await?;
    Ok(PurgedAccount {
        tokens: tokens.rows_affected(),
        connections: connections.rows_affected(),
        assets: assets.rows_affected(),
        runs: runs.rows_affected() + jobs.rows_affected(),
    })
}
