//! `/console/oidc`: sign in with an OpenID provider.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use db::audit::{Actor, Event};
use domain::channel;
use domain::limits::{IDENTITIES_MAX, SIGNIN_RECENT_MINUTES};
use http::header::{CACHE_CONTROL, LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use identity::jwt::TOKEN_MAX;
use identity::provider::{Provider, SignInError};
use serde::Serialize;
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::address::ClientAddress;
use crate::audit;
use crate::console::person::Person;
use crate::console::sign_in::attempt::{Attempt, CLEAR};
use crate::console::sign_in::{self, Failure};
use crate::extract::json::{JsonBody, is_form};
use crate::extract::path::PathText;
use crate::openapi::errors::{NamedErrors, WriteErrors};
use crate::problem::{Problem, Result};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// The page that reports what became of linking.
const IDENTITIES: &str = "/settings/signin";

/// The providers that people sign in with.
#[derive(Serialize, ToSchema)]
pub struct Providers {
    /// The providers, in the operator's order.
    providers: Vec<ProviderSummary>,
}

/// A provider.
#[derive(Serialize, ToSchema)]
pub struct ProviderSummary {
    /// Id of the provider, for paths.
    id: String,
    /// The name on its button.
    name: String,
}

/// Where the browser goes on.
#[derive(Serialize, ToSchema)]
pub struct Continuation {
    /// Address of the provider.
    url: String,
}

/// List providers
///
/// Returns the OpenID providers that people sign in with. It takes no credential.
#[utoipa::path(
    get, path = "/oidc", operation_id = "listSignInProviders", tag = "Single sign-on", security(()),
    responses((status = 200, description = "The providers.", body = Providers))
)]
pub async fn list(State(app): State<App>) -> Result {
    let summary = |provider: &Provider| {
        let settings = &provider.settings;
        ProviderSummary { id: settings.id.clone(), name: settings.name.clone() }
    };
    Ok(reply::ok(&Providers { providers: app.providers.iter().map(summary).collect() }))
}

/// Begin a sign-in
///
/// Sends the browser to the provider. A sign-in that the browser began before is given up. It takes no credential.
#[utoipa::path(
    get, path = "/oidc/{providerId}/start", operation_id = "startSignIn", tag = "Single sign-on", security(()),
    params(("providerId" = String, Path, description = "Id of the provider.")),
    responses(
        NamedErrors,
        (status = 303, description = "To the provider, or to `/signin?problem=…` if it cannot be asked."),
    )
)]
pub async fn start(State(app): State<App>, parts: Parts, path: PathText) -> Result {
    let provider = sign_in::provider(&app, &path.parameter::<String>("providerId")?)?;
    rates::take(&app, Rate::SignIns, &ClientAddress::from_extensions(&parts.extensions)).await?;
    let attempt = Attempt::begin(&provider.settings.id, None);
    Ok(match provider.start(&attempt.with(&redirect_uri(&app, provider))).await {
        Ok(url) => to(url.as_str(), vec![attempt.cookie(&app.keys)]),
        Err(error) => to_problem("/signin", Failure::of_provider(provider, &error)),
    })
}

