//! The facts of one thing.

use client::answers::ElementOrVersion;
use domain::account::Scope;
use domain::action::{Action, Parameter, ParameterType};
use domain::lineage::AssetPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::names::Names;
use crate::tool::{Hints, Result, Tool};

pub struct Describe;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// recipe:…, action:…, model:…, element:…(@v…), asset:…, run:… or job:…; with canvas, a node
    handle: String,
    canvas: Option<CanvasName>,
}

#[derive(Serialize)]
pub struct Output {
    kind: String,
    facts: Value,
}

impl Tool for Describe {
    const NAME: &'static str = "describe";
    const TITLE: &'static str = "Describe";
    const ABOUT: &'static str = "All facts of one handle: ports of a Recipe, parameters of an Action or model, an Element, a run; of an \
                                 asset, or of what a node shows: prompt, model, inputs, where it is used.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, Arguments { handle, canvas }: Arguments) -> Result<Answer<Output>> {
        let client = &call.client;
        let is_node = !handle.contains(':') || handle.starts_with("node:");
        let shown = match (handle.split_once(' '), canvas) {
            (Some((canvas, node)), _) => Some((CanvasName::from(canvas).handle(), node)),
            (None, canvas) => canvas.filter(|_| is_node).map(|canvas| (canvas.handle(), handle.as_str())),
        };
        if let Some((canvas, node)) = shown {
            let node = client.get_node(&canvas, node).await?.value()?.node;
            return match &node.asset {
                Some(shown) => Ok(answer("asset", asset(call, &shown.to_string()).await?)),
                None => Ok(answer("node", json!(node))),
            };
        }
        let kind = handle.split_once(':').map_or("", |(kind, _)| kind);
        let read = match kind {
            "recipe" => json!(client.get_recipe(&handle).await?.value()?.recipe),
            "action" => action(&client.get_action(&handle).await?.value()?.action),
            "model" => json!(client.get_model(&handle).await?.value()?.model),
            "asset" => asset(call, &handle).await?,
            "element" => match client.get_element(&handle).await?.value()? {
                ElementOrVersion::Element(read) => json!(read.element),
                ElementOrVersion::Version(read) => json!(read.version),
            },
            // Whether work is done is said by the review of the canvas as it is now.
            "run" | "job" => client.read_work(&handle).query("view", "summary").await?.json(),
            "canvas" | "node" => {
                let failure = Failure::argument(
                    "handle",
                    "canvases are read with canvas_read; a node is described with its canvas",
                );
                // Only the caller knows the canvas of a node.
                return Err(match kind {
                    "canvas" => failure.then(Next::new("canvas_read", json!({"canvas": handle}), "the canvas")),
                    _ => failure,
                });
            }
            _ => {
                return Err(Failure::argument(
                    "handle",
                    "must begin with recipe:, action:, model:, element:, asset:, run: or job:, or name a node, with its canvas",
                ));
            }
        };
        Ok(answer(kind, read))
    }
}

/// An Action with one line for each parameter, in the notation of the digest.
fn action(action: &Action) -> Value {
    let inputs: Vec<&str> = action.inputs.iter().map(|input| &*input.id).collect();
    json!({
        "action": action.id, "summary": action.summary, "medium": action.medium, "inputs": inputs,
        "params": action.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

/// A parameter of an Action in one line: `name?: values = default`.
pub fn parameter(parameter: &Parameter) -> String {
    let mark = if parameter.required { "" } else { "?" };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = match parameter.kind {
        ParameterType::Select => {
            parameter.options.iter().map(|option| text(&option.value)).collect::<Vec<_>>().join("|")
        }
        ParameterType::Number => {
            let kind = if parameter.integer == Some(true) { "int" } else { "num" };
            match (parameter.min, parameter.max) {
                (Some(min), Some(max)) => format!("{kind} {min}..{max}"),
                _ => kind.to_owned(),
            }
        }
        ParameterType::Text => parameter.max_length.map_or_else(|| "text".to_owned(), |most| format!("text ≤{most}")),
        ParameterType::Color => "#rrggbb".to_owned(),
    };
    let default = parameter.default.as_ref().map(|default| format!(" = {}", text(default))).unwrap_or_default();
    format!("{}{mark}: {values}{default}", parameter.id)
}

fn answer(kind: &str, facts: Value) -> Answer<Output> {
    Answer::new(Output { kind: kind.to_owned(), facts: lasting(facts) })
}

/// An asset, how it came to be, its inputs and its places, as one object.
async fn asset(call: &Call, handle: &str) -> Result<Value> {
    let mut read = call.client.get_asset(handle).query("include", "usedIn,inputs").await?.value()?;
    let places = read.used_in.take().unwrap_or_default();
    let mut facts = json!(read);
    facts["usedIn"] = used_in(call, &places).await;
    if let (Value::Object(asset), Some(facts)) = (facts["asset"].take(), facts.as_object_mut()) {
        facts.remove("asset");
        facts.extend(asset);
    }
    Ok(facts)
}

/// The nodes that show an asset, by their short names.
async fn used_in(call: &Call, places: &[AssetPlace]) -> Value {
    let named = places.iter().map(|it| (it.canvas.to_string(), it.short.is_none().then(|| it.node.clone())));
    let names = Names::read(call, named.collect()).await;
    let place = |it: &AssetPlace| {
        let on = names.canvas(call, &it.canvas.to_string());
        let node = it.short.map_or_else(|| names.node(&it.canvas.to_string(), &it.node), |short| short.to_string());
        json!({"canvas": on.canvas, "url": on.url, "node": node, "title": it.title})
    };
    places.iter().map(place).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_one_line() {
        for (given, line) in [
            (json!({"type": "number", "required": true, "integer": true, "min": 1, "max": 8192}), "p: int 1..8192"),
            (json!({"type": "number", "required": false, "default": 1.5}), "p?: num = 1.5"),
            (json!({"type": "text", "required": true, "maxLength": 500}), "p: text ≤500"),
            (json!({"type": "color", "required": false, "default": "#ffffff"}), "p?: #rrggbb = #ffffff"),
            (
                json!({"type": "select", "required": false, "default": "png",
                    "options": [{"value": "png", "label": "PNG"}, {"value": 90, "label": "A quarter"}]}),
                "p?: png|90 = png",
            ),
        ] {
            let mut given = given;
            (given["id"], given["title"]) = ("p".into(), "P".into());
            assert_eq!(parameter(&serde_json::from_value(given).expect("a parameter")), line);
        }
    }
}
