//! `GET /console/credit`: the balance of a person's account, and how it came about.

use axum::extract::{OriginalUri, State};
use db::ledger;
use domain::Timestamp;
use domain::account::LedgerReason;
use domain::id::JobId;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::console::person::Person;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::query::QueryReader;
use crate::openapi::errors::ScopeErrors;
use crate::problem::Result;
use crate::reply;
use crate::state::App;

/// The credit of an account, with a page of its ledger.
#[derive(Serialize, ToSchema)]
pub struct Credit {
    /// Credits of the account: the sum of its whole ledger.
    #[schema(minimum = 0)]
    balance: i64,
    /// Movements of credit, newest first.
    entries: Vec<LedgerEntry>,
    /// Position in the list.
    page: Page,
}

/// A movement of credit.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    /// Credits that were added, or taken if negative. Never 0.
    amount: i64,
    /// Why credit moved.
    reason: LedgerReason,
    /// Why somebody moved it by hand.
    note: Option<String>,
    /// Id of the job or Recipe run that the movement belongs to; absent in a grant.
    work_id: Option<Uuid>,
    /// Handle of the job that the movement belongs to, while it has a record.
    #[schema(pattern = "^job:[0-9a-f-]{36}$")]
    job: Option<String>,
    /// Handle of the Recipe run that the movement belongs to, itself or as one of its steps, while it has a record.
    #[schema(pattern = "^run:recipe-[0-9a-f-]{36}$")]
    run: Option<String>,
    /// When credit moved.
    created_at: Timestamp,
}

impl From<ledger::LedgerEntry> for LedgerEntry {
    fn from(entry: ledger::LedgerEntry) -> Self {
        Self {
            amount: entry.amount,
            reason: entry.reason,
            note: entry.note,
            work_id: entry.work,
            job: entry.work.filter(|_| entry.is_job).map(|id| JobId(id).job_handle()),
            run: entry.run.map(|run| run.handle()),
            created_at: entry.created_at,
        }
    }
}

/// Read credit
///
/// Returns the balance of the account and one page of its ledger, newest first: what was granted, what jobs and Recipe runs
/// reserved, and what they returned.
#[utoipa::path(
    get, path = "/credit", operation_id = "getCredit", tag = "Credit",
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "The balance and one page of the ledger.", body = Credit))
)]
pub async fn read(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("console/credit", &person.account, &[]);
    let request = page_request::<i64, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let limit = i64::from(request.limit) + 1;
    let mut found = ledger::list(&mut *app.connection().await?, &person.account, request.after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |entry| entry.id);
    let entries = found.into_iter().map(LedgerEntry::from).collect();
    Ok(reply::ok(&Credit { balance: person.credit_balance, entries, page }))
}
