//! The memory that parsed JSON takes, estimated before parsing.
//!
//! **Guarantee.** [`weigh`] is an upper bound for a [`Value`], whatever the text contains.
//!
//! **Mechanism.** One pass over the bytes computes what `serde_json` will allocate for each object, array, key and string. The
//! gateway's tests compare the result with what an allocator counts.
//!
//! **Reason.** `{"":0},` is seven bytes of text and about 700 in memory.

use serde_json::Value;

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

/// The memory that parsing a JSON text takes, at most. For malformed JSON: until the parser finds the error.
#[derive(Clone, Copy, Debug)]
pub struct Weight {
    /// Bytes of the value.
    pub value: u64,
    /// Bytes in addition while the text is parsed.
    pub parsing: u64,
}

impl Weight {
    /// Bytes in all.
    pub fn total(self) -> u64 {
        self.value + self.parsing
    }
}

/// Upper bound of the memory that parsing a JSON text takes, during parsing and afterwards.
pub fn weigh(text: &[u8]) -> Weight {
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
    Weight { value: weight, parsing: 2 * longest as u64 }
}
