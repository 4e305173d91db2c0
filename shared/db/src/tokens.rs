//! Agent tokens, and what they share with the sessions of people ([`crate::sessions`]).

use domain::Timestamp;
use domain::account::{Scopes, Surface, TokenKind};
use domain::budget::{BudgetOwner, BudgetState};
use domain::id::AccountUid;
use domain::limits::{ACTIVE_TOKENS_MAX, SESSION_IDLE_HOURS};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use crate::accounts::{lock, scopes};
use crate::error::known;
use crate::{Result, budgets};

/// Days that a revoked token, or an ended session, is kept.
const KEPT_DAYS: i32 = 90;

/// A token to create.
pub struct NewToken<'a> {
    /// Id of the token.
    pub id: Uuid,
    /// The account that owns the token.
    pub account: &'a AccountUid,
    /// Label of the token, at most 80 characters.
    pub label: &'a str,
    /// Scopes of the token, with every scope that they depend on.
    pub scopes: Scopes,
    /// Client surface of the token.
    pub surface: Surface,
    /// Keyed hash of the token's secret.
    pub secret_hash: &'a [u8],
    /// Days until the token expires; `None`: it does not expire.
    pub expires_days: Option<u32>,
}

/// Result of creating a token.
#[derive(Debug, PartialEq)]
pub enum TokenCreated {
    /// The token was created.
    Done(TokenRow),
    /// The account already has the maximum number of active tokens.
    TooMany,
}

/// Creates a token under the account's session, and opens a session when none is active.
///
/// Locks the account's row, so that two concurrent calls cannot both create the last permitted token.
#[instrument(skip_all, name = "db.token.create")]
pub async fn create(conn: &mut PgConnection, token: &NewToken<'_>) -> Result<TokenCreated> {
    lock(&mut *conn, token.account).await?;
    let active = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM tokens t JOIN account_sessions s ON s.id = t.session_id
           WHERE t.account_uid = $1 AND t.kind = 'agent' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
             AND (t.expires_at IS NULL OR t.expires_at > now())"#,
        token.account.as_str()
    )
    .fetch_one(&mut *conn)
    .await?;
    if active >= ACTIVE_TOKENS_MAX {
        return Ok(TokenCreated::TooMany);
    }
    open_session(&mut *conn, token.account).await?;
    let scopes: Vec<String> = token.scopes.iter().map(|scope| scope.to_string()).collect();
    let row = sqlx::query!(
        "INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, expires_at)
         SELECT $1, $2, id, $3, $4, $5, $6, now() + make_interval(days => $7)
         FROM account_sessions WHERE account_uid = $2 AND revoked_at IS NULL
         RETURNING created_at, expires_at",
        token.id,
        token.account.as_str(),
        token.label,
        &scopes,
        token.surface.as_str(),
        token.secret_hash,
        token.expires_days.map(|days| i32::try_from(days).unwrap_or(i32::MAX)),
    )
    .fetch_one(conn)
    .await?;
    Ok(TokenCreated::Done(TokenRow {
        id: token.id,
        label: token.label.to_owned(),
        scopes: token.scopes,
        surface: token.surface,
        created_at: row.created_at.into(),
        expires_at: row.expires_at.map(Into::into),
        revoked_at: None,
        last_used_at: None,
        budgets: Vec::new(),
    }))
}

