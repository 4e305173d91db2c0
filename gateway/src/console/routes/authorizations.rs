//! `/console/authorizations`: a person decides whether a program gets access.

use app::oauth::{Allowed, Binding};
use app::token::lacking_scope;
use axum::extract::State;
use db::audit::{self, Event};
use domain::Violation;
use domain::account::{AppKind, Scope, Scopes};
use domain::budget::{self, Budget, BudgetPeriod, BudgetUnit};
use domain::limits::{OAUTH_DEFAULT_OUTPUTS, OAUTH_QUERY_MAX};
use serde::{Deserialize, Serialize};
use service::config::Config;
use utoipa::ToSchema;

use crate::console::person::Person;
use crate::extract::json::{Input, JsonBody};
use crate::oauth;
use crate::oauth::redirect::{Target, target};
use crate::oauth::request::{AuthorizationRequest, Query};
use crate::openapi::errors::ReadErrors;
use crate::problem::{Problem, Result};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// The query with which a program sent the person.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewAuthorization {
    /// The raw query string of `/oauth/authorize`.
    #[schema(max_length = 16384)]
    query: String,
}

impl Input for PreviewAuthorization {
    const LIMIT: usize = 2 * OAUTH_QUERY_MAX;
}

/// What a program asks for, or where it is told why its request is invalid.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationPreview {
    /// What it asks for.
    request: Option<RequestedAuthorization>,
    /// The address that tells the program of an invalid request.
    redirect_to: Option<String>,
}

/// What a program asks for.
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedAuthorization {
    /// The `client_id` of the program.
    client_id: String,
    /// Its name, without invisible characters.
    name: String,
    /// The host that vouches for the name, if one does.
    host: Option<String>,
    /// How the service knows the program.
    kind: AppKind,
    /// The address that gets the answer.
    redirect_uri: String,
    /// The host of that address.
    redirect_host: String,
    /// What is at that address.
    redirect_target: RedirectTarget,
    /// The scopes, in a fixed order.
    scopes: Vec<Scope>,
    /// What the app may spend, unless the person decides otherwise: nothing is limited where no scope generates.
    budgets: Vec<Budget>,
}

/// What gets the answer to a request.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RedirectTarget {
    /// A web server.
    Web,
    /// A program on the person's computer, by a loopback address.
    Loopback,
    /// A program on the person's computer, by a private URL scheme.
    Private,
}

impl From<Target> for RedirectTarget {
    fn from(target: Target) -> Self {
        match target {
            Target::Web => Self::Web,
            Target::Loopback => Self::Loopback,
            Target::Private => Self::Private,
        }
    }
}

/// Preview an authorization
///
/// Tells what a program asks for with the query of `/oauth/authorize`, and who gets the answer. It changes nothing. A query whose client or
/// address is unknown is 400, and nothing may be sent there. Other invalid requests are told to the client at `redirectTo`.
#[utoipa::path(
    post, path = "/authorizations/preview", operation_id = "previewAuthorization", tag = "Apps",
    request_body = PreviewAuthorization,
    responses(ReadErrors, (status = 200, description = "The request.", body = AuthorizationPreview))
)]
pub async fn preview(State(app): State<App>, _: Person, body: JsonBody) -> Result {
    let body: PreviewAuthorization = body.json().await?;
    require_oauth(&app)?;
    Ok(reply::ok(&match AuthorizationRequest::read(&app, &body.query).await? {
        Query::Refused(redirect_to) => AuthorizationPreview { request: None, redirect_to: Some(redirect_to) },
        Query::Request(request) => {
            let (redirect_target, redirect_host) = target(&request.redirect_uri);
            let client = request.client.recorded;
            let request = RequestedAuthorization {
                client_id: client.id,
                name: client.name,
                host: client.host,
                kind: client.kind,
                redirect_uri: request.redirect_uri,
                redirect_host,
                redirect_target: redirect_target.into(),
                scopes: request.scopes.iter().collect(),
                budgets: preset(&app.config, request.scopes),
            };
            AuthorizationPreview { request: Some(request), redirect_to: None }
        }
    }))
}

/// The budgets of an app whose person has not said otherwise: none if it cannot generate.
pub fn preset(config: &Config, scopes: Scopes) -> Vec<Budget> {
    if !scopes.iter().any(|scope| matches!(scope, Scope::ImageGenerate | Scope::VideoGenerate)) {
        return Vec::new();
    }
    let credits =
        Budget { unit: BudgetUnit::Credits, period: BudgetPeriod::Month, max: config.oauth_default_credits.into() };
    let outputs = Budget { unit: BudgetUnit::Outputs, period: BudgetPeriod::Day, max: OAUTH_DEFAULT_OUTPUTS };
    vec![credits, outputs]
}

