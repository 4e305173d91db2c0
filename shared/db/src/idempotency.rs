//! Idempotency keys, scoped to the account (docs/reference/conventions.md#idempotency).
//!
//! [`take`] takes a key inside the transaction of the work that the key stands for. A second transaction waits for the first to
//! end. It then finds the first one's outcome or, after a rollback, takes the key itself. Thus two equal concurrent requests
//! give one effect and one replay, and a rejected request does not use up the key. [`take_and_lock`] also takes the locks that
//! follow the key.

use chrono::{DateTime, Utc};
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::{AccountUid, CanvasHandle, JobId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::limits::IDEMPOTENCY_KEY_MAX;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::canvases::{self, CanvasRow};
use crate::{Result, imports};

/// Result of taking a key.
#[derive(Debug, PartialEq)]
pub enum Taken {
    /// The key is new. Its outcome was stored with it ([`NewKey::outcome`]) or must be stored before the transaction ends
    /// ([`store`]).
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

/// A key to take.
#[derive(Clone, Copy, Debug)]
pub struct NewKey<'a> {
    /// The account that the key belongs to.
    pub account: &'a AccountUid,
    /// The key, unique within the account.
    pub text: &'a str,
    /// Fingerprint that the key is bound to.
    pub fingerprint: &'a Fingerprint,
    /// The outcome, where it is known before the work is done, because it is an id.
    pub outcome: Option<&'a StoredOutcome>,
    /// Id of the job or import, by which the key is found after that record was removed.
    pub job: Option<Uuid>,
}

/// Takes a key for the transaction. Waits while another transaction is taking the same key.
#[instrument(skip_all, name = "db.idempotency.take")]
pub async fn take(conn: &mut PgConnection, key: &NewKey<'_>) -> Result<Taken> {
    if insert(conn, key).await? { Ok(Taken::Fresh) } else { take_existing(conn, key).await }
}

/// Continues [`take`] for a key whose row existed. The transaction that inserted it has ended, since the insert waits for it. Its
/// row is visible to a new statement.
async fn take_existing(conn: &mut PgConnection, key: &NewKey<'_>) -> Result<Taken> {
    match look_up(conn, key.account, key.text, key.fingerprint).await? {
        Some(taken @ Taken::Replay(_)) => return Ok(taken),
        // An import without a result keeps its key only for requests that ask for its outcome. A different request may take it.
        Some(_) => {
            imports::release_key(conn, key.account, key.text).await?;
        }
        // The key was freed since.
        None => {}
    }
    if insert(conn, key).await? {
        return Ok(Taken::Fresh);
    }
    // Another request took the freed key first, perhaps an equal one.
    Ok(look_up(conn, key.account, key.text, key.fingerprint).await?.unwrap_or(Taken::Conflict))
}

/// [`take`] followed by the lock of a canvas that its account writes to: [`canvases::lock_with_account`], or [`canvases::lock`]
/// without the account. Returns the canvas and the role beside a fresh key; `None` then means that the account cannot see the
/// canvas. A key that exists locks nothing.
///
/// A new key and the locks are one statement, whose parts run in the order key, account, canvas, share, since each reads the one
/// before. Its snapshot may be older than a wait for the key. That is enough, because each lock reads the newest version of its
/// row, and finds none if the row was removed. A canvas or share that was added during a wait is not seen, as if it had been added
/// after the request.
#[instrument(skip_all, name = "db.idempotency.take_and_lock")]
pub async fn take_and_lock(
    conn: &mut PgConnection,
    key: &NewKey<'_>,
    canvas: &CanvasHandle,
    with_account: bool,
) -> Result<(Taken, Option<(CanvasRecord, AccessRole)>)> {
    let row = sqlx::query_as!(
        KeyRow,
        r#"WITH taken AS (
               INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT DO NOTHING RETURNING account_uid
           ), account AS MATERIALIZED (
               SELECT uid FROM accounts WHERE uid = (SELECT account_uid FROM taken WHERE $8::boolean) FOR NO KEY UPDATE
           ), held AS MATERIALIZED (
               SELECT * FROM canvases
               WHERE owner_uid = $6 AND id = $7
                 AND (SELECT count(*) FROM taken) = 1 AND (SELECT count(*) FROM account) = $8::boolean::int
               FOR UPDATE
           )
           SELECT (SELECT count(*) FROM taken) = 1 AS "is_fresh!", key AS "key?", owner_uid AS "owner_uid?", id AS "id?",
                  canvas_type, title AS "title?", revision AS "revision?", sequence AS "sequence?", slug AS "slug?",
                  node_ref AS "node_ref?", connection_ref AS "connection_ref?", referenced AS "referenced?",
                  node_count AS "node_count?", connection_count AS "connection_count?", graph_bytes AS "graph_bytes?",
                  created_at AS "created_at?", updated_at AS "updated_at?",
                  CASE WHEN owner_uid = $1 THEN 'owner' ELSE
                      (SELECT role FROM canvas_shares s WHERE s.canvas_key = held.key AND s.account_uid = $1 FOR SHARE)
                  END AS role
           FROM (SELECT) AS one LEFT JOIN held ON true"#,
        key.account.as_str(),
        key.text,
        &key.fingerprint.canonical,
        key.outcome.map(Json) as _,
        key.job,
        canvas.owner.as_str(),
        canvas.id.as_str(),
        with_account,
    )
    .fetch_one(&mut *conn)
    .await?;
    if row.is_fresh {
        let canvas = row.canvas().map(CanvasRow::visible).transpose()?.flatten();
        return Ok((Taken::Fresh, canvas));
    }
    let taken = take_existing(conn, key).await?;
    let canvas = match (&taken, with_account) {
        (Taken::Fresh, true) => canvases::lock_with_account(conn, key.account, canvas).await?,
        (Taken::Fresh, false) => canvases::lock(conn, key.account, canvas).await?,
        (Taken::Replay(_) | Taken::Conflict, _) => None,
    };
    Ok((taken, canvas))
}

