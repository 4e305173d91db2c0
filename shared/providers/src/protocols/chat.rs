//! Chat completions: the common protocol for texts of OpenAI and compatible servers
//! (`docs/reference/providers.md#openai-texts`).

use serde::Deserialize;
use serde_json::{Value, json};

use crate::call_error::{CallError, Class};
use crate::encode::data_url;
use crate::protocol::{Answer, Request, Site};
use crate::text::TextOrder;

/// The request of one message, with its images after the text. The parameter that limits the
/// answer differs among servers (`max_completion_tokens`, `max_tokens`), so it is part of the
/// model's `wire.fixed`.
pub(super) fn write(site: &Site, order: &TextOrder) -> Request {
    let mut body = order.model.wire.fixed.clone();
    body.insert("model".into(), json!(order.model_name()));
    let content = match order.images.as_slice() {
        // The only form that every server accepts.
        [] => json!(order.prompt),
        images => {
            let text = json!({"type": "text", "text": order.prompt});
            let image = |it| json!({"type": "image_url", "image_url": {"url": data_url(it)}});
            std::iter::once(text).chain(images.iter().map(image)).collect()
        }
    };
    body.insert("messages".into(), json!([{"role": "user", "content": content}]));
    Request::post_json(site.url("/chat/completions"), &Value::Object(body))
}

/// The text of a completion; empty if there is none.
pub(super) fn written(answer: &Answer) -> Result<String, CallError> {
    let completion: Completion = answer.read()?;
    let Some(Choice { message, finish_reason }) = completion.choices.into_iter().next() else {
        return Ok(String::new());
    };
    // A refusal in an answer is final: the outcome is not unknown, and a repetition gives the same
    // result.
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        return Err(CallError::new(Class::Content, refusal));
    }
    if finish_reason.as_deref() == Some("content_filter") {
        return Err(CallError::new(Class::Content, "its filter withholds the text"));
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
