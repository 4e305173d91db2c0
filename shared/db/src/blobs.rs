//! Blobs: the rows behind the object store (decisions 6.6).
//!
//! **Guarantee.** No object is in the store without a row here, nothing refers to an object that is not whole, and an
//! object that is being removed is never referred to again.
//!
//! **Mechanism.** A row is `staged` before its object is put; [`adopt`], in the transaction that makes the reference, turns
//! it into `stored` under the row's lock. [`begin_removal`] takes that lock, too, and looks for references once more under
//! it, so that of a referrer and a sweeper one waits for the other and then sees what it did. Those who refer to what is
//! stored share the lock: equal contents are common, and their referrers do not wait for each other. Touching a blob puts the
//! sweeper off for its grace period, which covers the time between [`stage`] and [`adopt`]; one that was touched within the
//! last second is left alone.

use std::time::Duration;

use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::{Result, pool};

/// Class of the advisory locks on contents ("blob" in ASCII), apart from any other use of such locks.
const CONTENT_LOCKS: i32 = 0x62_6c_6f_62;

/// Where content is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// It is in the store already, under this key.
    Existing(Uuid),
    /// It is to be put under this key.
    New(Uuid),
}

/// The query that `$then!` makes of the table expressions `$before` and those that prepare for content, so that this can be one
/// statement with what else is due then. They give it as `staged`; their arguments are the first two: its hash and a fresh key.
macro_rules! with_staged {
    ($then:ident! [$($before:literal),*] $($rest:tt)*) => {
        $then!(
            [$($before,)*
            r#" found AS (
                   SELECT key, touched_at >= now() - interval '1 second' AS is_fresh FROM blobs
                   WHERE sha256 = $1 AND state = 'stored'
               ), touched AS (
                   UPDATE blobs SET touched_at = now()
                   WHERE key = (SELECT key FROM found WHERE NOT is_fresh) AND state = 'stored' RETURNING key
               ), existing AS (
                   SELECT key FROM found WHERE is_fresh UNION ALL SELECT key FROM touched
               ), made AS (
                   INSERT INTO blobs (key) SELECT $2 WHERE NOT EXISTS (SELECT FROM existing) RETURNING key
               ), staged AS (
                   SELECT key, true AS existing FROM existing UNION ALL SELECT key, false FROM made
               )"#]
            $($rest)*
        )
    };
}
pub(crate) use with_staged;

/// The query of what was staged behind table expressions.
macro_rules! select_staged {
    ([$($with:literal),*] $($argument:expr),*) => {
        sqlx::query!($($with +)* r#" SELECT key AS "key!", existing AS "existing!" FROM staged"#, $($argument),*)
    };
}

impl Staged {
    /// What a statement staged: the key, and whether the content is in the store under it.
    pub(crate) fn read(key: Uuid, existing: bool) -> Self {
        if existing { Self::Existing(key) } else { Self::New(key) }
    }
}

/// Prepares for content of this hash: the stored blob that has it, or a fresh key.
#[instrument(skip_all, name = "db.blob.stage")]
pub async fn stage(conn: &mut PgConnection, sha256: &[u8; 32]) -> Result<Staged> {
    let row = with_staged!(select_staged! ["WITH"] sha256, Uuid::now_v7()).fetch_one(conn).await?;
    Ok(Staged::read(row.key, row.existing))
}

/// A fresh key for content whose hash is known only when it has been put.
#[instrument(skip_all, name = "db.blob.stage_unknown")]
pub async fn stage_unknown(conn: &mut PgConnection) -> Result<Uuid> {
    let key = Uuid::now_v7();
    sqlx::query!("INSERT INTO blobs (key) VALUES ($1)", key).execute(conn).await?;
    Ok(key)
}

/// Lets the transaction refer to content that was put under `key`; several in the order of their hashes, so that two
/// transactions cannot wait for each other. It gives the key to refer to, which is another one when the same
/// content was stored meanwhile. `None`: the blob was removed since it was staged, and has to be put again.
#[instrument(skip_all, name = "db.blob.adopt")]
pub async fn adopt(conn: &mut PgConnection, key: Uuid, sha256: &[u8; 32], bytes: i64) -> Result<Option<Uuid>> {
    let state = sqlx::query_scalar!("SELECT state FROM blobs WHERE key = $1 FOR KEY SHARE", key);
    match state.fetch_optional(&mut *conn).await?.as_deref() {
        Some("stored") => Ok(Some(key)),
        Some("staged") => adopt_staged(conn, key, sha256, bytes).await,
        _ => Ok(None),
    }
}

async fn adopt_staged(conn: &mut PgConnection, key: Uuid, sha256: &[u8; 32], bytes: i64) -> Result<Option<Uuid>> {
    // Equal contents are stored one after the other: the second finds the first, instead of failing on the unique index
    // when it has already waited for it.
    let content = i32::from_be_bytes(*sha256.first_chunk().expect("a hash has 32 bytes"));
    sqlx::query!("SELECT pg_advisory_xact_lock($1, $2)", CONTENT_LOCKS, content).execute(&mut *conn).await?;
    // A statement of its own: it sees what whoever held the lock before stored. A second one of the content is removed.
    let adopted = sqlx::query_scalar!(
        "WITH first AS MATERIALIZED (
             SELECT key FROM blobs WHERE sha256 = $2 AND state = 'stored' FOR KEY SHARE
         ), own AS (
             UPDATE blobs SET state = CASE WHEN EXISTS (SELECT FROM first) THEN 'removing' ELSE 'stored' END,
                              sha256 = $2, bytes = $3, touched_at = now()
             WHERE key = $1 AND state = 'staged' RETURNING key, state
         )
         SELECT coalesce((SELECT key FROM first), (SELECT key FROM own WHERE state = 'stored'))",
        key,
        sha256,
        bytes
    );
    Ok(adopted.fetch_one(conn).await?)
}

