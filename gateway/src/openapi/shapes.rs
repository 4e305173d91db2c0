//! Shapes that generators of client libraries turn into natural types: named variants with a discriminator, constants, and
//! defaults in words.

use serde_json::{Map, Value, json};

use super::types::reference;

/// A union of objects that one member distinguishes.
struct Union {
    name: &'static str,
    /// The member that is the discriminator.
    member: &'static str,
    /// What the member is, for the variants that become components.
    meaning: &'static str,
    /// The values of the discriminator, each with the component that it stands for.
    variants: &'static [(&'static str, &'static str)],
}

/// Unions whose variants become components under the names given here.
const NAMED: [Union; 3] = [
    Union {
        name: "Operation",
        member: "type",
        meaning: "Kind of the operation.",
        variants: &[
            ("node.create", "NodeCreate"),
            ("node.update", "NodeUpdate"),
            ("node.move", "NodeMove"),
            ("node.duplicate", "NodeDuplicate"),
            ("node.delete", "NodeDelete"),
            ("node.restore", "NodeRestore"),
            ("connection.create", "ConnectionCreate"),
            ("connection.update", "ConnectionUpdate"),
            ("connection.delete", "ConnectionDelete"),
            ("connection.restore", "ConnectionRestore"),
            ("layout.arrange", "LayoutArrange"),
            ("section.fit", "SectionFit"),
            ("section.create", "SectionCreate"),
            ("canvas.update", "CanvasUpdate"),
        ],
    },
    Union {
        name: "ElementPatch",
        member: "operation",
        meaning: "Kind of the change.",
        variants: &[
            ("update", "ElementUpdate"),
            ("collections", "ElementSetCollections"),
            ("archive", "ElementArchive"),
            ("restore", "ElementRestore"),
        ],
    },
    Union {
        name: "ProductImport",
        member: "status",
        meaning: "Outcome of the import.",
        variants: &[("succeeded", "ImportedPack"), ("review_required", "ImportReview")],
    },
];

/// Unions whose variants are components already.
const DISCRIMINATED: [Union; 3] = [
    Union {
        name: "Run",
        member: "kind",
        meaning: "",
        variants: &[("image", "ImageJob"), ("action", "ImageJob"), ("recipe", "RecipeRun")],
    },
    Union {
        name: "Job",
        member: "kind",
        meaning: "",
        variants: &[("image", "ImageJob"), ("action", "ImageJob"), ("video", "VideoJob")],
    },
    Union {
        name: "EventRun",
        member: "operation",
        meaning: "",
        variants: &[
            ("generate", "ImageJob"),
            ("edit", "ImageJob"),
            ("variations", "ImageJob"),
            ("action", "ImageJob"),
            ("recipe", "EventRecipeRun"),
        ],
    },
];

/// Members that always have one value.
const CONSTANTS: [(&str, &str, Constant); 12] = [
    ("AuthStatus", "authenticated", Constant::True),
    ("AuthStatus", "authType", Constant::Text("agent_token")),
    ("CollectionDeleted", "deleted", Constant::True),
    ("Element", "schemaVersion", Constant::One),
    ("ElementCollection", "schemaVersion", Constant::One),
    ("ElementVersion", "schemaVersion", Constant::One),
    ("Event", "apiVersion", Constant::Text("v1")),
    ("EventRecipeRun", "operation", Constant::Text("recipe")),
    ("ImportReview", "reviewRequired", Constant::True),
    ("RecipeRun", "kind", Constant::Text("recipe")),
    ("RecipeRun", "operation", Constant::Text("recipe")),
    ("RecipeRun", "schemaVersion", Constant::One),
];

