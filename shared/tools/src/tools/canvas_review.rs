//! The review of a canvas.

use std::collections::BTreeMap;

use client::answers;
use domain::account::Scope;
use domain::id::is_plain_id;
use domain::known::Name;
use domain::review::{Finding, Remedy, RemedyKind, WorkRepair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::finding;
use crate::names::{NamedCanvas, Names};
use crate::resubmit;
use crate::tool::{Hints, Result, Tool};

/// Maximum number of findings, and of proposed operations, in an answer.
const FINDINGS_MAX: usize = 30;

pub struct CanvasReview;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    on: NamedCanvas,
    revision: String,
    done_claim_allowed: bool,
    status: String,
    instruction: String,
    outputs: Value,
    // Outputs that are pending, failed or not stored, and why.
    delivery: Value,
    findings: Vec<Value>,
    more_findings: bool,
    /// Outputs that a person should compare with the product.
    compare_with_product: Vec<String>,
    next: Vec<Next>,
}

impl Tool for CanvasReview {
    const NAME: &'static str = "canvas_review";
    const TITLE: &'static str = "Review a canvas";
    const ABOUT: &'static str = "Findings, and whether you may say that the work is done (doneClaimAllowed).";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let answers::CanvasReview { canvas, validation, repairs } =
            call.client.review_canvas(&arguments.canvas.handle()).query("repairs", true).await?.value()?;
        let (review, findings) = (validation.completion_review, validation.findings);
        let handle = canvas.handle.to_string();
        let on = NamedCanvas::of(call, &canvas);
        let mut outputs = json!(review.outputs);
        if let Some(outputs) = outputs.as_object_mut() {
            outputs.remove("handles");
        }
        let delivery = review.delivery;
        let is_work = |handle: &&String| !handle.starts_with("node:");
        let pending = delivery.pending_output_handles.iter().filter(is_work);
        let waits: Vec<Next> = pending.map(|handle| Next::wait(handle)).collect();
        let repairs = repairs.unwrap_or_default();
        let mut short = Short::of(&findings);
        let mut operations = json!(repairs.operations);
        let listed = [
            &delivery.pending_output_handles,
            &delivery.failed_output_handles,
            &delivery.non_durable_output_handles,
            &review.product_fidelity.needs_review_output_handles,
        ];
        let listed = listed.into_iter().flatten().cloned();
        let listed: Vec<String> = listed.chain(ids_of(&mut operations).into_iter().map(|id| id.clone())).collect();
        short.look_up(call, &handle, listed).await;
        for id in ids_of(&mut operations) {
            *id = short.name(id);
        }
        let edit = (!repairs.operations.is_empty()).then(|| {
            let edit = json!({"canvas": on.canvas, "revision": canvas.revision, "operations": operations});
            Next::new(
                "canvas_edit",
                edit,
                "fits Sections and texts, moves apart what overlaps or touches, lines up Sections",
            )
        });
        let slots: Vec<String> = repairs.deletions.iter().map(|node| short.name(node.as_str())).collect();
        let delete = (!slots.is_empty()).then(|| {
            let delete = json!({"canvas": on.canvas, "revision": canvas.revision, "nodes": slots});
            Next::new(
                "canvas_delete",
                delete,
                "empty slots of agents, if none is to be filled or kept as a placeholder",
            )
        });
        let mut delivery = json!(delivery);
        for handles in delivery.as_object_mut().into_iter().flat_map(|members| members.values_mut()) {
            for handle in handles.as_array_mut().into_iter().flatten() {
                if let Value::String(handle) = handle {
                    *handle = short.name(handle);
                }
            }
        }
        let compared = &review.product_fidelity.needs_review_output_handles;
        let remedies = repairs.works.iter().flat_map(|work| remedies(work, &on.canvas));
        let mut next: Vec<Next> = edit.into_iter().chain(delete).chain(waits).chain(remedies).collect();
        for step in &mut next {
            resubmit::shorten(call, step).await;
        }
        let output = Output {
            on,
            done_claim_allowed: review.done_claim_allowed,
            status: review.status.to_string(),
            instruction: review.instruction,
            outputs,
            more_findings: validation.truncated || findings.len() > FINDINGS_MAX,
            compare_with_product: compared.iter().map(|handle| short.name(handle)).collect(),
            next,
            delivery,
            findings: findings.iter().take(FINDINGS_MAX).map(finding).collect(),
            revision: canvas.revision,
        };
        Ok(Answer::new(output))
    }
}

