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
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let mut components = serde_json::Map::new();
    for (form, (parameter, _)) in declared.into_iter().filter(|(_, (_, uses))| *uses > 1) {
        let name = name_of(&parameter);
        let earlier = components.insert(name.to_owned(), parameter);
        assert!(earlier.is_none(), "two forms of a parameter are named {name}");
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

/// The shared parameters: name, place, a part of the description where that distinguishes two forms, and the component.
const NAMES: [(&str, &str, &str, &str); 20] = [
    ("If-None-Match", "header", "a wait starts", "IfNoneMatchToWait"),
    ("If-None-Match", "header", "", "IfNoneMatch"),
    ("Prefer", "header", "return=minimal", "PreferMinimalOrLenient"),
    ("Prefer", "header", "handling=lenient", "PreferLenient"),
    ("Prefer", "header", "wait=N", "PreferWait"),
    ("Range", "header", "", "Range"),
    ("actionKey", "path", "", "ActionKey"),
    ("assetId", "path", "", "AssetId"),
    ("canvasId", "path", "", "CanvasId"),
    ("collectionId", "path", "", "CollectionId"),
    ("cursor", "query", "", "Cursor"),
    ("elementId", "path", "", "ElementId"),
    ("jobId", "path", "", "JobId"),
    ("limit", "query", "", "Limit"),
    ("ownerUid", "query", "", "OwnerUid"),
    ("recipeId", "path", "", "RecipeId"),
    ("runId", "path", "campaign", "CampaignId"),
    ("runId", "path", "", "RunId"),
    ("view", "query", "each item", "ViewOfList"),
    ("view", "query", "", "ViewOfRun"),
];

fn name_of(parameter: &Value) -> &'static str {
    let text = |member: &str| parameter[member].as_str().unwrap_or_default();
    let is_it = |(name, place, part, _): &&(&str, &str, &str, &str)| {
        text("name") == *name && text("in") == *place && text("description").contains(part)
    };
    let known = NAMES.iter().find(is_it);
    known.unwrap_or_else(|| panic!("{} is shared and needs a name", text("name"))).3
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
