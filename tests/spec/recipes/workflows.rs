//! Private workflows (docs/reference/recipes.md#create-a-workflow).

use super::*;

#[tokio::test]
async fn a_workflow_is_made_with_its_instance() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let reply = make_workflow(&user, text(&canvas, "/id"), &workflow()).await.expect(201);
    let result = reply.json();
    let made = &result["workflow"];
    assert_eq!(reply.header("location"), Some(format!("/api/canvas-agent/v1/recipes/{}", text(made, "/id")).as_str()));
    assert_eq!(text(made, "/handle"), format!("recipe:{}", text(made, "/id")));
    assert_eq!((&made["version"], &made["name"]), (&json!("1.0.0"), &json!("Two steps")));
    assert_eq!(made["recipeNodeId"], made["workflowNodeId"]);
    let now = user.canvas(text(&canvas, "/id")).await;
    assert_eq!(result["canvas"], now);
    let ids = |list: &str, field: &str| -> Vec<String> {
        made[list].as_array().expect("ports").iter().map(|port| text(port, &format!("/{field}")).to_owned()).collect()
    };
    let ports = (ids("inputs", "portNodeId"), ids("outputs", "portNodeId"));
    assert_eq!(neighbours(&now, text(made, "/recipeNodeId")), ports);
    assert_eq!(ids("inputs", "nodeId"), ports.0);
    assert_eq!(ids("outputs", "templateNodeId"), ports.1);
    assert_eq!(text(&nodes(&now)[&ports.1[1]], "/metadata/prompt"), "{{copy}} {{pack}}");
    // The workflow is a Recipe of its creator with these nodes as ports.
    let recipe = user.get(&format!("/recipes/{}", text(made, "/id"))).await.ok()["recipe"].clone();
    assert_eq!((&recipe["visibility"], &recipe["description"]), (&json!("private"), &json!("A text, then its image.")));
    assert_eq!(recipe["inputs"][1]["nodeId"], json!(ports.0[1]));
    assert_eq!(recipe["inputs"][1]["useAsPreset"], false);
    assert_eq!(recipe["outputs"][0]["nodeType"], "text");
    assert_eq!(user.get("/runs").await.ok()["runs"], json!([]), "nothing runs");
    let read = user.get(&format!("/canvases/{}", text(&canvas, "/id"))).await.ok();
    assert_eq!(read["activity"][0]["type"], "workflow.created");
}

#[tokio::test]
async fn a_workflow_begins_with_its_sources_and_values() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let asset = user.upload_into(id, "image/png", images::png(8, 8)).await;
    let image = text(&asset, "/node").to_owned();
    let note = json!([{"type": "node.create", "clientId": "t", "node": {"type": "text", "metadata": {"content": "From a node"}}}]);
    let written = text(&user.apply(id, note).await, "/resolvedIds/t").to_owned();
    let inputs = json!([
        with(input("pack", "image"), json!({"sourceNodeId": image, "useAsDefault": true})),
        with(input("note", "sticky"), json!({"sourceNodeId": written, "useAsDefault": true})),
        with(input("tone", "text"), json!({"value": "Warm", "useAsDefault": true})),
        with(input("shown", "text"), json!({"value": "Only here", "useAsDefault": false})),
        with(input("handle", "image"), json!({"value": asset["handle"], "useAsDefault": true})),
        with(input("look", "text"), json!({"sourceNodeId": image, "useAsDefault": true, "writtenReference": true})),
    ]);
    let outputs = json!([output("out", "text", &["note", "tone"])]);
    let body = with(workflow(), json!({"inputs": inputs, "outputs": outputs}));
    let result = make_workflow(&user, id, &body).await.expect(201).json();
    let made = result["workflow"]["inputs"].as_array().expect("inputs").clone();
    let now = user.canvas(id).await;
    let nodes = nodes(&now);
    let port = |at: usize| &nodes[text(&made[at], "/portNodeId")];
    assert_eq!(port(0)["asset"], asset["handle"]);
    assert_eq!(neighbours(&now, text(&made[0], "/portNodeId")).0, [image.trim_start_matches("node:")]);
    assert_eq!(text(&made[0], "/nodeId"), image.trim_start_matches("node:"));
    assert_eq!(text(port(1), "/metadata/content"), "From a node");
    assert_eq!(text(port(2), "/metadata/content"), "Warm");
    assert_eq!(text(port(3), "/metadata/content"), "Only here");
    assert_eq!(port(4)["asset"], asset["handle"]);
    let recipe = user.get(&format!("/recipes/{}", text(&result, "/workflow/id"))).await.ok()["recipe"].clone();
    let presets: Vec<&Value> =
        recipe["inputs"].as_array().expect("inputs").iter().map(|port| &port["useAsPreset"]).collect();
    assert_eq!(presets, [true, true, true, false, true, true]);
    assert_eq!(recipe["inputs"][5]["writtenReference"], true);
    // A fork starts with the saved values only.
    let other = user.make_canvas().await;
    let forked = fork_onto(&user, text(&result, "/workflow/id"), &other, json!({})).await.expect(201).json();
    let nodes = super::nodes(&forked["canvas"]);
    let port = |key: &str| &nodes[text(&forked, &format!("/resolvedIds/input-{key}"))];
    assert_eq!((&port("pack")["asset"], &port("handle")["asset"]), (&asset["handle"], &asset["handle"]));
    assert_eq!(text(port("note"), "/metadata/content"), "From a node");
    assert_eq!(port("shown")["metadata"].get("content"), None);
}

