//! Sessions of people in the browser, and the one-time links that sign them in (docs/reference/console.md).

use domain::Timestamp;
use domain::account::{Scopes, Surface};
use domain::id::AccountUid;
use domain::limits::{SESSION_DAYS, SESSION_IDLE_HOURS, SESSIONS_MAX};
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::accounts::lock;
use crate::tokens::open_session;

/// Creates a link that signs an account in once within `minutes`, an invitation only as long as nobody has used the account; and deletes
/// its expired links. Returns when the link expires.
#[instrument(skip_all, name = "db.signin_link.create")]
pub async fn create_link(
    conn: &mut PgConnection,
    id: Uuid,
    account: &AccountUid,
    secret_hash: &[u8],
    (minutes, is_invitation): (u32, bool),
) -> Result<Timestamp> {
    let expires_at = sqlx::query_scalar!(
        "WITH expired AS (
             DELETE FROM signin_links WHERE account_uid = $2 AND expires_at < now()
         )
         INSERT INTO signin_links (id, account_uid, secret_hash, expires_at, is_invitation)
         VALUES ($1, $2, $3, now() + make_interval(mins => $4), $5) RETURNING expires_at",
        id,
        account.as_str(),
        secret_hash,
        i32::try_from(minutes).unwrap_or(i32::MAX),
        is_invitation,
    )
    .fetch_one(conn)
    .await?;
    Ok(expires_at.into())
}

/// A sign-in link with its account.
#[derive(Debug)]
pub struct Link {
    /// The account that it signs in.
    pub account: AccountUid,
    /// Keyed hash of the link's secret.
    pub secret_hash: Vec<u8>,
    /// `true` if it can still be redeemed: not used, not expired, and the account is enabled.
    pub valid: bool,
}

/// Finds a link.
#[instrument(skip_all, name = "db.signin_link.find")]
pub async fn find_link(conn: &mut PgConnection, id: Uuid) -> Result<Option<Link>> {
    let row = sqlx::query!(
        r#"SELECT l.account_uid, l.secret_hash, (l.used_at IS NULL AND l.expires_at > now() AND a.enabled
                     AND (NOT l.is_invitation OR is_unused(l.account_uid))) AS "valid!"
           FROM signin_links l JOIN accounts a ON a.uid = l.account_uid WHERE l.id = $1"#,
        id
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Link {
        account: AccountUid::from_stored(row.account_uid),
        secret_hash: row.secret_hash,
        valid: row.valid,
    }))
}

/// Redeems a link of an account, whose row is locked. Of any number of attempts one succeeds; it must commit with the session.
#[instrument(skip_all, name = "db.signin_link.redeem")]
pub async fn redeem_link(conn: &mut PgConnection, id: Uuid, account: &AccountUid) -> Result<bool> {
    lock(&mut *conn, account).await?;
    let redeemed = sqlx::query!(
        "UPDATE signin_links SET used_at = now()
         WHERE id = $1 AND account_uid = $2 AND used_at IS NULL AND expires_at > now() AND (NOT is_invitation OR is_unused($2))",
        id,
        account.as_str()
    )
    .execute(conn)
    .await?;
    Ok(redeemed.rows_affected() == 1)
}

/// A session to create.
pub struct NewSession<'a> {
    /// Id of the session.
    pub id: Uuid,
    /// The person's account.
    pub account: &'a AccountUid,
    /// Label under which activity of the session is recorded, at most 80 characters.
    pub label: &'a str,
    /// Scopes of the session.
    pub scopes: Scopes,
    /// Keyed hash of the session's secret.
    pub secret_hash: &'a [u8],
    /// The token that signed it in, if one did.
    pub parent: Option<Uuid>,
    /// The browser, as it names itself.
    pub client: Option<&'a str>,
}

/// A session that was created.
#[derive(Debug)]
pub struct Created {
    /// When it expires at the latest.
    pub expires_at: Timestamp,
    /// The sessions that have ended for it, because there are too many.
    pub ended: Vec<Uuid>,
}

