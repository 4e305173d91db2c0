use super::*;
use crate::router::documented;

/// Whether the published schema of a name admits a value.
fn admits(name: &str, value: &Value) -> bool {
    let document = documented().1;
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
    assert!(with(json!({"place": {"near": "n", "sectionId": "s", "title": "T", "count": 4}, "connect": false})));
    let action = |more: Value| {
        let mut body = json!({"canvasId": "c", "baseRevision": "r", "validateOnly": true, "inputs": ["node:n"],
            "params": {}});
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        admits("RunAction", &body)
    };
    assert!(action(json!({"targetNodeId": "t", "connect": true})));
    assert!(action(json!({"place": {"x": 0, "y": 0.5, "count": 1}})));
    for wrong in [json!({}), json!({"targetNodeId": "t", "place": {}}), json!({"place": {"count": 2}})] {
        assert!(!action(wrong.clone()), "{wrong}");
    }
    for wrong in [
        json!({}),
        json!({"targetNodeId": "t", "targetNodeIds": ["u"]}),
        json!({"targetNodeId": "t", "count": 2}),
        json!({"targetNodeId": "t", "place": {}}),
        json!({"targetNodeIds": ["t"], "place": {}}),
        json!({"place": {"x": 1}}),
        json!({"place": {"near": "n", "x": 1, "y": 1}}),
        json!({"place": {"count": 5}}),
        json!({"targetNodeId": "t", "prompt": "p", "promptNodeId": "n"}),
        json!({"targetNodeIds": ["t", "t"]}),
        json!({"targetNodeId": "t", "model": "model:short"}),
    ] {
        assert!(!with(wrong.clone()), "{wrong}");
    }
    let video = |terms: Value| {
        let mut body = json!({"model": "m", "prompt": "p"});
        body.as_object_mut().expect("an object").extend(terms.as_object().cloned().expect("an object"));
        admits("VideoStart", &body)
    };
    assert!(video(json!({"idempotencyKey": "12345678", "validateOnly": false, "maxCredits": 0})));
    assert!(video(json!({"validateOnly": true})));
    for wrong in [json!({}), json!({"validateOnly": false}), json!({"idempotencyKey": "12345678", "maxCredits": -1})] {
        assert!(!video(wrong.clone()), "{wrong}");
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
fn the_document_knows_what_layout_operations_need() {
    let arrange = |more: Value| {
        let mut operation = json!({"type": "layout.arrange", "layout": "row"});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        admits("LayoutArrange", &operation)
    };
    assert!(arrange(json!({"nodeIds": ["a"]})) && arrange(json!({"sectionId": "s", "x": 1, "y": 2, "gap": 0})));
    assert!(arrange(json!({"sectionId": "s", "layout": "grid", "columns": 2, "near": "node:n"})));
    for wrong in [
        json!({}),
        json!({"nodeIds": ["a"], "sectionId": "s"}),
        json!({"nodeIds": []}),
        json!({"nodeIds": ["a b"]}),
        json!({"sectionId": "s", "x": 1}),
        json!({"sectionId": "s", "x": 1, "y": 2, "near": "n"}),
        json!({"sectionId": "s", "columns": 2}),
    ] {
        assert!(!arrange(wrong.clone()), "{wrong}");
    }
    let create = |more: Value| {
        let mut operation = json!({"type": "section.create", "title": "S"});
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        admits("SectionCreate", &operation)
    };
    assert!(create(json!({})) && create(json!({"near": "n"})) && create(json!({"x": 0, "y": 0})));
    assert!(!create(json!({"y": 0})) && !create(json!({"near": "n", "x": 0, "y": 0})));
}

#[test]
fn the_document_knows_the_parameters_of_every_action() {
    for (name, good, wrong) in [
        ("ResizeParameters", json!({"width": 10, "fit": "cover", "background": "#fff"}), json!({"fit": "cover"})),
        ("CropParameters", json!({"width": 1, "height": 1, "x": 0, "y": 0}), json!({"width": 1, "height": 1, "x": 0})),
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
    assert!(admits("NewNode", &node(json!({"content": "c", "count": 4, "color": "#a0b1c2", "custom": {"a": [1]}}))));
    assert!(admits("NodePatch", &json!({"metadata": {"tags": null, "section": false}})));
    for wrong in [json!({"createdBy": "user"}), json!({"count": 5}), json!({"textAlign": "top"}), json!({"tags": [1]})]
    {
        assert!(!admits("NewNode", &node(wrong.clone())), "{wrong}");
    }
}
