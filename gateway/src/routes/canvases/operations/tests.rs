//! Rejected bodies take no more memory than is reserved for them.

use domain::Violation;
use serde_json::json;

use super::*;
use crate::counting::peak_of;
use crate::extract::json::{judge, violations_bytes};

fn judged(body: Value) -> Result<ApplyOperations> {
    judge(body, Ok)
}

fn batch(operation: &Value) -> Value {
    json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 50]})
}

/// The peak memory of a body's rejection, and what is reserved for it.
fn taken_and_reserved(operation: &Value) -> (u64, u64) {
    // The schema is compiled at its first use.
    assert!(judged(json!({})).is_err());
    let body = batch(operation);
    let reserved = violations_bytes(&body);
    (peak_of(|| assert!(judged(body).is_err())), reserved)
}

#[test]
fn a_refusal_takes_no_more_than_is_reserved_for_it() {
    let text = "x".repeat(20_000);
    let node = |more: Value| json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": more});
    let unknown: serde_json::Map<_, _> = (0..900).map(|at| (format!("k{at}"), json!(at))).collect();
    for operation in [
        json!({"type": "node.create", "node": node(json!({"content": text})), "surplus": 1}),
        json!({"type": "absent", "node": node(json!({"content": text}))}),
        json!({"type": 0}),
        json!({}),
        json!(0),
        json!({"a": text}),
        json!({"type": text}),
        json!([text]),
        json!({"type": "layout.arrange", "nodeIds": vec![0; 900]}),
        json!({"type": "layout.arrange", "nodeIds": vec![&text[..200]; 900]}),
        json!({"type": "connection.update", "connectionId": text, "role": text}),
        json!({"type": "node.update", "nodeId": "n", "patch": {"surplus": text}}),
        json!({"type": "node.update", "nodeId": "n", "patch": unknown}),
    ] {
        let (taken, reserved) = taken_and_reserved(&operation);
        println!("{taken} of {reserved}: {:.60}", operation.to_string());
        assert!(taken <= reserved, "{taken} of {reserved}: {:.60}", operation.to_string());
    }
}

#[test]
fn what_is_in_custom_is_not_copied_for_a_refusal() {
    let custom = json!({"a": "x".repeat(60_000)});
    let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"custom": custom}});
    let (taken, reserved) = taken_and_reserved(&json!({"type": "node.create", "node": node, "surplus": 1}));
    assert!(taken <= reserved && reserved < 1_000_000, "{taken} of {reserved}");
}

#[test]
fn a_large_body_is_refused_with_the_place_of_its_mistakes() {
    let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"content": "x".repeat(60_000)}});
    let operation = json!({"type": "node.create", "node": node, "surplus": 1});
    let body = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 200]});
    let refused = judged(body).err();
    let is_last = |violation: &Violation| violation.field == "operations[199].surplus";
    assert!(matches!(refused, Some(Problem::Invalid(reported)) if reported.iter().any(is_last)));
}
