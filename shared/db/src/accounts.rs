//! Accounts, their delegated sessions, and credentials.

use domain::Timestamp;
use domain::account::{Role, Scope, Scopes, Surface, TokenKind, display_name};
use domain::budget::BudgetOwner;
use domain::canvas::{AccessRole, Actor, CanvasRecord};
use domain::id::{AccountUid, CanvasRef};
use sqlx::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};
use tracing::instrument;
use uuid::Uuid;

use crate::Result;
use crate::canvases;
use crate::error::known;
use crate::ledger::Payer;

/// A token with its session and account.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Id of the token.
    pub token: Uuid,
    /// The token or app whose budgets the credential has: its own id, or that of the token that signed the session in.
    pub authority: Uuid,
    /// Kind of client that the token is a credential of.
    pub kind: TokenKind,
    /// `true` if the token is a session that another token signed in. It has that token's scopes and ends with it.
    pub is_narrow: bool,
    /// Label of the token.
    pub label: String,
    /// Scopes of the token.
    pub scopes: Scopes,
    /// Client surface of the token.
    pub surface: Surface,
    /// Keyed hash of the token's secret; empty while the access token of an app has expired.
    pub secret_hash: Vec<u8>,
    /// Keyed hash of the secret before, for the time that an app's access token stays valid after a refresh.
    pub previous_hash: Option<Vec<u8>>,
    /// `true` if the token is neither expired, idle nor revoked, its session is active and its account is enabled, by the
    /// database clock at the time of this statement. A narrow session also needs the token that signed it in.
    pub valid: bool,
    /// `true` if `lastUsedAt` is more than a minute old.
    pub use_unrecorded: bool,
    /// When the token was created: of a session, when it was signed in.
    pub signed_in_at: Timestamp,
    /// When the token expires.
    pub expires_at: Option<Timestamp>,
    /// Uid of the account.
    pub account: AccountUid,
    /// Role of the account.
    pub role: Role,
    /// Email of the account.
    pub email: String,
    /// Name under which others see the account.
    pub display_name: String,
    /// Credit balance of the account.
    pub credit_balance: i64,
    /// Until when the last sign-in confirms the account's tokens; `None` for ever.
    pub confirm_by: Option<Timestamp>,
}

impl Credential {
    /// The account and the authority on which it pays for work.
    pub fn payer(&self) -> Payer<'_> {
        Payer { account: &self.account, authority: self.authority, owner: self.budget_owner() }
    }

    /// Whose budgets those of its authority are.
    pub fn budget_owner(&self) -> BudgetOwner {
        if self.kind == TokenKind::Oauth { BudgetOwner::App } else { BudgetOwner::Token }
    }

    /// The actor that activity entries record.
    pub fn actor(&self) -> Actor {
        Actor { owner_uid: self.account.clone(), surface: self.surface, label: self.label.clone() }
    }
}

/// A credential, and the canvas of the request's path with the account's role on it.
pub type Authenticated = (Credential, Option<(CanvasRecord, AccessRole)>);

/// The credential of a request.
#[derive(Clone, Debug)]
pub struct Question {
    /// Id of the token in the Authorization header.
    pub token: Uuid,
    /// The canvas in the request's path. Without an owner, the canvas belongs to the token's account.
    pub canvas: Option<CanvasRef>,
}

