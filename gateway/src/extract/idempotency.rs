//! Fingerprints of requests (decisions 1.12).

use db::idempotency::Taken;
use domain::idempotency::{Outcome, canonical_request};
use domain::limits::{IDEMPOTENCY_KEY_MAX, IDEMPOTENCY_KEY_MIN};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::problem::{Problem, Result};

/// What a key is bound to: SHA-256 over method, path template, resolved resource and canonical body. The body is the
/// *parsed* request, an object, with handles in their full form, so that two spellings of one request are one request.
pub fn fingerprint(path_template: &str, resource: &str, body: &Value) -> [u8; 32] {
    let body = body.as_object().expect("the body of a parsed request is an object");
    Sha256::digest(canonical_request("POST", path_template, resource, body)).into()
}

/// `None` when the key is the caller's own now, the outcome of an equal request, or a conflict.
pub fn replay(taken: Taken) -> Result<Option<Outcome>> {
    match taken {
        Taken::Fresh => Ok(None),
        Taken::Replay(outcome) => Ok(Some(outcome)),
        Taken::Conflict => Err(Problem::Conflict("the idempotency key was used for a different request".into(), None)),
    }
}

/// Whether a text can be a key, in characters.
pub fn is_key(text: &str) -> bool {
    (IDEMPOTENCY_KEY_MIN..=IDEMPOTENCY_KEY_MAX).contains(&text.chars().count())
}
