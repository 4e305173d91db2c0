//! JSON bodies, strict: the published schema is what they are validated by (decisions 1.4, 1.14).
//!
//! A request type derives its OpenAPI schema; the same schema, compiled once, checks every body, so that document and
//! behaviour cannot disagree and a refusal lists every violation and not only the first.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use domain::Violation;
use domain::limits::{JSON_BODY_MAX, JSON_DEPTH_MAX};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use super::schema::{validator, violations_of};
use crate::problem::{Problem, Result};

/// From a body's first byte to its last.
const READ_MAX: Duration = Duration::from_secs(60);
/// Longest wait for a share of the memory for bodies.
const RESERVE_MAX: Duration = Duration::from_secs(10);
/// Bytes of one share.
const UNIT: u64 = 64 * 1024;
/// Shares for all bodies of the process: 256 MiB.
static BODIES: Semaphore = Semaphore::const_new(4096);
/// Violations that are told of one body.
const VIOLATIONS_MAX: usize = 200;
/// Fields of an object and items of an array, outside of `custom`, that are looked at: far more than any schema has.
const WIDTH_MAX: usize = 1000;

/// A request body of its type.
pub trait Input: DeserializeOwned + ToSchema + 'static {
    /// Most bytes (decisions 1.5).
    const LIMIT: usize = JSON_BODY_MAX;
    /// Whether no body at all counts as `{}`.
    const MAY_BE_EMPTY: bool = false;

    /// What no schema can say: rules over several fields, and ids.
    fn check(&self) -> Vec<Violation> {
        Vec::new()
    }

    /// The same of a body that its schema refuses, as far as its fields allow, so that all of it is told at once.
    fn check_value(_: &Value) -> Vec<Violation> {
        Vec::new()
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
        self.json_by(|_| Vec::new()).await
    }

    /// The same with `rules` that depend on more than the body. They are asked of every object, one that the schema refuses,
    /// too, so that all of it is told at once; of a field whose form is wrong the schema alone speaks.
    pub async fn json_by<T: Input>(self, rules: impl FnOnce(&Value) -> Vec<Violation>) -> Result<T> {
        validate_by(self.value(T::LIMIT, T::MAY_BE_EMPTY).await?, rules)
    }

    /// The same of a body that has two forms, the first of which it is meant to have when `is_first` says so: what is wrong
    /// is then told of that form alone. Size and emptiness are the first's.
    pub async fn json_of<A: Input, B: Input>(self, is_first: impl FnOnce(&Value) -> bool) -> Result<Either<A, B>> {
        let value = self.value(A::LIMIT, A::MAY_BE_EMPTY).await?;
        Ok(if is_first(&value) { Either::First(validate(value)?) } else { Either::Second(validate(value)?) })
    }

    async fn value(self, limit: usize, may_be_empty: bool) -> Result<Value> {
        let Self { headers, body } = self;
        if declared_length(&headers).is_some_and(|length| length > limit as u64) {
            return Err(Problem::PayloadTooLarge(limit as u64));
        }
        let _share = reserve(&headers, limit).await?;
        let bytes = read(body, limit).await?;
        let typed = headers.contains_key(CONTENT_TYPE);
        if typed && !is_json(&headers) {
            return Err(Problem::UnsupportedMediaType("the body must be application/json".into()));
        }
        match (bytes.is_empty(), typed, may_be_empty) {
            (true, false, true) => return Ok(json!({})),
            (false, false, _) => {
                return Err(Problem::UnsupportedMediaType("the body must be declared as application/json".into()));
            }
            _ => {}
        }
        parse(&bytes)
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

async fn read(body: Body, limit: usize) -> Result<Bytes> {
    match tokio::time::timeout(READ_MAX, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::PayloadTooLarge(limit as u64)),
        Ok(Err(_)) => Err(Problem::InvalidJson("it ended before its time".into())),
        Err(_) => Err(Problem::InvalidJson("it took too long to arrive".into())),
    }
}

