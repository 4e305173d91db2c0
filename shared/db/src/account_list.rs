//! Accounts as administrators see them (docs/reference/administration.md#accounts): numbers and times, and nothing of what they store.

use domain::Timestamp;
use domain::account::{Role, display_name};
use domain::id::AccountUid;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;

use crate::Result;
use crate::error::known;

/// An account in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedAccount {
    /// Uid of the account.
    pub uid: AccountUid,
    /// Email of the account.
    pub email: String,
    /// Name under which others see the account.
    pub display_name: String,
    /// Its role.
    pub role: Role,
    /// `true` if the account is enabled.
    pub enabled: bool,
    /// Credit balance of the account.
    pub credit_balance: i64,
    /// Bytes that it stores.
    pub storage_bytes: i64,
    /// Its quota in bytes; 0: no limit.
    pub storage_max: i64,
    /// `true` if that is its own quota, and not the default of the configuration.
    pub has_own_quota: bool,
    /// Number of its active tokens.
    pub tokens: i64,
    /// Number of its active sessions.
    pub sessions: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When a person signed in last, within 90 days.
    pub last_signed_in_at: Option<Timestamp>,
}

/// Which accounts are listed.
#[derive(Clone, Debug, Default)]
pub struct AccountFilter {
    /// The one account with this uid.
    pub uid: Option<AccountUid>,
    /// A part of the uid, the email or the name, whatever its case.
    pub text: Option<String>,
    /// Only enabled accounts, or only disabled ones.
    pub enabled: Option<bool>,
    /// Only accounts with this role.
    pub role: Option<Role>,
}

/// Position of a page: after the account that was created at this time, with this uid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct After {
    /// When the last account was created.
    pub created_at: Timestamp,
    /// Its uid.
    pub uid: AccountUid,
}

/// Lists at most `limit` accounts that are not purged, newest first.
#[instrument(skip_all, name = "db.account_list.list")]
pub async fn list(
    conn: &mut PgConnection,
    filter: &AccountFilter,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<ListedAccount>> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT a.uid AS "uid!", a.email AS "email!", a.display_name AS "display_name!", a.role AS "role!", a.enabled AS "enabled!",
                  a.credit_balance AS "credit_balance!", a.created_at AS "created_at!", coalesce(s.bytes, 0) AS "storage_bytes!",
                  a.quota AS "storage_max!", a.storage_max IS NOT NULL AS "has_own_quota!", t.tokens AS "tokens!",
                  t.sessions AS "sessions!", t.last_signed_in_at
           FROM (
               SELECT a.*, storage_limit(a) AS quota FROM accounts a
               WHERE a.purged_at IS NULL AND ($1::text IS NULL OR a.uid = $1)
                 AND ($2::text IS NULL OR strpos(lower(a.uid || ' ' || a.email || ' ' || a.display_name), lower($2)) > 0)
                 AND ($3::boolean IS NULL OR a.enabled = $3) AND ($4::text IS NULL OR a.role = $4)
                 AND ($5::timestamptz IS NULL OR (a.created_at, a.uid) < ($5, $6))
               ORDER BY a.created_at DESC, a.uid DESC LIMIT $7
           ) AS a
           LEFT JOIN account_storage s ON s.account_uid = a.uid
           CROSS JOIN LATERAL (
               SELECT count(*) FILTER (WHERE t.kind <> 'session' AND is_active) AS tokens,
                      count(*) FILTER (WHERE t.kind = 'session' AND is_active) AS sessions,
                      max(t.created_at) FILTER (WHERE t.kind = 'session' AND t.parent IS NULL) AS last_signed_in_at
               FROM tokens t JOIN account_sessions s ON s.id = t.session_id
               CROSS JOIN LATERAL (
                   SELECT t.revoked_at IS NULL AND s.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
                          AND (t.idle_until IS NULL OR t.idle_until > now()) AS is_active
               ) AS state
               WHERE t.account_uid = a.uid
           ) AS t
           ORDER BY a.created_at DESC, a.uid DESC"#,
        filter.uid.as_ref().map(AccountUid::as_str),
        filter.text,
        filter.enabled,
        filter.role.map(Role::as_str),
        after.map(|after| after.created_at.get()),
        after.map(|after| after.uid.as_str()),
        limit,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::account).collect()
}

struct Row {
    uid: String,
    email: String,
    display_name: String,
    role: String,
    enabled: bool,
    credit_balance: i64,
    created_at: DateTime<Utc>,
    storage_bytes: i64,
    storage_max: i64,
    has_own_quota: bool,
    tokens: i64,
    sessions: i64,
    last_signed_in_at: Option<DateTime<Utc>>,
}