#[tokio::test]
async fn a_workflow_that_is_sent_again_makes_no_second_one() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let body = workflow();
    let first = make_workflow(&user, text(&canvas, "/id"), &body).await.expect(201).json();
    let again = make_workflow(&user.at(stack, 1), text(&canvas, "/handle"), &body).await.ok();
    assert_eq!((&again["replayed"], &again["workflow"]), (&json!(true), &first["workflow"]));
    assert_eq!(again["resolvedIds"], first["resolvedIds"]);
    let other = with(body, json!({"name": "Another"}));
    make_workflow(&user, text(&canvas, "/id"), &other).await.expect_error(409, "conflict", &[]);
    let own = user.get("/recipes?visibility=private").await.ok();
    assert_eq!(own["recipes"].as_array().map(Vec::len), Some(1));
    let minimal = user.send(&format!("/canvases/{}/workflows", text(&canvas, "/id")), &workflow());
    let minimal = minimal.header("prefer", "return=minimal").await.expect(201);
    assert_eq!(minimal.header("preference-applied"), Some("return=minimal"));
    assert!(minimal.json()["canvas"].get("nodes").is_none());
}

#[tokio::test]
async fn a_workflow_is_its_makers_alone() {
    let stack = &Stack::without_workers().await;
    let (owner, editor) = (stack.user().await, stack.user().await);
    let canvas = owner.make_canvas().await;
    stack.share(&owner, text(&canvas, "/id"), &editor.uid, "editor").await;
    let made = make_workflow(&editor, text(&canvas, "/handle"), &workflow()).await.expect(201).json();
    let id = text(&made, "/workflow/id");
    editor.get(&format!("/recipes/{id}")).await.ok();
    // The instance is on the owner's canvas, but the workflow belongs to the editor.
    owner.get(&format!("/recipes/{id}")).await.expect_error(404, "not_found", &[]);
    fork_onto(&owner, id, &canvas, json!({})).await.expect_error(404, "not_found", &[]);
    let ids = async |user: &User, query: &str| {
        let page = user.get(&format!("/recipes?limit=100{query}")).await.ok();
        page["recipes"].as_array().expect("recipes").iter().any(|recipe| recipe["id"] == id)
    };
    assert!(!ids(&editor, "").await, "the catalog has no private workflow");
    assert!(ids(&editor, "&visibility=private").await && ids(&editor, "&visibility=all").await);
    assert!(!ids(&owner, "&visibility=private").await && !ids(&owner, "&visibility=all").await);
}

#[tokio::test]
async fn definitions_that_contradict_themselves_are_400() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let prompt = |text: &str| json!([with(output("copy", "text", &["brief"]), json!({"prompt": text}))]);
    for (more, fields) in [
        (
            json!({"inputs": [input("brief", "text"), input("brief", "text")], "outputs": [output("o", "text", &["brief"])]}),
            vec!["inputs[1].key"],
        ),
        (json!({"outputs": [output("brief", "text", &["brief"])]}), vec!["outputs[0].key"]),
        (json!({"outputs": [output("o", "text", &["o"])]}), vec!["outputs[0].inputKeys[0]"]),
        (
            json!({"outputs": [output("a", "text", &["b"]), output("b", "text", &["a"])]}),
            vec!["outputs[0].inputKeys[0]"],
        ),
        (json!({"outputs": [output("o", "text", &["unknown"])]}), vec!["outputs[0].inputKeys[0]"]),
        (json!({"outputs": prompt("{{unknown}}")}), vec!["outputs[0].prompt"]),
        (json!({"outputs": prompt("{{pack}}")}), vec!["outputs[0].prompt"]),
        (json!({"outputs": prompt("{{ }}")}), vec!["outputs[0].prompt"]),
        (
            json!({"inputs": [with(input("brief", "text"), json!({"useAsDefault": true}))], "outputs": prompt("p")}),
            vec!["inputs[0].useAsDefault"],
        ),
        (
            json!({"inputs": [with(input("brief", "image"), json!({"value": "a text"}))], "outputs": prompt("p")}),
            vec!["inputs[0].value"],
        ),
        (
            json!({"inputs": [input("brief", "text"), input("brief", "text")], "outputs": prompt("{{x}} {{y}}")}),
            vec!["inputs[1].key", "outputs[0].prompt"],
        ),
    ] {
        let refused = make_workflow(&user, text(&canvas, "/id"), &with(workflow(), more.clone())).await;
        refused.expect_error(400, "input_validation_error", &fields);
    }
    assert_eq!(user.canvas(text(&canvas, "/id")).await, canvas, "nothing was written");
}

