//! A batch of operations.

use std::collections::BTreeMap;

use client::Client;
use client::answers::MutationResult;
use domain::Violation;
use domain::account::Scope;
use domain::canvas::Changes;
use domain::graph::Position;
use domain::id::CanvasHandle;
use domain::operation::{self, NewNode};
use domain::refs::{ConnectionRef, NodeRef};
use domain::review::{DryRun, Proposal, Severity};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Next, texts};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::{Failure, finding};
use crate::resubmit;
use crate::schema::one_of;
use crate::stale;
use crate::tool::{Hints, Result, Tool};

/// Maximum number of findings in an answer.
const FINDINGS_MAX: usize = 20;

pub struct CanvasEdit;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// From your last read or write
    revision: String,
    /// Forms, ? may be left out: node.create {clientId?, node: {type, title?, position?, width?, height?, asset?, metadata?}, near?,
    /// sectionId?}; node.update {nodeId, patch: {title?, width?, height?, metadata?, type?}}; node.move {nodeId, position,
    /// withMembers?}; node.duplicate {nodeId, clientId?, position}; node.delete, node.restore {nodeId}; connection.create
    /// {fromNodeId, toNodeId, purpose?, role?}; connection.update {connectionId, purpose?, role?}; connection.delete,
    /// connection.restore {connectionId}; layout.arrange {nodeIds or sectionId, layout: row|column|grid|masonry|flow, gap?, columns?,
    /// align?, direction?, near? or x?, y?}; section.create {clientId?, title, nodeIds?, near? or x?, y?}; section.fit, node.fit
    /// {nodeId}; canvas.update {title}. metadata: the text of text and sticky is content; altText says what an image or video shows;
    /// also color, tags, sectionId, custom; null removes
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
struct Operation {
    #[schemars(schema_with = "types")]
    r#type: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

fn types(_: &mut SchemaGenerator) -> Schema {
    one_of(operation::Operation::types().iter().map(String::as_str))
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    canvas: String,
    revision: String,
    dry_run: bool,
    replayed: bool,
    /// Refs or, in a dry run, provisional ids by clientId.
    created: BTreeMap<String, String>,
    changed_nodes: Vec<String>,
    deleted_nodes: Vec<String>,
    changed_connections: Vec<String>,
    deleted_connections: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<Value>>,
    /// What a batch that was set aside did, or would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    did: Option<String>,
}

impl Tool for CanvasEdit {
    const NAME: &'static str = "canvas_edit";
    const TITLE: &'static str = "Edit a canvas";
    const ABOUT: &'static str = "Change a canvas in one atomic batch. Later operations may name clientIds of earlier ones. Without a \
                                 position the service finds a free place. Overlaps are refused with a batch that fits.";
    const HINTS: Hints = Hints::CHANGE;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, mut arguments: Arguments) -> Result<Answer<Output>> {
        let canvas = arguments.canvas.handle();
        let key = match (&arguments.resubmit, arguments.operations.is_empty()) {
            (None, false) => call.key(),
            (None, true) => return Err(Failure::argument("operations", "is required")),
            (Some(id), true) => {
                arguments.operations = resubmit::read(call, &canvas, id).await?;
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
            let read = dry_run(&call.client, &canvas, &operations).await?;
            let findings = read.validation.findings.iter().take(FINDINGS_MAX).map(finding).collect();
            let Proposal { resolved_ids, changes, .. } = read.proposal;
            return Ok(Answer::new(Output {
                dry_run: true,
                findings: Some(findings),
                did: arguments.did(&operations, &BTreeMap::new()),
                ..Output::new(&read.canvas.handle, &read.canvas.revision, resolved_ids, changes)
            }));
        }
        let body = json!({"baseRevision": arguments.revision, "idempotencyKey": key, "operations": operations});
        let mut request = call.client.apply_operations(&canvas).json(&body).prefer("return=minimal");
        if arguments.rebase != Some(false) {
            request = request.prefer("handling=lenient");
        }
        match request.cast().await {
            Ok(answer) => {
                let MutationResult { canvas, replayed, resolved_ids, refs, changes } = answer.value()?;
                let output = Output::new(canvas.handle(), canvas.revision(), resolved_ids, changes);
                let did = arguments.did(&operations, &refs);
                Ok(Answer::new(Output { replayed, did, ..output.by_refs(&refs) }))
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

async fn dry_run(client: &Client, canvas: &str, operations: &[Value]) -> Result<DryRun> {
    let body = json!({"validateOnly": true, "operations": operations});
    Ok(client.apply_operations(canvas).cast().json(&body).await?.value()?)
}

impl Output {
    fn new(canvas: &CanvasHandle, revision: &str, created: BTreeMap<String, String>, changes: Changes) -> Self {
        Self {
            canvas: canvas.to_string(),
            revision: revision.to_owned(),
            dry_run: false,
            replayed: false,
            created,
            changed_nodes: texts(changes.changed_node_ids),
            deleted_nodes: texts(changes.deleted_node_ids),
            changed_connections: texts(changes.changed_connection_ids),
            deleted_connections: texts(changes.deleted_connection_ids),
            findings: None,
            did: None,
        }
    }
}

impl Output {
    /// The same with refs in place of ids, where there are any.
    fn by_refs(mut self, refs: &BTreeMap<String, String>) -> Self {
        let ids = self.created.values_mut().chain(&mut self.changed_nodes).chain(&mut self.changed_connections);
        for id in ids {
            if let Some(name) = refs.get(id) {
                id.clone_from(name);
            }
        }
        self
    }
}

/// The violations of `clientId`s of the form of a ref: within its batch, one would stand for another node than the ref does on the
/// canvas.
fn names_of_refs(arguments: &Arguments) -> Vec<Violation> {
    let is_ref = |id: &str| id.parse::<NodeRef>().is_ok() || id.parse::<ConnectionRef>().is_ok();
    let refused = arguments.operations.iter().enumerate().filter_map(|(index, operation)| {
        let id = operation.rest.get("clientId")?.as_str().filter(|id| is_ref(id))?;
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
    let named: Vec<&String> = errors.flat_map(|finding| &finding.node_handles).collect();
    if named.is_empty() {
        return failure;
    }
    let is_named = |id: &str| {
        named.iter().any(|handle| id.strip_prefix("node:").unwrap_or(id) == handle.trim_start_matches("node:"))
    };
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
    match dry_run(&call.client, canvas, &operations).await {
        Ok(read) if !read.validation.is_blocked() => {
            let edit = json!({"canvas": canvas, "revision": read.canvas.revision, "operations": operations});
            failure.then(Next::new("canvas_edit", edit, "the same on the nearest free places; a dry run has passed"))
        }
        _ => failure.then(Next::new("canvas_read", json!({"canvas": canvas}), "the places that are taken")),
    }
}
