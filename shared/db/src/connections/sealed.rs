//! Provider keys encrypted under the key ring, and their rewrap with its primary key. An encrypted text has the form `v1.<key
//! id>.<rest>`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// An encrypted provider key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    /// Id of the connection, whose [`context`](super::context) is the context of the encryption.
    pub id: Uuid,
    /// The encrypted text.
    pub sealed: String,
}

/// Counts the encrypted provider keys by id of the master key.
#[tracing::instrument(skip_all, name = "db.connection.sealed_counts")]
pub async fn sealed_counts(conn: &mut PgConnection) -> Result<BTreeMap<String, i64>> {
    let rows = sqlx::query!(
        r#"SELECT split_part(sealed_key, '.', 2) AS "key!", count(*) AS "count!" FROM provider_connections GROUP BY 1"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key, row.count)).collect())
}

/// Lists the next `limit` provider keys that are encrypted with another master key than `primary`, in the order of ids after
/// `after` (nil to start). Because of the order, a key that cannot be decrypted does not block those after it.
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

/// Stores a re-encrypted key. `false`: the stored value is no longer `old`.
#[tracing::instrument(skip_all, name = "db.connection.store_reencrypted")]
pub async fn store_reencrypted(conn: &mut PgConnection, id: Uuid, old: &str, new: &str) -> Result<bool> {
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
