//! OpenAI's Images API (providers.md 1): synchronous, the picture in the answer; texts by chat completions.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{chat, words};
use crate::encode::{data_url, decode};
use crate::fault::{Class, Fault};
use crate::order::{Media, Order};
use crate::outcome::Output;
use crate::promises::{Idempotency, Promises};
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};
use crate::text::TextOrder;

/// The adapter.
pub(super) struct OpenAi;

/// Codes of a 4xx that say the account cannot pay, whatever the status says (providers.md 1.7).
const OUT_OF_CREDIT: [&str; 6] = [
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
];

/// Codes of a 400 that say the content is refused.
const CONTENT: [&str; 3] = ["moderation_blocked", "content_policy_violation", "image_content_policy_violation"];

/// A `data:` URL may have 20971520 characters (providers.md 1.3).
const PICTURE_BYTES_MAX: usize = 15 * 1024 * 1024;

impl Protocol for OpenAi {
    fn base(&self) -> &'static str {
        "https://api.openai.com/v1"
    }

    fn promises(&self, _media: Media) -> Promises {
        Promises {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: false,
            calls_back: false,
            queues: false,
            inline: true,
            picture_bytes_max: PICTURE_BYTES_MAX,
            poll_every: Duration::ZERO,
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, Fault> {
        let mut body = common(order);
        if order.references.is_empty() {
            return Ok(Request::post_json(site.url("/images/generations"), &Value::Object(body)));
        }
        body.extend(order.model.wire.edit_fixed.clone());
        let images = order.references.iter().map(|picture| json!({"image_url": data_url(picture)}));
        body.insert("images".into(), images.collect());
        Ok(Request::post_json(site.url("/images/edits"), &Value::Object(body)))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, Fault> {
        first_image(site, answer)
    }

    fn writes(&self) -> bool {
        true
    }

    fn write(&self, site: &Site, order: &TextOrder) -> Result<Request, Fault> {
        Ok(chat::write(site, order))
    }

    fn written(&self, answer: &Answer) -> Result<String, Fault> {
        chat::written(answer)
    }

    fn fault(&self, answer: &Answer) -> Fault {
        fault(answer)
    }
}

/// The fields that every call has.
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

#[derive(Deserialize)]
struct Images {
    data: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    b64_json: Option<String>,
    url: Option<String>,
}

/// The picture of an answer: inline, or for compatible servers behind a URL, absolute or relative.
pub(super) fn first_image(site: &Site, answer: &Answer) -> Result<Accepted, Fault> {
    let images: Images = answer.read()?;
    let image = images.data.first().ok_or_else(|| answer.fault(Some(Class::Unavailable), "it made no picture"))?;
    let output = match image {
        Image { b64_json: Some(text), .. } => decode(text).map(Output::Inline),
        Image { url: Some(url), .. } => site.join(url).map(Output::Remote),
        _ => None,
    };
    output.map(Accepted::Done).ok_or_else(|| answer.unreadable())
}

/// What an error answer means. `code` rules, then the status: one status means several things (providers.md 1.7). The
/// other forms are those of compatible servers (providers.md 8.4).
pub(super) fn fault(answer: &Answer) -> Fault {
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
    answer.fault(class, detail)
}
