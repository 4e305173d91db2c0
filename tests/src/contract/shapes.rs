//! Checks fields, enumerations, limits and statuses of the contract document.
//!
//! The tables next to this file are written by hand. A schema must have exactly the fields of its table: a missing field fails
//! the check, and so does an additional one, unless the table marks it as an extension.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::tests::{document, operations};
use super::{Access, built};

/// The lines of a table, split at the first `: `.
pub(super) fn table(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(": ").unwrap_or_else(|| panic!("not a line of a table: {line}")))
}

/// A field or a parameter of a table.
#[derive(Debug)]
struct Field {
    name: &'static str,
    is_extension: bool,
    is_optional: bool,
    least: Option<f64>,
    most: Option<f64>,
    pattern: Option<&'static str>,
}

impl Field {
    /// Parses `+name?>=1<=9~pattern`.
    fn parse(text: &'static str) -> Self {
        let (rest, pattern) = text.split_once('~').map_or((text, None), |(rest, pattern)| (rest, Some(pattern)));
        let bound = |text: &str| text.parse().unwrap_or_else(|_| panic!("not a bound: {text}"));
        let (rest, most) = rest.split_once("<=").map_or((rest, None), |(rest, most)| (rest, Some(bound(most))));
        let (rest, least) = rest.split_once(">=").map_or((rest, None), |(rest, least)| (rest, Some(bound(least))));
        let (rest, is_extension) = rest.strip_prefix('+').map_or((rest, false), |rest| (rest, true));
        let (name, is_optional) = rest.strip_suffix('?').map_or((rest, false), |rest| (rest, true));
        assert!(name.chars().all(char::is_alphanumeric), "not a name: {text}");
        Self { name, is_extension, is_optional, least, most, pattern }
    }

    /// The differences between the field and a schema.
    fn differences(&self, document: &Value, schema: &Value) -> Vec<String> {
        let schema = resolved(document, schema);
        let bounds = match type_of(&schema) {
            "string" => ["minLength", "maxLength"],
            "array" => ["minItems", "maxItems"],
            "object" => ["minProperties", "maxProperties"],
            _ => ["minimum", "maximum"],
        };
        let mut found = Vec::new();
        for (bound, wanted) in bounds.into_iter().zip([self.least, self.most]) {
            if wanted.is_some() && schema[bound].as_f64() != wanted {
                found.push(format!("{}: {bound} should be {wanted:?} and is {}", self.name, schema[bound]));
            }
        }
        if let Some(pattern) = self.pattern.filter(|pattern| schema["pattern"] != *pattern) {
            found.push(format!("{}: the pattern should be {pattern} and is {}", self.name, schema["pattern"]));
        }
        found
    }
}

/// Whether a description says that something is an extension, by "an extension" or the sentence "Extension." A nullable schema
/// says so in one of its choices.
pub(super) fn says_extension(documented: &Value) -> bool {
    let choices = documented["oneOf"].as_array().into_iter().flatten();
    let words = |schema: &Value| {
        schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    choices.chain([documented]).map(words).any(|words| words.contains("an extension") || words.contains("Extension."))
}

/// The type of a schema, without `null`.
fn type_of(schema: &Value) -> &str {
    let types = schema["type"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = types.iter().filter_map(Value::as_str).find(|name| *name != "null");
    one.or(schema["type"].as_str()).unwrap_or_default()
}

/// A schema with its references resolved, and without the choice of `null`.
fn resolved(document: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#'));
        return resolved(document, target.unwrap_or_else(|| panic!("{reference} does not resolve")));
    }
    let choices = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    let something = choices.map(|all| all.iter().filter(|one| one["type"] != "null").collect::<Vec<_>>());
    match something.as_deref() {
        Some([one]) => resolved(document, one),
        _ => schema.clone(),
    }
}

/// The fields of an object and the names of the required ones. Includes all parts of `allOf` and the first choice of `oneOf`.
fn shape(document: &Value, schema: &Value) -> (Map<String, Value>, BTreeSet<String>) {
    let schema = resolved(document, schema);
    let mut fields = schema["properties"].as_object().cloned().unwrap_or_default();
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut required: BTreeSet<String> = names.map(str::to_owned).collect();
    // A choice between combinations of fields has no fields of its own.
    let has_fields = |choice: &&Value| !shape(document, choice).0.is_empty();
    let first_choice = schema["oneOf"].as_array().and_then(|choices| choices.first()).filter(has_fields);
    for part in schema["allOf"].as_array().into_iter().flatten().chain(first_choice) {
        let (more, always) = shape(document, part);
        fields.extend(more);
        required.extend(always);
    }
    (fields, required)
}

/// The differences between the schemas and a table. An optional field of a request (`is_request`) must be optional in its schema.
/// In a response it may be required there.
fn differences(document: &Value, text: &'static str, is_request: bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, fields) in table(text) {
        let schema = &document["components"]["schemas"][name];
        let (present, required) = shape(document, schema);
        let fields: Vec<Field> = fields.split_whitespace().map(Field::parse).collect();
        let mut note = |what: String| found.push(format!("{name}.{what}"));
        for field in &fields {
            let Some(schema) = present.get(field.name) else {
                note(format!("{} is missing", field.name));
                continue;
            };
            let is_required = required.contains(field.name);
            let is_wrong =
                if is_request { is_required == field.is_optional } else { !is_required && !field.is_optional };
            if is_wrong && (is_request || !field.is_extension) {
                note(format!("{}: required is {is_required}", field.name));
            }
            field.differences(document, schema).into_iter().for_each(&mut note);
            if field.is_extension && !says_extension(schema) {
                note(format!("{} does not say that it is an extension", field.name));
            }
        }
        let tabled: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
        present
            .keys()
            .filter(|name| !tabled.contains(name.as_str()))
            .for_each(|name| note(format!("{name} is in no table")));
    }
    found
}

