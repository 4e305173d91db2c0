//! An Image Action.

use domain::account::Scope;
use domain::action::ActionSlug;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
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
    #[schemars(schema_with = "actions")]
    action: String,
    /// Nodes or assets
    #[schemars(length(min = 1, max = 2))]
    inputs: Vec<String>,
    params: Option<Map<String, Value>>,
    /// Empty image node; else a new one is made
    target: Option<String>,
    place: Option<Place>,
    wait: Option<Wait>,
}

fn actions(_: &mut SchemaGenerator) -> Schema {
    one_of(ActionSlug::ALL.iter().map(|slug| slug.as_str()))
}

impl Tool for ActionRun {
    const NAME: &'static str = "action_run";
    const TITLE: &'static str = "Run an Action";
    const ABOUT: &'static str = "Run a free, exact image transformation; describe tells its params. The result is a new node connected \
                                 to its sources, unless a target is named.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite, Scope::AssetRead];
    type Arguments = Arguments;
    type Output = Work;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Work>> {
        let (canvas, slug) = (arguments.canvas.handle(), arguments.action);
        let inputs: Vec<String> = arguments.inputs.iter().map(|it| image(it)).collect();
        let mut body = json!({
            "canvasId": canvas, "baseRevision": arguments.revision, "idempotencyKey": call.key(), "inputs": inputs,
            "params": arguments.params.unwrap_or_default(),
        });
        match arguments.target {
            Some(target) => body["targetNodeId"] = target.into(),
            None => body["place"] = Place::resolve(arguments.place, inputs.first().map(String::as_str), None),
        }
        let request = call.client.run_action(&slug).json(&body);
        work::start(call, request, Some((&canvas, &arguments.revision)), arguments.wait).await
    }
}
