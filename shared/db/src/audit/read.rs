//! Reading the audit. Names are resolved now, so that they vanish with a purge.

use domain::Timestamp;
use domain::account::display_name;
use domain::id::AccountUid;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use sqlx::types::Json;
use tracing::instrument;
use uuid::Uuid;

use crate::Result;

/// Which rows are read.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// What the event begins with.
    pub event: Option<String>,
    /// The account that is concerned.
    pub account: Option<AccountUid>,
    /// The account that acted.
    pub actor: Option<AccountUid>,
    /// `ok` or `refused`.
    pub outcome: Option<&'static str>,
    /// The request.
    pub request: Option<Uuid>,
    /// The earliest time.
    pub from: Option<Timestamp>,
    /// The time before which it was.
    pub to: Option<Timestamp>,
}

/// Position of a page: after the row with this id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct After(pub i64);

/// An account that is named.
#[derive(Clone, Debug)]
pub struct Named {
    /// Uid of the account.
    pub uid: AccountUid,
    /// Its email, unless it is purged.
    pub email: Option<String>,
    /// The name under which others see it, unless it is purged.
    pub display_name: Option<String>,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Id of the row.
    pub id: i64,
    /// When it was.
    pub at: Timestamp,
    /// Name of the event.
    pub event: String,
    /// `ok` or `refused`.
    pub outcome: String,
    /// The account that acted.
    pub actor: Option<Named>,
    /// How it acted.
    pub via: String,
    /// Id of the session, app or identity, or name of the command.
    pub via_id: Option<String>,
    /// Label of the session, if it is there.
    pub via_label: Option<String>,
    /// The account that is concerned.
    pub account: Option<Named>,
    /// Id of the request.
    pub request: Option<Uuid>,
    /// The details.
    pub details: Map<String, Value>,
    /// Address of the request.
    pub address: Option<String>,
    /// The client, as it names itself.
    pub client: Option<String>,
}

/// Reads at most `limit` rows, newest first.
#[instrument(skip_all, name = "db.audit.page")]
pub async fn page(conn: &mut PgConnection, filter: &Filter, after: Option<&After>, limit: i64) -> Result<Vec<Entry>> {
    let rows = sqlx::query!(
        r#"SELECT a.id, a.at, a.event, a.outcome, a.actor_uid, a.via, a.via_id, a.account_uid, a.request_id,
                  a.details AS "details: Json<Map<String, Value>>", o.address AS "address?", o.client AS "client?",
                  t.label AS "label?", b.email AS "actor_email?", b.display_name AS "actor_name?",
                  c.email AS "account_email?", c.display_name AS "account_name?"
           FROM audit a
           LEFT JOIN audit_origins o ON o.audit_id = a.id
           LEFT JOIN accounts b ON b.uid = a.actor_uid AND b.purged_at IS NULL
           LEFT JOIN accounts c ON c.uid = a.account_uid AND c.purged_at IS NULL
           LEFT JOIN tokens t ON t.id = CASE WHEN a.via IN ('session', 'token') THEN a.via_id::uuid END
           WHERE ($1::text IS NULL OR starts_with(a.event, $1)) AND ($2::text IS NULL OR a.account_uid = $2)
             AND ($3::text IS NULL OR a.actor_uid = $3) AND ($4::text IS NULL OR a.outcome = $4)
             AND ($5::uuid IS NULL OR a.request_id = $5) AND ($6::timestamptz IS NULL OR a.at >= $6)
             AND ($7::timestamptz IS NULL OR a.at < $7) AND ($8::bigint IS NULL OR a.id < $8)
           ORDER BY a.id DESC LIMIT $9"#,
        filter.event,
        filter.account.as_ref().map(AccountUid::as_str),
        filter.actor.as_ref().map(AccountUid::as_str),
        filter.outcome,
        filter.request,
        filter.from.map(Timestamp::get),
        filter.to.map(Timestamp::get),
        after.map(|after| after.0),
        limit,
    )
    .fetch_all(conn)
    .await?;
    let named = |uid: Option<String>, email: Option<String>, name: Option<String>| {
        let display_name = email.as_deref().map(|email| display_name(name.as_deref().unwrap_or_default(), email));
        uid.map(|uid| Named { uid: AccountUid::from_stored(uid), email, display_name })
    };
    let entry = rows.into_iter().map(|row| Entry {
        id: row.id,
        at: row.at.into(),
        event: row.event,
        outcome: row.outcome,
        actor: named(row.actor_uid, row.actor_email, row.actor_name),
        via: row.via,
        via_id: row.via_id,
        via_label: row.label,
        account: named(row.account_uid, row.account_email, row.account_name),
        request: row.request_id,
        details: row.details.0,
        address: row.address,
        client: row.client,
    });
    Ok(entry.collect())
}
