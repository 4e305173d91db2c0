//! The facts of one thing.

use client::answers::ElementOrVersion;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::failure::Failure;
use crate::tool::{Hints, Result, Tool};

pub struct Describe;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// recipe:…, action:…, model:…, element:…(@v…), asset:…, run:… or job:…
    handle: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    kind: String,
    facts: Value,
}

impl Tool for Describe {
    const NAME: &'static str = "describe";
    const TITLE: &'static str = "Describe";
    const ABOUT: &'static str =
        "All facts of one handle: ports of a Recipe, parameters of an Action or model, an Element, an asset, a run.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, Arguments { handle }: Arguments) -> Result<Answer<Output>> {
        let client = &call.client;
        let kind = handle.split_once(':').map_or("", |(kind, _)| kind);
        let read = match kind {
            "recipe" => json!(client.get_recipe(&handle).await?.value()?.recipe),
            "action" => json!(client.get_action(&handle).await?.value()?.action),
            "model" => json!(client.get_model(&handle).await?.value()?.model),
            "asset" => json!(client.get_asset(&handle).await?.value()?.asset),
            "element" => match client.get_element(&handle).await?.value()? {
                ElementOrVersion::Element(read) => json!(read.element),
                ElementOrVersion::Version(read) => json!(read.version),
            },
            "run" | "job" => client.read_work(&handle).await?.json(),
            "canvas" | "node" => {
                let failure = Failure::argument("handle", "canvases and nodes are read with canvas_read");
                // Only the caller knows the canvas of a node.
                return Err(match kind {
                    "canvas" => failure.then(Next::new("canvas_read", json!({"canvas": handle}), "the canvas")),
                    _ => failure,
                });
            }
            _ => {
                return Err(Failure::argument(
                    "handle",
                    "must begin with recipe:, action:, model:, element:, asset:, run: or job:",
                ));
            }
        };
        Ok(Answer::new(Output { kind: kind.to_owned(), facts: lasting(read) }))
    }
}

/// Members that expire in minutes.
const EXPIRING: [&str; 5] = ["previewUrl", "previewExpiresInSeconds", "videoUrl", "videoExpiresInSeconds", "markdown"];

/// A record without what expires in minutes.
fn lasting(mut record: Value) -> Value {
    let strip = |object: &mut Value| {
        if let Some(object) = object.as_object_mut() {
            object.retain(|name, _| !EXPIRING.contains(&name.as_str()));
        }
    };
    strip(&mut record);
    for image in record.get_mut("images").and_then(Value::as_array_mut).into_iter().flatten() {
        strip(image);
    }
    record
}
