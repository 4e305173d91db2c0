//! The audit: who did what, in rows that nobody changes (docs/reference/administration.md#audit).
//!
//! **Guarantee.** An act and its row commit together. A row that was changed, or that is missing, contradicts a seal.
//!
//! **Mechanism.** [`write`] inserts the row in the transaction of the act; triggers refuse updates and deletes. [`seal::next`] chains
//! HMACs over the rows, under a key that the database does not have.

mod event;
pub mod read;
pub mod seal;

use domain::account::TokenKind;
use domain::id::AccountUid;
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

pub use event::{Detail, Event};

use crate::Result;
use crate::accounts::Credential;

/// How somebody acted.
#[derive(Clone, Debug)]
enum Via {
    /// A person in the browser, by the session with this id.
    Session(Uuid),
    /// A program, by the agent token with this id.
    Token(Uuid),
    /// An operator, by the command of this name.
    Command(&'static str),
    /// The program of an app, by the app with this id.
    App(Uuid),
    /// A person whom a provider named, by the identity with this id.
    Provider(Uuid),
    /// The service itself.
    System,
    /// Somebody whom the service does not know, or not yet.
    Nobody,
}

impl Via {
    fn columns(&self) -> (&'static str, Option<String>) {
        match self {
            Via::Session(id) => ("session", Some(id.to_string())),
            Via::Token(id) => ("token", Some(id.to_string())),
            Via::Command(name) => ("command", Some((*name).to_owned())),
            Via::App(id) => ("app", Some(id.to_string())),
            Via::Provider(identity) => ("provider", Some(identity.to_string())),
            Via::System => ("system", None),
            Via::Nobody => ("nobody", None),
        }
    }
}

/// Where a request came from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Id of the request.
    pub request: Uuid,
    /// Address that the request counts for.
    pub address: String,
    /// The client, as it names itself, at most 200 characters.
    pub client: Option<String>,
}

/// Who acts.
#[derive(Clone, Debug)]
pub struct Actor {
    account: Option<AccountUid>,
    via: Via,
    origin: Option<Origin>,
}

impl Actor {
    /// An operator who runs the command with this name.
    pub const fn command(name: &'static str) -> Self {
        Self { account: None, via: Via::Command(name), origin: None }
    }

    /// The service itself, without a request.
    pub const fn system() -> Self {
        Self { account: None, via: Via::System, origin: None }
    }

    /// Somebody who is not signed in.
    pub const fn nobody(origin: Origin) -> Self {
        Self { account: None, via: Via::Nobody, origin: Some(origin) }
    }

    /// The program of an app.
    pub const fn app(account: AccountUid, app: Uuid, origin: Origin) -> Self {
        Self { account: Some(account), via: Via::App(app), origin: Some(origin) }
    }

    /// A person whom a provider named.
    pub const fn provider(account: AccountUid, identity: Uuid, origin: Origin) -> Self {
        Self { account: Some(account), via: Via::Provider(identity), origin: Some(origin) }
    }

    /// The holder of a credential: a person with a session, or a program with an agent token or that of an app.
    pub fn caller(caller: &Credential, origin: Origin) -> Self {
        let via = match caller.kind {
            TokenKind::Session => Via::Session(caller.token),
            TokenKind::Oauth => Via::App(caller.token),
            TokenKind::Agent => Via::Token(caller.token),
        };
        Self { account: Some(caller.account.clone()), via, origin: Some(origin) }
    }

    /// A person with a session.
    pub const fn session(account: AccountUid, session: Uuid, origin: Origin) -> Self {
        Self { account: Some(account), via: Via::Session(session), origin: Some(origin) }
    }
}

