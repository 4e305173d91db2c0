use e2e::api::{key, text};
use e2e::{Stack, images};
use serde_json::{Value, json};

/// Valid parameters for an Action that requires some.
fn least(slug: &str) -> Value {
    match slug {
        "resize" => json!({"width": 4}),
        "crop" => json!({"width": 4, "height": 4}),
        "change-aspect-ratio" => json!({"ratio": "1:1"}),
        "rotate" => json!({"degrees": 90}),
        "add-text-to-image" => json!({"text": "x"}),
        _ => json!({}),
    }
}

/// Every parameter of every published schema, at, below and above its bounds. The service enforces exactly what it publishes.
#[tokio::test]
async fn every_bound_of_every_parameter_is_judged() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let file = user.upload("image/png", images::png(8, 8)).await;
    let revision = user.canvas(&canvas).await["revision"].clone();
    let actions = user.get("/actions").await.ok()["actions"].as_array().expect("a list").clone();
    assert!(actions.len() >= 7);
    for action in &actions {
        let slug = text(action, "/slug");
        let count = action["inputs"].as_array().expect("a list").len();
        let inputs = vec![file["handle"].clone(); count];
        let send = async |id: &str, value: Value| {
            let mut params = least(slug);
            params[id] = value;
            // Parameters that must be sent together.
            for (one, other) in [("x", "y"), ("y", "x")] {
                if id == one {
                    params[other] = json!(0);
                }
            }
            // The node does not exist, so a request that passes its checks is rejected by the state.
            let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(),
                "targetNodeId": "absent", "inputs": inputs, "params": params});
            user.send(&format!("/actions/{slug}/runs"), &request).await
        };
        for parameter in action["parameters"].as_array().expect("a list") {
            let id = text(parameter, "/id");
            let field = format!("params.{id}");
            let wrong = async |value: Value| {
                send(id, value).await.expect_error(400, "input_validation_error", &[&field]);
            };
            let right = async |value: Value| {
                send(id, value).await.expect_error(422, "unprocessable_entity", &["targetNodeId"]);
            };
            let step = if parameter["integer"] == true { 1.0 } else { 0.001 };
            for (bound, beyond) in [("min", -step), ("max", step)] {
                if let Some(bound) = parameter[bound].as_f64() {
                    right(json!(bound)).await;
                    wrong(json!(bound + beyond)).await;
                }
            }
            for option in parameter["options"].as_array().into_iter().flatten() {
                right(option["value"].clone()).await;
            }
            match text(parameter, "/type") {
                "number" => {
                    wrong(json!("1")).await;
                    if parameter["integer"] == true {
                        wrong(json!(1.5)).await;
                    }
                }
                "select" => wrong(json!("no such option")).await,
                "color" => {
                    right(json!("#aBc")).await;
                    right(json!("#a0b1c2d3")).await;
                    wrong(json!("#ab")).await;
                    wrong(json!("red")).await;
                }
                _ => wrong(json!(1)).await,
            }
            wrong(json!(null)).await;
            if parameter["required"] == true {
                let mut params = least(slug);
                params.as_object_mut().expect("an object").remove(id);
                let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(),
                    "targetNodeId": "absent", "inputs": inputs, "params": params});
                let refused = user.send(&format!("/actions/{slug}/runs"), &request).await;
                refused.expect_error(400, "input_validation_error", &[&field]);
            }
        }
        send("noSuchParameter", json!(1)).await.expect_error(
            400,
            "input_validation_error",
            &["params.noSuchParameter"],
        );
    }
}

#[tokio::test]
async fn two_inputs_are_counted_and_each_must_resolve() {
    let stack = &Stack::with_workers().await;
    let user = stack.user().await;
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let asset = user.upload("image/png", images::png(8, 8)).await["handle"].clone();
    let revision = user.canvas(&canvas).await["revision"].clone();
    let start = async |inputs: Value| {
        let request = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": key(),
            "targetNodeId": target, "inputs": inputs, "params": {}});
        user.send("/actions/overlay-image/runs", &request).await
    };
    for count in [json!([]), json!([asset]), json!([asset, asset, asset])] {
        start(count).await.expect_error(400, "input_validation_error", &["inputs"]);
    }
    start(json!([asset, "x"])).await.expect_error(400, "input_validation_error", &["inputs[1]"]);
    let own = format!("node:{target}");
    start(json!([asset, own])).await.expect_error(400, "input_validation_error", &["targetNodeId"]);
    start(json!([asset, "asset:absent"])).await.expect_error(422, "unprocessable_entity", &["inputs[1]"]);
    let neither = start(json!(["asset:absent", "node:absent"])).await;
    neither.expect_error(422, "unprocessable_entity", &["inputs[0]", "inputs[1]"]);
    // One image can be both inputs.
    start(json!([asset, asset])).await.expect(202);
}
