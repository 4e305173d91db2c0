//! The documents by which clients find their way (RFC 8414, RFC 9728). They are the same for every caller and change with the
//! configuration alone.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use domain::account::Scope;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Value, json};
use service::config::{Config, OauthMode};

use super::Resource;
use crate::state::App;

/// Path of the document of the authorization server.
pub const SERVER: &str = "/.well-known/oauth-authorization-server";
/// Path of the documents of resources, which the path of the resource follows.
pub const RESOURCE: &str = "/.well-known/oauth-protected-resource";

/// The routes.
pub fn router(config: &Config) -> Router<App> {
    let documents =
        Resource::ALL.map(|resource| (format!("{RESOURCE}{}", resource.path()), of_resource(resource, config)));
    let documents = documents.into_iter().chain([(SERVER.to_owned(), of_server(config))]);
    documents.fold(Router::new(), |router, (path, document)| {
        let document = Bytes::from(document.to_string());
        router.route(&path, get(move || async move { serve(document) }))
    })
}

fn serve(document: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
    (headers, document).into_response()
}

fn of_server(config: &Config) -> Value {
    let endpoint = |name: &str| format!("{}/oauth/{name}", config.public_url);
    let mut document = json!({
        "issuer": config.public_url,
        "authorization_endpoint": endpoint("authorize"),
        "token_endpoint": endpoint("token"),
        "revocation_endpoint": endpoint("revoke"),
        "device_authorization_endpoint": endpoint("device"),
        "scopes_supported": Scope::ALL,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", super::device::GRANT_TYPE],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    });
    if config.oauth == OauthMode::Open {
        document["registration_endpoint"] = endpoint("register").into();
    }
    document
}

fn of_resource(resource: Resource, config: &Config) -> Value {
    json!({
        "resource": resource.url(config),
        "resource_name": "Canvas Service",
        "authorization_servers": [config.public_url],
        "scopes_supported": Scope::ALL,
        "bearer_methods_supported": ["header"],
    })
}
