//! JSON Schemas of arguments and answers, and the check of arguments.

use domain::limits::VIOLATIONS_MAX;
use domain::violation::{self, Violation};
use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};

/// The schema of the arguments `T`: short, because each host reads it with each list of tools.
pub fn of_arguments<T: JsonSchema>() -> Map<String, Value> {
    object(SchemaSettings::draft2020_12(), T::json_schema, RecursiveTransform(shorten))
}

/// The schema of the answer `T`: the members that it always has, with their types. That they are always there is not said again by
/// `required`: it would be a sixth of the list. What is within them says by its names what it is.
pub fn of_answer<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = object(settings, T::json_schema, RecursiveTransform(shorten));
    let always = schema.remove("required").unwrap_or_default();
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.retain(|name, _| always.as_array().is_some_and(|always| always.contains(&json!(name))));
        for member in members.values_mut() {
            *member = match member.get("type") {
                Some(kind) => json!({"type": kind}),
                None => json!({}),
            };
        }
    }
    schema
}

/// The schema of an argument that is one of `names`.
pub fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> Schema {
    json_schema!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

fn object(
    settings: SchemaSettings,
    of: fn(&mut schemars::SchemaGenerator) -> Schema,
    mut transform: impl Transform,
) -> Map<String, Value> {
    let mut generator = settings.with(|it| it.inline_subschemas = true).into_generator();
    let mut schema = of(&mut generator);
    transform.transform(&mut schema);
    schema.remove("description");
    schema.insert("type".to_owned(), "object".into());
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Removes what says nothing to a caller. An optional member is left out, never `null`.
fn shorten(schema: &mut Schema) {
    for name in ["$schema", "title", "format", "default"] {
        schema.remove(name);
    }
    for name in ["additionalProperties", "items"] {
        if schema.get(name) == Some(&Value::Bool(true)) {
            schema.remove(name);
        }
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| form["type"] != "null");
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (name, value) in only {
                if schema.get(&name).is_none() {
                    schema.insert(name, value);
                }
            }
        }
    }
}

/// The violations of `arguments`; empty when they fit.
pub fn violations(validator: &Validator, arguments: &Value) -> Vec<Violation> {
    let errors: Vec<_> = validator.iter_errors(arguments).take(VIOLATIONS_MAX).collect();
    violation::from_schema(&errors)
}
