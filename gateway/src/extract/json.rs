//! JSON bodies, strict: the published schema is what they are validated by (decisions 1.4, 1.14).
//!
//! A request type derives its OpenAPI schema; the same schema, compiled once, checks every body, so that document and
//! behaviour cannot disagree and a refusal lists every violation and not only the first.

mod memory;

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use domain::Violation;
use domain::limits::{JSON_BODY_MAX, JSON_DEPTH_MAX};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

pub use self::memory::Share;
use super::schema::{self, join, validator};
use crate::problem::{Problem, Result};

/// From a body's first byte to its last.
const READ_MAX: Duration = Duration::from_secs(60);
/// How often the schema's refusal of a body holds copies of what is in it.
pub const REFUSAL_COPIES: u64 = 40;
/// Violations that are told of one body: some for each operation of the largest batch.
const VIOLATIONS_MAX: usize = 1000;
/// Fields of an object and items of an array, outside of `custom`, that are looked at: far more than any schema has.
const WIDTH_MAX: usize = 1000;

/// A request body of its type.
pub trait Input: DeserializeOwned + ToSchema + 'static {
    /// Most bytes (decisions 1.5).
    const LIMIT: usize = JSON_BODY_MAX;
    /// Whether no body at all counts as `{}`.
    const MAY_BE_EMPTY: bool = false;
    /// Fields that are not looked at, whatever their form.
    const IGNORED: &[&str] = &[];

    /// What no schema can say: rules over several fields, and ids.
    fn check(&self) -> Vec<Violation> {
        Vec::new()
    }

    /// The same of a body that its schema refuses, as far as it can be read, so that all of it is told at once.
    fn check_value(body: &Value) -> Vec<Violation> {
        Self::deserialize(body).map(|body| body.check()).unwrap_or_default()
    }
}

/// One of two forms of a body.
pub enum Either<A, B> {
    /// The first.
    First(A),
    /// The second.
    Second(B),
}

/// The schema of a switch that can only stand one way.
pub fn only<const VALUE: bool>() -> impl Into<RefOr<Schema>> {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([VALUE]))
}

/// A body that nobody has read yet, so that the credential is judged before a byte of it is taken.
pub struct Unread {
    headers: HeaderMap,
    body: Body,
}

impl<S: Send + Sync> FromRequest<S> for Unread {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let (parts, body) = request.into_parts();
        Ok(Self { headers: parts.headers, body })
    }
}

impl Unread {
    /// Reads and validates the body: size (413), type (415), JSON (400), shape and ranges (400, every violation).
    pub async fn json<T: Input>(self) -> Result<T> {
        self.json_by(|_| None).await
    }

    /// The same with `rules` that no schema can say. They are asked of every object as it came, one that the schema refuses,
    /// too, so that all of it is told at once; of a field whose form is wrong the schema alone speaks.
    pub async fn json_by<T: Input, V: IntoIterator<Item = Violation>>(
        self,
        rules: impl FnOnce(&Value) -> V,
    ) -> Result<T> {
        let (value, _share) = self.value(T::LIMIT, T::MAY_BE_EMPTY).await?;
        validate_by(value, rules)
    }

    /// The same of a body that has two forms, the first of which it is meant to have when `is_first` says so: what is wrong
    /// is then told of that form alone. Size and emptiness are the first's. The share of memory is to be held as long as the
    /// body is, since a body of this kind may be large.
    pub async fn json_of<A: Input, B: Input>(
        self,
        is_first: impl FnOnce(&Value) -> bool,
    ) -> Result<(Either<A, B>, Share)> {
        let (value, share) = self.value(A::LIMIT, A::MAY_BE_EMPTY).await?;
        let body = if is_first(&value) { Either::First(validate(value)?) } else { Either::Second(validate(value)?) };
        Ok((body, share))
    }