/// Reads tokens, each with the canvas of its request's path as the token's account may see it. One statement answers all
/// questions, in their order. Nothing of this is cached, so a revocation takes effect with the next request. Shares are read
/// only for a canvas of another account. An unreadable row fails its own question only. If people sign in with providers
/// (`are_confirmed`), a token of an account is valid for as long as its last sign-in confirms it.
pub async fn authenticate(
    conn: &mut PgConnection,
    questions: &[Question],
    are_confirmed: bool,
) -> Result<Vec<Result<Option<Authenticated>>>> {
    let canvases = || questions.iter().map(|question| question.canvas.as_ref());
    let owners: Vec<Option<&str>> = canvases().map(|canvas| Some(canvas?.owner.as_ref()?.as_str())).collect();
    let ids: Vec<Option<&str>> = canvases().map(|canvas| Some(canvas?.id.as_str())).collect();
    let tokens: Vec<Uuid> = questions.iter().map(|question| question.token).collect();
    // Postgres runs a sub-select with a limit once for each question, by its indexes, whatever it estimates about table sizes.
    // The arrays are sub-selects as well: Postgres cannot see their length, so it reuses the generic plan and saves the planning,
    // which would cost ten times as much as the execution.
    let rows = sqlx::query_as!(
        CredentialRow,
        r#"SELECT asked.place AS "place!", found.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::text[]))
               WITH ORDINALITY AS asked (token, owner, canvas, place)
           CROSS JOIN LATERAL (
               SELECT t.id AS "token!", t.kind AS "kind!", coalesce(t.parent, t.id) AS "authority!", t.parent IS NOT NULL AS "is_narrow!", t.label AS "label!", t.scopes AS "scopes!", t.surface AS "surface!",
                      CASE WHEN t.access_until <= now() THEN ''::bytea ELSE t.secret_hash END AS "secret_hash!",
                      CASE WHEN t.previous_until > now() THEN t.previous_hash END AS "previous_hash?",
                      t.created_at AS "signed_in_at!", t.expires_at AS "expires_at?",
                      (t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
                       AND (t.idle_until IS NULL OR t.idle_until > now())
                       AND (t.parent IS NULL OR EXISTS (
                           SELECT FROM tokens p WHERE p.id = t.parent AND p.revoked_at IS NULL
                             AND (p.expires_at IS NULL OR p.expires_at > now())
                       ))
                       AND s.revoked_at IS NULL AND a.enabled
                       AND (a.confirm_by IS NULL OR a.confirm_by > now() OR NOT $4
                            OR t.kind = 'session' AND t.parent IS NULL)) AS "valid!",
                      (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute') AS "use_unrecorded!",
                      a.uid AS "uid!", a.role AS "account_role!", a.email AS "email!", a.display_name AS "display_name!", a.credit_balance AS "credit_balance!", a.confirm_by AS "confirm_by?",
                      c.key AS "key?", c.owner_uid AS "owner_uid?", c.id AS "id?", c.canvas_type AS "canvas_type?",
                      c.title AS "title?", c.revision AS "revision?", c.sequence AS "sequence?", c.slug AS "slug?", c.node_ref AS "node_ref?",
                      c.connection_ref AS "connection_ref?", c.referenced AS "referenced?",
                      c.node_count AS "node_count?", c.connection_count AS "connection_count?",
                      c.graph_bytes AS "graph_bytes?", c.created_at AS "created_at?", c.updated_at AS "updated_at?",
                      CASE WHEN c.owner_uid = a.uid THEN 'owner' ELSE
                          (SELECT role FROM canvas_shares sh WHERE sh.canvas_key = c.key AND sh.account_uid = a.uid)
                      END AS "role?"
               FROM tokens t
               JOIN account_sessions s ON s.id = t.session_id
               JOIN accounts a ON a.uid = t.account_uid
               LEFT JOIN canvases c ON c.owner_uid = coalesce(asked.owner, a.uid) AND c.id = asked.canvas
               WHERE t.id = asked.token LIMIT 1
           ) AS found"#,
        &tokens,
        &owners as &[Option<&str>],
        &ids as &[Option<&str>],
        are_confirmed,
    )
    .fetch_all(conn)
    .await?;
    let mut answers: Vec<_> = questions.iter().map(|_| Ok(None)).collect();
    for row in rows {
        // `row.place` counts from 1.
        if let Some(answer) = usize::try_from(row.place - 1).ok().and_then(|place| answers.get_mut(place)) {
            *answer = row.read().map(Some);
        }
    }
    Ok(answers)
}

/// A row of the answer.
struct CredentialRow {
    place: i64,
    token: Uuid,
    kind: String,
    authority: Uuid,
    is_narrow: bool,
    label: String,
    scopes: Vec<String>,
    surface: String,
    secret_hash: Vec<u8>,
    signed_in_at: DateTime<Utc>,
    previous_hash: Option<Vec<u8>>,
    expires_at: Option<DateTime<Utc>>,
    valid: bool,
    use_unrecorded: bool,
    uid: String,
    account_role: String,
    email: String,
    display_name: String,
    credit_balance: i64,
    confirm_by: Option<DateTime<Utc>>,
    key: Option<i64>,
    owner_uid: Option<String>,
    id: Option<String>,
    canvas_type: Option<String>,
    title: Option<String>,
    revision: Option<String>,
    sequence: Option<i64>,
    slug: Option<String>,
    node_ref: Option<i32>,
    connection_ref: Option<i32>,
    referenced: Option<i64>,
    node_count: Option<i32>,
    connection_count: Option<i32>,
    graph_bytes: Option<i64>,
    created_at: Option<DateTime<Utc>>,
    updated_at: Option<DateTime<Utc>>,
    role: Option<String>,
}

impl CredentialRow {
    fn read(self) -> Result<Authenticated> {
        let credential = Credential {
            token: self.token,
            kind: known("tokens.kind", &self.kind)?,
            authority: self.authority,
            is_narrow: self.is_narrow,
            label: self.label,
            scopes: scopes(&self.scopes)?,
            surface: known("tokens.surface", &self.surface)?,
            secret_hash: self.secret_hash,
            previous_hash: self.previous_hash,
            valid: self.valid,
            use_unrecorded: self.use_unrecorded,
            signed_in_at: self.signed_in_at.into(),
            expires_at: self.expires_at.map(Timestamp::from),
            account: AccountUid::from_stored(self.uid),
            role: known("accounts.role", &self.account_role)?,
            display_name: display_name(&self.display_name, &self.email),
            email: self.email,
            credit_balance: self.credit_balance,
            confirm_by: self.confirm_by.map(Timestamp::from),
        };
        // A row of the outer join is either complete or entirely NULL.
        let canvas =
            match (self.key, self.owner_uid, self.id, self.title, self.revision, self.created_at, self.updated_at) {
                (
                    Some(key),
                    Some(owner_uid),
                    Some(id),
                    Some(title),
                    Some(revision),
                    Some(created_at),
                    Some(updated_at),
                ) => {
                    let (record, role) = canvases::CanvasRow {
                        key,
                        owner_uid,
                        id,
                        canvas_type: self.canvas_type,
                        title,
                        revision,
                        sequence: self.sequence.unwrap_or_default(),
                        slug: self.slug,
                        node_ref: self.node_ref.unwrap_or_default(),
                        connection_ref: self.connection_ref.unwrap_or_default(),
                        referenced: self.referenced.unwrap_or_default(),
                        node_count: self.node_count.unwrap_or_default(),
                        connection_count: self.connection_count.unwrap_or_default(),
                        graph_bytes: self.graph_bytes.unwrap_or_default(),
                        created_at,
                        updated_at,
                        role: self.role,
                    }
                    .record()?;
                    role.map(|role| (record, role))
                }
                _ => None,
            };
        Ok((credential, canvas))
    }
}

pub(crate) fn scopes(names: &[String]) -> Result<Scopes> {
    names.iter().map(|name| known::<Scope>("tokens.scopes", name)).collect()
}

/// Locks an account's row until the transaction ends, so that concurrent starts check active work and credit one at a time.
#[instrument(skip_all, name = "db.account.lock")]
pub async fn lock(conn: &mut PgConnection, account: &AccountUid) -> Result<()> {
    sqlx::query!("SELECT uid FROM accounts WHERE uid = $1 FOR NO KEY UPDATE", account.as_str()).fetch_one(conn).await?;
    Ok(())
}

/// An account as the admin commands show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Uid of the account.
    pub uid: AccountUid,
    /// Email of the account.
    pub email: String,
    /// Name under which others see the account.
    pub display_name: String,
    /// Credit balance of the account.
    pub credit_balance: i64,
    /// `true` if the account is enabled. Tokens of a disabled account are rejected.
    pub enabled: bool,
    /// Role of the account.
    pub role: Role,
}

