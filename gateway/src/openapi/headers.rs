//! The headers of responses, in the document (decisions 1.1, 1.9 to 1.11, 4.7, 9.7, 9.9, 16.2, 18.1).
//!
//! Which response carries which header follows from its status and its route. What is `required` here is there always: a
//! contract test looks.

use serde_json::Value;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{Components, Ref, RefOr, Response};

/// Name, description, schema, and whether it is there always.
const HEADERS: &[(&str, &str, &str, bool)] = &[
    ("X-Request-ID", "Names the request, for support: the client's own when it is a UUID.", UUID, true),
    ("Cache-Control", "Who may keep it.", TEXT, true),
    ("RateLimit-Limit", "Requests of the token's burst; without it requests are not limited.", COUNT, false),
    ("RateLimit-Remaining", "Requests that are left of it.", COUNT, false),
    ("RateLimit-Reset", "Seconds until all of it is there again.", COUNT, false),
    ("Location", "The path of what was made, or under which it is followed.", PATH, true),
    ("Retry-After", "Seconds until it is worth asking again.", COUNT, true),
    ("ETag", "This state, for `If-None-Match`.", TEXT, true),
    ("Vary", "What the response depends on.", TEXT, true),
    ("Preference-Applied", "What was done of `Prefer`.", TEXT, false),
    ("Accept-Ranges", "Parts of it can be asked for.", TEXT, true),
    ("Content-Range", "Which part it is, of how many bytes.", TEXT, true),
    ("Content-Disposition", "Under which name it is to be saved.", TEXT, true),
    ("WWW-Authenticate", "`Bearer`.", TEXT, true),
    ("Deprecation", "Since when the operation is deprecated (RFC 9745).", TEXT, true),
    ("Link", "Where the deprecation is explained.", TEXT, true),
];

const TEXT: &str = r#"{"type": "string", "minLength": 1}"#;
const PATH: &str = r#"{"type": "string", "pattern": "^/api/canvas-agent/v1/"}"#;
const UUID: &str = r#"{"type": "string", "format": "uuid"}"#;
const COUNT: &str = r#"{"type": "integer", "minimum": 0}"#;

/// The headers that responses refer to. One that is not always there is a component of its own beside the one that is.
pub fn add_components(components: &mut Components) {
    for (name, description, schema, required) in HEADERS {
        let schema: Schema = serde_json::from_str(schema).expect("a schema");
        let header = HeaderBuilder::new().schema(Some(schema)).description(Some(*description)).build();
        components.headers.insert(optional(name), RefOr::T(header.clone()));
        if *required {
            components.headers.insert((*name).to_owned(), RefOr::T(always(header)));
        }
    }
}

/// `required`, which the type does not have.
fn always(mut header: Header) -> Header {
    header.extensions = Some([("required", Value::Bool(true))].into_iter().collect());
    header
}

fn optional(name: &str) -> String {
    format!("{name}-if-any")
}

/// Adds to every response of an operation the headers that it carries.
pub fn add(operation: &mut Operation, path: &str) {
    let id = operation.operation_id.clone().unwrap_or_default();
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response {
            for (name, is_always) in carried(&id, path, status) {
                refer(response, name, is_always);
            }
        }
    }
}

fn refer(response: &mut Response, name: &str, is_always: bool) {
    let component = if is_always { name.to_owned() } else { optional(name) };
    let reference = Ref::new(format!("#/components/headers/{component}"));
    response.headers.insert(name.to_owned(), RefOr::Ref(reference));
}

/// The headers of a response, each with whether it is there always.
fn carried(id: &str, path: &str, status: &str) -> Vec<(&'static str, bool)> {
    let mut carried = vec![("X-Request-ID", true), ("Cache-Control", true)];
    let mut add = |names: &[&'static str], is_always| carried.extend(names.iter().map(|name| (*name, is_always)));
    let is_open = matches!(id, "getAssetPreview" | "getContract" | "getDocs");
    let is_read_of_work = matches!(id, "getRun" | "getJob");
    let is_work = is_read_of_work || matches!(id, "cancelRun" | "cancelJob");
    let is_success = status.starts_with('2') || status == "304";
    // Sent with every response to a token, and of interest with these.
    if !is_open && (is_success || status == "429") {
        add(&["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"], false);
    }
    if path.contains("/campaigns") {
        add(&["Deprecation", "Link"], true);
    }
    match status {
        // A collection has no read of its own.
        "201" if id != "createElementCollection" => add(&["Location"], true),
        "202" => add(&["Location"], true),
        "401" => add(&["WWW-Authenticate"], true),
        "429" | "503" => add(&["Retry-After"], false),
        "206" | "416" => add(&["Content-Range"], true),
        _ => {}
    }
    if is_work && status == "202" {
        add(&["Retry-After"], true);
    }
    if is_success && (is_work || matches!(id, "getCanvas" | "getAssetPreview" | "getJobOutput")) {
        add(&["ETag"], true);
    }
    // A render that lacks a rendition has none.
    if is_success && id == "renderCanvas" {
        add(&["ETag"], status == "304");
    }
    if is_success && matches!(id, "getCanvas" | "renderCanvas") {
        add(&["Vary"], true);
    }
    if is_success && matches!(id, "getAssetPreview" | "getJobOutput") {
        add(&["Accept-Ranges"], true);
    }
    if matches!(status, "200" | "206") && id == "getJobOutput" {
        add(&["Content-Disposition"], true);
    }
    if is_success && (is_read_of_work || matches!(id, "applyOperations" | "createWorkflow" | "forkRecipe")) {
        add(&["Preference-Applied"], false);
    }
    carried
}

#[cfg(test)]
mod tests {
    use domain::API_ROOT;
    use serde_json::json;

    use crate::router::documented;

    #[test]
    fn a_response_names_the_headers_that_it_carries() {
        let document = serde_json::to_value(documented().1).expect("serializes");
        let headers = |path: &str, method: &str, status: &str| {
            let path = format!("{API_ROOT}{path}");
            let response = document["paths"][&path][method]["responses"][status].clone();
            response["headers"].as_object().expect("headers").clone()
        };
        let started = headers("/images/generate", "post", "202");
        assert_eq!(started["Location"], json!({"$ref": "#/components/headers/Location"}));
        assert_eq!(document["components"]["headers"]["Location"]["required"], true);
        assert!(headers("/jobs/{jobId}", "get", "202").contains_key("Retry-After"));
        assert!(headers("/canvases/{canvasId}", "get", "304").contains_key("ETag"));
        assert!(!headers("/element-collections", "post", "201").contains_key("Location"));
        let limited = headers("/canvases", "get", "429");
        assert_eq!(limited["Retry-After"], json!({"$ref": "#/components/headers/Retry-After-if-any"}));
        assert_eq!(document["components"]["headers"]["Retry-After-if-any"].get("required"), None);
    }
}
