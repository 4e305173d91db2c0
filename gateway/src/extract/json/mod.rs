//! Strict JSON bodies: the published schema validates every request (docs/reference/conventions.md#strict-fields).
//!
//! A request type derives its OpenAPI schema. The same schema, compiled once, checks every body, so that contract and behavior
//! cannot differ and a rejection lists every violation, not only the first.

mod memory;
mod receive;

use std::collections::HashSet;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use domain::Violation;
use domain::limits::{JSON_BODY_MAX, JSON_DEPTH_MAX, VIOLATIONS_COUNTED_MAX};
use domain::violation::{self, join};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

#[cfg(test)]
pub use self::memory::violations_bytes;
pub use self::memory::{BodyMemory, answers, values};
use super::caller::Principal;
use super::header::single;
use super::names::Names;
use super::schema::validator;
use crate::problem::{Problem, Result};

/// Bytes that bodies take at most in one process, with all that are free on `connections`, and parsed ones of `requests`.
#[cfg(test)]
pub const fn memory_max(connections: u64, requests: u64) -> u64 {
    let shares = receive::TOTAL + memory::VALUES_TOTAL + 2 * memory::MESSAGES_TOTAL;
    shares + connections * receive::FREE as u64 + requests * memory::FREE
}

/// Maximum fields of an object and items of an array outside of `custom`; far more than any schema admits.
const WIDTH_MAX: usize = 1000;

/// A request body.
pub trait Input: DeserializeOwned + ToSchema + 'static {
    /// Maximum size in bytes (docs/reference/conventions.md#body-limits).
    const LIMIT: usize = JSON_BODY_MAX;
    /// Whether an empty body counts as `{}`, declared as JSON or not at all.
    const MAY_BE_EMPTY: bool = false;
    /// Fields of a body that are ignored, whatever their form.
    fn ignored(_: &Value) -> &'static [&'static str] {
        &[]
    }
}

/// One of two forms of a body.
pub enum Either<A, B> {
    /// The first form.
    First(A),
    /// The second form.
    Second(B),
}

/// The schema of a boolean with only one allowed value.
pub fn only<const VALUE: bool>() -> impl Into<RefOr<Schema>> {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([VALUE]))
}

/// A body that has not been read yet. The credential is checked before the first byte is received.
pub struct JsonBody {
    headers: HeaderMap,
    /// Who holds it in memory; `None` without a credential.
    principal: Option<Principal>,
    /// What its short names belong to; `None` without a credential.
    names: Option<Names>,
    body: Body,
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let (mut parts, body) = request.into_parts();
        let (principal, names) = (parts.extensions.remove(), parts.extensions.remove());
        Ok(Self { headers: parts.headers, principal, names, body })
    }
}

impl JsonBody {
    /// Reads and validates the body: size (413), media type (415), JSON (400), shape and ranges (400, every violation).
    pub async fn json<T: Input>(self) -> Result<T> {
        self.checked(Ok).await
    }

    /// The same with rules that a schema cannot express. `check` gets a body of the right shape and reports every violation of
    /// the rules.
    pub async fn checked<T: Input, C>(mut self, check: impl FnOnce(T) -> Result<C, Vec<Violation>>) -> Result<C> {
        let names = self.names.take();
        let (value, mut memory) = self.value(T::LIMIT, T::MAY_BE_EMPTY).await?;
        validate(value, &mut memory, names.as_ref(), check).await
    }

    /// The same for a body with two forms. `is_first` decides from the value which form is meant, and only violations of that
    /// form are reported. Size limit and emptiness are those of the first form. Hold the returned memory as long as the body, since
    /// a body of this kind may be large.
    pub async fn json_of<A: Input, B: Input>(
        mut self,
        is_first: impl FnOnce(&Value) -> bool,
    ) -> Result<(Either<A, B>, BodyMemory)> {
        let names = self.names.take();
        let (value, mut memory) = self.value(A::LIMIT, A::MAY_BE_EMPTY).await?;
        let body = if is_first(&value) {
            Either::First(validate(value, &mut memory, names.as_ref(), Ok).await?)
        } else {
            Either::Second(validate(value, &mut memory, names.as_ref(), Ok).await?)
        };
        Ok((body, memory))
    }

