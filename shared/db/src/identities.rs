//! People at OpenID providers, and what a sign-in changes (docs/reference/signin.md).
//!
//! The functions of a sign-in expect that its transaction has locked the identity first and then the account, so that of concurrent
//! first sign-ins one decides and the others find its decision.

use domain::Timestamp;
use domain::account::{Role, display_name};
use domain::id::AccountUid;
use sqlx::PgConnection;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::error::known;

/// A person at a provider.
#[derive(Clone, Debug)]
pub struct Identity {
    pub id: Uuid,
    /// `None` at the first sign-in.
    pub account: Option<AccountUid>,
    /// The last verified email.
    pub email: Option<String>,
}

/// Locks an identity until the transaction ends. A new one has no account and must get one, or be rolled back.
#[instrument(skip_all, name = "db.identity.lock")]
pub async fn lock(conn: &mut PgConnection, provider: &str, issuer: &str, subject: &str) -> Result<Identity> {
    let row = sqlx::query!(
        "INSERT INTO identities (id, issuer, subject, provider) VALUES ($1, $2, $3, $4)
         ON CONFLICT (issuer, subject) DO UPDATE SET provider = $4 RETURNING id, account_uid, email",
        Uuid::now_v7(),
        issuer,
        subject,
        provider
    )
    .fetch_one(conn)
    .await?;
    Ok(Identity { id: row.id, account: row.account_uid.map(AccountUid::from_stored), email: row.email })
}

/// An account at a sign-in, which is locked until the transaction ends.
#[derive(Clone, Debug)]
pub struct Locked {
    pub account: AccountUid,
    /// Name under which others see the account.
    pub display_name: String,
    pub enabled: bool,
    /// Whether a sign-in that was not admitted disabled it.
    pub disabled_by_sign_in: bool,
    pub is_admin: bool,
    /// How many identities it has.
    pub identities: i64,
}

