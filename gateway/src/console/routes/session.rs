//! `/console/session`: sign in, who is signed in, sign out.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use db::accounts::Account;
use db::audit::{Actor, Event};
use db::sessions::NewSession;
use domain::Timestamp;
use domain::account::{Role, Scope, Scopes, TokenKind};
use domain::channel;
use domain::id::AccountUid;
use domain::limits::SIGN_IN_BODY_MAX;
use http::header::{HeaderName, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::address::ClientAddress;
use crate::audit;
use crate::console::credential;
use crate::console::person::SignedIn;
use crate::extract::caller::{Caller, parse_token};
use crate::extract::json::{Input, JsonBody, only};
use crate::openapi::errors::{CredentialErrors, ScopeErrors};
use crate::problem::{Problem, Result};
use crate::rates::{self, Rate};
use crate::reply;
use crate::state::App;

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
#[serde_with::skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonSummary {
    /// Uid of the account.
    pub(super) id: AccountUid,
    /// Email of the account.
    pub(super) email: String,
    /// Name under which others see the account.
    pub(super) display_name: String,
    /// `admin` if it manages the installation; absent for everybody else, and in a preview.
    pub(super) role: Option<Role>,
}

/// The role of somebody who manages the installation.
pub(super) fn shown_role(role: Role) -> Option<Role> {
    Some(role).filter(|role| *role == Role::Admin)
}

