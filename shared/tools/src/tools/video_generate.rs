//! Generation of a video.

use domain::account::Scope;
use domain::model::Capability;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::funds;
use crate::place::{Place, image};
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, Wait, Work};

pub struct VideoGenerate;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    model: String,
    #[schemars(length(max = 8000))]
    prompt: String,
    /// Needed for nodes, and to put the video on it
    canvas: Option<CanvasName>,
    /// From your last read or write; puts the video on the canvas, where it stays
    revision: Option<String>,
    /// Video node for it; else a new one is made
    target: Option<String>,
    place: Option<Place>,
    first_frame: Option<String>,
    last_frame: Option<String>,
    #[schemars(length(max = 9))]
    references: Option<Vec<String>>,
    #[schemars(range(min = 1, max = 120))]
    duration_seconds: Option<u32>,
    aspect_ratio: Option<String>,
    resolution: Option<String>,
    generate_audio: Option<bool>,
    /// Raise it to pay for another one from the same input
    #[schemars(range(min = 1))]
    #[expect(dead_code, reason = "a part of the key alone")]
    attempt: Option<u32>,
    /// Ended work made up for
    retry_of: Option<String>,
    #[schemars(range(min = 1, max = 64))]
    asked: Option<u32>,
    #[schemars(range(min = 0))]
    max_credits: Option<i64>,
    wait: Option<Wait>,
}

impl Tool for VideoGenerate {
    const NAME: &'static str = "video_generate";
    const TITLE: &'static str = "Generate a video";
    const ABOUT: &'static str = "Generate a video. Spends credit. With revision it stays on the canvas, else 30 days. The same call with \
         the same attempt is never charged twice.";
    const HINTS: Hints = Hints::REACH_OUT;
    const SCOPES: &'static [Scope] = &[Scope::VideoGenerate];
    type Arguments = Arguments;
    type Output = Work;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Work>> {
        let mut body = json!({"model": arguments.model, "prompt": arguments.prompt, "idempotencyKey": call.key()});
        let canvas = arguments.canvas.map(|canvas| canvas.handle());
        let on = canvas.as_deref().zip(arguments.revision.as_deref());
        let is_to_go_somewhere = arguments.target.is_some() || arguments.place.is_some();
        if on.is_none() && (is_to_go_somewhere || arguments.revision.is_some()) {
            let missing = if canvas.is_none() { "canvas" } else { "revision" };
            return Err(Failure::argument(missing, "is needed to put the video on a canvas"));
        }
        if on.is_some() {
            body["baseRevision"] = json!(arguments.revision);
            match arguments.target {
                Some(target) => {
                    body["targetNodeId"] = target.into();
                    body["fit"] = true.into();
                }
                None => {
                    let source = arguments.first_frame.as_deref().map(image);
                    body["place"] = Place::resolve(arguments.place, source.as_deref(), None);
                }
            }
        }
        let references = |all: Vec<String>| Value::from(all.iter().map(|it| image(it)).collect::<Vec<_>>());
        for (name, value) in [
            ("canvasId", canvas.clone().map(Value::from)),
            ("firstFrame", arguments.first_frame.map(|frame| image(&frame).into())),
            ("lastFrame", arguments.last_frame.map(|frame| image(&frame).into())),
            ("references", arguments.references.map(references)),
            ("durationSeconds", arguments.duration_seconds.map(Value::from)),
            ("aspectRatio", arguments.aspect_ratio.map(Value::from)),
            ("resolution", arguments.resolution.map(Value::from)),
            ("generateAudio", arguments.generate_audio.map(Value::from)),
            ("asked", arguments.asked.map(Value::from)),
            ("retryOf", arguments.retry_of.map(Value::from)),
            ("maxCredits", arguments.max_credits.map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        match work::start(call, call.client.generate_video().json(&body), on, arguments.wait).await {
            Err(failure) if failure.code == "payment_required" => {
                Err(funds::add_affordable_models(failure, call, &[Capability::VideoGenerate], 1).await)
            }
            done => done,
        }
    }
}
