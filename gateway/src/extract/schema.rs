//! The compiled schema of a request type, and its errors as violations of the contract
//! (docs/reference/conventions.md#field-paths).

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, RwLock};

use domain::Violation;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::openapi::{close_variants, join_inlined};

/// The schema of `T`, compiled at its first use.
pub(super) fn validator<T: ToSchema + 'static>() -> Arc<Validator> {
    static VALIDATORS: LazyLock<RwLock<HashMap<TypeId, Arc<Validator>>>> = LazyLock::new(RwLock::default);
    let poisoned = "a schema's compilation does not panic while the map is held";
    if let Some(validator) = VALIDATORS.read().expect(poisoned).get(&TypeId::of::<T>()) {
        return validator.clone();
    }
    let mut referenced = Vec::new();
    T::schemas(&mut referenced);
    let components: serde_json::Map<String, Value> = referenced
        .into_iter()
        .map(|(name, mut schema)| {
            close_variants(&mut schema);
            (name, serde_json::to_value(schema).expect("an OpenAPI schema serializes"))
        })
        .collect();
    let mut schema = T::schema();
    close_variants(&mut schema);
    let mut schema = serde_json::to_value(schema).expect("an OpenAPI schema serializes");
    schema["components"] = json!({ "schemas": components });
    select_by_tag(&mut schema);
    let compiled =
        jsonschema::draft202012::new(&schema).expect("a derived schema is valid: a test of the router compiles each");
    let compiled = Arc::new(compiled);
    VALIDATORS.write().expect(poisoned).insert(TypeId::of::<T>(), compiled.clone());
    compiled
}

/// The fields that discriminate the variants of a union.
const TAGS: [&str; 2] = ["type", "operation"];

/// Replaces each union of tagged objects by one condition for each tag. `oneOf` reports a copy of the value for each variant, and
/// conditions report the violations of the variant that the tag names, without a copy.
fn select_by_tag(schema: &mut Value) {
    join_inlined(schema);
    match schema {
        Value::Array(items) => items.iter_mut().for_each(select_by_tag),
        Value::Object(members) => {
            members.values_mut().for_each(select_by_tag);
            if let Some((tag, variants)) = members.get("oneOf").and_then(tagged) {
                let names: Vec<&Value> = variants.iter().map(|(name, _)| name).collect();
                let of_tag =
                    |names: Value| json!({"type": "object", "required": [tag], "properties": {tag: {"enum": names}}});
                let selects =
                    variants.iter().map(|(name, variant)| json!({"if": of_tag(json!([name])), "then": variant}));
                let mut union = of_tag(json!(names));
                union["allOf"] = selects.collect();
                let Value::Object(union) = union else { unreachable!("an object") };
                members.remove("oneOf");
                members.extend(union);
            }
        }
        _ => {}
    }
}

/// The tag of a union, and its variants with the values of the tag; `None` when a variant has no tag.
fn tagged(variants: &Value) -> Option<(&'static str, Vec<(Value, Value)>)> {
    let variants = variants.as_array()?;
    TAGS.into_iter().find_map(|tag| {
        let name = |variant: &Value| match variant["properties"][tag]["enum"].as_array()?.as_slice() {
            [name] => Some((name.clone(), variant.clone())),
            _ => None,
        };
        Some((tag, variants.iter().map(name).collect::<Option<_>>()?))
    })
}

/// The message for a missing member.
const REQUIRED: &str = "is required";
/// Maximum characters of a key in a reported path. A key may be as long as its body, and up to 1000 paths may contain it.
const SHOWN_KEY_MAX: usize = 200;

/// Appends a field to a path. A long key is cut.
pub(super) fn join(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    match key.char_indices().nth(SHOWN_KEY_MAX) {
        Some((end, _)) => {
            path.push_str(&key[..end]);
            path.push('…');
        }
        None => path.push_str(key),
    }
}

/// The path of a location, as violations report it.
fn field(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Property(name) => join(&mut path, &name),
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// The violations for a validator's errors. A field of the wrong type is reported for its type alone, since its other rules
/// presuppose the right type.
pub(super) fn violations<'a>(errors: &[ValidationError<'a>]) -> Vec<Violation> {
    let is_mistyped = |error: &&ValidationError<'a>| matches!(error.kind(), ValidationErrorKind::Type { .. });
    let mistyped: HashSet<&Location> = errors.iter().filter(is_mistyped).map(ValidationError::instance_path).collect();
    let is_reported = |error: &&ValidationError<'a>| is_mistyped(error) || !mistyped.contains(error.instance_path());
    errors.iter().filter(is_reported).flat_map(violations_of).collect()
}

fn violations_of(error: &ValidationError<'_>) -> Vec<Violation> {
    let path = field(error.instance_path());
    let within = |name: &str| {
        let mut path = path.clone();
        join(&mut path, name);
        path
    };
    let one = |message: String| vec![Violation::new(path.as_str(), message)];
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            vec![Violation::new(within(property.as_str().unwrap_or_default()), REQUIRED)]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|name| Violation::new(within(name), "is not a known field")).collect()
        }
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            nearest_form(&path, context)
        }
        ValidationErrorKind::Enum { options } => one(format!("must be one of {}", choices(options))),
        ValidationErrorKind::Type { .. } => one(type_message(error)),
        ValidationErrorKind::Minimum { limit } => one(format!("must be at least {limit}")),
        ValidationErrorKind::Maximum { limit } => one(format!("must be at most {limit}")),
        ValidationErrorKind::MinLength { limit } => one(format!("must have at least {}", counted(*limit, "character"))),
        ValidationErrorKind::MaxLength { limit } => one(format!("must have at most {}", counted(*limit, "character"))),
        ValidationErrorKind::MinItems { limit } => one(format!("must have at least {}", counted(*limit, "item"))),
        ValidationErrorKind::MaxItems { limit } => one(format!("must have at most {}", counted(*limit, "item"))),
        ValidationErrorKind::MinProperties { limit } => one(format!("must have at least {}", counted(*limit, "field"))),
        ValidationErrorKind::Pattern { pattern } => one(format!("must match {pattern}")),
        // The value itself stays out of the message: it may be a secret.
        _ => one(error.masked_with("the value").to_string()),
    }
}

/// A number of things: `1 item`, `2 items`.
fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The allowed values, formatted for a message.
fn choices(options: &Value) -> String {
    let names = options.as_array().into_iter().flatten().map(|option| match option {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    });
    names.collect::<Vec<_>>().join(", ")
}

fn type_message(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind: jsonschema::error::TypeKind::Single(kind) } => {
            format!("must be of type {kind}")
        }
        _ => error.masked_with("the value").to_string(),
    }
}

/// The violations of a value that matches none of several forms: those of the form of the value's own type with the fewest.
fn nearest_form(path: &str, forms: &[Vec<ValidationError<'static>>]) -> Vec<Violation> {
    let is_mistyped = |error: &ValidationError<'static>| {
        field(error.instance_path()) == path && matches!(error.kind(), ValidationErrorKind::Type { .. })
    };
    let distance = |errors: &&Vec<ValidationError<'static>>| (errors.iter().any(is_mistyped), errors.len());
    match forms.iter().min_by_key(distance) {
        Some(errors) => violations(errors),
        None => vec![Violation::new(path, "has none of the known forms")],
    }
}
