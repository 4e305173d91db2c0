//! Runway's tasks (`docs/reference/providers.md#runway`).

use std::time::Duration;

use domain::model::Capability;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::encode::{data_url, fields};
use crate::key::ApiKey;
use crate::order::{Media, Order};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site};

/// The adapter for Runway.
pub(super) struct Runway;

/// The API version for which this adapter is written.
const VERSION: &str = "2024-11-06";

/// The maximum length of a `data:` URL is 5242880 characters.
const IMAGE_BYTES_MAX: usize = (5_242_880 - "data:image/jpeg;base64,".len()) / 4 * 3;

impl Protocol for Runway {
    fn base(&self) -> &'static str {
        "https://api.dev.runwayml.com/v1"
    }

    fn has_version_in_routes(&self) -> bool {
        true
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
            cancels: true,
            calls_back: false,
            queues: true,
            inline: false,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::from_secs(5),
        }
    }

    fn authorize(&self, key: Option<&ApiKey>, headers: &mut HeaderMap) {
        headers.insert(HeaderName::from_static("x-runway-version"), HeaderValue::from_static(VERSION));
        if let Some(key) = key {
            headers.insert(http::header::AUTHORIZATION, key.header("Bearer "));
        }
    }

    fn submit(&self, site: &Site, order: &Order, _uploads: &[String]) -> Result<Request, CallError> {
        let mut body = fields(order)?;
        let model = order.model.wire.endpoint.as_ref().unwrap_or(&order.model.id);
        body.insert("model".into(), json!(model));
        // Ratio and duration are required; the default of each is the model's first value.
        let ratio = order.model.sizes.first().or(order.model.aspect_ratios.first());
        if let (false, Some(ratio)) = (body.contains_key("ratio"), ratio) {
            body.insert("ratio".into(), json!(ratio));
        }
        if let (false, Some(seconds)) = (body.contains_key("duration"), order.model.durations.first()) {
            body.insert("duration".into(), json!(seconds));
        }
        let references = || order.references.iter().map(|image| json!({"uri": data_url(image)})).collect();
        let (first, last) = order.frames();
        let frames = [(first, "first"), (last, "last")]
            .into_iter()
            .filter_map(|(frame, position)| frame.map(|frame| json!({"uri": data_url(frame), "position": position})));
        let path = match order.capability {
            Capability::VideoFromImage | Capability::VideoFromFrames => {
                body.insert("promptImage".into(), frames.collect());
                "/image_to_video"
            }
            Capability::VideoFromReferences => {
                body.insert("references".into(), references());
                "/text_to_video"
            }
            Capability::VideoGenerate => "/text_to_video",
            Capability::ImageGenerate | Capability::ImageEdit | Capability::ImageVariations => {
                if !order.references.is_empty() {
                    body.insert("referenceImages".into(), references());
                }
                "/text_to_image"
            }
        };
        Ok(Request::post_json(site.url(path), &Value::Object(body)))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let task: Created = answer.read()?;
        let url = site.url(&format!("/tasks/{}", task.id));
        Ok(Accepted::Run(Run { id: task.id, poll: url.clone(), result: None, cancel: Some(url) }))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        let task: Task = answer.read()?;
        let fail = |class, detail: &str| Polled::Failed(CallError::new(class, detail));
        Ok(Progress::Is(match task.status.as_str() {
            "SUCCEEDED" => match task.output.first().and_then(|url| site.join(url)).and_then(Output::at) {
                Some(output) => Polled::Done(output),
                None => fail(Class::Unavailable, "it made nothing"),
            },
            "FAILED" => {
                let code = task.failure_code.unwrap_or_default();
                let class = match () {
                    () if code.starts_with("SAFETY.") || code.contains(".SAFETY.") => Class::Content,
                    () if code == "ASSET.INVALID" => Class::Invalid,
                    () => Class::Unavailable,
                };
                fail(class, &task.failure.unwrap_or(code))
            }
            "CANCELLED" => Polled::Canceled,
            // `PENDING`, `RUNNING`, and `THROTTLED`, which waits for the account's concurrency
            // limit.
            _ => Polled::Running(task.progress),
        }))
    }

    fn cancel(&self, run: &Run) -> Option<Request> {
        run.cancel.clone().map(|url| Request::new(Method::DELETE, url))
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let detail = words(&json, &["/error", "/issues/0/message"]);
        // Only the message identifies this error: the status is that of any bad request.
        let poor = answer.status.as_u16() == 400 && detail.contains("enough credits");
        let class = poor.then_some(Class::OutOfCredit);
        answer.call_error(class, detail)
    }
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    status: String,
    progress: Option<f64>,
    #[serde(default)]
    output: Vec<String>,
    failure: Option<String>,
    failure_code: Option<String>,
}
