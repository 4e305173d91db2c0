//! The memory that received bodies take: an estimate before parsing, and budgets to wait for.
//!
//! **Guarantee.** In one process, the values made of large bodies take at most 256 MiB, and the violations of rejected ones at most
//! 64 MiB, whatever they contain. Messages to `/mcp` take at most 128 MiB, and what their tools read as much. One account holds at
//! most half of a budget, unless a single body is larger. A body that alone would exceed the budget is rejected with 413 before it
//! is parsed. A body of at most [`FREE`] bytes whose value takes at most [`FREE_VALUE`] waits for nobody.
//!
//! **Mechanism.** [`weigh`] computes what `serde_json` will allocate. Twice that amount is reserved, since a body is copied once
//! more when it is brought to its canonical form, and it is held as long as the value lives. There are four budgets, so that a
//! request that holds one of them does not wait for requests that wait for the same one. Only a tool that reads several answers
//! does; it is refused after the usual time. Violations are reserved only while they are computed, which no request interrupts.
//!
//! **Reason.** A body of 16 MiB can become 1.6 GB, and one account must not make the small requests of all others wait.

use std::sync::LazyLock;

use domain::id::AccountUid;
use serde_json::Value;
use service::admission::{ByteBudget, MemoryPermit, SharePermit, SharedBudget};
use service::json::weigh;

use super::receive::FREE;
use crate::admission::admitted;
use crate::problem::{Problem, Result};

/// Reservations are multiples of this many bytes, which covers what a short buffer allocates ahead.
const BLOCK: u64 = 64 * 1024;
/// Bytes of the value of a short body that nobody waits for: several times what an ordinary body of [`FREE`] bytes takes.
const FREE_VALUE: u64 = 1024 * 1024;
/// Budget for parsed values.
static VALUES: LazyLock<SharedBudget> = LazyLock::new(|| half_each(256 * 1024 * 1024));
/// Budget for messages, which are held while requests that they cause take of the others.
static MESSAGES: LazyLock<SharedBudget> = LazyLock::new(|| half_each(128 * 1024 * 1024));
/// Budget for the answers that tools read.
static ANSWERS: LazyLock<SharedBudget> = LazyLock::new(|| half_each(128 * 1024 * 1024));
/// Budget for the violations of rejected bodies.
static REFUSALS: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(64 * 1024 * 1024));
/// Copies of a body's content that exist at the same time, at most.
const COPIES: u64 = 2;
/// Bytes that the violations of one value take, at most.
const VALUE_VIOLATIONS: u64 = 1024;
/// Copies of a text in the violations of its schema, at most: one for each form of a value with several forms, and one of the value.
const TEXT_COPIES: u64 = 3;

/// Why a body is refused that waited in vain.
pub(super) const CROWDED: &str = "too many large bodies at once";

/// A budget of which one account holds at most half.
fn half_each(bytes: u64) -> SharedBudget {
    SharedBudget::new(bytes, bytes / 2)
}

/// The memory that a parsed body takes; nothing for a small one.
pub type BodyPermit = Option<SharePermit>;

/// Memory of `account` for the value parsed from a body; 413 when it exceeds the whole budget.
pub(super) async fn for_value(account: Option<&AccountUid>, text: &[u8]) -> Result<BodyPermit> {
    for_parsed(&VALUES, account, text).await
}

/// The same for a message.
pub(super) async fn for_message(account: Option<&AccountUid>, text: &[u8]) -> Result<BodyPermit> {
    for_parsed(&MESSAGES, account, text).await
}

/// The same for an answer that a tool reads.
pub async fn for_answer(account: Option<&AccountUid>, text: &[u8]) -> Result<BodyPermit> {
    for_parsed(&ANSWERS, account, text).await
}

async fn for_parsed(budget: &SharedBudget, account: Option<&AccountUid>, text: &[u8]) -> Result<BodyPermit> {
    let bytes = COPIES * weigh(text);
    if bytes > budget.total_bytes() {
        return Err(Problem::PayloadTooHeavy);
    }
    if text.len() <= FREE && bytes <= FREE_VALUE {
        return Ok(None);
    }
    let key = account.map_or("", AccountUid::as_str);
    Ok(Some(admitted(budget.acquire(key, bytes.next_multiple_of(BLOCK)), CROWDED).await?))
}

/// Memory for the violations of `value`; `None` when they could exceed the whole budget.
pub(super) async fn for_violations(value: &Value) -> Result<Option<MemoryPermit>> {
    let bytes = violations_bytes(value);
    if bytes > REFUSALS.total_bytes() {
        return Ok(None);
    }
    admitted(REFUSALS.acquire(bytes.next_multiple_of(BLOCK)), CROWDED).await.map(Some)
}

/// The memory that the violations of `value` take, at most. No schema describes what is in `custom`.
pub fn violations_bytes(value: &Value) -> u64 {
    let within = match value {
        Value::String(text) => TEXT_COPIES * text.len() as u64,
        Value::Array(items) => items.iter().map(violations_bytes).sum(),
        Value::Object(fields) => {
            let described = fields.iter().filter(|(key, _)| *key != "custom");
            described.map(|(key, field)| TEXT_COPIES * key.len() as u64 + violations_bytes(field)).sum()
        }
        _ => 0,
    };
    VALUE_VIOLATIONS + within
}

