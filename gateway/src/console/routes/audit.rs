//! `GET /console/audit`: what was done with a person's account (docs/reference/administration.md#audit).

use axum::extract::{OriginalUri, State};
use db::audit::read::{After, Entry, Filter, Named, page as read_page};
use domain::Timestamp;
use domain::id::AccountUid;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::console::person::Person;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// A page of the audit, newest first.
#[derive(Serialize, ToSchema)]
pub struct AuditPage {
    /// The entries.
    pub(in crate::console) entries: Vec<AuditEntry>,
    /// Position in the list.
    pub(in crate::console) page: Page,
}

/// An entry of the audit.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Number of the entry.
    id: i64,
    /// When it was.
    at: Timestamp,
    /// The event, such as `token.created`.
    event: String,
    /// `ok`, or `refused` if what somebody tried did not happen.
    outcome: AuditOutcome,
    /// Who did it.
    actor: AuditActor,
    /// The account that is concerned.
    account: Option<AuditAccount>,
    /// Id of the request.
    request_id: Option<Uuid>,
    /// Ids, numbers and values of closed sets. The names depend on the event.
    details: Map<String, Value>,
    /// Address of the request, as long as it is kept.
    address: Option<String>,
    /// The client, as it names itself, as long as it is kept.
    client: Option<String>,
}

/// Whether something happened.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// It happened.
    Ok,
    /// It was refused.
    Refused,
}

impl AuditOutcome {
    const fn as_str(self) -> &'static str {
        match self {
            AuditOutcome::Ok => "ok",
            AuditOutcome::Refused => "refused",
        }
    }
}

/// Who did something.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
pub struct AuditActor {
    /// How: `session`, `token` (a program with an agent token), `command`, `app` (the program of an app), `provider` (a person whom a
    /// provider named), `system` (the service itself), or `nobody` who is known.
    via: String,
    /// Id of the session, token, app or identity, or name of the command.
    id: Option<String>,
    /// Label of the session or token, while it is there.
    label: Option<String>,
    /// The account.
    account: Option<AuditAccount>,
}

/// An account in the audit.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditAccount {
    /// Uid of the account.
    id: AccountUid,
    /// Its email, unless the account is purged.
    email: Option<String>,
    /// The name under which others see it, unless the account is purged.
    display_name: Option<String>,
}

impl From<Named> for AuditAccount {
    fn from(named: Named) -> Self {
        Self { id: named.uid, email: named.email, display_name: named.display_name }
    }
}

impl From<Entry> for AuditEntry {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            event: entry.event,
            outcome: if entry.outcome == "ok" { AuditOutcome::Ok } else { AuditOutcome::Refused },
            actor: AuditActor {
                via: entry.via,
                id: entry.via_id,
                label: entry.via_label,
                account: entry.actor.map(AuditAccount::from),
            },
            account: entry.account.map(AuditAccount::from),
            request_id: entry.request,
            details: entry.details,
            address: entry.address,
            client: entry.client,
        }
    }
}

impl AuditEntry {
    /// As `account` sees it: of what somebody else did, it learns that person's name, but neither the email nor the origin.
    fn seen_by(mut self, account: &AccountUid) -> Self {
        let is_foreign = self.actor.account.as_ref().is_none_or(|actor| actor.id != *account);
        if is_foreign {
            (self.address, self.client) = (None, None);
            if self.actor.via != "command" {
                (self.actor.id, self.actor.label) = (None, None);
            }
            self.actor.account.iter_mut().for_each(|actor| actor.email = None);
        }
        self
    }
}

/// Which entries are listed.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct AuditFilter {
    /// What the event begins with, such as `signin.`.
    #[param(max_length = 80)]
    event: Option<String>,
    /// Whether it happened.
    #[param(inline)]
    outcome: Option<AuditOutcome>,
    /// Id of the request.
    request_id: Option<Uuid>,
    /// The earliest time.
    from: Option<Timestamp>,
    /// The time before which it was.
    to: Option<Timestamp>,
}

impl AuditFilter {
    /// The filter of the entries that concern `account` and that `actor` caused.
    pub(in crate::console) fn of(self, account: Option<AccountUid>, actor: Option<AccountUid>) -> Filter {
        Filter {
            event: self.event,
            account,
            actor,
            outcome: self.outcome.map(AuditOutcome::as_str),
            request: self.request_id,
            from: self.from,
            to: self.to,
        }
    }
}

/// Reads a page of the audit, for the list with this name.
pub(in crate::console) async fn list_page(
    app: &App,
    (name, person): (&str, &Person),
    mut query: QueryReader<'_>,
    filter: Filter,
) -> Result<(Vec<Entry>, Page)> {
    let scope = ListScope::new(name, &person.account, &[&format!("{filter:?}")]);
    let request = page_request::<After, PAGE_MAX>(app, &mut query, &scope);
    query.finish()?;
    let limit = i64::from(request.limit) + 1;
    let mut found = read_page(&mut *app.connection().await?, &filter, request.after.as_ref(), limit).await?;
    let page = page(app, &scope, request.limit, &mut found, |entry| After(entry.id));
    Ok((found, page))
}

/// Read the audit
///
/// Returns one page of what was done with the account, newest first: sign-ins, tokens, connections, members, deletions, credit, and what
/// operators and administrators changed.
#[utoipa::path(
    get, path = "/audit", operation_id = "listAudit", tag = "Audit",
    params(AuditFilter, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of the audit.", body = AuditPage))
)]
pub async fn list(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let filter: AuditFilter = query.read().unwrap_or_default();
    let filter = filter.of(Some(person.account.clone()), None);
    let (found, page) = list_page(&app, ("console/audit", &person), query, filter).await?;
    let entries = found.into_iter().map(|entry| AuditEntry::from(entry).seen_by(&person.account)).collect();
    Ok(reply::ok(&AuditPage { entries, page }))
}
