//! Examples of requests and responses.
//!
//! `examples.json` is recorded from a running service: the end-to-end test `examples` repeats the requests and compares. Ids,
//! times and tokens in it are replaced by fixed ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{id, operations};

const RECORDED: &str = include_str!("examples.json");

/// Whose examples of failures a document has.
#[derive(Clone, Copy)]
pub enum Recorded {
    Contract,
    Console,
}

impl Recorded {
    /// The examples of a shared response.
    fn failures(self, recorded: &Value, name: &str) -> Value {
        let own = match self {
            Self::Contract => &Value::Null,
            Self::Console => &recorded["consoleFailures"][name],
        };
        if own.is_null() { recorded["failures"][name].clone() } else { own.clone() }
    }
}

/// The recorded examples: `operations` by operation id, and `failures` by the name of the shared response. A body has one example
/// or several, by name; one of a body that is not JSON stands under its media type. `consoleFailures` are those that differ in
/// the console.
pub fn recorded() -> Value {
    serde_json::from_str(RECORDED).expect("the recorded examples are JSON")
}

pub fn add(document: &mut Value, of: Recorded) {
    let recorded = recorded();
    for (_, operation) in operations(document) {
        let example = &recorded["operations"][id(operation)];
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            let value = parameter["name"].as_str().map(|name| &example["parameters"][name]);
            if let Some(value) = value.filter(|value| !value.is_null()) {
                parameter["example"] = value.clone();
            }
        }
        if let Some(body) = operation.get_mut("requestBody") {
            illustrate(&mut body["content"], &example["request"]);
        }
        for (status, response) in operation["responses"].as_object_mut().expect("an operation has responses") {
            if let Some(content) = response.get_mut("content") {
                illustrate(content, &example["responses"][status]);
            }
        }
    }
    let shared = document["components"]["responses"].as_object_mut().expect("the failures are components");
    for (name, response) in shared {
        let failures = of.failures(&recorded, name);
        let examples = failures.as_object().into_iter().flatten();
        let examples: Map<String, Value> =
            examples.map(|(name, value)| (name.clone(), json!({"value": value}))).collect();
        response["content"]["application/json"]["examples"] = examples.into();
    }
    if let Some(body) = document.pointer_mut("/webhooks/runEnded/post/requestBody") {
        illustrate(&mut body["content"], &recorded["operations"]["runEnded"]["request"]);
    }
    share(document);
}

/// Sets the examples of a body, by name.
fn illustrate(content: &mut Value, examples: &Value) {
    for (kind, media) in content.as_object_mut().into_iter().flatten() {
        let examples = examples.as_object().into_iter().flatten();
        let fitting = examples.filter_map(|(name, value)| {
            let of_kinds = value.as_object().is_some_and(|members| members.keys().any(|key| key.contains('/')));
            Some((name, if of_kinds { value.get(kind)? } else { value }))
        });
        let fitting: Vec<_> = fitting.collect();
        if let [(_, only)] = fitting.as_slice() {
            media["example"] = (*only).clone();
        } else if !fitting.is_empty() {
            let all = fitting.into_iter().map(|(name, value)| (name.clone(), json!({"value": value})));
            media["examples"] = all.collect::<Map<_, _>>().into();
        }
    }
}

/// An example of fewer characters is repeated where it is used again.
const SHARED_FROM: usize = 200;

/// Makes a component of every example that several bodies have. It is named after the first of them.
fn share(document: &mut Value) {
    let mut seen: BTreeMap<String, (String, usize)> = BTreeMap::new();
    each_body(document, |name, media| {
        let examples = media.get("examples").and_then(Value::as_object).into_iter().flatten();
        let values = examples.map(|(_, example)| &example["value"]).chain(media.get("example"));
        for text in values.map(Value::to_string).filter(|text| text.len() >= SHARED_FROM) {
            seen.entry(text).or_insert_with(|| (name.to_owned(), 0)).1 += 1;
        }
    });
    let shared: BTreeMap<String, String> =
        seen.into_iter().filter(|(_, (_, uses))| *uses > 1).map(|(text, (name, _))| (text, name)).collect();
    let mut components = Map::new();
    each_body(document, |_, media| {
        let mut refer = |value: &Value| {
            let name = shared.get(&value.to_string())?;
            components.insert(name.clone(), json!({"value": value}));
            Some(json!({"$ref": format!("#/components/examples/{name}")}))
        };
        if let Some(reference) = media.get("example").and_then(&mut refer) {
            media.as_object_mut().expect("a body").remove("example");
            media["examples"] = json!({"example": reference});
        }
        for example in media.get_mut("examples").and_then(Value::as_object_mut).into_iter().flatten().map(|(_, it)| it)
        {
            if let Some(reference) = example.get("value").and_then(&mut refer) {
                *example = reference;
            }
        }
    });
    document["components"]["examples"] = components.into();
}

/// Visits the body of every request and response of an operation, with a name for its example: `RunAction202`.
fn each_body(document: &mut Value, mut visit: impl FnMut(&str, &mut Value)) {
    for (_, operation) in operations(document) {
        let id = id(operation);
        let id = id[..1].to_uppercase() + &id[1..];
        if let Some(body) = operation.get_mut("requestBody") {
            let contents = body["content"].as_object_mut().into_iter().flatten();
            contents.for_each(|(_, media)| visit(&format!("{id}Request"), media));
        }
        for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
            let contents = response.get_mut("content").and_then(Value::as_object_mut).into_iter().flatten();
            contents.for_each(|(_, media)| visit(&format!("{id}{status}"), media));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Problem;

    /// The failures that no request can provoke at will.
    #[test]
    fn the_examples_of_server_errors_are_what_the_service_answers() {
        for (name, problem) in [
            ("InternalServerError", Problem::internal("the cause stays inside")),
            ("ServiceUnavailable", Problem::Unavailable("the cause stays inside".into(), None)),
            ("GatewayTimeout", Problem::UpstreamTimeout),
        ] {
            let envelope = serde_json::to_value(problem.into_envelope().1).expect("serializes");
            assert_eq!(recorded()["failures"][name]["failure"], envelope, "{name}");
        }
    }
}
