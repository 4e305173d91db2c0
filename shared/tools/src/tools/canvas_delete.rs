//! Deletion of nodes and connections.

use std::collections::BTreeMap;

use client::answers::MutationResult;
use domain::account::Scope;
use domain::limits::OPERATIONS_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next, texts};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::{Failure, first_findings};
use crate::names::NamedCanvas;
use crate::resubmit;
use crate::stale;
use crate::tool::{Hints, Result, Tool};
use crate::tools::canvas_edit::{deleted, deletions_apart};

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
    /// From an answer, instead of both
    resubmit: Option<String>,
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
    /// What a batch that was set aside did, or would do.
    did: Option<String>,
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
        let (key, operations) = match &arguments.resubmit {
            None => match arguments.operations() {
                none if none.is_empty() => return Err(Failure::argument("nodes", "give nodes or connections")),
                many if many.len() > OPERATIONS_MAX => {
                    let message = format!("may be {OPERATIONS_MAX} together with connections");
                    return Err(Failure::argument("nodes", message));
                }
                operations => (call.key(), operations),
            },
            Some(id) if arguments.nodes.is_none() && arguments.connections.is_none() => {
                (resubmit::key(id), set_aside(call, &canvas, &arguments.revision, id).await?)
            }
            Some(_) => return Err(Failure::argument("resubmit", "cannot be combined with nodes or connections")),
        };
        let did = arguments.resubmit.as_ref().map(|_| resubmit::in_words(&operations, &BTreeMap::new()));
        let named = |failure: Failure| match did {
            Some(_) => failure,
            None => by_argument(failure, &operations),
        };
        let nodes: Vec<String> = operations.iter().filter_map(|it| it["nodeId"].as_str().map(str::to_owned)).collect();
        if arguments.dry_run == Some(true) {
            let tried = call.dry_run(&canvas, &operations).await.map_err(|error| named(error.into()))?;
            let findings = first_findings(&tried.validation.findings);
            return Ok(Answer::new(Output {
                on: NamedCanvas::of(call, &tried.canvas),
                revision: tried.canvas.revision,
                dry_run: Some(true),
                replayed: None,
                did,
                deleted_nodes: nodes,
                deleted_connections: texts(tried.destructive_impact.deleted_connection_ids),
                findings: Some(findings),
            }));
        }
        let body = json!({"baseRevision": arguments.revision, "idempotencyKey": key, "operations": operations});
        let request = call.client.apply_operations(&canvas).cast::<MutationResult>().json(&body);
        match request.prefer("return=minimal").prefer("handling=lenient").await {
            Ok(answer) => {
                let result = answer.value()?;
                // What is deleted has its ref in the changes alone.
                let changes = call.client.get_canvas_changes(&canvas).query("since", &arguments.revision);
                let changes = changes.query("include", "authors").await.and_then(|read| read.value());
                let refs = changes.ok().and_then(|changes| changes.refs).unwrap_or_default();
                let named = |id: String| refs.get(&id).cloned().unwrap_or(id);
                Ok(Answer::new(Output {
                    on: NamedCanvas::after(call, &result.canvas),
                    revision: result.canvas.revision().to_owned(),
                    dry_run: None,
                    replayed: Some(result.replayed),
                    did,
                    deleted_nodes: nodes.into_iter().map(named).collect(),
                    deleted_connections: texts(result.changes.deleted_connection_ids).into_iter().map(named).collect(),
                    findings: None,
                }))
            }
            Err(error) => Err(stale::add_changes(named(error.into()), call, &canvas, &arguments.revision).await),
        }
    }
}

impl Arguments {
    /// What the lists name.
    fn operations(&self) -> Vec<Value> {
        let names = |list: &Option<Vec<String>>| list.iter().flatten().map(|name| json!(name)).collect::<Vec<_>>();
        operations(&names(&self.nodes), &names(&self.connections))
    }
}

/// The batch that deletes these. Connections come first: those of a node go with it.
pub fn operations(nodes: &[Value], connections: &[Value]) -> Vec<Value> {
    let connections = connections.iter().map(|it| json!({"type": "connection.delete", "connectionId": it}));
    connections.chain(nodes.iter().map(|it| json!({"type": "node.delete", "nodeId": it}))).collect()
}

/// A batch that was set aside, which has to delete alone.
async fn set_aside(call: &Call, canvas: &str, revision: &str, id: &str) -> Result<Vec<Value>> {
    let operations: Vec<Value> = resubmit::read(call, canvas, id).await?;
    if operations.iter().all(|operation| deleted(operation).is_some()) {
        return Ok(operations);
    }
    let failure = Failure::argument("resubmit", "names a batch that does more than delete, which is for canvas_edit");
    let batch = json!({"canvas": canvas, "revision": revision, "operations": operations});
    let failure = deletions_apart(&batch, failure);
    Err(match failure.next.is_empty() {
        true => failure.then(Next::new("canvas_edit", batch, "the batch")),
        false => failure,
    })
}

/// A refusal that names what is wrong as the arguments of the tool do.
fn by_argument(mut failure: Failure, operations: &[Value]) -> Failure {
    for violation in &mut failure.fields {
        let index = violation.field.strip_prefix("operations[").and_then(|rest| rest.split_once(']'));
        let Some(at) = index.and_then(|(index, _)| index.parse::<usize>().ok()) else { continue };
        let list = |operation: &Value| deleted(operation).map(|(list, _)| list);
        let Some(of) = operations.get(at).and_then(list) else { continue };
        let before = operations[..at].iter().filter(|it| list(it) == Some(of)).count();
        violation.field = format!("{of}[{before}]");
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
        let operations = operations(&[json!("n1")], &[json!("c1"), json!("c2")]);
        let named: Vec<String> = by_argument(failure, &operations).fields.into_iter().map(|it| it.field).collect();
        assert_eq!(named, ["connections[0]", "nodes[0]", "operations", "canvasId"]);
    }
}
