//! Apps: what people granted to programs, and the clients that an operator listed (docs/reference/oauth.md).
//!
//! An app is one row of `tokens`, of kind `oauth`, whose id is that of its grant. The row is made when the code is exchanged, and each
//! refresh replaces its secret.

use domain::Timestamp;
use domain::account::{AppKind, Scopes, Surface};
use domain::budget::{BudgetOwner, BudgetState};
use domain::id::AccountUid;
use domain::limits::{ACCESS_OVERLAP_SECONDS, APPS_MAX, CODE_SECONDS, REFRESH_REPLAY_SECONDS};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use crate::accounts::{lock, scopes};
use crate::error::known;
use crate::tokens::open_session;
use crate::{Result, budgets};

/// A client, as the person saw it who allowed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The `client_id`.
    pub id: String,
    /// How the service knows it.
    pub kind: AppKind,
    /// Its name.
    pub name: String,
    /// The host that vouches for it.
    pub host: Option<String>,
}

/// A grant to create.
pub struct NewGrant<'a> {
    /// Id of the grant, and later of the app's token.
    pub id: Uuid,
    /// The account of the person.
    pub account: &'a AccountUid,
    /// The client.
    pub client: &'a Client,
    /// Where the code is sent; none for a device code.
    pub redirect_uri: Option<&'a str>,
    /// What is granted.
    pub scopes: Scopes,
    /// Kind of client, for activity.
    pub surface: Surface,
    /// The S256 challenge of the client; none for a device code.
    pub challenge: Option<&'a str>,
    /// Keyed hash of the code's secret.
    pub code_hash: &'a [u8],
    /// Days until the app ends; `None`: it does not end by itself.
    pub expires_days: Option<u32>,
}

/// Creates a grant with its code.
#[instrument(skip_all, name = "db.oauth_grant.create")]
pub async fn create(conn: &mut PgConnection, grant: &NewGrant<'_>) -> Result<()> {
    let scopes: Vec<String> = grant.scopes.iter().map(|scope| scope.to_string()).collect();
    sqlx::query!(
        "INSERT INTO oauth_grants (id, account_uid, client_id, client_kind, client_name, client_host, redirect_uri, scopes, surface,
                                   challenge, code_hash, code_until, ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now() + make_interval(secs => $12),
                 now() + make_interval(days => $13))",
        grant.id,
        grant.account.as_str(),
        grant.client.id,
        grant.client.kind.as_str(),
        grant.client.name,
        grant.client.host,
        grant.redirect_uri,
        &scopes,
        grant.surface.as_str(),
        grant.challenge,
        grant.code_hash,
        f64::from(CODE_SECONDS),
        grant.expires_days.map(|days| i32::try_from(days).unwrap_or(i32::MAX)),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A grant.
#[derive(Clone, Debug)]
pub struct Grant {
    /// Its id.
    pub id: Uuid,
    /// The account of the person.
    pub account: AccountUid,
    /// The client.
    pub client: Client,
    /// Where the code was sent; none for a device code.
    pub redirect_uri: Option<String>,
    /// What was granted.
    pub scopes: Scopes,
    /// Kind of client, for activity.
    pub surface: Surface,
    /// The S256 challenge of the client; none for a device code.
    pub challenge: Option<String>,
    /// Keyed hash of the code's secret.
    pub code_hash: Vec<u8>,
    /// `true` if the code was neither presented nor is it too old.
    pub code_is_fresh: bool,
    /// `true` if the code was presented before.
    pub code_was_used: bool,
    /// Number of the pair of tokens that is valid now; 0 before the code is exchanged.
    pub generation: u32,
    /// Keyed hash of the refresh token of that pair.
    pub refresh_hash: Option<Vec<u8>>,
    /// `true` if the refresh that made that pair may be repeated.
    pub is_replayable: bool,
}

/// Reads a grant, which stays locked until the transaction ends: of any number of exchanges or refreshes, each sees what the one before
/// did.
#[instrument(skip_all, name = "db.oauth_grant.lock")]
pub async fn lock_grant(conn: &mut PgConnection, id: Uuid) -> Result<Option<Grant>> {
    // Times by the clock, because the lock may have been waited for.
    let row = sqlx::query!(
        r#"SELECT account_uid, client_id, client_kind, client_name, client_host, redirect_uri, scopes, surface, challenge, code_hash,
                  (code_used_at IS NULL AND code_until > clock_timestamp()) AS "code_is_fresh!",
                  code_used_at IS NOT NULL AS "code_was_used!", generation, refresh_hash,
                  coalesce(refreshed_at > clock_timestamp() - make_interval(secs => $2), false) AS "is_replayable!"
           FROM oauth_grants WHERE id = $1 FOR UPDATE"#,
        id,
        f64::from(REFRESH_REPLAY_SECONDS)
    )
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Grant {
        id,
        account: AccountUid::from_stored(row.account_uid),
        client: Client {
            id: row.client_id,
            kind: known("oauth_grants.client_kind", &row.client_kind)?,
            name: row.client_name,
            host: row.client_host,
        },
        redirect_uri: row.redirect_uri,
        scopes: scopes(&row.scopes)?,
        surface: known("oauth_grants.surface", &row.surface)?,
        challenge: row.challenge,
        code_hash: row.code_hash,
        code_is_fresh: row.code_is_fresh,
        code_was_used: row.code_was_used,
        generation: row.generation.unsigned_abs(),
        refresh_hash: row.refresh_hash,
        is_replayable: row.is_replayable,
    }))
}

