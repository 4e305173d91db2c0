//! Metadata of nodes. Requests are validated without its schema: the graph engine checks it, key by key.

use domain::metadata::{TextAlign, WritableMetadata};
use serde_json::{Value, json};
use utoipa::PartialSchema;

/// Adds what clients write, and what is served.
pub fn add(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    schemas["WritableMetadata"] = json!(WritableMetadata::schema());
    schemas["WritableMetadata"]["additionalProperties"] = false.into();
    schemas["TextAlign"] = json!(TextAlign::schema());
    for (name, described) in
        [("NewNode", "The keys that clients write."), ("NodePatch", "Merged key by key; `null` removes a key.")]
    {
        schemas[name]["properties"]["metadata"] =
            json!({"$ref": "#/components/schemas/WritableMetadata", "description": described});
    }
    let owned = schemas.as_object_mut().expect("an object").remove("ServerMetadata").expect("a node has it");
    schemas["NodeMetadata"] = served_metadata(&schemas["WritableMetadata"], &owned);
    schemas["Node"]["properties"]["metadata"] = json!({
        "$ref": "#/components/schemas/NodeMetadata",
        "description": "What clients wrote, and what the service keeps about the node.",
    });
}

/// A node's metadata as it is served: what clients wrote, and keys that only the service writes.
fn served_metadata(written: &Value, owned: &Value) -> Value {
    let mut properties = written["properties"].clone();
    for property in properties.as_object_mut().expect("an object").values_mut() {
        // A key that is removed is absent, and the service may write texts that are longer than clients may.
        let members = property.as_object_mut().expect("a schema");
        members.retain(|keyword, _| matches!(keyword.as_str(), "type" | "items" | "description"));
        if let Some(types) = members.get_mut("type") {
            *types = types[0].take();
        }
    }
    let content = properties["content"].take();
    properties.as_object_mut().expect("an object").extend(owned["properties"].as_object().cloned().expect("an object"));
    properties["content"] = content;
    properties["textAlign"] =
        json!({"$ref": "#/components/schemas/TextAlign", "description": "Alignment of the text."});
    properties["sectionId"]["description"] = "Plain id of the Section that the node belongs to.".into();
    properties["upload"] = json!({"type": "object", "description": "Reserved for the service."});
    properties["createdBy"] = json!({"$ref": "#/components/schemas/Ownership",
        "description": "Who owns the node. Written by the service."});
    json!({"type": "object", "description": "Metadata of a node. More keys may come.", "properties": properties})
}
