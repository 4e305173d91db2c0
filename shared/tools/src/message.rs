//! Messages as they arrive: JSON-RPC 2.0, and what answers a message that is none (docs/reference/tools.md#damaged-messages).

use rmcp::model::ErrorCode;
use serde_json::{Value, json};

/// The longest message, in bytes: an image of 8 MiB in base64, and the members around it.
pub const MESSAGE_MAX: usize = 12 * 1024 * 1024;
/// Most messages in a batch.
pub const BATCH_MAX: usize = 50;

/// A message or a batch of messages.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    One(Value),
    /// A batch, which has messages. MCP knows batches in version 2025-03-26 alone.
    Batch(Vec<Value>),
}

/// A message that is not served: the error that answers it.
#[derive(Debug, PartialEq)]
pub struct Refused {
    /// The message's id, where one can be read; null otherwise.
    id: Value,
    code: ErrorCode,
    text: String,
}

impl Refused {
    /// The refusal of a text that is no JSON.
    fn unreadable(error: &serde_json::Error) -> Self {
        Self { id: Value::Null, code: ErrorCode::PARSE_ERROR, text: format!("the message is not JSON: {error}") }
    }

    /// The refusal of a message that is no valid request.
    pub fn invalid(id: Value, text: impl Into<String>) -> Self {
        Self { id, code: ErrorCode::INVALID_REQUEST, text: text.into() }
    }

    /// The answer.
    pub fn answer(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.text}})
    }
}

/// Reads what arrived. Only `takes_batches` admits a batch.
pub fn read(mut bytes: Vec<u8>, takes_batches: bool) -> Result<Incoming, Refused> {
    mend_surrogates(&mut bytes);
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let message = serde_json::from_slice(text).map_err(|error| Refused::unreadable(&error))?;
    let invalid = |text: String| Err(Refused::invalid(Value::Null, text));
    match message {
        Value::Array(_) if !takes_batches => invalid("batches are taken in version 2025-03-26 alone".into()),
        Value::Array(messages) if messages.is_empty() => invalid("the batch is empty".into()),
        Value::Array(messages) if messages.len() > BATCH_MAX => {
            invalid(format!("a batch has at most {BATCH_MAX} messages"))
        }
        Value::Array(messages) => Ok(Incoming::Batch(messages)),
        message => Ok(Incoming::One(message)),
    }
}

/// Checks the form of a message, except for the parameters of its method.
pub fn check(message: &Value) -> Result<(), Refused> {
    let invalid = |text: &str| Err(Refused::invalid(id(message), text));
    match &message["method"] {
        _ if !message.is_object() => return invalid("a message is an object"),
        _ if message["jsonrpc"] != "2.0" => return invalid("jsonrpc: must be \"2.0\""),
        Value::String(_) => {}
        // An answer, which only a server with sessions expects.
        Value::Null if message.get("result").is_some() || message.get("error").is_some() => {}
        Value::Null => return invalid("method: is missing"),
        _ => return invalid("method: must be a string"),
    }
    match message.get("id") {
        // A notification.
        None => {}
        Some(id) if id.is_string() || id.is_i64() => {}
        Some(_) => return invalid("id: must be a string or an integer of 64 bits"),
    }
    match &message["params"] {
        Value::Null | Value::Object(_) => Ok(()),
        _ => {
            let text = "params: must be an object".into();
            Err(Refused { id: id(message), code: ErrorCode::INVALID_PARAMS, text })
        }
    }
}

/// The id of a message, for its answer: null unless it is one.
pub fn id(message: &Value) -> Value {
    message.get("id").filter(|id| id.is_string() || id.is_number()).cloned().unwrap_or_default()
}