    /// What was sent, and the share of memory that it takes.
    async fn value(self, limit: usize, may_be_empty: bool) -> Result<(Value, Share)> {
        let Self { headers, body } = self;
        if declared_length(&headers).is_some_and(|length| length > limit as u64) {
            return Err(Problem::PayloadTooLarge(limit as u64));
        }
        let _received = memory::for_text(declared_length(&headers).unwrap_or(limit as u64)).await?;
        let bytes = read(body, limit).await?;
        let share = memory::for_value(&bytes).await?;
        let typed = headers.contains_key(CONTENT_TYPE);
        if typed && !is_json(&headers) {
            return Err(Problem::UnsupportedMediaType("the body must be application/json".into()));
        }
        match (bytes.is_empty(), typed, may_be_empty) {
            (true, false, true) => return Ok((json!({}), share)),
            (false, false, _) => {
                return Err(Problem::UnsupportedMediaType("the body must be declared as application/json".into()));
            }
            _ => {}
        }
        Ok((parse(&bytes)?, share))
    }

    /// The headers and the body, for a route that streams.
    pub fn into_parts(self) -> (HeaderMap, Body) {
        (self.headers, self.body)
    }
}

/// The body's size as declared.
pub fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(only), None) = (types.next(), types.next()) else { return false };
    only.to_str()
        .is_ok_and(|text| text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json"))
}

/// The body in one piece: pieces that are kept as they came would cost their handles, however few bytes each has.
async fn read(mut body: Body, limit: usize) -> Result<Vec<u8>> {
    let collect = async {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Problem::InvalidJson("it ended before its time".into()))?;
            let piece = frame.data_ref().map_or(&[][..], Bytes::as_ref);
            if bytes.len() + piece.len() > limit {
                return Err(Problem::PayloadTooLarge(limit as u64));
            }
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    };
    let took_too_long = |_| Err(Problem::InvalidJson("it took too long to arrive".into()));
    tokio::time::timeout(READ_MAX, collect).await.unwrap_or_else(took_too_long)
}