/// Creates an account without credit. `None` when the uid or the email is taken. The uid of a purged account stays taken.
#[instrument(skip_all, name = "db.account.create")]
pub async fn create(conn: &mut PgConnection, uid: &AccountUid, email: &str) -> Result<Option<Account>> {
    let made = sqlx::query!(
        "INSERT INTO accounts (uid, email) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING uid",
        uid.as_str(),
        email
    )
    .fetch_optional(conn)
    .await?;
    Ok(made.map(|_| Account {
        uid: uid.clone(),
        email: email.to_owned(),
        display_name: display_name("", email),
        credit_balance: 0,
        enabled: true,
        role: Role::Member,
    }))
}

/// Finds an account by uid or email. A purged account is not found.
#[instrument(skip_all, name = "db.account.find")]
pub async fn find(conn: &mut PgConnection, uid_or_email: &str) -> Result<Option<Account>> {
    let row = sqlx::query!(
        "SELECT uid, email, display_name, credit_balance, enabled, role FROM accounts
         WHERE (uid = $1 OR lower(email) = lower($1)) AND purged_at IS NULL ORDER BY uid = $1 DESC LIMIT 1",
        uid_or_email
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Account {
            uid: AccountUid::from_stored(row.uid),
            display_name: display_name(&row.display_name, &row.email),
            email: row.email,
            credit_balance: row.credit_balance,
            enabled: row.enabled,
            role: known("accounts.role", &row.role)?,
        })
    })
    .transpose()
}

