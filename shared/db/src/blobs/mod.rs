//! Blobs: the rows behind the object store (docs/reference/assets.md#stored-bytes).
//!
//! **Guarantee.** Every object in the store has a row here. Nothing refers to an incomplete object. An object that is being
//! removed is never referred to again.
//!
//! **Mechanism.** A row is `staged` before its object is put. [`adopt`] turns it into `stored` under the row's lock, in the
//! transaction that makes the reference. [`begin_removal`] takes the same lock and then checks for references again, so that a
//! referrer and a sweeper run one after the other and the second sees what the first did. Referrers of a stored blob share the
//! lock: equal contents are common, and their referrers do not wait for each other. Touching a blob restarts the sweeper's
//! grace period of a day, which covers the time between [`stage`] and [`adopt`]. A blob that was touched within the last hour is
//! not touched again: jobs that give the same content would wait for each other's commit.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::{Result, pool};

/// Class of the advisory locks on contents ("blob" in ASCII), which separates them from other advisory locks.
const CONTENT_LOCKS: i32 = 0x62_6c_6f_62;

/// Where content is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// The content is in the store already, under this key.
    Existing(Uuid),
    /// The content is to be put under this key.
    New(Uuid),
}

impl Staged {
    /// Reads the result of a staging statement: the key, and whether the content is stored under it.
    pub(crate) fn from_row(key: Uuid, existing: bool) -> Self {
        if existing { Self::Existing(key) } else { Self::New(key) }
    }
}

/// Stages content of this hash. Returns the key of the stored blob with that content, or a new key.
#[instrument(skip_all, name = "db.blob.stage")]
pub async fn stage(conn: &mut PgConnection, sha256: &[u8; 32]) -> Result<Staged> {
    let row = sqlx::query!(
        r#"WITH found AS (
               SELECT key, touched_at >= now() - interval '1 hour' AS is_fresh FROM blobs
               WHERE sha256 = $1 AND state = 'stored'
           ), touched AS (
               UPDATE blobs SET touched_at = now()
               WHERE key = (SELECT key FROM found WHERE NOT is_fresh) AND state = 'stored' RETURNING key
           ), existing AS (
               SELECT key FROM found WHERE is_fresh UNION ALL SELECT key FROM touched
           ), made AS (
               INSERT INTO blobs (key) SELECT $2 WHERE NOT EXISTS (SELECT FROM existing) RETURNING key
           )
           SELECT key AS "key!", true AS "existing!" FROM existing UNION ALL SELECT key, false FROM made"#,
        sha256,
        Uuid::now_v7(),
    )
    .fetch_one(conn)
    .await?;
    Ok(Staged::from_row(row.key, row.existing))
}

/// Stages a new key for content whose hash is known only after it was put.
#[instrument(skip_all, name = "db.blob.stage_unknown")]
pub async fn stage_unknown(conn: &mut PgConnection) -> Result<Uuid> {
    let key = Uuid::now_v7();
    sqlx::query!("INSERT INTO blobs (key) VALUES ($1)", key).execute(conn).await?;
    Ok(key)
}

/// The SHA-256 of stored content.
#[instrument(skip_all, name = "db.blob.sha256")]
pub async fn sha256(conn: &mut PgConnection, key: Uuid) -> Result<Option<Vec<u8>>> {
    let hash = sqlx::query_scalar!("SELECT sha256 FROM blobs WHERE key = $1", key).fetch_optional(conn).await?;
    Ok(hash.flatten())
}

/// Records that a file is an image of more than one frame.
#[instrument(skip_all, name = "db.blob.set_animated")]
pub async fn set_animated(conn: &mut PgConnection, key: Uuid) -> Result<()> {
    sqlx::query!("UPDATE blobs SET animated = true WHERE key = $1 AND NOT animated", key).execute(conn).await?;
    Ok(())
}

/// A file that was put under the key of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutFile {
    /// Key of the blob.
    pub key: Uuid,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Size of the file in bytes.
    pub bytes: i64,
}

