//! Descriptions of the values of enumerations that no type in the domain gives (`x-enum-descriptions`).

use serde_json::Value;

/// An enumeration, as a JSON pointer below the schemas, and the schema that has all of its values.
const PARTS: [(&str, &str); 4] = [
    ("/ImageJobKind", "RunKind"),
    ("/TextNodeType", "NodeType"),
    ("/TerminalRunStatus", "RunStatus"),
    ("/ConnectionProvider", "ProviderKind"),
];

/// An enumeration, and what its values are.
const OWN: [(&str, &[&str]); 5] = [
    (
        "/ErrorCode",
        &[
            "400: missing, malformed or out-of-range input.",
            "400: a body that cannot be parsed.",
            "401: the credential failed.",
            "402: the work costs more than the account or the request covers.",
            "403: a scope or a role is missing.",
            "404: the resource does not exist or is not visible.",
            "409: a revision conflict, a reused key, or a state that forbids it.",
            "410: retired.",
            "413: the body is over the limit.",
            "415: the media type of the body is not supported.",
            "422: a semantic rejection.",
            "429: too many requests.",
            "500: the service failed.",
            "502: a dependency failed.",
            "503: temporarily unable.",
            "504: a dependency took too long.",
            "Any other status.",
        ],
    ),
    ("/VisibilityFilter", &["Recipes of the catalog.", "The account's own workflows.", "Both."]),
    ("/ImageMediaType", &["PNG.", "JPEG.", "WebP.", "GIF."]),
    ("/RenditionWidth", &["64 pixels.", "128 pixels.", "256 pixels.", "512 pixels.", "1024 pixels.", "2048 pixels."]),
    (
        "/StreamEvent/properties/event",
        &[
            "The revision of a canvas.",
            "Who is on a canvas.",
            "A canvas was deleted, or is not visible any more.",
            "The state of a run.",
        ],
    ),
];

/// Adds the descriptions.
pub fn describe(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    for (path, whole) in PARTS {
        let (values, whole) = (schemas.pointer(path).map(|part| &part["enum"]), &schemas[whole]);
        let about = |value: &Value| {
            let at = whole["enum"].as_array()?.iter().position(|known| known == value)?;
            whole["x-enum-descriptions"].get(at).cloned()
        };
        let described: Option<Value> = values.and_then(Value::as_array).into_iter().flatten().map(about).collect();
        add(schemas, path, described);
    }
    for (path, descriptions) in OWN {
        add(schemas, path, Some(descriptions.into()));
    }
}

fn add(schemas: &mut Value, path: &str, descriptions: Option<Value>) {
    let schema = schemas.pointer_mut(path).unwrap_or_else(|| panic!("{path} is not in the document"));
    schema["x-enum-descriptions"] = descriptions.unwrap_or_else(|| panic!("{path} has other values"));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
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
}
