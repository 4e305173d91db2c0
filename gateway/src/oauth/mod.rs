//! The service as an OAuth 2.1 authorization server, for programs that people authorize (docs/reference/oauth.md).
//!
//! **Guarantee.** No request without a person's session makes a request of its own or stores anything, but for device codes, of which at most
//! 1000 wait. The server redirects to no address:
//! the page of the application does, to an address that belongs to the client ([`request`]).
//!
//! **Mechanism.** Routes of clients are here, and answer in the forms of their RFCs. What a person does are routes of the console
//! (`crate::console`), with its session and its checks. An app is a row of `tokens`, so that its access token is a credential as any other.

pub mod challenge;
pub mod client;
mod device;
mod error;
mod form;
mod metadata;
pub mod redirect;
mod register;
pub mod request;
mod revoke;
mod token;

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use domain::API_ROOT;
use domain::account::{AppKind, Surface};
use http::Method;
use http::request::Parts;
use service::config::{Config, OauthMode};
use tower_http::cors::{Any, CorsLayer};

use crate::console;
use crate::state::App;

/// Where browsers may keep the answer to a preflight.
const PREFLIGHT: Duration = Duration::from_secs(3600);

/// Returns `true` if people may authorize programs: the operator allows it, and browsers keep a person's session.
pub fn is_on(config: &Config) -> bool {
    config.oauth != OauthMode::Off && identity::settings::is_secure(&config.public_url)
}

/// The kind of client that asks for a token for `resource`.
pub fn surface(client: &db::oauth::Client, resource: Resource) -> Surface {
    match (client.kind, resource) {
        (AppKind::CommandLine, _) => Surface::Cli,
        (_, Resource::Tools) => Surface::Tool,
        (_, Resource::Service | Resource::Api) => Surface::Api,
    }
}

/// What an access token is for. All three are the same service, and each token is good for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// All of it.
    Service,
    /// The tools.
    Tools,
    /// The contract.
    Api,
}

impl Resource {
    const ALL: [Self; 3] = [Self::Service, Self::Tools, Self::Api];

    const fn path(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::Tools => "/mcp",
            Self::Api => API_ROOT,
        }
    }

    /// The resource of a request to this path.
    fn of_path(path: &str) -> Self {
        let contains = |resource: &Self| {
            path.strip_prefix(resource.path()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        [Self::Tools, Self::Api].into_iter().find(contains).unwrap_or(Self::Service)
    }

    /// The resource with this address; a final slash does not matter.
    fn parse(text: &str, config: &Config) -> Option<Self> {
        let text = text.strip_suffix('/').unwrap_or(text);
        Self::ALL.into_iter().find(|resource| text.strip_prefix(&config.public_url) == Some(resource.path()))
    }

    fn url(self, config: &Config) -> String {
        format!("{}{}", config.public_url, self.path())
    }

    fn metadata_url(self, config: &Config) -> String {
        format!("{}{}{}", config.public_url, metadata::RESOURCE, self.path())
    }
}

/// The routes; none where [`is_on`] is `false`.
pub fn router(app: &App) -> Router<App> {
    if !is_on(&app.config) {
        return Router::new();
    }
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(Any)
        .max_age(PREFLIGHT);
    let clients = metadata::router(&app.config)
        .route("/oauth/register", post(register::register).fallback(error::unknown_method))
        .route("/oauth/token", post(token::token).fallback(error::unknown_method))
        .route("/oauth/revoke", post(revoke::revoke).fallback(error::unknown_method))
        .layer(cors);
    clients
        .route("/oauth/device", post(device::device).fallback(error::unknown_method))
        .route("/oauth/authorize", get(console::page))
        .route("/device", get(console::page))
}

/// Returns `true` if a request is to one of the routes of clients.
pub fn contains(parts: &Parts) -> bool {
    ["/oauth/", metadata::SERVER, metadata::RESOURCE].iter().any(|prefix| parts.uri.path().starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_of_a_path_is_the_one_that_contains_it() {
        for (path, resource) in [
            ("/mcp", Resource::Tools),
            ("/mcp/", Resource::Tools),
            ("/mcpx", Resource::Service),
            ("/api/canvas-agent/v1", Resource::Api),
            ("/api/canvas-agent/v1/canvases", Resource::Api),
            ("/api/canvas-agent/v10", Resource::Service),
            ("/", Resource::Service),
        ] {
            assert_eq!(Resource::of_path(path), resource, "{path}");
        }
    }
}
