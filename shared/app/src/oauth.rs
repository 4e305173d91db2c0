//! Apps: programs that a person authorized (docs/reference/oauth.md).
//!
//! **Guarantee.** A code is exchanged at most once. An app has one valid refresh token; who repeats the last refresh within a minute gets
//! its result again, and a refresh token that is older than that ends the app, because two programs have it.
//!
//! **Mechanism.** Exchange and refresh lock the grant, so that each sees what the one before did, in whichever gateway. The secrets
//! follow from the presented ones ([`service::keys::AppKeys`]).

use db::PgConnection;
use db::audit::{self, Actor, Event, Origin};
use db::oauth::{Client, Grant, Lifetimes, NewGrant, PairHashes};
use domain::account::{Scopes, Surface, TokenKind};
use domain::budget::Budget;
use domain::id::AccountUid;
use domain::limits::TOKEN_LABEL_MAX;
use service::keys::{AppKeys, AppSecret, code_challenge};
use uuid::Uuid;

use crate::Result;

/// What a person allowed.
pub struct Allowed<'a> {
    /// The person's account.
    pub account: &'a AccountUid,
    /// The client.
    pub client: &'a Client,
    /// The scopes.
    pub scopes: Scopes,
    /// Kind of client, for activity.
    pub surface: Surface,
    /// What the app may spend.
    pub budgets: &'a [Budget],
    /// Days until the app ends; `None`: it does not end by itself.
    pub expires_days: Option<u32>,
}

/// How the code of a request is bound to its client.
pub struct Binding<'a> {
    /// Where the code is sent.
    pub redirect_uri: &'a str,
    /// The S256 challenge of the request.
    pub challenge: &'a str,
}

/// Grants what a person allowed. Returns the code, which is not stored.
///
/// # Errors
///
/// The rules of budgets.
pub async fn allow(
    conn: &mut PgConnection,
    actor: &Actor,
    keys: &AppKeys,
    allowed: &Allowed<'_>,
    binding: &Binding<'_>,
) -> Result<String> {
    let (id, secret) = (Uuid::now_v7(), service::random::token_secret());
    grant(conn, actor, allowed, (id, &keys.hash(AppSecret::Code, &secret)), Some(binding)).await?;
    Ok(format!("cbc_{id}.{secret}"))
}

/// Grants what a person allowed to who has the code with this hash; without a binding, it is a device code.
pub(crate) async fn grant(
    conn: &mut PgConnection,
    actor: &Actor,
    allowed: &Allowed<'_>,
    (id, code_hash): (Uuid, &[u8]),
    binding: Option<&Binding<'_>>,
) -> Result<()> {
    crate::budget::check(allowed.budgets)?;
    let grant = NewGrant {
        id,
        account: allowed.account,
        client: allowed.client,
        redirect_uri: binding.map(|binding| binding.redirect_uri),
        scopes: allowed.scopes,
        surface: allowed.surface,
        challenge: binding.map(|binding| binding.challenge),
        code_hash,
        expires_days: allowed.expires_days,
    };
    db::oauth::create(conn, &grant).await?;
    db::budgets::set(conn, allowed.account, Some(id), allowed.budgets).await?;
    let event = Event::AppAllowed {
        app: id,
        scopes: allowed.scopes.iter().collect(),
        surface: allowed.surface,
        budgets: allowed.budgets.to_vec(),
        expires_days: allowed.expires_days,
    };
    audit::write(conn, actor, Some(allowed.account), &event).await?;
    Ok(())
}

/// A pair of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The access token, `cba_<id>.<secret>`.
    pub access: String,
    /// The refresh token, `cbr_<id>.<secret>`.
    pub refresh: String,
    /// Seconds that the access token is valid.
    pub expires_in: i64,
    /// Scopes of both.
    pub scopes: Scopes,
}

/// The outcome of an exchange or a refresh. Each must be committed: a refusal may have ended a code or an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tokens, and the account if another app of it has ended for this one.
    Pair(Pair, Option<AccountUid>),
    /// What was presented grants nothing.
    Refused,
    /// What was presented grants nothing, and ended the app of this account.
    Ended(AccountUid),
}

/// A secret that was presented: the grant that it names, and the secret itself.
pub type Presented<'a> = (Uuid, &'a str);

