//! The completeness walk: the specification's endpoint tables against the contract document that is served.
//!
//! [`SPECIFICATION`] and [`EXTENSIONS`] are written from the documents by hand, so that neither a forgotten route nor one that
//! nobody asked for goes unseen. What is not built yet stands in [`UNBUILT`], which can only shrink: a listed route that
//! has been built fails the walk as surely as a missing one that is not listed. Fields, enumerations, limits and statuses are
//! walked in `contract/shapes.rs`; `contract/names.rs` holds that each type there has a name of its own.

#[cfg(test)]
mod names;
#[cfg(test)]
mod shapes;

/// What a request needs before its body is looked at (specification, Authentication 4 to 6).
#[derive(Clone, Copy, Debug)]
pub enum Access {
    /// No credential.
    Open,
    /// A valid token.
    Token {
        /// With every one of these scopes,
        all: &'static [&'static str],
        /// one of these, unless there are none,
        any: &'static [&'static str],
        /// and with these when the body or the query calls for them.
        more: &'static [&'static str],
    },
}

/// One row of an endpoint table.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// Below the API's root, but for `/docs`.
    pub path: &'static str,
    /// What it needs.
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

/// Every row of the tables of the specification, in its order.
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

/// What the decisions add, each with its section.
pub const EXTENSIONS: &[Endpoint] = &[
    // 1.10
    all("GET", "/runs/{runId}/events", JOBS),
    // 1.14
    open("GET", "/openapi.json"),
    open("GET", "/docs"),
    // 4.7
    all("GET", "/canvases/{canvasId}/changes", READ),
    all("GET", "/canvases/{canvasId}/outline", READ),
    all("GET", "/canvases/{canvasId}/review", READ),
];

/// Rows of either table that are not built yet. A route leaves this list in the change that builds it.
pub const UNBUILT: &[(&str, &str)] = &[];

/// Every endpoint that is built.
pub fn built() -> impl Iterator<Item = Endpoint> {
    let unbuilt = |endpoint: &Endpoint| UNBUILT.contains(&(endpoint.method, endpoint.path));
    SPECIFICATION.iter().chain(EXTENSIONS).copied().filter(move |endpoint| !unbuilt(endpoint))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::{Value, json};

    use super::*;
    use crate::API_ROOT;

    /// The committed contract document, which a test of the gateway compares with its routes.
    pub(super) fn document() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/openapi.json");
        let text = std::fs::read_to_string(path).expect("the contract document is committed");
        serde_json::from_str(&text).expect("it is JSON")
    }

    /// Its operations, by method and path below the root.
    pub(super) fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
        let paths = document["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let path = path.strip_prefix(API_ROOT).unwrap_or(path);
            let item = item.as_object().expect("an item");
            item.iter().map(move |(method, operation)| ((method.to_uppercase(), path.to_owned()), operation.clone()))
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
        assert_eq!(tabled.len(), rows, "a row stands in the tables twice");
        let tabled: BTreeSet<_> = tabled.into_iter().collect();
        let unbuilt: BTreeSet<_> =
            UNBUILT.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(unbuilt.len(), UNBUILT.len(), "a row is listed as unbuilt twice");
        let missing: Vec<_> = tabled.difference(&documented).filter(|row| !unbuilt.contains(row)).collect();
        assert!(missing.is_empty(), "missing from the contract document: {missing:?}");
        let built: Vec<_> = unbuilt.intersection(&documented).collect();
        assert!(built.is_empty(), "built, so no longer to be listed as unbuilt: {built:?}");
        let foreign: Vec<_> = documented.difference(&tabled).collect();
        assert!(foreign.is_empty(), "neither in the specification nor among the extensions: {foreign:?}");
        let invented: Vec<_> = unbuilt.difference(&tabled).collect();
        assert!(invented.is_empty(), "listed as unbuilt and in no table: {invented:?}");
    }

    #[test]
    fn what_the_specification_does_not_have_says_that_it_is_an_extension() {
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
                // The document's own rule: a bearer token.
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
