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
use domain::id::AccountUid;
use domain::limits::{JSON_BODY_MAX, JSON_DEPTH_MAX, VIOLATIONS_MAX};
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use jsonschema::{ValidationError, Validator};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use service::json::weight_of;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

#[cfg(test)]
pub use self::memory::REFUSAL_COPIES;
pub use self::memory::{BodyPermit, for_answer};
use super::caller::Principal;
use super::draft::Known;
use super::header::single;
use super::schema::{self, join, validator};
use crate::problem::{Problem, Result};

/// Maximum length of a string that the schema of a rejected body is applied to, in characters. No schema admits a longer one, so
/// that the rest of it changes no violation.
const JUDGED_TEXT_MAX: usize = 32_768;
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

    /// What `check` finds in a body that its schema rejects, if it can be read: a draft always can ([`super::draft`]).
    fn check_rejected<C>(body: &Value, check: impl FnOnce(Self) -> Result<C, Vec<Violation>>) -> Vec<Violation> {
        Self::deserialize(Known(body)).ok().and_then(|body| check(body).err()).unwrap_or_default()
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
    /// Whose body it is; `None` without a credential.
    account: Option<AccountUid>,
    body: Body,
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        let (mut parts, body) = request.into_parts();
        let account = parts.extensions.remove::<Principal>().map(|Principal(account)| account);
        Ok(Self { headers: parts.headers, account, body })
    }
}

impl JsonBody {
    /// Reads and validates the body: size (413), media type (415), JSON (400), shape and ranges (400, every violation).
    pub async fn json<T: Input>(self) -> Result<T> {
        self.checked(Ok).await
    }

    /// The same with rules that a schema cannot express. `check` gets every body that can be read, including one that the schema
    /// rejects, so that all violations are reported together. Of a field with several violations those of the schema are reported.
    pub async fn checked<T: Input, C>(self, check: impl FnOnce(T) -> Result<C, Vec<Violation>>) -> Result<C> {
        let (value, _permit) = self.value(T::LIMIT, T::MAY_BE_EMPTY).await?;
        validate(value, check).await
    }

    /// The same for a body with two forms. `is_first` decides from the value which form is meant, and only violations of that
    /// form are reported. Size limit and emptiness are those of the first form. Hold the returned memory permit as long as the
    /// body, since a body of this kind may be large.
    pub async fn json_of<A: Input, B: Input>(
        self,
        is_first: impl FnOnce(&Value) -> bool,
    ) -> Result<(Either<A, B>, BodyPermit)> {
        let (value, permit) = self.value(A::LIMIT, A::MAY_BE_EMPTY).await?;
        let body = if is_first(&value) {
            Either::First(validate(value, Ok).await?)
        } else {
            Either::Second(validate(value, Ok).await?)
        };
        Ok((body, permit))
    }

    /// The body as it is, for a route that parses it by itself and sends requests of its own, and the memory that it takes then.
    pub async fn message(self, limit: usize) -> Result<(Vec<u8>, BodyPermit)> {
        let (_, account, bytes) = self.text(limit).await?;
        let permit = memory::for_message(account.as_ref(), &bytes).await?;
        Ok((bytes, permit))
    }

    async fn text(self, limit: usize) -> Result<(HeaderMap, Option<AccountUid>, Vec<u8>)> {
        let Self { headers, account, body } = self;
        if declared_length(&headers).is_some_and(|length| length > limit as u64) {
            return Err(Problem::PayloadTooLarge(limit as u64));
        }
        let bytes = receive::receive(body, limit, account.as_ref()).await?;
        Ok((headers, account, bytes))
    }

