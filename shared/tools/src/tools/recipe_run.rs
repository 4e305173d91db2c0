//! A run of a Recipe.

use std::collections::BTreeMap;

use domain::account::Scope;
use domain::graph::NodeType;
use domain::model::Capability;
use domain::refs::NodeRef;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::funds;
use crate::place::image;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, Wait, Work};

pub struct RecipeRun;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    recipe: String,
    version: Option<String>,
    /// Sticky node of an instance on the canvas; else a new one is made
    instance: Option<String>,
    /// By port key: text, or the handle of a node or asset
    inputs: BTreeMap<String, String>,
    model: Option<String>,
    near: Option<String>,
    section_id: Option<String>,
    #[schemars(range(min = 0))]
    max_credits: Option<i64>,
    wait: Option<Wait>,
}

impl Tool for RecipeRun {
    const NAME: &'static str = "recipe_run";
    const TITLE: &'static str = "Run a Recipe";
    const ABOUT: &'static str = "Run a Recipe or private workflow on a canvas; describe tells its ports. Spends credit. The same call \
                                 with the same revision is never charged twice.";
    const HINTS: Hints = Hints::REACH_OUT;
    const SCOPES: &'static [Scope] = &[Scope::ImageGenerate];
    type Arguments = Arguments;
    type Output = Work;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Work>> {
        let canvas = arguments.canvas.handle();
        let mut body = json!({
            "canvasId": canvas, "baseRevision": arguments.revision, "idempotencyKey": call.key(),
            "inputs": by_handle(call, &arguments.recipe, arguments.version.as_ref(), arguments.inputs).await,
            "fit": true,
        });
        for (name, value) in [
            ("version", arguments.version.clone().map(Value::from)),
            ("instanceNodeId", arguments.instance.map(Value::from)),
            ("model", arguments.model.map(Value::from)),
            ("near", arguments.near.map(Value::from)),
            ("sectionId", arguments.section_id.map(Value::from)),
            ("maxCredits", arguments.max_credits.map(Value::from)),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        let request = call.client.run_recipe(&arguments.recipe).json(&body);
        match work::start(call, request, Some((&canvas, &arguments.revision)), arguments.wait).await {
            Err(failure) if failure.code == "payment_required" => {
                let images = images(call, &arguments.recipe, arguments.version).await;
                // A step makes its image from the prompt alone, or from images as well.
                Err(funds::add_affordable_models(
                    failure,
                    call,
                    &[Capability::ImageGenerate, Capability::ImageEdit],
                    images,
                )
                .await)
            }
            Err(failure) if failure.concerns("inputs") => Err(with_ports(call, failure, &arguments.recipe).await),
            done => done,
        }
    }
}

/// The inputs, with images that are named by refs as handles of nodes. The text of another port may look like a ref.
async fn by_handle(
    call: &Call,
    recipe: &str,
    version: Option<&String>,
    mut inputs: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_ref = |input: &String| input.parse::<NodeRef>().is_ok();
    if !inputs.values().any(is_ref) {
        return inputs;
    }
    // A Recipe that cannot be read is refused at its start.
    let read = call.client.get_recipe(recipe).query_if("version", version).await.and_then(|read| read.value());
    let ports = read.map(|read| read.recipe.inputs).unwrap_or_default();
    for port in ports.iter().filter(|port| port.node_type == NodeType::Image) {
        if let Some(input) = inputs.get_mut(port.key.as_str()).filter(|input| is_ref(input)) {
            *input = image(input);
        }
    }
    inputs
}

/// How many images the Recipe makes; texts cost nothing.
async fn images(call: &Call, recipe: &str, version: Option<String>) -> usize {
    let read = call.client.get_recipe(recipe).query_if("version", version).await.and_then(|read| read.value());
    read.map_or(0, |it| it.recipe.outputs.iter().filter(|output| output.port.node_type == NodeType::Image).count())
}

/// Adds which ports the Recipe has.
async fn with_ports(call: &Call, failure: Failure, recipe: &str) -> Failure {
    let Ok(read) = call.client.get_recipe(recipe).await.and_then(|read| read.value()) else { return failure };
    let mut inputs = match call.arguments.get("inputs") {
        Some(Value::Object(inputs)) => inputs.clone(),
        _ => Map::new(),
    };
    let mut ports = Vec::new();
    for port in read.recipe.inputs {
        if !port.use_as_preset {
            let wanted = format!("<{}: {}>", port.node_type, port.label);
            inputs.entry(&port.key).or_insert(wanted.into());
        }
        ports.push(json!({
            "key": port.key, "type": port.node_type, "label": port.label, "description": port.description,
            "mayBeLeftOut": port.use_as_preset,
        }));
    }
    let mut again = call.arguments.clone();
    again.insert("inputs".to_owned(), inputs.into());
    failure.with_detail("ports", ports.into()).then(Next::new(
        call.tool,
        again.into(),
        "with every port; replace what is in <>, or ask a person for it",
    ))
}