/// Whether a key was taken, and the canvas that was locked with it, if any.
struct KeyRow {
    is_fresh: bool,
    key: Option<i64>,
    owner_uid: Option<String>,
    id: Option<String>,
    canvas_type: Option<String>,
    title: Option<String>,
    revision: Option<String>,
    sequence: Option<i64>,
    slug: Option<String>,
    node_ref: Option<i32>,
    connection_ref: Option<i32>,
    referenced: Option<i64>,
    node_count: Option<i32>,
    connection_count: Option<i32>,
    graph_bytes: Option<i64>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
    role: Option<String>,
}

impl KeyRow {
    fn canvas(self) -> Option<CanvasRow> {
        Some(CanvasRow {
            key: self.key?,
            owner_uid: self.owner_uid?,
            id: self.id?,
            canvas_type: self.canvas_type,
            title: self.title?,
            revision: self.revision?,
            sequence: self.sequence?,
            slug: self.slug,
            node_ref: self.node_ref?,
            connection_ref: self.connection_ref?,
            referenced: self.referenced?,
            node_count: self.node_count?,
            connection_count: self.connection_count?,
            graph_bytes: self.graph_bytes?,
            created_at: self.created_at?,
            updated_at: self.updated_at?,
            role: self.role,
        })
    }
}

/// Inserts the key's row. `false`: the row exists.
async fn insert(conn: &mut PgConnection, key: &NewKey<'_>) -> Result<bool> {
    let inserted = sqlx::query!(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING",
        key.account.as_str(),
        key.text,
        &key.fingerprint.canonical,
        key.outcome.map(Json) as _,
        key.job,
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// The key that holds the last form of one of several jobs of a start. No request can send it, because it is too long.
pub fn key_of_job(id: JobId) -> String {
    format!("job:{:>IDEMPOTENCY_KEY_MAX$}", id.0.to_string())
}

/// Takes a key for each of several jobs that one request starts. It holds the last form of the job once its record is removed.
#[instrument(skip_all, name = "db.idempotency.keep_jobs")]
pub async fn keep_jobs(
    conn: &mut PgConnection,
    account: &AccountUid,
    fingerprint: &Fingerprint,
    ids: &[JobId],
) -> Result<()> {
    let outcome = |id: &JobId| Json(StoredOutcome::Job { id: id.0, more: Vec::new(), snapshot: None });
    sqlx::query!(
        "INSERT INTO idempotency_keys (account_uid, key, fingerprint, outcome, job_id)
         SELECT $1, job.key, $2, job.outcome, job.id
         FROM unnest($3::text[], $4::jsonb[], $5::uuid[]) AS job (key, outcome, id)",
        account.as_str(),
        &fingerprint.canonical,
        &ids.iter().map(|id| key_of_job(*id)).collect::<Vec<_>>(),
        &ids.iter().map(outcome).collect::<Vec<_>>() as _,
        &ids.iter().map(|id| id.0).collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
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
