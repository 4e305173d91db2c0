//! Authorization requests: the query of `/oauth/authorize` (RFC 6749, section 4.1; RFC 7636; RFC 8707; RFC 9207).

use domain::account::{Scope, Scopes};
use domain::limits::OAUTH_STATE_MAX;

use super::Resource;
use super::client::Client;
use super::form::Parameters;
use super::redirect;
use crate::problem::{Problem, Result};
use crate::state::App;

/// Scopes of OpenID Connect, which clients ask for by habit. Nothing here depends on them.
const DROPPED: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// A valid request.
pub struct AuthorizationRequest {
    /// Who asks.
    pub client: Client,
    /// Where the answer is sent.
    pub redirect_uri: String,
    /// What the client recognizes the answer by.
    pub state: Option<String>,
    /// What is asked for, with every scope that it needs.
    pub scopes: Scopes,
    /// Where the token will be used.
    pub resource: Resource,
    /// The S256 challenge.
    pub challenge: String,
}

/// A query that was read.
pub enum Query {
    /// A valid request.
    Request(Box<AuthorizationRequest>),
    /// An invalid one, of which the client is told at this address.
    Refused(String),
}

impl AuthorizationRequest {
    /// Reads a raw query.
    ///
    /// # Errors
    ///
    /// 400 if the client or its address is not known: then nothing may be sent to that address.
    pub async fn read(app: &App, query: &str) -> Result<Query> {
        let parameters = Parameters::parse(query.trim_start_matches('?').as_bytes());
        for name in ["client_id", "redirect_uri"] {
            if parameters.is_repeated(name) {
                return Err(Problem::invalid("query", format!("names {name} more than once")));
            }
        }
        let id = parameters.get("client_id").ok_or_else(|| Problem::invalid("query", "names no client_id"))?;
        let client = Client::find(app, id).await?;
        let client = client.ok_or_else(|| Problem::invalid("query", "names a client that is unknown here"))?;
        let redirect_uri =
            parameters.get("redirect_uri").ok_or_else(|| Problem::invalid("query", "names no redirect_uri"))?;
        if !client.has(redirect_uri) {
            return Err(Problem::invalid("query", "names a redirect_uri that is not one of the client"));
        }
        let redirect_uri = redirect_uri.to_owned();
        let state = parameters.get("state");
        match check(app, &parameters) {
            Ok((scopes, resource, challenge)) => {
                let state = state.map(str::to_owned);
                Ok(Query::Request(Box::new(Self { client, redirect_uri, state, scopes, resource, challenge })))
            }
            Err((error, description)) => {
                // A state that is too long is not repeated.
                let state = state.filter(|state| state.len() <= OAUTH_STATE_MAX);
                let told = [("error", error), ("error_description", description)];
                Ok(Query::Refused(answer(app, &redirect_uri, state, &told)))
            }
        }
    }

    /// The address that tells the client of a decision.
    pub fn answer(&self, app: &App, told: &[(&str, &str)]) -> String {
        answer(app, &self.redirect_uri, self.state.as_deref(), told)
    }
}

fn answer(app: &App, redirect_uri: &str, state: Option<&str>, told: &[(&str, &str)]) -> String {
    let own = state.map(|state| ("state", state)).into_iter().chain([("iss", app.config.public_url.as_str())]);
    redirect::with_parameters(redirect_uri, told.iter().copied().chain(own))
}

/// An error code of RFC 6749 or RFC 8707 with its description.
pub type Refusal = (&'static str, &'static str);

fn check(app: &App, parameters: &Parameters<'_>) -> Result<(Scopes, Resource, String), Refusal> {
    if parameters.repeated().is_some() {
        return Err(("invalid_request", "a parameter is repeated"));
    }
    if parameters.get("state").is_some_and(|state| state.len() > OAUTH_STATE_MAX) {
        return Err(("invalid_request", "state is too long"));
    }
    match parameters.get("response_type") {
        Some("code") => {}
        Some(_) => return Err(("unsupported_response_type", "response_type is code")),
        None => return Err(("invalid_request", "response_type is required")),
    }
    if !matches!(parameters.get("response_mode"), None | Some("query")) {
        return Err(("invalid_request", "response_mode is query"));
    }
    if parameters.get("code_challenge_method") != Some("S256") {
        return Err(("invalid_request", "code_challenge_method is S256"));
    }
    let challenge = parameters.get("code_challenge").unwrap_or_default();
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if challenge.len() != 43 || !challenge.bytes().all(is_base64url) {
        return Err(("invalid_request", "code_challenge is base64url of a SHA-256, 43 characters"));
    }
    let resource = match parameters.get("resource") {
        None => Resource::Service,
        Some(resource) => Resource::parse(resource, &app.config)
            .ok_or(("invalid_target", "resource is not an address of this service"))?,
    };
    Ok((requested_scopes(parameters)?, resource, challenge.to_owned()))
}

/// What a request asks for: all scopes if it names none.
pub fn requested_scopes(parameters: &Parameters<'_>) -> Result<Scopes, Refusal> {
    let scopes = parse_scopes(parameters.get("scope").unwrap_or_default());
    let scopes = scopes.map(|scopes| if scopes.is_empty() { Scopes::from_slice(Scope::ALL) } else { scopes });
    scopes
        .filter(|scopes| scopes.lacking_dependency().is_none())
        .ok_or(("invalid_scope", "scope names one that is unknown here, or one without what it needs"))
}

/// Space-separated scopes, without those of OpenID Connect; `None` if one is unknown.
pub fn parse_scopes(text: &str) -> Option<Scopes> {
    let named = text.split(' ').filter(|name| !name.is_empty() && !DROPPED.contains(name));
    named.map(|name| name.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_of_openid_connect_are_dropped_and_others_are_known() {
        let read = Scopes::from_slice(&[Scope::CanvasRead]);
        for (text, scopes) in [
            ("", Some(Scopes::default())),
            ("openid offline_access", Some(Scopes::default())),
            ("canvas:read", Some(read)),
            (" openid  canvas:read canvas:read", Some(read)),
            ("canvas:admin", None),
            ("canvas:read,canvas:write", None),
        ] {
            assert_eq!(parse_scopes(text), scopes, "{text}");
        }
    }
}
