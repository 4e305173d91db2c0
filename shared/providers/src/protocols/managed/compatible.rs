//! OpenAI's routes as self-hosted servers have them (providers.md 8.4): LocalAI, vLLM-Omni, SGLang, stable-diffusion.cpp;
//! llama.cpp, vLLM and Ollama for texts.
//!
//! What differs from OpenAI: no key is needed, edits are multipart, and a picture may come behind a URL of the server's
//! own.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{chat, openai};
use crate::encode::{Part, multipart};
use crate::fault::Fault;
use crate::order::{Media, Order};
use crate::promises::{Idempotency, Promises};
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};
use crate::text::TextOrder;

/// The adapter.
pub(in super::super) struct Compatible;

/// OpenAI's own limit of a file (providers.md 1.3).
const PICTURE_BYTES_MAX: usize = 50_000_000;

impl Protocol for Compatible {
    // Only its path is used: the base is always the operator's.
    fn base(&self) -> &'static str {
        "http://localhost/v1"
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
        let mut body = openai::common(order);
        if let Some(field) = &order.model.wire.seed {
            body.insert(field.clone(), json!(order.seed()));
        }
        // Some servers answer with a URL when they are not asked for the picture itself.
        body.insert("response_format".into(), json!("b64_json"));
        if order.references.is_empty() {
            return Ok(Request::post_json(site.url("/images/generations"), &Value::Object(body)));
        }
        body.extend(order.model.wire.edit_fixed.clone());
        let texts: Vec<(String, String)> = body
            .into_iter()
            .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect();
        let mut parts: Vec<Part<'_>> = texts.iter().map(|(name, value)| Part::Text(name, value)).collect();
        let field = if order.references.len() == 1 { "image" } else { "image[]" };
        parts.extend(order.references.iter().map(|picture| Part::File(field, picture)));
        Ok(multipart(site.url("/images/edits"), &parts))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, Fault> {
        openai::first_image(site, answer)
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
        openai::fault(answer)
    }
}
