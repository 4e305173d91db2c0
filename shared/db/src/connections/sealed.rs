//! Provider keys sealed under the key ring, and their rewrap with its primary key. A sealed text has the form `v1.<key
//! id>.<rest>`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A sealed provider key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// Id of the connection, whose [`context`](super::context) is the context of the seal.
    pub id: Uuid,
    /// The sealed text.
    pub sealed: String,
}

/// Counts the sealed provider keys by id of the master key.
#[tracing::instrument(skip_all, name = "db.connection.sealed_counts")]
pub async fn sealed_counts(conn: &mut PgConnection) -> Result<BTreeMap<String, i64>> {
    let rows = sqlx::query!(
        r#"SELECT split_part(sealed_key, '.', 2) AS "key!", count(*) AS "count!" FROM provider_connections GROUP BY 1"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key, row.count)).collect())
}

/// Lists the next `limit` provider keys that are sealed with another master key than `primary`, in the order of ids after
/// `after` (nil to start). Because of the order, a key that cannot be opened does not block those after it.
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

/// Stores a resealed key. `false`: the stored value is no longer `old`.
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