/// End a sign-in
///
/// Where the provider sends the browser. Only the browser that began the sign-in ends it.
#[utoipa::path(
    get, path = "/oidc/{providerId}/callback", operation_id = "endSignIn", tag = "Single sign-on", security(()),
    params(
        ("providerId" = String, Path, description = "Id of the provider."),
        ("state" = String, Query, description = "The `state` of the sign-in."),
        ("code" = Option<String>, Query, description = "The code to redeem."),
        ("iss" = Option<String>, Query, description = "The issuer."),
        ("error" = Option<String>, Query, description = "Why the provider refused, as a code."),
    ),
    responses(
        NamedErrors,
        (
            status = 303,
            description = "To `/signin/done` with the session's cookie, or to `/signin?problem=…`. If an identity was linked, to \
                           `/settings/signin`."
        ),
    )
)]
pub async fn callback(State(app): State<App>, parts: Parts, path: PathText) -> Result {
    let provider = sign_in::provider(&app, &path.parameter::<String>("providerId")?)?;
    rates::take(&app, Rate::SignIns, &ClientAddress::from_extensions(&parts.extensions)).await?;
    let presented = Attempt::presented(&app.keys, &parts.headers);
    let Some(attempt) = presented.filter(|attempt| attempt.provider == provider.settings.id) else {
        return Ok(to_problem("/signin", Failure::Expired));
    };
    let page = if attempt.session.is_some() { IDENTITIES } else { "/signin" };
    let person = match answer(&app, provider, &attempt, parts.uri.query().unwrap_or_default()).await {
        Ok(person) => person,
        Err(failure) => return Ok(refused(&app, &parts, page, failure).await),
    };
    let Some(session) = attempt.session else {
        return Ok(match sign_in::account::sign_in(&app, &provider.settings, &person, &parts).await? {
            Ok(begun) => to("/signin/done", vec![CLEAR, begun.cookie()]),
            Err(failure) => refused(&app, &parts, page, failure).await,
        });
    };
    // The cookie of the session is not sent with a redirect from another site, so the attempt names it.
    let credential = app.credentials.look_up(session, None).await?.filter(|(credential, _)| credential.valid);
    let Some((credential, _)) = credential else { return Ok(to_problem(page, Failure::Expired)) };
    let who = (&credential.account, session);
    Ok(match sign_in::account::link(&app, &provider.settings, &person, who, &parts).await? {
        Ok(()) => to(page, vec![CLEAR]),
        Err(failure) => refused(&app, &parts, page, failure).await,
    })
}

/// The answer to a sign-in that was refused, which the audit has.
async fn refused(app: &App, parts: &Parts, page: &str, failure: Failure) -> Response {
    let event = Event::SignInRefused { by: "provider", why: Some(failure.code()) };
    audit::refuse(app, audit::origin(parts), None, &event).await;
    to_problem(page, failure)
}

/// The person whom the provider's answer names, which the query of the callback holds.
async fn answer(
    app: &App,
    provider: &Provider,
    attempt: &Attempt,
    query: &str,
) -> Result<identity::person::Person, Failure> {
    let only = |name: &str| {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.into_owned());
        if values.next().is_some() { Err(Failure::Refused) } else { Ok(value) }
    };
    let state = only("state")?.unwrap_or_default();
    if !bool::from(state.as_bytes().ct_eq(attempt.state.as_bytes())) {
        return Err(Failure::Expired);
    }
    let failed = |error: SignInError| Failure::of_provider(provider, &error);
    provider.check_answer(only("iss")?.as_deref()).await.map_err(failed)?;
    if let Some(error) = only("error")? {
        return Err(Failure::of_code(&error));
    }
    let code = only("code")?.ok_or(Failure::Refused)?;
    provider.redeem(&attempt.with(&redirect_uri(app, provider)), &code).await.map_err(failed)
}

/// Link an identity
///
/// Returns where the browser goes to prove an identity, which then signs in to this account. It takes a sign-in within the last 15
/// minutes.
#[utoipa::path(
    post, path = "/oidc/{providerId}/link", operation_id = "linkIdentity", tag = "Single sign-on",
    params(("providerId" = String, Path, description = "Id of the provider.")),
    responses(WriteErrors, (status = 200, description = "Where to go on.", body = Continuation))
)]
pub async fn link(State(app): State<App>, person: Person, path: PathText) -> Result {
    let provider = sign_in::provider(&app, &path.parameter::<String>("providerId")?)?;
    let mut connection = app.connection().await?;
    require_recent(&mut connection, &person).await?;
    if db::identities::count(&mut connection, &person.account).await? >= IDENTITIES_MAX {
        return Err(Problem::conflict(format!("an account has at most {IDENTITIES_MAX} identities")));
    }
    drop(connection);
    let attempt = Attempt::begin(&provider.settings.id, Some(person.token));
    let url = provider.start(&attempt.with(&redirect_uri(&app, provider))).await.map_err(|error| {
        Failure::of_provider(provider, &error);
        Problem::Unavailable(error.into(), None)
    })?;
    let mut response = reply::ok(&Continuation { url: url.into() });
    response.headers_mut().insert(SET_COOKIE, attempt.cookie(&app.keys));
    Ok(response)
}

