//! Imports: their records, and how their outcomes are kept (decisions 14.2).
//!
//! **Guarantee.** One key, one import: the record is made in the transaction that takes the key, and ended in the one that
//! settles its task. An outcome that stands for nothing on a canvas frees its key when it is received ([`release`]), when
//! another request wants the key, or after ten minutes ([`sweep`]); its record outlives that moment, so that equal
//! requests that wait at once are all answered.

use domain::account::Surface;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, CanvasId};
use domain::import::{Outcome, Request};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::canvases;
use crate::error::known;

/// Minutes that an outcome is kept for its key when nobody receives it (decisions 14.2).
const KEPT_MINUTES: i32 = 10;

/// An import to be; its task has the same id.
#[derive(Clone, Copy, Debug)]
pub struct NewImport<'a> {
    /// Its id.
    pub id: Uuid,
    /// Who asks.
    pub account: &'a AccountUid,
    /// Through which token.
    pub token_id: Uuid,
    /// The canvas that is written to.
    pub canvas_key: i64,
    /// What is asked.
    pub request: &'a Request,
}

/// An import that is to be worked on.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// Who asked.
    pub actor: Actor,
    /// The canvas that is written to.
    pub canvas: CanvasHandle,
    /// What was asked.
    pub request: Request,
}

/// Records an import.
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

/// How many imports of the account are still to end, counted no further than `cap`.
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

/// The import of a task, if it is still to be worked on.
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
    /// Holds the canvas; nothing when the account may no longer write to it (decisions 3.11).
    pub async fn lock_canvas(&self, conn: &mut PgConnection) -> Result<Option<CanvasRecord>> {
        let found = canvases::lock(conn, &self.actor.owner_uid, &self.canvas).await?;
        Ok(found.filter(|(_, role)| AccessRole::may_write(*role)).map(|(record, _)| record))
    }
}

/// What came of an import of an account, if it has ended. `None`: there is none.
#[instrument(skip_all, name = "db.import.outcome")]
pub async fn outcome(conn: &mut PgConnection, id: Uuid, account: &AccountUid) -> Result<Option<Option<Outcome>>> {
    let row = sqlx::query!(
        r#"SELECT outcome AS "outcome: Json<Outcome>" FROM imports WHERE id = $1 AND account_uid = $2"#,
        id,
        account.as_str()
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| row.outcome.map(|outcome| outcome.0)))
}

/// Notes what came of an import, in the transaction that settled its task.
#[instrument(skip_all, name = "db.import.finish")]
pub async fn finish(conn: &mut PgConnection, id: Uuid, outcome: &Outcome) -> Result<()> {
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

/// Frees the key of an import that came to nothing: whoever sends it next begins anew.
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

/// Frees a key that an import holds which came to nothing; whether it is free now.
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

/// Forgets imports that came to nothing ten minutes ago, with their keys, and of the oldest successes those whose key is gone; how
/// many. Each time at most `limit` of either are looked at: keys go in the order in which they were taken, so that while the oldest
/// successes have theirs, the younger ones have, too, but for the minutes that an import may take.
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