    /// The body as it is, for a route that parses it by itself and sends requests of its own, and the memory that it takes then.
    pub async fn message(self, limit: usize) -> Result<(Vec<u8>, BodyMemory)> {
        let (_, principal, bytes) = self.text(limit).await?;
        let mut memory = memory::messages(principal);
        memory.parse(&bytes).await?;
        Ok((bytes, memory))
    }

    /// The body as it is, for a route without a credential that parses it by itself.
    pub async fn bytes(self, limit: usize) -> Result<Vec<u8>> {
        self.text(limit).await.map(|(.., bytes)| bytes)
    }

    async fn text(self, limit: usize) -> Result<(HeaderMap, Option<Principal>, Vec<u8>)> {
        let Self { headers, principal, body, .. } = self;
        // Who has shown no credential holds nothing that others need.
        let limit = if principal.is_some() { limit } else { limit.min(receive::FREE) };
        if declared_length(&headers).is_some_and(|length| length > limit as u64) {
            return Err(Problem::PayloadTooLarge(limit as u64));
        }
        let bytes = receive::receive(body, limit, memory::key_of(principal.as_ref())).await?;
        Ok((headers, principal, bytes))
    }

    /// The parsed body, and the memory that it takes.
    async fn value(self, limit: usize, may_be_empty: bool) -> Result<(Value, BodyMemory)> {
        let (headers, principal, bytes) = self.text(limit).await?;
        let mut memory = values(principal);
        memory.parse(&bytes).await?;
        let typed = single(&headers, &CONTENT_TYPE)?.is_some();
        if typed && !is_json(&headers) {
            return Err(Problem::UnsupportedMediaType("the body must be application/json".into()));
        }
        match (bytes.is_empty(), typed, may_be_empty) {
            (true, _, true) => return Ok((json!({}), memory)),
            (false, false, _) => {
                return Err(Problem::UnsupportedMediaType("the body must be declared as application/json".into()));
            }
            _ => {}
        }
        let value = memory.work(|| parse(&bytes)).await??;
        Ok((value, memory))
    }

    /// The headers and the body, for a route that streams.
    pub fn into_parts(self) -> (HeaderMap, Body) {
        (self.headers, self.body)
    }
}

/// The declared size of the body.
pub fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns `true` if the body is a form, by its media type.
pub fn is_form(headers: &HeaderMap) -> bool {
    has_type(headers, "application/x-www-form-urlencoded")
}

pub fn is_json(headers: &HeaderMap) -> bool {
    has_type(headers, "application/json")
}

fn has_type(headers: &HeaderMap, media_type: &str) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    declared.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
}

