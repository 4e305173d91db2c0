//! The caller of a request: credential (401), rate limit (429), and the scopes that the route requires (403). For the order of
//! checks see docs/reference/conventions.md#order-of-checks.

use std::marker::PhantomData;
use std::sync::PoisonError;

use axum::extract::FromRequestParts;
use db::accounts::{Authenticated, Credential};
use domain::account::{Scope, Scopes, TokenKind};
use domain::canvas::{AccessRole, CanvasRecord};
use domain::id::CanvasRef;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use service::keys::AppSecret;
use service::shares::{Key, Shares};
use uuid::Uuid;

use super::accept::Accepted;
use super::names::{self, Names};
use crate::address::ClientAddress;
use crate::admission::{InProgress, account_key, admitted};
use crate::console::{self, credential};
use crate::oauth;
use crate::problem::{Problem, Result};
use crate::rates::{self, Charges, IMPORT_WEIGHT, ORDINARY, Rate};
use crate::state::App;

/// Who holds what a request needs, once its credential holds; in the extensions of the request.
#[derive(Clone)]
pub struct Principal {
    /// The account of the request.
    pub key: Key,
    /// The share of work on its body.
    pub large_work: Shares,
    /// What such work is charged to.
    pub charges: Charges,
}

/// The scopes that a route requires.
pub trait Grant: Send + Sync + 'static {
    /// All of these scopes.
    const ALL: Scopes = Scopes::from_slice(&[]);
    /// At least one of these scopes, unless empty.
    const ANY: Scopes = Scopes::from_slice(&[]);
    /// The rates that a request takes from.
    const RATES: &'static [Rate] = ORDINARY;
    /// What a request takes of them.
    fn weight(_: &Parts) -> u32 {
        1
    }
}