/// Whether an object of this key is in the store, as far as anybody knows: what is missing then is missing by mistake.
#[instrument(skip_all, name = "db.blob.is_stored")]
pub async fn is_stored(conn: &mut PgConnection, key: Uuid) -> Result<bool> {
    let stored = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM blobs WHERE key = $1 AND state = 'stored') AS "stored!""#,
        key
    );
    Ok(stored.fetch_one(conn).await?)
}

/// At most `limit` blobs beyond `after` in the order of keys (nil to begin with) that are not stored and may be due for removal:
/// those under removal, and those staged that are untouched for `grace`. The others are found by [`walk`].
#[instrument(skip_all, name = "db.blob.unsettled")]
pub async fn unsettled(conn: &mut PgConnection, grace: Duration, after: Uuid, limit: i64) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar!(
        "SELECT key FROM blobs
         WHERE state <> 'stored' AND key > $2 AND (state = 'removing' OR touched_at < now() - make_interval(secs => $1))
         ORDER BY key LIMIT $3",
        grace.as_secs_f64(),
        after,
        limit
    )
    .fetch_all(conn)
    .await?)
}

/// What one step of the walk over all blobs found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Stored blobs that nothing seems to refer to, and nobody has touched for the grace: they may be due for removal.
    pub unreferenced: Vec<Uuid>,
    /// Whether more is to be looked at: not when the step came to the last blob, after which the walk begins anew, nor while
    /// somebody else takes one.
    pub has_more: bool,
}

/// Goes on with the walk over all blobs, which everybody shares: looks at the next `window` of them, in the order of keys, and
/// at no more, whatever it finds.
///
/// What it found is told once: who does not put it under removal leaves it to the next walk.
#[instrument(skip_all, name = "db.blob.walk")]
pub async fn walk(conn: &mut PgConnection, grace: Duration, window: i64) -> Result<Walked> {
    let mut transaction = pool::begin_on(conn).await?;
    let after = sqlx::query_scalar!("SELECT after FROM blob_walk FOR UPDATE SKIP LOCKED");
    let Some(after) = after.fetch_optional(&mut *transaction).await? else { return Ok(Walked::default()) };
    // Each probe with a limit of its own: a join could be planned as one that reads the other table from its beginning.
    let looked_at = sqlx::query!(
        r#"SELECT key, state = 'stored' AND touched_at < now() - make_interval(secs => $1)
                  AND (SELECT true FROM assets WHERE blob_key = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM renditions WHERE blob_key = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM jobs WHERE video_blob = b.key LIMIT 1) IS NULL AS "is_unreferenced!"
           FROM blobs b WHERE key > $2 ORDER BY key LIMIT $3"#,
        grace.as_secs_f64(),
        after,
        window
    )
    .fetch_all(&mut *transaction)
    .await?;
    let last = looked_at.last().filter(|_| looked_at.len() as i64 == window).map(|row| row.key);
    sqlx::query!("UPDATE blob_walk SET after = $1", last.unwrap_or(Uuid::nil())).execute(&mut *transaction).await?;
    pool::commit(transaction).await?;
    let unreferenced = looked_at.into_iter().filter(|row| row.is_unreferenced).map(|row| row.key).collect();
    Ok(Walked { unreferenced, has_more: last.is_some() })
}

/// Puts a blob under removal, unless somebody refers to it or means to. From the commit on nobody ever will again: its
/// object may be deleted, and then its row, by [`forget`].
#[instrument(skip_all, name = "db.blob.begin_removal")]
pub async fn begin_removal(conn: &mut PgConnection, key: Uuid, grace: Duration) -> Result<bool> {
    // A transaction of its own, or a savepoint: without one the lock would be gone before the second statement.
    let mut transaction = pool::begin_on(conn).await?;
    let held = sqlx::query_scalar!("SELECT key FROM blobs WHERE key = $1 FOR UPDATE SKIP LOCKED", key)
        .fetch_optional(&mut *transaction)
        .await?;
    if held.is_none() {
        return Ok(false);
    }
    // A statement of its own: it sees the references of whoever held the lock before.
    let removing = sqlx::query!(
        "UPDATE blobs b SET state = 'removing'
         WHERE key = $1 AND (state = 'removing' OR (touched_at < now() - make_interval(secs => $2)
               AND NOT EXISTS (SELECT FROM assets WHERE blob_key = b.key)
               AND NOT EXISTS (SELECT FROM renditions WHERE blob_key = b.key)
               AND NOT EXISTS (SELECT FROM jobs WHERE video_blob = b.key)))",
        key,
        grace.as_secs_f64(),
    )
    .execute(&mut *transaction)
    .await?;
    pool::commit(transaction).await?;
    Ok(removing.rows_affected() == 1)
}

/// Forgets a blob whose object was deleted, and with it the renditions that were made of it.
#[instrument(skip_all, name = "db.blob.forget")]
pub async fn forget(conn: &mut PgConnection, key: Uuid) -> Result<()> {
    sqlx::query!("DELETE FROM blobs WHERE key = $1 AND state = 'removing'", key).execute(conn).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