#[cfg(test)]
mod tests {
    use domain::limits::OPERATIONS_BODY_MAX;
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::counting::peak_of;

    const MIB: usize = 1024 * 1024;

    /// The estimated and the measured bytes of a text.
    fn said_and_taken(text: &str) -> (u64, u64) {
        (weigh(text.as_bytes()), peak_of(|| serde_json::from_str::<Value>(text)))
    }

    #[test]
    fn no_text_takes_more_than_is_said_of_it() {
        let fields = |keys: &mut dyn Iterator<Item = usize>| {
            let fields: Vec<String> = keys.map(|key| format!("\"{key:05}\":{key}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        let many = |piece: &str, count: usize| format!("[{}]", vec![piece; count].join(","));
        for text in [
            many(r#"{"":0}"#, 10_000),
            many("[0]", 10_000),
            many("[[[[[]]]]]", 1000),
            many("{ }", 10_000),
            many("0", 100_001),
            many(r#""""#, 10_000),
            many(r#""a""#, 10_000),
            many(r#"{"x":123.25,"y":"a\u0041\n"}"#, 10_000),
            many(&fields(&mut (0..12)), 100),
            many(&fields(&mut (0..13).rev()), 100),
            fields(&mut (0..20_000)),
            fields(&mut (0..20_000).rev()),
            fields(&mut (0..20_000).map(|key| key * 7919 % 20_000)),
            format!("\"{}\"", "x".repeat(MIB)),
            format!("\"{}\"", "\\n".repeat(MIB / 2)),
            format!("{}1{}", "[".repeat(120), "]".repeat(120)),
            // Malformed JSON costs what was parsed before the error.
            format!("[{}", r#"{"a":[1,"b"]},"#.repeat(1000)),
            "[".repeat(100_000),
            format!("\"{}", "x".repeat(MIB)),
            r#""\"#.to_owned(),
            String::new(),
        ] {
            let (said, taken) = said_and_taken(&text);
            assert!(taken <= said, "{taken} of {said}: {}", &text[..text.len().min(60)]);
        }
    }

    #[test]
    fn little_more_is_said_of_a_body_than_it_takes() {
        let node = |title: &str| {
            json!({"type": "node.create", "node": {"type": "text", "title": title, "position": {"x": 0, "y": 1.5},
                "metadata": {"content": "c".repeat(500), "custom": {"points": [1, 2, 3], "by": {"name": "n"}}}}})
        };
        let batch = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![node("t"); 200]});
        let (said, taken) = said_and_taken(&batch.to_string());
        assert!(taken <= said && said <= taken * 3 / 2, "{taken} of {said}");
    }

    #[tokio::test]
    async fn the_largest_bodies_are_taken_and_those_that_become_too_large_are_not() {
        let hostile = format!("[{}]", vec![r#"{"":0}"#; 2_300_000].join(","));
        assert!(hostile.len() < OPERATIONS_BODY_MAX);
        assert!(matches!(for_value(None, hostile.as_bytes()).await, Err(Problem::PayloadTooHeavy)));
        let custom = json!({"text": "x".repeat(63 * 1024), "more": [1, 2.5, null, {"a": "b"}]});
        let create = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0},
            "metadata": {"custom": custom}}});
        let batch = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![create; 200]});
        assert!(for_value(None, batch.to_string().as_bytes()).await.is_ok());
        // Neither does a body of another kind, even of the costliest values.
        let worst = format!("[{}]", vec![r#"{"":0}"#; domain::limits::JSON_BODY_MAX / 7].join(","));
        assert!(for_value(None, worst.as_bytes()).await.is_ok());
    }
    #[tokio::test]
    async fn a_small_body_waits_for_nobody_and_a_large_one_for_its_own_account() {
        let account = |name: &str| AccountUid::try_from(name.to_owned()).expect("valid");
        let budget = half_each(4 * FREE_VALUE);
        let ask = async |name: &str, text: &str| {
            let permit = for_parsed(&budget, Some(&account(name)), text.as_bytes()).await;
            permit.expect("is free").is_some()
        };
        let small = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(!ask("a", &small(FREE)).await);
        assert!(ask("a", &small(FREE + 1)).await);
        let heavy = format!("[{}]", vec![r#"{"":0}"#; FREE / 7 - 1].join(","));
        assert!(heavy.len() <= FREE && COPIES * weigh(heavy.as_bytes()) > FREE_VALUE, "64 KiB may become megabytes");

        let _all = budget.acquire("a", 2 * FREE_VALUE).await;
        assert!(!ask("a", &small(FREE)).await, "not even for its own account");
        assert!(ask("b", &small(FREE + 1)).await);
        assert!(ask("a", &small(FREE + 1)).now_or_never().is_none(), "the account has half of it");
        let _rest = budget.acquire("b", 2 * FREE_VALUE).await;
        assert!(!ask("c", &small(FREE)).await);
    }
}
