//! The headers of responses.
//!
//! Which response carries which header follows from its status and its operation. A header that is marked `required` is always
//! present: the contract test checks it.

use std::collections::BTreeSet;

use domain::API_ROOT;
use serde_json::{Map, Value, json};

use super::{id, operations};

/// Name, description and schema.
const HEADERS: &[(&str, &str, &str)] = &[
    ("X-Request-ID", "Identifies the request, for support. The client's own value when it is a UUID.", UUID),
    (
        "X-Canvas-Ignored",
        "Query parameters that the operation does not know: comma separated, percent-encoded, at most 16 names and 1 KiB.",
        TEXT,
    ),
    (
        "RateLimit-Limit",
        "Requests in the burst of the token or of the account, whichever has less left. Absent when requests are not limited.",
        COUNT,
    ),
    ("RateLimit-Remaining", "Requests left in that burst.", COUNT),
    ("RateLimit-Reset", "Seconds until the whole burst is available again.", COUNT),
    ("Location", "Path of the created resource, or of the record that follows the work.", PATH),
    ("Retry-After", "Seconds to wait before the next request.", COUNT),
    ("ETag", "Entity tag of this state, for `If-None-Match`.", TEXT),
    ("Vary", "Request headers that select the response.", TEXT),
    (
        "X-Canvas-Labels",
        "The numbers on the nodes of a render with `labels`, those of their refs, as JSON of at most 8 KiB: `{\"1\":\"node:<id>\"}`.",
        TEXT,
    ),
    ("X-Next-Cursor", "The cursor of the next page of an outline, if there is one.", TEXT),
    ("Preference-Applied", "The preferences of `Prefer` that were applied.", TEXT),
    ("Accept-Ranges", "`bytes`: ranges are supported.", TEXT),
    ("Content-Range", "The range that the body holds, and the size of the whole.", TEXT),
    ("Content-Disposition", "The name under which to save the body.", TEXT),
    ("WWW-Authenticate", "`Bearer`, with the address of the OAuth metadata if people may authorize programs.", TEXT),
    ("Set-Cookie", "The credential of the session.", TEXT),
    ("Deprecation", "When the operation was deprecated (RFC 9745).", TEXT),
    ("Link", "Where the deprecation is explained.", TEXT),
];

const TEXT: &str = r#"{"type": "string", "minLength": 1}"#;
const PATH: &str = r#"{"type": "string", "pattern": "^/api/canvas-agent/v1/"}"#;
const UUID: &str = r#"{"type": "string", "format": "uuid"}"#;
const COUNT: &str = r#"{"type": "integer", "minimum": 0}"#;

/// Adds the headers as components, and to every response references to those that it carries.
pub fn add(document: &mut Value) {
    let mut used = BTreeSet::new();
    for (path, operation) in operations(document) {
        let id = id(operation).to_owned();
        let responses = operation["responses"].as_object_mut().expect("an operation has responses");
        for (status, response) in responses.iter_mut().filter(|(_, response)| response.get("$ref").is_none()) {
            let headers = of_success(&id, path, status);
            if !headers.is_empty() {
                response["headers"] = references(headers, &mut used);
            }
        }
    }
    let shared = document["components"]["responses"].as_object_mut().expect("the failures are components");
    for (name, response) in shared {
        response["headers"] = references(of_failure(name), &mut used);
    }
    document["components"]["headers"] = used.into_iter().map(component).collect::<Map<_, _>>().into();
}

