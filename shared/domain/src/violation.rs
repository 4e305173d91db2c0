//! What is wrong with a request, field by field: as rules find it, or as the errors of a JSON Schema validator say it.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::counted;

/// One invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// Path of the field, such as `operations[3].node.width`, `params.height` or `webhook.url`.
    pub field: String,
    /// The requirement that the field violates, for people.
    pub message: String,
}

impl Violation {
    /// A violation of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// The message for a missing member.
const REQUIRED: &str = "is required";
/// The message for a member that the schema does not have.
const UNKNOWN: &str = "is not a known field";

/// The rule of a schema that a message of this module states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule<'a> {
    /// The member has to be there.
    Required,
    /// There is no such member.
    Unknown,
    /// One of these values, separated by `, `.
    OneOf(&'a str),
    /// A value of this type of JSON.
    Type(&'a str),
    /// A number of at least this one.
    AtLeast(&'a str),
    /// A number of at most this one.
    AtMost(&'a str),
    /// An array of at most this many items.
    ItemsMax(usize),
    /// A text that matches this pattern.
    Pattern(&'a str),
}

impl Violation {
    /// The rule of a schema that the field violates; `None` for any other rule.
    pub fn rule(&self) -> Option<Rule<'_>> {
        let message = self.message.as_str();
        let rest = |start: &str| message.strip_prefix(start);
        let is_number = |limit: &&str| limit.parse::<f64>().is_ok();
        let items = |limit: &str| limit.strip_suffix(" items").or(limit.strip_suffix(" item"))?.parse().ok();
        match message {
            REQUIRED => Some(Rule::Required),
            UNKNOWN => Some(Rule::Unknown),
            _ => rest("must be one of ")
                .map(Rule::OneOf)
                .or_else(|| rest("must be of type ").map(Rule::Type))
                .or_else(|| rest("must be at least ").filter(is_number).map(Rule::AtLeast))
                .or_else(|| rest("must be at most ").filter(is_number).map(Rule::AtMost))
                .or_else(|| rest("must have at most ").and_then(items).map(Rule::ItemsMax))
                .or_else(|| rest("must match ").map(Rule::Pattern)),
        }
    }
}
/// Maximum characters of a key in a reported path. A key may be as long as its body, and up to 1000 paths may contain it.
const SHOWN_KEY_MAX: usize = 200;

/// Appends a field to a path of the contract. A long key is cut.
pub fn join(path: &mut String, key: &str) {
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

/// The errors of a validator as violations (docs/reference/conventions.md#field-paths). A field of the wrong type is reported
/// for its type alone, since its other rules presuppose the right type.
pub fn from_schema<'a>(errors: &[ValidationError<'a>]) -> Vec<Violation> {
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
            unexpected.iter().map(|name| Violation::new(within(name), UNKNOWN)).collect()
        }
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            nearest_form(&path, context)
        }
        ValidationErrorKind::Enum { options } => one(format!("must be one of {}", choices(options))),
        ValidationErrorKind::Type { .. } => one(type_message(error)),
        ValidationErrorKind::Minimum { limit } => one(format!("must be at least {limit}")),
        ValidationErrorKind::Maximum { limit } => one(format!("must be at most {limit}")),
        ValidationErrorKind::MinLength { limit } => one(format!("must have at least {}", counted(limit, "character"))),
        ValidationErrorKind::MaxLength { limit } => one(format!("must have at most {}", counted(limit, "character"))),
        ValidationErrorKind::MinItems { limit } => one(format!("must have at least {}", counted(limit, "item"))),
        ValidationErrorKind::MaxItems { limit } => one(format!("must have at most {}", counted(limit, "item"))),
        ValidationErrorKind::MinProperties { limit } => one(format!("must have at least {}", counted(limit, "field"))),
        ValidationErrorKind::Pattern { pattern } => one(format!("must match {pattern}")),
        // The value itself stays out of the message: it may be a secret.
        _ => one(error.masked_with("the value").to_string()),
    }
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
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => {
            format!("must be of type {kind}")
        }
        _ => error.masked_with("the value").to_string(),
    }
}

/// The violations of a value that matches none of several forms: those of the form of the value's own type and tag with the
/// fewest. A tag is a member that has one value in each form; if no form has the value's own, that alone is the violation.
fn nearest_form(path: &str, forms: &[Vec<ValidationError<'static>>]) -> Vec<Violation> {
    let is_mistyped = |error: &ValidationError<'static>| {
        field(error.instance_path()) == path && matches!(error.kind(), ValidationErrorKind::Type { .. })
    };
    let is_of_another = |error: &ValidationError<'static>| missed_tag(path, error).is_some();
    let distance = |errors: &&Vec<ValidationError<'static>>| {
        (errors.iter().any(is_mistyped), errors.iter().any(is_of_another), errors.len())
    };
    let Some(nearest) = forms.iter().min_by_key(distance) else {
        return vec![Violation::new(path, "has none of the known forms")];
    };
    let Some((member, _)) = nearest.iter().find_map(|error| missed_tag(path, error)) else {
        return from_schema(nearest);
    };
    let tags = forms.iter().flatten().filter_map(|error| missed_tag(path, error)).filter(|(of, _)| *of == member);
    let tags: Value = tags.map(|(_, tag)| tag).collect();
    vec![Violation::new(member, format!("must be one of {}", choices(&tags)))]
}