/// Lets the transaction refer to content that was put under `key`. Callers that adopt several one by one do so in the order of
/// their hashes, to avoid deadlocks. Returns the key to refer to, which differs from `key` when the same content was stored in the
/// meantime. `None`: the blob was removed after it was staged, and must be put again.
pub async fn adopt(conn: &mut PgConnection, key: Uuid, sha256: &[u8; 32], bytes: i64) -> Result<Option<Uuid>> {
    Ok(adopt_all(conn, &[PutFile { key, sha256: *sha256, bytes }]).await?.remove(&key))
}

/// [`adopt`] for several files at once. Returns the keys to refer to by those of the files; files that must be put again are left
/// out.
#[instrument(skip_all, name = "db.blob.adopt")]
pub async fn adopt_all(conn: &mut PgConnection, files: &[PutFile]) -> Result<HashMap<Uuid, Uuid>> {
    let keys: Vec<Uuid> = files.iter().map(|file| file.key).collect();
    let found = sqlx::query!("SELECT key, state FROM blobs WHERE key = ANY($1) FOR KEY SHARE", &keys);
    let mut adopted = HashMap::with_capacity(files.len());
    let mut staged = Vec::new();
    for row in found.fetch_all(&mut *conn).await? {
        match row.state.as_str() {
            "stored" => drop(adopted.insert(row.key, row.key)),
            "staged" => staged.extend(files.iter().find(|file| file.key == row.key)),
            _ => {}
        }
    }
    if !staged.is_empty() {
        adopt_staged(conn, staged, &mut adopted).await?;
    }
    Ok(adopted)
}

async fn adopt_staged(
    conn: &mut PgConnection,
    mut files: Vec<&PutFile>,
    adopted: &mut HashMap<Uuid, Uuid>,
) -> Result<()> {
    // Transactions that store equal content run one after the other. The second finds the row of the first instead of waiting
    // for it and then violating the unique index. The locks are taken in the order of the hashes.
    files.sort_unstable_by_key(|file| file.sha256);
    let content = |file: &&PutFile| i32::from_be_bytes(*file.sha256.first_chunk().expect("a hash has 32 bytes"));
    let contents: Vec<i32> = files.iter().map(content).collect();
    sqlx::query!("SELECT pg_advisory_xact_lock($1, content) FROM unnest($2::int4[]) content", CONTENT_LOCKS, &contents)
        .execute(&mut *conn)
        .await?;
    // A separate statement, so that it sees what the previous lock holder stored. The sweeper removes the duplicates: of files with
    // equal content, one is stored.
    let keys: Vec<Uuid> = files.iter().map(|file| file.key).collect();
    let hashes: Vec<Vec<u8>> = files.iter().map(|file| file.sha256.to_vec()).collect();
    let sizes: Vec<i64> = files.iter().map(|file| file.bytes).collect();
    let rows = sqlx::query!(
        r#"WITH asked AS (
               SELECT key, sha256, bytes, row_number() OVER (PARTITION BY sha256 ORDER BY key) = 1 AS is_chosen
               FROM UNNEST($1::uuid[], $2::bytea[], $3::int8[]) AS a (key, sha256, bytes)
           ), first AS MATERIALIZED (
               SELECT key, sha256 FROM blobs WHERE sha256 = ANY($2) AND state = 'stored' FOR KEY SHARE
           ), own AS (
               UPDATE blobs b
               SET state = CASE WHEN a.is_chosen AND NOT EXISTS (SELECT FROM first f WHERE f.sha256 = a.sha256)
                                THEN 'stored' ELSE 'removing' END,
                   sha256 = a.sha256, bytes = a.bytes, touched_at = now()
               FROM asked a WHERE b.key = a.key AND b.state = 'staged' RETURNING b.key, b.state, b.sha256
           )
           SELECT a.key AS "key!", coalesce(f.key, o.key) AS stored
           FROM asked a LEFT JOIN first f USING (sha256)
           LEFT JOIN own o ON o.sha256 = a.sha256 AND o.state = 'stored'"#,
        &keys,
        &hashes,
        &sizes
    );
    adopted.extend(rows.fetch_all(conn).await?.into_iter().filter_map(|row| Some((row.key, row.stored?))));
    Ok(())
}

