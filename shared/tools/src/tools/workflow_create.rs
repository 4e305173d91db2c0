//! A Recipe on a canvas.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, texts};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::names::NamedCanvas;
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

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    on: NamedCanvas,
    revision: String,
    replayed: bool,
    /// The new Recipe; a fork is a copy without a handle.
    recipe: Option<String>,
    /// Ref of the sticky node to run.
    instance: Option<String>,
    /// The other nodes.
    changed_nodes: Vec<String>,
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
        let (result, workflow) = match (arguments.fork, arguments.name) {
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
                    Ok(read) => (read.value()?, None),
                    Err(error) => return Err(stale::add_changes(error.into(), call, &canvas, &revision).await),
                }
            }
            (None, Some(name)) => {
                let body = json!({
                    "name": name, "inputs": arguments.inputs.unwrap_or_default(), "outputs": arguments.outputs.unwrap_or_default(),
                    "idempotencyKey": call.key(),
                });
                let read = call.client.create_workflow(&canvas).json(&body).prefer("return=minimal").await?.value()?;
                (read.result, Some(read.workflow))
            }
            _ => return Err(Failure::argument("fork", "give either fork or name with inputs and outputs")),
        };
        let short = |id: String| result.refs.get(&id).cloned().unwrap_or(id);
        let instance = workflow.as_ref().map(|workflow| short(workflow.workflow_node_id.to_string()));
        let output = Output {
            on: NamedCanvas::after(call, &result.canvas),
            revision: result.canvas.revision().to_owned(),
            replayed: result.replayed,
            recipe: workflow.map(|workflow| workflow.handle),
            changed_nodes: texts(result.changes.changed_node_ids)
                .into_iter()
                .map(short)
                .filter(|node| instance.as_ref() != Some(node))
                .collect(),
            instance,
        };
        Ok(Answer::new(output))
    }
}