    /// The parsed body, and the memory that it takes.
    async fn value(self, limit: usize, may_be_empty: bool) -> Result<(Value, BodyPermit)> {
        let (headers, account, bytes) = self.text(limit).await?;
        let permit = memory::for_value(account.as_ref(), &bytes).await?;
        let typed = single(&headers, &CONTENT_TYPE)?.is_some();
        if typed && !is_json(&headers) {
            return Err(Problem::UnsupportedMediaType("the body must be application/json".into()));
        }
        match (bytes.is_empty(), typed, may_be_empty) {
            (true, _, true) => return Ok((json!({}), permit)),
            (false, false, _) => {
                return Err(Problem::UnsupportedMediaType("the body must be declared as application/json".into()));
            }
            _ => {}
        }
        Ok((parse(&bytes)?, permit))
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

pub fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    declared.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
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

/// Finds objects and arrays that are far wider than any schema admits, and cuts them to [`WIDTH_MAX`]: the schema would report each
/// of a million fields separately.
/// Members of a cut object may be missing for that reason alone; the paths of such objects are added to `cut`.
fn cut_wide(value: &mut Value, path: &mut String, found: &mut Vec<Violation>, cut: &mut Vec<String>) {
    let is_object = value.is_object();
    let is_wide = match value {
        Value::Array(items) if items.len() > WIDTH_MAX => {
            items.truncate(WIDTH_MAX);
            true
        }
        Value::Object(object) if object.len() > WIDTH_MAX => {
            if let Some(beyond) = object.keys().nth(WIDTH_MAX).cloned() {
                object.retain(|key, _| *key < beyond);
            }
            true
        }
        _ => false,
    };
    if is_wide && found.len() < VIOLATIONS_MAX {
        found.push(Violation::new(without_nul(path), format!("has more than {WIDTH_MAX} fields or items")));
        cut.extend(is_object.then(|| without_nul(path)));
    }
    let length = path.len();
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                cut_wide(item, path, found, cut);
                path.truncate(length);
            }
        }
        Value::Object(object) => {
            for (key, item) in object.iter_mut().filter(|(key, _)| *key != "custom") {
                join(path, key);
                cut_wide(item, path, found, cut);
                path.truncate(length);
            }
        }
        _ => {}
    }
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

/// Finds U+0000 in strings and keys. Postgres cannot store it in text (docs/reliability.md#postgresql), so it is rejected here
/// for all fields.
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

/// A field path that is safe to report.
fn without_nul(path: &str) -> String {
    path.replace('\0', "\u{fffd}")
}

/// The items of an array; empty for any other value.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Validates a parsed body: shape and ranges (400, every violation), and the rules of `check`, which a schema cannot express.
pub async fn validate<T: Input, C>(mut value: Value, check: impl FnOnce(T) -> Result<C, Vec<Violation>>) -> Result<C> {
    let ignored = T::ignored(&value);
    if let Some(object) = value.as_object_mut() {
        object.retain(|field, _| !ignored.contains(&field.as_str()));
    }
    let mut violations = Vec::new();
    let mut cut = Vec::new();
    cut_wide(&mut value, &mut String::new(), &mut violations, &mut cut);
    find_nul(&value, &mut String::new(), &mut violations);
    let validator = validator::<T>();
    if !violations.is_empty() || !validator.is_valid(&value) {
        let mut reported = Vec::new();
        if !cut.iter().any(String::is_empty) {
            reported = T::check_rejected(&value, check);
            reported.truncate(VIOLATIONS_MAX);
        }
        let mut judged = against_schema(&validator, value).await?;
        judged.retain(|violation| violation.message != schema::REQUIRED || !is_member(&violation.field, &cut));
        add(&mut violations, judged);
        add(&mut violations, reported);
        return Err(Problem::Invalid(violations));
    }
    let body: T = serde_path_to_error::deserialize(value).map_err(|error| {
        Problem::invalid(error.path().to_string().trim_start_matches('.'), error.inner().to_string())
    })?;
    check(body).map_err(|violations| match violations.is_empty() {
        true => Problem::internal("a body that its schema admits could not be read"),
        false => Problem::Invalid(violations),
    })
}

