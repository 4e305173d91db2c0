//! `server.json`: how hosts reach the tools, in the format of the protocol's registry
//! (docs/reference/tools.md#without-a-credential).

use serde_json::{Value, json};

/// For every installation: the host is a variable, and the name has no namespace of its own.
const TEMPLATE: &str = include_str!("../server.json");

/// The form for the installation at `origin`: its address has no variable, and its host is the namespace of its name.
pub fn of_installation(origin: &str) -> String {
    let mut manifest: Value = serde_json::from_str(TEMPLATE).expect("the template is JSON: a test reads it");
    manifest["name"] = json!(format!("{}/canvas-service", namespace(origin)));
    let remote = &mut manifest["remotes"][0];
    remote["url"] = json!(format!("{origin}/mcp"));
    if let Some(remote) = remote.as_object_mut() {
        remote.remove("variables");
    }
    manifest.to_string()
}

/// The labels of the host, the last one first.
fn namespace(origin: &str) -> String {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let labels = host.trim_matches(['[', ']']).rsplit('.').map(|label| label.replace(':', "-"));
    labels.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the registry's schema of 2025-12-11 says of the members that are used here.
    fn schema() -> Value {
        let input = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "description": {"type": "string"}, "placeholder": {"type": "string"}, "isRequired": {"type": "boolean"},
                "isSecret": {"type": "boolean"},
            },
        });
        let inputs = json!({"type": "object", "additionalProperties": input});
        let mut header = input;
        header["properties"]["name"] = json!({"type": "string"});
        header["properties"]["value"] = json!({"type": "string"});
        header["properties"]["variables"] = inputs.clone();
        header["required"] = json!(["name"]);
        let url = r"^(https?://[^\s]+|\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\s]*)$";
        let remote = json!({
            "type": "object",
            "required": ["type", "url"],
            "additionalProperties": false,
            "properties": {
                "type": {"enum": ["streamable-http"]}, "url": {"type": "string", "pattern": url}, "variables": inputs,
                "headers": {"type": "array", "items": header},
            },
        });
        json!({
            "type": "object",
            "required": ["$schema", "name", "description", "version"],
            "additionalProperties": false,
            "properties": {
                "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
                "name": {
                    "type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$",
                },
                "title": {"type": "string", "minLength": 1, "maxLength": 100},
                "description": {"type": "string", "minLength": 1, "maxLength": 100},
                "version": {"type": "string", "maxLength": 255},
                "remotes": {"type": "array", "items": remote},
            },
        })
    }

    fn checked(manifest: &str) -> Value {
        let manifest = serde_json::from_str(manifest).expect("JSON");
        let validator = jsonschema::draft202012::new(&schema()).expect("a schema");
        let violations: Vec<String> = validator.iter_errors(&manifest).map(|error| error.to_string()).collect();
        assert!(violations.is_empty(), "{manifest}: {violations:?}");
        manifest
    }

    #[test]
    fn the_template_has_the_host_as_a_variable() {
        let template = checked(TEMPLATE);
        assert_eq!(template["version"], env!("CARGO_PKG_VERSION"), "the version of this release");
        let remote = &template["remotes"][0];
        assert_eq!((&remote["type"], &remote["url"]), (&json!("streamable-http"), &json!("https://{host}/mcp")));
        assert_eq!(remote["variables"]["host"]["isRequired"], true);
        let header = &remote["headers"][0];
        assert_eq!((&header["name"], &header["isSecret"]), (&json!("Authorization"), &json!(true)));
    }

    #[test]
    fn that_of_an_installation_has_its_address() {
        for (origin, name) in [
            ("https://canvas.example.com", "com.example.canvas/canvas-service"),
            ("https://canvas.example.com:8443", "com.example.canvas/canvas-service"),
            ("http://127.0.0.1:8080", "1.0.0.127/canvas-service"),
            ("http://localhost:8080", "localhost/canvas-service"),
            ("http://[::1]:8080", "--1/canvas-service"),
            ("http://[::1]", "--1/canvas-service"),
        ] {
            let manifest = checked(&of_installation(origin));
            assert_eq!(
                (&manifest["name"], &manifest["remotes"][0]["url"]),
                (&json!(name), &json!(format!("{origin}/mcp")))
            );
            assert!(manifest["remotes"][0].get("variables").is_none(), "{manifest}");
        }
    }
}
