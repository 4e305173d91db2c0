//! The public Recipes, and how operators publish them (docs/reference/recipes.md#publishing).

use std::collections::{BTreeMap, BTreeSet};

use super::*;

async fn listed(user: &Client, query: &str) -> Vec<String> {
    let page = user.get(&format!("/recipes?{query}")).await.ok();
    page["recipes"].as_array().expect("recipes").iter().map(|recipe| text(recipe, "/id").to_owned()).collect()
}

#[tokio::test]
async fn the_catalogue_has_recipes_for_every_shelf() {
    let stack = &Stack::without_workers().await;
    let user = stack.user_with("canvas:read").await;
    let page = user.get("/recipes?limit=100").await.ok();
    let mut shelves: BTreeMap<String, usize> = BTreeMap::new();
    // Recipes of other tests are left out, because they can be published while this test reads.
    for recipe in page["recipes"].as_array().expect("recipes").iter().filter(|recipe| !is_of_a_test(recipe)) {
        *shelves.entry(text(recipe, "/category").to_owned()).or_default() += 1;
        assert_eq!(text(recipe, "/handle"), format!("recipe:{}", text(recipe, "/id")));
        assert_eq!(recipe["visibility"], "approved");
        for port in
            recipe["inputs"].as_array().expect("inputs").iter().chain(recipe["outputs"].as_array().expect("outputs"))
        {
            assert!(matches!(text(port, "/nodeType"), "image" | "text" | "sticky"), "{port}");
            assert!(port["useAsPreset"].is_boolean() && !text(port, "/nodeId").is_empty(), "{port}");
            assert!(!text(port, "/label").is_empty() && !text(port, "/description").is_empty(), "{port}");
        }
        let read = user.get(&format!("/recipes/{}", text(recipe, "/handle"))).await.ok();
        assert_eq!(read["recipe"], *recipe, "a list and a read return the same");
    }
    assert!(shelves.values().sum::<usize>() >= 6, "{shelves:?}");
    let known: BTreeSet<_> = shelves.keys().map(String::as_str).collect();
    let all = ["Brand & Visual Design", "Content Package", "Marketing & Ads", "Product Visualization"];
    assert_eq!(known, BTreeSet::from(all));
}

#[tokio::test]
async fn the_catalogue_is_searched_and_walked() {
    let stack = &Stack::without_workers().await;
    let user = stack.user_with("canvas:read").await;
    assert_eq!(listed(&user, "q=STORYBOARD%20brief").await, ["storyboard"]);
    assert_eq!(listed(&user, "q=no-such-recipe-anywhere").await, Vec::<String>::new());
    assert!(listed(&user, &format!("q={}", "a%20".repeat(249))).await.len() > 1);
    user.get(&format!("/recipes?q={}", "a".repeat(501))).await.expect_error(400, "input_validation_error", &["q"]);
    user.get("/recipes?limit=101").await.expect_error(400, "input_validation_error", &["limit"]);
    user.get("/recipes?visibility=mine").await.expect_error(400, "input_validation_error", &["visibility"]);
    // Recipes that other tests publish in the meantime move to the front, so this walk can miss them.
    let stays = |id: &String| !id.starts_with("r-");
    let all: BTreeSet<_> = listed(&user, "limit=100").await.into_iter().filter(stays).collect();
    let (mut met, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = user.get(&format!("/recipes?limit=2{cursor}")).await.ok();
        met.extend(page["recipes"].as_array().expect("recipes").iter().map(|recipe| text(recipe, "/id").to_owned()));
        let Some(next) = page["page"]["nextCursor"].as_str() else { break };
        user.get(&format!("/recipes?q=a&cursor={next}")).await.expect_error(400, "input_validation_error", &["cursor"]);
        cursor = format!("&cursor={next}");
    }
    assert!(all.is_subset(&met.iter().cloned().collect()), "{met:?}");
}

/// What a Recipe's outputs are made with: name of the model, whether they are stand-ins, and credits; and the sum.
async fn makers(user: &Client, recipe: &str) -> (Vec<(Value, Value, Value)>, Value) {
    let recipe = user.get(&format!("/recipes/{recipe}")).await.ok()["recipe"].clone();
    let outputs = recipe["outputs"].as_array().expect("outputs").iter();
    let maker = |it: &Value| (it["model"]["name"].clone(), it["standIn"].clone(), it["creditCost"].clone());
    (outputs.map(maker).collect(), recipe["creditCost"].clone())
}

