//! The memory that bodies take: an estimate before parsing, and budgets to wait for.
//!
//! **Guarantee.** In one process, bodies being received take at most 128 MiB, the values made of them at most 256 MiB, and the
//! violations of rejected ones at most 64 MiB, whatever they contain. Messages to `/mcp` take at most 256 MiB. A body that alone would exceed the budget is rejected with 413
//! before it is parsed.
//!
//! **Mechanism.** One pass over the bytes computes what `serde_json` will allocate for each object, array, key and string. Twice
//! that amount is reserved, since a body is copied once more when it is brought to its canonical form, and it is held as long as
//! the value lives. There are four budgets, so that a request that holds one of them never waits for requests that wait for the
//! same one.
//!
//! **Reason.** `{"":0},` is seven bytes on the wire and about 700 in memory: 16 MiB of it are 1.6 GB.

use std::sync::LazyLock;

use domain::limits::OPERATIONS_BODY_MAX;
use serde_json::Value;
use service::admission::{ByteBudget, MemoryPermit};

use crate::admission::admitted;
use crate::problem::{Problem, Result};

/// Reservations are multiples of this many bytes, which covers what a short buffer allocates ahead.
const BLOCK: u64 = 64 * 1024;
/// Budget for bodies being received: eight of the largest.
static TEXTS: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(8 * OPERATIONS_BODY_MAX as u64));
/// Budget for parsed values.
static VALUES: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(256 * 1024 * 1024));
/// Budget for messages, which are held while requests that they cause take of the others.
static MESSAGES: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(256 * 1024 * 1024));
/// Budget for the violations of rejected bodies.
static REFUSALS: LazyLock<ByteBudget> = LazyLock::new(|| ByteBudget::new(64 * 1024 * 1024));
/// Copies of a body's content that exist at the same time, at most.
const COPIES: u64 = 2;
/// Copies of a value that the violations of its schema can hold.
pub const REFUSAL_COPIES: u64 = 52;

async fn reserve(budget: &ByteBudget, bytes: u64) -> Result<MemoryPermit> {
    admitted(budget.acquire(bytes.max(1).next_multiple_of(BLOCK)), "too many large bodies at once").await
}

/// Memory to receive a body of `bytes`.
pub(super) async fn for_text(bytes: u64) -> Result<MemoryPermit> {
    reserve(&TEXTS, bytes).await
}

/// Memory for the value parsed from a body; 413 when it exceeds the whole budget.
pub(super) async fn for_value(text: &[u8]) -> Result<MemoryPermit> {
    for_parsed(&VALUES, text).await
}

/// The same for a message.
pub(super) async fn for_message(text: &[u8]) -> Result<MemoryPermit> {
    for_parsed(&MESSAGES, text).await
}

async fn for_parsed(budget: &ByteBudget, text: &[u8]) -> Result<MemoryPermit> {
    let bytes = COPIES * weigh(text);
    if bytes > budget.total_bytes() {
        return Err(Problem::PayloadTooHeavy);
    }
    reserve(budget, bytes).await
}

/// Whether the budget for violations admits those of `value` as a whole.
pub(super) fn admits_copies(value: &Value) -> bool {
    REFUSAL_COPIES * weight_of(value) <= REFUSALS.total_bytes()
}

/// Memory for the violations of `value`, which [`admits_copies`] has admitted.
pub(super) async fn for_copies(value: &Value) -> Result<MemoryPermit> {
    reserve(&REFUSALS, REFUSAL_COPIES * weight_of(value)).await
}

/// Overhead of an allocation, and its minimum size.
const CHUNK: u64 = 16;
const CHUNK_LEAST: u64 = 32;
const VALUE: u64 = size_of::<Value>() as u64;
/// The minimum that parsing takes, including the error message for malformed JSON.
const LEAST: u64 = 1024;
/// A leaf of the `BTreeMap` behind an object, with its eleven slots, and an inner node with its edges.
const LEAF: u64 = 11 * (size_of::<String>() as u64 + VALUE) + 24;
const INNER: u64 = LEAF + 12 * 8;
/// Capacity of an array after its first item.
const ITEMS_LEAST: u64 = 4;
/// The depth at which `serde_json` rejects a text and stops.
const DEPTH_MAX: usize = 128;

