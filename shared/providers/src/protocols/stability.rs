//! Stability AI's stable-image API: synchronous multipart forms, with the image in the answer
//! (`docs/reference/providers.md#stability`).

use std::time::Duration;

use http::HeaderValue;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{Part, decode, endpoint, fields, mask_field, multipart, references_field};
use crate::order::{Media, Order};
use crate::outcome::Output;
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};

/// The adapter for Stability AI.
pub(super) struct Stability;

/// The maximum size of a request is 10 MiB.
const IMAGE_BYTES_MAX: usize = 9 * 1024 * 1024;

/// Where an answer explains itself.
const WORDS: [&str; 3] = ["/errors/0", "/message", "/name"];

/// An account that exceeds the rate limit is blocked for this long.
const SHUT_OUT: Duration = Duration::from_secs(60);

impl Protocol for Stability {
    fn base(&self) -> &'static str {
        "https://api.stability.ai"
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

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let fields: Vec<(String, String)> = fields(order)?
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => (name, text),
                other => (name, other.to_string()),
            })
            .collect();
        let mut parts: Vec<Part<'_>> = fields.iter().map(|(name, value)| Part::Text(name, value)).collect();
        if let Some(image) = order.references.first() {
            parts.push(Part::File(&references_field(order)?.field, image));
        }
        if let Some(mask) = &order.mask {
            parts.push(Part::File(mask_field(order)?, mask));
        }
        let url = site.url(&format!("/v2beta/stable-image/{}", endpoint(order)));
        Ok(multipart(url, &parts).with(ACCEPT, HeaderValue::from_static("application/json")))
    }

    fn submitted(&self, _site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let made: ImageAnswer = answer.read()?;
        // A filtered image has status 200 and is blurred.
        if made.finish_reason.as_deref() == Some("CONTENT_FILTERED") {
            return Err(CallError::new(Class::Content, "its filter withheld the image"));
        }
        if let Some(bytes) = made.image.as_deref().and_then(decode) {
            return Ok(Accepted::Done(Output::Inline(bytes)));
        }
        // Words in place of the image are final: a repetition gives the same result.
        match words(&answer.json(), &WORDS) {
            "" => Err(answer.unreadable()),
            words => Err(CallError::new(Class::Content, words)),
        }
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let name = words(&json, &["/name"]);
        let class = match answer.status.as_u16() {
            403 if name == "content_moderation" => Some(Class::Content),
            422 if name == "public_figure" => Some(Class::Content),
            _ => None,
        };
        let call_error = answer.call_error(class, words(&json, &WORDS));
        match call_error.class {
            Class::RateLimited => CallError { retry_after: call_error.retry_after.or(Some(SHUT_OUT)), ..call_error },
            _ => call_error,
        }
    }
}

#[derive(Deserialize)]
struct ImageAnswer {
    image: Option<String>,
    finish_reason: Option<String>,
}
