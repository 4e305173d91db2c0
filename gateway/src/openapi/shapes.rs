//! Shapes that generators of client libraries turn into natural types: named variants with a discriminator, constants, and
//! defaults in words.

use serde_json::{Map, Value, json};

/// A reference to a component.
pub fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Refines the schemas of the document.
pub fn refine(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the schemas are components");
    name_variants(schemas);
    // An empty list is a page of either view.
    for page in ["ActionPage", "ModelPage", "RecipePage"] {
        let views = schemas[page].as_object_mut().and_then(|page| page.remove("oneOf")).expect("a page has two views");
        schemas[page]["anyOf"] = views;
    }
    schemas.insert("RunEvent".into(), run_event());
    schemas.insert("StreamEvent".into(), stream_event());
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if operation["operationId"] == "followRun" {
            let content = &mut operation["responses"]["200"]["content"]["text/event-stream"];
            content["schema"] = run_stream();
        }
        if operation["operationId"] == "followEvents" {
            operation["responses"]["200"]["content"]["text/event-stream"]["schema"] = events_stream();
        }
        // A canvas can be created without saying anything about it.
        if operation["operationId"] == "createCanvas" {
            operation["requestBody"]["required"] = false.into();
        }
    }
}

/// A server-sent event, as OpenAPI 3.2 describes the items of a stream: its fields by name.
fn run_event() -> Value {
    json!({
        "type": "object",
        "description": "A server-sent event. On the wire: a line `event: run`, a line `data: ` with the run as JSON, an empty line.",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "const": "run", "description": "Name of the event: always `run`."},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": reference("Run"),
                "description": "The run as JSON text."},
        },
    })
}

/// The body of a stream of runs. It is text; but generators whose clients parse server-sent events (@hey-api/openapi-ts) take the
/// schema for that of each event's parsed data.
fn run_stream() -> Value {
    json!({
        "description": "The text of the stream. A client that parses events yields the run in the `data` of each.",
        "anyOf": [
            reference("Run"),
            {"type": "string", "contentMediaType": "text/event-stream", "contentSchema": reference("RunEvent")},
        ],
    })
}

/// The same for the events of `GET /events`.
fn stream_event() -> Value {
    json!({
        "type": "object",
        "description": "A server-sent event. On the wire: a line `event: <name>`, a line `data: ` with JSON, an empty line.",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "enum": STREAM_EVENTS.map(|(name, ..)| name),
                "x-enum-descriptions": STREAM_EVENTS.map(|(.., about)| about), "description": "Name of the event."},
            "data": {"type": "string", "contentMediaType": "application/json",
                "contentSchema": {"anyOf": STREAM_EVENTS.map(|(_, schema, _)| reference(schema))},
                "description": "Data of the event as JSON text."},
        },
    })
}

/// The events of `GET /events`, each with the schema of its data and what it says.
const STREAM_EVENTS: [(&str, &str, &str); 6] = [
    ("role", "RoleStreamEvent", "The caller's role on a canvas."),
    ("canvas", "CanvasStreamEvent", "The revision of a canvas."),
    ("presence", "PresenceStreamEvent", "Who is on a canvas."),
    ("pointers", "PointersStreamEvent", "What others point at on a canvas."),
    ("gone", "GoneStreamEvent", "A canvas was deleted, or is not visible any more."),
    ("run", "RunStreamEvent", "The state of a run."),
];

fn events_stream() -> Value {
    let text =
        json!({"type": "string", "contentMediaType": "text/event-stream", "contentSchema": reference("StreamEvent")});
    let events = STREAM_EVENTS.map(|(_, schema, _)| reference(schema));
    json!({
        "description": "The text of the stream. A client that parses events yields the `data` of each.",
        "anyOf": events.into_iter().chain([text]).collect::<Vec<_>>(),
    })
}

/// Moves the variants of unions that one member tells apart into components of their own: under the title of the variant, or the name
/// of the type that it holds. The member becomes the discriminator.
fn name_variants(schemas: &mut Map<String, Value>) {
    let mut named = Map::new();
    for (union, schema) in schemas.iter() {
        let Some(variants) = schema["oneOf"].as_array() else { continue };
        let variants: Vec<_> = variants.iter().filter_map(|variant| named_variant(schemas, variant)).collect();
        let Some((_, first)) = variants.first() else { continue };
        let is_tag = |member: &&String| variants.iter().all(|(_, it)| tag(it, member).is_some());
        let member = first["properties"].as_object().and_then(|members| members.keys().find(is_tag));
        let member = member.unwrap_or_else(|| panic!("no member tells the variants of {union} apart")).clone();
        let (mut mapping, mut components) = (Map::new(), Vec::new());
        for (name, mut variant) in variants {
            let value = tag(&variant, &member).expect("it is the tag").to_owned();
            variant["properties"][&member]["description"] = format!("Always `{value}`.").into();
            mapping.insert(value, reference(&name)["$ref"].take());
            components.push(reference(&name));
            named.insert(name, variant);
        }
        let mut schema = schema.clone();
        schema["oneOf"] = components.into();
        schema["discriminator"] = json!({"propertyName": member, "mapping": mapping});
        named.insert(union.clone(), schema);
    }
    schemas.extend(named);
}