#[tokio::test]
async fn a_recipe_shows_what_makes_its_outputs_for_the_caller() {
    let stack = &Stack::without_workers().await;
    let (account, other) = (stack.account().await, stack.account().await);
    let user = stack.user_of(&account, "canvas:read").await;
    let other = stack.user_of(&other, "canvas:read").await;
    let (outline, sketch) = ((json!("Outline"), json!(true), json!(0)), (json!("Sketch"), json!(true), json!(1)));
    let embedded = (vec![outline.clone(), sketch.clone()], json!(1));
    assert_eq!(makers(&user, "ad-copy-and-banner").await, embedded);
    assert_eq!(makers(&user, "seasonal-variants").await, (vec![sketch; 4], json!(4)));
    let connection = stack.connect(&account.uid, "fal", "mine").await;
    let (outputs, sum) = makers(&user, "ad-copy-and-banner").await;
    assert_eq!((&outputs[0], &outputs[1].1, &outputs[1].2, sum), (&outline, &json!(false), &json!(0), json!(0)));
    let listed = user.get("/recipes?limit=100&q=banner").await.ok();
    let recipes = listed["recipes"].as_array().expect("recipes").iter();
    let found = recipes.filter(|it| it["id"] == "ad-copy-and-banner").map(|it| &it["outputs"][1]["model"]["name"]);
    assert_eq!(found.collect::<Vec<_>>(), [&outputs[1].0], "a list shows the same");
    assert_eq!(makers(&other, "ad-copy-and-banner").await, embedded, "the connection belongs to another account");
    stack.admin(&["admin", "connection", "delete", &connection]).await.expect_success();
    assert_eq!(makers(&user, "ad-copy-and-banner").await, embedded);
    // A version that names a model which no caller has.
    let id = format!("r-{}", key());
    let mut absent = file(&id, "{{a}}");
    absent["outputs"][0]["model"] = json!("absent");
    publish(stack, &absent).await.expect_success();
    assert_eq!(makers(&user, &id).await, (vec![(Value::Null, json!(false), json!(0))], json!(0)));
}

fn is_of_a_test(recipe: &Value) -> bool {
    text(recipe, "/id").starts_with("r-")
}

/// A Recipe file as operators publish it.
pub(super) fn file(id: &str, prompt: &str) -> Value {
    json!({
        "id": id, "name": "Published", "category": "Marketing & Ads", "summary": "s", "tags": ["t"],
        "inputs": [input("a", "text")],
        "outputs": [{"key": "b", "label": "B", "description": "d", "type": "text", "prompt": prompt, "inputKeys": ["a"]}],
    })
}

/// Publishes a file and returns how the command ended.
pub(super) async fn publish(stack: &Stack, file: &Value) -> e2e::Admin {
    let path = stack.blobs().join(format!("{}.json", key()));
    std::fs::write(&path, file.to_string()).expect("writes the file");
    stack.admin(&["admin", "recipe", "publish", path.to_str().expect("a path")]).await
}

#[tokio::test]
async fn a_recipe_is_read_in_the_version_asked_for() {
    let stack = &Stack::without_workers().await;
    let user = stack.user_with("canvas:read").await;
    let id = format!("r-{}", key());
    for (prompt, version) in [("{{a}}", "1.0.0"), ("{{a}} again", "1.0.1")] {
        let published = publish(stack, &file(&id, prompt)).await.expect_success();
        assert_eq!(published, json!({"id": id, "handle": format!("recipe:{id}"), "version": version}));
    }
    let read = async |query: &str| user.get(&format!("/recipes/{id}{query}")).await.ok()["recipe"]["version"].clone();
    assert_eq!((read("").await, read("?version=1.0.0").await), (json!("1.0.1"), json!("1.0.0")));
    for unknown in ["1.0.2", "1", "1.0.00", "latest"] {
        user.get(&format!("/recipes/{id}?version={unknown}")).await.expect_error(404, "not_found", &[]);
    }
    let long = "1".repeat(81);
    user.get(&format!("/recipes/{id}?version={long}")).await.expect_error(400, "input_validation_error", &["version"]);
    user.get("/recipes/absent").await.expect_error(404, "not_found", &[]);
    user.get("/recipes/a%20b").await.expect_error(400, "input_validation_error", &["recipeId"]);
}

#[tokio::test]
async fn a_published_version_never_changes() {
    let stack = &Stack::without_workers().await;
    let id = format!("r-{}", key());
    for (prompt, version) in [("{{a}}", "1.0.0"), ("{{a}}", "1.0.0"), ("{{a}}.", "1.0.1"), ("{{a}}", "1.0.2")] {
        assert_eq!(publish(stack, &file(&id, prompt)).await.expect_success()["version"], version);
    }
    // Every migration publishes the shipped Recipes again. Unchanged ones keep their version.
    let schema = stack.admin(&["migrate"]).await.expect_success();
    assert!(schema["schemaVersion"].as_i64() > Some(0), "{schema}");
    let user = stack.user_with("canvas:read").await;
    assert_eq!(user.get("/recipes/storyboard").await.ok()["recipe"]["version"], "1.0.0");
}

#[tokio::test]
async fn an_operator_is_told_what_a_file_breaks() {
    let stack = &Stack::without_workers().await;
    for (file, field) in [
        (with(file("r", "{{x}}"), json!({})), "outputs[0].prompt"),
        (with(file("r", "{{a}}"), json!({"category": "Other"})), "category"),
        (with(file("r", "{{a}}"), json!({"id": "a b"})), "id"),
        (with(file("r", "{{a}}"), json!({"inputs": []})), "inputs"),
        (with(file("r", "{{a}}"), json!({"more": 1})), "more"),
        (
            with(file("r", "{{a}}"), json!({"inputs": [with(input("a", "text"), json!({"sourceNodeId": "n"}))]})),
            "inputs[0].sourceNodeId",
        ),
    ] {
        let refusal = publish(stack, &file).await.expect_refusal();
        assert!(refusal.contains(&format!("{field} ")), "{field}: {refusal}");
    }
    stack.admin(&["admin", "recipe", "publish", "/no/such/file.json"]).await.expect_refusal();
    stack.admin(&["admin", "recipe", "publish"]).await.expect_misuse();
}
