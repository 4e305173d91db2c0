//! The committed contract document, as the tests use it: its operations, and what a request to each needs.
//!
//! A test of the gateway compares the document with the routes, and its diff is what a reviewer of a change reads. The tests of
//! `spec/` compare it with what the service does.

use std::sync::LazyLock;

use serde_json::Value;

use crate::API_ROOT;

/// The credential and scopes that a request must have before its body is read (docs/reference/authentication.md#scopes-of-a-request).
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
    },
}

/// An operation of the document.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// The HTTP method: `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// The path relative to the API's root, except for `/docs`.
    pub path: &'static str,
    /// The credential and scopes that a request needs.
    pub access: Access,
    /// The operation as it is documented.
    pub documented: &'static Value,
}

/// The committed contract document.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../gateway/openapi.json");
        let text = std::fs::read_to_string(path).expect("the contract document is committed");
        serde_json::from_str(&text).expect("it is JSON")
    });
    &DOCUMENT
}

/// Every operation of the document.
pub fn built() -> impl Iterator<Item = Endpoint> {
    static ENDPOINTS: LazyLock<Vec<Endpoint>> = LazyLock::new(|| {
        let paths = document()["paths"].as_object().expect("paths");
        let operations = paths.iter().flat_map(|(path, item)| {
            let path = path.strip_prefix(API_ROOT).unwrap_or(path);
            item.as_object().expect("an item").iter().map(move |(method, documented)| Endpoint {
                method: method.to_uppercase().leak(),
                path,
                access: access(documented),
                documented,
            })
        });
        operations.collect()
    });
    ENDPOINTS.iter().copied()
}

/// Reads an operation's `security`: each of its entries is a sufficient set of scopes.
fn access(operation: &'static Value) -> Access {
    let Some(sufficient) = operation["security"].as_array() else {
        // The default of the document: a bearer token without particular scopes.
        return Access::Token { all: &[], any: &[] };
    };
    let sufficient: Vec<Vec<&str>> = sufficient
        .iter()
        .map(|entry| entry["bearer"].as_array().expect("scopes").iter().filter_map(Value::as_str).collect())
        .collect();
    let Some(first) = sufficient.first() else { return Access::Open };
    let is_shared = |scope: &&str| sufficient.iter().all(|scopes| scopes.contains(scope));
    let all: Vec<_> = first.iter().copied().filter(is_shared).collect();
    let any: Vec<_> = sufficient.iter().flatten().copied().filter(|scope| !is_shared(scope)).collect();
    Access::Token { all: all.leak(), any: any.leak() }
}

/// A part of the document, or what it refers to.
pub fn resolved(part: &'static Value) -> &'static Value {
    let Some(reference) = part["$ref"].as_str() else { return part };
    let target = document().pointer(reference.trim_start_matches('#'));
    target.unwrap_or_else(|| panic!("{reference} does not resolve"))
}
