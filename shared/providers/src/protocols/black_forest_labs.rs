//! Black Forest Labs' FLUX API (providers.md 6): submit, then poll the URL that the answer names.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::words;
use crate::encode::{base64, endpoint, fields, fields_with_pictures};
use crate::fault::{Class, Fault};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Output, Polled, Run};
use crate::promises::{Idempotency, Promises};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site, wait};

/// The adapter.
pub(super) struct BlackForestLabs;

/// No limit is published; ten of these stay under what gateways commonly take.
const PICTURE_BYTES_MAX: usize = 4 * 1024 * 1024;

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

    fn promises(&self, _media: Media) -> Promises {
        Promises {
            idempotency: Idempotency::Ignored,
            finds: false,
            cancels: false,
            calls_back: true,
            queues: true,
            inline: false,
            picture_bytes_max: PICTURE_BYTES_MAX,
            poll_every: Duration::from_secs(1),
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        if let Some(key) = key {
            headers.insert(HeaderName::from_static("x-key"), key.header(""));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, Fault> {
        let body = match order.media() {
            Media::Picture => fields_with_pictures(order, base64)?,
            Media::Video => video(order)?,
        };
        Ok(Request::post_json(site.url(&format!("/{}", endpoint(order))), &Value::Object(body)))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, Fault> {
        let task: Task = answer.read()?;
        let own = site.url(&format!("/get_result?id={}", task.id));
        let poll = site.trusted_or(task.polling_url.as_deref(), own);
        Ok(Accepted::Run(Run { id: task.id, poll, result: None, cancel: None }))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, Fault> {
        let state: State = answer.read()?;
        let fail = |class, detail: &str| Polled::Failed(Fault::new(class, detail));
        Ok(Progress::Is(match state.status.as_str() {
            "Ready" => match state.result["sample"].as_str().and_then(|url| site.join(url)) {
                Some(url) => Polled::Done(Output::Remote(url)),
                None => fail(Class::Unavailable, "it made nothing"),
            },
            // Refusals come with 200.
            moderated @ ("Request Moderated" | "Content Moderated") => fail(Class::Content, moderated),
            "Error" => fail(Class::Unavailable, "its task failed"),
            "Task not found" => fail(Class::Unavailable, "it lost the task"),
            // Pending, and words that newer models bring.
            _ => Polled::Running(state.progress),
        }))
    }

    fn fault(&self, answer: &Answer) -> Fault {
        let json = answer.json();
        let fault = answer.fault(None, words(&json, &["/detail", "/detail/0/msg", "/message", "/error"]));
        let delay = json["retry_after"].as_f64().and_then(wait);
        Fault { retry_after: fault.retry_after.or(delay), ..fault }
    }
}

/// A video's fields: frames are keyframes, the last one only behind a first (providers.md 6.4).
fn video(order: &Order) -> Result<Map<String, Value>, Fault> {
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