/// Records that the code of a grant was presented.
#[instrument(skip_all, name = "db.oauth_grant.use_code")]
pub async fn use_code(conn: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!("UPDATE oauth_grants SET code_used_at = coalesce(code_used_at, now()) WHERE id = $1", id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Lifetimes of an app, by the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// Seconds that an access token is valid.
    pub access_seconds: u32,
    /// Days after which an app ends that was not refreshed.
    pub idle_days: u32,
}

impl Lifetimes {
    fn access(self) -> f64 {
        f64::from(self.access_seconds)
    }

    fn idle(self) -> i32 {
        i32::try_from(self.idle_days).unwrap_or(i32::MAX)
    }
}

/// Hashes of the secrets of a pair of tokens.
#[derive(Clone, Copy)]
pub struct PairHashes<'a> {
    /// Of the access token.
    pub access: &'a [u8],
    /// Of the refresh token.
    pub refresh: &'a [u8],
}

/// Makes the token of a locked grant, and ends the apps of the account beyond its limit, those first that were not used for the longest
/// time. Returns the seconds that the access token is valid; `None` if the account is disabled.
///
/// Locks the account's row, so that two concurrent calls cannot both keep the last place.
#[instrument(skip_all, name = "db.app.create")]
pub async fn create_app(
    conn: &mut PgConnection,
    grant: &Grant,
    label: &str,
    hashes: PairHashes<'_>,
    lifetimes: Lifetimes,
) -> Result<Option<Made>> {
    lock(&mut *conn, &grant.account).await?;
    open_session(&mut *conn, &grant.account).await?;
    let scopes: Vec<String> = grant.scopes.iter().map(|scope| scope.to_string()).collect();
    let made = sqlx::query!(
        r#"INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind, expires_at, access_until, idle_until)
           SELECT $1, $2, s.id, $3, $4, $5, $6, 'oauth', g.ends_at, least(now() + make_interval(secs => $7), g.ends_at),
                  now() + make_interval(days => $8)
           FROM account_sessions s JOIN accounts a ON a.uid = s.account_uid AND a.enabled, oauth_grants g
           WHERE s.account_uid = $2 AND s.revoked_at IS NULL AND g.id = $1
           RETURNING round(extract(epoch FROM access_until - now()))::bigint AS "seconds!""#,
        grant.id,
        grant.account.as_str(),
        label,
        &scopes,
        grant.surface.as_str(),
        hashes.access,
        lifetimes.access(),
        lifetimes.idle(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(made) = made else { return Ok(None) };
    record_pair(&mut *conn, grant.id, 1, hashes.refresh).await?;
    let ended = sqlx::query_scalar!(
        "UPDATE tokens SET revoked_at = now() WHERE id IN (
             SELECT t.id FROM tokens t JOIN account_sessions s ON s.id = t.session_id
             WHERE t.account_uid = $1 AND t.kind = 'oauth' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
               AND t.idle_until > now() AND (t.expires_at IS NULL OR t.expires_at > now())
             ORDER BY t.id = $3 DESC, coalesce(t.last_used_at, t.created_at) DESC, t.id DESC OFFSET $2
         ) RETURNING id",
        grant.account.as_str(),
        APPS_MAX,
        grant.id
    );
    Ok(Some(Made { seconds: made.seconds, ended: ended.fetch_all(conn).await? }))
}

/// An app that was made.
#[derive(Debug)]
pub struct Made {
    /// Seconds that its access token is valid.
    pub seconds: i64,
    /// The apps that have ended for it, because there are too many.
    pub ended: Vec<Uuid>,
}

async fn record_pair(conn: &mut PgConnection, id: Uuid, generation: u32, refresh_hash: &[u8]) -> Result<()> {
    sqlx::query!(
        "UPDATE oauth_grants SET code_used_at = coalesce(code_used_at, now()), generation = $2, refresh_hash = $3, refreshed_at = now()
         WHERE id = $1",
        id,
        i32::try_from(generation).unwrap_or(i32::MAX),
        refresh_hash,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The seconds that the access token of an app is still valid, 0 if it is not; `None` if the app has ended, or its account is disabled.
#[instrument(skip_all, name = "db.app.remaining")]
pub async fn remaining(conn: &mut PgConnection, id: Uuid) -> Result<Option<i64>> {
    let seconds = sqlx::query_scalar!(
        r#"SELECT greatest(round(extract(epoch FROM t.access_until - clock_timestamp())), 0)::bigint AS "seconds!"
           FROM tokens t JOIN account_sessions s ON s.id = t.session_id JOIN accounts a ON a.uid = t.account_uid
           WHERE t.id = $1 AND t.kind = 'oauth' AND t.revoked_at IS NULL AND s.revoked_at IS NULL AND a.enabled
             AND t.idle_until > clock_timestamp() AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())"#,
        id
    )
    .fetch_optional(conn)
    .await?;
    Ok(seconds)
}

/// Replaces the pair of tokens of a locked grant, whose app has not ended. The access token before it stays valid for a while, at most to
/// its end. Returns the seconds that the new one is valid.
#[instrument(skip_all, name = "db.app.refresh")]
pub async fn refresh(
    conn: &mut PgConnection,
    id: Uuid,
    generation: u32,
    hashes: PairHashes<'_>,
    lifetimes: Lifetimes,
) -> Result<i64> {
    let made = sqlx::query_scalar!(
        r#"UPDATE tokens SET previous_hash = secret_hash, previous_until = least(access_until, now() + make_interval(secs => $2)),
                  secret_hash = $3, access_until = least(now() + make_interval(secs => $4), expires_at),
                  idle_until = now() + make_interval(days => $5)
           WHERE id = $1 RETURNING round(extract(epoch FROM access_until - now()))::bigint AS "seconds!""#,
        id,
        f64::from(ACCESS_OVERLAP_SECONDS),
        hashes.access,
        lifetimes.access(),
        lifetimes.idle(),
    )
    .fetch_one(&mut *conn)
    .await?;
    record_pair(conn, id, generation, hashes.refresh).await?;
    Ok(made)
}

/// Hashes by which the access tokens of an app that are valid now are known: the current one and the one before.
#[instrument(skip_all, name = "db.app.access_hashes")]
pub async fn access_hashes(conn: &mut PgConnection, id: Uuid) -> Result<Vec<Vec<u8>>> {
    let row = sqlx::query!("SELECT secret_hash, previous_hash FROM tokens WHERE id = $1 AND kind = 'oauth'", id);
    let row = row.fetch_optional(conn).await?;
    Ok(row.into_iter().flat_map(|row| [Some(row.secret_hash), row.previous_hash]).flatten().collect())
}

/// An app that has not ended.
#[derive(Clone, Debug)]
pub struct App {
    /// Its id, which is that of its token.
    pub id: Uuid,
    /// Its client.
    pub client: Client,
    /// What it may do.
    pub scopes: Scopes,
    /// When a person allowed it.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// What it may spend.
    pub budgets: Vec<BudgetState>,
}

/// Position of a page of apps: after the app that was allowed at this time, with this id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct After {
    /// When the last app was allowed.
    pub created_at: Timestamp,
    /// Its id.
    pub id: Uuid,
}

/// Lists at most `limit` of the apps of an account that have not ended, newest first.
#[instrument(skip_all, name = "db.app.page")]
pub async fn page(
    conn: &mut PgConnection,
    account: &AccountUid,
    after: Option<&After>,
    limit: i64,
) -> Result<Vec<App>> {
    let rows = sqlx::query_as!(
        AppRow,
        r#"SELECT t.id, g.client_id, g.client_kind, g.client_name, g.client_host, t.scopes, g.created_at, t.expires_at, t.last_used_at
           FROM tokens t JOIN account_sessions s ON s.id = t.session_id JOIN oauth_grants g ON g.id = t.id
           WHERE t.account_uid = $1 AND t.kind = 'oauth' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
             AND t.idle_until > now() AND (t.expires_at IS NULL OR t.expires_at > now())
             AND ($2::timestamptz IS NULL OR (g.created_at, t.id) < ($2, $3))
           ORDER BY g.created_at DESC, t.id DESC LIMIT $4"#,
        account.as_str(),
        after.map(|after| after.created_at.get()),
        after.map(|after| after.id),
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut budgets = budgets::of_each(conn, account, &ids, BudgetOwner::App).await?;
    rows.into_iter()
        .map(|row| {
            let budgets = budgets.remove(&row.id).unwrap_or_default();
            row.app(budgets)
        })
        .collect()
}

/// Whether an account has an app with this id that has not ended.
#[instrument(skip_all, name = "db.app.exists")]
pub async fn exists(conn: &mut PgConnection, account: &AccountUid, app: Uuid) -> Result<bool> {
    let exists = sqlx::query_scalar!(
        r#"SELECT EXISTS (
               SELECT FROM tokens t JOIN account_sessions s ON s.id = t.session_id
               WHERE t.id = $1 AND t.account_uid = $2 AND t.kind = 'oauth' AND t.revoked_at IS NULL AND s.revoked_at IS NULL
                 AND t.idle_until > now() AND (t.expires_at IS NULL OR t.expires_at > now())
           ) AS "exists!""#,
        app,
        account.as_str()
    );
    Ok(exists.fetch_one(conn).await?)
}

struct AppRow {
    id: Uuid,
    client_id: String,
    client_kind: String,
    client_name: String,
    client_host: Option<String>,
    scopes: Vec<String>,
    created_at: DateTime<Utc>,
    expires_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
}

impl AppRow {
    fn app(self, budgets: Vec<BudgetState>) -> Result<App> {
        Ok(App {
            id: self.id,
            client: Client {
                id: self.client_id,
                kind: known("oauth_grants.client_kind", &self.client_kind)?,
                name: self.client_name,
                host: self.client_host,
            },
            scopes: scopes(&self.scopes)?,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.map(Into::into),
            last_used_at: self.last_used_at.map(Into::into),
            budgets,
        })
    }
}

/// The client of an app.
#[instrument(skip_all, name = "db.app.client")]
pub async fn client_of(conn: &mut PgConnection, id: Uuid) -> Result<Option<Client>> {
    let row =
        sqlx::query!("SELECT client_id, client_kind, client_name, client_host FROM oauth_grants WHERE id = $1", id);
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let kind = known("oauth_grants.client_kind", &row.client_kind)?;
    Ok(Some(Client { id: row.client_id, kind, name: row.client_name, host: row.client_host }))
}

/// Deletes grants whose code was not exchanged, an hour after its end, with their budgets. Returns the number deleted, at most `limit`.
/// Other grants go with their tokens.
#[instrument(skip_all, name = "db.oauth_grant.sweep")]
pub async fn sweep(conn: &mut PgConnection, limit: i64) -> Result<u64> {
    let swept = sqlx::query_scalar!(
        r#"WITH swept AS (
             DELETE FROM oauth_grants WHERE id IN (
                 SELECT id FROM oauth_grants WHERE generation = 0 AND code_until < now() - interval '1 hour'
                 LIMIT $1 FOR UPDATE SKIP LOCKED)
             RETURNING id, account_uid
         ), forgotten AS (
             -- Without the lock on the account: nothing has counted in them.
             DELETE FROM budgets b USING swept WHERE b.account_uid = swept.account_uid AND b.authority = swept.id
         )
         SELECT count(*) AS "count!" FROM swept"#,
        limit
    )
    .fetch_one(conn)
    .await?;
    Ok(swept.unsigned_abs())
}

