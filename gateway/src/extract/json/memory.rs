//! The memory that bodies take, and the shares of it that they wait for.
//!
//! **Guarantee.** Bodies that are being received take at most 128 MiB in one process and what is made of them at most 256 MiB,
//! whatever is in them. A body that would need more than all of that by itself is refused (413) before it is parsed.
//!
//! **Mechanism.** One look at the bytes says what `serde_json` will make of them: so much for each object, list, key and text.
//! Twice that is reserved, since a body is copied once more where it is brought to its canonical form, and held as long as the
//! value lives. There are two budgets, so that who holds one of them never waits for others who wait for the same.
//!
//! **Reason.** `{"":0},` is seven bytes on the wire and some 700 in memory: 16 MiB of it are 1.6 GB.

use domain::limits::OPERATIONS_BODY_MAX;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::{Problem, Result};
use crate::turnstile::admitted;

/// Bytes of one share.
const UNIT: u64 = 64 * 1024;
/// For bodies as they are received: eight of the largest.
static TEXTS: Budget = Budget::new(8 * OPERATIONS_BODY_MAX as u64);
/// For what is made of them.
static VALUES: Budget = Budget::new(256 * 1024 * 1024);
/// How often what is in a body lies in memory at most while it is handled.
const COPIES: u64 = 2;

/// A share of the memory for bodies; given back when it is dropped.
pub struct Share {
    _permit: SemaphorePermit<'static>,
}

struct Budget {
    bytes: u64,
    shares: Semaphore,
}

/// Shares of so many bytes; every body takes one at least.
const fn units(bytes: u64) -> u32 {
    let units = bytes.div_ceil(UNIT);
    match units {
        0 => 1,
        _ if units > u32::MAX as u64 => u32::MAX,
        _ => units as u32,
    }
}

impl Budget {
    const fn new(bytes: u64) -> Self {
        Self { bytes, shares: Semaphore::const_new(units(bytes) as usize) }
    }

    async fn reserve(&'static self, bytes: u64) -> Result<Share> {
        let permit = admitted(self.shares.acquire_many(units(bytes)), "too many large bodies at once").await?;
        Ok(Share { _permit: permit })
    }

    fn try_reserve(&'static self, bytes: u64) -> Option<Share> {
        Some(Share { _permit: self.shares.try_acquire_many(units(bytes)).ok()? })
    }
}

/// A share for a body of so many bytes that is to be received.
pub(super) async fn for_text(bytes: u64) -> Result<Share> {
    TEXTS.reserve(bytes).await
}

/// A share for what will be made of a body; 413 for one that needs more than there is.
pub(super) async fn for_value(text: &[u8]) -> Result<Share> {
    let bytes = COPIES * weigh(text);
    if bytes > VALUES.bytes {
        return Err(Problem::PayloadTooHeavy);
    }
    VALUES.reserve(bytes).await
}

/// A share for as many copies of a value, if it is to be had at once.
pub(super) fn for_copies(value: &Value, copies: u64) -> Option<Share> {
    VALUES.try_reserve(copies * weight_of(value))
}

/// What an allocation takes beyond its bytes, and at least.
const CHUNK: u64 = 16;
const CHUNK_LEAST: u64 = 32;
const VALUE: u64 = size_of::<Value>() as u64;
/// What parsing anything takes, be it to say why it cannot be parsed.
const LEAST: u64 = 1024;
/// A node of the `BTreeMap` that an object is, with its eleven places, and one that has further nodes below it.
const LEAF: u64 = 11 * (size_of::<String>() as u64 + VALUE) + 24;
const INNER: u64 = LEAF + 12 * 8;
/// Places of a list at its first item.
const ITEMS_LEAST: u64 = 4;
/// Where `serde_json` refuses to go deeper, and stops.
const DEPTH_MAX: usize = 128;

/// An object or a list that is open, with the fields or items so far.
#[derive(Clone, Copy)]
enum Open {
    Object(u64),
    List(u64),
}

impl Open {
    /// What one field or item more takes.
    fn grow(&mut self) -> u64 {
        match self {
            // A full node is split, and the halves are never less than five fields.
            Open::Object(fields) => {
                *fields += 1;
                match *fields {
                    12 => LEAF + INNER,
                    fields if fields > 12 && fields % 5 == 2 => LEAF + INNER / 5,
                    _ => 0,
                }
            }
            // A full list is moved to one of twice its places.
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

/// Bytes of memory that the parsed form of a JSON text takes at most while it is made and afterwards. Of what is no JSON: until
/// the parser finds that out.
pub(super) fn weigh(text: &[u8]) -> u64 {
    let mut open = [Open::List(0); DEPTH_MAX];
    let mut depth = 0;
    let mut weight = LEAST;
    // A text with escapes is put together in a buffer that stays.
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

/// The same of a value that is there.
fn weight_of(value: &Value) -> u64 {
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

    /// What a text is said to take, and what it does take.
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
            // What is no JSON costs what was made of it before.
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
        // And so is a body of another kind, even of what takes most.
        let worst = format!("[{}]", vec![r#"{"":0}"#; domain::limits::JSON_BODY_MAX / 7].join(","));
        assert!(for_value(worst.as_bytes()).await.is_ok());
    }
}