fn parse(bytes: &[u8]) -> Result<Value> {
    let mut value: Value = serde_json::from_slice(bytes).map_err(|error| Problem::InvalidJson(error.to_string()))?;
    if depth_exceeds(&value, JSON_DEPTH_MAX) {
        return Err(Problem::InvalidJson(format!("it is nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    write_whole(&mut value);
    Ok(value)
}

/// Normalizes whole numbers: `25.0` becomes `25`, as JSON Schema treats them. Both spellings are accepted and have the same
/// fingerprint. The content of `custom` belongs to the client and stays unchanged.
fn write_whole(value: &mut Value) {
    /// Up to this value every whole `f64` is exactly the number that was written.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT);
            // The cast does not truncate.
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

fn depth_exceeds(value: &Value, allowed: usize) -> bool {
    match value {
        Value::Array(items) => allowed == 0 || items.iter().any(|item| depth_exceeds(item, allowed - 1)),
        Value::Object(object) => allowed == 0 || object.values().any(|item| depth_exceeds(item, allowed - 1)),
        _ => false,
    }
}

/// Finds what is refused in all fields: U+0000 in strings and keys, which Postgres cannot store in text
/// (docs/reliability.md#postgresql), and objects and arrays outside of `custom` with more than [`WIDTH_MAX`] members or items.
fn find_unfit(value: &Value, in_custom: bool, path: &mut String, found: &mut Vec<Violation>) {
    const NUL: &str = "must not contain the character U+0000";
    if found.len() >= VIOLATIONS_COUNTED_MAX {
        return;
    }
    let width = match value {
        Value::Array(items) => items.len(),
        Value::Object(object) => object.len(),
        _ => 0,
    };
    if width > WIDTH_MAX && !in_custom {
        found.push(Violation::new(without_nul(path), format!("has more than {WIDTH_MAX} fields or items")));
    }
    let length = path.len();
    match value {
        Value::String(text) if text.contains('\0') => found.push(Violation::new(without_nul(path), NUL)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_unfit(item, in_custom, path, found);
                path.truncate(length);
            }
        }
        Value::Object(object) => {
            for (key, item) in object {
                if found.len() >= VIOLATIONS_COUNTED_MAX {
                    return;
                }
                join(path, key);
                match key.contains('\0') {
                    true => found.push(Violation::new(without_nul(path), NUL)),
                    false => find_unfit(item, in_custom || key == "custom", path, found),
                }
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// A field path that is safe to report.
fn without_nul(path: &str) -> String {
    path.replace('\0', "\u{fffd}")
}

/// Validates a parsed body in two stages: its schema reports every violation of the shape, and only a body of the right shape is
/// parsed and reaches `check`, which reports every violation of the rules. Between the two, `names` replaces short names by ids.
pub async fn validate<T: Input, C>(
    mut value: Value,
    memory: &mut BodyMemory,
    names: Option<&Names>,
    check: impl FnOnce(T) -> Result<C, Vec<Violation>>,
) -> Result<C> {
    let ignored = T::ignored(&value);
    if let Some(object) = value.as_object_mut() {
        object.retain(|field, _| !ignored.contains(&field.as_str()));
    }
    let mut violations = Vec::new();
    let validator = validator::<T>();
    let is_valid = memory.work(|| {
        find_unfit(&value, false, &mut String::new(), &mut violations);
        violations.is_empty() && validator.is_valid(&value)
    });
    if !is_valid.await? {
        add(&mut violations, against_schema(&validator, &value, memory).await?);
        return Err(Problem::Invalid(violations));
    }
    if let Some(names) = names {
        names.replace(&mut value).await?;
    }
    let body = memory.work(|| serde_path_to_error::deserialize::<_, T>(value)).await?;
    let body = body.map_err(|error| {
        Problem::invalid(error.path().to_string().trim_start_matches('.'), error.inner().to_string())
    })?;
    check(body).map_err(|violations| match violations.is_empty() {
        true => Problem::internal("a body without violations could not be parsed"),
        false => Problem::Invalid(violations),
    })
}

/// The violations of the schema, or one for the whole body when it has more values than there is memory for their violations.
async fn against_schema(validator: &Validator, value: &Value, memory: &mut BodyMemory) -> Result<Vec<Violation>> {
    if !memory.judge(value).await {
        return Ok(vec![Violation::new("", "does not fit its schema, and has too many values to say where")]);
    }
    let violations = || violation::from_schema(&validator.iter_errors(value).collect::<Vec<_>>());
    let violations = memory.work(violations).await?.into_iter();
    Ok(violations.map(|it| Violation::new(without_nul(&it.field), it.message)).collect())
}

/// Adds the violations of fields that have none yet.
fn add(violations: &mut Vec<Violation>, more: Vec<Violation>) {
    let known: HashSet<String> = violations.iter().map(|violation| violation.field.clone()).collect();
    violations.extend(more.into_iter().filter(|extra| !known.contains(&extra.field)));
}

/// The result of [`validate`], for tests that measure this thread.
#[cfg(test)]
pub fn judge<T: Input, C>(value: Value, check: impl FnOnce(T) -> Result<C, Vec<Violation>>) -> Result<C> {
    let mut memory = values(None);
    block_on(validate(value, &mut memory, None, check))
}

/// Runs a future to its end.
#[cfg(test)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without threads").block_on(future)
}

#[cfg(test)]
mod tests;
