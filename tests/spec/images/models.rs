//! Model selection of a generation (docs/reference/images.md#model-selection).

use e2e::Stack;
use serde_json::json;

use super::setting::{Setting, stored};

#[tokio::test]
async fn the_embedded_model_is_there_without_any_connection() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    let job = setting.job("generate", json!({})).await;
    let model = stored(stack, &job).await["model"].clone();
    assert_eq!((&model["id"], &model["provider"]), (&json!("sketch"), &json!("managed")));
    let key = model["key"].as_str().expect("a key");
    for name in ["sketch", &format!("model:{key}")] {
        let target = setting.user.slot(&setting.canvas).await;
        let job = setting.job("edit", json!({"model": name, "source": setting.asset, "targetNodeId": target})).await;
        assert_eq!(stored(stack, &job).await["model"], model, "{name}");
    }
}

#[tokio::test]
async fn a_model_that_cannot_do_it_is_refused() {
    let stack = &Stack::without_workers().await;
    let (setting, other) = (Setting::new(stack).await, Setting::new(stack).await);
    let theirs = stored(stack, &other.job("generate", json!({})).await).await["model"]["key"].clone();
    let theirs = format!("model:{}", theirs.as_str().expect("a key"));
    for model in ["absent", "animatic", "outline", "model:absent-model", &theirs, ""] {
        setting.unprocessable("generate", json!({"model": model}), &["model"]).await;
    }
}

#[tokio::test]
async fn size_and_quality_are_those_that_the_model_offers() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::new(stack).await;
    for (field, refused) in [("size", "7x7"), ("size", "1024X1024"), ("size", ""), ("quality", "high")] {
        setting.unprocessable("generate", json!({field: refused}), &[field]).await;
    }
    let job = setting.job("generate", json!({"size": "1536x1024"})).await;
    assert_eq!(stored(stack, &job).await["size"], "1536x1024");
}

#[tokio::test]
async fn a_connection_is_the_callers_own_and_agrees_with_the_model() {
    let stack = &Stack::without_workers().await;
    let (setting, other) = (Setting::new(stack).await, Setting::new(stack).await);
    let own = stack.connect(&setting.user.uid, "openai", "Studio").await;
    let theirs = stack.connect(&other.user.uid, "openai", "Theirs").await;
    let managed =
        stored(stack, &setting.job("generate", json!({"model": "sketch"})).await).await["model"]["key"].clone();
    let managed = format!("model:{}", managed.as_str().expect("a key"));
    let target = setting.user.slot(&setting.canvas).await;
    for connection in [&theirs, "absent"] {
        let more = json!({"connectionId": connection, "targetNodeId": target});
        setting.unprocessable("generate", more, &["connectionId"]).await;
    }
    for model in ["sketch", &managed] {
        let more = json!({"connectionId": own, "model": model, "targetNodeId": target});
        setting.unprocessable("generate", more, &["connectionId"]).await;
    }
    let more = json!({"connectionId": own, "quality": "high", "targetNodeId": target});
    let job = setting.job("generate", more).await;
    let model = stored(stack, &job).await["model"].clone();
    assert_eq!((&model["connection"], &model["provider"]), (&json!(own), &json!("openai")));
    assert_eq!(job["creditCost"], 0, "the provider charges it");
    // The model has its own limit for prompts, which includes the guidelines of Elements.
    let mut elements = Vec::new();
    for _ in 0..8 {
        elements.push(setting.element(json!({"guidelines": "🪑".repeat(2000)})).await);
    }
    let target = setting.user.slot(&setting.canvas).await;
    let more = json!({"connectionId": own, "elements": elements, "targetNodeId": target});
    setting.unprocessable("generate", more, &["prompt"]).await;
}

#[tokio::test]
async fn the_oldest_connection_comes_before_the_managed_runtime() {
    let stack = &Stack::without_workers().await;
    let setting = Setting::with_credits(stack, 0).await;
    let first = stack.connect(&setting.user.uid, "openai", "First").await;
    let second = stack.connect(&setting.user.uid, "openai", "Second").await;
    let job = setting.job("generate", json!({})).await;
    let model = stored(stack, &job).await["model"].clone();
    assert_eq!(model["connection"], json!(first));
    for (connection, more) in [(&first, json!({})), (&second, json!({"connectionId": second}))] {
        let mut more = more;
        more["model"] = json!("gpt-image-2");
        more["targetNodeId"] = json!(setting.user.slot(&setting.canvas).await);
        let job = setting.job("generate", more).await;
        assert_eq!(stored(stack, &job).await["model"]["connection"], json!(connection));
    }
}
