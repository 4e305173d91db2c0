//! The console's own contract document. It describes the routes for people; the contract document describes the rest.

use serde_json::Value;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi};

use crate::openapi;

/// What tells a document of the console from another one.
pub struct Described {
    pub title: &'static str,
    pub description: &'static str,
    /// Tags with their descriptions.
    pub tags: &'static [(&'static str, &'static str)],
    /// What the shared failures say. In the contract they speak of revisions and scopes.
    pub failures: &'static [(&'static str, &'static str)],
}

/// The document of what people do.
pub const CONSOLE: Described = Described {
    title: "Canvas Service console",
    description: "What only a person may do, in the browser. The credential is the cookie `__Host-canvas`, which `POST /console/session` \
                  sets. Every write needs the `Origin` of the service and the header `X-Canvas-Console: 1`. A request whose header \
                  `X-Canvas-Account` names another account than that of the session is refused. The canvases themselves are served by \
                  the contract, which the console reaches at `/console/api/canvas-agent/v1`.",
    tags: &[
        ("Session", "Sign in, see who is signed in, sign out."),
        ("Single sign-on", "Sign in with an OpenID provider, and the identities of an account."),
        ("Tokens", "Tokens of agents and programs: create, list, revoke."),
        ("Apps", "Programs that the person authorized: allow, list, end."),
        ("Connections", "Saved connections to providers. Their keys are write-only."),
        ("Members", "Whom a canvas is shared with."),
        ("Pointers", "What people point at on a canvas."),
        ("Deletion", "Delete a canvas or an asset for good."),
        ("Deliveries", "Webhook deliveries, and their replay."),
        ("Credit", "The balance of the account and its ledger."),
        ("Audit", "What was done with the account."),
        ("Document", "This document."),
    ],
    failures: &[
        ("Conflict", "The present state forbids the request."),
        (
            "Forbidden",
            "The request does not come from the console, the session is one of a token, or a role is missing.",
        ),
        (
            "Unauthorized",
            "The session is missing, unknown, ended or of another account, or what should sign in is not valid.",
        ),
        ("UnprocessableEntity", "The request disagrees with what is stored. `fields` names the places."),
    ],
};

/// A document without routes.
pub fn base(described: &Described) -> OpenApi {
    let info = InfoBuilder::new()
        .title(described.title)
        .version("1.0.0")
        .description(Some(described.description))
        .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
        .contact(None::<ContactBuilder>.map(ContactBuilder::build))
        .build();
    let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("__Host-canvas")));
    let tag =
        |(name, description): &(&str, &str)| TagBuilder::new().name(*name).description(Some(*description)).build();
    openapi::with_components(info, described.tags.iter().map(tag).collect(), ("session", cookie))
}

/// Completes the document that the routes declare.
pub fn complete(document: OpenApi, described: &Described) -> Value {
    let mut document = openapi::complete_shared(openapi::serialize(document), openapi::Recorded::Console);
    for (name, description) in described.failures {
        document["components"]["responses"][name]["description"] = (*description).into();
    }
    let schemas = &mut document["components"]["schemas"];
    if let Some(members) = schemas["ErrorDetails"]["properties"].as_object_mut() {
        members.retain(|name, _| name == "reason");
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
