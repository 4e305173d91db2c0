//! The installation key, sealed under the operator's key ring (decisions 2.5).

use sqlx::PgConnection;

use crate::Result;

/// The sealed key, once a migration has made it.
pub async fn sealed_key(conn: &mut PgConnection) -> Result<Option<String>> {
    Ok(sqlx::query_scalar!("SELECT sealed_key FROM installation").fetch_optional(conn).await?)
}

/// Stores the key unless there is one; of several at once the first wins.
pub async fn store_if_absent(conn: &mut PgConnection, sealed_key: &str) -> Result<()> {
    sqlx::query!("INSERT INTO installation (sealed_key) VALUES ($1) ON CONFLICT DO NOTHING", sealed_key)
        .execute(conn)
        .await?;
    Ok(())
}

/// Replaces the key's seal; whether `old` was still the stored one.
pub async fn reseal(conn: &mut PgConnection, old: &str, new: &str) -> Result<bool> {
    let done =
        sqlx::query!("UPDATE installation SET sealed_key = $2 WHERE sealed_key = $1", old, new).execute(conn).await?;
    Ok(done.rows_affected() == 1)
}
