//! Google's Gemini API: images and texts by `generateContent`, synchronous, with the result in the answer
//! (`docs/reference/providers.md#gemini-images`); videos by the Interactions API.

mod interactions;

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{base64, decode};
use crate::key::ApiKey;
use crate::order::{Media, Order, OrderImage};
use crate::outcome::{Output, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site, wait};
use crate::text::TextOrder;

/// The adapter for Google.
pub(super) struct Google;

/// Reasons for withholding a result that persist in a new attempt.
const CONTENT: [&str; 8] = [
    "SAFETY",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "RECITATION",
    "IMAGE_RECITATION",
];

/// The maximum size of a request is 100 MB: sixteen images of this size in base64.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Protocol for Google {
    fn base(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn capabilities(&self, media: Media) -> ProtocolCapabilities {
        let video = media == Media::Video;
        ProtocolCapabilities {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: video,
            calls_back: false,
            queues: video,
            // The answer can contain the video, because not every model works in the background.
            inline: true,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: if video { interactions::POLL_EVERY } else { Duration::ZERO },
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key.header(""));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        if order.media() == Media::Video {
            return interactions::submit(site, order);
        }
        let images = order
            .references
            .iter()
            .map(|image| json!({"inlineData": {"mimeType": image.media_type, "data": base64(image)}}));
        let parts: Vec<Value> = std::iter::once(json!({"text": order.instruction()})).chain(images).collect();
        let mut config = json!({"responseModalities": ["IMAGE"]});
        for (name, value) in [("aspectRatio", order.size()), ("imageSize", order.quality())] {
            if let Some(value) = value {
                config["imageConfig"][name] = json!(value);
            }
        }
        let body = json!({"contents": [{"role": "user", "parts": parts}], "generationConfig": config});
        let model = order.model.wire.endpoint.as_ref().unwrap_or(&order.model.id);
        Ok(Request::post_json(site.url(&format!("/models/{model}:generateContent")), &body))
    }

    fn submitted(&self, site: &Site, order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        if order.media() == Media::Video {
            return interactions::submitted(site, answer);
        }
        let content: Content = answer.read()?;
        let parts = content.candidates.iter().filter_map(|candidate| candidate.content.as_ref());
        let images = parts.flat_map(|content| &content.parts).filter(|part| !part.thought);
        // Models that return drafts put them before the final image.
        if let Some(data) = images.filter_map(|part| part.inline_data.as_ref()).next_back() {
            let output = decode(&data.data).ok_or_else(|| answer.unreadable())?;
            return Ok(Accepted::Done(Output::Inline(output)));
        }
        let refused = content.withheld().or_else(|| content.explained());
        Err(refused.unwrap_or_else(|| content.without(answer, "image")))
    }

    fn writes(&self) -> bool {
        true
    }

    fn write(&self, site: &Site, order: &TextOrder) -> Result<Request, CallError> {
        let image = |it: &OrderImage| json!({"inlineData": {"mimeType": it.media_type, "data": base64(it)}});
        let parts: Value =
            std::iter::once(json!({"text": order.prompt})).chain(order.images.iter().map(image)).collect();
        let mut body = json!({"contents": [{"role": "user", "parts": parts}]});
        if !order.model.wire.fixed.is_empty() {
            body["generationConfig"] = Value::Object(order.model.wire.fixed.clone());
        }
        let path = format!("/models/{}:generateContent", order.model_name());
        Ok(Request::post_json(site.url(&path), &body))
    }

    fn written(&self, answer: &Answer) -> Result<String, CallError> {
        let content: Content = answer.read()?;
        // Text that was generated before a filter stopped the model is not used.
        if let Some(call_error) = content.withheld() {
            return Err(call_error);
        }
        let parts = content.candidates.first().and_then(|candidate| candidate.content.as_ref());
        let parts = parts.into_iter().flat_map(|content| &content.parts).filter(|part| !part.thought);
        let text: String = parts.filter_map(|part| part.text.as_deref()).collect();
        if text.is_empty() { Err(content.without(answer, "text")) } else { Ok(text) }
    }

    fn poll(&self, run: &Run) -> Request {
        interactions::revised(Request::get(run.poll.clone()))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        interactions::polled(site, answer).map(Progress::Is)
    }

    fn cancel(&self, run: &Run) -> Option<Request> {
        let cancel = |url| interactions::revised(Request::post_json(url, &json!({})));
        run.cancel.clone().map(cancel)
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        // Some endpoints wrap the object in a list with one entry.
        let error = json.pointer("/0/error").or_else(|| json.get("error")).unwrap_or(&Value::Null);
        let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let message = words(error, &["/message"]);
        let has = |name: &str, value: &str| details.iter().any(|detail| detail[name] == value);
        let quota = details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
        let mut spent = quota
            .filter(|it| it["quotaValue"] == "0" || it["quotaId"].as_str().is_some_and(|id| id.contains("PerDay")));
        let refused = is_about_content(message);
        let class = match answer.status.as_u16() {
            // Google reports an invalid key with status 400.
            400 if has("reason", "API_KEY_INVALID") => Some(Class::Authentication),
            400 if error["status"] == "FAILED_PRECONDITION" => Some(Class::Authentication),
            400 if refused => Some(Class::Content),
            // A daily quota, or a quota of zero, is not restored within a minute.
            429 if spent.next().is_some() => Some(Class::OutOfCredit),
            _ => None,
        };
        let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok());
        let call_error = answer.call_error(class, message);
        CallError { retry_after: call_error.retry_after.or(delay.and_then(wait)), ..call_error }
    }
}