/// A share of the memory for bodies, held from the first byte to the parsed request.
async fn reserve(headers: &HeaderMap, limit: usize) -> Result<SemaphorePermit<'static>> {
    let bytes = declared_length(headers).unwrap_or(limit as u64);
    let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
    match tokio::time::timeout(RESERVE_MAX, BODIES.acquire_many(units)).await {
        Ok(permit) => permit.map_err(Problem::internal),
        Err(_) => Err(Problem::Unavailable("too many large bodies at once".into(), Some(1))),
    }
}

fn parse(bytes: &[u8]) -> Result<Value> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| Problem::InvalidJson(error.to_string()))?;
    if depth_exceeds(&value, JSON_DEPTH_MAX) {
        return Err(Problem::InvalidJson(format!("it is nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    let mut refused = Vec::new();
    find_nul(&value, &mut String::new(), &mut refused);
    if refused.is_empty() {
        find_wide(&value, &mut String::new(), &mut refused);
    }
    if !refused.is_empty() {
        return Err(Problem::Invalid(refused));
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
        Some(key) if key.contains('\0') => found.push(Violation::new(path.replace('\0', "\u{fffd}"), refusal)),
        _ => find_nul(child, path, found),
    });
}

/// Goes down into a field.
pub(super) fn join(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Validates what was read: shape and ranges (400, every violation), then the rules that no schema can say.
pub fn validate<T: Input>(value: Value) -> Result<T> {
    validate_by(value, |_| Vec::new())
}

fn validate_by<T: Input>(value: Value, rules: impl FnOnce(&Value) -> Vec<Violation>) -> Result<T> {
    let validator = validator::<T>();
    let mut violations: Vec<Violation> =
        validator.iter_errors(&value).flat_map(|error| violations_of(&error)).take(VIOLATIONS_MAX).collect();
    let mut told = if value.is_object() { rules(&value) } else { Vec::new() };
    if !violations.is_empty() {
        told.extend(T::check_value(&value));
        told.retain(|extra| violations.iter().all(|violation| violation.field != extra.field));
        violations.extend(told);
        return Err(Problem::Invalid(violations));
    }
    let input: T = serde_path_to_error::deserialize(value).map_err(|error| {
        Problem::invalid(error.path().to_string().trim_start_matches('.'), error.inner().to_string())
    })?;
    told.extend(input.check());
    if told.is_empty() { Ok(input) } else { Err(Problem::Invalid(told)) }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only its form counts")]
    struct Sample {
        #[schema(max_length = 3)]
        name: String,
        #[schema(minimum = 1, maximum = 9, nullable = false)]
        count: Option<u32>,
        #[serde(default)]
        shapes: Vec<Shape>,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(tag = "type", deny_unknown_fields)]
    #[expect(dead_code, reason = "only its form counts")]
    enum Shape {
        #[serde(rename = "circle")]
        Circle {
            #[schema(minimum = 1)]
            radius: f64,
        },
        #[serde(rename = "box")]
        Box { width: f64, height: f64 },
    }

    impl Input for Sample {}

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its form counts")]
    enum Name {
        Short(String),
        Full(FullName),
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its form counts")]
    struct FullName {
        first: String,
        last: u8,
    }

    #[derive(Debug, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    struct Named {
        #[expect(dead_code, reason = "only its form counts")]
        name: Name,
    }

    impl Input for Named {}

    /// What a refusal names.
    fn refused<T: std::fmt::Debug>(outcome: Result<T>) -> Vec<String> {
        let refused = match outcome {
            Ok(input) => panic!("accepted {input:?}"),
            Err(Problem::Invalid(violations)) => violations,
            Err(other) => panic!("{other:?}"),
        };
        let mut fields: Vec<String> = refused.into_iter().map(|violation| violation.field).collect();
        fields.sort();
        fields
    }

    fn fields(text: &str) -> Vec<String> {
        refused(parse(text.as_bytes()).and_then(validate::<Sample>))
    }

    #[test]
    fn every_violation_is_told_with_its_path() {
        assert_eq!(fields(r#"{"name": "four", "count": 10, "extra": 1}"#), ["count", "extra", "name"]);
        assert_eq!(fields(r#"{"count": null}"#), ["count", "name"]);
    }

    #[test]
    fn of_several_forms_the_one_that_is_meant_is_judged() {
        assert_eq!(
            fields(
                r#"{"name": "a", "shapes": [{"type": "circle", "radius": 0}, {"type": "box", "width": 1, "depth": 1}]}"#
            ),
            ["shapes[0].radius", "shapes[1].depth", "shapes[1].height"]
        );
        assert_eq!(fields(r#"{"name": "a", "shapes": [{"type": "line"}, {}]}"#), ["shapes[0].type", "shapes[1].type"]);
    }

    #[test]
    fn of_forms_without_a_tag_the_one_of_the_values_type_is_judged() {
        for (name, fields) in [
            (json!({"first": "a", "last": "b"}), &["name.last"][..]),
            (json!({"first": 1, "last": "b", "middle": 1}), &["name.first", "name.last", "name.middle"]),
            (json!(7), &["name"]),
        ] {
            assert_eq!(refused(validate::<Named>(json!({"name": name}))), fields);
        }
    }

    #[test]
    fn rules_speak_of_what_the_schema_has_not_refused() {
        let rules = |_: &Value| vec![Violation::new("count", "too many"), Violation::new("shapes", "too few")];
        assert_eq!(refused(validate_by::<Sample>(json!({"name": "a", "count": 1}), rules)), ["count", "shapes"]);
        let told = refused(validate_by::<Sample>(json!({"name": 1, "count": 10}), rules));
        assert_eq!(told, ["count", "name", "shapes"], "once each");
        assert_eq!(refused(validate_by::<Sample>(json!([]), rules)), [""], "what is no object has no fields");
    }

    #[test]
    fn a_fraction_where_a_whole_number_is_meant_is_refused() {
        assert_eq!(fields(r#"{"name": "a", "count": 1.5}"#), ["count"]);
        assert_eq!(fields(r#"{"name": "a", "count": 99999999999999999999}"#), ["count"]);
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_fraction_of_nothing() {
        let parsed = |text: &str| parse(text.as_bytes()).expect("parses");
        assert_eq!(parsed(r#"[1.0, -2.50e1, -0.0, 1.5, 1e300]"#), json!([1, -25, 0, 1.5, 1e300]));
        assert_eq!(parsed(r#"{"custom": {"a": 1.0}}"#).to_string(), r#"{"custom":{"a":1.0}}"#);
        assert!(validate::<Sample>(parsed(r#"{"name": "a", "count": 9.0}"#)).is_ok());
        assert_eq!(fields(r#"{"name": "a", "count": 10.0}"#), ["count"]);
    }

    #[test]
    fn nul_is_refused_wherever_it_stands() {
        assert_eq!(fields(r#"{"name": "a\u0000"}"#), ["name"]);
        assert_eq!(fields(r#"{"name": "a", "shapes": [{"type": "\u0000"}]}"#), ["shapes[0].type"]);
        assert_eq!(fields(r#"{"a\u0000": 1}"#), ["a\u{fffd}"]);
    }

    #[test]
    fn a_body_is_nested_at_most_64_levels() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(64).as_bytes()).is_ok());
        assert!(matches!(parse(nested(65).as_bytes()), Err(Problem::InvalidJson(_))));
        assert!(matches!(parse(nested(100_000).as_bytes()), Err(Problem::InvalidJson(_))));
    }

    #[test]
    fn what_does_not_parse_is_invalid_json() {
        for text in ["", "{", "nul", "{\"a\": 1e999}", "\u{feff}{}", "{} {}"] {
            assert!(matches!(parse(text.as_bytes()), Err(Problem::InvalidJson(_))), "{text:?}");
        }
    }
}
