//! OpenAI's Images API: synchronous, with the image in the answer; texts by chat completions
//! (`docs/reference/providers.md#openai-images`).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{chat, words};
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{data_url, decode};
use crate::order::{MaskForm, Media, Order};
use crate::outcome::Output;
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};
use crate::text::TextOrder;

/// The adapter for OpenAI.
pub(super) struct OpenAi;

/// Error codes which mean that the account has no credit, whatever the 4xx status is
/// (`docs/reference/providers.md#openai-errors`).
const OUT_OF_CREDIT: [&str; 6] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
];

/// Error codes of a 400 which mean that the content is refused.
const CONTENT: [&str; 3] = ["moderation_blocked", "content_policy_violation", "image_content_policy_violation"];

/// The maximum length of a `data:` URL is 20971520 characters.
const IMAGE_BYTES_MAX: usize = 15 * 1024 * 1024;

impl Protocol for OpenAi {
    fn base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn capabilities(&self, _media: Media) -> ProtocolCapabilities {
        ProtocolCapabilities {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: false,
            calls_back: false,
            queues: false,
            inline: true,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::ZERO,
        }
    }

    fn mask_form(&self) -> MaskForm {
        MaskForm::Transparent
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let mut body = common(order);
        if order.references.is_empty() {
            return Ok(Request::post_json(site.url("/images/generations"), &Value::Object(body)));
        }
        body.extend(order.model.wire.edit_fixed.clone());
        let images = order.references.iter().map(|image| json!({"image_url": data_url(image)}));
        body.insert("images".into(), images.collect());
        if let Some(mask) = &order.mask {
            body.insert("mask".into(), json!({"image_url": data_url(mask)}));
        }
        Ok(Request::post_json(site.url("/images/edits"), &Value::Object(body)))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        first_image(site, answer)
    }

    fn writes(&self) -> bool {
        true
    }

    fn write(&self, site: &Site, order: &TextOrder) -> Result<Request, CallError> {
        Ok(chat::write(site, order))
    }

    fn written(&self, answer: &Answer) -> Result<String, CallError> {
        chat::written(answer)
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        call_error(answer)
    }
}

/// The fields that all calls have.
pub(super) fn common(order: &Order) -> Map<String, Value> {
    let mut body = order.model.wire.fixed.clone();
    let model = order.model.wire.endpoint.as_ref().unwrap_or(&order.model.id);
    body.insert("model".into(), json!(model));
    body.insert("prompt".into(), json!(order.instruction()));
    body.insert("n".into(), json!(1));
    for (name, value) in [("size", order.size()), ("quality", order.quality())] {
        if let Some(value) = value {
            body.insert(name.into(), json!(value));
        }
    }
    body
}

/// The fields in which an answer without an image explains itself: the content was refused, or the request is impossible.
const REFUSAL: [&str; 3] = ["/data/0/refusal", "/data/0/text", "/refusal"];
const EXPLANATION: [&str; 7] =
    ["/error/message", "/error", "/data/0/error/message", "/data/0/error", "/detail", "/detail/0/msg", "/message"];

#[derive(Deserialize)]
struct Images {
    data: Option<Vec<Image>>,
}

#[derive(Deserialize)]
struct Image {
    b64_json: Option<String>,
    url: Option<String>,
}

impl Image {
    fn output(&self, site: &Site) -> Option<Output> {
        let inline = self.b64_json.as_deref().and_then(decode).map(Output::Inline);
        let url = || self.url.as_deref().filter(|url| !url.is_empty()).and_then(|url| site.join(url));
        inline.or_else(|| url().and_then(Output::at))
    }
}

/// The image of an answer, inline or, for compatible servers, at an absolute or relative URL.
pub(super) fn first_image(site: &Site, answer: &Answer) -> Result<Accepted, CallError> {
    let images: Images = answer.read()?;
    if let Some(output) = images.data.iter().flatten().find_map(|image| image.output(site)) {
        return Ok(Accepted::Done(output));
    }
    let is_empty = images.data.is_none_or(|images| images.is_empty());
    Err(explained(answer).unwrap_or_else(|| match is_empty {
        true => answer.call_error(Some(Class::Unavailable), "it made no image"),
        false => answer.unreadable(),
    }))
}

/// The refusal in a successful answer that says in words why there is no image. It is final: the outcome is not unknown, and a
/// repetition gives the same result.
fn explained(answer: &Answer) -> Option<CallError> {
    let json = answer.json();
    let said = |class, paths: &[&str]| match words(&json, paths) {
        "" => None,
        words => Some(CallError::new(class, words)),
    };
    said(Class::Content, &REFUSAL).or_else(|| said(Class::Invalid, &EXPLANATION))
}

/// Interprets an error answer. `code` takes precedence over the status, because one status has
/// several meanings. The other forms are those of compatible servers.
pub(super) fn call_error(answer: &Answer) -> CallError {
    let json = answer.json();
    let detail = words(&json, &["/error/message", "/error", "/detail", "/detail/0/msg", "/message"]);
    let code = words(&json, &["/error/code", "/code"]);
    let kind = words(&json, &["/error/type"]);
    let status = answer.status.as_u16();
    let class = match status {
        400..=499 if OUT_OF_CREDIT.contains(&code) || kind == "insufficient_quota" => Some(Class::OutOfCredit),
        400..=499 if CONTENT.contains(&code) => Some(Class::Content),
        _ => None,
    };
    answer.call_error(class, detail)
}
