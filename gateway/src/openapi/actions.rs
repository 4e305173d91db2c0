//! The parameters of Actions, as schemas.

use domain::action::{Action, Parameter, ParameterType};
use serde_json::{Map, Value, json};

use super::shapes::reference;

/// `W:H`, each from 1 to 100 with at most three digits and two decimals.
const RATIO: &str = r"^((0{0,2}[1-9]|0?[1-9][0-9])(\.[0-9]{1,2})?|100(\.0{1,2})?):((0{0,2}[1-9]|0?[1-9][0-9])(\.[0-9]{1,2})?|100(\.0{1,2})?)$";
const COLOR: &str = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$";

/// The parameters of each Action. The path of a request says which of them it must fit.
pub fn add(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    let mut forms = Vec::new();
    for action in actions::all() {
        let name = format!("{}Parameters", camel(&action.slug));
        forms.push(json!({"$ref": format!("#/components/schemas/{name}")}));
        schemas[name] = parameters(action);
    }
    schemas["RunAction"]["properties"]["params"] = json!({
        "anyOf": forms, "description": "The parameters of the Action in the path. Those that are left out have their defaults.",
    });
    for parameter in &actions::all()[0].parameters {
        match shared_type(parameter) {
            Some("Anchor") => schemas["Anchor"] = form(parameter),
            // These mean the same everywhere.
            Some(name @ ("OutputFormat" | "OutputQuality")) => schemas[name] = described(form(parameter), parameter),
            _ => {}
        }
    }
    schemas["Color"] = json!({"type": "string", "pattern": COLOR, "description": "`#rgb`, `#rrggbb` or `#rrggbbaa`."});
}

/// `params` of one Action.
fn parameters(action: &Action) -> Value {
    let properties = action.parameters.iter().map(|parameter| (parameter.id.to_string(), parameter_schema(parameter)));
    let required: Vec<&str> = action.parameters.iter().filter(|it| it.required).map(|it| &*it.id).collect();
    let mut schema = json!({
        "type": "object", "description": action.summary, "additionalProperties": false,
        "properties": properties.collect::<Map<_, _>>(),
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn parameter_schema(parameter: &Parameter) -> Value {
    match shared_type(parameter) {
        Some(name @ ("OutputFormat" | "OutputQuality")) => reference(name),
        Some(name) => described(reference(name), parameter),
        None => described(form(parameter), parameter),
    }
}

/// A schema with what the parameter is, and its default.
fn described(mut schema: Value, parameter: &Parameter) -> Value {
    let described = if parameter.description.is_empty() { &parameter.title } else { &parameter.description };
    schema["description"] = (&**described).into();
    // `shapes` turns it into words: generators make a member with a default mandatory.
    if let Some(default) = &parameter.default {
        schema["default"] = default.clone();
    }
    schema
}

/// The component for parameters that several Actions have in the same form.
fn shared_type(parameter: &Parameter) -> Option<&'static str> {
    match (parameter.kind, &*parameter.id) {
        (ParameterType::Color, _) => Some("Color"),
        (_, "anchor") => Some("Anchor"),
        (_, "format") => Some("OutputFormat"),
        (_, "quality") => Some("OutputQuality"),
        _ => None,
    }
}

/// The values of a parameter.
fn form(parameter: &Parameter) -> Value {
    let mut schema = match parameter.kind {
        ParameterType::Number if parameter.integer == Some(true) => json!({"type": "integer"}),
        ParameterType::Number => json!({"type": "number"}),
        ParameterType::Select => {
            let options = || parameter.options.iter();
            json!({
                "type": "string", "enum": options().map(|it| &it.value).collect::<Vec<_>>(),
                "x-enum-descriptions": options().map(|it| &it.label).collect::<Vec<_>>(),
            })
        }
        ParameterType::Text => json!({"type": "string"}),
        ParameterType::Color => json!({"type": "string", "pattern": COLOR}),
    };
    let mut set = |keyword: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema[keyword] = value;
        }
    };
    set("minimum", parameter.min.map(bound));
    set("maximum", parameter.max.map(bound));
    set("maxLength", parameter.max_length.map(Value::from));
    if parameter.id == "ratio" {
        set("pattern", Some(RATIO.into()));
    }
    schema
}

/// A bound as a whole number where it is one.
fn bound(bound: f64) -> Value {
    if bound.fract() == 0.0 { json!(bound as i64) } else { json!(bound) }
}

/// `add-text-to-image` as the name of a type.
fn camel(slug: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    slug.split('-').map(word).collect()
}
