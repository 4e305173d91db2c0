//! Rules over several fields, in the schemas that the document publishes (decisions 1.14).
//!
//! **Guarantee.** What the document admits is refused with 400 for reasons alone that no schema can say: a name that has to be
//! unique among others, a URL that has to be public, a cursor that has to be ours.
//!
//! **Mechanism.** Code checks these rules and tells of each by the field that is wrong, which a schema's `not` or `if` cannot.
//! Here they stand once more as keywords of JSON Schema, for whoever reads the document; requests are not validated by them.
//! `tests/contract` makes requests from the document and so finds the two apart.

use domain::action::{self, Action, Parameter, ParameterType};
use serde_json::{Map, Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AllOfBuilder, AnyOfBuilder, Object, ObjectBuilder, Schema};
use utoipa::openapi::{Components, OpenApi, RefOr};

/// A picture as requests name it.
const PICTURE: &str = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$";
/// The same, or where it is to be fetched from.
const PICTURE_OR_URL: &str = "^((node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}|https://.+)$";
/// A provider's model id, or a `model:` handle as a whole.
const MODEL: &str = "^(model:[A-Za-z0-9_-]{8,600}|(?!model:).*)$";
/// `W:H`, each from 1 to 100 with at most three digits and two decimals.
const RATIO: &str = r"^((0{0,2}[1-9]|0?[1-9][0-9])(\.[0-9]{1,2})?|100(\.0{1,2})?):((0{0,2}[1-9]|0?[1-9][0-9])(\.[0-9]{1,2})?|100(\.0{1,2})?)$";
/// A colour of an Action.
const COLOR: &str = "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})$";

/// Adds the rules.
pub fn add(document: &mut OpenApi) {
    if let Some(components) = &mut document.components {
        canvases(components);
        elements(components);
        images(components);
        videos(components);
        workflows(components);
        actions(components);
    }
    for (path, item) in &mut document.paths.paths {
        if path.ends_with("/images/generate") || path.ends_with("/images/edit") {
            item.post.iter_mut().for_each(need_a_prompt);
        }
    }
}

fn canvases(components: &mut Components) {
    keywords(components, "CreateCanvas", json!({"not": {"required": ["id", "destination"]}}));
    for (name, described) in [
        ("NewNode", "The keys that clients write."),
        ("NodePatch", "Merged key by key; `null` removes a key. The keys that clients write."),
    ] {
        property(components, name, "metadata", metadata(described));
    }
    property(components, "NodePatch", "type", json!({"type": "string", "enum": ["text", "sticky"]}));
    let Some(RefOr::T(Schema::OneOf(operations))) = components.schemas.get_mut("Operation") else {
        unreachable!("the routes document their operations")
    };
    let reference = json!({"purpose": {"const": "reference"}});
    for operation in &mut operations.items {
        let RefOr::T(Schema::Object(object)) = operation else { continue };
        let rule = match (object.properties.contains_key("role"), object.properties.contains_key("fromNodeId")) {
            (false, _) => continue,
            // What is left out is `flow`.
            (true, true) => json!({"dependentSchemas": {"role": {"required": ["purpose"], "properties": reference}}}),
            // What is left out stays.
            (true, false) => json!({"if": {"required": ["role"], "properties": {"role": {"type": "string"}}},
                "then": {"properties": reference}}),
        };
        oblige(object, rule);
    }
}

/// The writable keys of decisions 3.5, each of which `null` removes.
fn metadata(described: &str) -> Value {
    let text = |max: usize| json!({"type": ["string", "null"], "maxLength": max});
    let integer = |min: i64, max: i64| json!({"type": ["integer", "null"], "minimum": min, "maximum": max});
    let switch = json!({"type": ["boolean", "null"]});
    json!({
        "type": "object", "description": described, "additionalProperties": false,
        "properties": {
            "content": text(24_000), "prompt": text(8000), "negativePrompt": text(8000), "model": text(650),
            "size": text(80), "quality": text(80), "aspectRatio": text(80), "count": integer(1, 4),
            "durationSeconds": integer(1, 120), "zIndex": integer(-9_007_199_254_740_991, 9_007_199_254_740_991),
            "fontSize": {"type": ["number", "null"], "minimum": 1, "maximum": 1000},
            "color": {"type": ["string", "null"], "pattern": "^#[0-9A-Fa-f]{6}$"},
            "textAlign": {"type": ["string", "null"], "enum": ["left", "center", "right", null]},
            "section": switch, "locked": switch, "collapsed": switch,
            "sectionId": {"type": ["string", "null"], "pattern": "^(node:)?[A-Za-z0-9_-]{1,180}$"},
            "tags": {"type": ["array", "null"], "maxItems": 24, "items": {"type": "string", "maxLength": 80}},
            "custom": {"type": ["object", "null"]},
        },
    })
}