/// A header, and whether it is always present.
type Carried = (&'static str, bool);

fn component((name, is_always): Carried) -> (String, Value) {
    let known = HEADERS.iter().find(|(known, ..)| *known == name);
    let (_, description, schema) = known.expect("every header is described");
    let schema: Value = serde_json::from_str(schema).expect("a schema");
    let mut header = json!({"description": description, "schema": schema});
    if is_always {
        header["required"] = true.into();
    }
    (component_name((name, is_always)), header)
}

fn component_name((name, is_always): Carried) -> String {
    if is_always { name.to_owned() } else { format!("{name}-if-any") }
}

fn references(headers: Vec<Carried>, used: &mut BTreeSet<Carried>) -> Value {
    used.extend(&headers);
    let path = |header| format!("#/components/headers/{}", component_name(header));
    headers.into_iter().map(|header| (header.0.to_owned(), json!({"$ref": path(header)}))).collect::<Map<_, _>>().into()
}

/// On every response, as is `Cache-Control`. The description of the document says so; the failures list this one.
const COMMON: [Carried; 1] = [("X-Request-ID", true)];
/// On every response to a token. The description of the document says so; the failure that they explain lists them.
const LIMITS: [&str; 3] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/// The headers of a shared failure.
fn of_failure(name: &str) -> Vec<Carried> {
    let mut headers = COMMON.to_vec();
    match name {
        "Unauthorized" => headers.push(("WWW-Authenticate", true)),
        "ServiceUnavailable" => headers.push(("Retry-After", false)),
        "RangeNotSatisfiable" => headers.push(("Content-Range", true)),
        "TooManyRequests" => {
            headers.push(("Retry-After", true));
            headers.extend(LIMITS.map(|name| (name, false)));
        }
        _ => {}
    }
    headers
}

/// The headers of a successful response.
fn of_success(id: &str, path: &str, status: &str) -> Vec<Carried> {
    let mut headers = Vec::new();
    let mut add = |names: &[&'static str], is_always| headers.extend(names.iter().map(|name| (*name, is_always)));
    let is_read_of_work = matches!(id, "getRun" | "getJob");
    let is_work = is_read_of_work || matches!(id, "cancelRun" | "cancelJob");
    if path.contains("/campaigns") {
        add(&["Deprecation", "Link"], true);
    }
    match status {
        "201" if id == "signIn" => add(&["Set-Cookie"], true),
        // A collection has no read of its own, neither has what the console's routes create, and uploads are several.
        "201" if !["createElementCollection", "createUploads"].contains(&id) && path.starts_with(API_ROOT) => {
            add(&["Location"], true)
        }
        // Chains of Actions are several runs, and a delivery has no read of its own.
        "202" if id != "runActions" && !id.starts_with("replay") && path.starts_with(API_ROOT) => {
            add(&["Location"], true)
        }
        "206" => add(&["Content-Range"], true),
        _ => {}
    }
    // Where a misspelled filter would show too much.
    if id.starts_with("list") {
        add(&["X-Canvas-Ignored"], false);
    }
    if is_work && status == "202" {
        add(&["Retry-After"], true);
    }
    if is_work || matches!(id, "getCanvas" | "getAssetPreview" | "getAssetContent" | "getDigest" | "getJobOutput") {
        add(&["ETag"], true);
    }
    // A render without all thumbnails has no entity tag.
    if id == "renderCanvas" {
        add(&["ETag"], status == "304");
    }
    if id == "renderCanvas" && status == "200" {
        add(&["X-Canvas-Labels"], false);
    }
    if id == "getCanvasOutline" {
        add(&["X-Next-Cursor"], false);
    }
    if matches!(id, "getCanvas" | "renderCanvas" | "getAssetContent") {
        add(&["Vary"], true);
    }
    if matches!(id, "getAssetPreview" | "getAssetContent" | "getJobOutput") {
        add(&["Accept-Ranges"], true);
    }
    if matches!(status, "200" | "206") && id == "getJobOutput" {
        add(&["Content-Disposition"], true);
    }
    let takes_a_base = matches!(
        id,
        "applyOperations"
            | "editImages"
            | "forkRecipe"
            | "generateImages"
            | "runAction"
            | "runActions"
            | "runRecipe"
            | "startCampaign"
            | "varyImages"
    );
    if is_read_of_work || takes_a_base || matches!(id, "createWorkflow" | "getCanvasChanges") {
        add(&["Preference-Applied"], false);
    }
    headers
}

#[cfg(test)]
mod tests {
    use domain::API_ROOT;
    use serde_json::json;

    use crate::router::documented;

    #[test]
    fn a_response_names_the_headers_that_it_carries() {
        let document = documented().1;
        let headers = |path: &str, method: &str, status: &str| {
            let response = &document["paths"][format!("{API_ROOT}{path}")][method]["responses"][status];
            response["headers"].as_object().cloned().unwrap_or_default()
        };
        let started = headers("/images/generate", "post", "202");
        assert_eq!(started["Location"], json!({"$ref": "#/components/headers/Location"}));
        assert_eq!(document["components"]["headers"]["Location"]["required"], true);
        assert!(headers("/jobs/{jobId}", "get", "202").contains_key("Retry-After"));
        assert!(headers("/canvases/{canvasId}", "get", "304").contains_key("ETag"));
        for path in ["/canvases/{canvasId}/changes", "/runs/{runId}", "/jobs/{jobId}"] {
            assert!(headers(path, "get", "200").contains_key("Preference-Applied"), "{path}");
        }
        assert!(!headers("/element-collections", "post", "201").contains_key("Location"));
        let limited = &document["components"]["responses"]["TooManyRequests"]["headers"];
        assert_eq!(limited["Retry-After"], json!({"$ref": "#/components/headers/Retry-After"}));
        let busy = &document["components"]["responses"]["ServiceUnavailable"]["headers"];
        assert_eq!(busy["Retry-After"], json!({"$ref": "#/components/headers/Retry-After-if-any"}));
        assert_eq!(document["components"]["headers"]["Retry-After-if-any"].get("required"), None);
    }
}
