//! `/console/tokens`: the agent tokens of a person's account.

use app::token::{NewToken, lacking_scope};
use axum::extract::{OriginalUri, State};
use axum::response::IntoResponse;
use db::tokens::{After, TokenRow};
use domain::account::{Scope, Surface};
use domain::budget::{self, Budget, BudgetState};
use domain::channel;
use domain::limits::PAGE_MAX;
use domain::page::Page;
use domain::{Timestamp, Violation};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::console::person::Person;
use crate::extract::check::Check;
use crate::extract::json::{Input, JsonBody};
use crate::extract::page::{ListScope, Paged, page, page_request};
use crate::extract::path::PathText;
use crate::extract::query::QueryReader;
use crate::openapi::errors::{ReadErrors, ScopeErrors};
use crate::problem::Result;
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// A page of tokens, newest first.
#[derive(Serialize, ToSchema)]
pub struct TokenList {
    /// Tokens, active or not, without their secrets.
    pub(in crate::console) tokens: Vec<AgentToken>,
    /// Position in the list.
    pub(in crate::console) page: Page,
}

/// A token of an agent or program. It never contains the secret.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentToken {
    /// Id of the token.
    id: Uuid,
    /// Label under which its activity is recorded.
    label: String,
    /// Scopes that it grants, in a fixed order.
    scopes: Vec<Scope>,
    /// Kind of client that uses it.
    surface: Surface,
    /// When it was created.
    created_at: Timestamp,
    /// When it expires; absent: it does not expire.
    expires_at: Option<Timestamp>,
    /// When it was revoked.
    revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    last_used_at: Option<Timestamp>,
    /// What it may spend, and what it has spent.
    budgets: Vec<BudgetState>,
}

impl From<TokenRow> for AgentToken {
    fn from(token: TokenRow) -> Self {
        Self {
            id: token.id,
            label: token.label,
            scopes: token.scopes.iter().collect(),
            surface: token.surface,
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
            budgets: token.budgets,
        }
    }
}

/// List tokens
///
/// Returns one page of the account's agent tokens, newest first, with those that expired or were revoked. Sessions are not listed.
#[utoipa::path(
    get, path = "/tokens", operation_id = "listTokens", tag = "Tokens",
    params(Paged),
    responses(ScopeErrors, (status = 200, description = "One page of tokens.", body = TokenList))
)]
pub async fn list(State(app): State<App>, person: Person, OriginalUri(uri): OriginalUri) -> Result {
    let mut query = QueryReader::new(&uri);
    let scope = ListScope::new("console/tokens", &person.account, &[]);
    let request = page_request::<After, PAGE_MAX>(&app, &mut query, &scope);
    query.finish()?;
    let (after, limit) = (request.after.as_ref(), i64::from(request.limit) + 1);
    let mut found = db::tokens::page(&mut *app.connection().await?, &person.account, after, limit).await?;
    let page =
        page(&app, &scope, request.limit, &mut found, |token| After { created_at: token.created_at, id: token.id });
    Ok(reply::ok(&TokenList { tokens: found.into_iter().map(AgentToken::from).collect(), page }))
}

/// Request to create a token.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateToken {
    /// Label under which its activity is recorded.
    #[schema(min_length = 1, max_length = 80)]
    label: String,
    /// Scopes that it grants, with every scope that these require.
    #[schema(min_items = 1, max_items = 8)]
    scopes: Vec<Scope>,
    /// Days until it expires; it does not expire when omitted.
    #[schema(minimum = 1, maximum = 90)]
    expires_days: Option<u32>,
    /// Kind of client that will use it; `api` when omitted.
    surface: Option<Surface>,
    /// What it may spend: each unit and period once. Without budgets it may spend what the account has.
    #[serde(default)]
    #[schema(max_items = 8)]
    budgets: Vec<Budget>,
}

impl Input for CreateToken {}

