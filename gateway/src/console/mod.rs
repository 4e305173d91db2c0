//! The console: the browser application, its sessions, and what only a person may do (docs/reference/console.md).
//!
//! **Guarantee.** A cookie is a credential below `/console/` alone, and a bearer token everywhere else alone. A write below
//! `/console/` comes from a page of this service's own origin.
//!
//! **Mechanism.** Before routes are matched, [`enter`] marks every request below `/console/`, and maps
//! `/console/api/canvas-agent/v1/…` to the contract's own routes. Everything that authenticates asks [`contains`] which
//! credential counts.

pub mod admin;
pub mod credential;
mod document;
mod openapi;
mod owned;
mod person;
mod routes;
mod shell;
mod sign_in;

use axum::Router;
use axum::extract::Request;
use domain::API_ROOT;
use http::Uri;
use http::request::Parts;
use serde_json::Value;

pub use document::ConsoleDocument;
pub use routes::audit::AuditEntry;
pub use shell::{page, unknown};

use crate::state::App;

/// Where the console's routes are.
pub const ROOT: &str = "/console";

/// Marks a request to the console, which the path of a nested route no longer shows.
#[derive(Clone, Copy)]
struct InConsole;

/// Marks a request below [`ROOT`], and maps one for the contract there to the contract's routes.
pub fn enter(mut request: Request) -> Request {
    let target = request.uri().path_and_query().and_then(|target| target.as_str().strip_prefix(ROOT));
    let Some(target) = target.filter(|target| target.starts_with('/')).map(str::to_owned) else { return request };
    request.extensions_mut().insert(InConsole);
    let is_contract = target.strip_prefix(API_ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    if is_contract {
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = target.parse().ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// Returns `true` if a request is one to the console, in which the cookie is the credential.
pub fn contains(parts: &Parts) -> bool {
    parts.extensions.get::<InConsole>().is_some()
}

/// The routes below [`ROOT`] with their document, and the application's files.
pub fn documented() -> (Router<App>, Value) {
    let (router, document) = routes::documented();
    (router.merge(shell::router()), document)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn the_contract_below_the_console_is_the_contract() {
        for (target, mapped) in [
            ("/console/api/canvas-agent/v1/canvases?limit=3", Some("/api/canvas-agent/v1/canvases?limit=3")),
            ("/console/api/canvas-agent/v1", Some("/api/canvas-agent/v1")),
            ("/console/api/canvas-agent/v1/a%2Fb", Some("/api/canvas-agent/v1/a%2Fb")),
            ("/console/api/canvas-agent/v10/canvases", None),
            ("/console/session", None),
            ("/consoles/api/canvas-agent/v1/canvases", None),
            ("/api/canvas-agent/v1/canvases", None),
        ] {
            let request = enter(Request::builder().uri(target).body(Body::empty()).expect("a request"));
            let (parts, _) = request.into_parts();
            assert_eq!(parts.uri.to_string(), mapped.unwrap_or(target));
            assert_eq!(contains(&parts), target.starts_with("/console/"), "{target}");
        }
    }
}
