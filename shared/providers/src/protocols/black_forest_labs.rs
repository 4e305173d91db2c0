//! Black Forest Labs' FLUX API: submit, then poll the URL in the answer
//! (`docs/reference/providers.md#black-forest-labs`).

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{base64, endpoint, fields, fields_with_images};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site, wait};

/// The adapter for Black Forest Labs.
pub(super) struct BlackForestLabs;

/// No limit is documented. A request with ten images of this size is below the usual limits of
/// HTTP gateways.
const IMAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Protocol for BlackForestLabs {
    fn base(&self) -> &'static str {
        "https://api.bfl.ai/v1"
    }

    fn has_version_in_routes(&self) -> bool {
        true
    }

    // Polling URLs are on regional hosts.
    fn domains(&self) -> &'static [&'static str] {
        &["bfl.ai", "bfl.ml"]
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn serves_results(&self) -> bool {
        false
    }

    fn capabilities(&self, _media: Media) -> ProtocolCapabilities {
        ProtocolCapabilities {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: false,
            calls_back: true,
            queues: true,
            inline: false,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::from_secs(1),
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-key"), key.header(""));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let body = match order.media() {
            Media::Image => fields_with_images(order, base64)?,
            Media::Video => video(order)?,
        };
        Ok(Request::post_json(site.url(&format!("/{}", endpoint(order))), &Value::Object(body)))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let task: Task = answer.read()?;
        let own = site.url(&format!("/get_result?id={}", task.id));
        let poll = site.trusted_or(task.polling_url.as_deref(), own);
        Ok(Accepted::Run(Run { id: task.id, poll, result: None, cancel: None }))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        let state: State = answer.read()?;
        let fail = |class, detail: &str| Polled::Failed(CallError::new(class, detail));
        Ok(Progress::Is(match state.status.as_str() {
            "Ready" => match state.result["sample"].as_str().and_then(|url| site.join(url)).and_then(Output::at) {
                Some(output) => Polled::Done(output),
                None => fail(Class::Unavailable, "it made nothing"),
            },
            // Refusals have status 200.
            moderated @ ("Request Moderated" | "Content Moderated") => fail(Class::Content, moderated),
            "Error" => fail(Class::Unavailable, "its task failed"),
            "Task not found" => fail(Class::Unavailable, "it lost the task"),
            // `Pending`, and the states that newer models report.
            _ => Polled::Running(state.progress),
        }))
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let call_error = answer.call_error(None, words(&json, &["/detail", "/detail/0/msg", "/message", "/error"]));
        let delay = json["retry_after"].as_f64().and_then(wait);
        CallError { retry_after: call_error.retry_after.or(delay), ..call_error }
    }
}

/// The fields of a video. Frames are keyframes; a last frame is only allowed after a first one.
fn video(order: &Order) -> Result<Map<String, Value>, CallError> {
    let mut body = fields(order)?;
    let (first, last) = order.frames();
    let keyframes: Vec<String> = first.into_iter().chain(last).map(base64).collect();
    body.insert("mode".into(), json!(if keyframes.is_empty() { "t2v" } else { "i2v" }));
    if !keyframes.is_empty() {
        body.insert("keyframes".into(), json!(keyframes));
    }
    Ok(body)
}

#[derive(Deserialize)]
struct Task {
    id: String,
    polling_url: Option<String>,
}

#[derive(Deserialize)]
struct State {
    status: String,
    #[serde(default)]
    result: Value,
    progress: Option<f64>,
}