/// Rejects a person who signed in too long ago: a browser that was left open must not give away an account for good.
pub(super) async fn require_recent(conn: &mut db::PgConnection, person: &Person) -> Result<()> {
    match db::identities::is_recent(conn, person.token, SIGNIN_RECENT_MINUTES).await? {
        true => Ok(()),
        false => Err(Problem::Forbidden("sign in again: this takes a sign-in within the last 15 minutes".into())),
    }
}

/// End sessions of a provider
///
/// Back-channel logout (OpenID Connect). The provider sends a form with `logout_token`, which names a session of the provider or a
/// person, whose sessions here end. Tokens stay valid. It takes no credential but the token.
#[utoipa::path(
    post, path = "/oidc/{providerId}/logout", operation_id = "logOutFromProvider", tag = "Single sign-on", security(()),
    params(("providerId" = String, Path, description = "Id of the provider.")),
    responses(
        NamedErrors,
        (status = 200, description = "The sessions have ended, now or before."),
        (status = 400, description = "The token does not hold.", body = LogoutRefusal),
    )
)]
pub async fn logout(State(app): State<App>, path: PathText, request: Request) -> Result {
    let provider = sign_in::provider(&app, &path.parameter::<String>("providerId")?)?;
    if !is_form(request.headers()) {
        return Ok(invalid_request());
    }
    let (parts, body) = request.into_parts();
    let origin = audit::origin(&parts);
    let Ok(body) = JsonBody::from_request(Request::from_parts(parts, body), &()).await;
    let body = body.bytes(TOKEN_MAX).await?;
    let mut tokens = form_urlencoded::parse(&body).filter(|(name, _)| name == "logout_token").map(|(_, token)| token);
    let (Some(token), None) = (tokens.next(), tokens.next()) else { return Ok(invalid_request()) };
    let logout = match provider.logout(&token).await {
        Ok(logout) => logout,
        Err(error) => {
            Failure::of_provider(provider, &error);
            return Ok(invalid_request());
        }
    };
    let mut transaction = app.transaction().await?;
    let ended = db::identities::end_sessions(
        &mut transaction,
        &provider.settings.issuer,
        logout.subject.as_deref(),
        logout.session.as_deref(),
        logout.issued_at,
    )
    .await?;
    for session in &ended {
        let actor = Actor::provider(session.account.clone(), session.identity, origin.clone());
        let event = Event::SessionEnded { session: session.id };
        db::audit::write(&mut transaction, &actor, Some(&session.account), &event).await?;
    }
    db::pool::commit(transaction).await?;
    app.announce(ended.iter().map(|session| channel::access(&session.account)).collect());
    Ok(unkept(StatusCode::OK.into_response()))
}

/// Why a logout failed, in the form of OpenID Connect Back-Channel Logout 1.0, section 2.8.
#[derive(Serialize, ToSchema)]
struct LogoutRefusal {
    /// `invalid_request`.
    error: &'static str,
}

fn invalid_request() -> Response {
    let refusal = LogoutRefusal { error: "invalid_request" };
    unkept((StatusCode::BAD_REQUEST, axum::Json(refusal)).into_response())
}

fn unkept(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The one address that a provider sends browsers back to.
fn redirect_uri(app: &App, provider: &Provider) -> String {
    format!("{}/console/oidc/{}/callback", app.config.public_url, provider.settings.id)
}

/// The answer that sends a browser on, with cookies.
fn to(location: &str, cookies: Vec<HeaderValue>) -> Response {
    let location = HeaderValue::from_str(location).expect("URLs are visible ASCII");
    let mut response = unkept((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response());
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The answer that ends an attempt and tells why on a page.
fn to_problem(page: &str, failure: Failure) -> Response {
    to(&format!("{page}?problem={}", failure.code()), vec![CLEAR])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_sends_a_browser_to_a_path_and_ends_the_attempt() {
        let response = to_problem("/signin", Failure::EmailTaken);
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(response.headers()[LOCATION], "/signin?problem=email_taken");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        assert_eq!(response.headers()[SET_COOKIE], CLEAR);
    }
}
