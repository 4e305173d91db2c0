//! Rules over several fields, in the schemas that the document publishes.
//!
//! **Guarantee.** A body that the document admits is refused with 400 only for reasons that no schema can express: a name that
//! must be unique among others, a URL that must be public, a cursor that the service must have issued.
//!
//! **Mechanism.** The code checks these rules and names the field that breaks each, which a schema's `not` or `if` cannot do.
//! Here they are repeated as keywords of JSON Schema for readers of the document; requests are not validated by them.
//! `tests/contract` generates requests from the document and so detects a difference.
//!
//! **Form.** Rules say what a body must not be, by `not`, or what must accompany what, by `if` and `dependentRequired`. Generators
//! of client libraries ignore these and keep the plain type, where `oneOf`, `anyOf` and `allOf` beside it would change it.

mod actions;

use domain::metadata::{TextAlign, WritableMetadata};
use serde_json::{Value, json};
use utoipa::PartialSchema;

use super::types::{PICTURE, reference};

/// A picture as requests name it, or where to fetch it from.
const PICTURE_OR_URL: &str = "^((node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}|https://.+)$";
/// A provider's model id, or a `model:` handle as a whole.
const MODEL: &str = "^(model:[A-Za-z0-9_-]{8,600}|(?!model:).*)$";

pub fn add(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    canvases(schemas);
    elements(schemas);
    images(schemas);
    videos(schemas);
    workflows(schemas);
    actions::add(schemas);
    starts(schemas);
    places(schemas);
    for path in ["images/generate", "images/edit"] {
        let path = format!("{}/{path}", domain::API_ROOT);
        let body = &mut document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        // Variations need no prompt.
        extend(body, unless("prompt", json!({"required": ["promptNodeId"]})));
    }
}

/// A rule for objects that lack a field.
fn unless(field: &str, rule: Value) -> Value {
    json!({"if": {"not": {"required": [field]}}, "then": rule})
}

