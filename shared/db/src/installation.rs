//! The installation key, encrypted under the operator's key ring (docs/reference/configuration.md#installation-key).

use sqlx::PgConnection;

use crate::Result;

/// Reads the encrypted key. `None` before a migration has created it.
pub async fn sealed_key(conn: &mut PgConnection) -> Result<Option<String>> {
    Ok(sqlx::query_scalar!("SELECT sealed_key FROM installation").fetch_optional(conn).await?)
}

/// Stores the key unless one is stored. Of several concurrent calls, the first wins.
pub async fn store_if_absent(conn: &mut PgConnection, sealed_key: &str) -> Result<()> {
    sqlx::query!("INSERT INTO installation (sealed_key) VALUES ($1) ON CONFLICT DO NOTHING", sealed_key)
        .execute(conn)
        .await?;
    Ok(())
}

/// Replaces the encrypted key. Returns whether `old` was still the stored value.
pub async fn reencrypt(conn: &mut PgConnection, old: &str, new: &str) -> Result<bool> {
    let done =
        sqlx::query!("UPDATE installation SET sealed_key = $2 WHERE sealed_key = $1", old, new).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}
