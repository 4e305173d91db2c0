//! Rejected bodies take no more memory than is reserved for them.

use serde_json::json;

use super::*;
use crate::counting::peak_of;
use crate::extract::json::{REFUSAL_COPIES, block_on, validate};

fn judged(body: Value) -> Result<ApplyOperations> {
    block_on(validate(body, Ok))
}

fn batch(operation: &Value) -> Value {
    json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 50]})
}

/// The peak memory of a body's rejection, as a multiple of the body's size.
fn copies_to_refuse(operation: &Value) -> f64 {
    // The schema is compiled at its first use.
    assert!(judged(json!({})).is_err());
    let body = batch(operation);
    let bytes = body.to_string().len();
    peak_of(|| assert!(judged(body).is_err())) as f64 / bytes as f64
}

/// A rejected body is copied for each form that it does not match, and memory for these copies is reserved.
#[test]
fn a_refusal_takes_no_more_than_is_reserved_for_it() {
    let text = "x".repeat(20_000);
    let node = |more: Value| json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": more});
    for operation in [
        json!({"type": "node.create", "node": node(json!({"content": text})), "surplus": 1}),
        json!({"type": "absent", "node": node(json!({"content": text}))}),
        json!({"a": text}),
        json!({"type": text}),
        json!([text]),
        json!({"type": "node.update", "nodeId": "n", "patch": {"surplus": text}}),
    ] {
        let copies = copies_to_refuse(&operation);
        println!("{copies:.1} copies: {:.60}", operation.to_string());
        assert!(copies <= REFUSAL_COPIES as f64, "{copies} copies: {:.60}", operation.to_string());
    }
}

#[test]
fn what_is_in_custom_is_copied_once_for_a_refusal() {
    let custom = json!({"a": "x".repeat(60_000)});
    let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"custom": custom}});
    let copies = copies_to_refuse(&json!({"type": "node.create", "node": node, "surplus": 1}));
    assert!(copies <= 1.1, "{copies} copies");
}

#[test]
fn a_large_body_is_refused_within_the_memory_there_is() {
    let node = json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": {"content": "x".repeat(60_000)}});
    let operation = json!({"type": "node.create", "node": node, "surplus": 1});
    let body = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![operation; 200]});
    let peak = peak_of(|| {
        let refused = judged(body).err();
        let is_last = |violation: &Violation| violation.field == "operations[199].surplus";
        assert!(matches!(refused, Some(Problem::Invalid(reported)) if reported.iter().any(is_last)));
    });
    assert!(peak <= 64 * 1024 * 1024, "{peak}");
}
