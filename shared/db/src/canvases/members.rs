//! The accounts that a canvas is shared with (docs/reference/canvases.md#roles).

use domain::canvas::AccessRole;
use domain::id::{AccountUid, CanvasHandle};
use sqlx::PgConnection;
use tracing::instrument;

use crate::Result;
use crate::error::known;

/// Sets or removes an account's role on a canvas. Returns whether the canvas exists.
#[instrument(skip_all, name = "db.canvas.share")]
pub async fn share(
    conn: &mut PgConnection,
    canvas: &CanvasHandle,
    with: &AccountUid,
    role: Option<AccessRole>,
) -> Result<bool> {
    let Some(key) = sqlx::query_scalar!(
        "SELECT key FROM canvases WHERE owner_uid = $1 AND id = $2",
        canvas.owner.as_str(),
        canvas.id.as_str()
    )
    .fetch_optional(&mut *conn)
    .await?
    else {
        return Ok(false);
    };
    match role {
        Some(role) => {
            sqlx::query!(
                "INSERT INTO canvas_shares (canvas_key, account_uid, role) VALUES ($1, $2, $3)
                 ON CONFLICT (account_uid, canvas_key) DO UPDATE SET role = excluded.role",
                key,
                with.as_str(),
                role.as_str(),
            )
            .execute(conn)
            .await?;
        }
        None => {
            sqlx::query!("DELETE FROM canvas_shares WHERE canvas_key = $1 AND account_uid = $2", key, with.as_str())
                .execute(conn)
                .await?;
        }
    }
    Ok(true)
}

/// An account that has a role on a canvas of another account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Email of the account.
    pub email: String,
    /// Role of the account.
    pub role: AccessRole,
}

/// Lists at most `limit` members of a canvas, ordered by email, after the email `after`. The caller of this function has checked
/// access to the canvas.
#[instrument(skip_all, name = "db.canvas.members")]
pub async fn members(conn: &mut PgConnection, canvas_key: i64, after: Option<&str>, limit: i64) -> Result<Vec<Member>> {
    let rows = sqlx::query!(
        r#"SELECT a.email, s.role FROM canvas_shares s JOIN accounts a ON a.uid = s.account_uid
           WHERE s.canvas_key = $1 AND ($2::text IS NULL OR a.email COLLATE "C" > $2)
           ORDER BY a.email COLLATE "C" LIMIT $3"#,
        canvas_key,
        after,
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok(Member { email: row.email, role: known("canvas_shares.role", &row.role)? })).collect()
}

/// The member of a canvas with this email, whatever its case. The caller of this function has checked access to the canvas.
#[instrument(skip_all, name = "db.canvas.member")]
pub async fn member(conn: &mut PgConnection, canvas_key: i64, email: &str) -> Result<Option<AccountUid>> {
    let uid = sqlx::query_scalar!(
        "SELECT s.account_uid FROM canvas_shares s JOIN accounts a ON a.uid = s.account_uid
         WHERE s.canvas_key = $1 AND lower(a.email) = lower($2)",
        canvas_key,
        email,
    );
    Ok(uid.fetch_optional(conn).await?.map(AccountUid::from_stored))
}