/// An object or array that is still open, with its fields or items so far.
#[derive(Clone, Copy)]
enum Open {
    Object(u64),
    List(u64),
}

impl Open {
    /// Bytes that one more field or item takes.
    fn grow(&mut self) -> u64 {
        match self {
            // A full node splits; each half holds at least five fields.
            Open::Object(fields) => {
                *fields += 1;
                match *fields {
                    12 => LEAF + INNER,
                    fields if fields > 12 && fields % 5 == 2 => LEAF + INNER / 5,
                    _ => 0,
                }
            }
            // A full array moves to one of twice the capacity.
            Open::List(items) => {
                *items += 1;
                let before = *items - 1;
                if before >= ITEMS_LEAST && before.is_power_of_two() { before * VALUE } else { 0 }
            }
        }
    }
}

fn text_weight(bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { CHUNK_LEAST.max(bytes as u64 + CHUNK) }
}

/// Upper bound of the memory that parsing a JSON text takes, during parsing and afterwards. For malformed JSON: until the parser
/// finds the error.
pub(super) fn weigh(text: &[u8]) -> u64 {
    let mut open = [Open::List(0); DEPTH_MAX];
    let mut depth = 0;
    let mut weight = LEAST;
    // A string with escapes is assembled in a buffer that is kept.
    let mut longest = 0;
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => {
                let before = rest.len();
                while let Some(byte) = rest.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(rest.next()),
                        _ => {}
                    }
                }
                let bytes = (before - rest.len()).saturating_sub(1);
                longest = longest.max(bytes);
                weight += text_weight(bytes);
            }
            b'{' | b'[' => {
                let Some(level) = open.get_mut(depth) else { break };
                depth += 1;
                let (opened, first) = match byte {
                    b'{' => (Open::Object(1), LEAF),
                    _ => (Open::List(1), ITEMS_LEAST * VALUE + CHUNK),
                };
                let next = rest.as_slice().iter().find(|byte| !byte.is_ascii_whitespace());
                *level = opened;
                weight += if matches!(next, Some(b'}' | b']')) { 0 } else { first };
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => weight += depth.checked_sub(1).map_or(0, |level| open[level].grow()),
            _ => {}
        }
    }
    weight + 2 * longest as u64
}

/// The same for a value that is parsed already.
pub(super) fn weight_of(value: &Value) -> u64 {
    VALUE
        + match value {
            Value::String(text) => text_weight(text.len()),
            Value::Array(items) => CHUNK + items.iter().map(weight_of).sum::<u64>(),
            Value::Object(fields) => {
                let nodes = 1 + fields.len() as u64 / 5;
                nodes * LEAF + fields.iter().map(|(key, field)| text_weight(key.len()) + weight_of(field)).sum::<u64>()
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
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
        assert!(matches!(for_value(hostile.as_bytes()).await, Err(Problem::PayloadTooHeavy)));
        let custom = json!({"text": "x".repeat(63 * 1024), "more": [1, 2.5, null, {"a": "b"}]});
        let create = json!({"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0},
            "metadata": {"custom": custom}}});
        let batch = json!({"baseRevision": "r", "idempotencyKey": "12345678", "operations": vec![create; 200]});
        assert!(for_value(batch.to_string().as_bytes()).await.is_ok());
        // Neither does a body of another kind, even of the costliest values.
        let worst = format!("[{}]", vec![r#"{"":0}"#; domain::limits::JSON_BODY_MAX / 7].join(","));
        assert!(for_value(worst.as_bytes()).await.is_ok());
    }
}