fn elements(components: &mut Components) {
    let made_of_something = json!({"anyOf": [
        {"properties": {"sourceAssetIds": {"minItems": 1}}},
        {"required": ["guidelines"], "properties": {"guidelines": {"pattern": "[A-Za-z0-9]|\\S"}}},
    ]});
    for name in ["CreateElement", "ElementContent"] {
        keywords(components, name, made_of_something.clone());
        unique(components, name, "sourceAssetIds");
    }
    unique(components, "CreateElement", "collectionIds");
    unique(components, "ElementPatch", "collectionIds");
}

fn images(components: &mut Components) {
    keywords(
        components,
        "ImageStart",
        json!({
            "oneOf": [{"required": ["targetNodeId"]}, {"required": ["targetNodeIds"]}],
            "not": {"required": ["prompt", "promptNodeId"]},
            "dependentSchemas": {
                "targetNodeId": {"properties": {"count": {"const": 1}}},
                "source": {"properties": {"references": {"maxItems": 15}}},
            },
        }),
    );
    for list in ["targetNodeIds", "references", "elements"] {
        unique(components, "ImageStart", list);
    }
    property(components, "ImageStart", "model", json!({"pattern": MODEL}));
}

/// Variations can do without one (specification, Images rule 3).
fn need_a_prompt(operation: &mut Operation) {
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    let Some(RefOr::T(content)) = body.content.get_mut("application/json") else { return };
    let either = |field: &str| ObjectBuilder::new().required(field);
    let prompted = AnyOfBuilder::new().item(either("prompt")).item(either("promptNodeId"));
    content.schema = content.schema.take().map(|schema| AllOfBuilder::new().item(schema).item(prompted).into());
}

fn videos(components: &mut Components) {
    keywords(components, "VideoStart", json!({"dependentRequired": {"lastFrame": ["firstFrame"]}}));
    for frame in ["firstFrame", "lastFrame"] {
        property(components, "VideoStart", frame, json!({"pattern": PICTURE_OR_URL}));
    }
    property(components, "VideoStart", "model", json!({"pattern": MODEL}));
    let handle = json!({"type": "string", "maxLength": 2048, "pattern": PICTURE_OR_URL});
    let reference = json!({"type": "object", "required": ["handle"], "additionalProperties": false,
        "properties": {"handle": handle, "role": {"$ref": "#/components/schemas/Role"}}});
    property(
        components,
        "VideoStart",
        "references",
        json!({"uniqueItems": true, "items": {"oneOf": [handle, reference]}}),
    );
}

fn workflows(components: &mut Components) {
    let tag = json!({"type": "string", "minLength": 1, "maxLength": 80});
    property(components, "CreateWorkflow", "tags", json!({"items": tag}));
    unique(components, "NewOutput", "inputKeys");
    property(components, "NewOutput", "model", json!({"pattern": MODEL}));
    property(components, "RunRecipe", "model", json!({"pattern": MODEL}));
    let image = json!({"required": ["type"], "properties": {"type": {"const": "image"}}});
    let of_pictures = json!({"properties": {
        "value": {"pattern": format!("^$|{PICTURE}")}, "writtenReference": {"const": false},
    }});
    let saved = json!({"required": ["useAsDefault"], "properties": {"useAsDefault": {"const": true}}});
    let something = json!({"anyOf": [
        {"required": ["sourceNodeId"]}, {"required": ["value"], "properties": {"value": {"minLength": 1}}},
    ]});
    let rules = json!({"allOf": [{"if": image, "then": of_pictures}, {"if": saved, "then": something}]});
    keywords(components, "NewInput", rules);
}

