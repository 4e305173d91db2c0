//! The Interactions API, which makes videos: in the background if the model supports it, otherwise
//! synchronously (`docs/reference/providers.md#gemini-videos`).

use std::time::Duration;

use domain::model::Capability;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};

use super::is_about_content;
use crate::call_error::{CallError, Class};
use crate::encode::{base64, decode, fields, is_data_url};
use crate::order::{Order, OrderImage};
use crate::outcome::{Output, Polled, Run};
use crate::protocol::{Accepted, Answer, Request, Site};

/// Polling interval; a video takes minutes.
pub(super) const POLL_EVERY: Duration = Duration::from_secs(5);

/// The API revision for which this adapter is written.
const REVISION: &str = "2026-05-20";

/// Adds the header with the revision.
pub(super) fn revised(request: Request) -> Request {
    request.with(HeaderName::from_static("api-revision"), HeaderValue::from_static(REVISION))
}

/// Images precede the text, and frames precede references, because the API assigns their meaning
/// by order.
pub(super) fn submit(site: &Site, order: &Order) -> Result<Request, CallError> {
    let block = |image: &OrderImage| json!({"type": "image", "data": base64(image), "mime_type": image.media_type});
    let (first, last) = order.frames();
    let images = first.into_iter().chain(last).chain(&order.references);
    let mut input: Vec<Value> = images.map(block).collect();
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

pub(super) fn submitted(site: &Site, answer: &Answer) -> Result<Accepted, CallError> {
    let interaction: Interaction = answer.read()?;
    let poll = site.url(&format!("/interactions/{}", interaction.id));
    let cancel = site.url(&format!("/interactions/{}/cancel", interaction.id));
    let run = Run { id: interaction.id.clone(), poll, result: None, cancel: Some(cancel) };
    match outcome(site, interaction) {
        Polled::Done(output) => Ok(Accepted::Finished(run, output)),
        Polled::Failed(call_error) if !call_error.is_retryable() => Err(call_error),
        Polled::Failed(call_error) => Err(call_error.maybe_accepted()),
        Polled::Running(_) | Polled::Canceled | Polled::Unavailable(_) => Ok(Accepted::Run(run)),
    }
}

pub(super) fn polled(site: &Site, answer: &Answer) -> Result<Polled, CallError> {
    answer.read().map(|interaction| outcome(site, interaction))
}

fn outcome(site: &Site, interaction: Interaction) -> Polled {
    match interaction.status.as_str() {
        "completed" => match interaction.video().and_then(|video| video.output(site)) {
            Some(output) => Polled::Done(output),
            None => match (interaction.failure(), interaction.words()) {
                (None, Some(words)) => Polled::Failed(CallError::new(Class::Content, words)),
                _ => failed(&interaction, "it made no video"),
            },
        },
        "cancelled" => Polled::Canceled,
        "budget_exceeded" => Polled::Failed(CallError::new(Class::OutOfCredit, "its budget is used up")),
        "failed" | "incomplete" => failed(&interaction, ""),
        // Includes `requires_action`, which is not terminal.
        _ => Polled::Running(None),
    }
}

/// The failure that the interaction reports, or a failure with the message `unsaid`.
fn failed(interaction: &Interaction, unsaid: &str) -> Polled {
    let message = interaction.failure().unwrap_or(unsaid);
    let class = if is_about_content(message) { Class::Content } else { Class::Unavailable };
    Polled::Failed(CallError::new(class, message))
}

#[derive(Deserialize)]
struct Interaction {
    id: String,
    status: String,
    steps: Option<Vec<Step>>,
    errors: Option<Vec<Error>>,
}

#[derive(Deserialize)]
struct Error {
    message: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(rename = "type")]
    kind: String,
    content: Option<Vec<Block>>,
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    uri: Option<String>,
    data: Option<String>,
    text: Option<String>,
}

impl Interaction {
    /// The model's output in steps.
    fn made(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.steps.iter().flatten().filter(|step| step.kind == "model_output")
    }

    fn video(&self) -> Option<&Block> {
        self.made().flat_map(|step| step.content.iter().flatten()).rfind(|block| block.kind == "video")
    }

    /// The text that the model put out, which says why there is no video.
    fn words(&self) -> Option<String> {
        let blocks = self.made().flat_map(|step| step.content.iter().flatten());
        let words: String = blocks.filter_map(|block| block.text.as_deref()).collect();
        (!words.trim().is_empty()).then_some(words)
    }

    /// The reported reason of the failure, for the whole interaction or for the model's output.
    fn failure(&self) -> Option<&str> {
        let mut errors = self.errors.iter().flatten().chain(self.made().filter_map(|step| step.error.as_ref()));
        errors.find_map(|error| error.message.as_deref())
    }
}

impl Block {
    fn output(&self, site: &Site) -> Option<Output> {
        if let Some(bytes) = self.data.as_deref().and_then(decode) {
            return Some(Output::Inline(bytes));
        }
        let mut url = site.join(self.uri.as_deref()?)?;
        if !is_data_url(url.as_str()) {
            url.set_query(Some("alt=media"));
        }
        Output::at(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &Value) -> Polled {
        let site = Site::new("https://api.example/v1beta".parse().expect("a URL"), &[]);
        outcome(&site, serde_json::from_value(answer.clone()).expect("is an interaction"))
    }

    #[test]
    fn a_failure_is_reported_for_the_whole_or_for_what_the_model_put_out() {
        let blocked = json!({"code": "safety", "message": "Blocked for safety reasons.", "details": null});
        let of_step = json!([{"type": "user_input", "content": null}, {"type": "model_output", "error": blocked}]);
        let words = json!([{"type": "model_output", "content": [{"type": "text", "text": "I cannot show this."}]}]);
        for (answer, class) in [
            (json!({"status": "failed", "errors": [blocked], "steps": null}), Class::Content),
            (json!({"status": "failed", "errors": null, "steps": of_step}), Class::Content),
            (json!({"status": "completed", "steps": of_step}), Class::Content),
            (json!({"status": "completed", "steps": words}), Class::Content),
            (json!({"status": "completed", "steps": []}), Class::Unavailable),
            (json!({"status": "failed", "errors": [{"code": "internal", "message": null}]}), Class::Unavailable),
            (json!({"status": "incomplete"}), Class::Unavailable),
            (json!({"status": "budget_exceeded"}), Class::OutOfCredit),
        ] {
            let mut whole = json!({"id": "v1"});
            whole.as_object_mut().expect("an object").extend(answer.as_object().expect("an object").clone());
            let polled = read(&whole);
            let Polled::Failed(call_error) = polled else { panic!("{answer}: {polled:?}") };
            assert_eq!(call_error.class, class, "{answer}");
        }
    }

    #[test]
    fn what_is_no_end_goes_on() {
        for status in ["queued", "in_progress", "requires_action", "a word of tomorrow"] {
            assert!(matches!(read(&json!({"id": "v1", "status": status})), Polled::Running(_)), "{status}");
        }
    }
}