impl Row {
    fn account(self) -> Result<ListedAccount> {
        Ok(ListedAccount {
            uid: AccountUid::from_stored(self.uid),
            display_name: display_name(&self.display_name, &self.email),
            email: self.email,
            role: known("accounts.role", &self.role)?,
            enabled: self.enabled,
            credit_balance: self.credit_balance,
            storage_bytes: self.storage_bytes,
            storage_max: self.storage_max,
            has_own_quota: self.has_own_quota,
            tokens: self.tokens,
            sessions: self.sessions,
            created_at: self.created_at.into(),
            last_signed_in_at: self.last_signed_in_at.map(Into::into),
        })
    }
}

/// `true` if nobody ever signed in to the account or used a token of it.
#[instrument(skip_all, name = "db.account_list.is_unused")]
pub async fn is_unused(conn: &mut PgConnection, account: &AccountUid) -> Result<bool> {
    let unused = sqlx::query_scalar!(r#"SELECT is_unused($1) AS "unused!""#, account.as_str());
    Ok(unused.fetch_one(conn).await?)
}

/// Gives an account a role. Returns whether that changed something.
#[instrument(skip_all, name = "db.account_list.set_role")]
pub async fn set_role(conn: &mut PgConnection, account: &AccountUid, role: Role) -> Result<bool> {
    let set = sqlx::query!(
        "UPDATE accounts SET role = $2, role_from = NULL WHERE uid = $1 AND purged_at IS NULL AND (role <> $2 OR role_from IS NOT NULL)",
        account.as_str(),
        role.as_str()
    );
    Ok(set.execute(conn).await?.rows_affected() == 1)
}

#[cfg(test)]
mod tests {
    use testkit::TestDatabase;

    use super::*;

    #[tokio::test]
    async fn accounts_are_searched_filtered_and_counted() {
        let database = TestDatabase::new().await;
        sqlx::raw_sql(
            "INSERT INTO accounts (uid, email, display_name, enabled, created_at, purged_at, storage_max) VALUES
                 ('a', 'ana@example.com', '', true, now() - interval '3 days', NULL, NULL),
                 ('b', 'ben@example.com', 'Benno', false, now() - interval '2 days', NULL, 5),
                 ('c', 'purged:c', '', false, now(), now(), NULL);
             INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'a');
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind, created_at, expires_at, idle_until)
             SELECT gen_random_uuid(), 'a', '00000000-0000-0000-0000-000000000001', 'l', '{}', 'api', '', kind, now(), expires_at, idle_until
             FROM (VALUES ('agent', NULL, NULL), ('agent', now(), NULL), ('session', now() + interval '1 day', now()),
                          ('session', now() + interval '1 day', now() + interval '1 hour')) AS v (kind, expires_at, idle_until)",
        )
        .execute(database.pool())
        .await
        .expect("inserts");
        let mut conn = database.pool().acquire().await.expect("connects");
        let a = AccountUid::parse("a").expect("valid");
        assert!(set_role(&mut conn, &a, Role::Admin).await.expect("sets"));
        assert!(!set_role(&mut conn, &a, Role::Admin).await.expect("sets"), "it has that role");
        assert!(!set_role(&mut conn, &AccountUid::parse("c").expect("valid"), Role::Admin).await.expect("sets"));
        let mut uids = async |filter: AccountFilter| {
            let listed = list(&mut conn, &filter, None, 10).await.expect("lists");
            listed.into_iter().map(|account| account.uid.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(uids(AccountFilter::default()).await, ["b", "a"]);
        for (text, found) in [("ANA", vec!["a"]), ("benno", vec!["b"]), ("example.com", vec!["b", "a"]), ("%", vec![])]
        {
            assert_eq!(uids(AccountFilter { text: Some(text.into()), ..Default::default() }).await, found, "{text}");
        }
        assert_eq!(uids(AccountFilter { enabled: Some(false), ..Default::default() }).await, ["b"]);
        assert_eq!(uids(AccountFilter { role: Some(Role::Admin), ..Default::default() }).await, ["a"]);
        let listed = list(&mut conn, &AccountFilter::default(), None, 1).await.expect("lists");
        let after = After { created_at: listed[0].created_at, uid: listed[0].uid.clone() };
        assert!((listed[0].storage_max, listed[0].has_own_quota) == (5, true));
        let next = list(&mut conn, &AccountFilter::default(), Some(&after), 1).await.expect("lists").remove(0);
        assert_eq!((next.uid, next.tokens, next.sessions, next.has_own_quota), (a.clone(), 1, 1, false));
        assert!(next.last_signed_in_at.is_some());
        assert!(!is_unused(&mut conn, &a).await.expect("looks"));
        assert!(is_unused(&mut conn, &AccountUid::parse("b").expect("valid")).await.expect("looks"));
    }
}