/// Locks the account with this uid, or without one that with this email. A purged account is not found.
#[instrument(skip_all, name = "db.identity.lock_account")]
pub async fn lock_account(
    conn: &mut PgConnection,
    account: Option<&AccountUid>,
    email: Option<&str>,
) -> Result<Option<Locked>> {
    let locked = sqlx::query_scalar!(
        "SELECT uid FROM accounts
         WHERE purged_at IS NULL AND (uid = $1 OR $1 IS NULL AND lower(email) = lower($2)) FOR NO KEY UPDATE",
        account.map(AccountUid::as_str),
        email
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(uid) = locked else { return Ok(None) };
    // After the lock, so that this statement sees what those before it committed.
    let row = sqlx::query!(
        r#"SELECT email, display_name, enabled, disabled_by, role,
                  (SELECT count(*) FROM identities WHERE account_uid = uid) AS "identities!"
           FROM accounts WHERE uid = $1"#,
        uid
    )
    .fetch_one(conn)
    .await?;
    Ok(Some(Locked {
        account: AccountUid::from_stored(uid),
        display_name: display_name(&row.display_name, &row.email),
        enabled: row.enabled,
        disabled_by_sign_in: row.disabled_by.is_some(),
        is_admin: row.role == "admin",
        identities: row.identities,
    }))
}

/// Gives an identity its account.
#[instrument(skip_all, name = "db.identity.link")]
pub async fn link(conn: &mut PgConnection, identity: Uuid, account: &AccountUid) -> Result<()> {
    sqlx::query!("UPDATE identities SET account_uid = $2 WHERE id = $1", identity, account.as_str())
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes an identity from an account. The account's tokens need no sign-in any more when it was the last. `false`: the account has no
/// such identity.
#[instrument(skip_all, name = "db.identity.unlink")]
pub async fn unlink(conn: &mut PgConnection, account: &AccountUid, identity: Uuid) -> Result<bool> {
    // In the order of a sign-in: the identity, and then the account.
    sqlx::query!("SELECT FROM identities WHERE id = $1 FOR UPDATE", identity).fetch_optional(&mut *conn).await?;
    crate::accounts::lock(&mut *conn, account).await?;
    let removed = sqlx::query!("DELETE FROM identities WHERE id = $1 AND account_uid = $2", identity, account.as_str())
        .execute(&mut *conn)
        .await?;
    sqlx::query!(
        "UPDATE accounts SET confirm_by = NULL
         WHERE uid = $1 AND NOT EXISTS (SELECT FROM identities WHERE account_uid = $1)",
        account.as_str()
    )
    .execute(conn)
    .await?;
    Ok(removed.rows_affected() == 1)
}

/// Disables an account until the next admitted sign-in. `false`: it is disabled already, and stays as it is.
#[instrument(skip_all, name = "db.identity.disable")]
pub async fn disable(conn: &mut PgConnection, account: &AccountUid) -> Result<bool> {
    let disabled = sqlx::query!(
        "UPDATE accounts SET enabled = false, disabled_by = 'signin' WHERE uid = $1 AND enabled",
        account.as_str()
    );
    Ok(disabled.execute(conn).await?.rows_affected() == 1)
}

/// What an admitted sign-in changes on its account.
pub struct Changes<'a> {
    /// The email that replaces that of the account, if it is free.
    pub email: Option<&'a str>,
    /// The role that a provider gives, or takes if it gave it.
    pub is_admin: Option<bool>,
    /// Credits to which the balance is raised, at the first sign-in of a month.
    pub credits: Option<i64>,
    /// The quota that a claim sets; `Some(None)` restores the default if a claim had set it.
    pub storage: Option<Option<i64>>,
    /// Days for which the sign-in confirms the account's tokens; `None` for ever.
    pub confirm_days: Option<u32>,
}

/// What a sign-in has changed on its account.
pub struct Changed {
    /// It is enabled again.
    pub enabled: bool,
    /// It has the email of the identity.
    pub email: bool,
    /// Its role, if that is another one.
    pub role: Option<Role>,
    /// Its quota, if that is another one; `Some(None)` is the default.
    pub storage: Option<Option<i64>>,
    /// Credits that were added, and the balance since.
    pub credits: Option<(i64, i64)>,
}

/// Records an admitted sign-in, enables an account that an earlier sign-in disabled, and applies what the claims say.
#[instrument(skip_all, name = "db.identity.sign_in")]
pub async fn sign_in(
    conn: &mut PgConnection,
    (identity, provider): (Uuid, &str),
    account: &AccountUid,
    verified_email: Option<&str>,
    changes: &Changes<'_>,
) -> Result<Changed> {
    sqlx::query!(
        "UPDATE identities SET last_signin_at = now(), email = coalesce($2, email) WHERE id = $1",
        identity,
        verified_email
    )
    .execute(&mut *conn)
    .await?;
    let changed = sqlx::query!(
        r#"UPDATE accounts SET
             enabled = enabled OR disabled_by IS NOT NULL,
             disabled_by = NULL,
             confirm_by = now() + make_interval(days => $3),
             email = CASE WHEN $4::text IS NOT NULL
                           AND NOT EXISTS (SELECT FROM accounts o WHERE lower(o.email) = lower($4) AND o.uid <> $1)
                          THEN $4 ELSE email END,
             role = CASE WHEN $5 THEN 'admin' WHEN NOT $5 AND role_from = $2 THEN 'member' ELSE role END,
             role_from = CASE WHEN $5 AND role = 'member' THEN $2 WHEN NOT $5 AND role_from = $2 THEN NULL
                              ELSE role_from END,
             storage_max = CASE WHEN $6 AND $7::bigint IS NOT NULL THEN $7 WHEN $6 AND storage_from = $2 THEN NULL
                                ELSE storage_max END,
             storage_from = CASE WHEN $6 AND $7 IS NOT NULL THEN $2 WHEN $6 AND storage_from = $2 THEN NULL
                                 ELSE storage_from END
         FROM (SELECT uid AS id, enabled AS was_enabled, email AS was_email, role AS was_role, storage_max AS was_max
               FROM accounts WHERE uid = $1) before
         WHERE uid = before.id
         RETURNING enabled <> was_enabled AS "enabled!", email <> was_email AS "email!",
                   CASE WHEN role <> was_role THEN role END AS role, storage_max IS DISTINCT FROM was_max AS "storage!", storage_max"#,
        account.as_str(),
        provider,
        changes.confirm_days.map(|days| i32::try_from(days).unwrap_or(i32::MAX)),
        changes.email,
        changes.is_admin,
        changes.storage.is_some(),
        changes.storage.flatten(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let mut raised = None;
    if let Some(credits) = changes.credits {
        let added = sqlx::query_scalar!(
            "WITH month AS (SELECT date_trunc('month', now() AT TIME ZONE 'UTC')::date AS first), before AS (
                 SELECT uid, greatest($2 - credit_balance, 0) AS lacking FROM accounts, month
                 WHERE uid = $1 AND raised_for IS DISTINCT FROM month.first
             ), raised AS (
                 UPDATE accounts SET raised_for = month.first, credit_balance = credit_balance + before.lacking
                 FROM before, month WHERE accounts.uid = before.uid
             )
             INSERT INTO ledger (account_uid, amount, reason) SELECT uid, lacking, 'grant' FROM before WHERE lacking > 0
             RETURNING amount",
            account.as_str(),
            credits
        );
        // The balance was less, and now it is that of the claim.
        raised = added.fetch_optional(conn).await?.map(|added| (added, credits));
    }
    Ok(Changed {
        enabled: changed.enabled,
        email: changed.email,
        role: changed.role.as_deref().map(|role| known("accounts.role", role)).transpose()?,
        storage: changed.storage.then_some(changed.storage_max),
        credits: raised,
    })
}

/// Lets the tokens of an account work for more days, or for ever, if they need a sign-in. For a sign-in by a link of the operator.
#[instrument(skip_all, name = "db.identity.confirm")]
pub async fn confirm(conn: &mut PgConnection, account: &AccountUid, days: Option<u32>) -> Result<()> {
    sqlx::query!(
        "UPDATE accounts SET confirm_by = CASE WHEN $2::int IS NOT NULL THEN greatest(confirm_by, now() + make_interval(days => $2)) END
         WHERE uid = $1 AND confirm_by IS NOT NULL",
        account.as_str(),
        days.map(|days| i32::try_from(days).unwrap_or(i32::MAX))
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Notes which identity began a session.
#[instrument(skip_all, name = "db.identity.begin_session")]
pub async fn begin_session(conn: &mut PgConnection, session: Uuid, identity: Uuid, sid: Option<&str>) -> Result<()> {
    sqlx::query!("INSERT INTO session_logins (token_id, identity_id, sid) VALUES ($1, $2, $3)", session, identity, sid)
        .execute(conn)
        .await?;
    Ok(())
}

/// A session that a provider ended.
pub struct EndedSession {
    pub id: Uuid,
    pub account: AccountUid,
    /// The identity that began it.
    pub identity: Uuid,
}

/// Ends the sessions that a person of an issuer began up to the second `issued_at`: those of the provider's session `sid`, or of the
/// subject when only that is named or the provider named no session at the sign-in. Returns them.
#[instrument(skip_all, name = "db.identity.end_sessions")]
pub async fn end_sessions(
    conn: &mut PgConnection,
    issuer: &str,
    subject: Option<&str>,
    sid: Option<&str>,
    issued_at: i64,
) -> Result<Vec<EndedSession>> {
    let ended = sqlx::query!(
        "UPDATE tokens t SET expires_at = now() FROM session_logins l JOIN identities i ON i.id = l.identity_id
             WHERE t.id = l.token_id AND i.issuer = $1 AND t.expires_at > now() AND t.revoked_at IS NULL AND t.idle_until > now() AND t.created_at < to_timestamp($4::bigint + 1)
               AND CASE WHEN $2::text IS NULL THEN l.sid = $3
                        ELSE i.subject = $2 AND ($3::text IS NULL OR l.sid IS NULL OR l.sid = $3) END
             RETURNING t.id, t.account_uid, l.identity_id",
        issuer,
        subject,
        sid,
        issued_at
    )
    .fetch_all(conn)
    .await?;
    let sessions = ended.into_iter().map(|row| EndedSession {
        id: row.id,
        account: AccountUid::from_stored(row.account_uid),
        identity: row.identity_id,
    });
    Ok(sessions.collect())
}

/// An identity as its owner and the operator see it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub id: Uuid,
    pub account: AccountUid,
    pub provider: String,
    pub issuer: String,
    pub subject: String,
    pub email: Option<String>,
    pub created_at: Timestamp,
    pub last_signin_at: Option<Timestamp>,
}

/// Lists the identities of an account, oldest first.
#[instrument(skip_all, name = "db.identity.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<Listed>> {
    let rows = sqlx::query!(
        "SELECT id, provider, issuer, subject, email, created_at, last_signin_at FROM identities
         WHERE account_uid = $1 ORDER BY created_at, id",
        account.as_str()
    )
    .fetch_all(conn)
    .await?;
    let listed = rows.into_iter().map(|row| Listed {
        id: row.id,
        account: account.clone(),
        provider: row.provider,
        issuer: row.issuer,
        subject: row.subject,
        email: row.email,
        created_at: row.created_at.into(),
        last_signin_at: row.last_signin_at.map(Into::into),
    });
    Ok(listed.collect())
}

/// How many identities an account has.
#[instrument(skip_all, name = "db.identity.count")]
pub async fn count(conn: &mut PgConnection, account: &AccountUid) -> Result<i64> {
    let count =
        sqlx::query_scalar!(r#"SELECT count(*) AS "count!" FROM identities WHERE account_uid = $1"#, account.as_str());
    Ok(count.fetch_one(conn).await?)
}

/// Returns `true` if a session began within the last `minutes`.
#[instrument(skip_all, name = "db.identity.is_recent")]
pub async fn is_recent(conn: &mut PgConnection, session: Uuid, minutes: i32) -> Result<bool> {
    let recent = sqlx::query_scalar!(
        r#"SELECT created_at > now() - make_interval(mins => $2) AS "recent!" FROM tokens WHERE id = $1"#,
        session,
        minutes
    );
    Ok(recent.fetch_optional(conn).await?.unwrap_or(false))
}
