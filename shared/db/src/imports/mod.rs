//! Imports: their records and the retention of their outcomes (docs/reference/imports.md#idempotency-of-imports).
//!
//! **Guarantee.** One key stands for one import. The record is inserted in the transaction that takes the key, and ended in the
//! transaction that settles its task. An outcome without a result on a canvas frees its key when it is received ([`release`]),
//! when another request wants the key, or after ten minutes ([`sweep`]). The record outlives the key, so that equal requests
//! that wait at the same time all get the outcome.

use domain::account::Surface;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::import::{ImportOutcome, Request};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::canvases;
use crate::error::known;

/// Minutes that an outcome keeps its key when no client receives it.
const KEPT_MINUTES: i32 = 10;

/// An import to insert. Its task has the same id.
#[derive(Clone, Copy, Debug)]
pub struct NewImport<'a> {
    /// Id of the import.
    pub id: Uuid,
    /// The account that requests it.
    pub account: &'a AccountUid,
    /// Id of the token that requests it.
    pub token_id: Uuid,
    /// Key of the canvas that it writes to.
    pub canvas_key: i64,
    pub request: &'a Request,
}

/// An import to work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The actor that requested it.
    pub actor: Actor,
    /// The canvas that it writes to.
    pub canvas: CanvasHandle,
    pub request: Request,
}

#[instrument(skip_all, name = "db.import.insert")]
pub async fn insert(conn: &mut PgConnection, import: &NewImport<'_>) -> Result<()> {
    sqlx::query!(
        "INSERT INTO imports (id, account_uid, token_id, canvas_key, request) VALUES ($1, $2, $3, $4, $5)",
        import.id,
        import.account.as_str(),
        import.token_id,
        import.canvas_key,
        Json(import.request) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Counts the account's unfinished imports, up to `cap`.
#[instrument(skip_all, name = "db.import.count_pending")]
pub async fn count_pending(conn: &mut PgConnection, account: &AccountUid, cap: i64) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM (
               SELECT FROM imports WHERE account_uid = $1 AND state = 'pending' LIMIT $2
           ) AS pending"#,
        account.as_str(),
        cap
    );
    Ok(count.fetch_one(conn).await?)
}

/// Reads the import of a task, if it is unfinished.
#[instrument(skip_all, name = "db.import.of_task")]
pub async fn of_task(conn: &mut PgConnection, task: Uuid) -> Result<Option<Import>> {
    let row = sqlx::query!(
        r#"SELECT i.account_uid, i.request AS "request: Json<Request>", t.surface, t.label, c.owner_uid, c.id
           FROM imports i JOIN tokens t ON t.id = i.token_id JOIN canvases c ON c.key = i.canvas_key
           WHERE i.id = $1 AND i.state = 'pending'"#,
        task
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Import {
        actor: Actor {
            owner_uid: AccountUid::from_stored(row.account_uid),
            surface: known::<Surface>("tokens.surface", &row.surface)?,
            label: row.label,
        },
        canvas: CanvasHandle { owner: AccountUid::from_stored(row.owner_uid), id: CanvasId::from_stored(row.id) },
        request: row.request.0,
    }))
}

impl Import {
    /// Locks the canvas; `None` when the account may no longer write to it.
    pub async fn lock_canvas(&self, conn: &mut PgConnection) -> Result<Option<CanvasRecord>> {
        let found = canvases::lock(conn, &self.actor.owner_uid, &self.canvas).await?;
        Ok(found.filter(|(_, role)| AccessRole::may_write(*role)).map(|(record, _)| record))
    }
}

/// Reads the outcome of an account's import, if it has ended. `None`: there is no such import.
#[instrument(skip_all, name = "db.import.outcome")]
pub async fn outcome(conn: &mut PgConnection, id: Uuid, account: &AccountUid) -> Result<Option<Option<ImportOutcome>>> {
    let row = sqlx::query!(
        r#"SELECT outcome AS "outcome: Json<ImportOutcome>" FROM imports WHERE id = $1 AND account_uid = $2"#,
        id,
        account.as_str()
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| row.outcome.map(|outcome| outcome.0)))
}

/// Stores the outcome of an import, in the transaction that settled its task.
#[instrument(skip_all, name = "db.import.finish")]
pub async fn finish(conn: &mut PgConnection, id: Uuid, outcome: &ImportOutcome) -> Result<()> {
    sqlx::query!(
        "UPDATE imports SET state = $2, outcome = $3, ended_at = now() WHERE id = $1 AND state = 'pending'",
        id,
        if outcome.is_success() { "succeeded" } else { "ended" },
        Json(outcome) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Frees the key of an import that ended without a result, so that the next request with the key starts a new import.
#[instrument(skip_all, name = "db.import.release")]
pub async fn release(conn: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!(
        "DELETE FROM idempotency_keys k USING imports i WHERE i.id = $1 AND i.state = 'ended' AND k.job_id = i.id",
        id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Frees a key that belongs to an import without a result. Returns whether the key is free now.
#[instrument(skip_all, name = "db.import.release_key")]
pub(crate) async fn release_key(conn: &mut PgConnection, account: &AccountUid, key: &str) -> Result<bool> {
    let released = sqlx::query!(
        "DELETE FROM idempotency_keys k USING imports i
         WHERE k.account_uid = $1 AND k.key = $2 AND k.job_id = i.id AND i.state = 'ended'",
        account.as_str(),
        key
    )
    .execute(conn)
    .await?;
    Ok(released.rows_affected() == 1)
}

/// Deletes imports that ended without a result ten minutes ago or earlier, with their keys, and the oldest successes whose key
/// was deleted. Returns the number deleted. Each call reads at most `limit` of either. Keys are deleted in the order in which
/// they were taken, so while the oldest successes have keys, all younger ones do, too, apart from the minutes that an import
/// may take.
#[instrument(skip_all, name = "db.import.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "WITH failed AS MATERIALIZED (
             SELECT id FROM imports WHERE state = 'ended' AND ended_at < now() - make_interval(mins => $1)
             ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
         ), oldest AS MATERIALIZED (
             SELECT id FROM imports
             WHERE state <> 'pending' AND state = 'succeeded' AND ended_at < now() - make_interval(mins => $1)
             ORDER BY ended_at LIMIT $2
         ), keyless AS MATERIALIZED (
             SELECT i.id FROM oldest JOIN imports i ON i.id = oldest.id
             WHERE (SELECT true FROM idempotency_keys k WHERE k.job_id = i.id LIMIT 1) IS NULL
             FOR UPDATE OF i SKIP LOCKED
         ), freed AS (
             DELETE FROM idempotency_keys k USING failed WHERE k.job_id = failed.id
         )
         DELETE FROM imports USING (SELECT id FROM failed UNION ALL SELECT id FROM keyless) AS due WHERE imports.id = due.id",
        KEPT_MINUTES,
        limit
    )
    .execute(conn)
    .await?;
    Ok(swept.rows_affected())
}

#[cfg(test)]
mod tests;