impl From<Account> for PersonSummary {
    fn from(account: Account) -> Self {
        Self { id: account.uid, email: account.email, display_name: account.display_name, role: None }
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
    if !identity::settings::is_secure(&app.config.public_url) {
        let why = "browsers keep a session only over HTTPS or on a loopback address, and CANVAS_PUBLIC_URL is neither";
        return Err(Problem::Forbidden(why.into()));
    }
    let address = ClientAddress::from_extensions(&parts.extensions);
    rates::take(&app, Rate::SignIns, &address).await?;
    let wanted: SignIn = body.json().await?;
    let (presented, is_link) = match (&wanted.link, &wanted.token) {
        (Some(link), None) => (credential::parse(link), true),
        (None, Some(_)) if !app.config.signin_tokens => {
            let why = "the operator of this service allows no sign-in by a token (CANVAS_SIGNIN_TOKENS)";
            return Err(Problem::Forbidden(why.into()));
        }
        (None, Some(token)) if wanted.preview.is_none() => (parse_token(token), false),
        (None, Some(_)) => return Err(Problem::invalid("preview", "is for links")),
        (Some(_), Some(_)) => return Err(Problem::invalid("token", "must be absent when `link` is given")),
        (None, None) => return Err(Problem::invalid("link", "`link` or `token` is required")),
    };
    let lookup = async {
        match presented {
            None => Ok(None),
            Some((id, secret)) if !is_link => by_token(&app, &parts, id, secret).await,
            Some((id, secret)) if wanted.preview.is_some() => preview(&app, id, secret).await,
            Some((id, secret)) => by_link(&app, &parts, id, secret).await,
        }
    };
    let signed_in = app.failures.judge(address, presented.map(|(id, _)| id), lookup).await;
    if let Err(Problem::Unauthorized) = signed_in {
        let by = if is_link { "link" } else { "token" };
        audit::refuse(&app, audit::origin(&parts), None, &Event::SignInRefused { by, why: None }).await;
    }
    signed_in
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

async fn by_link(app: &App, parts: &Parts, id: Uuid, secret: &str) -> Result<Option<Response>> {
    let mut transaction = app.transaction().await?;
    let Some(account) = valid_link(app, &mut transaction, id, secret).await? else { return Ok(None) };
    let Some(account) = db::accounts::find(&mut transaction, account.as_str()).await? else { return Ok(None) };
    // In the transaction that creates the session: a link is used up only with a session.
    if !db::sessions::redeem_link(&mut transaction, id, &account.uid).await? {
        return Ok(None);
    }
    // The operator's link confirms the account as a sign-in with the most generous provider does.
    let days = app.providers.iter().map(|provider| provider.settings.confirm_days);
    if let Some(days) = days.max_by_key(|days| days.unwrap_or(u32::MAX)) {
        db::identities::confirm(&mut transaction, &account.uid, days).await?;
    }
    let label = account.display_name.clone();
    let role = shown_role(account.role);
    let person = PersonSummary { role, ..PersonSummary::from(account) };
    start(app, transaction, parts, person, &label, Scopes::from_slice(Scope::ALL), None).await.map(Some)
}

async fn by_token(app: &App, parts: &Parts, id: Uuid, secret: &str) -> Result<Option<Response>> {
    let found = app.credentials.look_up(id, None).await?.filter(|(credential, _)| {
        app.keys.verify_token(secret, &credential.secret_hash)
            && credential.valid
            && credential.kind == TokenKind::Agent
    });
    let Some((token, _)) = found else { return Ok(None) };
    let person = PersonSummary { id: token.account, email: token.email, display_name: token.display_name, role: None };
    start(app, app.transaction().await?, parts, person, &token.label, token.scopes, Some(token.token)).await.map(Some)
}

/// A session to begin.
pub struct Beginning<'a> {
    pub account: &'a AccountUid,
    pub label: &'a str,
    pub scopes: Scopes,
    /// The token that signs it in, if one does.
    pub parent: Option<Uuid>,
}

/// A session that was begun, with its secret.
pub struct Begun {
    pub id: Uuid,
    secret: String,
    expires_at: Timestamp,
}

impl Begun {
    /// The header that gives the browser its credential.
    pub fn cookie(&self) -> HeaderValue {
        credential::set(self.id, &self.secret)
    }
}

/// Begins a session of a browser, signed in to `by` which credential, in a transaction that the caller commits. The oldest session of the account may end, so the caller
/// also announces [`channel::access`].
pub async fn begin(
    app: &App,
    conn: &mut db::PgConnection,
    parts: &Parts,
    by: &'static str,
    Beginning { account, label, scopes, parent }: Beginning<'_>,
) -> Result<Begun> {
    let (id, secret) = (Uuid::now_v7(), service::random::token_secret());
    let client = audit::client(parts);
    let secret_hash = &app.keys.token_hash(&secret);
    let session = NewSession { id, account, label, scopes, secret_hash, parent, client: client.as_deref() };
    let actor = Actor::session(account.clone(), id, audit::origin(parts));
    let expires_at = app::session::start(conn, &actor, &session, by).await?;
    Ok(Begun { id, secret, expires_at })
}

async fn start(
    app: &App,
    mut transaction: db::Transaction,
    parts: &Parts,
    account: PersonSummary,
    label: &str,
    scopes: Scopes,
    parent: Option<Uuid>,
) -> Result {
    let beginning = Beginning { account: &account.id, label, scopes, parent };
    let by = if parent.is_none() { "link" } else { "token" };
    let begun = begin(app, &mut transaction, parts, by, beginning).await?;
    db::pool::commit(transaction).await?;
    app.announce(vec![channel::access(&account.id)]);
    let session = SessionSummary {
        id: begun.id,
        kind: SessionKind::from_narrow(parent.is_some()),
        label: label.to_owned(),
        scopes: scopes.iter().collect(),
        expires_at: begun.expires_at,
    };
    let cookie = begun.cookie();
    let mut response = reply::with_status(StatusCode::CREATED, &SignedInAs { session, account });
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// Read the session
///
/// Returns who is signed in.
#[utoipa::path(
    get, path = "/session", operation_id = "getSession", tag = "Session",
    responses(CredentialErrors, (status = 200, description = "The session.", body = SignedInAs))
)]
pub async fn read(SignedIn { caller: Caller { credential, .. }, .. }: SignedIn) -> Result {
    let session = SessionSummary {
        id: credential.token,
        kind: SessionKind::from_narrow(credential.is_narrow),
        label: credential.label,
        scopes: credential.scopes.iter().collect(),
        // A session always expires.
        expires_at: credential.expires_at.ok_or_else(|| Problem::internal("a session without an expiry"))?,
    };
    let role = shown_role(credential.role).filter(|_| !credential.is_narrow);
    let account =
        PersonSummary { id: credential.account, email: credential.email, display_name: credential.display_name, role };
    Ok(reply::ok(&SignedInAs { session, account }))
}

/// Sign out
///
/// Ends the session and deletes its cookie and what the browser stored. Work that the session started goes on.
#[utoipa::path(
    delete, path = "/session", operation_id = "signOut", tag = "Session",
    responses(ScopeErrors, (status = 204, description = "Signed out."))
)]
pub async fn sign_out(State(app): State<App>, SignedIn { caller: credential, actor }: SignedIn) -> Result {
    let mut transaction = app.transaction().await?;
    match app::session::end(&mut transaction, &actor, &credential.account, credential.token).await {
        // Another request has ended it.
        Ok(()) | Err(app::Error::NotFound(_)) => db::pool::commit(transaction).await?,
        Err(error) => return Err(error.into()),
    }
    app.announce(vec![channel::access(&credential.account)]);
    Ok(signed_out())
}

/// The response that also makes the browser forget the session.
pub(super) fn signed_out() -> Response {
    const STORED: HeaderName = HeaderName::from_static("clear-site-data");
    let forget = [(SET_COOKIE, credential::CLEAR), (STORED, HeaderValue::from_static("\"cache\", \"storage\""))];
    reply::private((StatusCode::NO_CONTENT, forget).into_response())
}
