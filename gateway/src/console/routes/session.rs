//! `/console/session`: sign in, who is signed in, sign out.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use db::accounts::Account;
use db::sessions::NewSession;
use domain::Timestamp;
use domain::account::{Scope, Scopes, TokenKind};
use domain::channel;
use domain::id::AccountUid;
use domain::limits::SIGN_IN_BODY_MAX;
use http::header::{HeaderName, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::address::ClientAddress;
use crate::console::credential;
use crate::console::person::SignedIn;
use crate::extract::caller::{Caller, parse_token};
use crate::extract::json::{Input, JsonBody, only};
use crate::openapi::errors::{CredentialErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

/// Longest name of a browser that is kept, in characters.
const CLIENT_MAX: usize = 200;

/// Kind of credential: `link` or `token`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The secret of a sign-in link: what follows `#` in its URL.
    #[schema(max_length = 200)]
    link: Option<String>,
    /// A bearer token. The session has its scopes alone and ends with it.
    #[schema(max_length = 200)]
    token: Option<String>,
    /// Tell whom a link signs in, without redeeming it.
    #[schema(schema_with = only::<true>)]
    preview: Option<bool>,
}

impl Input for SignIn {
    const LIMIT: usize = SIGN_IN_BODY_MAX;
}

/// Who is signed in.
#[derive(Serialize, ToSchema)]
pub struct SignedInAs {
    /// The session.
    session: SessionSummary,
    /// The account.
    account: PersonSummary,
}

/// Whom a link signs in.
#[derive(Serialize, ToSchema)]
pub struct LinkPreview {
    /// The account.
    account: PersonSummary,
}

/// A session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// Id of the session.
    id: Uuid,
    /// Rights of the session: those of the account (`full`) or those of its token (`narrow`).
    kind: SessionKind,
    /// Label under which activity of the session is recorded.
    label: String,
    /// Scopes of the session, in a fixed order.
    scopes: Vec<Scope>,
    /// When the session expires at the latest.
    expires_at: Timestamp,
}

/// Rights of a session.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// Everything that the account may do.
    Full,
    /// Those of the token that signed it in.
    Narrow,
}

impl SessionKind {
    /// The kind of a session.
    pub const fn from_narrow(is_narrow: bool) -> Self {
        if is_narrow { SessionKind::Narrow } else { SessionKind::Full }
    }
}

/// An account, for the person who owns it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonSummary {
    /// Uid of the account.
    pub(super) id: AccountUid,
    /// Email of the account.
    pub(super) email: String,
    /// Name under which others see the account.
    pub(super) display_name: String,
}

impl From<Account> for PersonSummary {
    fn from(account: Account) -> Self {
        Self { id: account.uid, email: account.email, display_name: account.display_name }
    }
}

/// Sign in
///
/// Starts a session and sets its cookie. A link works once. A token starts a narrow session, which has the token's scopes and
/// ends with it. The eleventh session of an account ends its oldest. With `preview` the response tells whom the link signs in,
/// and nothing is redeemed.
#[utoipa::path(
    post, path = "/session", operation_id = "signIn", tag = "Session", request_body = SignIn,
    security(()),
    responses(
        ScopeErrors,
        (status = 200, description = "With `preview`: whom the link signs in.", body = LinkPreview),
        (status = 201, description = "Signed in. `Set-Cookie` has the credential.", body = SignedInAs),
    )
)]
pub async fn sign_in(State(app): State<App>, parts: Parts, body: JsonBody) -> Result {
    credential::check_origin(&parts, &app.config.public_url)?;
    if !credential::keeps_cookies(&app.config.public_url) {
        let why = "browsers keep a session only over HTTPS or on a loopback address, and CANVAS_PUBLIC_URL is neither";
        return Err(Problem::Forbidden(why.into()));
    }
    let address = ClientAddress::from_extensions(&parts.extensions);
    rates::take(&app, Rate::SignIns, &address).await?;
    let wanted: SignIn = body.json().await?;
    let (presented, is_link) = match (&wanted.link, &wanted.token) {
        (Some(link), None) => (credential::parse(link), true),
        (None, Some(token)) if wanted.preview.is_none() => (parse_token(token), false),
        (None, Some(_)) => return Err(Problem::invalid("preview", "is for links")),
        (Some(_), Some(_)) => return Err(Problem::invalid("token", "must be absent when `link` is given")),
        (None, None) => return Err(Problem::invalid("link", "`link` or `token` is required")),
    };
    let lookup = async {
        match presented {
            None => Ok(None),
            Some((id, secret)) if !is_link => by_token(&app, &parts.headers, id, secret).await,
            Some((id, secret)) if wanted.preview.is_some() => preview(&app, id, secret).await,
            Some((id, secret)) => by_link(&app, &parts.headers, id, secret).await,
        }
    };
    app.failures.judge(address, presented.map(|(id, _)| id), lookup).await
}