/// Returns `true` if an object of this key should be in the store. An object that is missing then was lost.
#[instrument(skip_all, name = "db.blob.is_stored")]
pub async fn is_stored(conn: &mut PgConnection, key: Uuid) -> Result<bool> {
    let stored = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM blobs WHERE key = $1 AND state = 'stored') AS "stored!""#,
        key
    );
    Ok(stored.fetch_one(conn).await?)
}

/// Lists at most `limit` blobs after the key `after` (nil to start), in the order of keys, that are not stored and may be due
/// for removal: blobs under removal, and staged blobs that were not touched for `grace`. [`walk`] finds the others.
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

/// Result of one step of the walk over all blobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Stored blobs without a visible reference that were not touched for the grace period. They may be due for removal.
    pub unreferenced: Vec<Uuid>,
    /// `true` if more blobs remain in this walk. False when the step reached the last blob, after which the walk starts over, and
    /// while another process runs a step.
    pub has_more: bool,
}

/// Continues the walk over all blobs, whose position all processes share. Reads exactly the next `window` blobs in the order of
/// keys, whatever it finds.
///
/// A walk reports each candidate once. A candidate that the caller does not put under removal is found again by the next walk.
#[instrument(skip_all, name = "db.blob.walk")]
pub async fn walk(conn: &mut PgConnection, grace: Duration, window: i64) -> Result<Walked> {
    let mut transaction = pool::begin_on(conn).await?;
    let after = sqlx::query_scalar!("SELECT after FROM blob_walk FOR UPDATE SKIP LOCKED");
    let Some(after) = after.fetch_optional(&mut *transaction).await? else { return Ok(Walked::default()) };
    // Each probe has its own limit. Postgres could plan a join that reads the other table from its beginning.
    let looked_at = sqlx::query!(
        r#"SELECT key, state = 'stored' AND touched_at < now() - make_interval(secs => $1)
                  AND (SELECT true FROM assets WHERE blob_key = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM assets WHERE original_blob = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM assets WHERE poster_key = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM renditions WHERE blob_key = b.key LIMIT 1) IS NULL
                  AND (SELECT true FROM jobs WHERE video_poster = b.key LIMIT 1) IS NULL
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

/// Puts a blob under removal unless it is referenced or staged. After the commit nothing can refer to it again: its object may
/// be deleted, and then its row, by [`forget`].
#[instrument(skip_all, name = "db.blob.begin_removal")]
pub async fn begin_removal(conn: &mut PgConnection, key: Uuid, grace: Duration) -> Result<bool> {
    // A separate transaction, or a savepoint. Without one the lock would be released before the second statement.
    let mut transaction = pool::begin_on(conn).await?;
    let held = sqlx::query_scalar!("SELECT key FROM blobs WHERE key = $1 FOR UPDATE SKIP LOCKED", key)
        .fetch_optional(&mut *transaction)
        .await?;
    if held.is_none() {
        return Ok(false);
    }
    // A separate statement, so that it sees the references of the previous lock holder.
    let removing = sqlx::query!(
        "UPDATE blobs b SET state = 'removing'
         WHERE key = $1 AND (state = 'removing' OR (touched_at < now() - make_interval(secs => $2)
               AND NOT EXISTS (SELECT FROM assets WHERE blob_key = b.key)
               AND NOT EXISTS (SELECT FROM assets WHERE original_blob = b.key)
               AND NOT EXISTS (SELECT FROM assets WHERE poster_key = b.key)
               AND NOT EXISTS (SELECT FROM renditions WHERE blob_key = b.key)
               AND NOT EXISTS (SELECT FROM jobs WHERE video_poster = b.key)
               AND NOT EXISTS (SELECT FROM jobs WHERE video_blob = b.key)))",
        key,
        grace.as_secs_f64(),
    )
    .execute(&mut *transaction)
    .await?;
    pool::commit(transaction).await?;
    Ok(removing.rows_affected() == 1)
}

/// Deletes the row of a blob whose object was deleted, and the renditions that were made of it.
#[instrument(skip_all, name = "db.blob.forget")]
pub async fn forget(conn: &mut PgConnection, key: Uuid) -> Result<()> {
    sqlx::query!("DELETE FROM blobs WHERE key = $1 AND state = 'removing'", key).execute(conn).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