macro_rules! grants {
    ($($(#[$doc:meta])* $name:ident { $($kind:ident = [$($scope:ident),+]),* } $(=> $weight:ident)?)+) => {$(
        $(#[$doc])*
        pub struct $name;
        impl Grant for $name {
            $(const $kind: Scopes = Scopes::from_slice(&[$(Scope::$scope),+]);)*
            $(fn weight(_: &Parts) -> u32 {
                $weight
            })?
        }
    )+};
}

grants! {
    /// Requires any valid token.
    AnyToken {}
    /// Requires canvas:read.
    ReadCanvas { ALL = [CanvasRead] }
    /// Requires canvas:read and canvas:write.
    WriteCanvas { ALL = [CanvasRead, CanvasWrite] }
    /// Requires asset:read.
    ReadAsset { ALL = [AssetRead] }
    /// Requires asset:read and one of the two generate scopes.
    UploadAsset { ALL = [AssetRead], ANY = [ImageGenerate, VideoGenerate] }
    /// Requires the scopes of an Action run.
    RunAction { ALL = [CanvasRead, CanvasWrite, AssetRead] }
    /// Requires the scopes of video generation.
    GenerateVideo { ALL = [CanvasRead, AssetRead, VideoGenerate] }
    /// Requires one of the two generate scopes.
    Generate { ANY = [ImageGenerate, VideoGenerate] }
    /// Requires the scopes of image generation.
    GenerateImages { ALL = [CanvasRead, CanvasWrite, AssetRead, ImageGenerate] }
    /// Requires the scopes of a product import.
    ImportProduct { ALL = [CanvasRead, CanvasWrite, AssetRead] } => IMPORT_WEIGHT
    /// Requires the scopes of an image import.
    ImportImage { ALL = [CanvasRead, CanvasWrite, AssetRead, ImageGenerate] } => IMPORT_WEIGHT
    /// Requires element:read.
    ReadElements { ALL = [ElementRead] }
    /// Requires element:write.
    WriteElements { ALL = [ElementWrite] }
    /// Requires the scopes of planning a legacy campaign.
    PlanCampaigns { ALL = [CanvasRead, CanvasWrite, AssetRead] }
    /// Requires the scopes of every other operation on legacy campaigns.
    ManageCampaigns { ALL = [CanvasRead, CanvasWrite, AssetRead, ImageGenerate, JobManage] }
    /// Requires job:manage.
    ManageJobs { ALL = [JobManage] }
}

/// Requires canvas:read, and takes from the rate of pointers alone: who moves a pointer has all requests left.
pub struct Point;

impl Grant for Point {
    const ALL: Scopes = ReadCanvas::ALL;
    const RATES: &'static [Rate] = &[Rate::Pointers];
}

/// The caller of a route that requires `G`.
pub struct Caller<G> {
    /// The token, its session and its account.
    pub credential: Credential,
    /// `true` if the client rejects JSON, in which the result of every write is served.
    rejects_json: bool,
    /// The request's place among those in progress.
    pub place: InProgress,
    grant: PhantomData<G>,
}

impl<G> std::ops::Deref for Caller<G> {
    type Target = Credential;
    fn deref(&self) -> &Credential {
        &self.credential
    }
}

impl<G: Grant> Caller<G> {
    /// The caller of a request whose credential is a capability link: the token that made it, whose rates and places are taken.
    ///
    /// # Errors
    ///
    /// 403 without the scopes of the route, 429 over a rate, 503 without a place.
    pub async fn from_link(app: &App, charges: &Charges, credential: Credential) -> Result<Self> {
        rates::admit(app, charges, &credential, G::RATES, 1).await?;
        require(credential.scopes, G::ALL, G::ANY)?;
        let place = InProgress::new(admitted(&app.requests, &account_key(&credential.account), 1).await?);
        Ok(Self { credential, rejects_json: false, place, grant: PhantomData })
    }
}

impl<G> Caller<G> {
    /// Rejects a caller without `scopes`, for scopes that depend on the body.
    pub fn require(&self, scopes: &[Scope]) -> Result<()> {
        require(self.credential.scopes, Scopes::from_slice(scopes), Scopes::from_slice(&[]))
    }

    /// Rejects a write whose result the client rejects. It follows the check of what the write addresses.
    pub fn require_acceptable(&self) -> Result<()> {
        match self.rejects_json {
            false => Ok(()),
            true => Err(Problem::NotAcceptable("application/json".into())),
        }
    }

    /// Runs a command to its end, and announces what it changed. A client that rejects the result gets none but that of an earlier,
    /// equal request.
    pub async fn run<C: app::Command>(&self, app: &App, command: &C) -> Result<C::Reply> {
        self.run_if(Ok(()), app, command).await
    }

    /// The same for a command that `admitted` may refuse: an earlier, equal request is answered all the same.
    pub async fn run_if<C: app::Command>(&self, admitted: Result<()>, app: &App, command: &C) -> Result<C::Reply> {
        match self.require_acceptable().and(admitted) {
            Ok(()) => Ok(app::run(&app.pool, command, |channels| app.announce(channels)).await?),
            Err(problem) => app::replay(&app.pool, command).await?.ok_or(problem),
        }
    }
}

/// Rejects a caller that was granted too little: it needs all of `all`, and one of `any`, unless that is empty.
pub fn require(granted: Scopes, all: Scopes, any: Scopes) -> Result<()> {
    let names = |scopes: Scopes| scopes.iter().map(Scope::as_str).collect::<Vec<_>>();
    let mut missing = names(granted.missing(all));
    let mut needed = all;
    let alternatives = format!("one of {}", names(any).join(", "));
    if !any.is_empty() && granted.missing(any) == any {
        missing.push(&alternatives);
        needed = needed.iter().chain(any.iter().take(1)).collect();
    }
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let message = format!("the token lacks {}", missing.join(", "));
            Err(Problem::ScopesMissing(message, needed.with_dependencies()))
        }
    }
}

impl<G: Grant> FromRequestParts<App> for Caller<G> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        Ok(admit(parts, app, None).await?.0)
    }
}

