//! Checks that the served contract document is complete.
//!
//! [`SPECIFICATION`] and [`EXTENSIONS`] list the endpoints by hand, so that neither a missing route nor an unplanned one goes
//! unnoticed. [`UNBUILT`] lists routes that are planned and not built. It can only become shorter, because a listed route that
//! exists fails the check, too. `contract/shapes.rs` checks fields, enumerations, limits and statuses, `contract/names.rs`
//! checks that no two types share a schema name, and `contract/console.rs` checks the document of the console.

#[cfg(test)]
mod console;
#[cfg(test)]
mod names;
#[cfg(test)]
mod shapes;

/// What a request must have before its body is read (docs/reference/authentication.md#scopes-of-a-request).
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// No credential is required.
    Open,
    /// A valid token is required.
    Token {
        /// Scopes that are always required.
        all: &'static [&'static str],
        /// At least one of these is required, unless the list is empty.
        any: &'static [&'static str],
        /// Scopes that some bodies or queries also require.
        more: &'static [&'static str],
    },
}

/// One row of an endpoint table.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The HTTP method: `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path relative to the API's root, except for `/docs`.
    pub path: &'static str,
    /// The credential and scopes that a request needs.
    pub access: Access,
}

const fn open(method: &'static str, path: &'static str) -> Endpoint {
    Endpoint { method, path, access: Access::Open }
}

const fn all(method: &'static str, path: &'static str, all: &'static [&'static str]) -> Endpoint {
    Endpoint { method, path, access: Access::Token { all, any: &[], more: &[] } }
}

const fn any(path: &'static str) -> Endpoint {
    Endpoint { method: "GET", path, access: Access::Token { all: &[], any: GENERATE, more: &[] } }
}

const fn more(
    method: &'static str,
    path: &'static str,
    all: &'static [&'static str],
    more: &'static [&'static str],
) -> Endpoint {
    Endpoint { method, path, access: Access::Token { all, any: &[], more } }
}

const READ: &[&str] = &["canvas:read"];
const WRITE: &[&str] = &["canvas:read", "canvas:write"];
const ASSET: &[&str] = &["asset:read"];
const ACT: &[&str] = &["canvas:read", "canvas:write", "asset:read"];
const IMAGE: &[&str] = &["canvas:read", "canvas:write", "asset:read", "image:generate"];
const VIDEO: &[&str] = &["canvas:read", "asset:read", "video:generate"];
const GENERATE: &[&str] = &["image:generate", "video:generate"];
const JOBS: &[&str] = &["job:manage"];
const ELEMENTS: &[&str] = &["element:read"];
const REVISE: &[&str] = &["element:write"];
const CAMPAIGN: &[&str] = &["canvas:read", "canvas:write", "asset:read", "image:generate", "job:manage"];

/// Every endpoint of the initial version, by resource.
pub const SPECIFICATION: &[Endpoint] = &[
    // Authentication check
    all("GET", "/auth/status", &[]),
    // Canvases
    all("GET", "/canvases", READ),
    all("POST", "/canvases", WRITE),
    all("GET", "/canvases/{canvasId}", READ),
    all("GET", "/canvases/{canvasId}/nodes/{nodeId}", READ),
    all("GET", "/canvases/{canvasId}/render", READ),
    more("POST", "/canvases/{canvasId}/operations", READ, &["canvas:write"]),
    all("POST", "/canvases/{canvasId}/workflows", WRITE),
    // Recipes
    all("GET", "/recipes", READ),
    all("GET", "/recipes/{recipeId}", READ),
    all("POST", "/recipes/{recipeId}/fork", WRITE),
    all("POST", "/recipes/{recipeId}/runs", IMAGE),
    // Assets
    all("GET", "/assets", ASSET),
    Endpoint { method: "POST", path: "/assets", access: Access::Token { all: ASSET, any: GENERATE, more: WRITE } },
    all("GET", "/assets/{assetId}", ASSET),
    open("GET", "/assets/preview"),
    all("POST", "/product-references/import", ACT),
    // Image Actions
    all("GET", "/actions", READ),
    all("GET", "/actions/{actionKey}", READ),
    all("POST", "/actions/{actionKey}/runs", ACT),
    // Images
    more("POST", "/images/generate", IMAGE, ELEMENTS),
    more("POST", "/images/edit", IMAGE, ELEMENTS),
    more("POST", "/images/variations", IMAGE, ELEMENTS),
    all("POST", "/images/import", IMAGE),
    // Videos
    all("POST", "/videos/generate", VIDEO),
    // Models and providers
    any("/models"),
    any("/models/{modelKey}"),
    any("/providers"),
    // Jobs and Runs
    all("GET", "/jobs/{jobId}", JOBS),
    all("DELETE", "/jobs/{jobId}", JOBS),
    all("GET", "/jobs/{jobId}/output", JOBS),
    all("GET", "/runs/{runId}", JOBS),
    all("DELETE", "/runs/{runId}", JOBS),
    // Elements
    all("GET", "/elements", ELEMENTS),
    all("POST", "/elements", REVISE),
    all("GET", "/elements/{elementId}", ELEMENTS),
    all("PATCH", "/elements/{elementId}", REVISE),
    all("GET", "/elements/{elementId}/versions", ELEMENTS),
    all("GET", "/element-collections", ELEMENTS),
    all("POST", "/element-collections", REVISE),
    all("PATCH", "/element-collections/{collectionId}", REVISE),
    all("DELETE", "/element-collections/{collectionId}", REVISE),
    // Legacy campaigns
    all("GET", "/campaigns", CAMPAIGN),
    all("GET", "/campaigns/{runId}", CAMPAIGN),
    all("DELETE", "/campaigns/{runId}", CAMPAIGN),
    all("POST", "/campaigns/{runId}/review", CAMPAIGN),
    all("POST", "/campaigns/plan", ACT),
    all("POST", "/campaigns/start", CAMPAIGN),
];

