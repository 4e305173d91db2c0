//! Webhook secrets encrypted under the key ring, and their rewrap with its primary key. An encrypted text has the form `v1.<key
//! id>.<rest>`.

use std::collections::BTreeMap;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;

/// A delivery's encrypted secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSecret {
    /// Id of the delivery; `webhook:<id>` is the context of the encryption.
    pub id: Uuid,
    /// The encrypted text.
    pub sealed: String,
}

/// Counts the encrypted secrets by id of the master key.
#[tracing::instrument(skip_all, name = "db.delivery.sealed_counts")]
pub async fn sealed_counts(conn: &mut PgConnection) -> Result<BTreeMap<String, i64>> {
    let rows = sqlx::query!(
        r#"SELECT split_part(sealed_secret, '.', 2) AS "key!", count(*) AS "count!" FROM webhook_deliveries GROUP BY 1"#
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.key, row.count)).collect())
}

/// Lists the next `limit` secrets that are encrypted with another master key than `primary`, in the order of ids after `after`
/// (nil to start). Because of the order, a secret that cannot be decrypted does not block those after it.
#[tracing::instrument(skip_all, name = "db.delivery.next_to_rewrap")]
pub async fn next_to_rewrap(
    conn: &mut PgConnection,
    primary: &str,
    after: Uuid,
    limit: i64,
) -> Result<Vec<SealedSecret>> {
    let rows = sqlx::query_as!(
        SealedSecret,
        "SELECT id, sealed_secret AS sealed FROM webhook_deliveries
         WHERE split_part(sealed_secret, '.', 2) <> $1 AND id > $2 ORDER BY id LIMIT $3",
        primary,
        after,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows)
}

/// Stores a re-encrypted secret. `false`: the stored value is no longer `old`.
#[tracing::instrument(skip_all, name = "db.delivery.store_reencrypted")]
pub async fn store_reencrypted(conn: &mut PgConnection, id: Uuid, old: &str, new: &str) -> Result<bool> {
    let stored = sqlx::query!(
        "UPDATE webhook_deliveries SET sealed_secret = $3 WHERE id = $1 AND sealed_secret = $2",
        id,
        old,
        new,
    )
    .execute(conn)
    .await?;
    Ok(stored.rows_affected() == 1)
}
