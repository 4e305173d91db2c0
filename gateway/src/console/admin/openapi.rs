//! The document of the routes for administrators.

use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::console::openapi::{Described, base as shared_base, complete as shared_complete};

const DESCRIBED: Described = Described {
    title: "Canvas Service administration",
    description: "What administrators do, in the browser. The credential is the cookie `__Host-canvas` of a person whose account has the \
                  role `admin` and who signed in within 12 hours. Every write needs the `Origin` of the service and the header \
                  `X-Canvas-Console: 1`.",
    tags: &[
        ("Accounts", "Find, create, invite, limit, enable and disable accounts."),
        ("Tokens", "Tokens of accounts: list, revoke."),
        ("Recipes", "Recipes of the catalog."),
        ("Deliveries", "Webhook deliveries of all accounts, and their replay."),
        ("Jobs", "Work of all accounts, and its cancel."),
        ("Health", "Components, queues and versions."),
        ("Audit", "Who did what."),
        ("Document", "This document."),
    ],
    failures: &[
        ("Conflict", "The present state forbids the request."),
        (
            "Forbidden",
            "The request does not come from the console, the account is no administrator's, or the session is older than 12 hours: then \
             `details.reason` is `sign_in_again`.",
        ),
        ("Unauthorized", "The session is missing, unknown, ended or of another account."),
        ("UnprocessableEntity", "The request disagrees with what is stored. `fields` names the places."),
    ],
};

/// The document without routes.
pub fn base() -> OpenApi {
    shared_base(&DESCRIBED)
}

/// Completes the document that the routes declare.
pub fn complete(document: OpenApi) -> Value {
    shared_complete(document, &DESCRIBED)
}

#[cfg(test)]
mod tests {
    use crate::console::admin::documented;
    use crate::openapi;

    /// `UPDATE_OPENAPI=1 cargo test -p canvas-gateway` rewrites the snapshot.
    #[test]
    fn the_committed_document_is_what_the_routes_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/admin.json");
        let document = openapi::committed(&documented().1);
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(path, &document).expect("the snapshot can be written");
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == document, "gateway/admin.json is stale: UPDATE_OPENAPI=1 cargo test -p canvas-gateway");
    }
}
