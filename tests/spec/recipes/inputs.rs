//! Inputs of a run of an instance (docs/reference/recipes.md#input-resolution).

use serde_json::Value;

use super::runs::Setting;
use super::*;

/// The input of a run with this key.
fn input_of<'a>(run: &'a Value, key: &str) -> &'a Value {
    run["inputs"].as_array().expect("inputs").iter().find(|input| input["key"] == key).expect("an input")
}

#[tokio::test]
async fn words_count_more_than_the_image_that_a_port_was_filled_with() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 20).await;
    let (user, canvas) = (&setting.user, text(&setting.canvas, "/id"));
    let start = async |more: Value| {
        let run = setting.start_of("product-hero-shot", more).await.expect(202).json();
        user.delete(text(&run, "/pollUrl")).await.expect(200);
        run
    };
    let first = start(json!({"inputs": {"pack": setting.image, "mood": setting.image}})).await;
    assert_eq!(input_of(&first, "mood")["summary"], json!(setting.image));
    let instance = json!({"instanceNodeId": first["recipeInstanceNodeId"], "inputs": {}});
    for (content, held) in [(json!("Evening light"), "Evening light"), (json!(null), &setting.image)] {
        let port = &input_of(&first, "mood")["nodeId"];
        let patch = json!({"metadata": {"content": content}});
        user.apply(canvas, json!([{"type": "node.update", "nodeId": port, "patch": patch}])).await;
        assert_eq!(input_of(&start(instance.clone()).await, "mood")["summary"], held);
    }
}

#[tokio::test]
async fn an_image_that_cannot_be_read_is_passed_over() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack, 20).await;
    let (user, canvas) = (&setting.user, text(&setting.canvas, "/id"));
    let pack = with(input("pack", "image"), json!({"value": setting.image, "useAsDefault": true}));
    let body = with(workflow(), json!({"inputs": [pack], "outputs": [output("hero", "image", &["pack"])]}));
    let recipe = text(&make_workflow(user, canvas, &body).await.expect(201).json(), "/workflow/id").to_owned();
    let start = async |more: Value| {
        let run = setting.start_of(&recipe, more).await.expect(202).json();
        user.delete(text(&run, "/pollUrl")).await.expect(200);
        run
    };
    let other = user.upload("image/png", images::png(9, 8)).await;
    let first = start(json!({"inputs": {"pack": other["handle"]}})).await;
    stack.admin(&["admin", "asset", "purge", "--yes", "--asset", text(&other, "/handle")]).await.expect_success();
    let instance = json!({"instanceNodeId": first["recipeInstanceNodeId"], "inputs": {}});
    let run = start(instance.clone()).await;
    assert_eq!(input_of(&run, "pack")["summary"], json!(setting.image), "the default");
    let connected = user.upload_into(canvas, "image/png", images::png(8, 9)).await;
    let (from, to) = (&connected["node"], &input_of(&first, "pack")["nodeId"]);
    let link = json!({"type": "connection.create", "fromNodeId": from, "toNodeId": to, "purpose": "reference"});
    user.apply(canvas, json!([link])).await;
    let run = start(instance).await;
    let held = input_of(&run, "pack");
    assert_eq!((&held["summary"], &held["sourceHandle"]), (&connected["handle"], from), "what is connected");
}