/// A client that an operator listed.
#[derive(Clone, Debug)]
pub struct ListedClient {
    /// The `client_id`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its redirect addresses.
    pub redirect_uris: Vec<String>,
    /// When it was listed.
    pub created_at: Timestamp,
}

/// Lists a client. Returns when.
#[instrument(skip_all, name = "db.oauth_client.create")]
pub async fn list_client(conn: &mut PgConnection, id: &str, name: &str, redirect_uris: &[String]) -> Result<Timestamp> {
    let created_at = sqlx::query_scalar!(
        "INSERT INTO oauth_clients (id, name, redirect_uris) VALUES ($1, $2, $3) RETURNING created_at",
        id,
        name,
        redirect_uris
    )
    .fetch_one(conn)
    .await?;
    Ok(created_at.into())
}

/// The listed clients, oldest first; the one with `id`, if one is named.
#[instrument(skip_all, name = "db.oauth_client.list")]
pub async fn listed_clients(conn: &mut PgConnection, id: Option<&str>) -> Result<Vec<ListedClient>> {
    let rows = sqlx::query!(
        "SELECT id, name, redirect_uris, created_at FROM oauth_clients WHERE $1::text IS NULL OR id = $1 ORDER BY created_at, id",
        id
    )
    .fetch_all(conn)
    .await?;
    let client = rows.into_iter().map(|row| ListedClient {
        id: row.id,
        name: row.name,
        redirect_uris: row.redirect_uris,
        created_at: row.created_at.into(),
    });
    Ok(client.collect())
}

/// Deletes a listed client, and ends its apps and the codes that it did not exchange. Returns the accounts of those; `None` if there is no such client.
#[instrument(skip_all, name = "db.oauth_client.delete")]
pub async fn delete_client(conn: &mut PgConnection, id: &str) -> Result<Option<Vec<AccountUid>>> {
    let deleted = sqlx::query!("DELETE FROM oauth_clients WHERE id = $1", id).execute(&mut *conn).await?;
    if deleted.rows_affected() == 0 {
        return Ok(None);
    }
    let codes = sqlx::query!(
        "UPDATE oauth_grants SET code_until = least(code_until, now()) WHERE client_id = $1 AND generation = 0",
        id
    );
    codes.execute(&mut *conn).await?;
    let accounts = sqlx::query_scalar!(
        "UPDATE tokens SET revoked_at = now() WHERE revoked_at IS NULL AND id IN (SELECT id FROM oauth_grants WHERE client_id = $1)
         RETURNING account_uid",
        id
    )
    .fetch_all(conn)
    .await?;
    Ok(Some(accounts.into_iter().map(AccountUid::from_stored).collect()))
}
