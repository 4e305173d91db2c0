//! Parses the JSON in a page within a limit on memory.
//!
//! **Guarantee.** A parsed text takes at most [`WEIGHT_MAX`] bytes. A text that may take more is ignored.
//!
//! **Mechanism.** [`weigh`] gives an upper bound before parsing.
//!
//! **Reason.** Small objects take a hundred times the size of their text: 5 MiB of them become half a gigabyte.

use serde_json::{Deserializer, Value};
use service::json::weigh;

/// Maximum memory of the JSON that is parsed at the same time, in bytes. Page states of large shops take half of it.
pub const WEIGHT_MAX: u64 = 64 * 1024 * 1024;

/// Parses a text that takes at most [`WEIGHT_MAX`] bytes: its first value.
pub fn parse(text: &str) -> Option<Value> {
    values(text, &mut { WEIGHT_MAX }).into_iter().next()
}

/// The values of a text that take at most `left` bytes, and subtracts their weight: for documents that exist at the same time. A
/// text that is no JSON is [repaired](repaired); what follows the first mistake that remains is ignored.
pub fn values(text: &str, left: &mut u64) -> Vec<Value> {
    let Some(rest) = left.checked_sub(weigh(text.as_bytes()).total()) else { return Vec::new() };
    if let Ok(value) = serde_json::from_str(text) {
        *left = rest;
        return vec![value];
    }
    let text = repaired(text);
    let Some(rest) = left.checked_sub(weigh(text.as_bytes()).total()) else { return Vec::new() };
    let values: Vec<Value> = Deserializer::from_str(&text).into_iter().map_while(Result::ok).collect();
    if !values.is_empty() {
        *left = rest;
    }
    values
}

/// The JSON that a text is meant to be. Repairs what templates and scripts of shops leave in it: comments, CDATA marks and byte order
/// marks, line breaks in strings, unknown escapes and halves of surrogate pairs, commas too many, `NaN` and `undefined`, names
/// without quotes, semicolons and commas between values, and quotes that are escaped like markup.
fn repaired(text: &str) -> String {
    if !text.contains('"') && text.contains("&quot;") {
        return repaired(&text.replace("&quot;", "\"").replace("&amp;", "&"));
    }
    let mut out = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    // Where the last token ends, before white space.
    let mut end = 0;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string(rest, &mut out),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '/' if rest.starts_with("//") => line_comment(rest),
            '<' | '-' | ']' if mark(rest).is_some() => mark(rest).map_or(1, str::len),
            ',' | ';' => {
                if depth > 0 && !out[..end].ends_with([',', '[', '{']) {
                    out.push(',');
                }
                1
            }
            '}' | ']' => {
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
                depth = depth.saturating_sub(1);
                out.push(first);
                1
            }
            'a'..='z' | 'A'..='Z' | '_' | '$' if !out.ends_with(|c: char| c.is_ascii_digit() || c == '.') => {
                word(rest, &mut out)
            }
            c if c.is_whitespace() || c.is_control() || c == '\u{feff}' => {
                out.push(' ');
                c.len_utf8()
            }
            c => {
                depth += usize::from(matches!(c, '{' | '['));
                out.push(c);
                c.len_utf8()
            }
        };
        if !out.ends_with(' ') {
            end = out.len();
        }
        rest = &rest[length..];
    }
    out
}

/// A mark around the text of a script.
fn mark(text: &str) -> Option<&'static str> {
    ["<![CDATA[", "]]>", "<!--", "-->"].into_iter().find(|mark| text.starts_with(mark))
}

/// The length of a comment to the end of its line, or to a mark in it, which the text follows.
fn line_comment(text: &str) -> usize {
    let inner = text[2..].trim_start_matches([' ', '\t']);
    match mark(inner) {
        Some(_) => text.len() - inner.len(),
        None => text.find('\n').unwrap_or(text.len()),
    }
}

/// Repairs the string at the beginning of a text; returns its length.
fn string(text: &str, out: &mut String) -> usize {
    out.push('"');
    let mut at = 1;
    while let Some(c) = text[at..].chars().next() {
        at += c.len_utf8();
        match c {
            '"' => {
                out.push('"');
                return at;
            }
            '\\' => at += escape(&text[at..], out),
            c => out.push(if c.is_control() { ' ' } else { c }),
        }
    }
    at
}