fn canvases(schemas: &mut Value) {
    extend(&mut schemas["CreateCanvas"], json!({"not": {"required": ["id", "destination"]}}));
    // Not in the schema by which requests are validated: the graph engine reads metadata, key by key.
    schemas["WritableMetadata"] = json!(WritableMetadata::schema());
    schemas["WritableMetadata"]["additionalProperties"] = false.into();
    schemas["WritableMetadata"]["properties"]["tags"]["items"]["maxLength"] = 80.into();
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
    let shows_other = json!({"required": ["asset"], "properties": {"type": {"not": {"const": "image"}}}});
    extend(&mut schemas["NewNode"], json!({"not": shows_other}));
    // An empty list is a page of either view.
    for page in ["ActionPage", "ModelPage", "RecipePage"] {
        let views = schemas[page]["oneOf"].take();
        schemas[page]["anyOf"] = views;
        schemas[page].as_object_mut().expect("a schema").remove("oneOf");
    }
    let other = json!({"not": {"const": "reference"}});
    for operation in schemas["Operation"]["oneOf"].as_array_mut().expect("the variants of an operation") {
        let has = |operation: &Value, field: &str| operation["properties"].get(field).is_some();
        if has(operation, "x") {
            extend(operation, json!({"dependentRequired": {"x": ["y"], "y": ["x"]}}));
            let mut wrong = vec![json!({"required": ["near", "x"]})];
            if has(operation, "columns") {
                wrong.push(json!({"required": ["nodeIds", "sectionId"]}));
                wrong.push(json!({"required": ["columns"], "properties": {"layout": {"not": {"const": "grid"}}}}));
                extend(operation, unless("sectionId", json!({"required": ["nodeIds"]})));
            }
            extend(operation, json!({"not": {"anyOf": wrong}}));
            continue;
        }
        if has(operation, "near") {
            let placed = json!({"required": ["near"], "properties": {"node": {"required": ["position"]}}});
            let metadata = json!({"required": ["metadata"], "properties": {"metadata": {"required": ["sectionId"]}}});
            let named_twice = json!({"required": ["sectionId"], "properties": {"node": metadata}});
            extend(operation, json!({"not": {"anyOf": [placed, named_twice]}}));
            continue;
        }
        let wrong = match (has(operation, "role"), has(operation, "fromNodeId")) {
            (false, _) => continue,
            // A purpose that is left out is `flow`.
            (true, true) => json!({"required": ["role"], "properties": {"purpose": other}}),
            // A purpose that is left out stays.
            (true, false) => json!({"required": ["role", "purpose"],
                "properties": {"role": {"type": "string"}, "purpose": other}}),
        };
        extend(operation, json!({"not": wrong}));
    }
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

fn elements(schemas: &mut Value) {
    let made_of_nothing = json!({"properties": {
        "sourceAssetIds": {"maxItems": 0}, "guidelines": {"not": {"pattern": "[A-Za-z0-9]|\\S"}},
    }});
    for name in ["CreateElement", "ElementContent"] {
        extend(&mut schemas[name], json!({"not": made_of_nothing}));
        schemas[name]["properties"]["sourceAssetIds"]["uniqueItems"] = true.into();
    }
    schemas["CreateElement"]["properties"]["collectionIds"]["uniqueItems"] = true.into();
    for form in schemas["ElementPatch"]["oneOf"].as_array_mut().expect("the variants of a patch") {
        if let Some(list) = form["properties"].get_mut("collectionIds") {
            list["uniqueItems"] = true.into();
        }
    }
}

fn images(schemas: &mut Value) {
    let start = &mut schemas["ImageStart"];
    let wrong = json!([
        {"required": ["targetNodeId", "targetNodeIds"]},
        {"required": ["targetNodeId", "place"]},
        {"required": ["targetNodeIds", "place"]},
        {"required": ["targetNodeId", "count"], "properties": {"count": {"not": {"const": 1}}}},
        {"required": ["prompt", "promptNodeId"]},
        {"required": ["source", "references"], "properties": {"references": {"minItems": 16}}},
        start_without_key(),
    ]);
    extend(start, json!({"not": {"anyOf": wrong}}));
    extend(start, unless("targetNodeId", unless("targetNodeIds", json!({"required": ["place"]}))));
    for list in ["targetNodeIds", "references", "elements"] {
        start["properties"][list]["uniqueItems"] = true.into();
    }
    start["properties"]["references"]["items"] =
        json!({"oneOf": [reference("PictureHandle"), reference("ImageReference")]});
    schemas["ImageReference"] = referenced("PictureHandle");
    schemas["PictureSource"] = json!({"type": "string", "maxLength": 2048, "pattern": PICTURE_OR_URL,
        "description": "A node handle, an asset handle, or the public HTTPS URL of a picture."});
    schemas["VideoReference"] = referenced("PictureSource");
    schemas["ModelReference"] = json!({"type": "string", "maxLength": 650, "pattern": MODEL,
        "description": "A provider's model id, or a `model:` handle."});
    model(&mut schemas["ImageStart"]);
}

/// A reference with its role.
fn referenced(handle: &str) -> Value {
    let mut handle = reference(handle);
    handle["description"] = "The picture.".into();
    let mut role = reference("Role");
    role["description"] = "What the picture is used for.".into();
    json!({
        "type": "object", "required": ["handle"], "additionalProperties": false,
        "description": "A picture that guides a result, with its role.", "properties": {"handle": handle, "role": role},
    })
}

/// Makes the member `model` refer to the shared type.
fn model(schema: &mut Value) {
    let description = schema["properties"]["model"]["description"].take();
    schema["properties"]["model"] = reference("ModelReference");
    schema["properties"]["model"]["description"] = description;
}

fn videos(schemas: &mut Value) {
    let start = &mut schemas["VideoStart"];
    extend(start, json!({"dependentRequired": {"lastFrame": ["firstFrame"]}}));
    for frame in ["firstFrame", "lastFrame"] {
        let description = start["properties"][frame]["description"].take();
        start["properties"][frame] = reference("PictureSource");
        start["properties"][frame]["description"] = description;
    }
    start["properties"]["model"]["pattern"] = MODEL.into();
    let forms = json!([reference("PictureSource"), reference("VideoReference")]);
    extend(&mut start["properties"]["references"], json!({"uniqueItems": true, "items": {"oneOf": forms}}));
}

/// A start that has no key and is no dry run.
fn start_without_key() -> Value {
    json!({"not": {"required": ["idempotencyKey"]}, "properties": {"validateOnly": {"const": false}}})
}

/// What all starts have: a key, unless the start is only checked. Those of images have further rules.
fn starts(schemas: &mut Value) {
    for name in ["CampaignStartRequest", "VideoStart"] {
        extend(&mut schemas[name], json!({"not": start_without_key()}));
    }
}

/// Where starts and forks place what they add.
fn places(schemas: &mut Value) {
    let place = &mut schemas["TargetPlace"];
    extend(place, json!({"dependentRequired": {"x": ["y"], "y": ["x"]}, "not": {"required": ["near", "x"]}}));
    let several = json!({"required": ["count"], "properties": {"count": {"not": {"const": 1}}}});
    let wrong = json!([
        {"required": ["targetNodeId", "place"]},
        {"required": ["place"], "properties": {"place": several}},
        start_without_key(),
    ]);
    extend(&mut schemas["RunAction"], json!({"not": {"anyOf": wrong}}));
    extend(&mut schemas["RunAction"], unless("targetNodeId", json!({"required": ["place"]})));
    let both = |field: &str, other: &str| json!({"required": [field, other]});
    let wrong = json!([both("near", "instanceNodeId"), both("sectionId", "instanceNodeId"), start_without_key()]);
    extend(&mut schemas["RunRecipe"], json!({"not": {"anyOf": wrong}}));
    let wrong = json!([both("near", "x"), both("near", "y"), both("sectionId", "x"), both("sectionId", "y")]);
    extend(&mut schemas["ForkRecipe"], json!({"not": {"anyOf": wrong}}));
}

fn workflows(schemas: &mut Value) {
    schemas["CreateWorkflow"]["properties"]["tags"]["items"] =
        json!({"type": "string", "minLength": 1, "maxLength": 80});
    schemas["NewOutput"]["properties"]["inputKeys"]["uniqueItems"] = true.into();
    for name in ["NewOutput", "RunRecipe"] {
        model(&mut schemas[name]);
    }
    let image = json!({"const": "image"});
    let wrong = json!([
        {"required": ["type", "value"],
            "properties": {"type": image, "value": {"not": {"pattern": format!("^$|{PICTURE}")}}}},
        {"required": ["type", "writtenReference"], "properties": {"type": image, "writtenReference": {"const": true}}},
        // A default without anything to stand for.
        {"required": ["useAsDefault"], "not": {"required": ["sourceNodeId"]},
            "properties": {"useAsDefault": {"const": true}, "value": {"maxLength": 0}}},
    ]);
    extend(&mut schemas["NewInput"], json!({"not": {"anyOf": wrong}}));
}

/// Adds keywords to a schema.
fn extend(schema: &mut Value, keywords: Value) {
    let Value::Object(keywords) = keywords else { unreachable!("keywords are an object") };
    schema.as_object_mut().expect("a route documents this schema").extend(keywords);
}

#[cfg(test)]
mod tests;