/// Gives an account another name: `chosen`, or none when it is empty. `shown` is what others see then, which labels its sessions.
#[instrument(skip_all, name = "db.account.rename")]
pub async fn rename(conn: &mut PgConnection, account: &AccountUid, chosen: &str, shown: &str) -> Result<()> {
    sqlx::query!(
        "WITH renamed AS (UPDATE accounts SET display_name = $2 WHERE uid = $1 RETURNING uid)
         UPDATE tokens SET label = $3 FROM renamed
         WHERE account_uid = renamed.uid AND kind = 'session' AND parent IS NULL",
        account.as_str(),
        chosen,
        shown
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Enables or disables an account. Its sessions and tokens are not changed, so that enabling restores them. `false`: it already was.
#[instrument(skip_all, name = "db.account.set_enabled")]
pub async fn set_enabled(conn: &mut PgConnection, account: &AccountUid, enabled: bool) -> Result<bool> {
    let set = sqlx::query!(
        "UPDATE accounts SET enabled = $2, disabled_by = NULL
         WHERE uid = $1 AND (enabled <> $2 OR disabled_by IS NOT NULL) AND purged_at IS NULL",
        account.as_str(),
        enabled
    );
    Ok(set.execute(conn).await?.rows_affected() == 1)
}

/// Revokes an account's sessions and with them all their tokens, and the codes that no client has exchanged. Returns the number of sessions.
///
/// Locks the account's row, as creating a token does, so that no token is created under a session that is being revoked.
#[instrument(skip_all, name = "db.session.revoke")]
pub async fn revoke_sessions(conn: &mut PgConnection, account: &AccountUid) -> Result<u64> {
    let revoked = sqlx::query!(
        "WITH held AS MATERIALIZED (SELECT uid FROM accounts WHERE uid = $1 FOR NO KEY UPDATE)
         UPDATE account_sessions SET revoked_at = now() FROM held WHERE account_uid = held.uid AND revoked_at IS NULL",
        account.as_str()
    )
    .execute(&mut *conn)
    .await?;
    let codes = sqlx::query!(
        "UPDATE oauth_grants SET code_until = least(code_until, now()) WHERE account_uid = $1 AND generation = 0",
        account.as_str()
    );
    codes.execute(conn).await?;
    Ok(revoked.rows_affected())
}

#[cfg(test)]
mod tests {
    use testkit::TestDatabase;

    use super::*;

    #[tokio::test]
    async fn a_name_is_that_of_the_account_and_labels_its_sessions_alone() {
        let database = TestDatabase::new().await;
        sqlx::raw_sql(
            "INSERT INTO accounts (uid, email) VALUES ('me', 'ana@example.com'), ('you', 'ben@example.com');
             INSERT INTO account_sessions (id, account_uid)
             SELECT ('00000000-0000-0000-0000-00000000000' || length(uid))::uuid, uid FROM accounts;
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind)
             SELECT gen_random_uuid(), account_uid, s.id, kind, '{}', 'browser', '', kind
             FROM account_sessions s, unnest('{agent,session}'::text[]) AS kind;
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind, parent)
             SELECT gen_random_uuid(), account_uid, session_id, 'narrow', '{}', 'browser', '', 'session', id
             FROM tokens WHERE kind = 'agent'",
        )
        .execute(database.pool())
        .await
        .expect("inserts");
        let mut connection = database.pool().acquire().await.expect("connects");
        let me = AccountUid::from_stored("me".to_owned());
        for (chosen, shown) in [("Ana", "Ana"), ("", "ana")] {
            rename(&mut connection, &me, chosen, shown).await.expect("renames");
            let account = find(&mut connection, "me").await.expect("reads").expect("exists");
            assert_eq!(account.display_name, shown);
            let labels = "SELECT account_uid || ' ' || label FROM tokens";
            let mut labels: Vec<String> = sqlx::query_scalar(labels).fetch_all(&mut *connection).await.expect("reads");
            labels.sort();
            let mut expected =
                ["me agent", "me narrow", "you agent", "you narrow", "you session"].map(str::to_owned).to_vec();
            expected.push(format!("me {shown}"));
            expected.sort();
            assert_eq!(labels, expected);
        }
    }

    #[tokio::test]
    async fn the_migration_replaces_emails_by_names() {
        let database = TestDatabase::migrated_to(37).await;
        sqlx::raw_sql(
            r#"INSERT INTO accounts (uid, email, purged_at) VALUES
                   ('me', 'ana.b@example.com', NULL), ('gone', 'purged:gone', now());
               INSERT INTO account_sessions (id, account_uid) VALUES ('00000000-0000-0000-0000-000000000001', 'me');
               INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash, kind) VALUES
                   (gen_random_uuid(), 'me', '00000000-0000-0000-0000-000000000001', 'ana.b@example.com', '{}', 'browser', '', 'session'),
                   (gen_random_uuid(), 'me', '00000000-0000-0000-0000-000000000001', 'me@work', '{}', 'api', '', 'agent');
               INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', 't', 'r');
               INSERT INTO canvas_changes (canvas_key, sequence, revision, activity)
               SELECT key, n, n::text, activity FROM canvases, (VALUES
                   (1, '{"actor": {"ownerUid": "me", "surface": "browser", "label": "ana.b@example.com"}, "summary": "s"}'::jsonb),
                   (2, '{"actor": {"ownerUid": "me", "surface": "browser", "label": "narrow"}}'),
                   (3, '{"actor": {"ownerUid": "me", "surface": "api", "label": "me@work"}}'),
                   (4, '{"actor": {"ownerUid": "gone", "surface": "browser", "label": "zoe@example.com"}}'),
                   (5, '{"actor": {"ownerUid": "gone", "surface": "api", "label": "Zoe"}}'),
                   (6, NULL)) AS v (n, activity)"#,
        )
        .execute(database.pool())
        .await
        .expect("inserts");
        let migration = include_str!("../migrations/0038_names.sql");
        sqlx::raw_sql(migration).execute(database.pool()).await.expect("migrates");
        let labels = |sql: &'static str| sqlx::query_scalar::<_, Option<String>>(sql).fetch_all(database.pool());
        let sessions = labels("SELECT label FROM tokens ORDER BY kind").await.expect("reads");
        assert_eq!(sessions, ["me@work", "ana.b"].map(|label| Some(label.to_owned())));
        let actors = labels("SELECT activity #>> '{actor,label}' FROM canvas_changes ORDER BY sequence").await;
        let expected = ["ana.b", "narrow", "me@work", "deleted account", "deleted account"];
        let expected = expected.into_iter().map(|label| Some(label.to_owned())).chain([None]);
        assert_eq!(actors.expect("reads"), expected.collect::<Vec<_>>());
        let summary = labels("SELECT activity ->> 'summary' FROM canvas_changes WHERE sequence = 1").await;
        assert_eq!(summary.expect("reads"), [Some("s".to_owned())]);
    }

    #[tokio::test]
    async fn each_question_is_answered_by_itself_and_in_its_place() {
        let database = TestDatabase::new().await;
        sqlx::raw_sql(
            "INSERT INTO accounts (uid, email) VALUES ('me', 'me@example.com'), ('you', 'you@example.com'), ('they', 't@example.com');
             INSERT INTO account_sessions (id, account_uid)
             SELECT ('00000000-0000-0000-0000-00000000000' || length(uid))::uuid, uid FROM accounts;
             INSERT INTO tokens (id, account_uid, session_id, label, scopes, surface, secret_hash)
             SELECT id, account_uid, id, 'l', '{canvas:read}', 'api', '' FROM account_sessions;
             INSERT INTO canvases (owner_uid, id, title, revision) VALUES ('me', 'c', 'mine', 'r'), ('you', 'c', 'yours', 'r');
             INSERT INTO canvas_shares (canvas_key, account_uid, role)
             SELECT key, 'me', 'viewer' FROM canvases WHERE owner_uid = 'you';
             UPDATE tokens SET scopes = '{telepathy}' WHERE account_uid = 'they'",
        )
        .execute(database.pool())
        .await
        .expect("inserts");
        let token = |uid: &str| Uuid::from_u128(uid.len() as u128);
        let canvas = |text: &str| CanvasRef::parse(text).expect("valid");
        let mut connection = database.pool().acquire().await.expect("connects");
        let questions = [
            ("me", Some("c")),
            ("nobody", Some("c")),
            ("me", Some("canvas:you:c")),
            ("they", None),
            ("you", Some("canvas:me:c")),
            ("me", None),
            ("me", Some("none")),
        ];
        let questions = questions.map(|(uid, named)| Question { token: token(uid), canvas: named.map(canvas) });
        let answers = authenticate(&mut connection, &questions, true).await.expect("answers");
        let answers: Vec<_> = answers
            .into_iter()
            .map(|answer| match answer {
                Ok(Some((credential, canvas))) => {
                    assert!(credential.valid && credential.use_unrecorded);
                    let canvas = canvas.map(|(record, role)| (record.title, role.as_str()));
                    Ok(Some((credential.account.as_str().to_owned(), canvas)))
                }
                Ok(None) => Ok(None),
                Err(_) => Err("unreadable"),
            })
            .collect();
        let account = |uid: &str, canvas: Option<(&str, &'static str)>| {
            Ok(Some((uid.to_owned(), canvas.map(|(title, role)| (title.to_owned(), role)))))
        };
        let expected = [
            account("me", Some(("mine", "owner"))),
            Ok(None),
            account("me", Some(("yours", "viewer"))),
            Err("unreadable"),
            account("you", None),
            account("me", None),
            account("me", None),
        ];
        assert_eq!(answers, expected);
    }
}
