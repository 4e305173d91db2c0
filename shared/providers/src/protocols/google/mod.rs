//! Google's Gemini API: pictures by `generateContent` (providers.md 2.2), synchronous, the picture in the answer;
//! videos by the Interactions API.

mod interactions;

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words;
use crate::encode::{base64, decode};
use crate::fault::{Class, Fault};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Output, Run};
use crate::promises::{Idempotency, Promises};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site, wait};

/// The adapter.
pub(super) struct Google;

/// Reasons for which a picture is withheld that a new attempt does not change (providers.md 2.2).
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

/// A request may have 100 MB (providers.md 2.2): sixteen of these in base64.
const PICTURE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Protocol for Google {
    fn base(&self) -> &'static str {
        "https://generativelanguage.googleapis.com/v1beta"
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn promises(&self, media: Media) -> Promises {
        let video = media == Media::Video;
        Promises {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: video,
            calls_back: false,
            queues: video,
            // A video may come at once, too: not every model works in the background.
            inline: true,
            picture_bytes_max: PICTURE_BYTES_MAX,
            poll_every: if video { interactions::POLL_EVERY } else { Duration::ZERO },
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key.header(""));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, Fault> {
        if order.media() == Media::Video {
            return interactions::submit(site, order);
        }
        let pictures = order
            .references
            .iter()
            .map(|picture| json!({"inlineData": {"mimeType": picture.media_type, "data": base64(picture)}}));
        let parts: Vec<Value> = std::iter::once(json!({"text": order.instruction()})).chain(pictures).collect();
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

    fn submitted(&self, site: &Site, order: &Order, answer: &Answer) -> Result<Accepted, Fault> {
        if order.media() == Media::Video {
            return interactions::submitted(site, answer);
        }
        let content: Content = answer.read()?;
        let parts = content.candidates.iter().filter_map(|candidate| candidate.content.as_ref());
        let pictures = parts.flat_map(|content| &content.parts).filter(|part| !part.thought);
        // Drafts come before the picture, where a model shows them.
        if let Some(data) = pictures.filter_map(|part| part.inline_data.as_ref()).next_back() {
            let output = decode(&data.data).ok_or_else(|| answer.unreadable())?;
            return Ok(Accepted::Done(Output::Inline(output)));
        }
        let blocked = content.prompt_feedback.and_then(|feedback| feedback.block_reason);
        let finished = content.candidates.first();
        let reason = blocked.as_deref().or(finished.and_then(|it| it.finish_reason.as_deref()));
        let message = finished.and_then(|it| it.finish_message.as_deref()).or(reason).unwrap_or_default();
        match reason {
            // A refusal in an answer is an answer: nothing was lost, and asking again brings the same.
            Some(reason) if blocked.is_some() || CONTENT.contains(&reason) => Err(Fault::new(Class::Content, message)),
            Some(_) => Err(answer.fault(Some(Class::Unavailable), format!("it made no picture: {message}"))),
            None => Err(answer.unreadable()),
        }
    }

    fn poll(&self, run: &Run) -> Request {
        interactions::revised(Request::get(run.poll.clone()))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, Fault> {
        interactions::polled(site, answer).map(Progress::Is)
    }

    fn cancel(&self, run: &Run) -> Option<Request> {
        let cancel = |url| interactions::revised(Request::post_json(url, &json!({})));
        run.cancel.clone().map(cancel)
    }

    fn fault(&self, answer: &Answer) -> Fault {
        let json = answer.json();
        // Some endpoints wrap the object in a list of one.
        let error = json.pointer("/0/error").or_else(|| json.get("error")).unwrap_or(&Value::Null);
        let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let message = words(error, &["/message"]);
        let has = |name: &str, value: &str| details.iter().any(|detail| detail[name] == value);
        let quota = details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
        let mut spent = quota
            .filter(|it| it["quotaValue"] == "0" || it["quotaId"].as_str().is_some_and(|id| id.contains("PerDay")));
        let refused = tells_of_content(message);
        let class = match answer.status.as_u16() {
            // A wrong key is a 400 here.
            400 if has("reason", "API_KEY_INVALID") => Some(Class::Authentication),
            400 if error["status"] == "FAILED_PRECONDITION" => Some(Class::Authentication),
            400 if refused => Some(Class::Content),
            // A day's quota, or one of none, does not come back in a minute.
            429 if spent.next().is_some() => Some(Class::OutOfCredit),
            _ => None,
        };
        let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok());
        let fault = answer.fault(class, message);
        Fault { retry_after: fault.retry_after.or(delay.and_then(wait)), ..fault }
    }
}

/// Whether a message without a code is about content.
fn tells_of_content(message: &str) -> bool {
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
    inline_data: Option<Blob>,
}

#[derive(Deserialize)]
struct Blob {
    data: String,
}
