//! Stability AI's stable-image API (providers.md 5): synchronous multipart forms, the picture in the answer.

use std::time::Duration;

use http::HeaderValue;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;

use super::words;
use crate::encode::{Part, decode, endpoint, fields, multipart, references_field};
use crate::fault::{Class, Fault};
use crate::order::{Media, Order};
use crate::outcome::Output;
use crate::promises::{Idempotency, Promises};
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};

/// The adapter.
pub(super) struct Stability;

/// A request may have 10 MiB (providers.md 5.1).
const PICTURE_BYTES_MAX: usize = 9 * 1024 * 1024;

/// Who goes over the rate is shut out for this long (providers.md 5.7).
const SHUT_OUT: Duration = Duration::from_secs(60);

impl Protocol for Stability {
    fn base(&self) -> &'static str {
        "https://api.stability.ai"
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
        let fields: Vec<(String, String)> = fields(order)?
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => (name, text),
                other => (name, other.to_string()),
            })
            .collect();
        let mut parts: Vec<Part<'_>> = fields.iter().map(|(name, value)| Part::Text(name, value)).collect();
        if let Some(picture) = order.references.first() {
            parts.push(Part::File(&references_field(order)?.field, picture));
        }
        let url = site.url(&format!("/v2beta/stable-image/{}", endpoint(order)));
        Ok(multipart(url, &parts).with(ACCEPT, HeaderValue::from_static("application/json")))
    }

    fn submitted(&self, _site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, Fault> {
        let made: Made = answer.read()?;
        // A filtered picture comes with 200, and blurred.
        if made.finish_reason == "CONTENT_FILTERED" {
            return Err(Fault::new(Class::Content, "its filter withheld the picture"));
        }
        decode(&made.image).map(|bytes| Accepted::Done(Output::Inline(bytes))).ok_or_else(|| answer.unreadable())
    }

    fn fault(&self, answer: &Answer) -> Fault {
        let json = answer.json();
        let name = words(&json, &["/name"]);
        let class = match answer.status.as_u16() {
            403 if name == "content_moderation" => Some(Class::Content),
            422 if name == "public_figure" => Some(Class::Content),
            _ => None,
        };
        let fault = answer.fault(class, words(&json, &["/errors/0", "/message", "/name"]));
        match fault.class {
            Class::RateLimited => Fault { retry_after: fault.retry_after.or(Some(SHUT_OUT)), ..fault },
            _ => fault,
        }
    }
}

#[derive(Deserialize)]
struct Made {
    image: String,
    finish_reason: String,
}