/// What a client presents with a code.
pub struct Exchange<'a> {
    /// The code.
    pub code: Presented<'a>,
    /// The client.
    pub client_id: &'a str,
    /// That the code was sent to it.
    pub proof: Proof<'a>,
}

/// What proves that a code was sent to who presents it.
pub enum Proof<'a> {
    /// An authorization code went through a browser.
    Redirect {
        /// Where it was sent.
        redirect_uri: &'a str,
        /// The PKCE verifier.
        verifier: &'a str,
    },
    /// A device code was given to the client itself.
    Device,
}

impl Proof<'_> {
    fn secret(&self) -> AppSecret {
        match self {
            Self::Redirect { .. } => AppSecret::Code,
            Self::Device => AppSecret::Device,
        }
    }

    fn holds(&self, grant: &Grant) -> bool {
        match self {
            Self::Redirect { redirect_uri, verifier } => {
                grant.redirect_uri.as_deref() == Some(*redirect_uri)
                    && grant.challenge.as_ref() == Some(&code_challenge(verifier))
            }
            Self::Device => true,
        }
    }
}

/// Exchanges a code for the first pair of tokens. A code that was presented before, or with a wrong client, address or verifier, is good for
/// nothing any more, and its app ends.
///
/// # Errors
///
/// Failures of the database.
pub async fn exchange(
    conn: &mut PgConnection,
    keys: &AppKeys,
    (lifetimes, origin): (Lifetimes, &Origin),
    exchange: &Exchange<'_>,
) -> Result<Outcome> {
    let (id, secret) = exchange.code;
    let Some(grant) = db::oauth::lock_grant(conn, id).await? else { return Ok(Outcome::Refused) };
    if !keys.verify(exchange.proof.secret(), secret, &grant.code_hash) {
        return Ok(Outcome::Refused);
    }
    if grant.code_was_used {
        return end(conn, origin, &grant, &Event::AppCodeReused { app: id }).await;
    }
    let is_of_client = grant.client.id == exchange.client_id && exchange.proof.holds(&grant);
    if !is_of_client || !grant.code_is_fresh {
        db::oauth::use_code(conn, id).await?;
        return Ok(Outcome::Refused);
    }
    let (access, refresh) = keys.pair(id.as_bytes(), 1, secret);
    let hashes = (keys.hash(AppSecret::Access, &access), keys.hash(AppSecret::Refresh, &refresh));
    let hashes = PairHashes { access: &hashes.0, refresh: &hashes.1 };
    match db::oauth::create_app(conn, &grant, &label(&grant.client), hashes, lifetimes).await? {
        None => Ok(Outcome::Refused),
        Some(made) => {
            let actor = Actor::app(grant.account.clone(), id, origin.clone());
            for app in &made.ended {
                audit::write(conn, &actor, Some(&grant.account), &Event::AppRevoked { app: *app }).await?;
            }
            let account = (!made.ended.is_empty()).then(|| grant.account.clone());
            Ok(Outcome::Pair(pair(&grant, &access, &refresh, made.seconds), account))
        }
    }
}

/// The label of activity of a client: its name, and the host that vouches for it.
pub fn label(client: &Client) -> String {
    let label = match &client.host {
        Some(host) => format!("{} ({host})", client.name),
        None => client.name.clone(),
    };
    label.chars().take(TOKEN_LABEL_MAX).collect()
}

fn pair(grant: &Grant, access: &str, refresh: &str, expires_in: i64) -> Pair {
    let id = grant.id;
    let (access, refresh) = (format!("cba_{id}.{access}"), format!("cbr_{id}.{refresh}"));
    Pair { access, refresh, expires_in, scopes: grant.scopes }
}

/// Ends the app of a grant.
async fn end(conn: &mut PgConnection, origin: &Origin, grant: &Grant, event: &Event) -> Result<Outcome> {
    let Some(ended) = db::tokens::revoke(conn, TokenKind::Oauth, grant.id, None).await? else {
        return Ok(Outcome::Refused);
    };
    if ended.is_new {
        let actor = Actor::app(ended.account.clone(), grant.id, origin.clone());
        audit::write(conn, &actor, Some(&ended.account), event).await?;
    }
    Ok(Outcome::Ended(ended.account))
}

