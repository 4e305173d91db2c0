//! The Comfy API v2: a workflow is submitted as a job after its images were uploaded
//! (`docs/reference/providers.md#comfy-api`). It is the only protocol that honors an idempotency
//! key: it rejects the second submit.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::words;
use crate::call_error::{CallError, Class};
use crate::capabilities::{Idempotency, ProtocolCapabilities};
use crate::catalogue::{Entry, parse_box};
use crate::encode::{Part, multipart};
use crate::order::{Media, Order, OrderImage, Shape};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Progress, Protocol, Request, Site};

/// The adapter for the Comfy API.
pub(in super::super) struct Comfy;

/// A call may upload about 100 MB. This is the limit of uploads to this service.
const IMAGE_BYTES_MAX: usize = domain::limits::UPLOAD_MAX as usize;

/// The width and height of an image if the order has no size.
const DEFAULT_BOX: (u32, u32) = (1024, 1024);

impl Protocol for Comfy {
    // Only its path is used: the base is always the operator's.
    fn base(&self) -> &'static str {
        "http://localhost"
    }

    fn makes(&self, _media: Media) -> bool {
        true
    }

    fn capabilities(&self, media: Media) -> ProtocolCapabilities {
        ProtocolCapabilities {
            idempotency: Idempotency::Rejected,
            finds: false,
            cancels: true,
            calls_back: false,
            queues: true,
            inline: false,
            image_bytes_max: IMAGE_BYTES_MAX,
            poll_every: Duration::from_secs(if media == Media::Video { 5 } else { 1 }),
        }
    }

    fn uploads(&self, site: &Site, order: &Order) -> Result<Vec<Request>, CallError> {
        let upload = |(index, image): (usize, &OrderImage)| {
            let path = format!("{}-{index}.{}", order.idempotency_key, image.media_type.trim_start_matches("image/"));
            let parts = [
                Part::Text("content_type", image.media_type),
                Part::Text("file_path", &path),
                Part::File("file", image),
            ];
            multipart(site.url("/api/v2/assets"), &parts)
        };
        let (first, last) = order.frames();
        Ok(order.references.iter().chain(first).chain(last).chain(&order.mask).enumerate().map(upload).collect())
    }

    fn uploaded(&self, answer: &Answer) -> Result<String, CallError> {
        let asset: Asset = answer.read()?;
        Ok(asset.id)
    }

    fn submit(&self, site: &Site, order: &Order, uploads: &[String]) -> Result<Request, CallError> {
        let workflow = order.model.wire.workflow.as_ref();
        let workflow = workflow.ok_or_else(|| CallError::new(Class::Runtime, "the model has no workflow"))?;
        let body = json!({"workflow": Bindings::new(order, uploads)?.fill_all(workflow)?});
        Ok(Request::post_json(site.url("/api/v2/jobs"), &body))
    }

    fn submitted(&self, site: &Site, _order: &Order, answer: &Answer) -> Result<Accepted, CallError> {
        let job: Job = answer.read()?;
        let own = site.url(&format!("/api/v2/jobs/{}", job.id));
        let own_cancel = site.url(&format!("/api/v2/jobs/{}/cancel", job.id));
        let urls = job.urls.unwrap_or_default();
        let poll = site.trusted_or(urls.this.as_deref(), own);
        let cancel = site.trusted_or(urls.cancel.as_deref(), own_cancel);
        Ok(Accepted::Run(Run { id: job.id, poll, result: None, cancel: Some(cancel) }))
    }

    fn polled(&self, site: &Site, _run: &Run, answer: &Answer) -> Result<Progress, CallError> {
        let job: Job = answer.read()?;
        let fail = |class, detail: &str| Polled::Failed(CallError::new(class, detail));
        Ok(Progress::Is(match job.status.as_str() {
            "succeeded" => {
                // Uses the last saved file. A video workflow may also save images; an image
                // workflow has no reason to save videos.
                let last = |kind: &str| job.outputs.iter().rfind(|output| output.kind == kind);
                let url = last("video").or_else(|| last("image")).and_then(|output| site.join(&output.url));
                match url.and_then(Output::at) {
                    Some(output) => Polled::Done(output),
                    None => fail(Class::Unavailable, "it made neither image nor video"),
                }
            }
            "failed" => fail(Class::Unavailable, job.error.as_ref().map_or("", |error| &error.message)),
            "canceled" => Polled::Canceled,
            "expired" => fail(Class::Unavailable, "its job has expired"),
            _ => Polled::Running(job.progress.map(|progress| progress.value)),
        }))
    }

    fn call_error(&self, answer: &Answer) -> CallError {
        let json = answer.json();
        let detail = words(&json, &["/error/message", "/error", "/detail", "/message"]);
        match words(&json, &["/error/code"]) {
            // An earlier submit used this key, so there may be a job, but its id is not reported.
            "idempotency_key_reuse" => answer.call_error(Some(Class::Timeout), detail).maybe_accepted(),
            "deployment_stopped" => answer.call_error(Some(Class::Unavailable), detail),
            _ => answer.call_error(None, detail),
        }
    }
}

