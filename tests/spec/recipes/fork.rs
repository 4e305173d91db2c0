//! Forks: a Recipe copied into a canvas, without a run (docs/reference/recipes.md#fork-a-recipe).

use super::*;

const RECIPE: &str = "ad-copy-and-banner";

/// The ids of the nodes that a fork created, by role.
fn made(result: &Value) -> (String, Vec<String>, Vec<String>) {
    let ids = result["resolvedIds"].as_object().expect("ids");
    let of = |keys: &[&str]| keys.iter().map(|key| ids[*key].as_str().expect("an id").to_owned()).collect();
    let instance = ids["recipe"].as_str().expect("an id").to_owned();
    (instance, of(&["input-product", "input-offer", "input-audience"]), of(&["output-copy", "output-banner"]))
}

#[tokio::test]
async fn a_fork_is_an_instance_connected_in_and_out() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let reply = fork_onto(&user, RECIPE, &canvas, json!({})).await.expect(201);
    let location = format!("/api/canvas-agent/v1/canvases/{}", text(&canvas, "/handle"));
    assert_eq!(reply.header("location"), Some(location.as_str()));
    let result = reply.json();
    assert_eq!(result["replayed"], false);
    let now = user.canvas(text(&canvas, "/id")).await;
    assert_eq!(result["canvas"], now);
    assert_ne!(now["revision"], canvas["revision"]);
    let (instance, inputs, outputs) = made(&result);
    assert_eq!(neighbours(&now, &instance), (inputs.clone(), outputs.clone()));
    let nodes = nodes(&now);
    assert_eq!(nodes.len(), 6);
    let kind = |id: &String| text(&nodes[id], "/type").to_owned();
    assert_eq!(kind(&instance), "sticky");
    assert_eq!(inputs.iter().map(kind).collect::<Vec<_>>(), ["image", "text", "text"]);
    assert_eq!(outputs.iter().map(kind).collect::<Vec<_>>(), ["text", "image"]);
    let note = &nodes[&instance]["metadata"]["recipe"];
    assert_eq!((&note["recipe"], &note["version"]), (&json!(format!("recipe:{RECIPE}")), &json!("1.0.0")));
    assert_eq!(text(&nodes[&inputs[2]], "/metadata/content"), "People who have not heard of us yet.");
    assert!(text(&nodes[&outputs[1]], "/metadata/prompt").contains("{{copy}}"));
    assert_eq!(user.get("/runs").await.ok()["runs"], json!([]), "a fork never runs");
    let read = user.get(&format!("/canvases/{}", text(&canvas, "/id"))).await.ok();
    assert_eq!(read["activity"][0]["type"], "recipe.forked");
    let review = user.get(&format!("/canvases/{}/review", text(&canvas, "/id"))).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]), "nothing overlaps");
}

#[tokio::test]
async fn a_fork_stands_clear_of_everything() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let content = json!([
        {"type": "node.create", "node": {"type": "text", "position": {"x": -500, "y": 90}}},
        {"type": "node.create", "node": {"type": "text", "position": {"x": 900, "y": 300}}},
    ]);
    user.apply(id, content).await;
    let mut edge = 1220.0;
    for recipe in [RECIPE, "seasonal-variants", "palette-and-type-board"] {
        let result = fork_onto(&user, recipe, &canvas, json!({})).await.expect(201).json();
        let nodes = nodes(&result["canvas"]);
        let new: Vec<&Value> = result["changedNodeIds"]
            .as_array()
            .expect("ids")
            .iter()
            .map(|id| &nodes[id.as_str().expect("an id")])
            .collect();
        let number = |value: &Value| value.as_f64().expect("a number");
        assert!(new.iter().all(|node| number(&node["position"]["x"]) >= edge), "right of the content");
        edge = new.iter().map(|node| number(&node["position"]["x"]) + number(&node["width"])).fold(edge, f64::max);
    }
    let review = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]));
}

#[tokio::test]
async fn a_fork_is_placed_where_it_is_wanted() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let result = fork_onto(&user, RECIPE, &canvas, json!({"x": -1234.5, "y": 777})).await.expect(201).json();
    let nodes = nodes(&result["canvas"]);
    let least = |axis: &str| nodes.values().filter_map(|node| node["position"][axis].as_f64()).fold(f64::MAX, f64::min);
    assert_eq!((least("x"), least("y")), (-1234.5, 777.0));
    for edge in [json!({"x": -10_000_000}), json!({"y": 10_000_000}), json!({"x": 10_000_000, "y": -10_000_000})] {
        fork_onto(&user, RECIPE, &canvas, edge).await.expect(201);
    }
    let beyond = json!({"x": 10_000_000.5, "y": -10_000_001});
    fork_onto(&user, RECIPE, &canvas, beyond).await.expect_error(400, "input_validation_error", &["x", "y"]);
}

