//! A parser for `multipart/form-data` (RFC 7578), as far as the simulators need it.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::server::Call;

/// One part of a form.
pub(super) struct Part {
    pub(super) name: String,
    /// The `filename` parameter, which only files have.
    pub(super) file_name: Option<String>,
    pub(super) content: Bytes,
}

/// The parts of a body, or `None` if it is not a valid form.
pub(super) fn parse(call: &Call) -> Option<Vec<Part>> {
    let kind = call.header("content-type")?.strip_prefix("multipart/form-data")?;
    let boundary = kind.split(';').find_map(|it| it.trim().strip_prefix("boundary="))?.trim_matches('"');
    let opening = format!("--{boundary}\r\n");
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = call.body.slice(find(&call.body, opening.as_bytes())? + opening.len()..);
    let mut parts = Vec::new();
    loop {
        let end = find(&rest, delimiter.as_bytes())?;
        parts.push(part(rest.slice(..end))?);
        rest = rest.slice(end + delimiter.len()..);
        match &rest[..] {
            [b'-', b'-', ..] => return Some(parts),
            [b'\r', b'\n', ..] => rest = rest.slice(2..),
            _ => return None,
        }
    }
}

fn part(bytes: Bytes) -> Option<Part> {
    let split = find(&bytes, b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..split].to_vec()).ok()?;
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition: form-data"))?;
    let parameter = |name: &str| {
        let value = line.split(';').find_map(|it| it.trim().strip_prefix(name))?;
        Some(value.trim_start_matches('=').trim_matches('"').to_owned())
    };
    Some(Part { name: parameter("name=")?, file_name: parameter("filename="), content: bytes.slice(split + 4..) })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The text parts as a JSON object. Numbers stay strings, as they are in a form.
pub(super) fn texts(parts: &[Part]) -> Option<Map<String, Value>> {
    let texts = parts.iter().filter(|part| part.file_name.is_none());
    texts.map(|part| Some((part.name.clone(), String::from_utf8(part.content.to_vec()).ok()?.into()))).collect()
}