/// Returns `true` if a message without a code indicates a content refusal.
fn is_about_content(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["safety", "blocked", "prohibited"].iter().any(|word| message.contains(word))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
}

impl Content {
    /// The reason why there is no result: the reason of the prompt, or that of the first candidate.
    fn reason(&self) -> Option<&str> {
        let blocked = self.prompt_feedback.as_ref().and_then(|feedback| feedback.block_reason.as_deref());
        blocked.or(self.candidates.first().and_then(|candidate| candidate.finish_reason.as_deref()))
    }

    /// The message of the reason, if there is one.
    fn message(&self) -> &str {
        let words = self.candidates.first().and_then(|candidate| candidate.finish_message.as_deref());
        words.or(self.reason()).unwrap_or_default()
    }

    /// The content refusal, if the answer is one. It is final: the outcome is not unknown, and a
    /// repetition gives the same result.
    fn withheld(&self) -> Option<CallError> {
        let is_blocked = self.prompt_feedback.as_ref().is_some_and(|feedback| feedback.block_reason.is_some());
        let is_refused = is_blocked || self.reason().is_some_and(|reason| CONTENT.contains(&reason));
        is_refused.then(|| CallError::new(Class::Content, self.message()))
    }

    /// The refusal in an answer whose parts are text only: the words say why there is no image. It is as final as
    /// [`withheld`](Self::withheld).
    fn explained(&self) -> Option<CallError> {
        let parts = self.candidates.iter().filter_map(|candidate| candidate.content.as_ref());
        let parts = parts.flat_map(|content| &content.parts).filter(|part| !part.thought);
        let words: String = parts.filter_map(|part| part.text.as_deref()).collect();
        (!words.trim().is_empty()).then(|| CallError::new(Class::Content, words))
    }

    /// The error of an answer that lacks `what`.
    fn without(&self, answer: &Answer, what: &str) -> CallError {
        match self.reason() {
            Some(_) => answer.call_error(Some(Class::Unavailable), format!("it made no {what}: {}", self.message())),
            None => answer.unreadable(),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Parts>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    thought: bool,
    text: Option<String>,
    #[serde(alias = "inline_data")]
    inline_data: Option<Blob>,
}

#[derive(Deserialize)]
struct Blob {
    data: String,
}
