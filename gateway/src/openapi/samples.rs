//! Sample calls for the reference page: each operation as a command line of curl.

use serde_json::{Map, Value, json};

/// Adds `x-codeSamples` to every operation, which the viewer shows beside the description.
pub fn add(document: &mut Value) {
    let server = document["servers"][0]["url"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
    let shared = document["components"].clone();
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().expect("a path has operations") {
            let operation = operation.as_object_mut().expect("an operation is an object");
            let source = command(&format!("{server}{path}"), method, operation, &shared);
            operation.insert("x-codeSamples".into(), json!([{"lang": "bash", "label": "curl", "source": source}]));
        }
    }
}

fn command(url: &str, method: &str, operation: &Map<String, Value>, components: &Value) -> String {
    let (shared, examples) = (&components["parameters"], &components["examples"]);
    let mut url = url.to_owned();
    let mut query = Vec::new();
    for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let name = parameter["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        let parameter = name.map_or(parameter, |name| &shared[name]);
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = parameter["example"].as_str().map_or_else(|| parameter["example"].to_string(), str::to_owned);
        match parameter["in"].as_str() {
            Some("path") => url = url.replace(&format!("{{{name}}}"), &example),
            Some("query") if parameter["required"] == true => query.push(format!("{name}={example}")),
            _ => {}
        }
    }
    if !query.is_empty() {
        url = format!("{url}?{}", query.join("&"));
    }
    let mut lines = vec![format!(
        "curl {}'{url}'",
        if method == "get" { String::new() } else { format!("-X {} ", method.to_uppercase()) }
    )];
    if operation.get("security").is_none_or(|security| security != &json!([])) {
        lines.push("-H \"Authorization: Bearer $CANVAS_TOKEN\"".to_owned());
    }
    let content = operation.get("requestBody").map(|body| &body["content"]);
    let example = content.and_then(|content| first_example(&content["application/json"], examples));
    if let Some(example) = example.filter(|it| it.is_object()) {
        let body = serde_json::to_string_pretty(example).expect("an example serializes").replace('\'', r"'\''");
        lines.push("-H 'Content-Type: application/json'".to_owned());
        lines.push(format!("-d '{body}'"));
    } else if content.is_some() {
        lines.push("-H 'Content-Type: image/png'".to_owned());
        lines.push("--data-binary @image.png".to_owned());
    }
    lines.join(" \\\n  ")
}

/// The example of a body, or the first of several.
fn first_example<'a>(media: &'a Value, shared: &'a Value) -> Option<&'a Value> {
    let first = || {
        let example = media["examples"].as_object()?.values().next()?;
        let name = example["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.map_or(example, |name| &shared[name]).get("value")
    };
    media.get("example").or_else(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::{id, operations};
    use crate::router::documented;

    #[test]
    fn every_operation_has_a_command_that_names_all_it_needs() {
        let mut document = documented().1;
        document["servers"][0]["url"] = "https://canvas.example.com".into();
        add(&mut document);
        for (_, operation) in operations(&mut document) {
            let source = operation["x-codeSamples"][0]["source"].as_str().expect("a text");
            assert!(
                source.contains("'https://canvas.example.com/") && !source.contains('{') | source.contains("-d '"),
                "{}: {source}",
                id(operation)
            );
            let url = source.split('\'').nth(1).expect("a URL");
            assert!(!url.contains('{') && !url.contains("null"), "{}: {url}", id(operation));
        }
        let batch =
            &document["paths"]["/api/canvas-agent/v1/canvases/{canvasId}/operations"]["post"]["x-codeSamples"][0];
        assert!(
            batch["source"].as_str().is_some_and(|source| source.starts_with(
                "curl -X POST 'https://canvas.example.com/api/canvas-agent/v1/canvases/harbor/operations'"
            ))
        );
    }
}
