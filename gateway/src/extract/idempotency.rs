//! Idempotency keys and fingerprints of requests (docs/reference/conventions.md#fingerprint).

use domain::idempotency::{Fingerprint, canonical_request};
use domain::limits::{IDEMPOTENCY_KEY_MAX, IDEMPOTENCY_KEY_MIN};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// What a key is bound to: SHA-256 over method, path template, resolved resource and canonical body. The body is the
/// *parsed* request, an object, with handles in their full form, so that two spellings of one request are one request.
pub fn fingerprint(path_template: &str, resource: &str, body: &Value) -> Fingerprint {
    digest(path_template, resource, body).into()
}

/// The fingerprint of a body whose fields have defaults. `omit_defaults` removes the members that equal their default, so that a
/// request has the same fingerprint whether it sends a default or omits it.
pub fn fingerprint_without_defaults(
    path_template: &str,
    resource: &str,
    mut body: Value,
    omit_defaults: impl FnOnce(&mut Value),
) -> Fingerprint {
    let as_sent = digest(path_template, resource, &body);
    omit_defaults(&mut body);
    Fingerprint { canonical: digest(path_template, resource, &body), as_sent }
}

fn digest(path_template: &str, resource: &str, body: &Value) -> [u8; 32] {
    let body = body.as_object().expect("the body of a parsed request is an object");
    Sha256::digest(canonical_request("POST", path_template, resource, body)).into()
}

/// Returns `true` if a text has the characters and the length of a key.
pub fn is_key(text: &str) -> bool {
    (IDEMPOTENCY_KEY_MIN..=IDEMPOTENCY_KEY_MAX).contains(&text.chars().count())
}
