//! Idempotency keys: what an answer is bound to and how it is found again (decisions 1.12).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::canvas::Changes;
use crate::id::AssetHandle;

/// The original result of a request, as far as it cannot be read from the state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// A batch of operations.
    Operations {
        /// From `clientId` to the id that was made.
        resolved_ids: BTreeMap<String, String>,
        /// What it changed.
        changes: Changes,
    },
    /// A private workflow: what its batch did, and the workflow as it was told.
    Workflow {
        /// From `clientId` to the id that was made.
        resolved_ids: BTreeMap<String, String>,
        /// What it changed.
        changes: Changes,
        /// The workflow's part of the answer.
        workflow: Value,
    },
    /// An upload.
    Asset {
        /// What it stored.
        handle: AssetHandle,
    },
    /// A legacy campaign; the answer is the record as it is now.
    Campaign {
        /// The campaign.
        id: Uuid,
    },
    /// An import; its record holds what came of it.
    Import {
        /// The import.
        id: Uuid,
    },
    /// A start of work; the answer is the record as it is now.
    Job {
        /// The job.
        id: Uuid,
        /// Its last served form without images, once the record is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<Value>,
    },
}

/// The bytes that a fingerprint is taken of: method, path template, resolved resource and canonical body.
///
/// Canonical means: object keys sorted at every level, no white space, `idempotencyKey` left out at the top.
/// Handles in `body` are brought to their full form before (decisions 18.2).
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
    fn values_and_their_order_in_arrays_count() {
        assert_ne!(canonical(json!({"a": [1, 2]})), canonical(json!({"a": [2, 1]})));
        assert_ne!(canonical(json!({"a": "1"})), canonical(json!({"a": 1})));
    }
}
