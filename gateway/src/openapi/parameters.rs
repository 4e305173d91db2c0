//! Shared parameters: what several operations take in the same form is a component that each refers to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::operations;

/// Moves every parameter that more than one operation declares into the components.
pub fn share(document: &mut Value) {
    // By place and form; the value says how many operations declare it.
    let mut declared: BTreeMap<String, (Value, usize)> = BTreeMap::new();
    for (_, operation) in operations(document) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            simplify(parameter);
            declared.entry(parameter.to_string()).or_insert_with(|| (parameter.clone(), 0)).1 += 1;
        }
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut components = serde_json::Map::new();
    for (form, (parameter, _)) in declared.into_iter().filter(|(_, (_, uses))| *uses > 1) {
        let name = name_of(&parameter);
        let earlier = components.insert(name.clone(), parameter);
        assert!(earlier.is_none(), "two forms of a parameter are named {name}: {form}");
        names.insert(form, name);
    }
    for (_, operation) in operations(document) {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(name) = names.get(&parameter.to_string()) {
                *parameter = json!({"$ref": format!("#/components/parameters/{name}")});
            }
        }
    }
    document["components"]["parameters"] = components.into();
}

/// Parameters that have several forms: name, a part of the description that tells the form, and the component.
const FORMS: [(&str, &str, &str); 7] = [
    ("If-None-Match", "a wait starts", "IfNoneMatchToWait"),
    ("Prefer", "return=minimal", "PreferMinimalOrLenient"),
    ("Prefer", "handling=lenient", "PreferLenient"),
    ("Prefer", "wait=N", "PreferWait"),
    ("runId", "campaign", "CampaignId"),
    ("view", "each item", "ViewOfList"),
    ("view", "", "ViewOfRun"),
];

/// `If-None-Match` is `IfNoneMatch`, `canvasId` is `CanvasId`.
fn name_of(parameter: &Value) -> String {
    let text = |member: &str| parameter[member].as_str().unwrap_or_default();
    let is_it = |(name, part, _): &&(&str, &str, &str)| text("name") == *name && text("description").contains(part);
    let words = || text("name").split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
    FORMS.iter().find(is_it).map_or_else(|| words().collect(), |(.., name)| (*name).to_owned())
}

/// Removes what a parameter has by default. One that may be left out is not one that may be null, which is how the derive spells
/// an option.
fn simplify(parameter: &mut Value) {
    if parameter["required"] == false {
        parameter.as_object_mut().expect("a parameter").remove("required");
    }
    if let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) {
        schema.remove("format");
    }
    let Some(types) = parameter.pointer_mut("/schema/type") else { return };
    let Some(only) = types.as_array().and_then(|types| match types.as_slice() {
        [only, null] | [null, only] if null == "null" => Some(only.clone()),
        _ => None,
    }) else {
        return;
    };
    *types = only;
}