/// Endpoints that were added to the initial version.
pub const EXTENSIONS: &[Endpoint] = &[
    // docs/reference/conventions.md#event-streams
    all("GET", "/runs/{runId}/events", JOBS),
    // docs/reference/status.md
    all("GET", "/status", &[]),
    // docs/reference/jobs.md#list-runs
    all("GET", "/runs", JOBS),
    // docs/reference/assets.md#content
    all("GET", "/assets/{assetId}/content", ASSET),
    // docs/reference/events.md
    more("GET", "/events", READ, JOBS),
    // docs/reference/conventions.md#contract-document
    open("GET", "/openapi.json"),
    // docs/reference/conventions.md#digest
    open("GET", "/digest.md"),
    open("GET", "/docs"),
    // docs/reference/canvases.md#changes-since-a-revision and the headings after it.
    all("GET", "/canvases/{canvasId}/changes", READ),
    all("GET", "/canvases/{canvasId}/outline", READ),
    all("GET", "/canvases/{canvasId}/review", READ),
];

/// Endpoints of either table that are not built. The change that builds a route removes it here.
pub const UNBUILT: &[(&str, &str)] = &[];

/// Every endpoint that exists.
pub fn built() -> impl Iterator<Item = Endpoint> {
    let unbuilt = |endpoint: &Endpoint| UNBUILT.contains(&(endpoint.method, endpoint.path));
    SPECIFICATION.iter().chain(EXTENSIONS).copied().filter(move |endpoint| !unbuilt(endpoint))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::*;
    use crate::API_ROOT;

    /// The committed contract document. A test of the gateway compares it with the routes.
    pub(crate) fn document() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/openapi.json");
        let text = std::fs::read_to_string(path).expect("the contract document is committed");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// An operation with its shared parameters and responses in place of the references to them.
    fn with_shared_parts(document: &Value, mut operation: Value) -> Value {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten();
        parameters.for_each(|part| resolve(document, part));
        let responses = operation["responses"].as_object_mut().expect("responses");
        responses.values_mut().for_each(|part| resolve(document, part));
        operation
    }

    fn resolve(document: &Value, part: &mut Value) {
        if let Some(reference) = part["$ref"].as_str() {
            let target = document.pointer(reference.trim_start_matches('#'));
            *part = target.unwrap_or_else(|| panic!("{reference} does not resolve")).clone();
        }
    }

    /// The operations of the document, by method and path relative to the API's root.
    pub(crate) fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let path = path.strip_prefix(API_ROOT).unwrap_or(path);
            let item = item.as_object().expect("an item");
            item.iter().map(move |(method, operation)| {
                ((method.to_uppercase(), path.to_owned()), with_shared_parts(document, operation.clone()))
            })
        });
        operations.collect()
    }

    fn name(endpoint: &Endpoint) -> (String, String) {
        (endpoint.method.to_owned(), endpoint.path.to_owned())
    }

    #[test]
    fn every_row_is_built_or_listed_as_unbuilt_and_nothing_else_is_there() {
        let documented: BTreeSet<_> = operations(&document()).into_keys().collect();
        let mut tabled: Vec<_> = SPECIFICATION.iter().chain(EXTENSIONS).map(name).collect();
        let rows = tabled.len();
        tabled.sort();
        tabled.dedup();
        assert_eq!(tabled.len(), rows, "a row is in the tables twice");
        let tabled: BTreeSet<_> = tabled.into_iter().collect();
        let unbuilt: BTreeSet<_> =
            UNBUILT.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(unbuilt.len(), UNBUILT.len(), "a row is listed as unbuilt twice");
        let missing: Vec<_> = tabled.difference(&documented).filter(|row| !unbuilt.contains(row)).collect();
        assert!(missing.is_empty(), "missing from the contract document: {missing:?}");
        let built: Vec<_> = unbuilt.intersection(&documented).collect();
        assert!(built.is_empty(), "built, so they must not be listed as unbuilt: {built:?}");
        let foreign: Vec<_> = documented.difference(&tabled).collect();
        assert!(foreign.is_empty(), "in no table: {foreign:?}");
        let invented: Vec<_> = unbuilt.difference(&tabled).collect();
        assert!(invented.is_empty(), "listed as unbuilt and in no table: {invented:?}");
    }

    #[test]
    fn what_was_added_to_the_initial_version_says_that_it_is_an_extension() {
        let operations = operations(&document());
        for endpoint in EXTENSIONS {
            assert!(shapes::says_extension(&operations[&name(endpoint)]), "{endpoint:?}");
        }
    }

    #[test]
    fn every_operation_is_documented_with_the_scopes_of_its_row() {
        let operations = operations(&document());
        for endpoint in built() {
            let security = operations[&name(&endpoint)].get("security");
            let expected = match endpoint.access {
                Access::Open => Some(json!([])),
                // The default of the document: a bearer token without particular scopes.
                Access::Token { all: [], any: [], .. } => None,
                Access::Token { all, any: [], .. } => Some(json!([{"bearer": all}])),
                Access::Token { all, any, .. } => {
                    let either = any.iter().map(|one| json!({"bearer": ([all, &[*one]].concat())}));
                    Some(either.collect())
                }
            };
            assert_eq!(security, expected.as_ref(), "{} {}", endpoint.method, endpoint.path);
        }
    }
}
