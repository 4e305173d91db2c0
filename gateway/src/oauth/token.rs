//! `POST /oauth/token`: a client exchanges a code, or a refresh token, for tokens (RFC 6749, section 3.2).

use app::device::Polled;
use app::oauth::{Exchange, Named, Outcome, Pair, Presented, Proof, Refresh};
use axum::Json;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use db::audit::Origin;
use db::oauth::Lifetimes;
use domain::account::Scope;
use domain::channel;
use http::header::CACHE_CONTROL;
use serde::Serialize;

use super::Resource;
use super::client::Client;
use super::device;
use super::error::{OauthError, Result};
use super::form::{Form, Parameters};
use super::request::parse_scopes;
use crate::console::credential;
use crate::problem::Problem;
use crate::rates::Rate;
use crate::state::{App, retrying};

/// The tokens, in the form of RFC 6749, section 5.1.
#[derive(Serialize)]
struct Tokens {
    access_token: String,
    token_type: &'static str,
    expires_in: i64,
    refresh_token: String,
    scope: String,
}

impl From<Pair> for Tokens {
    fn from(pair: Pair) -> Self {
        let scopes: Vec<&str> = pair.scopes.iter().map(Scope::as_str).collect();
        Self {
            access_token: pair.access,
            token_type: "Bearer",
            expires_in: pair.expires_in,
            refresh_token: pair.refresh,
            scope: scopes.join(" "),
        }
    }
}

pub async fn token(State(app): State<App>, request: Request) -> Result {
    let form = Form::receive(&app, request, Rate::OauthTokens).await?;
    let parameters = form.parameters()?;
    let grant_type = parameters.required("grant_type")?;
    if !["authorization_code", "refresh_token", device::GRANT_TYPE].contains(&grant_type) {
        let why = "grant_type is authorization_code, refresh_token or that of device codes";
        return Err(OauthError::new("unsupported_grant_type", why));
    }
    let client = Client::find(&app, parameters.required("client_id")?).await?.ok_or_else(OauthError::invalid_client)?;
    let is_ours = |resource| Resource::parse(resource, &app.config).is_some();
    if !parameters.get("resource").is_none_or(is_ours) {
        return Err(OauthError::new("invalid_target", "resource is not an address of this service"));
    }
    let outcome = match grant_type {
        "authorization_code" => exchange(&app, &form.origin, &client, &parameters).await?,
        device::GRANT_TYPE => poll(&app, &form.origin, &client, &parameters).await?,
        _ => refresh(&app, &form.origin, &client, &parameters).await?,
    };
    match outcome {
        Outcome::Pair(pair, of_ended) => {
            app.announce(of_ended.iter().map(channel::access).collect());
            Ok(([(CACHE_CONTROL, "no-store")], Json(Tokens::from(pair))).into_response())
        }
        Outcome::Refused => Err(OauthError::invalid_grant()),
        Outcome::Ended(account) => {
            tracing::warn!(account = account.as_str(), "an app has ended: its code or refresh token was used twice");
            app.announce(vec![channel::access(&account)]);
            Err(OauthError::invalid_grant())
        }
    }
}

/// A secret with this prefix.
fn presented<'a>(text: &'a str, prefix: &str) -> Option<Presented<'a>> {
    credential::parse(text.strip_prefix(prefix)?)
}

fn lifetimes(app: &App) -> Lifetimes {
    Lifetimes { access_seconds: app.config.oauth_access_seconds, idle_days: app.config.oauth_idle_days }
}

async fn exchange(app: &App, origin: &Origin, client: &Client, parameters: &Parameters<'_>) -> Result<Outcome> {
    let (code, redirect_uri, verifier) =
        (parameters.required("code")?, parameters.required("redirect_uri")?, parameters.required("code_verifier")?);
    let Some(code) = presented(code, "cbc_") else { return Ok(Outcome::Refused) };
    let client_id = client.recorded.id.as_str();
    let exchange = &Exchange { code, client_id, proof: Proof::Redirect { redirect_uri, verifier } };
    let exchanged = retrying(|| async {
        let mut transaction = app.transaction().await?;
        let outcome =
            app::oauth::exchange(&mut transaction, app.keys.app(), (lifetimes(app), origin), exchange).await?;
        // A refusal, too, has an effect on the code.
        db::pool::commit(transaction).await?;
        Ok(outcome)
    });
    Ok(exchanged.await?)
}

async fn poll(app: &App, origin: &Origin, client: &Client, parameters: &Parameters<'_>) -> Result<Outcome> {
    device::require_command_line(parameters)?;
    let Some(code) = presented(parameters.required("device_code")?, "cbd_") else { return Ok(Outcome::Refused) };
    let polled = retrying(|| async {
        let mut transaction = app.transaction().await?;
        let client_id = &client.recorded.id;
        let polled =
            app::device::poll(&mut transaction, app.keys.app(), (lifetimes(app), origin), code, client_id).await?;
        db::pool::commit(transaction).await?;
        Ok(polled)
    });
    let (error, description) = match polled.await? {
        Polled::Outcome(outcome) => return Ok(outcome),
        Polled::Pending => ("authorization_pending", "nobody has decided yet"),
        Polled::TooEarly => ("slow_down", "wait 5 seconds more between two requests"),
        Polled::Denied => ("access_denied", "the person denied access"),
        Polled::Expired => ("expired_token", "the device code has expired"),
    };
    Err(OauthError::new(error, description))
}

async fn refresh(app: &App, origin: &Origin, client: &Client, parameters: &Parameters<'_>) -> Result<Outcome> {
    let scopes = match parameters.get("scope") {
        Some(scopes) => parse_scopes(scopes).ok_or_else(unknown_scopes)?,
        None => domain::account::Scopes::default(),
    };
    let Some(token) = presented(parameters.required("refresh_token")?, "cbr_") else { return Ok(Outcome::Refused) };
    let named = &Named { client_id: &client.recorded.id, scopes };
    let refreshed = retrying(|| async {
        let mut transaction = app.transaction().await?;
        let refresh =
            app::oauth::refresh(&mut transaction, app.keys.app(), (lifetimes(app), origin), token, named).await?;
        db::pool::commit(transaction).await?;
        Ok(refresh)
    });
    match refreshed.await? {
        Refresh::Outcome(outcome) => Ok(outcome),
        Refresh::ScopesNotGranted => Err(unknown_scopes()),
    }
}

fn unknown_scopes() -> OauthError {
    OauthError::new("invalid_scope", "scope names what was not granted")
}

impl From<app::Error> for OauthError {
    fn from(error: app::Error) -> Self {
        Problem::from(error).into()
    }
}