pub fn require_oauth(app: &App) -> Result<()> {
    if oauth::is_on(&app.config) { Ok(()) } else { Err(Problem::NotFound("path")) }
}

/// A decision.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The program gets access.
    Allow,
    /// It does not.
    Deny,
}

/// The canvases that an app may use.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Canvases {
    /// All that the person may use.
    All,
}

/// A person's decision about the request of a program.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DecideAuthorization {
    /// The raw query string of `/oauth/authorize`.
    #[schema(max_length = 16384)]
    query: String,
    /// The decision.
    decision: Decision,
    /// What is granted, with every scope that these require: of what was asked for, all when omitted.
    #[schema(min_items = 1, max_items = 8)]
    scopes: Option<Vec<Scope>>,
    /// The canvases that the app may use; all when omitted. An app cannot be limited to some of them yet.
    #[serde(default)]
    canvases: Option<Canvases>,
    /// What the app may spend: each unit and period once. Empty: what the account has. When omitted, `budgets` of the preview, if what is
    /// granted generates.
    #[schema(max_items = 8)]
    budgets: Option<Vec<Budget>>,
    /// Days until the app ends; it does not end by itself when omitted.
    #[schema(minimum = 1, maximum = 90)]
    expires_days: Option<u32>,
}

impl Input for DecideAuthorization {
    const LIMIT: usize = 2 * OAUTH_QUERY_MAX;
}

/// The granted scopes and the budgets of a decision about `requested`.
///
/// # Errors
///
/// Every rule that the decision breaks.
pub fn granted(
    config: &Config,
    requested: Scopes,
    scopes: Option<Vec<Scope>>,
    budgets: Option<Vec<Budget>>,
) -> Result<(Scopes, Vec<Budget>)> {
    let granted = scopes.map_or(requested, |scopes| scopes.into_iter().collect());
    let wider: Vec<_> = requested.missing(granted).iter().map(|scope| scope.to_string()).collect();
    let wider = (!wider.is_empty())
        .then(|| Violation::new("scopes", format!("has what the program did not ask for: {}", wider.join(", "))));
    let budgets = budgets.unwrap_or_else(|| preset(config, granted));
    let of_budgets = budget::violations(&budgets);
    let violations: Vec<_> = wider.into_iter().chain(lacking_scope(granted)).chain(of_budgets).collect();
    if violations.is_empty() { Ok((granted, budgets)) } else { Err(Problem::Invalid(violations)) }
}

/// Where the person goes next.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationDecided {
    /// The address that tells the program of the decision.
    redirect_to: String,
}

/// Decide an authorization
///
/// Grants a program what it asked for, or less, or denies it. The answer is the address that tells the program. An account allows and
/// creates at most 20 apps and tokens in an hour, and has at most 50 apps: one more ends the app that was not used for the longest time.
#[utoipa::path(
    post, path = "/authorizations", operation_id = "decideAuthorization", tag = "Apps",
    request_body = DecideAuthorization,
    responses(ReadErrors, (status = 200, description = "The decision is made.", body = AuthorizationDecided))
)]
pub async fn decide(State(app): State<App>, person: Person, body: JsonBody) -> Result {
    let body: DecideAuthorization = body.json().await?;
    require_oauth(&app)?;
    let request = match AuthorizationRequest::read(&app, &body.query).await? {
        Query::Refused(redirect_to) => return Ok(reply::ok(&AuthorizationDecided { redirect_to })),
        Query::Request(request) => request,
    };
    let redirect_to = match body.decision {
        Decision::Deny => {
            let mut connection = app.connection().await?;
            audit::write(&mut connection, person.actor(), Some(&person.account), &Event::AppDenied {}).await?;
            request.answer(&app, &[("error", "access_denied"), ("error_description", "the person denied access")])
        }
        Decision::Allow => {
            let (scopes, budgets) = granted(&app.config, request.scopes, body.scopes, body.budgets)?;
            let Canvases::All = body.canvases.unwrap_or(Canvases::All);
            rates::take(&app, Rate::Tokens, &person.account).await?;
            let allowed = Allowed {
                account: &person.account,
                client: &request.client.recorded,
                scopes,
                surface: oauth::surface(&request.client.recorded, request.resource),
                budgets: &budgets,
                expires_days: body.expires_days,
            };
            let binding = &Binding { redirect_uri: &request.redirect_uri, challenge: &request.challenge };
            let mut transaction = app.transaction().await?;
            let code = app::oauth::allow(&mut transaction, person.actor(), app.keys.app(), &allowed, binding).await?;
            db::pool::commit(transaction).await?;
            request.answer(&app, &[("code", &code)])
        }
    };
    Ok(reply::ok(&AuthorizationDecided { redirect_to }))
}