/// The first three checks of a request; in the console, its origin comes before them. The canvas of the path, if there is one,
/// comes out of the same statement.
pub(super) async fn admit<G: Grant>(
    parts: &mut Parts,
    app: &App,
    canvas: Option<&CanvasRef>,
) -> Result<(Caller<G>, Option<(CanvasRecord, AccessRole)>)> {
    if console::contains(parts) {
        credential::check_origin(parts, &app.config.public_url)?;
    }
    let (charges, weight) = (parts.extensions.get::<Charges>().cloned().unwrap_or_default(), G::weight(parts));
    if let Some(refused) = recall_refusal(parts, app, &charges, G::RATES, weight) {
        return Err(refused);
    }
    let is_slug = |canvas: &&CanvasRef| canvas.slug().is_some();
    let (credential, found) = authenticate(parts, app, canvas.filter(|canvas| !is_slug(canvas))).await?;
    let key = account_key(&credential.account);
    parts.extensions.insert(Principal {
        key: key.clone(),
        large_work: app.large_work.clone(),
        charges: charges.clone(),
    });
    // Before the rate limit, which is that of the session: it pays for no page of another account.
    if console::contains(parts) && credential::names_another(&parts.headers, &credential.account) {
        return Err(Problem::OtherAccount);
    }
    record_caller(&credential);
    rates::admit(app, &charges, &credential, G::RATES, weight).await?;
    require(credential.scopes, G::ALL, G::ANY)?;
    let found = match canvas.filter(is_slug) {
        Some(slug) => {
            let conn = &mut *app.connection().await?;
            let handle = names::resolve(conn, slug.clone(), &credential.account).await?;
            db::canvases::find(conn, &credential.account, &handle).await?
        }
        None => found,
    };
    let found = with_refs(app, found).await?;
    let (account, canvas_key) = (credential.account.clone(), found.as_ref().map(|(canvas, _)| canvas.key));
    parts.extensions.insert(Names { app: app.clone(), account, canvas_key });
    let place = match parts.extensions.get::<InProgress>().filter(|place| place.is_held()) {
        // A request that a tool sends is a part of that to `/mcp`, until that has waited for something.
        Some(place) => place.clone(),
        None => InProgress::new(admitted(&app.requests, &key, 1).await?),
    };
    parts.extensions.insert(place.clone());
    if credential.use_unrecorded {
        record_use(app, credential.token);
    }
    // The response to a read is checked against `Accept` once its type is known.
    let rejects_json = !parts.method.is_safe() && Accepted::from_headers(&parts.headers).rejects("application", "json");
    let caller = Caller { credential, rejects_json, place, grant: PhantomData };
    if console::contains(parts) {
        caller.require_acceptable()?;
    }
    Ok((caller, found))
}

/// The canvas of a path, whose nodes and connections have refs.
async fn with_refs(app: &App, found: Option<(CanvasRecord, AccessRole)>) -> Result<Option<(CanvasRecord, AccessRole)>> {
    let Some((mut canvas, role)) = found else { return Ok(None) };
    if canvas.lacks_refs() {
        db::canvases::ensure_refs(&mut *app.connection().await?, &mut canvas).await?;
    }
    Ok(Some((canvas, role)))
}

/// A request without a credential is not counted as a failure.
async fn authenticate(parts: &Parts, app: &App, canvas: Option<&CanvasRef>) -> Result<Authenticated> {
    let is_presented = match console::contains(parts) {
        true => credential::is_presented(&parts.headers),
        false => parts.headers.contains_key(AUTHORIZATION),
    };
    if !is_presented {
        return Err(Problem::Unauthorized);
    }
    let presented = presented(parts);
    let lookup = async {
        let Some((token, secret)) = presented else { return Ok(None) };
        let found = app.credentials.look_up(token, canvas).await?;
        Ok(found.filter(|(credential, _)| holds(parts, app, credential, secret)))
    };
    let address = ClientAddress::from_extensions(&parts.extensions);
    app.failures.judge(address, presented.map(|(token, _)| token), lookup).await
}

/// The credential that a request presents.
fn presented(parts: &Parts) -> Option<(Uuid, &str)> {
    if console::contains(parts) { credential::presented(&parts.headers) } else { bearer(&parts.headers) }
}

/// Returns `true` if a credential that was looked up is valid, and `secret` its secret.
fn holds(parts: &Parts, app: &App, credential: &Credential, secret: &str) -> bool {
    // The secret is compared first, so that the state of a token is disclosed only to a holder of its secret.
    // A session is a credential in the console alone, and nothing else is one there.
    is_secret(app, credential, secret)
        && credential.valid
        && (credential.kind == TokenKind::Session) == console::contains(parts)
}

/// Returns `true` if `secret` is that of a credential.
fn is_secret(app: &App, credential: &Credential, secret: &str) -> bool {
    match credential.kind {
        TokenKind::Agent | TokenKind::Session => app.keys.verify_token(secret, &credential.secret_hash),
        TokenKind::Oauth => {
            let mut hashes = std::iter::once(&credential.secret_hash).chain(&credential.previous_hash);
            oauth::is_on(&app.config) && hashes.any(|hash| app.keys.app().verify(AppSecret::Access, secret, hash))
        }
    }
}

