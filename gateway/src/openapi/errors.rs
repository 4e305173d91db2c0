//! The failures of operations, as shared responses.
//!
//! A route names its statuses, or sets of them. What every request can meet, and every body, is added to all operations.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response};

use super::operations;

macro_rules! sets {
    ($($(#[$doc:meta])* $name:ident: $($status:literal)+;)+) => {$(
        $(#[$doc])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$($status),+].map(|status| (status.to_owned(), Response::default().into())).into()
            }
        }
    )+};
}

sets! {
    /// Of an operation that takes no credential and names something that may be missing.
    NamedErrors: "404";
    /// Of an operation that any valid credential may call.
    CredentialErrors: "401";
    /// Of an operation that needs scopes and names nothing.
    ScopeErrors: "401" "403";
    /// Of an operation that needs scopes and names something that may be missing.
    ReadErrors: "401" "403" "404";
    /// Of an operation that changes what it names: the change can disagree with what is stored.
    WriteErrors: "401" "403" "404" "409" "422";
}

/// What every request can meet.
const ALWAYS: [&str; 5] = ["400", "406", "429", "500", "503"];
/// What a request with a body can meet.
const WITH_BODY: [&str; 2] = ["413", "415"];

/// Status, name and description of each shared response.
const FAILURES: [(&str, &str, &str); 17] = [
    ("400", "BadRequest", "The input is missing, malformed or out of range. `fields` names every violation."),
    ("401", "Unauthorized", "The credential is missing, malformed, unknown, expired or revoked."),
    (
        "402",
        "PaymentRequired",
        "The work needs more than `maxCredits`, a budget of the token or account, or the account's credit covers. Nothing is reserved.",
    ),
    ("403", "Forbidden", "A scope or a role is missing. The message names it."),
    ("404", "NotFound", "The resource does not exist or is not visible to the caller."),
    ("406", "NotAcceptable", "`Accept` rejects every media type of the response."),
    (
        "409",
        "Conflict",
        "The canvas has changed since `baseRevision` (`details.currentRevision`), the idempotency key was used for another \
         request, or the present state forbids the request.",
    ),
    ("410", "Gone", "The operation is retired. The operator has not enabled legacy campaigns."),
    ("413", "PayloadTooLarge", "The body is larger than the limit of the operation."),
    ("415", "UnsupportedMediaType", "The content type of the body is not supported, or disagrees with its bytes."),
    ("416", "RangeNotSatisfiable", "The range is outside the resource."),
    (
        "422",
        "UnprocessableEntity",
        "The request disagrees with what is stored. `fields` names the places, or `details` holds the findings that block a \
         batch.",
    ),
    ("429", "TooManyRequests", "Too many requests, or too much unfinished work. `Retry-After` says when to try again."),
    ("500", "InternalServerError", "The service failed. Retry with backoff and the same idempotency key."),
    ("502", "BadGateway", "A server that the request names cannot be reached or returns an error."),
    (
        "503",
        "ServiceUnavailable",
        "The service is temporarily unable. Retry with backoff and the same idempotency key.",
    ),
    ("504", "GatewayTimeout", "A server that the request names takes too long."),
];

/// Adds the shared responses, and refers to them from every operation. One that says more about a status than the shared response
/// keeps its own description, and one whose body is no envelope keeps its own response.
pub fn add(document: &mut Value) {
    let envelope = json!({"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}});
    let shared: Map<String, Value> = FAILURES
        .into_iter()
        .map(|(_, name, description)| (name.to_owned(), json!({"description": description, "content": envelope})))
        .collect();
    document["components"]["responses"] = shared.into();
    for (path, operation) in operations(document) {
        if path.contains("/campaigns") {
            operation.insert("deprecated".into(), true.into());
        }
        // A route says by one empty requirement that it takes no credential.
        if operation.get("security").is_some_and(|security| *security == json!([{}])) {
            operation.insert("security".into(), json!([]));
        }
        let has_body = operation.contains_key("requestBody");
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        for (status, name, _) in FAILURES {
            let own = responses.get(status);
            if own.is_some_and(|own| own.get("content").is_some()) {
                continue;
            }
            let own = own.map(|own| own["description"].clone());
            if own.is_some() || ALWAYS.contains(&status) || has_body && WITH_BODY.contains(&status) {
                let mut reference = json!({"$ref": format!("#/components/responses/{name}")});
                if let Some(own) = own.filter(Value::is_string) {
                    reference["description"] = own;
                }
                responses.insert(status.to_owned(), reference);
            }
        }
    }
}
