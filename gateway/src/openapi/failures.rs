//! The failures of every operation, as shared responses.
//!
//! Which checks can refuse a request follows from its route: whether it takes a credential and a body, and what it does. An
//! operation that says more about a status than the shared response keeps its own description.

use serde_json::{Map, Value, json};

use super::{id, operations};

/// Operations that take no credential.
const OPEN: [&str; 6] = ["getAssetPreview", "getConsoleDocument", "getContract", "getDigest", "getDocs", "signIn"];

/// Operations whose path and `canvasId` name nothing that could be missing.
const NAMES_NOTHING: [&str; 28] = [
    "createCanvas",
    "createElement",
    "createElementCollection",
    "createToken",
    "endAllSessions",
    "getAuthStatus",
    "getConsoleDocument",
    "getContract",
    "getCredit",
    "getDigest",
    "getDocs",
    "getSession",
    "getStatus",
    "listActions",
    "listCanvases",
    "listConnections",
    "listDeliveries",
    "listElementCollections",
    "listElements",
    "listModels",
    "listProviders",
    "listRecipes",
    "listSessions",
    "listTokens",
    "renameAccount",
    "saveConnection",
    "signIn",
    "signOut",
];

/// Operations with a body that take no revision and no key, and that no state forbids.
const NEVER_CONFLICTS: [&str; 9] = [
    "createElement",
    "createElementCollection",
    "deleteElementCollection",
    "planCampaign",
    "renameAccount",
    "renameElementCollection",
    "reviewCampaign",
    "setMember",
    "signIn",
];

/// Operations whose body cannot disagree with what is stored.
const STANDS_ALONE: [&str; 11] = [
    "createCanvas",
    "createElementCollection",
    "createToken",
    "deleteAsset",
    "deleteCanvas",
    "deleteElementCollection",
    "planCampaign",
    "renameAccount",
    "renameElementCollection",
    "saveConnection",
    "signIn",
];

/// Status, name and description of each shared response.
const FAILURES: [(&str, &str, &str); 17] = [
    ("400", "BadRequest", "The input is missing, malformed or out of range. `fields` names every violation."),
    ("401", "Unauthorized", "The credential is missing, malformed, unknown, expired or revoked."),
    (
        "402",
        "PaymentRequired",
        "The work costs more than the account's credit or `maxCredits` covers. Nothing is reserved.",
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

/// Adds the shared responses and refers to them from every operation.
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
        if OPEN.contains(&id(operation)) {
            operation.insert("security".into(), json!([]));
        }
        let statuses = statuses(path, operation);
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        for (status, name, description) in FAILURES {
            let own = responses.get(status).map(|own| own["description"].clone());
            if own.is_some() || statuses.contains(&status) {
                let mut reference = json!({"$ref": format!("#/components/responses/{name}")});
                if let Some(own) = own.filter(|own| own != description) {
                    reference["description"] = own;
                }
                responses.insert(status.to_owned(), reference);
            }
        }
    }
}

/// The statuses with which the checks of an operation can refuse a request.
fn statuses(path: &str, operation: &Map<String, Value>) -> Vec<&'static str> {
    let id = id(operation);
    let mut statuses = vec!["400", "406", "429", "500", "503"];
    if !OPEN.contains(&id) {
        statuses.push("401");
    }
    // These need a valid credential alone.
    if !OPEN.contains(&id) && !matches!(id, "getAuthStatus" | "getSession" | "getStatus") {
        statuses.push("403");
    }
    // Its credential is in its body.
    if id == "signIn" {
        statuses.extend(["401", "403"]);
    }
    if !NAMES_NOTHING.contains(&id) {
        statuses.push("404");
    }
    if operation.contains_key("requestBody") {
        statuses.extend(["413", "415"]);
    }
    if operation.contains_key("requestBody") && !NEVER_CONFLICTS.contains(&id) {
        statuses.push("409");
    }
    if operation.contains_key("requestBody") && !STANDS_ALONE.contains(&id) {
        statuses.push("422");
    }
    if matches!(id, "getAssetPreview" | "getAssetContent") {
        statuses.extend(["401", "416", "422"]);
    }
    // The part that is drawn is named by the query.
    if id == "renderCanvas" {
        statuses.push("422");
    }
    if path.contains("/campaigns") && !matches!(id, "listCampaigns" | "readCampaign") {
        statuses.push("410");
    }
    statuses
}
