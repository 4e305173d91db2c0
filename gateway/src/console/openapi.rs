//! The console's own contract document. It describes the routes for people; the contract document describes the rest.

use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ContactBuilder, InfoBuilder, OpenApi};

use crate::openapi;

/// Tags with their descriptions.
const TAGS: [(&str, &str); 8] = [
    ("Session", "Sign in, see who is signed in, sign out."),
    ("Tokens", "Tokens of agents and programs: create, list, revoke."),
    ("Connections", "Saved connections to providers. Their keys are write-only."),
    ("Members", "Whom a canvas is shared with."),
    ("Deletion", "Delete a canvas or an asset for good."),
    ("Deliveries", "Webhook deliveries, and their replay."),
    ("Credit", "The balance of the account and its ledger."),
    ("Document", "This document."),
];

/// The document without routes.
pub fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Canvas Service console")
        .version("1.0.0")
        .description(Some(
            "What only a person may do, in the browser. The credential is the cookie `__Host-canvas`, which `POST /console/session` \
             sets. Every write needs the `Origin` of the service and the header `X-Canvas-Console: 1`. The canvases themselves are \
             served by the contract, which the console reaches at `/console/api/canvas-agent/v1`.",
        ))
        .contact(None::<ContactBuilder>.map(ContactBuilder::build))
        .build();
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("__Host-canvas")));
    let tags = TAGS.map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build());
    openapi::with_components(info, tags.into(), ("session", cookie))
}

/// Completes the document that the routes declare.
pub fn complete(document: OpenApi) -> Value {
    openapi::complete_shared(serde_json::to_value(document).expect("an OpenAPI document serializes"))
}

#[cfg(test)]
mod tests {
    use crate::console::documented;
    use crate::openapi;

    /// `UPDATE_OPENAPI=1 cargo test -p canvas-gateway` rewrites the snapshot.
    #[test]
    fn the_committed_document_is_what_the_routes_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/console.json");
        let document = openapi::committed(&documented().1);
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &document).expect("the snapshot can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == document, "gateway/console.json is stale: UPDATE_OPENAPI=1 cargo test -p canvas-gateway");
    }
}
