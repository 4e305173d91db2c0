//! `GET /console/admin/audit`: who did what, in all accounts, as pages or as lines.

use axum::body::Body;
use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use db::audit::read::{After, Filter, page as read_page};
use db::audit::{Event, write};
use domain::id::AccountUid;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::Deserialize;
use utoipa::IntoParams;

use super::administrator::Administrator;
use crate::console::routes::audit::{AuditEntry, AuditFilter, AuditPage, list_page};
use crate::extract::accept::Accepted;
use crate::extract::page::Paged;
use crate::extract::query::{QueryReader, plain_uid};
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// Entries that are read at a time for an export.
const READ: i64 = 500;

/// Whose entries are listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AccountsQuery {
    /// Uid of the account that is concerned.
    #[serde(default, deserialize_with = "plain_uid")]
    account: Option<AccountUid>,
    /// Uid of the account that acted.
    #[serde(default, deserialize_with = "plain_uid")]
    actor: Option<AccountUid>,
}

/// Read the audit of all accounts
///
/// Returns one page of the audit, newest first. With `Accept: application/x-ndjson` all entries that fit are sent as JSON lines, whatever
/// `limit` and `cursor` say, and that is an entry itself.
#[utoipa::path(
    get, path = "/audit", operation_id = "listWholeAudit", tag = "Audit",
    params(AuditFilter, AccountsQuery, Paged),
    responses(
        ScopeErrors,
        (status = 200, description = "One page of the audit, or all that fits as lines.", content(
            (AuditPage = "application/json"),
            (String = "application/x-ndjson"),
        )),
    )
)]
pub async fn list(State(app): State<App>, admin: Administrator, OriginalUri(uri): OriginalUri, parts: Parts) -> Result {
    let mut query = QueryReader::new(&uri);
    let filter: AuditFilter = query.read().unwrap_or_default();
    let AccountsQuery { account, actor } = query.read().unwrap_or_default();
    let filter = filter.of(account, actor);
    if Accepted::from_headers(&parts.headers).prefers_lines() {
        query.finish()?;
        return export(app, &admin, filter).await;
    }
    let (found, page) = list_page(&app, ("console/admin/audit", &admin), query, filter).await?;
    Ok(reply::ok(&AuditPage { entries: found.into_iter().map(AuditEntry::from).collect(), page }))
}

/// All entries as JSON lines. They are read as the client takes them.
async fn export(app: App, admin: &Administrator, filter: Filter) -> Result {
    let mut transaction = app.transaction().await?;
    write(&mut transaction, admin.actor(), None, &Event::AuditExported {}).await?;
    db::pool::commit(transaction).await?;
    let lines = stream::try_unfold((app, filter, None), async |(app, filter, after): (App, Filter, Option<After>)| {
        let mut connection = db::pool::acquire(&app.pool).await?;
        let found = read_page(&mut connection, &filter, after.as_ref(), READ).await?;
        let Some(last) = found.last().map(|entry| After(entry.id)) else { return Ok::<_, db::Error>(None) };
        let mut text = Vec::new();
        for entry in found {
            serde_json::to_writer(&mut text, &AuditEntry::from(entry)).expect("an entry serializes");
            text.push(b'\n');
        }
        drop(connection);
        Ok(Some((Bytes::from(text), (app, filter, Some(last)))))
    });
    Ok(reply::private(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()))
}