/// The violations of the schema. A value with several forms is copied for each form and each violation, so a body that is too large
/// for that is judged in parts: the items of its heavy arrays one by one, and the rest with `null` in their places.
async fn against_schema(validator: &Validator, mut value: Value) -> Result<Vec<Violation>> {
    empty_custom(&mut value);
    if memory::admits_copies(&value) {
        return judge(validator, &value, "", &[]).await;
    }
    cut_texts(&mut value);
    let mut arrays = Vec::new();
    while !memory::admits_copies(&value)
        && let Some(array) = take_heaviest_array(&mut value)
    {
        arrays.push(array);
    }
    let taken: Vec<String> = arrays.iter().map(|(field, _)| format!("{field}[")).collect();
    let mut violations = judge(validator, &value, "", &taken).await?;
    for (field, items) in arrays {
        let first = format!("{field}[0]");
        for (index, item) in items.into_iter().enumerate() {
            if violations.len() >= VIOLATIONS_MAX {
                return Ok(violations);
            }
            // A large body has many items, and other requests must have their turn.
            tokio::task::yield_now().await;
            let alone = Value::Object([(field.clone(), vec![item].into())].into_iter().collect());
            for mut violation in judge(validator, &alone, &first, &[]).await? {
                if let Some(rest) = violation.field.strip_prefix(&first) {
                    violation.field = format!("{field}[{index}]{rest}");
                    violations.push(violation);
                }
            }
        }
    }
    Ok(violations)
}

/// The violations of a body or of a part of it, without those below the paths that begin with one of `taken`; or one for the whole
/// part at `path` when it is too large.
async fn judge(validator: &Validator, value: &Value, path: &str, taken: &[String]) -> Result<Vec<Violation>> {
    if !memory::admits_copies(value) {
        return Ok(vec![Violation::new(path, "does not fit its schema, and is too large to say where")]);
    }
    let _permit = memory::for_copies(value).await?;
    let is_left = |error: &ValidationError<'_>| {
        taken.is_empty() || {
            let field = schema::field(error.instance_path());
            !taken.iter().any(|taken| field.starts_with(taken))
        }
    };
    let errors: Vec<_> = validator.iter_errors(value).filter(is_left).take(VIOLATIONS_MAX).collect();
    let violations = schema::violations(&errors).into_iter().take(VIOLATIONS_MAX);
    Ok(violations.map(|it| Violation::new(without_nul(&it.field), it.message)).collect())
}

/// Removes the content of `custom`, which no schema describes.
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

/// Cuts strings to [`JUDGED_TEXT_MAX`].
fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(JUDGED_TEXT_MAX) {
                text.truncate(end);
                text.shrink_to_fit();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(object) => object.values_mut().for_each(cut_texts),
        _ => {}
    }
}

/// Takes the items out of the heaviest array among the fields of an object; `null` takes their places.
fn take_heaviest_array(value: &mut Value) -> Option<(String, Vec<Value>)> {
    let is_full = |field: &Value| items(field).iter().any(|item| !item.is_null());
    let arrays = value.as_object_mut()?.iter_mut().filter(|(_, field)| is_full(field));
    let (name, array) = arrays.max_by_key(|(_, array)| weight_of(array))?;
    let places = vec![Value::Null; array.as_array()?.len()];
    let Value::Array(items) = std::mem::replace(array, places.into()) else { return None };
    Some((name.clone(), items))
}

/// Whether `field` is a member of one of `objects`.
fn is_member(field: &str, objects: &[String]) -> bool {
    let parent = field.rsplit_once('.').map_or("", |(parent, _)| parent);
    objects.iter().any(|object| object == parent)
}

/// Adds the violations of fields that have none yet, and at most [`VIOLATIONS_MAX`] altogether.
fn add(violations: &mut Vec<Violation>, more: Vec<Violation>) {
    let known: HashSet<String> = violations.iter().map(|violation| violation.field.clone()).collect();
    let left = VIOLATIONS_MAX.saturating_sub(violations.len());
    violations.extend(more.into_iter().filter(|extra| !known.contains(&extra.field)).take(left));
}

/// Runs a future to its end, for tests that measure this thread.
#[cfg(test)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without threads").block_on(future)
}

#[cfg(test)]
mod tests;
