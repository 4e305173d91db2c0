//! Idempotency keys: what a recorded response is bound to and how it is recreated. Rules:
//! `docs/reference/conventions.md#idempotency`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::canvas::Changes;
use crate::id::AssetHandle;

/// The original result of a request, as far as it cannot be read from the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StoredOutcome {
    /// A batch of operations.
    Operations {
        /// Created id for each `clientId`.
        resolved_ids: BTreeMap<String, String>,
        /// The changes of the batch.
        changes: Changes,
    },
    /// A private workflow: what its batch changed, and the workflow as it was served.
    Workflow {
        /// Created id for each `clientId`.
        resolved_ids: BTreeMap<String, String>,
        /// The changes of the batch.
        changes: Changes,
        /// The workflow's part of the response.
        workflow: Value,
    },
    /// An upload.
    Asset {
        /// The stored asset.
        handle: AssetHandle,
    },
    /// A legacy campaign; a replay serves its present record.
    Campaign {
        /// The campaign.
        id: Uuid,
    },
    /// An import; its record holds the outcome.
    Import {
        /// The import.
        id: Uuid,
    },
    /// A start of work; a replay serves its present record.
    Job {
        /// The job.
        id: Uuid,
        /// The other jobs of a start of several.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more: Vec<Uuid>,
        /// Its last served form without images, once the record is deleted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<Value>,
    },
}

/// The SHA-256 digests that bind a key to one request.
///
/// Earlier releases stored the digest of the request as sent, including members that equal their default. Their keys are kept for
/// 30 days, so a stored digest of either form is accepted. Both are equal for a request without such members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Digest of the request without members that equal their default. This is the digest that is stored.
    pub canonical: [u8; 32],
    /// Digest of the request with all members that were sent.
    pub as_sent: [u8; 32],
}

impl Fingerprint {
    /// Returns `true` if a key with this stored digest was taken by an equal request.
    pub fn matches(&self, stored: &[u8]) -> bool {
        stored == self.canonical || stored == self.as_sent
    }
}

impl From<[u8; 32]> for Fingerprint {
    /// The fingerprint of a request without members that equal their default.
    fn from(digest: [u8; 32]) -> Self {
        Self { canonical: digest, as_sent: digest }
    }
}

/// The text that a fingerprint is computed from: method, path template, resolved resource and canonical body.
///
/// Canonical means: object keys sorted at every level, no white space, `idempotencyKey` omitted at the top level. The
/// caller has replaced handles in `body` by their full form, so that spellings of one request have one fingerprint.
pub fn canonical_request(method: &str, path_template: &str, resource: &str, body: &Map<String, Value>) -> String {
    let mut text = format!("{method}\n{path_template}\n{resource}\n");
    write_object(&mut text, body, true);
    text
}

fn write_object(text: &mut String, object: &Map<String, Value>, top: bool) {
    let sorted: BTreeMap<&String, &Value> = object.iter().filter(|(key, _)| !top || *key != "idempotencyKey").collect();
    text.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Value::String(key.clone()).to_string());
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Object(object) => write_object(text, object, false),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, item);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(body: Value) -> String {
        canonical_request("POST", "/x", "canvas:a:b", body.as_object().expect("an object"))
    }

    #[test]
    fn the_order_of_keys_plays_no_part() {
        assert_eq!(
            canonical(json!({"b": {"y": 1, "x": [2]}, "a": 1})),
            canonical(json!({"a": 1, "b": {"x": [2], "y": 1}}))
        );
    }

    #[test]
    fn the_key_itself_is_left_out_at_the_top_only() {
        assert_eq!(canonical(json!({"idempotencyKey": "one", "a": 1})), canonical(json!({"a": 1})));
        assert_ne!(canonical(json!({"a": {"idempotencyKey": "one"}})), canonical(json!({"a": {}})));
    }

    #[test]
    fn a_digest_that_an_earlier_release_stored_is_accepted() {
        let fingerprint = Fingerprint { canonical: [1; 32], as_sent: [2; 32] };
        assert!(fingerprint.matches(&[1; 32]) && fingerprint.matches(&[2; 32]) && !fingerprint.matches(&[3; 32]));
    }

    #[test]
    fn values_and_their_order_in_arrays_count() {
        assert_ne!(canonical(json!({"a": [1, 2]})), canonical(json!({"a": [2, 1]})));
        assert_ne!(canonical(json!({"a": "1"})), canonical(json!({"a": 1})));
    }
}
