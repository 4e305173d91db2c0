//! Image Actions in a row.

use domain::account::Scope;
use domain::action::ActionSlug;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::place::{Place, image};
use crate::schema::one_of;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, Wait, Work};

pub struct ActionRun;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    /// Nodes or assets; each has a result of its own
    #[schemars(length(min = 1, max = 20))]
    inputs: Vec<String>,
    /// Each works on what the one before it made
    #[schemars(length(min = 1, max = 4))]
    steps: Vec<Step>,
    /// Empty image nodes, one for each input; else new ones are made
    targets: Option<Vec<String>>,
    place: Option<Place>,
    wait: Option<Wait>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Step {
    #[schemars(schema_with = "actions")]
    action: String,
    params: Option<Map<String, Value>>,
    /// Second image, of overlay-image and side-by-side-composite
    with: Option<String>,
}

fn actions(_: &mut SchemaGenerator) -> Schema {
    one_of(ActionSlug::ALL.iter().map(|slug| slug.as_str()))
}

impl Step {
    fn form(&self) -> Value {
        let mut form = json!({"action": self.action, "params": self.params.clone().unwrap_or_default()});
        if let Some(with) = &self.with {
            form["with"] = image(with).into();
        }
        form
    }
}

#[derive(Serialize)]
pub struct Output {
    runs: Vec<Work>,
}

impl Tool for ActionRun {
    const NAME: &'static str = "action_run";
    const TITLE: &'static str = "Run Actions";
    const ABOUT: &'static str = "Run free, exact image transformations; describe tells their params. Each input gets a new node \
                                 connected to it, unless targets are named.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite, Scope::AssetRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let inputs: Vec<String> = arguments.inputs.iter().map(|it| image(it)).collect();
        let steps: Vec<Value> = arguments.steps.iter().map(Step::form).collect();
        let mut body = json!({
            "canvasId": canvas, "baseRevision": arguments.revision, "idempotencyKey": call.key(), "inputs": inputs,
            "steps": steps,
        });
        match arguments.targets {
            Some(targets) => {
                body["targetNodeIds"] = targets.into();
                body["fit"] = true.into();
            }
            None => body["place"] = Place::resolve(arguments.place, None, None),
        }
        let request = call.client.run_actions().json(&body);
        let runs = work::start_several(call, request, (&canvas, &arguments.revision), arguments.wait).await?;
        let assets: Vec<String> = runs.iter().flat_map(Work::assets).take(work::IMAGES_MAX).cloned().collect();
        Ok(work::show(&call.client, Answer::new(Output { runs }), &assets).await)
    }
}
