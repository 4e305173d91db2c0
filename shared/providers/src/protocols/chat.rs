//! Chat completions (providers.md 1.6, 8.4): the one way to a text that OpenAI and every server with its routes has.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::encode::data_url;
use crate::fault::{Class, Fault};
use crate::protocol::{Answer, Request, Site};
use crate::text::TextOrder;

/// One message, its pictures after its text, and one answer. How an answer is bounded has a name of its own at each server (`max_completion_tokens`,
/// `max_tokens`), so that it stands with the model, in `wire.fixed`.
pub(super) fn write(site: &Site, order: &TextOrder) -> Request {
    let mut body = order.model.wire.fixed.clone();
    body.insert("model".into(), json!(order.model_name()));
    let content = match order.pictures.as_slice() {
        // The one form that every server knows.
        [] => json!(order.prompt),
        pictures => {
            let text = json!({"type": "text", "text": order.prompt});
            let picture = |it| json!({"type": "image_url", "image_url": {"url": data_url(it)}});
            std::iter::once(text).chain(pictures.iter().map(picture)).collect()
        }
    };
    body.insert("messages".into(), json!([{"role": "user", "content": content}]));
    Request::post_json(site.url("/chat/completions"), &Value::Object(body))
}

/// The text of a completion; empty when it holds none.
pub(super) fn written(answer: &Answer) -> Result<String, Fault> {
    let completion: Completion = answer.read()?;
    let Some(Choice { message, finish_reason }) = completion.choices.into_iter().next() else {
        return Ok(String::new());
    };
    // A refusal in an answer is an answer: nothing was lost, and asking again brings the same.
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        return Err(Fault::new(Class::Content, refusal));
    }
    if finish_reason.as_deref() == Some("content_filter") {
        return Err(Fault::new(Class::Content, "its filter withholds the text"));
    }
    Ok(message.content.unwrap_or_default())
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}
