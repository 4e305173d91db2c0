//! Validation of request fields as the vendors do it: each field has a type, and unknown fields are
//! rejected.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::image::is_image;

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A text of at least one character and at most this many.
    Text(usize),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An integer in this inclusive range.
    Integer(i64, i64),
    /// A number in this inclusive range.
    Number(f64, f64),
    Boolean,
    /// An image in base64 without a `data:` prefix.
    Base64,
    /// A list with a minimum and a maximum length, whose items are of this kind.
    List(usize, usize, &'static Kind),
    /// Either of two kinds.
    Either(&'static Kind, &'static Kind),
    /// A value that this function accepts.
    Fits(fn(&Value) -> bool),
}

/// The name of a field, its type, and whether it is required.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

pub(super) const fn required(name: &'static str, kind: Kind) -> Rule {
    Rule { name, kind, required: true }
}

pub(super) const fn optional(name: &'static str, kind: Kind) -> Rule {
    Rule { name, kind, required: false }
}

/// Why a field is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Missing,
    Unknown,
    Value,
}

/// The first invalid field of `body`, if any.
pub(super) fn check(body: &Map<String, Value>, rules: &[Rule]) -> Result<(), (String, Wrong)> {
    if let Some(name) = body.keys().find(|name| !rules.iter().any(|rule| rule.name == name.as_str())) {
        return Err((name.clone(), Wrong::Unknown));
    }
    for rule in rules {
        match body.get(rule.name) {
            None | Some(Value::Null) if rule.required => return Err((rule.name.to_owned(), Wrong::Missing)),
            Some(value) if !value.is_null() && !fits(value, rule.kind) => {
                return Err((rule.name.to_owned(), Wrong::Value));
            }
            _ => {}
        }
    }
    Ok(())
}

fn fits(value: &Value, kind: Kind) -> bool {
    let text = value.as_str();
    match kind {
        Kind::Text(most) => text.is_some_and(|text| !text.is_empty() && text.encode_utf16().count() <= most),
        Kind::OneOf(all) => text.is_some_and(|text| all.contains(&text)),
        Kind::Integer(least, most) => value.as_i64().is_some_and(|number| (least..=most).contains(&number)),
        Kind::Number(least, most) => value.as_f64().is_some_and(|number| (least..=most).contains(&number)),
        Kind::Boolean => value.is_boolean(),
        Kind::Base64 => text.is_some_and(is_base64_image),
        Kind::List(least, most, kind) => value
            .as_array()
            .is_some_and(|list| (least..=most).contains(&list.len()) && list.iter().all(|value| fits(value, *kind))),
        Kind::Either(one, other) => fits(value, *one) || fits(value, *other),
        Kind::Fits(judge) => judge(value),
    }
}

/// Returns `true` if the text is an image in a `data:` URL.
pub(super) fn is_data_url(text: &str) -> bool {
    let rest = text.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"));
    rest.is_some_and(|(_, data)| is_base64_image(data))
}

/// The content of a `data:` URL, or of base64 without a prefix.
pub(super) fn decoded(text: &str) -> Option<Bytes> {
    STANDARD.decode(text.rsplit(',').next()?).ok().map(Bytes::from)
}

/// Returns `true` if the text is an image in base64 without a prefix.
pub(super) fn is_base64_image(text: &str) -> bool {
    STANDARD.decode(text).is_ok_and(|bytes| is_image(&bytes))
}

/// Parses a body as a JSON object.
pub(super) fn object(body: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(body).ok()
}