/// Ends an app, of `account` if one is named, for good. Returns its account; `None` if there is no such app. Ending it again changes
/// nothing.
pub async fn end_app(
    conn: &mut PgConnection,
    actor: &Actor,
    app: Uuid,
    account: Option<&AccountUid>,
) -> Result<Option<AccountUid>> {
    let Some(ended) = db::tokens::revoke(conn, TokenKind::Oauth, app, account).await? else { return Ok(None) };
    if ended.is_new {
        audit::write(conn, actor, Some(&ended.account), &Event::AppRevoked { app }).await?;
    }
    Ok(Some(ended.account))
}

/// What a refresh token of a generation means for an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    /// It is the valid one.
    Current,
    /// It was replaced by the valid one just now: the client repeats.
    Replaced,
    /// It was replaced before: somebody else has used it or its successor.
    Old,
    /// It was not made yet: the database was restored from a backup.
    Later,
}

impl Age {
    fn of(presented: u32, current: u32, is_replayable: bool) -> Self {
        match current.checked_sub(presented) {
            Some(0) => Age::Current,
            Some(1) if is_replayable => Age::Replaced,
            Some(_) => Age::Old,
            None => Age::Later,
        }
    }
}

/// What a refresh names besides the token. Scopes change nothing; those that are not granted are refused before anything is replaced.
pub struct Named<'a> {
    /// The client.
    pub client_id: &'a str,
    /// Scopes.
    pub scopes: Scopes,
}

/// The outcome of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// The same as of an exchange.
    Outcome(Outcome),
    /// It names scopes that were not granted.
    ScopesNotGranted,
}

/// Replaces a pair of tokens.
///
/// # Errors
///
/// Failures of the database.
pub async fn refresh(
    conn: &mut PgConnection,
    keys: &AppKeys,
    (lifetimes, origin): (Lifetimes, &Origin),
    (id, secret): Presented<'_>,
    named: &Named<'_>,
) -> Result<Refresh> {
    const REFUSED: Refresh = Refresh::Outcome(Outcome::Refused);
    let Some(presented) = keys.generation(id.as_bytes(), secret) else { return Ok(REFUSED) };
    let Some(grant) = db::oauth::lock_grant(conn, id).await? else { return Ok(REFUSED) };
    let Some(remaining) = db::oauth::remaining(conn, id).await? else { return Ok(REFUSED) };
    if grant.client.id != named.client_id {
        return Ok(REFUSED);
    }
    let age = Age::of(presented, grant.generation, grant.is_replayable);
    if age == Age::Old {
        return end(conn, origin, &grant, &Event::AppRefreshReused { app: id }).await.map(Refresh::Outcome);
    }
    if !grant.scopes.missing(named.scopes).is_empty() {
        return Ok(Refresh::ScopesNotGranted);
    }
    let next = presented.saturating_add(1);
    let (access, refresh) = keys.pair(id.as_bytes(), next, secret);
    let is_hash_of =
        |secret: &str| grant.refresh_hash.as_deref().is_some_and(|hash| keys.verify(AppSecret::Refresh, secret, hash));
    let expires_in = match age {
        Age::Current if is_hash_of(secret) => {
            let hashes = (keys.hash(AppSecret::Access, &access), keys.hash(AppSecret::Refresh, &refresh));
            let hashes = PairHashes { access: &hashes.0, refresh: &hashes.1 };
            db::oauth::refresh(conn, id, next, hashes, lifetimes).await?
        }
        Age::Replaced if is_hash_of(&refresh) => remaining,
        _ => return Ok(REFUSED),
    };
    Ok(Refresh::Outcome(Outcome::Pair(pair(&grant, &access, &refresh, expires_in), None)))
}

