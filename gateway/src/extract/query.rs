//! Query parameters: unknown ones are ignored, known ones validated, every violation reported
//! (docs/reference/conventions.md#query-parameters).
//!
//! A struct names the parameters of a route once. It derives `IntoParams`, which documents them with their ranges, and
//! `Deserialize`, which gives each its type.

use std::borrow::Cow;
use std::fmt::Display;

use domain::Violation;
use domain::id::{AccountUid, CanvasRef};
use percent_encoding::percent_decode_str;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};
use utoipa::openapi::{RefOr, Required};
use utoipa::{IntoParams, ToSchema};

use super::owner::with_owner;
use crate::problem::{Problem, Result};

/// Maximum characters of a text without a limit of its own.
const TEXT_MAX: usize = 1024;

/// Who owns what a plain id names.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct OwnerQuery {
    /// Owner of the resource, when its plain id is given.
    #[serde(default, deserialize_with = "plain_uid")]
    pub owner_uid: Option<AccountUid>,
}

/// A uid that is a plain id.
pub fn plain_uid<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<AccountUid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match domain::id::is_plain_id(&text) {
        true => Ok(Some(AccountUid::from_stored(text))),
        false => Err(D::Error::custom("must be 1 to 180 letters, digits, `_` or `-`")),
    }
}

/// The short form of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListView {
    /// `summary`: each item as `key`, `name` and a `summary` of one line.
    #[param(inline)]
    pub view: Option<ShortView>,
}

/// The only value of `view`.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShortView {
    Summary,
}

/// Reads the parameters of a query and collects violations.
pub struct QueryReader<'a> {
    query: &'a str,
    violations: Vec<Violation>,
}

impl<'a> QueryReader<'a> {
    pub fn new(uri: &'a http::Uri) -> Self {
        Self { query: uri.query().unwrap_or_default(), violations: Vec::new() }
    }

    /// The parameters that `T` names. One that is refused is left out; `None` where it is required.
    pub fn read<T: IntoParams + DeserializeOwned>(&mut self) -> Option<T> {
        let earlier = self.violations.len();
        let parameters = T::into_params(|| Some(ParameterIn::Query));
        let mut values = Map::new();
        for parameter in &parameters {
            match self.value(parameter) {
                Ok(Some(value)) => drop(values.insert(parameter.name.clone(), value)),
                Ok(None) if parameter.required == Required::True => self.refuse(&parameter.name, "is required"),
                Ok(None) => {}
                Err(message) => self.refuse(&parameter.name, message),
            }
        }
        // A value that is not of its type is taken out, so that the others are read as well.
        let read = loop {
            let error = match serde_path_to_error::deserialize::<_, T>(Value::Object(values.clone())) {
                Ok(read) => break Some(read),
                Err(error) => error,
            };
            let name = error.path().iter().next().map(ToString::to_string).unwrap_or_default();
            if values.remove(&name).is_none() {
                // What is missing is refused already.
                break None;
            }
            self.refuse(&name, message(error.inner()));
        };
        let place = |violation: &Violation| parameters.iter().position(|it| it.name == violation.field);
        self.violations[earlier..].sort_by_key(place);
        read
    }

    /// The value of a parameter in the form that its schema describes.
    fn value(&self, parameter: &Parameter) -> Result<Option<Value>, String> {
        let mut values = self.values(&parameter.name);
        let object = match &parameter.schema {
            Some(RefOr::T(Schema::Array(list))) => {
                let texts = values.map(text).collect::<Result<Vec<_>, _>>()?;
                return match list.max_items {
                    Some(most) if texts.len() > most => Err(format!("must be sent at most {most} times")),
                    _ => Ok((!texts.is_empty()).then(|| json!(texts))),
                };
            }
            Some(RefOr::T(Schema::Object(object))) => object,
            _ => &Object::new(),
        };
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err("must be sent at most once".into());
        }
        let text = text(value)?;
        let value = match object.schema_type {
            SchemaType::Type(Type::Integer) => whole(&text, object)?,
            SchemaType::Type(Type::Boolean) => text.parse::<bool>().map_err(|_| "must be one of true, false")?.into(),
            _ if text.chars().count() > object.max_length.unwrap_or(TEXT_MAX) => {
                return Err(format!("must have at most {} characters", object.max_length.unwrap_or(TEXT_MAX)));
            }
            _ if text.is_empty() && object.min_length == Some(1) => return Err("must have at least 1 character".into()),
            _ => text.into(),
        };
        Ok(Some(value))
    }

    /// A mandatory parameter as it was sent, whatever it is.
    pub fn verbatim(&mut self, name: &str) -> Option<&'a str> {
        let mut values = self.values(name);
        let refusal = match (values.next(), values.next()) {
            (Some(value), None) => return Some(value),
            (Some(_), Some(_)) => "must be sent at most once",
            (None, _) => "is required",
        };
        self.refuse(name, refusal);
        None
    }

    /// Returns `true` if the parameter was sent.
    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.query.split('&').filter_map(move |pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key).as_deref() == Some(name)).then_some(value)
        })
    }

    /// The canvas of a parameter `canvasId`, combined with `ownerUid`.
    pub fn canvas(&mut self, named: Option<CanvasRef>, owner: Option<AccountUid>) -> Option<CanvasRef> {
        with_owner(named?, owner).map_err(|problem| self.violations.extend(problem.violations())).ok()
    }

    /// Adds a violation found elsewhere.
    pub fn refuse(&mut self, field: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(field, message));
    }

    /// Adds violations found elsewhere; `None` when there are any.
    pub fn take<T>(&mut self, read: Result<T, Vec<Violation>>) -> Option<T> {
        read.map_err(|violations| self.violations.extend(violations)).ok()
    }

    /// Fails with every violation that was collected.
    pub fn finish(self) -> Result<()> {
        if self.violations.is_empty() { Ok(()) } else { Err(Problem::Invalid(self.violations)) }
    }
}

/// A whole number within the range of its schema.
fn whole(text: &str, schema: &Object) -> Result<Value, String> {
    let bound = |bound: &Option<_>| bound.as_ref().and_then(|bound| json!(bound).as_u64());
    let (least, most) = (bound(&schema.minimum).unwrap_or_default(), bound(&schema.maximum));
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().unwrap_or(u64::MAX);
    match most {
        _ if is_number && number >= least && most.is_none_or(|most| number <= most) => Ok(number.into()),
        Some(most) => Err(format!("must be a whole number from {least} to {most}")),
        None => Err(format!("must be a whole number of at least {least}")),
    }
}

/// A violation's message. Serde says what values an enumeration has after what it was given.
fn message(error: &impl Display) -> String {
    let text = error.to_string();
    match text.split_once(", expected ") {
        Some((given, values)) if given.starts_with("unknown variant") => format!("must be {values}"),
        _ => text,
    }
}

fn text(value: &str) -> Result<String, String> {
    match decode(value) {
        None => Err("must be UTF-8".into()),
        Some(text) if text.contains('\0') => Err("must not contain the character U+0000".into()),
        Some(text) => Ok(text.into_owned()),
    }
}

/// Form decoding: `+` is a space, `%XX` a byte.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(|decoded| Cow::Owned(decoded.into_owned()))
}
