//! `/console/apps`: the programs that a person authorized.

use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use db::oauth::After;
use domain::Timestamp;
use domain::account::{AppKind, Scope};
use domain::budget::BudgetState;
use domain::channel;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::tokens::{BudgetsSet, SetBudgets};
use crate::console::person::Person;
use crate::extract::json::JsonBody;
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::App;

/// A page of apps, newest first.
#[derive(Serialize, ToSchema)]
pub struct AppList {
    /// Apps that have not ended.
    apps: Vec<AuthorizedApp>,
    /// Position in the list.
    page: Page,
}

/// A program that the person authorized.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizedApp {
    /// Id of the app, under which its activity and its work are recorded.
    id: Uuid,
    /// The `client_id` of the program.
    client_id: String,
    /// Its name, as it was shown to the person.
    name: String,
    /// The host that vouches for it, if one does.
    host: Option<String>,
    /// How the service knows the program.
    kind: AppKind,
    /// What it may do, in a fixed order.
    scopes: Vec<Scope>,
    /// When the person allowed it.
    created_at: Timestamp,
    /// When it ends; absent: it does not end by itself.
    expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    last_used_at: Option<Timestamp>,
    /// What it may spend, and what it has spent.
    budgets: Vec<BudgetState>,
}

impl From<db::oauth::App> for AuthorizedApp {
    fn from(app: db::oauth::App) -> Self {
        Self {
            id: app.id,
            client_id: app.client.id,
            name: app.client.name,
            host: app.client.host,
            kind: app.client.kind,
            scopes: app.scopes.iter().collect(),
            created_at: app.created_at,
            expires_at: app.expires_at,
            last_used_at: app.last_used_at,
            budgets: app.budgets,
        }
    }
}

/// List apps
///
/// Returns one page of the programs that the person authorized and that have not ended, newest first.
#[utoipa::path(
    get, path = "/apps", operation_id = "listApps", tag = "Apps",
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "One page of apps.", body = AppList))
)]
pub async fn list(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("console/apps", &person.account, &[]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = db::oauth::page(&mut *app.connection().await?, &person.account, after, limit).await?;
    let page = page(&app, &scope, request.limit, &mut found, |it| After { created_at: it.created_at, id: it.id });
    Ok(reply::ok(&AppList { apps: found.into_iter().map(AuthorizedApp::from).collect(), page }))
}

/// Set the budgets of an app
///
/// Replaces the budgets of an app of the account, in force for its next start. A budget of the same unit and period keeps what it has
/// counted; a new one counts from now on. Work that was started goes on.
#[utoipa::path(
    put, path = "/apps/{appId}/budgets", operation_id = "setAppBudgets", tag = "Apps", request_body = SetBudgets,
    params(("appId" = Uuid, Path, description = "Id of the app.")),
    responses(ScopeErrors, (status = 200, description = "The budgets are set.", body = BudgetsSet), (status = 404))
)]
pub async fn set_budgets(State(app): State<App>, person: Person, path: PathText, body: JsonBody) -> Result {
    let id: Uuid = path.parameter("appId")?;
    let wanted = body.checked(SetBudgets::check).await?;
    let mut transaction = app.transaction().await?;
    let budgets = app::budget::set_for_app(&mut transaction, person.actor(), &person.account, id, &wanted).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::ok(&BudgetsSet { budgets }))
}

/// End an app
///
/// Ends an app for the next request, with its tokens, for good. Recipe runs that it started stop at their next step. Ending it again
/// changes nothing.
#[utoipa::path(
    delete, path = "/apps/{appId}", operation_id = "endApp", tag = "Apps",
    params(("appId" = Uuid, Path, description = "Id of the app.")),
    responses(ReadErrors, (status = 204, description = "The app has ended."))
)]
pub async fn revoke(State(app): State<App>, person: Person, path: PathText) -> Result {
    let id: Uuid = path.parameter("appId")?;
    let mut transaction = app.transaction().await?;
    let ended = app::oauth::end_app(&mut transaction, person.actor(), id, Some(&person.account)).await?;
    ended.ok_or(Problem::NotFound("app"))?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&person.account)]);
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
