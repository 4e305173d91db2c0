//! The console's own contract document. It describes the routes for people; the contract document describes the rest.

use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi};

use crate::openapi;

/// Tags with their descriptions.
const TAGS: [(&str, &str); 10] = [
    ("Session", "Sign in, see who is signed in, sign out."),
    ("Tokens", "Tokens of agents and programs: create, list, revoke."),
    ("Apps", "Programs that the person authorized: allow, list, end."),
    ("Connections", "Saved connections to providers. Their keys are write-only."),
    ("Members", "Whom a canvas is shared with."),
    ("Pointers", "What people point at on a canvas."),
    ("Deletion", "Delete a canvas or an asset for good."),
    ("Deliveries", "Webhook deliveries, and their replay."),
    ("Credit", "The balance of the account and its ledger."),
    ("Document", "This document."),
];

/// What the shared failures say here. In the contract they speak of revisions and scopes.
const FAILURES: [(&str, &str); 4] = [
    ("Conflict", "The present state forbids the request."),
    ("Forbidden", "The request does not come from the console, the session is one of a token, or a role is missing."),
    (
        "Unauthorized",
        "The session is missing, unknown, ended or of another account, or what should sign in is not valid.",
    ),
    ("UnprocessableEntity", "The request disagrees with what is stored. `fields` names the places."),
];

/// The document without routes.
pub fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Canvas Service console")
        .version("1.0.0")
        .description(Some(
            "What only a person may do, in the browser. The credential is the cookie `__Host-canvas`, which `POST /console/session` \
             sets. Every write needs the `Origin` of the service and the header `X-Canvas-Console: 1`. A request whose header \
             `X-Canvas-Account` names another account than that of the session is refused. The canvases themselves are served by \
             the contract, which the console reaches at `/console/api/canvas-agent/v1`.",
        ))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(None::<ContactBuilder>.map(ContactBuilder::build))
        .build();
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("__Host-canvas")));
    let tags = TAGS.map(|(name, description)| TagBuilder::new().name(name).description(Some(description)).build());
    openapi::with_components(info, tags.into(), ("session", cookie))
}

/// Completes the document that the routes declare.
pub fn complete(document: OpenApi) -> Value {
    let mut document = openapi::complete_shared(openapi::serialize(document), openapi::Recorded::Console);
    for (name, description) in FAILURES {
        document["components"]["responses"][name]["description"] = description.into();
    }
    // No failure here has any.
    if let Some(members) = document["components"]["schemas"]["ErrorBody"]["properties"].as_object_mut() {
        members.remove("details");
    }
    drop_unused(&mut document);
    document
}

/// Removes the components that nothing refers to. The shared ones are those of the contract.
fn drop_unused(document: &mut Value) {
    loop {
        let text = document.to_string();
        let mut dropped = false;
        for kind in ["examples", "headers", "responses", "schemas"] {
            if let Some(components) = document["components"][kind].as_object_mut() {
                let before = components.len();
                components.retain(|name, _| text.contains(&format!("\"#/components/{kind}/{name}\"")));
                dropped |= components.len() < before;
            }
        }
        if !dropped {
            return;
        }
    }
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
