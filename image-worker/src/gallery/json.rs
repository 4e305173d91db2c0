//! Parses the JSON in a page within a limit on memory.
//!
//! **Guarantee.** A parsed text takes at most [`WEIGHT_MAX`] bytes. A text that may take more is ignored.
//!
//! **Mechanism.** [`weigh`] gives an upper bound before parsing.
//!
//! **Reason.** Small objects take a hundred times the size of their text: 5 MiB of them become half a gigabyte.

use serde_json::Value;
use service::json::weigh;

/// Maximum memory of the JSON that is parsed at the same time, in bytes. Page states of large shops take half of it.
pub const WEIGHT_MAX: u64 = 64 * 1024 * 1024;

/// Parses a text that takes at most [`WEIGHT_MAX`] bytes.
pub fn parse(text: &str) -> Option<Value> {
    parse_within(text, &mut { WEIGHT_MAX })
}

/// Parses a text that takes at most `left` bytes, and subtracts its weight: for documents that exist at the same time.
pub fn parse_within(text: &str, left: &mut u64) -> Option<Value> {
    let rest = left.checked_sub(weigh(text.as_bytes()))?;
    let document = serde_json::from_str(text).ok()?;
    *left = rest;
    Some(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_too_much_is_not_parsed() {
        let list = |count: usize| format!("[{}0]", r#"{"":0},"#.repeat(count));
        assert!(parse(&list(50_000)).is_some());
        assert_eq!(parse(&list(150_000)), None);
        assert!(
            parse(&format!("\"{}\"", "x".repeat(5 * 1024 * 1024))).is_some(),
            "text takes little more than its size"
        );
    }

    #[test]
    fn only_what_is_parsed_counts() {
        let text = r#"{"a":[1,2]}"#;
        let weight = weigh(text.as_bytes());
        let mut left = 2 * weight;
        assert_eq!(parse_within(r#"{"a":[1,2}"#, &mut left), None);
        assert!(parse_within(text, &mut left).is_some() && parse_within(text, &mut left).is_some());
        assert_eq!((parse_within(text, &mut left), left), (None, 0));
    }
}
