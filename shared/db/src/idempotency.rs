//! Idempotency keys, scoped to the account (decisions 1.12).
//!
//! A key is taken by [`take`] inside the transaction of the work it stands for: whoever takes it second waits for the
//! first to end, and then either finds its outcome or, when it was rolled back, has the key for itself. So two equal
//! requests at one moment give one effect and one replay, and a refused request consumes nothing.

use domain::id::AccountUid;
use domain::idempotency::Outcome;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::{Result, imports};

/// What a key turned out to be.
#[derive(Debug, PartialEq)]
pub enum Taken {
    /// It is the caller's; the outcome is stored with it ([`take_for`]) or has to be before the transaction ends ([`store`]).
    Fresh,
    /// An equal request took it before: its outcome.
    Replay(Outcome),
    /// Another request took it before.
    Conflict,
}

/// What an earlier request did with a key, if anything; takes nothing.
#[instrument(skip_all, name = "db.idempotency.look_up")]
pub async fn look_up(
    conn: &mut PgConnection,
    account: &AccountUid,
    key: &str,
    fingerprint: &[u8; 32],
) -> Result<Option<Taken>> {
    let row = sqlx::query!(
        r#"SELECT fingerprint, outcome AS "outcome: Json<Outcome>" FROM idempotency_keys
           WHERE account_uid = $1 AND key = $2"#,
        account.as_str(),
        key
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| match row.outcome {
        Some(outcome) if row.fingerprint == fingerprint => Taken::Replay(outcome.0),
        _ => Taken::Conflict,
    }))
}

/// Takes a key for the transaction, waiting for another one that is just taking it.
#[instrument(skip_all, name = "db.idempotency.take")]
pub async fn take(conn: &mut PgConnection, account: &AccountUid, key: &str, fingerprint: &[u8; 32]) -> Result<Taken> {
    take_row(conn, &Row { account, key, fingerprint, outcome: None, job: None }).await
}

/// [`take`] for work whose outcome is known before it is done, as its id is: it is stored with the key. `job`: the id of
/// the job or import under which the key is found when that is gone.
#[instrument(skip_all, name = "db.idempotency.take_for")]
pub async fn take_for(
    conn: &mut PgConnection,
    account: &AccountUid,
    key: &str,
    fingerprint: &[u8; 32],
    outcome: &Outcome,
    job: Option<Uuid>,
) -> Result<Taken> {
    take_row(conn, &Row { account, key, fingerprint, outcome: Some(outcome), job }).await
}

/// A key's row to be.
struct Row<'a> {
    account: &'a AccountUid,
    key: &'a str,
    fingerprint: &'a [u8; 32],
    outcome: Option<&'a Outcome>,
    job: Option<Uuid>,
}

async fn take_row(conn: &mut PgConnection, row: &Row<'_>) -> Result<Taken> {
    if insert(conn, row).await? {
        return Ok(Taken::Fresh);
    }
    // The other transaction has ended, or the insert would still wait; its row is visible to a new statement.
    let taken = look_up(conn, row.account, row.key, row.fingerprint).await?.unwrap_or(Taken::Conflict);
    // An import that came to nothing holds its key for those who ask for its outcome, and against nobody else.
    let is_free = taken == Taken::Conflict && imports::release_key(conn, row.account, row.key).await?;
    Ok(if is_free && insert(conn, row).await? { Taken::Fresh } else { taken })
}

/// Writes the key's row, unless there is one.
async fn insert(conn: &mut PgConnection, row: &Row<'_>) -> Result<bool> {
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        row.account.as_str(),
        row.key,
        row.fingerprint,
        row.outcome.map(Json) as _,
        row.job,
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Stores the outcome of a key that the transaction took.
#[instrument(skip_all, name = "db.idempotency.store")]
pub async fn store(conn: &mut PgConnection, account: &AccountUid, key: &str, outcome: &Outcome) -> Result<()> {
    sqlx::query!(
        "UPDATE idempotency_keys SET outcome = $3 WHERE account_uid = $1 AND key = $2",
        account.as_str(),
        key,
        Json(outcome) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets at most `limit` keys that were taken more than `days` ago; how many.
#[instrument(skip_all, name = "db.idempotency.sweep")]
pub async fn sweep(conn: &mut PgConnection, days: i32, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "DELETE FROM idempotency_keys WHERE (account_uid, key) IN (
            SELECT account_uid, key FROM idempotency_keys WHERE created_at < now() - make_interval(days => $1)
            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
        days,
        limit
    )
    .execute(conn)
    .await?;
    Ok(swept.rows_affected())
}