/// The refusal of an earlier request with the same credential that the client is still to wait for.
fn recall_refusal(parts: &Parts, app: &App, charges: &Charges, rates: &[Rate], weight: u32) -> Option<Problem> {
    let (token, secret) = presented(parts)?;
    app.refusals.recall(charges, token, rates, weight, |credential| {
        let other_page = console::contains(parts) && credential::names_another(&parts.headers, &credential.account);
        let is_same = !other_page && holds(parts, app, credential, secret);
        if is_same {
            record_caller(credential);
        }
        is_same
    })
}

/// Names the caller in the log line of the request.
pub fn record_caller(credential: &Credential) {
    let span = tracing::Span::current();
    span.record("token_id", tracing::field::display(credential.token));
    span.record("account", credential.account.as_str());
}

/// The bearer token of a request. `None` also when it has several.
fn bearer(headers: &HeaderMap) -> Option<(Uuid, &str)> {
    let mut headers = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (headers.next(), headers.next()) else { return None };
    parse_bearer(header.to_str().ok()?)
}

/// `Bearer cba_<token-id>.<secret>`: a UUID, a dot, 43 characters of base64url (docs/reference/authentication.md#bearer-tokens).
fn parse_bearer(header: &str) -> Option<(Uuid, &str)> {
    let (scheme, token) = header.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { parse_token(token.trim_start_matches(' ')) } else { None }
}

/// `cba_<token-id>.<secret>`.
pub fn parse_token(token: &str) -> Option<(Uuid, &str)> {
    credential::parse(token.strip_prefix("cba_")?)
}

/// Records the use of a token in the background, one write per token at a time. If a write is lost, `lastUsedAt` is a minute old.
fn record_use(app: &App, token: Uuid) {
    let begin = app.recording.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
    if !begin {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        let recorded = async {
            let mut connection = app.connection().await?;
            Ok::<_, Problem>(db::tokens::record_use(&mut connection, token).await?)
        };
        if recorded.await.is_err() {
            tracing::debug!(token_id = %token, "use of a token was not recorded");
        }
        app.recording.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c5a0-0000-7000-8000-000000000001";

    #[test]
    fn a_bearer_token_has_exactly_one_form() {
        let secret = "s".repeat(43);
        let good = format!("Bearer cba_{ID}.{secret}");
        assert_eq!(parse_bearer(&good), Some((Uuid::try_parse(ID).expect("valid"), secret.as_str())));
        assert!(parse_bearer(&good.replace("Bearer", "bearer")).is_some());
        for wrong in [
            format!("Basic cba_{ID}.{secret}"),
            format!("cba_{ID}.{secret}"),
            format!("Bearer {ID}.{secret}"),
            format!("Bearer cba_{ID}{secret}"),
            format!("Bearer cba_{ID}.{secret}x"),
            format!("Bearer cba_{ID}.{}", "s".repeat(42)),
            format!("Bearer cba_{ID}.{}=", "s".repeat(42)),
            format!("Bearer cba_{}.{secret}", ID.replace('-', "")),
        ] {
            assert_eq!(parse_bearer(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn missing_scopes_are_named() {
        let granted = Scopes::from_slice(&[Scope::CanvasRead, Scope::AssetRead]);
        assert!(require(granted, ReadCanvas::ALL, ReadCanvas::ANY).is_ok());
        let refused = |all, any| match require(granted, all, any) {
            Err(Problem::ScopesMissing(message, needed)) => {
                (message, needed.iter().map(Scope::as_str).collect::<Vec<_>>().join(" "))
            }
            other => panic!("{other:?}"),
        };
        let (message, needed) = refused(WriteCanvas::ALL, WriteCanvas::ANY);
        assert_eq!((message.as_str(), needed.as_str()), ("the token lacks canvas:write", "canvas:read canvas:write"));
        let (message, needed) = refused(UploadAsset::ALL, UploadAsset::ANY);
        assert_eq!(message, "the token lacks one of image:generate, video:generate");
        assert_eq!(needed, "canvas:read canvas:write asset:read image:generate", "with what the first of them needs");
        let all = Scopes::from_slice(&[Scope::CanvasWrite, Scope::JobManage]);
        let message = "the token lacks canvas:write, job:manage, one of image:generate, video:generate";
        assert_eq!(refused(all, UploadAsset::ANY).0, message, "all at once");
    }
}
