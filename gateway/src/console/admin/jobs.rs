//! `/console/admin/jobs`: the work of all accounts, without what it makes.

use axum::extract::{OriginalUri, State};
use db::jobs::operation::{self, JobFilter, ListedJob};
use db::purge::Active;
use domain::Timestamp;
use domain::id::AccountUid;
use domain::job::JobStatus;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::administrator::Administrator;
use crate::cancel;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::{QueryReader, plain_uid};
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::{App, retrying};

/// A page of work, newest first.
#[derive(Serialize, ToSchema)]
pub struct WorkList {
    /// Jobs and Recipe runs.
    jobs: Vec<Work>,
    /// Position in the list.
    page: Page,
}

/// A job or a Recipe run.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    /// `job:<uuid>` or `run:recipe-<uuid>`.
    id: String,
    /// Uid of the account.
    account: String,
    /// `image`, `action`, `video` or `recipe`.
    kind: String,
    /// What it does, such as `generate`.
    operation: String,
    /// Its state.
    status: String,
    /// Credits reserved, or charged after the end.
    credit_cost: i64,
    /// How often a worker claimed it.
    claims: Option<i32>,
    /// The worker that holds it.
    worker: Option<String>,
    /// When it is due.
    due_at: Option<Timestamp>,
    /// When it was accepted.
    created_at: Timestamp,
    /// When a worker first claimed it.
    started_at: Option<Timestamp>,
    /// When it ended.
    completed_at: Option<Timestamp>,
}

fn active(listed: &ListedJob) -> Active {
    Active { id: listed.id, is_recipe: listed.is_recipe(), account: AccountUid::from_stored(listed.account.clone()) }
}

impl From<ListedJob> for Work {
    fn from(listed: ListedJob) -> Self {
        Self {
            id: cancel::handle(&active(&listed)),
            account: listed.account,
            kind: listed.kind,
            operation: listed.operation,
            status: listed.status,
            credit_cost: listed.credit_cost,
            claims: listed.claims,
            worker: listed.worker,
            due_at: listed.due_at.map(Timestamp::from),
            created_at: listed.created_at.into(),
            started_at: listed.started_at.map(Timestamp::from),
            completed_at: listed.completed_at.map(Timestamp::from),
        }
    }
}

/// States of work that are listed.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkStatus {
    /// All that are not final.
    Active,
    Succeeded,
    Failed,
    Canceled,
}

impl WorkStatus {
    fn statuses(self) -> Vec<String> {
        let is_wanted = |status: &&JobStatus| match self {
            WorkStatus::Active => !status.is_terminal(),
            WorkStatus::Succeeded => matches!(status, JobStatus::Succeeded),
            WorkStatus::Failed => matches!(status, JobStatus::Failed),
            WorkStatus::Canceled => matches!(status, JobStatus::Canceled),
        };
        JobStatus::ALL.iter().filter(is_wanted).map(ToString::to_string).collect()
    }
}

/// Which work is listed.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct WorkQuery {
    /// Only work of the account with this uid.
    #[serde(default, deserialize_with = "plain_uid")]
    account: Option<AccountUid>,
    /// Only work in this state.
    #[param(inline)]
    status: Option<WorkStatus>,
}

/// List work
///
/// Returns one page of the jobs and Recipe runs of all accounts, newest first, without what they make.
#[utoipa::path(
    get, path = "/jobs", operation_id = "listWork", tag = "Jobs",
    params(WorkQuery, Paged),
    responses(ScopeErrors, (status = 200, description = "One page of work.", body = WorkList))
)]
pub async fn list(State(app): State<App>, admin: Administrator, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let WorkQuery { account, status } = query.read().unwrap_or_default();
    let named = account.as_ref().map(AccountUid::as_str).unwrap_or_default();
    let scope = ListScope::new("console/admin/jobs", &admin.account, &[named, &format!("{status:?}")]);
    let request = page_request::<Uuid, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let statuses = status.map(WorkStatus::statuses);
    let wanted =
        JobFilter { id: None, account: account.as_ref(), statuses: statuses.as_deref(), before: request.after };
    let mut found = operation::list(&mut *app.connection().await?, wanted, i64::from(request.limit) + 1).await?;
    let page = page(&app, &scope, request.limit, &mut found, |work| work.id);
    Ok(reply::ok(&WorkList { jobs: found.into_iter().map(Work::from).collect(), page }))
}

/// Work after a cancel.
#[derive(Serialize, ToSchema)]
pub struct WorkCanceled {
    /// `job:<uuid>` or `run:recipe-<uuid>`.
    id: String,
    /// Its state, which is `canceling` as long as a worker has to stop.
    status: String,
}

/// The id of work in a path, with or without what it is.
struct WorkInPath(Uuid);

impl std::str::FromStr for WorkInPath {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        operation::parse_id(text).map(Self).ok_or("must be the id of a job or a Recipe run")
    }
}

/// Cancel work
///
/// Cancels a job or a Recipe run as its account could. What has ended keeps its state.
#[utoipa::path(
    post, path = "/jobs/{jobId}/cancel", operation_id = "cancelWork", tag = "Jobs",
    params(("jobId" = String, Path, pattern = "^(job:|run:)?(recipe-)?[0-9a-fA-F-]{36}$", description = "Id of a job or a Recipe run.")),
    responses(ReadErrors, (status = 202, description = "Its state.", body = WorkCanceled))
)]
pub async fn cancel(State(app): State<App>, admin: Administrator, path: PathText) -> Result {
    let WorkInPath(id) = path.parameter("jobId")?;
    let wanted = JobFilter { id: Some(id), ..JobFilter::default() };
    let found = operation::list(&mut *app.connection().await?, wanted, 1).await?.pop();
    let active = active(&found.ok_or(Problem::NotFound("job"))?);
    let canceled = retrying(async || {
        let mut transaction = app.transaction().await?;
        let canceled = cancel::cancel(&mut transaction, &app.config, admin.actor(), &active).await?;
        db::pool::commit(transaction).await?;
        Ok(canceled)
    });
    let canceled = canceled.await?.ok_or(Problem::NotFound("job"))?;
    app.announce(canceled.channels);
    let state = WorkCanceled { id: cancel::handle(&active), status: canceled.status };
    Ok(reply::with_status(StatusCode::ACCEPTED, &state))
}