/// Left, top, right and bottom of all of these nodes.
pub(super) fn bounds<'a>(nodes: impl Iterator<Item = &'a Value>) -> [f64; 4] {
    let number = |node: &Value, at: &str| node.pointer(at).and_then(Value::as_f64).expect("a number");
    nodes.fold([f64::MAX, f64::MAX, f64::MIN, f64::MIN], |[left, top, right, bottom], node| {
        let (x, y) = (number(node, "/position/x"), number(node, "/position/y"));
        let (width, height) = (number(node, "/width"), number(node, "/height"));
        [left.min(x), top.min(y), right.max(x + width), bottom.max(y + height)]
    })
}

#[tokio::test]
async fn a_fork_is_near_a_node_or_in_a_section() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let content = json!([
        {"type": "node.create", "clientId": "a",
            "node": {"type": "image", "position": {"x": 0, "y": 0}, "metadata": {"placeholder": true}}},
        {"type": "node.create", "node": {"type": "text", "position": {"x": 9000, "y": 0}}},
        {"type": "node.create", "clientId": "s", "node": {"type": "sticky", "position": {"x": 0, "y": 5000},
            "width": 400, "height": 400, "metadata": {"section": true}}},
    ]);
    let ids = user.apply(id, content).await["resolvedIds"].clone();
    let near = fork_onto(&user, RECIPE, &canvas, json!({"near": format!("node:{}", text(&ids, "/a"))})).await;
    let result = near.expect(201).json();
    let nodes = nodes(&result["canvas"]);
    let new = result["changedNodeIds"].as_array().expect("ids").iter();
    let new: Vec<&Value> = new.map(|id| &nodes[id.as_str().expect("an id")]).collect();
    assert_eq!((bounds(new.iter().copied())[0], new.len()), (360.0, 6), "right of it, and not of the content");
    let result = fork_onto(&user, RECIPE, &canvas, json!({"sectionId": ids["s"]})).await.expect(201).json();
    let nodes = super::nodes(&result["canvas"]);
    let members: Vec<&Value> = nodes.values().filter(|node| node["metadata"]["sectionId"] == ids["s"]).collect();
    assert_eq!((members.len(), result["changedNodeIds"].as_array().map(Vec::len)), (6, Some(7)), "the Section grew");
    let section = bounds([&nodes[text(&ids, "/s")]].into_iter());
    let [left, top, right, bottom] = bounds(members.into_iter());
    assert!(left > section[0] && top > section[1] && right < section[2] && bottom < section[3], "{section:?}");
    let review = user.get(&format!("/canvases/{id}/review")).await.ok();
    assert_eq!(review["validation"]["findings"], json!([]), "nothing overlaps");
    for (wrong, fields) in [
        (json!({"near": "a", "x": 1}), &["near"][..]),
        (json!({"near": "a", "sectionId": "s", "y": 1}), &["near", "sectionId"]),
        (json!({"near": "a b", "sectionId": "canvas:s"}), &["near", "sectionId"]),
    ] {
        fork_onto(&user, RECIPE, &canvas, wrong).await.expect_error(400, "input_validation_error", fields);
    }
    let absent = json!({"near": "absent", "sectionId": ids["a"]});
    fork_onto(&user, RECIPE, &canvas, absent).await.expect_error(422, "unprocessable_entity", &["near", "sectionId"]);
}

#[tokio::test]
async fn a_fork_is_made_for_a_revision() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let stale = json!({"baseRevision": canvas["revision"]});
    user.apply(text(&canvas, "/id"), json!([{"type": "canvas.update", "title": "t"}])).await;
    let now = user.canvas(text(&canvas, "/id")).await;
    let refused = fork_onto(&user, RECIPE, &canvas, stale).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["currentRevision"], now["revision"]);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, now);
    let body = json!({"canvasId": canvas["id"]});
    let refused = user.send(&format!("/recipes/{RECIPE}/fork"), &body).await;
    refused.expect_error(400, "input_validation_error", &["baseRevision", "idempotencyKey"]);
}

