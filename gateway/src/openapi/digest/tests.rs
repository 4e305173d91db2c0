//! The digest is complete, small, and names nothing that the contract does not have.

use serde_json::{Value, json};

use super::tokens::estimate;
use super::*;
use crate::router::documented;

/// What a model can be given beside its task.
const TOKENS_MAX: usize = 6000;

/// Both parts.
fn parts(document: &Value) -> [String; 2] {
    [None, Some(Part::Rest)].map(|part| digest(document, "https://canvas.example.com/", part))
}

fn of(document: &Value) -> String {
    parts(document).concat()
}

#[test]
fn each_part_is_small() {
    for text in parts(&documented().1) {
        let tokens = estimate(&text);
        assert!(tokens <= TOKENS_MAX, "{tokens} tokens, more than {TOKENS_MAX}: {text:.60}");
        let longest = text.lines().map(str::len).max();
        assert!(longest.is_some_and(|longest| longest < 2000), "{longest:?}");
    }
}

#[test]
fn every_operation_is_in_it() {
    let document = documented().1;
    let text = of(&document);
    for endpoint in Endpoint::all(&document) {
        let name = format!("{} {}", endpoint.method.to_uppercase(), endpoint.path);
        let is_named = |line: &str| {
            let rest = line.strip_prefix("- ").and_then(|line| line.strip_prefix(&name));
            rest.is_some_and(|rest| rest.starts_with([' ', '?']))
        };
        let is_outdated = endpoint.is_deprecated() && text.contains(&name);
        assert!(text.lines().any(is_named) || is_outdated, "{name}");
    }
}

#[test]
fn every_operation_of_a_batch_and_every_action_is_in_it_with_its_members() {
    let document = documented().1;
    let text = of(&document);
    let schemas = &document["components"]["schemas"];
    let forms = [("Operation", "/oneOf"), ("RunAction", "/properties/params/anyOf")];
    let kinds = forms.iter().flat_map(|(name, path)| schemas[name].pointer(path).and_then(Value::as_array)).flatten();
    let common = text.lines().find_map(|line| line.split_once(" All take ")).expect("what all Actions take").1;
    assert_eq!(common, "{format?: OutputFormat, quality?: 1..100}.");
    let mut found = 0;
    for schema in kinds.map(|kind| &schemas[component(kind).expect("a component")]) {
        let members = schema["properties"].as_object().expect("an object").keys().filter(|name| *name != "type");
        let has = |line: &str| {
            line.starts_with("- `") && members.clone().all(|name| line.contains(&**name) || common.contains(&**name))
        };
        assert!(text.lines().any(has), "{schema}");
        found += 1;
    }
    assert!(found >= 19, "{found}");
}

#[test]
fn a_new_operation_and_a_new_member_appear_by_themselves() {
    let mut document = documented().1;
    let schemas = &mut document["components"]["schemas"];
    schemas["NodeSpin"] = json!({
        "type": "object", "description": "Turns a node. More.", "required": ["type", "nodeId", "degrees"],
        "properties": {"type": {"const": "node.spin"}, "nodeId": {"$ref": "#/components/schemas/NodeReference"},
            "degrees": {"type": "integer", "minimum": -180, "maximum": 180}},
    });
    let variants = schemas["Operation"]["oneOf"].as_array_mut().expect("a union");
    variants.push(json!({"$ref": "#/components/schemas/NodeSpin"}));
    schemas["RunAction"]["properties"]["place"] = json!({
        "type": "object", "properties": {"near": {"$ref": "#/components/schemas/NodeReference"}},
    });
    let text = of(&document);
    assert!(text.contains("- `node.spin` {degrees: -180..180, nodeId} Turns a node.\n"), "{text}");
    assert!(text.contains("place?: {near?}"), "{text}");
}

/// Everything that the guide puts into backticks is a word of the contract.
#[test]
fn the_guide_names_nothing_that_the_contract_lacks() {
    let document = documented().1.to_string();
    // Of HTTP, or in place of a value, as in `element:<id>@v<n>`.
    let own = ["Authorization", "Bearer", "Content", "Type", "GET", "POST", "DELETE", "slug", "token", "n", "y"];
    let guides = [None, Some(Part::Rest)].map(guide).concat();
    let code = guides.split('`').skip(1).step_by(2).filter(|code| !code.contains("{{"));
    let words = code.flat_map(|code| code.split(|it: char| !it.is_alphanumeric() && it != '_'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && !own.contains(word)).collect();
    assert!(words.len() > 80, "{words:?}");
    let unknown: Vec<&&str> = words.iter().filter(|word| !document.contains(**word)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn forms_are_written_as_the_guide_explains() {
    let components = json!({
        "Side": {"type": "string", "enum": ["left", "right"]},
        "Id": {"type": "string", "maxLength": 180},
        "Spot": {"type": "object", "required": ["x"], "properties": {
            "x": {"type": "number"}, "side": {"$ref": "#/components/schemas/Side"}, "id": {"$ref": "#/components/schemas/Id"}}},
    });
    let components = components.as_object().expect("an object");
    let form = |schema: Value| {
        let forms = Forms::new(components, &[]);
        // Leaked: the forms borrow the schemas of a document.
        forms.form(Box::leak(Box::new(schema)))
    };
    for (schema, expected) in [
        (json!({"type": "string"}), ""),
        (json!({"type": "string", "maxLength": 100}), "≤100"),
        (json!({"type": "string", "maxLength": 99}), ""),
        (json!({"type": "string", "maxLength": 180, "pattern": "^[a-z0-9]+$"}), ""),
        (json!({"type": ["string", "null"], "pattern": "^summary$"}), "summary"),
        (json!({"type": "integer", "minimum": 1, "maximum": 4}), "1..4"),
        (json!({"type": "integer", "minimum": 0}), "int"),
        (json!({"type": "number", "minimum": -1e7, "maximum": 1e7}), "num"),
        (json!({"const": true}), "true"),
        (json!({"type": "array", "items": {"type": "string"}, "maxItems": 8}), "[] ≤8"),
        (json!({"$ref": "#/components/schemas/Spot"}), "{x: num, id?, side?: left|right}"),
        (json!({"oneOf": [{"$ref": "#/components/schemas/Side"}, {"type": "null"}]}), "left|right"),
        (json!({"oneOf": [{"type": "string"}, {"type": "boolean"}]}), "text or bool"),
        (json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 800}}), "{<key>: ≤800}"),
    ] {
        assert_eq!(form(schema.clone()), expected, "{schema}");
    }
}
