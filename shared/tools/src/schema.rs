//! JSON Schemas of arguments, and the check of arguments.

use domain::limits::VIOLATIONS_MAX;
use domain::operation::Operation;
use domain::violation::{self, Violation};
use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};

/// The schema of the arguments `T`: short, because each host reads it with each list of tools.
pub fn of_arguments<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let mut schema = T::json_schema(&mut settings.into_generator());
    RecursiveTransform(shorten).transform(&mut schema);
    schema.remove("description");
    schema.insert("type".to_owned(), "object".into());
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The schema as hosts get it: without bounds that callers keep by themselves, and with one note that unknown members are
/// refused.
pub fn listed(arguments: &Map<String, Value>) -> Map<String, Value> {
    let mut schema = Schema::from(arguments.clone());
    RecursiveTransform(|schema: &mut Schema| {
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.remove("additionalProperties");
        }
        for (bound, least) in [("minItems", 1), ("minLength", 1), ("minimum", 0), ("minimum", 1)] {
            if schema.get(bound).is_some_and(|it| it.as_u64() == Some(least)) {
                schema.remove(bound);
            }
        }
    })
    .transform(&mut schema);
    schema.insert("additionalProperties".to_owned(), false.into());
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// The schema of an argument that is one of `names`.
pub fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> Schema {
    json_schema!({"type": "string", "enum": names.collect::<Vec<_>>()})
}

/// The keywords of an operation that a caller needs. The service checks the others.
const KEYWORDS: [&str; 6] = ["type", "enum", "required", "additionalProperties", "properties", "items"];
/// The keys of metadata that are listed. The service takes the contract's others as well.
const METADATA: [&str; 13] = [
    "content",
    "color",
    "fontSize",
    "textAlign",
    "prompt",
    "altText",
    "tags",
    "sectionId",
    "zIndex",
    "locked",
    "collapsed",
    "placeholder",
    "custom",
];
/// Marks a member that `null` removes, in the contract as well.
const NULL_REMOVES: &str = "x-null-removes";

/// The contract's operations of the types that are `taken`: one form each.
pub fn operations(is_taken: impl Fn(&str) -> bool) -> Schema {
    let forms = Operation::forms();
    let taken = forms.iter().filter(|form| form["properties"]["type"]["enum"][0].as_str().is_some_and(&is_taken));
    json_schema!({"anyOf": taken.map(short_form).collect::<Vec<_>>()})
}

fn short_form(schema: &Value) -> Value {
    // Something or `null`.
    if let Some(Value::Array(forms)) = schema.get("oneOf") {
        return forms.iter().find(|form| form["type"] != "null").map(short_form).unwrap_or_default();
    }
    let members = schema.as_object().into_iter().flatten().filter(|(name, _)| KEYWORDS.contains(&name.as_str()));
    let mut short: Map<String, Value> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(Value::Object(properties)) = short.get_mut("properties") {
        for (name, property) in properties {
            *property = match name.as_str() {
                "metadata" => metadata(property),
                _ if property.get(NULL_REMOVES).is_some() => removable(property),
                _ => short_form(property),
            };
        }
    }
    if let Some(items) = short.get_mut("items") {
        *items = short_form(items);
    }
    short.into()
}

fn metadata(schema: &Value) -> Value {
    let keys = METADATA.map(|key| (key.to_owned(), removable(&schema["properties"][key])));
    json!({"type": "object", "properties": Map::from_iter(keys)})
}

/// A member that `null` removes.
fn removable(schema: &Value) -> Value {
    let mut short = short_form(schema);
    let kind = match &short["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    short["type"] = json!([kind, "null"]);
    if let Some(Value::Array(values)) = short.get_mut("enum") {
        values.push(Value::Null);
    }
    short[NULL_REMOVES] = true.into();
    short
}

/// Removes what says nothing to a caller. An optional member is left out, never `null`, unless that removes it.
fn shorten(schema: &mut Schema) {
    if schema.remove(NULL_REMOVES).is_some() {
        return;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms as they are listed, and a validator of an operation.
    fn listed() -> (Value, Validator) {
        let mut schema = operations(|kind| !kind.ends_with(".delete"));
        RecursiveTransform(shorten).transform(&mut schema);
        let schema = schema.to_value();
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        (schema, validator)
    }

    #[test]
    fn each_operation_has_a_form_with_typed_metadata() {
        let (schema, _) = listed();
        let forms = schema["anyOf"].as_array().expect("forms");
        assert_eq!(forms.len(), Operation::forms().len() - 2);
        for (at, member) in [(0, "node"), (1, "patch")] {
            let metadata = &forms[at]["properties"][member]["properties"]["metadata"];
            let keys = metadata["properties"].as_object().expect("keys");
            assert_eq!(keys.len(), METADATA.len());
            for (key, form) in keys {
                assert!(form["type"][0].is_string() && form["type"][1] == "null", "{key}: {form}");
            }
            assert_eq!(keys["textAlign"]["enum"], json!(["left", "center", "right", null]));
            assert_eq!(metadata.get("additionalProperties"), None, "the contract's other keys are taken");
        }
        for keyword in ["description", "title\":\"", "x-", "pattern", "maximum"] {
            assert!(!schema.to_string().contains(&format!("\"{keyword}")), "{keyword}");
        }
    }

    #[test]
    fn an_operation_that_fits_no_form_is_told_by_its_fields() {
        let (_, validator) = listed();
        let fields = |operation: Value| {
            let mut fields: Vec<String> = violations(&validator, &operation)
                .into_iter()
                .map(|it| format!("{} {}", it.field, it.message))
                .collect();
            fields.sort();
            fields
        };
        for operation in [
            json!({"type": "node.create", "node": {"type": "text", "metadata": {"content": "a", "model": "m"}}}),
            json!({"type": "node.update", "nodeId": "n1", "patch": {"metadata": {"color": null, "textAlign": null}}}),
            json!({"type": "connection.update", "connectionId": "c1", "role": null}),
            json!({"type": "layout.arrange", "sectionId": "n1", "layout": "masonry", "x": 0, "y": 0.5}),
        ] {
            assert!(fields(operation.clone()).is_empty(), "{operation}");
        }
        let wrong = json!({"type": "node.create", "node": {"type": "text", "widht": 1, "title": 7}});
        assert_eq!(fields(wrong), ["node.title must be of type string", "node.widht is not a known field"]);
        let wrong = json!({"type": "node.update", "nodeId": "n1", "patch": {"metadata": {"tags": "a"}}});
        assert!(fields(wrong)[0].starts_with("patch.metadata.tags "));
        assert_eq!(fields(json!({"type": "node.move", "nodeId": "n1"})), ["position is required"]);
        let [unknown] = &fields(json!({"type": "node.paint", "nodeId": "n1"}))[..] else { panic!("one violation") };
        assert!(unknown.starts_with("type must be one of node.create, node.update, "), "{unknown}");
    }
}