/// A token by which a client ends its app.
#[derive(Clone, Copy)]
pub enum Revoked<'a> {
    /// An access token.
    Access(Presented<'a>),
    /// A refresh token, also one that was replaced.
    Refresh(Presented<'a>),
}

/// Ends the app that a token of `client_id` belongs to. Returns its account; `None` if the token is none of its tokens.
///
/// # Errors
///
/// Failures of the database.
pub async fn revoke(
    conn: &mut PgConnection,
    keys: &AppKeys,
    origin: &Origin,
    token: Revoked<'_>,
    client_id: &str,
) -> Result<Option<AccountUid>> {
    let (Revoked::Access((id, _)) | Revoked::Refresh((id, _))) = token;
    let Some(grant) = db::oauth::lock_grant(conn, id).await?.filter(|grant| grant.client.id == client_id) else {
        return Ok(None);
    };
    let holds = match token {
        Revoked::Refresh((_, secret)) => keys.generation(id.as_bytes(), secret).is_some(),
        Revoked::Access((_, secret)) => {
            let hashes = db::oauth::access_hashes(conn, id).await?;
            hashes.iter().any(|hash| keys.verify(AppSecret::Access, secret, hash))
        }
    };
    if !holds {
        return Ok(None);
    }
    end_app(conn, &Actor::app(grant.account.clone(), id, origin.clone()), id, None).await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use service::keys::{DerivedKeys, InstallationKey};

    use super::*;

    #[test]
    fn a_label_is_the_name_with_the_host_that_vouches_for_it() {
        let label = |name: &str, host: Option<&str>| {
            let (id, name, host) = (String::new(), name.to_owned(), host.map(str::to_owned));
            label(&Client { id, kind: domain::account::AppKind::Listed, name, host })
        };
        assert_eq!(label("App", None), "App");
        assert_eq!(label("App", Some("app.example")), "App (app.example)");
        assert_eq!(label(&"ü".repeat(90), None), "ü".repeat(80));
    }

    /// What the database holds of an app, and the rules of [`refresh`] on it.
    struct Model {
        keys: DerivedKeys,
        current: u32,
        hash: [u8; 32],
        refreshed_at: u32,
        has_ended: bool,
    }

    impl Model {
        const APP: [u8; 16] = [3; 16];

        fn new() -> (Self, String) {
            let keys = DerivedKeys::derive(&InstallationKey::from_bytes([1; 32]));
            let (_, first) = keys.app().pair(&Self::APP, 1, "code");
            let hash = keys.app().hash(AppSecret::Refresh, &first);
            (Self { keys, current: 1, hash, refreshed_at: 0, has_ended: false }, first)
        }

        fn present(&mut self, secret: &str, now: u32) -> Option<String> {
            let keys = self.keys.app();
            let presented = keys.generation(&Self::APP, secret)?;
            if self.has_ended {
                return None;
            }
            let (_, next) = keys.pair(&Self::APP, presented + 1, secret);
            match Age::of(presented, self.current, now - self.refreshed_at < 60) {
                Age::Current if keys.verify(AppSecret::Refresh, secret, &self.hash) => {
                    (self.current, self.refreshed_at) = (presented + 1, now);
                    self.hash = keys.hash(AppSecret::Refresh, &next);
                    Some(next)
                }
                Age::Replaced if keys.verify(AppSecret::Refresh, &next, &self.hash) => Some(next),
                Age::Old => {
                    self.has_ended = true;
                    None
                }
                _ => None,
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// The owner refreshes with what it last got, this many times at once.
        Refresh(usize),
        /// Seconds pass.
        Wait(u32),
        /// A thief presents the token that the owner had this many refreshes ago.
        Steal(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (1..20_usize).prop_map(Step::Refresh),
            2 => (0..200_u32).prop_map(Step::Wait),
            1 => (0..4_usize).prop_map(Step::Steal),
        ];
        proptest::collection::vec(step, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Whatever happens in whichever order: an owner who is alone is never signed out, refreshes at once give one pair, and as soon as
        /// both owner and thief have used a token, at most one of them holds a valid one: the app ends at the next refresh of the other.
        #[test]
        fn a_refresh_gives_one_pair_and_a_stolen_token_ends_the_app(steps in steps()) {
            let (mut model, first) = Model::new();
            let (mut had, mut now, mut thief): (Vec<String>, u32, Option<String>) = (vec![first], 0, None);
            for step in steps {
                match step {
                    Step::Wait(seconds) => now += seconds,
                    Step::Refresh(processes) => {
                        let presented = had.last().expect("the first").clone();
                        let got: Vec<_> = (0..processes).map(|_| model.present(&presented, now)).collect();
                        prop_assert!(got.iter().all(|pair| *pair == got[0]), "all get the same");
                        match got[0].clone() {
                            Some(next) => had.push(next),
                            None => prop_assert!(thief.is_some() && model.has_ended, "nobody is signed out without a thief"),
                        }
                    }
                    Step::Steal(ago) => {
                        let stolen = had[had.len().saturating_sub(ago + 1)].clone();
                        let got = model.present(&stolen, now);
                        thief = Some(stolen);
                        if ago >= 2 && had.len() > ago {
                            prop_assert!(got.is_none() && model.has_ended, "an old token ends the app");
                        }
                    }
                }
            }
        }
    }
}