/// The path of a member that has only one value in a form, which is not the given one, and that value.
fn missed_tag(path: &str, error: &ValidationError<'static>) -> Option<(String, Value)> {
    let tag = match error.kind() {
        ValidationErrorKind::Constant { expected_value } => expected_value.as_ref().clone(),
        ValidationErrorKind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([only]) => only.clone(),
            _ => return None,
        },
        _ => return None,
    };
    let member = field(error.instance_path());
    let name = member.strip_prefix(path)?.trim_start_matches('.');
    let is_direct = !name.is_empty() && !name.contains(['.', '[']);
    is_direct.then_some((member, tag))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_violation_of_a_schema_has_a_path_and_a_message_without_the_value() {
        let schema = json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string"},
                "items": {"type": "array", "maxItems": 2, "items": {
                    "type": "object", "properties": {"side": {"type": "integer", "minimum": 1, "enum": [1, 2]}},
                }},
                "either": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "boolean"}]},
            },
        });
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let given = json!({"items": [{}, {"side": 0}, {"side": "secret"}], "either": "secret", "k".repeat(201): 1});
        let errors: Vec<_> = validator.iter_errors(&given).collect();
        let mut found: Vec<String> =
            from_schema(&errors).into_iter().map(|it| format!("{} {}", it.field, it.message)).collect();
        found.sort();
        let long = format!("{}… is not a known field", "k".repeat(200));
        let expected = [
            "either must have at most 1 character",
            "items must have at most 2 items",
            "items[1].side must be at least 1",
            "items[1].side must be one of 1, 2",
            "items[2].side must be of type integer",
            &*long,
            "name is required",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_message_tells_its_rule() {
        for (schema, given, rule) in [
            (json!({"required": ["a"]}), json!({}), Some(Rule::Required)),
            (json!({"properties": {"b": {}}, "additionalProperties": false}), json!({"a": 1}), Some(Rule::Unknown)),
            (json!({"enum": ["a", 2]}), json!("b"), Some(Rule::OneOf("a, 2"))),
            (json!({"type": "integer"}), json!("b"), Some(Rule::Type("integer"))),
            (json!({"minimum": 1.5}), json!(1), Some(Rule::AtLeast("1.5"))),
            (json!({"maximum": 8}), json!(9), Some(Rule::AtMost("8"))),
            (json!({"maxItems": 1}), json!([1, 2]), Some(Rule::ItemsMax(1))),
            (json!({"maxItems": 2}), json!([1, 2, 3]), Some(Rule::ItemsMax(2))),
            (json!({"pattern": "^#"}), json!("b"), Some(Rule::Pattern("^#"))),
            (json!({"maxLength": 2}), json!("abc"), None),
            (json!({"minItems": 1}), json!([]), None),
        ] {
            let validator = jsonschema::draft202012::new(&schema).expect("a schema");
            let errors: Vec<_> = validator.iter_errors(&given).collect();
            let found = from_schema(&errors);
            assert_eq!(found.len(), 1, "{schema}");
            assert_eq!(found[0].rule(), rule, "{}", found[0].message);
        }
        for message in ["must be at least the number of outputs, 2", "must be a color: #rgb", ""] {
            assert_eq!(Violation::new("a", message).rule(), None, "{message}");
        }
    }

    #[test]
    fn a_tagged_form_is_judged_by_the_form_of_its_tag() {
        let form = |tag: &str, member: &str| {
            json!({"type": "object", "required": ["type", member], "additionalProperties": false,
                "properties": {"type": {"type": "string", "enum": [tag]}, member: {"type": "number"}}})
        };
        let schema = json!({"type": "array", "items": {"anyOf": [form("move", "by"), form("turn", "angle")]}});
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        let found = |given: Value| {
            let errors: Vec<_> = validator.iter_errors(&given).collect();
            let found = from_schema(&errors).into_iter().map(|it| format!("{} {}", it.field, it.message));
            found.collect::<Vec<_>>()
        };
        // Of the other form it has the member, so that fewer errors would not tell.
        let mixed = json!([{"type": "turn", "by": 1, "at": 2}]);
        let mut violations = found(mixed);
        violations.sort();
        let expected =
            ["[0].angle is required", "[0].at is not a known field", "[0].by is not a known field"].map(str::to_owned);
        assert_eq!(violations, expected);
        assert_eq!(found(json!([{"type": "jump", "high": true}])), ["[0].type must be one of move, turn"]);
        assert_eq!(found(json!([{"by": 1}])), ["[0].type is required"]);
    }
}