/// Repairs the escape whose backslash precedes a text; returns its length. Without a meaning, it stands for its character.
fn escape(text: &str, out: &mut String) -> usize {
    let unit = |at: usize| {
        let digits = text.get(at..at + 5)?.strip_prefix('u')?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    match text.bytes().next() {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
            out.extend(['\\', char::from(text.as_bytes()[0])]);
            1
        }
        Some(b'u') if let Some(first) = unit(0) => {
            let second = unit(6).filter(|_| text.as_bytes()[5] == b'\\');
            let pair =
                second.filter(|second| char::decode_utf16([first, *second]).all(|c| c.is_ok()) && first >= 0xd800);
            let (kept, length) = match (pair, first) {
                (Some(_), 0xd800..0xdc00) => (&text[..11], 11),
                (_, 0xd800..0xe000) => ("ufffd", 5),
                _ => (&text[..5], 5),
            };
            out.push('\\');
            out.push_str(kept);
            length
        }
        _ => 0,
    }
}

/// Repairs the word at the beginning of a text: a literal, or a name without quotes; returns its length.
fn word(text: &str, out: &mut String) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    let length = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let word = &text[..length];
    if text[length..].trim_start().starts_with(':') {
        out.extend(["\"", word, "\""]);
    } else if matches!(word, "true" | "false" | "null") {
        out.push_str(word);
    } else {
        // `-Infinity`.
        if out.ends_with(['-', '+']) {
            out.pop();
        }
        out.push_str("null");
    }
    length
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
        let weight = weigh(text.as_bytes()).total();
        let mut left = 2 * weight;
        assert_eq!(values(r#"{"a":[1,2}"#, &mut left), [Value::Null; 0]);
        assert!(!values(text, &mut left).is_empty() && !values(text, &mut left).is_empty());
        assert_eq!((values(text, &mut left), left), (Vec::new(), 0));
    }

    /// The values that a text is read as, as JSON.
    fn read(text: &str) -> String {
        Value::from(values(text, &mut { WEIGHT_MAX })).to_string()
    }

    #[test]
    fn what_templates_leave_in_json_is_repaired() {
        for (text, expected) in [
            (r#"{"a":[1,2,],}"#, r#"[{"a":[1,2]}]"#),
            (r#"[1,,2,]"#, "[[1,2]]"),
            ("\u{feff}{\"a\":1}", r#"[{"a":1}]"#),
            ("<!--\n{\"a\":1}\n-->", r#"[{"a":1}]"#),
            ("//<![CDATA[ {\"a\":1} //]]>", r#"[{"a":1}]"#),
            ("// <![CDATA[\n{\"a\":1}\n// ]]>", r#"[{"a":1}]"#),
            ("/* <![CDATA[ */{\"a\":[[1]]}/* ]]> */", r#"[{"a":[[1]]}]"#),
            ("{\"a\": 1, // one, {\n \"b\": \"//no\"}", r#"[{"a":1,"b":"//no"}]"#),
            (r#"{"a":NaN,"b":-Infinity,"c":undefined,"d":1e5}"#, r#"[{"a":null,"b":null,"c":null,"d":100000.0}]"#),
            ("{\"a\":\"b\nc\td\"}", r#"[{"a":"b c d"}]"#),
            (r#"{"a":"it\'s \x \/"}"#, r#"[{"a":"it's x /"}]"#),
            (
                r#"{"a":"\ud83d\ude00 \ud83d \ude00 \u12","b":"é"}"#,
                "[{\"a\":\"😀 \u{fffd} \u{fffd} u12\",\"b\":\"é\"}]",
            ),
            (r#"{"a":1}{"b":2};{"c":3},{"d":4}"#, r#"[{"a":1},{"b":2},{"c":3},{"d":4}]"#),
            ("{a: true, $b: {c:null}};", r#"[{"$b":{"c":null},"a":true}]"#),
            ("{&quot;a&quot;:&quot;b &amp;amp; c&quot;}", r#"[{"a":"b &amp; c"}]"#),
            (r#"{"a":1}{"b":"#, r#"[{"a":1}]"#),
            ("", "[]"),
            ("\"", "[]"),
            ("\"\\", "[]"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