#[test]
fn every_resource_has_its_fields_and_no_others() {
    assert_eq!(differences(&document(), include_str!("responses.txt"), false), [""; 0]);
}

#[test]
fn every_request_takes_its_fields_within_their_limits_and_no_others() {
    assert_eq!(differences(&document(), include_str!("requests.txt"), true), [""; 0]);
}

#[test]
fn every_enumeration_has_its_values_in_their_order() {
    let document = document();
    for (name, values) in table(include_str!("enums.txt")) {
        let schema = resolved(&document, &document["components"]["schemas"][name]);
        // An enumeration of one value is a constant.
        let values_of = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
        let present: Vec<&str> = values_of.filter_map(Value::as_str).collect();
        assert_eq!(present, values.split(" | ").collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn every_operation_takes_its_query_parameters_and_no_others() {
    let document = document();
    let tables: BTreeMap<&str, &str> = table(include_str!("queries.txt")).collect();
    for ((method, path), operation) in operations(&document) {
        let name = format!("{method} {path}");
        let fields = tables.get(name.as_str()).copied().unwrap_or_default();
        let fields: Vec<Field> = fields.split_whitespace().map(Field::parse).collect();
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let queries: Vec<&Value> = parameters.iter().filter(|it| it["in"] == "query").collect();
        let present: BTreeSet<&str> = queries.iter().filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(present, fields.iter().map(|field| field.name).collect(), "{name}");
        for field in &fields {
            let parameter = queries.iter().find(|it| it["name"] == field.name).expect("was compared");
            assert_eq!(parameter["required"] == true, !field.is_optional, "{name}: {}", field.name);
            assert_eq!(field.differences(&document, &parameter["schema"]), [""; 0], "{name}");
            // `ownerUid` is documented once for all operations (docs/reference/conventions.md#canvas-and-owner).
            let is_documented = says_extension(parameter) || field.name == "ownerUid";
            assert!(is_documented || !field.is_extension, "{name}: {} is an extension", field.name);
        }
    }
    let known = operations(&document);
    let is_known = |name: &&str| known.keys().any(|(method, path)| format!("{method} {path}") == **name);
    assert!(tables.keys().all(is_known), "a row of the table names no operation");
}

#[test]
fn every_operation_answers_with_its_statuses_and_no_others() {
    let document = document();
    let operations = operations(&document);
    let tables: BTreeMap<&str, &str> = table(include_str!("statuses.txt")).collect();
    assert_eq!(tables.len(), operations.len(), "one row for each operation");
    for endpoint in built() {
        let name = format!("{} {}", endpoint.method, endpoint.path);
        let operation = &operations[&(endpoint.method.to_owned(), endpoint.path.to_owned())];
        // The statuses that every operation can return.
        let mut expected: BTreeSet<&str> = BTreeSet::from(["400", "406", "429", "500", "503"]);
        match endpoint.access {
            Access::Open => {}
            Access::Token { all: [], any: [], .. } => expected.extend(["401"]),
            Access::Token { .. } => expected.extend(["401", "403"]),
        }
        if operation.get("requestBody").is_some() {
            expected.extend(["413", "415"]);
        }
        let own = tables.get(name.as_str()).unwrap_or_else(|| panic!("{name} has no row"));
        expected.extend(own.split_whitespace());
        let present: BTreeSet<&str> =
            operation["responses"].as_object().expect("responses").keys().map(String::as_str).collect();
        assert_eq!(present, expected, "{name}");
    }
}
