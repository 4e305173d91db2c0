//! The roles of the processes: `roles.sql` grants each what its process needs
//! (docs/reference/configuration.md#database-roles).

use sqlx::PgPool;
use sqlx::migrate::Migrate as _;

use crate::Result;
use crate::pool::{self, MIGRATIONS};

/// The list of privileges, and the block that applies it.
const ROLES: &str = include_str!("../../roles.sql");

/// Grants the role of each process what its column of the list says, and returns the names of these roles. A process without one
/// connects as the owner of the schema. `passwords` is a JSON object: for each of its names the role is made, if it is missing, and
/// its password set. Without one, no role is made. A schema that is ahead of this build has the privileges of the later one, and keeps
/// them.
///
/// # Errors
/// [`Error::is_forbidden`](crate::Error::is_forbidden) if the connection's role may not make roles.
pub async fn grant(pool: &PgPool, passwords: Option<&str>) -> Result<Vec<String>> {
    let mut transaction = pool::begin(pool).await?;
    let applied = transaction.list_applied_migrations(&MIGRATIONS.table_name).await?;
    if applied.iter().all(|applied| applied.version <= pool::schema_version()) {
        // As a setting: the text of a statement may be logged.
        sqlx::query!("SELECT set_config('canvas.role_passwords', $1, true)", passwords.unwrap_or_default())
            .fetch_one(&mut *transaction)
            .await?;
        sqlx::raw_sql(ROLES).execute(&mut *transaction).await?;
    }
    let granted = sqlx::query_scalar!(
        r#"SELECT rolname::text AS "name!" FROM pg_roles
           WHERE rolname = ANY(ARRAY(
               SELECT pg_get_userbyid(relowner) || suffix
               FROM pg_class, unnest('{_gateway,_image_worker,_video_worker,_webhook_dispatcher}'::text[]) suffix
               WHERE oid = 'accounts'::regclass
           ))
           ORDER BY rolname"#
    )
    .fetch_all(&mut *transaction)
    .await?;
    pool::commit(transaction).await?;
    Ok(granted)
}

/// Whether this process could change the schema: its role owns the tables, or may do whatever it wants.
pub async fn owns_schema(pool: &PgPool) -> Result<bool> {
    let owns = sqlx::query_scalar!(
        r#"SELECT pg_has_role(relowner, 'USAGE') AS "owns!" FROM pg_class WHERE oid = 'accounts'::regclass"#
    );
    Ok(owns.fetch_one(pool).await?)
}

#[cfg(test)]
mod tests;
