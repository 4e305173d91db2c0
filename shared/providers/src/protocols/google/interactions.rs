//! The Interactions API (providers.md 2.4), which makes videos: in the background where the model can, else in the
//! answer.

use std::time::Duration;

use domain::model::Capability;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tells_of_content;
use crate::encode::{base64, decode, fields};
use crate::fault::{Class, Fault};
use crate::order::{Order, Picture};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Request, Site};

/// A video takes minutes.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(5);

/// The revision of the API that this adapter speaks.
const REVISION: &str = "2026-05-20";

/// The request with the revision.
pub(super) fn revised(request: Request) -> Request {
    request.with(HeaderName::from_static("api-revision"), HeaderValue::from_static(REVISION))
}

/// Pictures come before the text, frames before references: their order says what they are.
pub(super) fn submit(site: &Site, order: &Order) -> Result<Request, Fault> {
    let block = |picture: &Picture| json!({"type": "image", "data": base64(picture), "mime_type": picture.media_type});
    let (first, last) = order.frames();
    let pictures = first.into_iter().chain(last).chain(&order.references);
    let mut input: Vec<Value> = pictures.map(block).collect();
    input.push(json!({"type": "text", "text": order.instruction()}));
    let task = match order.capability {
        Capability::VideoFromImage | Capability::VideoFromFrames => "image_to_video",
        Capability::VideoFromReferences => "reference_to_video",
        _ => "text_to_video",
    };
    let mut format = fields(order)?;
    format.remove("prompt");
    format.insert("type".into(), json!("video"));
    format.insert("delivery".into(), json!("uri"));
    let model = order.model.wire.endpoint.as_ref().unwrap_or(&order.model.id);
    let body = json!({
        "model": model, "background": true, "store": true, "input": input,
        "generation_config": {"video_config": {"task": task}}, "response_format": format
    });
    Ok(revised(Request::post_json(site.url("/interactions"), &body)))
}

pub(super) fn submitted(site: &Site, answer: &Answer) -> Result<Accepted, Fault> {
    let interaction: Interaction = answer.read()?;
    let poll = site.url(&format!("/interactions/{}", interaction.id));
    let cancel = site.url(&format!("/interactions/{}/cancel", interaction.id));
    let id = interaction.id.clone();
    match outcome(site, interaction) {
        Polled::Done(output) => Ok(Accepted::Done(output)),
        Polled::Failed(fault) if !fault.is_retryable() => Err(fault),
        Polled::Failed(fault) => Err(fault.maybe_accepted()),
        Polled::Running(_) | Polled::Canceled | Polled::Trouble(_) => {
            Ok(Accepted::Run(Run { id, poll, result: None, cancel: Some(cancel) }))
        }
    }
}

pub(super) fn polled(site: &Site, answer: &Answer) -> Result<Polled, Fault> {
    answer.read().map(|interaction| outcome(site, interaction))
}

fn outcome(site: &Site, interaction: Interaction) -> Polled {
    let fail = |class, detail: &str| Polled::Failed(Fault::new(class, detail));
    match interaction.status.as_str() {
        "completed" => match interaction.video().and_then(|video| video.output(site)) {
            Some(output) => Polled::Done(output),
            None => fail(Class::Unavailable, "it made no video"),
        },
        "cancelled" => Polled::Canceled,
        "budget_exceeded" => fail(Class::OutOfCredit, "its budget is used up"),
        "failed" | "incomplete" | "requires_action" => {
            let message = interaction.errors.first().map_or("", |error| &error.message);
            let class = if tells_of_content(message) { Class::Content } else { Class::Unavailable };
            fail(class, message)
        }
        _ => Polled::Running(None),
    }
}

#[derive(Deserialize)]
struct Interaction {
    id: String,
    status: String,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    errors: Vec<Error>,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Step {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    uri: Option<String>,
    data: Option<String>,
}

impl Interaction {
    fn video(&self) -> Option<&Block> {
        let mut made = self.steps.iter().filter(|step| step.kind == "model_output").flat_map(|step| &step.content);
        made.rfind(|block| block.kind == "video")
    }
}

impl Block {
    fn output(&self, site: &Site) -> Option<Output> {
        if let Some(data) = &self.data {
            return decode(data).map(Output::Inline);
        }
        let mut url = site.join(self.uri.as_deref()?)?;
        url.set_query(Some("alt=media"));
        Some(Output::Remote(url))
    }
}
