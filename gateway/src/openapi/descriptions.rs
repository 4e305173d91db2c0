//! Every member and every value of an enumeration (`x-enum-descriptions`) is described where it is declared.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::router::documented;

/// Calls `check` with each enumeration of several values, and where it is.
fn each(value: &Value, path: &str, check: &mut impl FnMut(&str, &[Value], &Value)) {
    if let Some(values) = value["enum"].as_array().filter(|values| values.len() > 1 && !values[0].is_array()) {
        check(path, values, value);
    }
    let members = value.as_object().into_iter().flatten().map(|(key, member)| (key.clone(), member));
    let items = value.as_array().into_iter().flatten().enumerate().map(|(at, item)| (at.to_string(), item));
    for (key, child) in members.chain(items) {
        each(child, &format!("{path}/{key}"), check);
    }
}

#[test]
fn each_value_of_an_enumeration_is_described_and_has_an_identifier_of_its_own() {
    let document = documented().1;
    let mut wrong = Vec::new();
    let mut count = 0;
    each(&document, "", &mut |path, values, schema| {
        count += 1;
        let texts = |keyword: &str| -> Vec<&str> {
            schema[keyword].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let described = texts("x-enum-descriptions");
        if described.len() != values.len() || described.iter().any(|text| text.is_empty()) {
            wrong.push(format!("{path}: {values:?} is described as {described:?}"));
        }
        // Some generators replace signs by `_`, some leave them out.
        let names: Vec<String> = match texts("x-enum-varnames") {
            names if names.is_empty() => values.iter().map(Value::to_string).collect(),
            names => names.into_iter().map(str::to_owned).collect(),
        };
        let letters = |name: &String| name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "").to_uppercase();
        if names.iter().map(letters).collect::<BTreeSet<_>>().len() != values.len() {
            wrong.push(format!("{path}: {names:?} collide"));
        }
    });
    assert!(count > 60, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let parameter = &document["components"]["schemas"]["ModelParameterType"];
    assert_eq!(parameter["enum"][4], "string[]");
    assert_eq!(parameter["x-enum-varnames"][4], "Strings");
    assert_eq!(document["components"]["schemas"]["Scope"].get("x-enum-varnames"), None, "only where names collide");
}

#[test]
fn every_member_is_described() {
    fn lacking(document: &Value, path: &str, schema: &Value, found: &mut Vec<String>) {
        let inner = ["oneOf", "allOf", "anyOf"].into_iter().filter_map(|keyword| schema[keyword].as_array());
        inner.flatten().for_each(|part| lacking(document, path, part, found));
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let choices = property["oneOf"].as_array().into_iter().flatten();
            let of_type = property["$ref"].as_str().and_then(|path| document.pointer(&path[1..]));
            if !choices.chain([property]).chain(of_type).any(|choice| choice["description"].is_string()) {
                found.push(path.clone());
            }
            lacking(document, &path, property, found);
        }
    }
    let document = documented().1;
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        lacking(&document, name, schema, &mut found);
    }
    assert_eq!(found, [""; 0]);
}