/// The parameters of each Action; which of them a request has to fit, its path says.
fn actions(components: &mut Components) {
    property(components, "RunRequest", "inputs", json!({"items": {"type": "string", "pattern": PICTURE}}));
    let mut forms = Vec::new();
    for action in action::all() {
        let name = format!("{}Parameters", camel(action.slug));
        forms.push(json!({"$ref": format!("#/components/schemas/{name}")}));
        components.schemas.insert(name.clone(), typed(parameters(action)));
        if let Some(rule) = together(action.slug) {
            keywords(components, &name, rule);
        }
    }
    let described = "The parameters of the path's Action; those left out take their defaults.";
    let params = typed(json!({"anyOf": forms, "description": described}));
    object(components, "RunRequest").properties.insert("params".to_owned(), params);
}

/// `params` of one Action.
fn parameters(action: &Action) -> Value {
    let properties = action.parameters.iter().map(|parameter| (parameter.id.to_owned(), parameter_schema(parameter)));
    let required: Vec<&str> = action.parameters.iter().filter(|it| it.required).map(|it| it.id).collect();
    json!({
        "type": "object", "description": action.summary, "required": required, "additionalProperties": false,
        "properties": properties.collect::<Map<_, _>>(),
    })
}

fn parameter_schema(parameter: &Parameter) -> Value {
    let mut schema = match parameter.kind {
        // Of any size that a program counts with.
        ParameterType::Number if parameter.integer == Some(true) => {
            json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX})
        }
        ParameterType::Number => json!({"type": "number"}),
        ParameterType::Select => {
            json!({"type": "string", "enum": parameter.options.iter().map(|it| &it.value).collect::<Vec<_>>()})
        }
        ParameterType::Text => json!({"type": "string"}),
        ParameterType::Color => json!({"type": "string", "pattern": COLOR}),
    };
    let mut set = |keyword: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema[keyword] = value;
        }
    };
    let described = if parameter.description.is_empty() { parameter.title } else { parameter.description };
    set("description", Some(described.into()));
    set("minimum", parameter.min.map(Value::from));
    set("maximum", parameter.max.map(Value::from));
    set("maxLength", parameter.max_length.map(Value::from));
    set("default", parameter.default.clone());
    if parameter.id == "ratio" {
        set("pattern", Some(RATIO.into()));
    }
    schema
}

/// What the parameters of an Action have to be together.
fn together(slug: &str) -> Option<Value> {
    match slug {
        "resize" => Some(json!({"anyOf": [{"required": ["width"]}, {"required": ["height"]}]})),
        "crop" => Some(json!({"dependentRequired": {"x": ["y"], "y": ["x"]}})),
        _ => None,
    }
}

/// `add-text-to-image` as the name of a type.
fn camel(slug: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    slug.split('-').map(word).collect()
}

fn object<'a>(components: &'a mut Components, name: &str) -> &'a mut Object {
    match components.schemas.get_mut(name) {
        Some(RefOr::T(Schema::Object(object))) => object,
        _ => unreachable!("a route documents {name}, which is an object"),
    }
}

/// Adds a rule to an object.
fn keywords(components: &mut Components, name: &str, rule: Value) {
    oblige(object(components, name), rule);
}

/// The same. One keyword holds it, since the order in which several of these are written is not fixed.
fn oblige(object: &mut Object, rule: Value) {
    object.extensions = Some([("allOf", json!([rule]))].into_iter().collect());
}

/// Sets keywords of a property.
fn property(components: &mut Components, name: &str, field: &str, keywords: Value) {
    let property = object(components, name).properties.get_mut(field);
    let property = property.unwrap_or_else(|| unreachable!("{name} has a field {field}"));
    let mut schema = serde_json::to_value(&*property).expect("a schema serializes");
    // What a reference stands for is said here.
    schema.as_object_mut().expect("an object").remove("$ref");
    schema.as_object_mut().expect("an object").extend(keywords.as_object().cloned().unwrap_or_default());
    *property = typed(schema);
}