impl CreateToken {
    fn check(self) -> Result<NewToken, Vec<Violation>> {
        let mut check = Check::default();
        let scopes = self.scopes.into_iter().collect();
        check.extend(lacking_scope(scopes));
        let Self { label, expires_days, budgets, .. } = self;
        check.extend(budget::violations(&budgets));
        let surface = self.surface.unwrap_or_default();
        check.finish(|| Some(NewToken { label, scopes, surface, expires_days, budgets }))
    }
}

/// A new token.
#[derive(Serialize, ToSchema)]
pub struct TokenCreated {
    /// The token.
    token: AgentToken,
    /// The bearer token, `cba_<id>.<secret>`. This response alone contains it.
    secret: String,
}

/// Create a token
///
/// Creates an agent token of the account. The response contains its secret, which is never shown again. An account has at most 20
/// active tokens, and creates at most 20 in an hour.
#[utoipa::path(
    post, path = "/tokens", operation_id = "createToken", tag = "Tokens", request_body = CreateToken,
    responses(
        ScopeErrors,
        (status = 201, description = "The token and its secret.", body = TokenCreated),
        (status = 409, description = "The account already has 20 active tokens."),
    )
)]
pub async fn create(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let new = body.checked(CreateToken::check).await?;
    rates::take(&app, Rate::Tokens, &person.account).await?;
    let mut transaction = app.transaction().await?;
    let (row, secret) = app::token::create(&mut transaction, person.actor(), &app.keys, &person.account, &new).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::with_status(StatusCode::CREATED, &TokenCreated { token: row.into(), secret }))
}

/// Request to set the budgets of a token or an app.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetBudgets {
    /// What it may spend: each unit and period once. Empty: what the account has.
    #[schema(max_items = 8)]
    budgets: Vec<Budget>,
}

impl Input for SetBudgets {}

impl SetBudgets {
    pub fn check(self) -> Result<Vec<Budget>, Vec<Violation>> {
        let mut check = Check::default();
        check.extend(budget::violations(&self.budgets));
        check.finish(|| Some(self.budgets))
    }
}

/// The budgets of a token or an app.
#[derive(Serialize, ToSchema)]
pub struct BudgetsSet {
    /// What it may spend, and what it has spent.
    pub budgets: Vec<BudgetState>,
}

/// Set the budgets of a token
///
/// Replaces the budgets of a token of the account, in force for its next start. A budget of the same unit and period keeps what it has
/// counted; a new one counts from now on. Work that was started goes on.
#[utoipa::path(
    put, path = "/tokens/{tokenId}/budgets", operation_id = "setTokenBudgets", tag = "Tokens", request_body = SetBudgets,
    params(("tokenId" = Uuid, Path, description = "Id of the token.")),
    responses(ScopeErrors, (status = 200, description = "The budgets are set.", body = BudgetsSet), (status = 404))
)]
pub async fn set_budgets(State(app): State<App>, person: Person, path: PathText, body: JsonBody) -> Result {
    let id: Uuid = path.parameter("tokenId")?;
    let wanted = body.checked(SetBudgets::check).await?;
    let mut transaction = app.transaction().await?;
    let budgets = app::budget::set_for_token(&mut transaction, person.actor(), &person.account, id, &wanted).await?;
    db::pool::commit(transaction).await?;
    Ok(reply::ok(&BudgetsSet { budgets }))
}

/// Revoke a token
///
/// Revokes a token of the account for the next request, for good. Sessions that it signed in end with it. Revoking it again changes
/// nothing.
#[utoipa::path(
    delete, path = "/tokens/{tokenId}", operation_id = "revokeToken", tag = "Tokens",
    params(("tokenId" = Uuid, Path, description = "Id of the token.")),
    responses(ReadErrors, (status = 204, description = "The token is revoked."))
)]
pub async fn revoke(State(app): State<App>, person: Person, path: PathText) -> Result {
    let id: Uuid = path.parameter("tokenId")?;
    let mut transaction = app.transaction().await?;
    app::token::revoke(&mut transaction, person.actor(), id, Some(&person.account)).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&person.account)]);
    Ok(reply::private(StatusCode::NO_CONTENT.into_response()))
}