/// The values of a workflow's placeholders.
struct Bindings<'a> {
    prompt: String,
    /// The width and height; `None` for a video whose size the workflow determines.
    size: Option<(u32, u32)>,
    seed: u32,
    /// The number of frames of a video whose duration can be requested.
    frames: Option<u32>,
    references: &'a [String],
    first_frame: Option<&'a String>,
    last_frame: Option<&'a String>,
    mask: Option<&'a String>,
}

impl<'a> Bindings<'a> {
    fn new(order: &Order, uploads: &'a [String]) -> Result<Self, CallError> {
        let model = &order.model;
        let no_box = || CallError::new(Class::Invalid, "the size must have the form WIDTHxHEIGHT");
        let size = match &order.shape {
            Shape::Image { size: None, .. } => Some(DEFAULT_BOX),
            Shape::Image { size: Some(size), .. } => Some(parse_box(size).ok_or_else(no_box)?),
            Shape::Video { aspect_ratio, resolution, .. } => {
                let ratio = aspect_ratio.as_ref().or(model.aspect_ratios.first());
                let resolution = resolution.as_ref().or(model.resolutions.first());
                let name = Entry::box_name(ratio.map(String::as_str), resolution.map(String::as_str));
                model.wire.boxes.get(&name).map(|size| parse_box(size).ok_or_else(no_box)).transpose()?
            }
        };
        let frames = match &order.shape {
            Shape::Image { .. } => None,
            Shape::Video { duration_seconds, .. } => {
                let seconds = duration_seconds.or(model.durations.first().copied());
                seconds.zip(model.wire.frames_per_second).map(|(seconds, rate)| seconds * rate + 1)
            }
        };
        let (references, mut others) = match uploads.split_at_checked(order.references.len()) {
            Some((references, others)) => (references, others.iter()),
            None => return Err(CallError::new(Class::Runtime, "an image was not uploaded")),
        };
        let (first, last) = order.frames();
        Ok(Self {
            prompt: order.instruction(),
            size,
            seed: order.seed(),
            frames,
            references,
            first_frame: first.and_then(|_| others.next()),
            last_frame: last.and_then(|_| others.next()),
            mask: order.mask.as_ref().and_then(|_| others.next()),
        })
    }

    fn fill_all(&self, object: &Map<String, Value>) -> Result<Map<String, Value>, CallError> {
        object.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?))).collect()
    }

    /// `value` with every placeholder replaced. Only whole texts are placeholders, so that no prompt can insert one.
    fn fill(&self, value: &Value) -> Result<Value, CallError> {
        match value {
            Value::Object(object) => Ok(Value::Object(self.fill_all(object)?)),
            Value::Array(list) => list.iter().map(|value| self.fill(value)).collect(),
            Value::String(text) => match text.strip_prefix("{{").and_then(|it| it.strip_suffix("}}")) {
                Some(place) => self.bind(place),
                None => Ok(value.clone()),
            },
            _ => Ok(value.clone()),
        }
    }

    fn bind(&self, place: &str) -> Result<Value, CallError> {
        let asset = |id: &String| json!({"__type": "core/ASSET", "info": {"id": id}});
        let bound = match place {
            "prompt" => Some(json!(self.prompt)),
            "width" => self.size.map(|(width, _)| json!(width)),
            "height" => self.size.map(|(_, height)| json!(height)),
            "seed" => Some(json!(self.seed)),
            "frames" => self.frames.map(|frames| json!(frames)),
            "first_frame" => self.first_frame.map(asset),
            "last_frame" => self.last_frame.map(asset),
            "mask" => self.mask.map(asset),
            _ => {
                let number: Option<usize> = place.strip_prefix("image:").and_then(|number| number.parse().ok());
                number.and_then(|number| self.references.get(number)).map(asset)
            }
        };
        bound.ok_or_else(|| CallError::new(Class::Invalid, format!("the workflow's {place} is not there")))
    }
}

#[derive(Deserialize)]
struct Asset {
    id: String,
}

#[derive(Deserialize)]
struct Job {
    id: String,
    status: String,
    #[serde(default)]
    outputs: Vec<JobOutput>,
    error: Option<JobError>,
    progress: Option<JobProgress>,
    urls: Option<Urls>,
}

#[derive(Deserialize)]
struct JobOutput {
    #[serde(rename = "type")]
    kind: String,
    url: String,
}

#[derive(Deserialize)]
struct JobError {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct JobProgress {
    value: f64,
}

#[derive(Default, Deserialize)]
struct Urls {
    #[serde(rename = "self")]
    this: Option<String>,
    cancel: Option<String>,
}