#[tokio::test]
async fn models_that_do_not_fit_are_422() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let of = |kind: &str, model: &str| with(output(model, kind, &["brief"]), json!({"model": model}));
    for (kind, model) in [
        ("image", "absent"),
        ("image", "outline"),
        ("image", "animatic"),
        ("image", "model:AAAAAAAAAAAAAAAA"),
        ("text", "absent"),
        ("text", "sketch"),
    ] {
        let outputs = json!([output("copy", "text", &["brief"]), with(of(kind, model), json!({"key": "o"}))]);
        let refused = make_workflow(&user, id, &with(workflow(), json!({"outputs": outputs}))).await;
        refused.expect_error(422, "unprocessable_entity", &["outputs[1].model"]);
    }
    assert_eq!(user.canvas(id).await, canvas, "nothing was written");
    let outputs = json!([of("image", "sketch"), of("text", "outline")]);
    make_workflow(&user, id, &with(workflow(), json!({"outputs": outputs}))).await.expect(201);
}

#[tokio::test]
async fn sources_that_do_not_fit_are_422() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let empty = user.slot(id).await;
    let made =
        json!([{"type": "node.create", "clientId": "t", "node": {"type": "text", "metadata": {"content": "t"}}}]);
    let written = text(&user.apply(id, made).await, "/resolvedIds/t").to_owned();
    // The port of a text that may be an image, and is one.
    let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    let made = json!([{"type": "node.create", "clientId": "p", "node": {"type": "image", "asset": image}}]);
    let shown = text(&user.apply(id, made).await, "/resolvedIds/p").to_owned();
    let look =
        with(input("look", "text"), json!({"sourceNodeId": shown, "useAsDefault": true, "writtenReference": true}));
    let body = with(workflow(), json!({"inputs": [look], "outputs": [output("o", "text", &["look"])]}));
    let made = make_workflow(&user, id, &body).await.expect(201).json();
    let filled = text(&made, "/workflow/inputs/0/portNodeId").to_owned();
    let now = user.canvas(id).await;
    for (input, field) in [
        (with(input("a", "text"), json!({"sourceNodeId": filled})), "sourceNodeId"),
        (with(input("a", "image"), json!({"sourceNodeId": "absent"})), "sourceNodeId"),
        (with(input("a", "image"), json!({"sourceNodeId": written})), "sourceNodeId"),
        (with(input("a", "text"), json!({"sourceNodeId": empty})), "sourceNodeId"),
        (with(input("a", "image"), json!({"sourceNodeId": empty, "useAsDefault": true})), "sourceNodeId"),
        (with(input("a", "image"), json!({"value": "asset:nobody:none"})), "value"),
        (with(input("a", "image"), json!({"value": format!("node:{empty}")})), "value"),
        (with(input("a", "image"), json!({"value": format!("node:{written}")})), "value"),
    ] {
        let body = with(workflow(), json!({"inputs": [input], "outputs": [output("o", "text", &["a"])]}));
        let refused = make_workflow(&user, id, &body).await;
        refused.expect_error(422, "unprocessable_entity", &[&format!("inputs[0].{field}")]);
    }
    assert_eq!(user.canvas(id).await, now, "nothing was written");
}

#[tokio::test]
async fn a_source_whose_image_was_deleted_is_empty() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    let made = json!([{"type": "node.create", "clientId": "p", "node": {"type": "image", "asset": image}}]);
    let source = text(&user.apply(id, made).await, "/resolvedIds/p").to_owned();
    stack.admin(&["admin", "asset", "purge", "--yes", "--asset", &image]).await.expect_success();
    let start = async |more: Value| {
        let inputs = json!([with(input("a", "image"), more)]);
        let body = with(workflow(), json!({"inputs": inputs, "outputs": [output("o", "text", &["a"])]}));
        make_workflow(&user, id, &body).await
    };
    for (more, field) in [
        (json!({"sourceNodeId": source, "useAsDefault": true}), "sourceNodeId"),
        (json!({"value": format!("node:{source}")}), "value"),
    ] {
        start(more).await.expect_error(422, "unprocessable_entity", &[&format!("inputs[0].{field}")]);
    }
    let made = start(json!({"sourceNodeId": source})).await.expect(201).json();
    let port = text(&made, "/workflow/inputs/0/portNodeId");
    assert_eq!(nodes(&user.canvas(id).await)[port]["asset"], Value::Null);
}