#[tokio::test]
async fn a_fork_that_is_sent_again_makes_no_second_one() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let body = json!({
        "canvasId": canvas["id"], "baseRevision": canvas["revision"], "idempotencyKey": key(), "version": "1.0.0",
    });
    let path = format!("/recipes/{RECIPE}/fork");
    let other = user.at(stack, 1);
    let both = tokio::join!(async { user.send(&path, &body).await }, async { other.send(&path, &body).await });
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201], "one effect and one replay");
    let ids = both.0.json()["resolvedIds"].clone();
    assert_eq!(both.1.json()["resolvedIds"], ids);
    // Another spelling of the same request, after the canvas has changed.
    user.apply(text(&canvas, "/id"), json!([{"type": "canvas.update", "title": "t"}])).await;
    let spelled = with(body.clone(), json!({"canvasId": canvas["handle"]}));
    let again = user.send(&format!("/recipes/recipe:{RECIPE}/fork"), &spelled).await.ok();
    assert_eq!((&again["replayed"], &again["resolvedIds"]), (&json!(true), &ids));
    assert_eq!(again["canvas"]["title"], "t", "the canvas as it is now");
    user.send(&path, &with(body.clone(), json!({"x": 1}))).await.expect_error(409, "conflict", &[]);
    user.send("/recipes/storyboard/fork", &with(body, json!({}))).await.expect_error(409, "conflict", &[]);
    assert_eq!(user.canvas(text(&canvas, "/id")).await["nodes"].as_array().map(Vec::len), Some(6));
}

#[tokio::test]
async fn an_unknown_recipe_is_404_and_an_unknown_version_422() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    fork_onto(&user, "absent", &canvas, json!({})).await.expect_error(404, "not_found", &[]);
    for unknown in ["1.0.7", "newest", ""] {
        let refused = fork_onto(&user, RECIPE, &canvas, json!({"version": unknown})).await;
        refused.expect_error(422, "unprocessable_entity", &["version"]);
    }
    let refused = fork_onto(&user, RECIPE, &canvas, json!({"version": "1".repeat(81)})).await;
    refused.expect_error(400, "input_validation_error", &["version"]);
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas, "nothing was written");
}

#[tokio::test]
async fn an_editor_forks_on_a_shared_canvas() {
    let stack = &Stack::without_workers().await;
    let (owner, editor, viewer) = (stack.user().await, stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &editor.uid, "editor").await;
    stack.share(&owner, text(&canvas, "/id"), &viewer.uid, "viewer").await;
    let by_handle = json!({"canvasId": canvas["handle"]});
    fork_onto(&viewer, RECIPE, &canvas, by_handle.clone()).await.expect_error(403, "forbidden", &[]);
    fork_onto(&editor, RECIPE, &canvas, by_handle).await.expect(201);
    fork_onto(&editor, RECIPE, &canvas, json!({"ownerUid": owner.uid})).await.expect(201);
    fork_onto(&editor, RECIPE, &canvas, json!({})).await.expect_error(404, "not_found", &[]);
    let contrary = json!({"canvasId": canvas["handle"], "ownerUid": editor.uid});
    fork_onto(&editor, RECIPE, &canvas, contrary).await.expect_error(400, "input_validation_error", &["ownerUid"]);
    assert_eq!(owner.canvas(text(&canvas, "/id")).await["nodes"].as_array().map(Vec::len), Some(12));
}

#[tokio::test]
async fn the_ports_of_a_fork_are_the_users_to_edit() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let result = fork_onto(&user, RECIPE, &canvas, json!({})).await.expect(201).json();
    let (instance, inputs, outputs) = made(&result);
    let patch =
        |node: &str, metadata: Value| json!({"type": "node.update", "nodeId": node, "patch": {"metadata": metadata}});
    user.apply(
        id,
        json!([
            patch(&inputs[2], json!({"content": "Gardeners."})),
            patch(&outputs[0], json!({"prompt": "Write one line about {{offer}}"})),
        ]),
    )
    .await;
    let now = nodes(&user.canvas(id).await);
    assert_eq!(text(&now[&inputs[2]], "/metadata/content"), "Gardeners.");
    assert_eq!(text(&now[&outputs[0]], "/metadata/prompt"), "Write one line about {{offer}}");
    // Clients cannot write the metadata that marks nodes as part of an instance.
    let revision = user.canvas(id).await["revision"].clone();
    let forged =
        user.batch(id, revision.as_str().expect("a revision"), json!([patch(&instance, json!({"recipe": {}}))])).await;
    forged.expect_error(400, "input_validation_error", &["operations[0].patch.metadata.recipe"]);
}
