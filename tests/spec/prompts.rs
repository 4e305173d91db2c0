//! The maximum length of a prompt: the bound of the request and the bound of the chosen model
//! (docs/reference/images.md#prompt-length). A prompt that the model rejects is rejected before anything is accepted. No worker
//! runs, so accepted jobs stay `queued`.

use domain::model::ProviderKind;
use e2e::api::{key, text};
use e2e::{Reply, Stack, User, images};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

/// The maximum number of characters in a request.
const PROMPT_MAX: usize = 8000;
/// The number of models that are tested concurrently.
const AT_ONCE: usize = 4;

/// An account with enough credit for every start of this test, and an image of its own.
async fn payer(stack: &Stack) -> (User, String) {
    let user = stack.user().await;
    stack.grant(&user.uid, 10_000).await;
    let image = text(&user.upload("image/png", images::png(8, 8)).await, "/handle").to_owned();
    (user, image)
}

/// Every model of these providers that the account can use.
async fn models(user: &User, query: &str) -> Vec<Value> {
    let list = user.get(&format!("/models?limit=100{query}")).await.ok();
    assert_eq!(list["page"]["hasMore"], false, "one page has all of them");
    list["models"].as_array().expect("a list").clone()
}

/// Starts the first capability of a model with this prompt.
async fn ask(user: &User, image: &str, model: &Value, prompt: &str) -> Reply {
    let more = match text(model, "/capabilities/0") {
        "video.generate" => json!({}),
        "video.generate.fromImage" => json!({"firstFrame": image}),
        "video.generate.fromFrames" => json!({"firstFrame": image, "lastFrame": image}),
        "video.generate.fromReferences" => json!({"references": [image]}),
        capability => return paint(user, image, model, capability, prompt).await,
    };
    let request = json!({"model": model["handle"], "prompt": prompt, "idempotencyKey": key()});
    user.send("/videos/generate", &merged(request, more)).await
}

async fn paint(user: &User, image: &str, model: &Value, capability: &str, prompt: &str) -> Reply {
    let canvas = text(&user.make_canvas().await, "/id").to_owned();
    let target = user.slot(&canvas).await;
    let request = json!({
        "canvasId": canvas, "baseRevision": user.canvas(&canvas).await["revision"], "idempotencyKey": key(),
        "targetNodeId": target, "model": model["handle"], "prompt": prompt,
    });
    match capability {
        "image.generate" => user.send("/images/generate", &request).await,
        _ => {
            let parameters = model["parameters"].as_array().expect("a list");
            let is_masked =
                parameters.iter().any(|parameter| parameter["name"] == "mask" && parameter["required"] == true);
            let more = if is_masked { json!({"source": image, "mask": image}) } else { json!({"source": image}) };
            user.send("/images/edit", &merged(request, more)).await
        }
    }
}

fn merged(mut request: Value, more: Value) -> Value {
    request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    request
}

/// The bound that `GET /models` reports for prompts of a model, and the unit in which the model counts.
fn prompt_bound(model: &Value) -> (usize, String) {
    let parameters = model["parameters"].as_array().expect("a list");
    let prompt = parameters.iter().find(|parameter| parameter["name"] == "prompt").expect("every model takes a prompt");
    let most = prompt["max"].as_f64().expect("a bound") as usize;
    (most, text(prompt, "/description").to_owned())
}

#[tokio::test]
async fn every_model_takes_prompts_as_long_as_it_says() {
    let stack = &Stack::without_workers().await;
    let (user, image) = payer(stack).await;
    for provider in ProviderKind::third_parties().map(ProviderKind::as_str) {
        stack.connect(&user.uid, provider, provider).await;
    }
    let models = models(&user, "").await;
    let short = models.iter().filter(|model| prompt_bound(model).0 < PROMPT_MAX).count();
    assert!(
        short >= 10 && models.len() >= 40,
        "models with bounds of their own, and others: {short} of {}",
        models.len()
    );
    let (user, image) = (&user, image.as_str());
    let asked = models.iter().map(|model| async move {
        let ((most, description), name) = (prompt_bound(model), text(model, "/modelId"));
        let job = ask(user, image, model, &"p".repeat(most)).await;
        assert_eq!(job.status, 202, "{name} at {most}: {job}");
        let over = ask(user, image, model, &"p".repeat(most + 1)).await;
        if most == PROMPT_MAX {
            over.expect_error(400, "input_validation_error", &["prompt"]);
            return;
        }
        let refusal = over.json()["error"]["fields"][0].clone();
        over.expect_error(422, "unprocessable_entity", &["prompt"]);
        let limit = format!("at most {most} UTF-16 code units");
        assert!(text(&refusal, "/message").contains(&limit), "{name}: {refusal}");
        assert!(description.contains(&limit), "{name}: {description}");
        // A character outside the basic multilingual plane counts as two.
        let half = "🪁".repeat(most / 2);
        assert_eq!(ask(user, image, model, &half).await.status, 202, "{name}");
        let over = ask(user, image, model, &format!("{half}pp")).await;
        over.expect_error(422, "unprocessable_entity", &["prompt"]);
    });
    stream::iter(asked).buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
}

async fn managed_models_take_every_prompt(stack: &Stack) {
    let (user, image) = payer(stack).await;
    let models = models(&user, "&provider=managed").await;
    assert!(!models.is_empty());
    for model in &models {
        let name = text(model, "/modelId");
        for letter in ["p", "🪁"] {
            let job = ask(&user, &image, model, &letter.repeat(PROMPT_MAX)).await;
            assert_eq!(job.status, 202, "{name}: {job}");
            let over = ask(&user, &image, model, &letter.repeat(PROMPT_MAX + 1)).await;
            over.expect_error(400, "input_validation_error", &["prompt"]);
        }
    }
}

#[tokio::test]
async fn the_embedded_models_take_every_prompt() {
    let stack = &Stack::without_workers().await;
    managed_models_take_every_prompt(stack).await;
}

#[tokio::test]
async fn the_models_of_a_server_take_every_prompt() {
    let stack = &Stack::builder().env("CANVAS_MANAGED_URL", "http://127.0.0.1:9").start().await;
    managed_models_take_every_prompt(stack).await;
}

#[tokio::test]
async fn the_models_of_a_comfy_server_take_every_prompt() {
    let stack = &Stack::builder()
        .env("CANVAS_MANAGED_URL", "http://127.0.0.1:9")
        .env("CANVAS_MANAGED_PROTOCOL", "comfy")
        .start()
        .await;
    managed_models_take_every_prompt(stack).await;
}