/// Says that a list has nothing twice, in whichever form of the type the list is.
fn unique(components: &mut Components, name: &str, list: &str) {
    let forms: Vec<&mut Object> = match components.schemas.get_mut(name) {
        Some(RefOr::T(Schema::Object(object))) => vec![object],
        Some(RefOr::T(Schema::OneOf(union))) => {
            let objects = union.items.iter_mut().map(|item| match item {
                RefOr::T(Schema::Object(object)) => Some(object),
                _ => None,
            });
            objects.flatten().collect()
        }
        _ => unreachable!("a route documents {name}"),
    };
    let lists = forms.into_iter().filter_map(|form| form.properties.get_mut(list));
    lists.for_each(|property| match property {
        RefOr::T(Schema::Array(array)) => array.unique_items = true,
        _ => unreachable!("{name}.{list} is a list"),
    });
}

fn typed(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema).expect("a schema of keywords that the document's types know")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::documented;

    /// Whether the published schema of a name admits a value.
    fn admits(name: &str, value: &Value) -> bool {
        let document = serde_json::to_value(documented().1).expect("serializes");
        let mut schema = json!({"$ref": format!("#/components/schemas/{name}")});
        schema["components"] = document["components"].clone();
        jsonschema::draft202012::new(&schema).expect("a valid schema").is_valid(value)
    }

    #[test]
    fn the_document_says_what_excludes_and_needs_what() {
        let image = json!({"canvasId": "c", "baseRevision": "r", "idempotencyKey": "12345678"});
        let with = |more: Value| {
            let mut body = image.clone();
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            admits("ImageStart", &body)
        };
        assert!(with(json!({"targetNodeId": "t", "prompt": "p", "count": 1})));
        assert!(with(json!({"targetNodeIds": ["t", "u"], "count": 2, "source": "node:n"})));
        for wrong in [
            json!({}),
            json!({"targetNodeId": "t", "targetNodeIds": ["u"]}),
            json!({"targetNodeId": "t", "count": 2}),
            json!({"targetNodeId": "t", "prompt": "p", "promptNodeId": "n"}),
            json!({"targetNodeIds": ["t", "t"]}),
            json!({"targetNodeId": "t", "model": "model:short"}),
        ] {
            assert!(!with(wrong.clone()), "{wrong}");
        }
        assert!(!admits("CreateCanvas", &json!({"id": "i", "destination": "agent-canvas"})));
        assert!(admits("CreateCanvas", &json!({"id": "i", "canvasType": "agent"})));
        let element = |sources: &[&str], guidelines: &str| {
            admits(
                "CreateElement",
                &json!({"name": "n", "type": "style", "sourceAssetIds": sources, "guidelines": guidelines}),
            )
        };
        assert!(element(&["a"], "") && element(&[], "g") && !element(&[], " ") && !element(&["a", "a"], "g"));
    }

    #[test]
    fn the_document_knows_the_parameters_of_every_action() {
        for (name, good, wrong) in [
            ("ResizeParameters", json!({"width": 10, "fit": "cover", "background": "#fff"}), json!({"fit": "cover"})),
            (
                "CropParameters",
                json!({"width": 1, "height": 1, "x": 0, "y": 0}),
                json!({"width": 1, "height": 1, "x": 0}),
            ),
            ("ChangeAspectRatioParameters", json!({"ratio": "1.91:1"}), json!({"ratio": "0:1"})),
            ("RotateParameters", json!({"degrees": -90.5}), json!({"degrees": 361})),
            ("AddTextToImageParameters", json!({"text": "t", "size": 0.5}), json!({"text": "t", "colour": "#fff"})),
        ] {
            assert!(admits(name, &good), "{name}: {good}");
            assert!(!admits(name, &wrong), "{name}: {wrong}");
        }
    }

    #[test]
    fn the_document_knows_the_keys_of_metadata() {
        let node = |metadata: Value| json!({"type": "text", "position": {"x": 0, "y": 0}, "metadata": metadata});
        assert!(admits(
            "NewNode",
            &node(json!({"content": "c", "count": 4, "color": "#a0b1c2", "custom": {"a": [1]}}))
        ));
        assert!(admits("NodePatch", &json!({"metadata": {"tags": null, "section": false}})));
        for wrong in
            [json!({"createdBy": "user"}), json!({"count": 5}), json!({"textAlign": "top"}), json!({"tags": [1]})]
        {
            assert!(!admits("NewNode", &node(wrong.clone())), "{wrong}");
        }
    }
}
