//! Replicate's predictions: a queue in front of models whose fields are in the catalog
//! (`docs/reference/providers.md#replicate`).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{data_url, endpoint, fields_with_images, is_data_url};
use crate::order::{Media, Order};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site, wait};

/// The adapter for Replicate.
pub(super) struct Replicate;

/// Replicate recommends `data:` URLs of up to 256 kB, but larger ones work.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Protocol for Replicate {
    fn base(&self) -> &'static str {
        "https://api.replicate.com/v1"
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn capabilities(&self, _media: Media) -> ProtocolCapabilities {
        ProtocolCapabilities {
            idempotency: Idempotency::Ignored,
            finds: true,
            cancels: true,
            calls_back: true,
            queues: true,
            inline: false,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::from_secs(2),
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let body = json!({"input": fields_with_images(order, data_url)?});
        Ok(Request::post_json(site.url(&format!("/models/{}/predictions", endpoint(order))), &body))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let prediction: Prediction = answer.read()?;
        Ok(Accepted::Run(run(site, prediction.id)))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        let prediction: Prediction = answer.read()?;
        let fail = |class, detail: &str| Polled::Failed(CallError::new(class, detail));
        Ok(Progress::Is(match prediction.status.as_str() {
            "succeeded" if prediction.data_removed => fail(Class::Unavailable, "its result has been deleted"),
            "succeeded" => {
                let texts = texts(&prediction.output);
                let url = texts.iter().rfind(|text| is_url(text)).and_then(|url| site.join(url));
                match url.and_then(Output::at) {
                    Some(output) => Polled::Done(output),
                    // Words in place of a URL say why there is no result.
                    None => match texts.concat() {
                        words if words.trim().is_empty() => fail(Class::Unavailable, "it made nothing"),
                        words => fail(Class::Content, &words),
                    },
                }
            }
            "failed" => {
                let detail = prediction.error.unwrap_or_default();
                let refused = ["E005", "flagged as sensitive", "NSFW"].iter().any(|it| detail.contains(it));
                fail(if refused { Class::Content } else { Class::Unavailable }, &detail)
            }
            "canceled" => Polled::Canceled,
            // The deadline passed before it started.
            "aborted" => fail(Class::Timeout, "it was not begun in time"),
            _ => Polled::Running(None),
        }))
    }

    fn search(&self, site: &Site, order: &Order) -> Option<Request> {
        order.model.wire.seed.as_ref().map(|_| Request::get(site.url("/predictions")))
    }

    /// Compares the prompt and the order's own seed, because the list contains the predictions of
    /// everyone who uses the key.
    fn found(&self, site: &Site, order: &Order, answer: &Answer) -> Option<Run> {
        let list: List = answer.read().ok()?;
        let field = order.model.wire.seed.as_ref()?;
        let prompt = order.model.wire.prompt.as_deref().unwrap_or("prompt");
        let same = |it: &Prediction| it.input[field] == order.seed() && it.input[prompt] == order.instruction();
        list.results.into_iter().find(same).map(|prediction| run(site, prediction.id))
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let call_error = answer.call_error(None, words(&json, &["/detail", "/title"]));
        let delay = json["retry_after"].as_f64().and_then(wait);
        CallError { retry_after: delay.or(call_error.retry_after), ..call_error }
    }
}

/// The URLs are constructed here, so that no answer determines where the key is sent.
fn run(site: &Site, id: String) -> Run {
    let poll = site.url(&format!("/predictions/{id}"));
    Run { cancel: Some(site.url(&format!("/predictions/{id}/cancel"))), id, poll, result: None }
}

/// The texts of an output, which is one URL, a list or, for some models, an object of them. The last URL is the result.
fn texts(output: &Value) -> Vec<&str> {
    match output {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Object(object) => object.values().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://") || is_data_url(text)
}

#[derive(Deserialize)]
struct List {
    results: Vec<Prediction>,
}

#[derive(Deserialize)]
struct Prediction {
    id: String,
    status: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data_removed: bool,
}
