//! Deletion of nodes and connections.

use client::answers::MutationResult;
use domain::account::Scope;
use domain::limits::OPERATIONS_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, texts};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::{Failure, first_findings};
use crate::names::NamedCanvas;
use crate::stale;
use crate::tool::{Hints, Result, Tool};

pub struct CanvasDelete;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    /// With their connections
    #[schemars(length(min = 1, max = 200))]
    nodes: Option<Vec<String>>,
    #[schemars(length(min = 1, max = 200))]
    connections: Option<Vec<String>>,
    /// Change nothing, tell findings
    dry_run: Option<bool>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    on: NamedCanvas,
    revision: String,
    dry_run: Option<bool>,
    replayed: Option<bool>,
    /// Nodes, as they were named.
    deleted_nodes: Vec<String>,
    /// Connections, those of the nodes included.
    deleted_connections: Vec<String>,
    findings: Option<Value>,
}

impl Tool for CanvasDelete {
    const NAME: &'static str = "canvas_delete";
    const TITLE: &'static str = "Delete from a canvas";
    const ABOUT: &'static str =
        "Delete nodes and connections. canvas_edit with node.restore and connection.restore brings them back.";
    const HINTS: Hints = Hints::CHANGE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let (nodes, connections) = (arguments.nodes.unwrap_or_default(), arguments.connections.unwrap_or_default());
        match nodes.len() + connections.len() {
            0 => return Err(Failure::argument("nodes", "give nodes or connections")),
            count if count > OPERATIONS_MAX => {
                return Err(Failure::argument("nodes", format!("may be {OPERATIONS_MAX} together with connections")));
            }
            _ => {}
        }
        // Connections first: those of a node go with it.
        let operations: Vec<Value> = connections
            .iter()
            .map(|it| json!({"type": "connection.delete", "connectionId": it}))
            .chain(nodes.iter().map(|it| json!({"type": "node.delete", "nodeId": it})))
            .collect();
        if arguments.dry_run == Some(true) {
            let tried = call.dry_run(&canvas, &operations).await;
            let tried = tried.map_err(|error| by_argument(error.into(), connections.len()))?;
            let findings = first_findings(&tried.validation.findings);
            return Ok(Answer::new(Output {
                on: NamedCanvas::of(call, &tried.canvas),
                revision: tried.canvas.revision,
                dry_run: Some(true),
                replayed: None,
                deleted_nodes: nodes,
                deleted_connections: texts(tried.destructive_impact.deleted_connection_ids),
                findings: Some(findings),
            }));
        }
        let body = json!({"baseRevision": arguments.revision, "idempotencyKey": call.key(), "operations": operations});
        let request = call.client.apply_operations(&canvas).cast::<MutationResult>().json(&body);
        match request.prefer("return=minimal").prefer("handling=lenient").await {
            Ok(answer) => {
                let result = answer.value()?;
                // What is deleted has its ref in the changes alone.
                let changes = call.client.get_canvas_changes(&canvas).query("since", &arguments.revision);
                let changes = changes.query("include", "authors").await.and_then(|read| read.value());
                let refs = changes.ok().and_then(|changes| changes.refs).unwrap_or_default();
                let gone = texts(result.changes.deleted_connection_ids);
                Ok(Answer::new(Output {
                    on: NamedCanvas::after(call, &result.canvas),
                    revision: result.canvas.revision().to_owned(),
                    dry_run: None,
                    replayed: Some(result.replayed),
                    deleted_nodes: nodes,
                    deleted_connections: gone.into_iter().map(|id| refs.get(&id).cloned().unwrap_or(id)).collect(),
                    findings: None,
                }))
            }
            Err(error) => {
                let failure = by_argument(error.into(), connections.len());
                Err(stale::add_changes(failure, call, &canvas, &arguments.revision).await)
            }
        }
    }
}

/// A refusal that names what is wrong as the arguments of the tool do. The first operations delete connections.
fn by_argument(mut failure: Failure, connections: usize) -> Failure {
    for violation in &mut failure.fields {
        let index = violation.field.strip_prefix("operations[").and_then(|rest| rest.split_once(']'));
        let Some(at) = index.and_then(|(index, _)| index.parse::<usize>().ok()) else { continue };
        violation.field = match at.checked_sub(connections) {
            Some(node) => format!("nodes[{node}]"),
            None => format!("connections[{at}]"),
        };
    }
    failure
}

#[cfg(test)]
mod tests {
    use domain::Violation;

    use super::*;

    #[test]
    fn violations_name_arguments() {
        let fields = ["operations[0].connectionId", "operations[2].nodeId", "operations", "canvasId"];
        let failure = Failure::invalid(fields.map(|field| Violation::new(field, "is wrong")).into());
        let named: Vec<String> = by_argument(failure, 2).fields.into_iter().map(|it| it.field).collect();
        assert_eq!(named, ["connections[0]", "nodes[0]", "operations", "canvasId"]);
    }
}