/// Writes an event that concerns `account`. The caller commits it together with the act; the refusal of an act is written by itself.
#[instrument(skip_all, name = "db.audit.write")]
pub async fn write(conn: &mut PgConnection, actor: &Actor, account: Option<&AccountUid>, event: &Event) -> Result<()> {
    let (via, via_id) = actor.via.columns();
    let origin = actor.origin.as_ref();
    sqlx::query!(
        "WITH salted AS MATERIALIZED (SELECT gen_random_uuid() AS salt), written AS (
             INSERT INTO audit (event, outcome, actor_uid, via, via_id, account_uid, request_id, details, origin)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8,
                    CASE WHEN $7::uuid IS NOT NULL
                        THEN sha256(uuid_send(salt) || convert_to(concat($9::text, chr(10), $10::text), 'UTF8')) END
             FROM salted
             RETURNING id, at
         )
         INSERT INTO audit_origins (audit_id, account_uid, salt, address, client, at)
         SELECT id, coalesce($3, $6), salt, $9, $10, at FROM written, salted WHERE $7 IS NOT NULL",
        event.name(),
        event.outcome(),
        actor.account.as_ref().map(AccountUid::as_str),
        via,
        via_id,
        account.map(AccountUid::as_str),
        origin.map(|origin| origin.request),
        Json(Value::Object(event.details())) as _,
        origin.map(|origin| origin.address.as_str()),
        origin.and_then(|origin| origin.client.as_deref()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Refusals a minute that have rows of their own: those of an address, and all.
pub const REFUSALS_OF_ADDRESS: i64 = 60;
pub const REFUSALS: i64 = 600;

/// What became of the row of a refusal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// It was written.
    Written,
    /// There are enough of this minute, which ends in so many seconds: of the address, or of all.
    Capped { of_all: bool, seconds: f64 },
}

/// Writes a refusal, unless there are enough of this minute. Refusals wait for one another until their transaction ends, which is this
/// statement's alone.
#[instrument(skip_all, name = "db.audit.write_refusal")]
pub async fn write_refusal(
    conn: &mut PgConnection,
    actor: &Actor,
    account: Option<&AccountUid>,
    event: &Event,
) -> Result<Refused> {
    sqlx::query!("SELECT pg_advisory_xact_lock(hashtext('canvas.audit.refusals'))").execute(&mut *conn).await?;
    let address = actor.origin.as_ref().map(|origin| origin.address.as_str());
    let minute = sqlx::query!(
        r#"SELECT count(*) AS "all!", count(*) FILTER (WHERE o.address = $1) AS "of_address!",
                  60 - extract(second FROM clock_timestamp())::double precision AS "seconds!"
           FROM audit a LEFT JOIN audit_origins o ON o.audit_id = a.id
           WHERE a.at >= date_trunc('minute', clock_timestamp()) AND a.outcome = 'refused'"#,
        address
    );
    let minute = minute.fetch_one(&mut *conn).await?;
    let of_all = minute.all >= REFUSALS;
    if of_all || minute.of_address >= REFUSALS_OF_ADDRESS {
        return Ok(Refused::Capped { of_all, seconds: minute.seconds });
    }
    write(conn, actor, account, event).await?;
    Ok(Refused::Written)
}

/// Deletes the addresses and clients of an account that is purged.
#[instrument(skip_all, name = "db.audit.forget_account")]
pub async fn forget_account(conn: &mut PgConnection, account: &AccountUid) -> Result<()> {
    sqlx::query!("DELETE FROM audit_origins WHERE account_uid = $1", account.as_str()).execute(conn).await?;
    Ok(())
}

/// Deletes at most `limit` addresses and clients that are older than `days`. Returns their number.
#[instrument(skip_all, name = "db.audit.sweep_origins")]
pub async fn sweep_origins(conn: &mut PgConnection, days: i32, limit: i64) -> Result<u64> {
    let swept = sqlx::query!(
        "DELETE FROM audit_origins WHERE audit_id IN (
             SELECT audit_id FROM audit_origins WHERE at <= now() - make_interval(days => $1) ORDER BY at LIMIT $2)",
        days,
        limit
    );
    Ok(swept.execute(conn).await?.rows_affected())
}

#[cfg(test)]
mod tests;
