//! A Recipe on a canvas.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::stale;
use crate::tool::{Hints, Result, Tool};

pub struct WorkflowCreate;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// For fork: from your last read or write
    revision: Option<String>,
    /// Recipe to copy
    fork: Option<String>,
    /// Or a new one: its name
    #[schemars(length(min = 1, max = 160))]
    name: Option<String>,
    /// {key, label, type: image|text|sticky, useAsDefault, sourceNodeId? or value?, description?}
    #[schemars(length(min = 1, max = 16))]
    inputs: Option<Vec<Map<String, Value>>>,
    /// {key, label, type: image|text, prompt, inputKeys, model?, size?, quality?}; {{key}} in a prompt inserts an input or earlier
    /// output
    #[schemars(length(min = 1, max = 8))]
    outputs: Option<Vec<Map<String, Value>>>,
    near: Option<String>,
    section_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    canvas: String,
    revision: String,
    replayed: bool,
    /// The new Recipe; a fork is a copy without a handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe: Option<String>,
    /// The sticky node to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    changed_nodes: Vec<Value>,
}

impl Tool for WorkflowCreate {
    const NAME: &'static str = "workflow_create";
    const TITLE: &'static str = "Create a workflow";
    const ABOUT: &'static str =
        "Put a copy of a Recipe (fork) or a new private workflow on a canvas. Runs nothing, costs nothing.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let read = match (arguments.fork, arguments.name) {
            (Some(recipe), None) => {
                let Some(revision) = arguments.revision else {
                    return Err(Failure::argument("revision", "is required to fork"));
                };
                let mut body = json!({"canvasId": canvas, "baseRevision": revision, "idempotencyKey": call.key()});
                for (name, value) in [("near", arguments.near), ("sectionId", arguments.section_id)] {
                    if let Some(value) = value {
                        body[name] = value.into();
                    }
                }
                let request = call.client.fork_recipe(&recipe).json(&body).prefer("return=minimal");
                match request.prefer("handling=lenient").await {
                    Ok(read) => read.json(),
                    Err(error) => return Err(stale::add_changes(error.into(), call, &canvas, &revision).await),
                }
            }
            (None, Some(name)) => {
                let body = json!({
                    "name": name, "inputs": arguments.inputs.unwrap_or_default(), "outputs": arguments.outputs.unwrap_or_default(),
                    "idempotencyKey": call.key(),
                });
                call.client.create_workflow(&canvas).json(&body).prefer("return=minimal").await?.json()
            }
            _ => return Err(Failure::argument("fork", "give either fork or name with inputs and outputs")),
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let workflow = &read["workflow"];
        let output = Output {
            canvas: text(&read["canvas"]["handle"]),
            revision: text(&read["canvas"]["revision"]),
            replayed: read["replayed"] == true,
            recipe: workflow["handle"].as_str().map(str::to_owned),
            instance: workflow["workflowNodeId"].as_str().map(|id| format!("node:{id}")),
            changed_nodes: read["changedNodeIds"].as_array().cloned().unwrap_or_default(),
        };
        Ok(Answer::new(output))
    }
}