/// Creates a session, and ends the oldest living ones of the account beyond its limit.
///
/// Locks the account's row, so that two concurrent calls cannot both keep the last place.
#[instrument(skip_all, name = "db.session.create")]
pub async fn create(conn: &mut PgConnection, session: &NewSession<'_>) -> Result<Created> {
    lock(&mut *conn, session.account).await?;
    open_session(&mut *conn, session.account).await?;
    let ended = sqlx::query_scalar!(
        "UPDATE tokens SET expires_at = now() WHERE id IN (
             SELECT t.id FROM tokens t JOIN account_sessions s ON s.id = t.session_id
             WHERE t.account_uid = $1 AND t.kind = 'session' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
               AND t.expires_at > now() AND t.idle_until > now()
               AND (t.parent IS NULL OR EXISTS (SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL))
             ORDER BY t.created_at DESC, t.id DESC OFFSET $2
         ) RETURNING id",
        session.account.as_str(),
        SESSIONS_MAX - 1
    );
    let ended = ended.fetch_all(&mut *conn).await?;
    let scopes: Vec<String> = session.scopes.iter().map(|scope| scope.to_string()).collect();
    let expires_at = sqlx::query_scalar!(
        r#"INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind, parent, client,
                               last_used_at, idle_until, expires_at)
           SELECT $1, $2, id, $3, $4, $5,
                  -- Of a token with budgets: marked, as its own (`budgets::set`).
                  CASE WHEN (SELECT octet_length(secret_hash) > 32 FROM tokens WHERE id = $7) THEN '\x01'::bytea || $6 ELSE $6 END,
                  'session', $7, $8, now(), now() + make_interval(hours => $9),
                  least(now() + make_interval(days => $10), (SELECT expires_at FROM tokens WHERE id = $7))
           FROM account_sessions WHERE account_uid = $2 AND revoked_at IS NULL
           RETURNING expires_at AS "expires_at!""#,
        session.id,
        session.account.as_str(),
        session.label,
        &scopes,
        Surface::Browser.as_str(),
        session.secret_hash,
        session.parent,
        session.client,
        SESSION_IDLE_HOURS,
        SESSION_DAYS,
    )
    .fetch_one(conn)
    .await?;
    Ok(Created { expires_at: expires_at.into(), ended })
}

/// An active session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Id of the session.
    pub id: Uuid,
    /// Its label.
    pub label: String,
    /// `true` if a token signed it in.
    pub is_narrow: bool,
    /// The browser, as it names itself.
    pub client: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires at the latest.
    pub expires_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Lists the active sessions of an account, newest first.
#[instrument(skip_all, name = "db.session.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Session>> {
    let rows = sqlx::query!(
        r#"SELECT t.id, t.label, t.parent IS NOT NULL AS "is_narrow!", t.client, t.created_at, t.expires_at AS "expires_at!",
                  t.last_used_at
           FROM tokens t JOIN account_sessions s ON s.id = t.session_id
           WHERE t.account_uid = $1 AND t.kind = 'session' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
             AND t.expires_at > now() AND t.idle_until > now()
             AND (t.parent IS NULL OR EXISTS (
                 SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL
                   AND (p.expires_at IS NULL OR p.expires_at > now())
             ))
           ORDER BY t.created_at DESC, t.id DESC"#,
        account.as_str()
    )
    .fetch_all(conn)
    .await?;
    let read = rows.into_iter().map(|row| Session {
        id: row.id,
        label: row.label,
        is_narrow: row.is_narrow,
        client: row.client,
        created_at: row.created_at.into(),
        expires_at: row.expires_at.into(),
        last_used_at: row.last_used_at.map(Into::into),
    });
    Ok(read.collect())
}

/// Ends one session of an account. Work that it started goes on. `false`: the account has no such active session.
#[instrument(skip_all, name = "db.session.end")]
pub async fn end(conn: &mut PgConnection, account: &AccountUid, id: Uuid) -> Result<bool> {
    let ended = sqlx::query!(
        "UPDATE tokens SET expires_at = now()
         WHERE id = $1 AND account_uid = $2 AND kind = 'session' AND revoked_at IS NULL AND expires_at > now()",
        id,
        account.as_str()
    )
    .execute(conn)
    .await?;
    Ok(ended.rows_affected() == 1)
}

/// Revokes all sessions of an account, which also withdraws the delegation of the Recipe runs that they started. Returns the
/// number of sessions that were active.
#[instrument(skip_all, name = "db.session.revoke_all")]
pub async fn revoke_all(conn: &mut PgConnection, account: &AccountUid) -> Result<u64> {
    let revoked = sqlx::query!(
        r#"WITH revoked AS (
               UPDATE tokens SET revoked_at = now() WHERE account_uid = $1 AND kind = 'session' AND revoked_at IS NULL
               RETURNING expires_at > now() AND idle_until > now() AS active
           )
           SELECT count(*) FILTER (WHERE active) AS "count!" FROM revoked"#,
        account.as_str()
    )
    .fetch_one(conn)
    .await?;
    Ok(revoked.count.unsigned_abs())
}