/// The only value of a member.
fn tag<'a>(variant: &'a Value, member: &str) -> Option<&'a str> {
    match variant["properties"][member]["enum"].as_array()?.as_slice() {
        [value] => value.as_str(),
        _ => None,
    }
}

/// A variant as one object, and its name; `None` for one without a name.
fn named_variant(schemas: &Map<String, Value>, variant: &Value) -> Option<(String, Value)> {
    let mut variant = variant.clone();
    if let Some(Value::String(title)) = variant.as_object_mut()?.remove("title") {
        return Some((title, variant));
    }
    // A component and its tag.
    let [component, tag] = variant["allOf"].as_array()?.as_slice() else { return None };
    let name = component["$ref"].as_str()?.rsplit('/').next()?;
    let mut object = schemas[name].clone();
    object["properties"].as_object_mut()?.extend(tag["properties"].as_object()?.clone());
    object["required"].as_array_mut()?.extend(tag["required"].as_array()?.clone());
    Some((name.to_owned(), object))
}

/// Makes one schema of an inlined type and the description of its member, which the derive writes as two parts, the second of them
/// an object.
pub fn join_inlined(schema: &mut Value) {
    let Some([inlined, about]) = schema["allOf"].as_array().map(Vec::as_slice) else { return };
    if about.as_object().is_some_and(|about| about.keys().eq(["description", "type"])) {
        let mut joined = inlined.clone();
        joined["description"] = about["description"].clone();
        *schema = joined;
    }
}

/// Rewrites a schema and all schemas within it.
pub fn refine_schema(schema: &mut Value) {
    join_inlined(schema);
    let Some(members) = schema.as_object_mut() else { return };
    if let Some([only]) = members.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        members.remove("enum");
        members.insert("const".into(), only);
    }
    // Sizes of the code's own numbers, of which JSON knows nothing.
    if matches!(members.get("format").and_then(Value::as_str), Some("int32" | "int64" | "double")) {
        members.remove("format");
    }
    // Generators make a member with a default mandatory, or send the default in every request.
    if let Some(default) = members.remove("default") {
        let described = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        let stop = if described.is_empty() || described.ends_with(['.', '`']) { "" } else { "." };
        let described = format!("{described}{stop} Default: `{default}`.");
        members.insert("description".into(), described.trim_start().into());
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(refine_schema),
            ("oneOf" | "anyOf" | "allOf", Value::Array(schemas)) => schemas.iter_mut().for_each(refine_schema),
            ("items" | "additionalProperties" | "if" | "then" | "else" | "not", schema) => refine_schema(schema),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::documented;

    #[test]
    fn every_operation_of_a_batch_is_a_named_type() {
        let document = documented().1;
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["Operation"]["oneOf"][0], json!({"$ref": "#/components/schemas/NodeCreate"}));
        assert_eq!(schemas["Operation"]["discriminator"]["mapping"]["node.move"], "#/components/schemas/NodeMove");
        assert_eq!(schemas["NodeMove"]["properties"]["type"]["const"], "node.move");
        let pack = &schemas["ImportedPack"];
        assert_eq!(pack["properties"]["status"]["const"], "succeeded");
        assert!(pack["required"].as_array().expect("a list").contains(&json!("status")));
    }

    #[test]
    fn a_constant_is_declared_as_one() {
        let document = documented().1;
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["RecipeRun"]["properties"]["kind"]["const"], "recipe");
        assert_eq!(schemas["AuthStatus"]["properties"]["authType"]["const"], "agent_token");
    }

    #[test]
    fn a_default_is_described_in_words() {
        let mut schema = json!({"type": "object", "properties": {
            "default": {"type": "integer", "description": "Taken.", "default": 85},
            "mode": {"enum": ["only"], "default": "only"},
            "weight": {"type": "string", "description": "Weight", "default": "bold"},
        }});
        refine_schema(&mut schema);
        assert_eq!(schema["properties"]["default"], json!({"type": "integer", "description": "Taken. Default: `85`."}));
        assert_eq!(schema["properties"]["mode"], json!({"const": "only", "description": "Default: `only`."}));
        assert_eq!(schema["properties"]["weight"]["description"], "Weight. Default: `bold`.");
    }
}