/// Replaces halves of surrogate pairs that stand alone, which no Unicode text contains, by U+FFFD. They come from clients that cut
/// text between UTF-16 code units: escaped, or as three bytes in the form of UTF-8. The length stays the same.
fn mend_surrogates(bytes: &mut [u8]) {
    let mut at = 0;
    while at < bytes.len() {
        at += match bytes[at] {
            b'\\' => match (unit(bytes, at), unit(bytes, at + 6)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
                (Some(0xd800..=0xdfff), _) => {
                    bytes[at + 2..at + 6].copy_from_slice(b"fffd");
                    6
                }
                // Of another escape two bytes, so that an escaped backslash begins none.
                _ => 2,
            },
            0xed if matches!(bytes[at + 1..], [0xa0..=0xbf, 0x80..=0xbf, ..]) => {
                bytes[at..at + 3].copy_from_slice("\u{fffd}".as_bytes());
                3
            }
            _ => 1,
        };
    }
}

/// The UTF-16 code unit that is escaped here as `\uXXXX`.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits =
        bytes.get(at..at + 6)?.strip_prefix(b"\\u").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code and the id of the answer to a text.
    fn refusal(text: &str, takes_batches: bool) -> Option<(i64, Value)> {
        let refused = match read(text.as_bytes().to_vec(), takes_batches) {
            Ok(Incoming::One(message)) => check(&message).err(),
            Ok(Incoming::Batch(_)) => None,
            Err(refused) => Some(refused),
        };
        let answer = refused?.answer();
        assert_eq!(answer["jsonrpc"], "2.0");
        Some((answer["error"]["code"].as_i64().expect("a code"), answer["id"].clone()))
    }

    #[test]
    fn a_message_that_is_no_request_is_refused_with_its_id() {
        for (text, code, id) in [
            ("", -32700, json!(null)),
            ("{", -32700, json!(null)),
            (r#"{"jsonrpc":"2.0","id":3,"method":"tools/list""#, -32700, json!(null)),
            ("\u{feff}{", -32700, json!(null)),
            ("null", -32600, json!(null)),
            ("\"ping\"", -32600, json!(null)),
            ("{}", -32600, json!(null)),
            (r#"{"id":5,"method":"ping"}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
            (r#"{"jsonrpc":2.0,"id":5,"method":"ping"}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}"#, -32602, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":"x"}"#, -32602, json!(5)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(1.5)),
            (
                r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#,
                -32600,
                json!(9_223_372_036_854_775_808_u64),
            ),
        ] {
            assert_eq!(refusal(text, true), Some((code, id)), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":9223372036854775807,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"","method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        ] {
            assert_eq!(refusal(text, false), None, "{text}");
        }
    }

    #[test]
    fn a_batch_has_one_to_fifty_messages_of_a_version_that_knows_batches() {
        let batch = |count: usize| Value::from(vec![json!({}); count]).to_string();
        for count in [1, BATCH_MAX] {
            assert_eq!(refusal(&batch(count), true), None, "{count}");
            assert_eq!(refusal(&batch(count), false), Some((-32600, Value::Null)), "{count}");
        }
        for count in [0, BATCH_MAX + 1] {
            assert_eq!(refusal(&batch(count), true), Some((-32600, Value::Null)), "{count}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        // As Python has it: json.loads(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        for (text, expected) in [
            (r#""half \ud83d""#, "half \u{fffd}"),
            (r#""\uD83D half""#, "\u{fffd} half"),
            (r#""\ude00""#, "\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ud83d\ude00\ude00""#, "\u{1f600}\u{fffd}"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83dude00""#, "\u{fffd}ude00"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            // A backslash and letters.
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\u00e9\ud7ff\ue000""#, "\u{e9}\u{d7ff}\u{e000}"),
            ("\"\u{d7ff}\u{1f600}\"", "\u{d7ff}\u{1f600}"),
        ] {
            assert_eq!(read(text.into(), false), Ok(Incoming::One(expected.into())), "{text}");
        }
        assert_eq!(read(b"\"\xed\xa0\xbd!\"".to_vec(), false), Ok(Incoming::One("\u{fffd}!".into())));
        for damaged in [&b"\"\\"[..], b"\"\\ud83", b"\"\\ud8zz\"", b"\"\xed\"", b"\"\xed\xa0\"", b"\"\xff\""] {
            let refused = read(damaged.to_vec(), false).expect_err("is no JSON");
            assert_eq!(refused.code, ErrorCode::PARSE_ERROR, "{damaged:?}");
        }
    }
}