#[tokio::test]
async fn the_ranges_of_a_workflow() {
    let stack = &Stack::without_workers().await;
    let user = stack.user().await;
    let canvas = user.make_canvas().await;
    let id = text(&canvas, "/id");
    let inputs = |count: usize| (0..count).map(|at| input(&format!("i{at}"), "text")).collect::<Vec<_>>();
    let outputs = |count: usize| (0..count).map(|at| output(&format!("o{at}"), "text", &["i0"])).collect::<Vec<_>>();
    let of = |more: Value| with(with(workflow(), json!({"inputs": inputs(1), "outputs": outputs(1)})), more);
    for most in [
        json!({"inputs": inputs(16), "outputs": outputs(8)}),
        json!({"name": "ä".repeat(160), "description": "d".repeat(1200), "tags": vec!["t"; 12]}),
        json!({"inputs": [with(input(&"k".repeat(80), "sticky"), json!({
            "label": "😀".repeat(80), "description": "d".repeat(200), "value": "ä".repeat(8000), "useAsDefault": true,
        }))], "outputs": [with(output("o", "image", &[&"k".repeat(80)]), json!({
            "prompt": "p".repeat(8000), "size": "s".repeat(80), "quality": "q".repeat(80),
        }))]}),
    ] {
        make_workflow(&user, id, &of(most)).await.expect(201);
    }
    let longest = json!({"outputs": [with(output("o", "text", &["i0"]), json!({"model": "m".repeat(650)}))]});
    let refused = make_workflow(&user, id, &of(longest)).await;
    refused.expect_error(422, "unprocessable_entity", &["outputs[0].model"]);
    let one_input = |more: Value| json!({"inputs": [with(input("i0", "text"), more)]});
    let one_output = |more: Value| json!({"outputs": [with(output("o", "text", &["i0"]), more)]});
    for (more, field) in [
        (json!({"inputs": []}), "inputs"),
        (json!({"inputs": inputs(17)}), "inputs"),
        (json!({"outputs": []}), "outputs"),
        (json!({"outputs": outputs(9)}), "outputs"),
        (json!({"name": ""}), "name"),
        (json!({"name": "n".repeat(161)}), "name"),
        (json!({"description": "d".repeat(1201)}), "description"),
        (json!({"category": "Other"}), "category"),
        (json!({"tags": vec!["t"; 13]}), "tags"),
        (json!({"x": 100_001}), "x"),
        (json!({"more": true}), "more"),
        (one_input(json!({"key": "k".repeat(81)})), "inputs[0].key"),
        (one_input(json!({"key": "a b"})), "inputs[0].key"),
        (one_input(json!({"label": ""})), "inputs[0].label"),
        (one_input(json!({"label": "😀".repeat(81)})), "inputs[0].label"),
        (one_input(json!({"description": "d".repeat(201)})), "inputs[0].description"),
        (one_input(json!({"type": "video"})), "inputs[0].type"),
        (one_input(json!({"value": "v".repeat(8001)})), "inputs[0].value"),
        (one_input(json!({"sourceNodeId": "a b"})), "inputs[0].sourceNodeId"),
        (one_input(json!({"useAsDefault": "yes"})), "inputs[0].useAsDefault"),
        (one_output(json!({"prompt": ""})), "outputs[0].prompt"),
        (one_output(json!({"prompt": "p".repeat(8001)})), "outputs[0].prompt"),
        (one_output(json!({"type": "sticky"})), "outputs[0].type"),
        (one_output(json!({"inputKeys": []})), "outputs[0].inputKeys"),
        (one_output(json!({"model": "m".repeat(651)})), "outputs[0].model"),
        (one_output(json!({"size": "s".repeat(81)})), "outputs[0].size"),
    ] {
        let refused = make_workflow(&user, id, &of(more)).await;
        refused.expect_error(400, "input_validation_error", &[field]);
    }
    let mut bare = workflow();
    for field in ["description", "category", "tags"] {
        bare.as_object_mut().expect("an object").remove(field);
    }
    let made = make_workflow(&user, id, &bare).await.expect(201).json();
    let recipe = user.get(&format!("/recipes/{}", text(&made, "/workflow/id"))).await.ok();
    assert_eq!(recipe["recipe"]["category"], "Product Visualization");
}
