//! Idempotency keys, scoped to the account (docs/reference/conventions.md#idempotency).
//!
//! [`take`] takes a key inside the transaction of the work that the key stands for. A second transaction waits for the first to
//! end. It then finds the first one's outcome or, after a rollback, takes the key itself. Thus two equal concurrent requests
//! give one effect and one replay, and a rejected request does not use up the key.

use domain::id::AccountUid;
use domain::idempotency::{Fingerprint, StoredOutcome};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::{Result, imports};

/// Result of taking a key.
#[derive(Debug, PartialEq)]
pub enum Taken {
    /// The key is new. The outcome is stored with it ([`take_for`]) or must be stored before the transaction ends ([`store`]).
    Fresh,
    /// An equal request took the key before; this is its outcome.
    Replay(StoredOutcome),
    /// A different request took the key before.
    Conflict,
}

/// Returns what an earlier request did with a key, if any. Does not take the key.
#[instrument(skip_all, name = "db.idempotency.look_up")]
pub async fn look_up(
    conn: &mut PgConnection,
    account: &AccountUid,
    key: &str,
    fingerprint: &Fingerprint,
) -> Result<Option<Taken>> {
    let row = sqlx::query!(
        r#"SELECT fingerprint, outcome AS "outcome: Json<StoredOutcome>" FROM idempotency_keys
           WHERE account_uid = $1 AND key = $2"#,
        account.as_str(),
        key
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| match row.outcome {
        Some(outcome) if fingerprint.matches(&row.fingerprint) => Taken::Replay(outcome.0),
        _ => Taken::Conflict,
    }))
}

/// Takes a key for the transaction. Waits while another transaction is taking the same key.
#[instrument(skip_all, name = "db.idempotency.take")]
pub async fn take(
    conn: &mut PgConnection,
    account: &AccountUid,
    key: &str,
    fingerprint: &Fingerprint,
) -> Result<Taken> {
    take_row(conn, &IdempotencyRow { account, key, fingerprint, outcome: None, job: None }).await
}

/// [`take`] for work whose outcome, an id, is known before the work is done: the outcome is stored with the key. `job` is the
/// id of the job or import, by which the key is found after that record was removed.
#[instrument(skip_all, name = "db.idempotency.take_for")]
pub async fn take_for(
    conn: &mut PgConnection,
    account: &AccountUid,
    key: &str,
    fingerprint: &Fingerprint,
    outcome: &StoredOutcome,
    job: Option<Uuid>,
) -> Result<Taken> {
    take_row(conn, &IdempotencyRow { account, key, fingerprint, outcome: Some(outcome), job }).await
}

/// A row of a key to insert.
struct IdempotencyRow<'a> {
    account: &'a AccountUid,
    key: &'a str,
    fingerprint: &'a Fingerprint,
    outcome: Option<&'a StoredOutcome>,
    job: Option<Uuid>,
}

async fn take_row(conn: &mut PgConnection, row: &IdempotencyRow<'_>) -> Result<Taken> {
    if insert(conn, row).await? {
        return Ok(Taken::Fresh);
    }
    // The other transaction has ended, since the insert waits for it. Its row is visible to a new statement.
    match look_up(conn, row.account, row.key, row.fingerprint).await? {
        Some(taken @ Taken::Replay(_)) => return Ok(taken),
        // An import without a result keeps its key only for requests that ask for its outcome. A different request may take it.
        Some(_) => {
            imports::release_key(conn, row.account, row.key).await?;
        }
        // The key was freed since.
        None => {}
    }
    if insert(conn, row).await? {
        return Ok(Taken::Fresh);
    }
    // Another request took the freed key first, perhaps an equal one.
    Ok(look_up(conn, row.account, row.key, row.fingerprint).await?.unwrap_or(Taken::Conflict))
}

/// Inserts the key's row. `false`: the row exists.
async fn insert(conn: &mut PgConnection, row: &IdempotencyRow<'_>) -> Result<bool> {
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        row.account.as_str(),
        row.key,
        &row.fingerprint.canonical,
        row.outcome.map(Json) as _,
        row.job,
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Stores the outcome of a key that the transaction took.
#[instrument(skip_all, name = "db.idempotency.store")]
pub async fn store(conn: &mut PgConnection, account: &AccountUid, key: &str, outcome: &StoredOutcome) -> Result<()> {
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

/// Deletes at most `limit` keys that were taken more than `days` ago. Returns the number deleted.
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
