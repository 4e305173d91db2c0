//! The `WWW-Authenticate` header of refusals, by which a client finds how to get access (RFC 6750, RFC 9728).

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use domain::account::{Scope, Scopes};
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use super::{Resource, is_on};
use crate::console;
use crate::state::App;

/// The scopes that a refused request needs, in the extensions of its response.
#[derive(Clone, Copy)]
pub struct NeededScopes(pub Scopes);

/// Completes the challenge of a response. In the console, and without OAuth, a refusal names the scheme alone.
pub async fn complete(State(app): State<App>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let is_console = console::contains(&parts);
    let (resource, is_presented) = (Resource::of_path(parts.uri.path()), parts.headers.contains_key(AUTHORIZATION));
    let mut response = next.run(Request::from_parts(parts, body)).await;
    let is_refusal = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&response.status());
    if !is_refusal || is_console || !is_on(&app.config) {
        return response;
    }
    let problem = match response.status() {
        StatusCode::UNAUTHORIZED if !response.headers().contains_key(WWW_AUTHENTICATE) => return response,
        StatusCode::UNAUTHORIZED if is_presented => r#", error="invalid_token""#.to_owned(),
        StatusCode::UNAUTHORIZED => String::new(),
        StatusCode::FORBIDDEN => match response.extensions().get() {
            Some(NeededScopes(scopes)) => {
                let names: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
                format!(r#", error="insufficient_scope", scope="{}""#, names.join(" "))
            }
            None => return response,
        },
        _ => return response,
    };
    let challenge = format!(r#"Bearer resource_metadata="{}"{problem}"#, resource.metadata_url(&app.config));
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}
