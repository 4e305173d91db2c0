//! Simulator of OpenAI's chat completions, and of the same route on self-hosted servers.

use serde_json::{Value, json};

use super::check::{self, Kind, Rule, Wrong, optional, required};
use super::failure_mode::FailureMode;
use super::openai::{Flavor, invalid, judge, malformed, refuse};
use super::server::{Call, Reply};
use super::state::{Asked, Run, State};

const REQUEST: [Rule; 12] = [
    required("model", Kind::Text(240)),
    required("messages", Kind::List(1, 2048, &Kind::Fits(is_message))),
    optional("max_completion_tokens", Kind::Integer(1, 1 << 20)),
    optional("max_tokens", Kind::Integer(1, 1 << 20)),
    optional("n", Kind::Integer(1, 128)),
    optional("reasoning_effort", Kind::OneOf(&["none", "minimal", "low", "medium", "high", "xhigh"])),
    optional("response_format", Kind::Fits(Value::is_object)),
    optional("seed", Kind::Integer(i64::MIN, i64::MAX)),
    optional("store", Kind::Boolean),
    optional("temperature", Kind::Number(0.0, 2.0)),
    optional("top_p", Kind::Number(0.0, 1.0)),
    optional("verbosity", Kind::OneOf(&["low", "medium", "high"])),
];

const MESSAGE: [Rule; 2] = [
    required("role", Kind::OneOf(&["developer", "system", "user", "assistant"])),
    required(
        "content",
        Kind::Fits(|value| value.is_string() || value.as_array().is_some_and(|all| all.iter().all(is_part))),
    ),
];

const PART: [Rule; 3] = [
    required("type", Kind::OneOf(&["text", "image_url"])),
    optional("text", Kind::Text(10 << 20)),
    optional("image_url", Kind::Fits(is_image_url)),
];

/// Returns `true` if a content part is a text or an image in a `data:` URL.
fn is_part(value: &Value) -> bool {
    let Some(part) = value.as_object() else { return false };
    let field = part.get("type").and_then(Value::as_str).unwrap_or_default();
    check::check(part, &PART).is_ok() && part.len() == 2 && part.contains_key(field)
}

fn is_image_url(value: &Value) -> bool {
    const RULES: [Rule; 2] =
        [required("url", Kind::Fits(is_url)), optional("detail", Kind::OneOf(&["low", "high", "auto"]))];
    fn is_url(value: &Value) -> bool {
        value.as_str().is_some_and(check::is_data_url)
    }
    value.as_object().is_some_and(|image| check::check(image, &RULES).is_ok())
}

/// The texts and the number of images in a message.
fn said(message: &Value) -> (Vec<&str>, usize) {
    match &message["content"] {
        Value::String(text) => (vec![text], 0),
        parts => {
            let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            let images = parts.len() - texts.len();
            (texts, images)
        }
    }
}

fn is_message(value: &Value) -> bool {
    value.as_object().is_some_and(|message| check::check(message, &MESSAGE).is_ok())
}

pub(super) fn complete(state: &State, call: &Call, flavor: Flavor) -> Reply {
    let Some(body) = check::object(&call.body) else { return malformed() };
    if let Err(wrong) = judge(&body, &REQUEST, flavor) {
        return invalid(wrong);
    }
    // OpenAI's reasoning models reject the older parameter name; most other servers know only that
    // one.
    let foreign = if flavor == Flavor::Vendor { "max_tokens" } else { "max_completion_tokens" };
    if body.contains_key(foreign) {
        return invalid((foreign.to_owned(), Wrong::Unknown));
    }
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    let (texts, images): (Vec<Vec<&str>>, Vec<usize>) = messages.map(said).unzip();
    let (prompt, images) = (texts.concat().join("\n"), images.into_iter().sum());
    let model = body.get("model").cloned().unwrap_or_default();
    let asked = Asked { images, ..Asked::text(prompt.clone(), Value::Object(body)) };
    // A content refusal is reported in an ordinary answer.
    let refuse = |failure_mode| if failure_mode == FailureMode::Content { None } else { refuse(failure_mode) };
    state.submit(call, asked, true, refuse, |run, _| made(run, &model, &prompt))
}

fn made(run: &Run, model: &Value, prompt: &str) -> Reply {
    let message = |content: Value, refusal: Value| json!({"role": "assistant", "content": content, "refusal": refusal, "annotations": []});
    let (message, reason) = match run.failure_mode {
        Some(FailureMode::Content) => (message(Value::Null, json!("I can't help with that.")), "stop"),
        // The model spent its whole token budget on reasoning.
        Some(FailureMode::ExpiredUrl) => (message(json!(""), Value::Null), "length"),
        _ => (message(json!(super::written(prompt)), Value::Null), "stop"),
    };
    Reply::json(
        200,
        &json!({
            "id": format!("chatcmpl-{}", run.id), "object": "chat.completion", "created": 1_793_200_000, "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
        }),
    )
}