/// Opens the account's session when none is active. The caller has locked the account's row.
pub(crate) async fn open_session(conn: &mut PgConnection, account: &AccountUid) -> Result<()> {
    sqlx::query!(
        "INSERT INTO account_sessions (id, account_uid) VALUES ($1, $2) ON CONFLICT DO NOTHING",
        Uuid::now_v7(),
        account.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A token without its secret.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenRow {
    /// Id of the token.
    pub id: Uuid,
    /// Label of the token.
    pub label: String,
    /// Scopes of the token.
    pub scopes: Scopes,
    /// Client surface of the token.
    pub surface: Surface,
    /// When the token was created.
    pub created_at: Timestamp,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
    /// When the token or its session was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When the token was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// Budgets of the token.
    pub budgets: Vec<BudgetState>,
}

/// Position of a page of tokens: after the token that was created at this time, with this id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct After {
    /// When the last token was created.
    pub created_at: Timestamp,
    /// Id of the last token.
    pub id: Uuid,
}

/// Lists an account's agent tokens, oldest first.
#[instrument(skip_all, name = "db.token.list")]
pub async fn list(conn: &mut PgConnection, account: &AccountUid) -> Result<Vec<TokenRow>> {
    let rows = sqlx::query_as!(
        ListedTokenRow,
        r#"SELECT t.id, t.label, t.scopes, t.surface, t.created_at, t.expires_at,
                  coalesce(t.revoked_at, s.revoked_at) AS revoked_at, t.last_used_at
           FROM tokens t JOIN account_sessions s ON s.id = t.session_id
           WHERE t.account_uid = $1 AND t.kind = 'agent' ORDER BY t.created_at, t.id"#,
        account.as_str()
    )
    .fetch_all(&mut *conn)
    .await?;
    with_budgets(conn, account, rows).await
}

/// Lists at most `limit` of an account's agent tokens, newest first.
#[instrument(skip_all, name = "db.token.page")]
pub async fn page(
    conn: &mut PgConnection,
    account: &AccountUid,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<TokenRow>> {
    let rows = sqlx::query_as!(
        ListedTokenRow,
        r#"SELECT t.id, t.label, t.scopes, t.surface, t.created_at, t.expires_at,
                  coalesce(t.revoked_at, s.revoked_at) AS revoked_at, t.last_used_at
           FROM tokens t JOIN account_sessions s ON s.id = t.session_id
           WHERE t.account_uid = $1 AND t.kind = 'agent'
             AND ($2::timestamptz IS NULL OR (t.created_at, t.id) < ($2, $3))
           ORDER BY t.created_at DESC, t.id DESC LIMIT $4"#,
        account.as_str(),
        after.map(|after| after.created_at.get()),
        after.map(|after| after.id),
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    with_budgets(conn, account, rows).await
}

async fn with_budgets(
    conn: &mut PgConnection,
    account: &AccountUid,
    rows: Vec<ListedTokenRow>,
) -> Result<Vec<TokenRow>> {
    let mut tokens = rows.into_iter().map(ListedTokenRow::token).collect::<Result<Vec<_>>>()?;
    let ids: Vec<Uuid> = tokens.iter().map(|token| token.id).collect();
    let mut budgets = budgets::of_each(conn, account, &ids, BudgetOwner::Token).await?;
    for token in &mut tokens {
        token.budgets = budgets.remove(&token.id).unwrap_or_default();
    }
    Ok(tokens)
}

/// Whether an account has an agent's token with this id.
#[instrument(skip_all, name = "db.token.exists")]
pub async fn exists(conn: &mut PgConnection, account: &AccountUid, token: Uuid) -> Result<bool> {
    let exists = sqlx::query_scalar!(
        r#"SELECT EXISTS (SELECT FROM tokens WHERE id = $1 AND account_uid = $2 AND kind = 'agent') AS "exists!""#,
        token,
        account.as_str()
    );
    Ok(exists.fetch_one(conn).await?)
}

struct ListedTokenRow {
    id: Uuid,
    label: String,
    scopes: Vec<String>,
    surface: String,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl ListedTokenRow {
    fn token(self) -> Result<TokenRow> {
        Ok(TokenRow {
            id: self.id,
            label: self.label,
            scopes: scopes(&self.scopes)?,
            surface: known("tokens.surface", &self.surface)?,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.map(Into::into),
            revoked_at: self.revoked_at.map(Into::into),
            last_used_at: self.last_used_at.map(Into::into),
            budgets: Vec::new(),
        })
    }
}

/// A token that is revoked.
#[derive(Clone, Debug)]
pub struct Revoked {
    /// Its account.
    pub account: AccountUid,
    /// When it was revoked first.
    pub at: Timestamp,
    /// `true` if it was revoked now.
    pub is_new: bool,
}

/// Revokes a token of this kind permanently: an agent's, or that of an app. `None` when there is no such token, or not of `account` if one
/// is named.
#[instrument(skip_all, name = "db.token.revoke")]
pub async fn revoke(
    conn: &mut PgConnection,
    kind: TokenKind,
    token: Uuid,
    account: Option<&AccountUid>,
) -> Result<Option<Revoked>> {
    let revoked = sqlx::query!(
        r#"WITH held AS (
               SELECT id, revoked_at IS NULL AS is_new FROM tokens
               WHERE id = $1 AND kind = $3 AND ($2::text IS NULL OR account_uid = $2) FOR NO KEY UPDATE
           )
           UPDATE tokens t SET revoked_at = coalesce(t.revoked_at, now()) FROM held WHERE t.id = held.id
           RETURNING t.account_uid, t.revoked_at AS "at!", held.is_new AS "is_new!""#,
        token,
        account.map(AccountUid::as_str),
        kind.as_str()
    )
    .fetch_optional(conn)
    .await?;
    Ok(revoked.map(|row| Revoked {
        account: AccountUid::from_stored(row.account_uid),
        at: row.at.into(),
        is_new: row.is_new,
    }))
}

/// Records that a token was used, from which an idle session counts. Writes at most once a minute, however many requests use
/// the token.
#[instrument(skip_all, name = "db.token.record_use")]
pub async fn record_use(conn: &mut PgConnection, token: Uuid) -> Result<()> {
    sqlx::query!(
        "UPDATE tokens SET last_used_at = now(),
                idle_until = CASE WHEN kind = 'session' THEN now() + make_interval(hours => $2) ELSE idle_until END
         WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')",
        token,
        SESSION_IDLE_HOURS
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes tokens that were revoked 90 days ago or earlier, and sessions and apps that ended then, with their budgets and grants. Returns
/// the number deleted, at most `limit`. One that a job, an import, a Recipe run or a session refers to is kept as long as that is there.
#[instrument(skip_all, name = "db.token.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let swept = sqlx::query_scalar!(
        r#"WITH swept AS (
             DELETE FROM tokens WHERE id IN (
                 SELECT t.id FROM tokens t JOIN account_sessions s ON s.id = t.session_id
                 WHERE least(t.revoked_at, s.revoked_at, CASE WHEN t.kind = 'session' THEN t.expires_at END,
                             CASE WHEN t.kind = 'oauth' THEN least(t.expires_at, t.idle_until) END)
                         <= now() - make_interval(days => $1)
                   AND NOT EXISTS (SELECT FROM jobs WHERE token_id = t.id)
                   AND NOT EXISTS (SELECT FROM imports WHERE token_id = t.id)
                   AND NOT EXISTS (SELECT FROM recipe_runs WHERE token_id = t.id)
                   AND NOT EXISTS (SELECT FROM tokens child WHERE child.parent = t.id)
                 LIMIT $2 FOR UPDATE OF t SKIP LOCKED)
             RETURNING id, account_uid
         ), granted AS (
             DELETE FROM oauth_grants WHERE id IN (SELECT id FROM swept)
         ), forgotten AS (
             -- Without the lock on the account: nothing counts in them any more.
             DELETE FROM budgets b USING swept WHERE b.account_uid = swept.account_uid AND b.authority = swept.id
         )
         SELECT count(*) AS "count!" FROM swept"#,
        KEPT_DAYS,
        limit
    )
    .fetch_one(conn)
    .await?;
    Ok(swept.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use domain::account::Scope;
    use testkit::TestDatabase;

    use super::*;
    use crate::accounts;
    use crate::sessions::{self, NewSession};

    struct Fixture {
        database: TestDatabase,
        account: AccountUid,
    }

    impl Fixture {
        async fn new() -> Self {
            let database = TestDatabase::new().await;
            let account = AccountUid::parse("me").expect("valid");
            let mut conn = database.pool().acquire().await.expect("connects");
            accounts::create(&mut conn, &account, "me@example.com").await.expect("creates").expect("is new");
            drop(conn);
            Self { database, account }
        }

        async fn conn(&self) -> crate::Connection {
            self.database.pool().acquire().await.expect("connects")
        }

        async fn token(&self) -> Uuid {
            let id = Uuid::now_v7();
            let token = NewToken {
                id,
                account: &self.account,
                label: "t",
                scopes: Scopes::from_slice(&[Scope::CanvasRead]),
                surface: Surface::Api,
                secret_hash: b"",
                expires_days: Some(1),
            };
            create(&mut *self.conn().await, &token).await.expect("creates");
            id
        }

        async fn session(&self, parent: Option<Uuid>) -> Uuid {
            let id = Uuid::now_v7();
            let scopes = Scopes::from_slice(&[Scope::CanvasRead]);
            let session =
                NewSession { id, account: &self.account, label: "s", scopes, secret_hash: b"", parent, client: None };
            sessions::create(&mut *self.conn().await, &session).await.expect("creates");
            id
        }

        /// Makes a token's times as they are `days` and `seconds` later.
        async fn age(&self, token: Uuid, days: i32, seconds: f64) {
            sqlx::query(
                "UPDATE tokens SET revoked_at = revoked_at - make_interval(days => $2, secs => $3),
                        expires_at = expires_at - make_interval(days => $2, secs => $3) WHERE id = $1",
            )
            .bind(token)
            .bind(days)
            .bind(seconds)
            .execute(self.database.pool())
            .await
            .expect("ages");
        }

        async fn revoke(&self, token: Uuid) {
            revoke(&mut *self.conn().await, TokenKind::Agent, token, None).await.expect("revokes").expect("is there");
        }

        async fn sweep(&self) -> u64 {
            sweep(&mut *self.conn().await, 10).await.expect("sweeps")
        }

        async fn is_there(&self, token: Uuid) -> bool {
            let found = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tokens WHERE id = $1").bind(token);
            found.fetch_one(self.database.pool()).await.expect("reads") == 1
        }
    }

    #[tokio::test]
    async fn a_revoked_token_is_kept_for_90_days() {
        let fixture = Fixture::new().await;
        let (valid, expired, revoked) = (fixture.token().await, fixture.token().await, fixture.token().await);
        fixture.revoke(revoked).await;
        fixture.age(expired, 1000, 0.0).await;
        fixture.age(revoked, 89, 86_000.0).await;
        assert_eq!(fixture.sweep().await, 0);
        fixture.age(revoked, 0, 400.0).await;
        assert_eq!(fixture.sweep().await, 1);
        assert!(!fixture.is_there(revoked).await);
        assert!(fixture.is_there(valid).await && fixture.is_there(expired).await, "only revoked ones go");
    }

    #[tokio::test]
    async fn a_token_of_a_revoked_session_of_the_account_goes_with_it() {
        let fixture = Fixture::new().await;
        let token = fixture.token().await;
        sqlx::query("UPDATE account_sessions SET revoked_at = now() - interval '91 days'")
            .execute(fixture.database.pool())
            .await
            .expect("revokes");
        assert_eq!(fixture.sweep().await, 1);
        assert!(!fixture.is_there(token).await);
    }

    #[tokio::test]
    async fn a_session_goes_90_days_after_its_end_and_before_the_token_that_signed_it_in() {
        let fixture = Fixture::new().await;
        let token = fixture.token().await;
        let (narrow, full) = (fixture.session(Some(token)).await, fixture.session(None).await);
        fixture.revoke(token).await;
        fixture.age(token, 91, 0.0).await;
        assert_eq!(fixture.sweep().await, 0, "its session refers to it");
        // A session expires after 30 days.
        for session in [narrow, full] {
            fixture.age(session, 121, 0.0).await;
        }
        assert_eq!((fixture.sweep().await, fixture.sweep().await), (2, 1));
        assert!(!fixture.is_there(token).await);
    }

    #[tokio::test]
    async fn a_token_that_work_refers_to_is_kept() {
        let fixture = Fixture::new().await;
        let token = fixture.token().await;
        fixture.revoke(token).await;
        fixture.age(token, 91, 0.0).await;
        sqlx::query(
            "INSERT INTO jobs (id, account_uid, token_id, kind, operation, status, request, estimated_seconds)
             VALUES ($1, 'me', $2, 'image', 'action', 'queued', '{}', 1)",
        )
        .bind(Uuid::now_v7())
        .bind(token)
        .execute(fixture.database.pool())
        .await
        .expect("inserts");
        assert_eq!(fixture.sweep().await, 0);
        sqlx::query("DELETE FROM jobs").execute(fixture.database.pool()).await.expect("deletes");
        assert_eq!(fixture.sweep().await, 1);
    }
}