/// What can be done about ended work that owes outputs: start them again, if there is a start that makes them, or give them up.
fn remedies(work: &WorkRepair, canvas: &str) -> Vec<Next> {
    let step = |remedy: &Remedy| match &remedy.kind {
        Name::Known(RemedyKind::Retry) => start(remedy, canvas),
        Name::Known(RemedyKind::GiveUp) => {
            let arguments = json!({"run": work.handle, "removeTargets": true});
            Some(Next::new("run_cancel", arguments, "gives up what it owes, if the user agrees; say what is missing"))
        }
        _ => None,
    };
    work.remedies.iter().filter_map(step).collect()
}

/// The call that makes a start of the contract.
fn start(remedy: &Remedy, canvas: &str) -> Option<Next> {
    let mut arguments = remedy.body.clone()?;
    // The tool restores what a mask keeps.
    if arguments.contains_key("maskComposite") {
        return None;
    }
    arguments.insert("canvas".to_owned(), canvas.into());
    arguments.remove("canvasId");
    let why = "makes what it owes, and costs as any start";
    let is_video = remedy.path == "/videos/generate";
    for reference in arguments.get_mut("references").and_then(Value::as_array_mut).into_iter().flatten() {
        // The tool of videos takes no roles.
        if is_video || reference.get("role").is_none() {
            *reference = reference["handle"].take();
        }
    }
    if is_video {
        return Some(Next::new("video_generate", arguments.into(), why));
    }
    arguments.insert("mode".to_owned(), remedy.path.strip_prefix("/images/")?.into());
    for (of_contract, argument) in [("baseRevision", "revision"), ("place", "count")] {
        if let Some(mut value) = arguments.remove(of_contract) {
            let value = if of_contract == "place" { value["count"].take() } else { value };
            arguments.insert(argument.to_owned(), value);
        }
    }
    Some(Next::new("image_generate", arguments.into(), why))
}

/// Refs by plain ids.
struct Short(BTreeMap<String, String>);

impl Short {
    /// Those that findings name.
    fn of(findings: &[Finding]) -> Self {
        let of = |finding: &Finding| {
            let named = finding.node_handles.len() == finding.node_refs.len();
            let pairs = finding.node_handles.iter().zip(&finding.node_refs).filter(move |_| named);
            pairs.map(|(handle, name)| (plain(handle).to_owned(), name.to_string())).collect::<Vec<_>>()
        };
        Self(findings.iter().flat_map(of).collect())
    }

    /// Adds those of other nodes of a canvas.
    async fn look_up(&mut self, call: &Call, canvas: &str, nodes: Vec<String>) {
        let is_open = |node: &String| is_plain_id(plain(node)) && !self.0.contains_key(plain(node));
        let open: Vec<String> = nodes.into_iter().filter(is_open).collect();
        let named = open.iter().map(|node| (canvas.to_owned(), Some(node.clone()))).collect();
        let names = Names::read(call, named).await;
        self.0.extend(open.iter().map(|node| (plain(node).to_owned(), names.node(canvas, node))));
    }

    /// The ref of a node, or the name that was given.
    fn name(&self, node: &str) -> String {
        self.0.get(plain(node)).map_or(node, String::as_str).to_owned()
    }
}

fn plain(node: &str) -> &str {
    node.strip_prefix("node:").unwrap_or(node)
}

/// The members of operations that name nodes.
fn ids_of(operations: &mut Value) -> Vec<&mut String> {
    let members = operations.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut).flatten();
    let named = members.filter(|(name, _)| matches!(name.as_str(), "nodeId" | "nodeIds" | "sectionId" | "near"));
    let ids = named.flat_map(|(_, value)| match value {
        Value::Array(ids) => ids.iter_mut().collect(),
        id => vec![id],
    });
    ids.filter_map(|id| if let Value::String(id) = id { Some(id) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_name_nodes_by_refs() {
        let mut operations = json!([
            {"type": "node.move", "nodeId": "id-1", "position": {"x": 0, "y": 1}},
            {"type": "layout.arrange", "layout": "row", "nodeIds": ["id-2", "id-1"], "near": "id-3"},
        ]);
        let short = Short([("id-1", "n1"), ("id-2", "n2")].map(|(id, name)| (id.to_owned(), name.to_owned())).into());
        for id in ids_of(&mut operations) {
            *id = short.name(id);
        }
        assert_eq!(operations[0]["nodeId"], "n1");
        assert_eq!(
            operations[1],
            json!({"type": "layout.arrange", "layout": "row", "nodeIds": ["n2", "n1"], "near": "id-3"})
        );
        assert_eq!((short.name("node:id-2"), short.name("run:id-2")), ("n2".to_owned(), "run:id-2".to_owned()));
    }
}