async fn preview(app: &App, id: Uuid, secret: &str) -> Result<Option<Response>> {
    let mut connection = app.connection().await?;
    let Some(account) = valid_link(app, &mut connection, id, secret).await? else { return Ok(None) };
    let account = db::accounts::find(&mut connection, account.as_str()).await?;
    Ok(account.map(|account| reply::ok(&LinkPreview { account: account.into() })))
}

/// The account of a link that can be redeemed. The secret is compared first, so that the state of a link is disclosed only to a
/// holder of its secret.
async fn valid_link(app: &App, conn: &mut db::PgConnection, id: Uuid, secret: &str) -> Result<Option<AccountUid>> {
    let found = db::sessions::find_link(conn, id).await?;
    let valid = found.filter(|link| app.keys.verify_token(secret, &link.secret_hash) && link.valid);
    Ok(valid.map(|link| link.account))
}

async fn by_link(app: &App, headers: &HeaderMap, id: Uuid, secret: &str) -> Result<Option<Response>> {
    let mut transaction = app.transaction().await?;
    let Some(account) = valid_link(app, &mut transaction, id, secret).await? else { return Ok(None) };
    let Some(account) = db::accounts::find(&mut transaction, account.as_str()).await? else { return Ok(None) };
    // In the transaction that creates the session: a link is used up only with a session.
    if !db::sessions::redeem_link(&mut transaction, id).await? {
        return Ok(None);
    }
    let label = account.display_name.clone();
    let person = PersonSummary::from(account);
    start(app, transaction, headers, person, &label, Scopes::from_slice(Scope::ALL), None).await.map(Some)
}

async fn by_token(app: &App, headers: &HeaderMap, id: Uuid, secret: &str) -> Result<Option<Response>> {
    let found = app.credentials.look_up(id, None).await?.filter(|(credential, _)| {
        app.keys.verify_token(secret, &credential.secret_hash)
            && credential.valid
            && credential.kind == TokenKind::Agent
    });
    let Some((token, _)) = found else { return Ok(None) };
    let person = PersonSummary { id: token.account, email: token.email, display_name: token.display_name };
    start(app, app.transaction().await?, headers, person, &token.label, token.scopes, Some(token.token)).await.map(Some)
}

async fn start(
    app: &App,
    mut transaction: db::Transaction,
    headers: &HeaderMap,
    account: PersonSummary,
    label: &str,
    scopes: Scopes,
    parent: Option<Uuid>,
) -> Result {
    let (id, secret) = (Uuid::now_v7(), service::random::token_secret());
    let client = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
    let client: Option<String> = client.map(|agent| agent.chars().take(CLIENT_MAX).collect());
    let session = NewSession {
        id,
        account: &account.id,
        label,
        scopes,
        secret_hash: &app.keys.token_hash(&secret),
        parent,
        client: client.as_deref(),
    };
    let expires_at = db::sessions::create(&mut transaction, &session).await?;
    db::pool::commit(transaction).await?;
    // The oldest session may have ended.
    app.announce(vec![channel::access(&account.id)]);
    let session = SessionSummary {
        id,
        kind: SessionKind::from_narrow(parent.is_some()),
        label: label.to_owned(),
        scopes: scopes.iter().collect(),
        expires_at,
    };
    let mut response = reply::with_status(StatusCode::CREATED, &SignedInAs { session, account });
    response.headers_mut().insert(SET_COOKIE, credential::set(id, &secret));
    Ok(response)
}

/// Read the session
///
/// Returns who is signed in.
#[utoipa::path(
    get, path = "/session", operation_id = "getSession", tag = "Session",
    responses(CredentialErrors, (status = 200, description = "The session.", body = SignedInAs))
)]
pub async fn read(SignedIn(Caller { credential, .. }): SignedIn) -> Result {
    let session = SessionSummary {
        id: credential.token,
        kind: SessionKind::from_narrow(credential.is_narrow),
        label: credential.label,
        scopes: credential.scopes.iter().collect(),
        // A session always expires.
        expires_at: credential.expires_at.ok_or_else(|| Problem::internal("a session without an expiry"))?,
    };
    let account =
        PersonSummary { id: credential.account, email: credential.email, display_name: credential.display_name };
    Ok(reply::ok(&SignedInAs { session, account }))
}

/// Sign out
///
/// Ends the session and deletes its cookie and what the browser stored. Work that the session started goes on.
#[utoipa::path(
    delete, path = "/session", operation_id = "signOut", tag = "Session",
    responses(ScopeErrors, (status = 204, description = "Signed out."))
)]
pub async fn sign_out(State(app): State<App>, SignedIn(credential): SignedIn) -> Result {
    db::sessions::end(&mut *app.connection().await?, &credential.account, credential.token).await?;
    app.announce(vec![channel::access(&credential.account)]);
    Ok(signed_out())
}

/// The response that also makes the browser forget the session.
pub(super) fn signed_out() -> Response {
    const STORED: HeaderName = HeaderName::from_static("clear-site-data");
    let forget = [(SET_COOKIE, credential::CLEAR), (STORED, HeaderValue::from_static("\"cache\", \"storage\""))];
    reply::private((StatusCode::NO_CONTENT, forget).into_response())
}
