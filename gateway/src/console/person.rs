//! The person who is signed in.

use std::ops::Deref;

use axum::extract::FromRequestParts;
use db::accounts::Credential;
use db::audit::Actor;
use http::request::Parts;

use crate::audit;
use crate::extract::caller::{AnyToken, Caller};
use crate::problem::{Problem, Result};
use crate::state::App;

/// The caller of a route of the console, however signed in.
pub struct SignedIn {
    pub caller: Caller<AnyToken>,
    /// The person in the audit.
    pub actor: Actor,
}

impl FromRequestParts<App> for SignedIn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let actor = Actor::session(caller.account.clone(), caller.token, audit::origin(parts));
        Ok(Self { caller, actor })
    }
}

/// The caller of a route that only a person may use: signed in by a link or a provider. A session that a token signed in is rejected, because
/// an agent's token must never create tokens or give access.
pub struct Person(SignedIn);

impl Person {
    /// The person in the audit.
    pub fn actor(&self) -> &Actor {
        &self.0.actor
    }
}

impl Deref for Person {
    type Target = Credential;
    fn deref(&self) -> &Credential {
        &self.0.caller
    }
}

impl FromRequestParts<App> for Person {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let signed_in = SignedIn::from_request_parts(parts, app).await?;
        if signed_in.caller.is_narrow {
            let why = "this session was signed in by a token and may use the canvases alone; sign in without a token";
            return Err(Problem::Forbidden(why.into()));
        }
        Ok(Self(signed_in))
    }
}
