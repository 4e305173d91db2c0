//! OpenAI's routes of self-hosted servers: LocalAI, vLLM-Omni, SGLang, stable-diffusion.cpp; llama.cpp, vLLM and Ollama
//! for texts (`docs/reference/providers.md#openai-compatible-server`).
//!
//! Differences from OpenAI: a key is optional, edits are multipart, and the answer can name an image by a URL of the
//! server.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{chat, openai};
use crate::call_error::CallError;
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{Part, multipart};
use crate::order::{MaskForm, Media, Order};
use crate::protocol::{Accepted, Answer, Protocol, Request, Site};
use crate::text::TextOrder;

/// The adapter for servers with OpenAI's routes.
pub(in super::super) struct Compatible;

/// The size limit of a file in OpenAI's own API.
const IMAGE_BYTES_MAX: usize = 50_000_000;

impl Protocol for Compatible {
    // Only its path is used: the base is always the operator's.
    fn base(&self) -> &'static str {
        "http://localhost/v1"
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

    // As OpenAI's. Servers that read it as a gray image find what changes white.
    fn mask_form(&self) -> MaskForm {
        MaskForm::Transparent
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let mut body = openai::common(order);
        if let Some(field) = &order.model.wire.seed {
            body.insert(field.clone(), json!(order.seed()));
        }
        // Some servers answer with a URL unless the image itself is requested.
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
        parts.extend(order.references.iter().map(|image| Part::File(field, image)));
        parts.extend(order.mask.iter().map(|mask| Part::File("mask", mask)));
        Ok(multipart(site.url("/images/edits"), &parts))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        openai::first_image(site, answer)
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
        openai::call_error(answer)
    }
}