enum Constant {
    Text(&'static str),
    True,
    One,
}

/// Refines the schemas of the document.
pub fn refine(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut().expect("the schemas are components");
    NAMED.iter().for_each(|union| name_variants(schemas, union));
    DISCRIMINATED.iter().for_each(|union| discriminate(schemas, union));
    for (name, member, value) in &CONSTANTS {
        let (kind, value) = match value {
            Constant::Text(text) => ("string", json!(text)),
            Constant::True => ("boolean", json!(true)),
            Constant::One => ("integer", json!(1)),
        };
        let property = schemas[*name]["properties"].get_mut(*member).expect("a constant member is documented");
        *property = json!({"type": kind, "const": value, "description": property["description"]});
    }
    schemas.insert("RunEvent".into(), run_event());
    schemas.insert("StreamEvent".into(), stream_event());
    schemas["ModelParameterOption"]["properties"]["value"]["type"] = json!(["string", "number", "boolean"]);
    schemas.values_mut().for_each(refine_schema);
    let paths = document["paths"].as_object_mut().expect("a document has paths");
    for operation in paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if operation["operationId"] == "followRun" {
            let content = &mut operation["responses"]["200"]["content"]["text/event-stream"];
            content["schema"] = run_stream();
        }
        if operation["operationId"] == "followEvents" {
            operation["responses"]["200"]["content"]["text/event-stream"]["schema"] = events_stream();
            for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
                if parameter["name"] == "canvas" {
                    parameter["schema"]["items"]["pattern"] = CANVAS_PATTERN.into();
                }
            }
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
            "event": {"type": "string", "enum": STREAM_EVENTS.map(|(name, _)| name), "description": "Name of the event."},
            "data": {"type": "string", "contentMediaType": "application/json",
                "contentSchema": {"anyOf": STREAM_EVENTS.map(|(_, schema)| reference(schema))},
                "description": "Data of the event as JSON text."},
        },
    })
}

/// A plain id or handle of a canvas.
const CANVAS_PATTERN: &str = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$";

/// The events of `GET /events`, each with the schema of its data.
const STREAM_EVENTS: [(&str, &str); 4] = [
    ("canvas", "CanvasStreamEvent"),
    ("presence", "PresenceStreamEvent"),
    ("gone", "GoneStreamEvent"),
    ("run", "RunStreamEvent"),
];

fn events_stream() -> Value {
    let text =
        json!({"type": "string", "contentMediaType": "text/event-stream", "contentSchema": reference("StreamEvent")});
    let events = STREAM_EVENTS.map(|(_, schema)| reference(schema));
    json!({
        "description": "The text of the stream. A client that parses events yields the `data` of each.",
        "anyOf": events.into_iter().chain([text]).collect::<Vec<_>>(),
    })
}

/// Moves the variants of a union into components of their own.
fn name_variants(schemas: &mut Map<String, Value>, union: &Union) {
    let variants = schemas[union.name]["oneOf"].as_array().cloned().expect("a union has variants");
    assert_eq!(variants.len(), union.variants.len(), "every variant of {} has a name", union.name);
    for variant in variants {
        let mut variant = flattened(schemas, variant);
        variant["properties"][union.member]["description"] = union.meaning.into();
        let tag = &variant["properties"][union.member]["enum"][0];
        let (_, name) = union.variants.iter().find(|(value, _)| tag == value).expect("every variant has a name");
        schemas.insert((*name).to_owned(), variant);
    }
    discriminate(schemas, union);
}

/// A variant that is a component with a tag, as one object.
fn flattened(schemas: &Map<String, Value>, variant: Value) -> Value {
    let Some(parts) = variant["allOf"].as_array() else { return variant };
    let name = parts[0]["$ref"].as_str().and_then(|path| path.rsplit('/').next()).expect("a component comes first");
    let mut object = schemas[name].clone();
    let properties = parts[1]["properties"].as_object().cloned().expect("the tag is a property");
    object["properties"].as_object_mut().expect("an object").extend(properties);
    let required = parts[1]["required"].as_array().cloned().unwrap_or_default();
    object["required"].as_array_mut().expect("an object with mandatory members").extend(required);
    object
}

/// Lists the components of a union, each once, and its discriminator.
fn discriminate(schemas: &mut Map<String, Value>, union: &Union) {
    let path = |name: &str| format!("#/components/schemas/{name}");
    let mapping: Map<String, Value> =
        union.variants.iter().map(|(value, name)| ((*value).to_owned(), path(name).into())).collect();
    let mut components: Vec<&str> = union.variants.iter().map(|(_, name)| *name).collect();
    components.dedup();
    let schema = &mut schemas[union.name];
    schema["oneOf"] = components.into_iter().map(|name| json!({"$ref": path(name)})).collect();
    schema["discriminator"] = json!({"propertyName": union.member, "mapping": mapping});
}

/// Rewrites a schema and all schemas within it.
fn refine_schema(schema: &mut Value) {
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
