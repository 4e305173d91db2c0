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
    // The canvas is locked before the share, as writers do: what withdraws a share moves the epoch of the canvas.
    let found = match role {
        Some(role) => {
            sqlx::query_scalar!(
                r#"WITH held AS MATERIALIZED (
                   SELECT key FROM canvases WHERE owner_uid = $1 AND id = $2 FOR NO KEY UPDATE
               ), shared AS (
                   INSERT INTO canvas_shares (canvas_key, account_uid, role) SELECT key, $3, $4 FROM held
                   ON CONFLICT (account_uid, canvas_key) DO UPDATE SET role = excluded.role
               ) SELECT EXISTS (SELECT FROM held) AS "found!""#,
                canvas.owner.as_str(),
                canvas.id.as_str(),
                with.as_str(),
                role.as_str(),
            )
            .fetch_one(conn)
            .await?
        }
        None => {
            sqlx::query_scalar!(
                r#"WITH held AS MATERIALIZED (
                   SELECT key FROM canvases WHERE owner_uid = $1 AND id = $2 FOR NO KEY UPDATE
               ), withdrawn AS (
                   DELETE FROM canvas_shares USING held WHERE canvas_key = held.key AND account_uid = $3
               ) SELECT EXISTS (SELECT FROM held) AS "found!""#,
                canvas.owner.as_str(),
                canvas.id.as_str(),
                with.as_str(),
            )
            .fetch_one(conn)
            .await?
        }
    };
    Ok(found)
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
