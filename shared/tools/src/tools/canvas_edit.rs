//! A batch of operations.

use std::collections::{BTreeMap, BTreeSet};

use client::answers::MutationResult;
use domain::Violation;
use domain::account::Scope;
use domain::graph::Position;
use domain::operation::{self, NewNode};
use domain::refs::{ConnectionRef, NodeRef};
use domain::review::Severity;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Next, texts};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::{Failure, first_findings};
use crate::names::NamedCanvas;
use crate::resubmit;
use crate::schema;
use crate::stale;
use crate::tool::{Hints, Result, Tool};

pub struct CanvasEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    /// metadata: content is the text of text and sticky, altText what an image or video shows, color #rrggbb; null removes
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    operations: Vec<Operation>,
    /// From an answer, instead of operations
    resubmit: Option<String>,
    /// Change nothing, tell findings
    dry_run: Option<bool>,
    /// Apply on top of others' changes to other nodes; default true
    rebase: Option<bool>,
}

// The contract's own form, which the service checks.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
struct Operation(#[schemars(schema_with = "forms")] Map<String, Value>);

fn forms(_: &mut SchemaGenerator) -> Schema {
    schema::operations(|kind| deleted(&json!({"type": kind})).is_none())
}

/// The argument of [`canvas_delete`](super::canvas_delete) that lists what an operation deletes, and what that is.
pub fn deleted(operation: &Value) -> Option<(&'static str, &Value)> {
    match operation["type"].as_str()? {
        "node.delete" => Some(("nodes", &operation["nodeId"])),
        "connection.delete" => Some(("connections", &operation["connectionId"])),
        _ => None,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    on: NamedCanvas,
    revision: String,
    /// What a batch that was set aside did, or would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
    #[serde(flatten)]
    effect: Effect,
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Effect {
    Applied {
        replayed: bool,
        /// Refs by `clientId`.
        created: BTreeMap<String, String>,
        /// Refs of what else was made or changed.
        changed_nodes: BTreeSet<String>,
        changed_connections: BTreeSet<String>,
    },
    Tried {
        dry_run: bool,
        findings: Value,
    },
}

impl Tool for CanvasEdit {
    const NAME: &'static str = "canvas_edit";
    const TITLE: &'static str = "Edit a canvas";
    const ABOUT: &'static str = "Change a canvas in one atomic batch. Later operations may name clientIds of earlier ones. Without a \
                                 position the service finds a free place. Overlaps are refused with a batch that fits.";
    const HINTS: Hints = Hints::ADD_ONCE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite];
    type Arguments = Arguments;
    type Output = Output;

    fn add_instead(arguments: &Value, failure: Failure) -> Failure {
        deletions_apart(arguments, failure)
    }

    async fn run(call: &Call, mut arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let key = match (&arguments.resubmit, arguments.operations.is_empty()) {
            (None, false) => call.key(),
            (None, true) => return Err(Failure::argument("operations", "is required")),
            (Some(id), true) => {
                arguments.operations = resubmit::read(call, &canvas, id).await?;
                let batch = json!({
                    "canvas": canvas, "revision": arguments.revision, "operations": arguments.operations,
                });
                let failure = Failure::argument("resubmit", "names a batch that deletes, which is for canvas_delete");
                let failure = deletions_apart(&batch, failure);
                if !failure.next.is_empty() {
                    return Err(failure);
                }
                resubmit::key(id)
            }
            (Some(_), false) => {
                return Err(Failure::argument("resubmit", "cannot be combined with operations"));
            }
        };
        let refused = names_of_refs(&arguments);
        if !refused.is_empty() {
            return Err(Failure::invalid(refused));
        }
        let operations: Vec<Value> = arguments.operations.iter().map(|it| json!(it)).collect();
        if arguments.dry_run == Some(true) {
            let read = call.dry_run(&canvas, &operations).await?;
            let findings = first_findings(&read.validation.findings);
            return Ok(Answer::new(Output {
                on: NamedCanvas::of(call, &read.canvas),
                revision: read.canvas.revision,
                did: arguments.did(&operations, &BTreeMap::new()),
                effect: Effect::Tried { dry_run: true, findings },
            }));
        }
        let body = json!({"baseRevision": arguments.revision, "idempotencyKey": key, "operations": operations});
        let mut request = call.client.apply_operations(&canvas).json(&body).prefer("return=minimal");
        if arguments.rebase != Some(false) {
            request = request.prefer("handling=lenient");
        }
        match request.cast::<MutationResult>().await {
            Ok(answer) => {
                let result = answer.value()?;
                let on = NamedCanvas::after(call, &result.canvas);
                let revision = result.canvas.revision().to_owned();
                let did = arguments.did(&operations, &result.refs);
                Ok(Answer::new(Output { on, revision, did, effect: applied(result) }))
            }
            Err(error) => {
                let failure = stale::add_changes(Failure::from(error), call, &canvas, &arguments.revision).await;
                Err(free_places(failure, call, &canvas, &arguments).await)
            }
        }
    }
}

impl Arguments {
    /// What the operations do, where the call does not say it itself.
    fn did(&self, operations: &[Value], refs: &BTreeMap<String, String>) -> Option<String> {
        self.resubmit.as_ref().map(|_| resubmit::in_words(operations, refs))
    }
}

/// What a batch did, with refs in place of ids where there are any, and nothing twice.
fn applied(result: MutationResult) -> Effect {
    let MutationResult { replayed, resolved_ids, refs, changes, .. } = result;
    let short = |id: String| refs.get(&id).cloned().unwrap_or(id);
    let created: BTreeMap<String, String> = resolved_ids.into_iter().map(|(name, id)| (name, short(id))).collect();
    let is_other = |name: &String| !created.values().any(|made| made == name);
    let others = |ids: Vec<String>| ids.into_iter().map(short).filter(is_other).collect();
    Effect::Applied {
        replayed,
        changed_nodes: others(texts(changes.changed_node_ids)),
        changed_connections: others(texts(changes.changed_connection_ids)),
        created,
    }
}

/// Adds to the refusal of a batch with deletions the call that deletes, and the batch without them.
pub fn deletions_apart(arguments: &Value, failure: Failure) -> Failure {
    let operations = arguments["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut delete, mut others) =
        (json!({"canvas": arguments["canvas"], "revision": arguments["revision"]}), Vec::new());
    for operation in operations {
        match deleted(operation) {
            Some((list, named)) => match delete.get_mut(list).and_then(Value::as_array_mut) {
                Some(names) => names.push(named.clone()),
                None => delete[list] = json!([named]),
            },
            None => others.push(operation),
        }
    }
    if others.len() == operations.len() {
        return failure;
    }
    let failure =
        failure.then(Next::new("canvas_delete", delete, "deletions are a call of their own; ask a person first"));
    if others.is_empty() {
        return failure;
    }
    let mut rest = arguments.clone();
    rest["operations"] = json!(others);
    failure.then(Next::new("canvas_edit", rest, "the batch without deletions"))
}

/// The violations of `clientId`s of the form of a ref: within its batch, one would stand for another node than the ref does on the
/// canvas.
fn names_of_refs(arguments: &Arguments) -> Vec<Violation> {
    let is_ref = |id: &str| id.parse::<NodeRef>().is_ok() || id.parse::<ConnectionRef>().is_ok();
    let refused = arguments.operations.iter().enumerate().filter_map(|(index, operation)| {
        let id = operation.0.get("clientId")?.as_str().filter(|id| is_ref(id))?;
        let message = format!("has the form of a ref, which names what is on the canvas: use new-{}", &id[1..]);
        Some(Violation::new(format!("operations[{index}].clientId"), message))
    });
    refused.collect()
}

fn is_section(node: &NewNode) -> bool {
    node.metadata.as_ref().and_then(|metadata| metadata.get("section")).is_some_and(|section| *section == true)
}

/// Adds to a batch that findings block the batch that would pass: what covers something goes to the free place that is nearest to
/// where it was to be. A dry run has found it to pass.
async fn free_places(failure: Failure, call: &Call, canvas: &str, arguments: &Arguments) -> Failure {
    let errors = failure.refusal.findings.iter().flatten().filter(|finding| finding.severity == Severity::Error);
    let named: Vec<String> = errors
        .flat_map(|finding| {
            let ids = finding.node_handles.iter().map(|handle| handle.trim_start_matches("node:").to_owned());
            ids.chain(finding.node_refs.iter().map(ToString::to_string))
        })
        .collect();
    if named.is_empty() {
        return failure;
    }
    let is_named = |id: &str| named.iter().any(|name| id.strip_prefix("node:").unwrap_or(id) == name);
    let mut moved = Vec::new();
    let mut operations = Vec::new();
    for (index, sent) in arguments.operations.iter().enumerate() {
        let sent = json!(sent);
        match operation::Operation::deserialize(&sent) {
            // Its id is not known before it is made, so each one that has a position may be meant.
            Ok(operation::Operation::NodeCreate { client_id, node, near, section_id })
                if node.position.is_some() && !is_section(&node) =>
            {
                let id = client_id.unwrap_or_else(|| format!("new-{}", index + 1));
                moved.extend(node.position.map(|position| (id.clone(), position)));
                let node = NewNode { position: None, ..node };
                operations.push(json!(operation::Operation::NodeCreate {
                    client_id: Some(id),
                    node,
                    near,
                    section_id
                }));
            }
            Ok(operation::Operation::NodeMove { node_id, position, with_members: false }) if is_named(&node_id) => {
                moved.push((node_id, position));
            }
            _ => operations.push(sent),
        }
    }
    if moved.is_empty() {
        return failure.then(Next::new("canvas_read", json!({"canvas": canvas}), "the places that are taken"));
    }
    for (node, Position { x, y }) in moved {
        operations.push(json!({"type": "layout.arrange", "layout": "row", "nodeIds": [node], "x": x, "y": y}));
    }
    match call.dry_run(canvas, &operations).await {
        Ok(read) if !read.validation.is_blocked() => {
            let edit = json!({"canvas": canvas, "revision": read.canvas.revision, "operations": operations});
            failure.then(Next::new("canvas_edit", edit, "the same on the nearest free places; a dry run has passed"))
        }
        _ => failure.then(Next::new("canvas_read", json!({"canvas": canvas}), "the places that are taken")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_with_deletions_is_answered_with_two_calls() {
        let create = json!({"type": "node.create", "node": {"type": "text"}});
        let operations = json!([
            {"type": "node.delete", "nodeId": "n1"}, create, {"type": "connection.delete", "connectionId": "c2"},
            {"type": "node.delete", "nodeId": "n3"},
        ]);
        let refused = || Failure::invalid(Vec::new());
        let batch = json!({"canvas": "~7kq2m9xa", "revision": "r1", "operations": operations, "rebase": true});
        let next = deletions_apart(&batch, refused()).next;
        let delete = json!({"canvas": "~7kq2m9xa", "revision": "r1", "nodes": ["n1", "n3"], "connections": ["c2"]});
        assert_eq!((next[0].tool, &next[0].arguments), ("canvas_delete", &delete));
        let rest = json!({"canvas": "~7kq2m9xa", "revision": "r1", "operations": [create], "rebase": true});
        assert_eq!((next[1].tool, &next[1].arguments), ("canvas_edit", &rest));
        let alone = json!({"canvas": "~7kq2m9xa", "revision": "r1", "operations": [operations[0]]});
        assert_eq!(deletions_apart(&alone, refused()).next.len(), 1);
        assert!(deletions_apart(&rest, refused()).next.is_empty());
    }

    #[test]
    fn what_was_created_is_not_listed_as_changed() {
        let summary = json!({
            "id": "b", "handle": "canvas:a:b", "ownerUid": "a", "title": "T", "createdAt": "2026-01-01T12:00:00.000Z",
            "updatedAt": "2026-01-01T12:00:00.000Z", "revision": "r2", "nodeCount": 2, "connectionCount": 1,
        });
        let result = json!({
            "canvas": summary, "replayed": false, "resolvedIds": {"a": "id-1"},
            "refs": {"id-1": "n1", "id-2": "n2", "id-3": "c1"},
            "changedNodeIds": ["id-1", "id-2"], "deletedNodeIds": [], "changedConnectionIds": ["id-3"],
            "deletedConnectionIds": [],
        });
        let effect = applied(serde_json::from_value(result).expect("a result"));
        assert_eq!(
            json!(effect),
            json!({"replayed": false, "created": {"a": "n1"}, "changedNodes": ["n2"], "changedConnections": ["c1"]})
        );
    }
}
