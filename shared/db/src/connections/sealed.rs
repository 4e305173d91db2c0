//! Keys under the key ring, and their move to its first key (decisions 2.5). A sealed text is `v1.<key id>.<rest>`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A connection's sealed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// The connection; [`context`](super::context) of it is the context of the seal.
    pub id: Uuid,
    /// The sealed text.
    pub sealed: String,
}

/// How many keys hang on each key of the ring, by its id.
#[tracing::instrument(skip_all, name = "db.connection.sealed_counts")]
pub async fn sealed_counts(conn: &mut PgConnection) -> Result<BTreeMap<String, i64>> {
    let rows = sqlx::query!(
        r#"SELECT split_part(sealed_key, '.', 2) AS "key!", count(*) AS "count!" FROM provider_connections GROUP BY 1"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key, row.count)).collect())
}

/// The next `limit` keys that hang on another key of the ring than `primary`, in the order of ids beyond `after` (nil to
/// begin with): one that cannot be opened does not hold up those behind it.
#[tracing::instrument(skip_all, name = "db.connection.next_to_rewrap")]
pub async fn next_to_rewrap(conn: &mut PgConnection, primary: &str, after: Uuid, limit: i64) -> Result<Vec<SealedKey>> {
    let rows = sqlx::query_as!(
        SealedKey,
        "SELECT id, sealed_key AS sealed FROM provider_connections
         WHERE split_part(sealed_key, '.', 2) <> $1 AND id > $2 ORDER BY id LIMIT $3",
        primary,
        after,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Stores a key that was sealed anew. `false`: it is no longer what was opened.
#[tracing::instrument(skip_all, name = "db.connection.store_resealed")]
pub async fn store_resealed(conn: &mut PgConnection, id: Uuid, old: &str, new: &str) -> Result<bool> {
    let stored = sqlx::query!(
        "UPDATE provider_connections SET sealed_key = $3 WHERE id = $1 AND sealed_key = $2",
        id,
        old,
        new,
    )
    .execute(conn)
    .await?;
    Ok(stored.rows_affected() == 1)
}