fn parse(bytes: &[u8]) -> Result<Value> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| Problem::InvalidJson(error.to_string()))?;
    if depth_exceeds(&value, JSON_DEPTH_MAX) {
        return Err(Problem::InvalidJson(format!("it is nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    write_whole(&mut value);
    Ok(value)
}

/// Writes whole numbers in one way: `25.0` is `25`, as JSON Schema has it, so that what the document admits is taken, and
/// both give one fingerprint. What is in `custom` is the client's own and stays as it is.
fn write_whole(value: &mut Value) {
    /// Up to here every whole `f64` is the number that was written.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            // Casting truncates nothing.
            if let Some(float) = float {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole),
        Value::Object(object) => {
            object.iter_mut().filter(|(key, _)| *key != "custom").for_each(|(_, item)| write_whole(item));
        }
        _ => {}
    }
}

/// Objects and arrays far beyond every schema: refused before the schema is asked, which would note each of a million
/// fields on its own.
fn find_wide(value: &Value, path: &mut String, found: &mut Vec<Violation>) {
    let width = match value {
        Value::Array(items) => items.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    };
    if width > WIDTH_MAX {
        found.push(Violation::new(path.as_str(), format!("has more than {WIDTH_MAX} fields or items")));
        return;
    }
    each_child(value, path, |key, child, path| {
        if key != Some("custom") && found.len() < VIOLATIONS_MAX {
            find_wide(child, path, found);
        }
    });
}

/// Visits the items of an array and the fields of an object, each with its path.
fn each_child(value: &Value, path: &mut String, mut visit: impl FnMut(Option<&str>, &Value, &mut String)) {
    let length = path.len();
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                visit(None, item, path);
                path.truncate(length);
            }
        }
        Value::Object(object) => {
            for (key, item) in object {
                join(path, key);
                visit(Some(key), item, path);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn depth_exceeds(value: &Value, allowed: usize) -> bool {
    match value {
        Value::Array(items) => allowed == 0 || items.iter().any(|item| depth_exceeds(item, allowed - 1)),
        Value::Object(object) => allowed == 0 || object.values().any(|item| depth_exceeds(item, allowed - 1)),
        _ => false,
    }
}

/// Postgres holds no NUL: refused here, once for all (reliability.md 1).
fn find_nul(value: &Value, path: &mut String, found: &mut Vec<Violation>) {
    let refusal = "must not contain the character U+0000";
    if value.as_str().is_some_and(|text| text.contains('\0')) {
        found.push(Violation::new(path.as_str(), refusal));
    }
    each_child(value, path, |key, child, path| match key {
        _ if found.len() >= VIOLATIONS_MAX => {}
        Some(key) if key.contains('\0') => found.push(Violation::new(without_nul(path), refusal)),
        _ => find_nul(child, path, found),
    });
}

/// A path that can be told.
fn without_nul(path: &str) -> String {
    path.replace('\0', "\u{fffd}")
}

/// The items of an array; none of what is no array.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Validates what was read: shape and ranges (400, every violation), then the rules that no schema can say.
pub fn validate<T: Input>(value: Value) -> Result<T> {
    validate_by(value, |_| None)
}

fn validate_by<T: Input, V: IntoIterator<Item = Violation>>(
    mut value: Value,
    rules: impl FnOnce(&Value) -> V,
) -> Result<T> {
    if let Some(object) = value.as_object_mut() {
        object.retain(|field, _| !T::IGNORED.contains(&field.as_str()));
    }
    let mut violations = Vec::new();
    find_wide(&value, &mut String::new(), &mut violations);
    if !violations.is_empty() {
        return Err(Problem::Invalid(violations));
    }
    find_nul(&value, &mut String::new(), &mut violations);
    let mut told: Vec<Violation> = Vec::new();
    if value.is_object() {
        told.extend(rules(&value).into_iter().take(VIOLATIONS_MAX));
    }
    let validator = validator::<T>();
    if !violations.is_empty() || !validator.is_valid(&value) {
        told.extend(T::check_value(&value));
        add(&mut violations, against_schema(&validator, value));
        add(&mut violations, told);
        return Err(Problem::Invalid(violations));
    }
    let input: T = serde_path_to_error::deserialize(value).map_err(|error| {
        Problem::invalid(error.path().to_string().trim_start_matches('.'), error.inner().to_string())
    })?;
    told.extend(input.check().into_iter().take(VIOLATIONS_MAX));
    if told.is_empty() { Ok(input) } else { Err(Problem::Invalid(told)) }
}

/// What the schema has against a body. What has several forms is copied for each of them and for each thing that is wrong with
/// it; where there is no memory for that, a large body is told no more than that it does not fit.
fn against_schema(validator: &Validator, mut value: Value) -> Vec<Violation> {
    empty_custom(&mut value);
    let Some(_share) = memory::for_copies(&value, REFUSAL_COPIES) else {
        return vec![Violation::new("", "does not fit its schema, and is too large to say where")];
    };
    let errors: Vec<_> = validator.iter_errors(&value).take(VIOLATIONS_MAX).collect();
    let violations = schema::violations(&errors).into_iter().take(VIOLATIONS_MAX);
    violations.map(|it| Violation::new(without_nul(&it.field), it.message)).collect()
}

/// Leaves out what is in `custom`, of which no schema says anything.
fn empty_custom(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(empty_custom),
        Value::Object(object) => object.iter_mut().for_each(|(key, item)| match item {
            Value::Object(custom) if key == "custom" => custom.clear(),
            item => empty_custom(item),
        }),
        _ => {}
    }
}

/// Adds what is said of fields of which nothing has been said.
fn add(violations: &mut Vec<Violation>, mut more: Vec<Violation>) {
    more.retain(|extra| violations.iter().all(|violation| violation.field != extra.field));
    violations.append(&mut more);
}

#[cfg(test)]
mod tests;
