//! The review of a canvas.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use client::{Client, answers};
use domain::account::Scope;
use domain::canvas::{CanvasSummary, Node};
use domain::known::Name;
use domain::metadata::WritableMetadata;
use domain::review::{Finding, FindingCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::finding;
use crate::tool::{Hints, Result, Tool};

/// Maximum number of findings, and of proposed operations, in an answer.
const FINDINGS_MAX: usize = 30;

pub struct CanvasReview;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    canvas: String,
    revision: String,
    done_claim_allowed: bool,
    status: String,
    instruction: String,
    outputs: Value,
    /// Outputs that are pending, failed or not stored, and why.
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
    const ABOUT: &'static str =
        "Findings of a canvas, and whether you may say that the work is done (doneClaimAllowed).";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let answers::CanvasReview { canvas, validation } =
            call.client.review_canvas(&arguments.canvas.handle()).await?.value()?;
        let (review, findings) = (validation.completion_review, validation.findings);
        let mut outputs = json!(review.outputs);
        if let Some(outputs) = outputs.as_object_mut() {
            outputs.remove("handles");
        }
        let delivery = review.delivery;
        let is_work = |handle: &&String| !handle.starts_with("node:");
        let waits = delivery.pending_output_handles.iter().filter(is_work).map(|handle| Next::wait(handle));
        let next: Vec<Next> = repair(&call.client, &canvas, &findings).await.into_iter().chain(waits).collect();
        let output = Output {
            canvas: canvas.handle.to_string(),
            done_claim_allowed: review.done_claim_allowed,
            status: review.status.to_string(),
            instruction: review.instruction,
            outputs,
            more_findings: validation.truncated || findings.len() > FINDINGS_MAX,
            compare_with_product: review.product_fidelity.needs_review_output_handles,
            next,
            delivery: json!(delivery),
            findings: findings.iter().take(FINDINGS_MAX).map(finding).collect(),
            revision: canvas.revision,
        };
        Ok(Answer::new(output))
    }
}

/// The batch that would end the overlaps, near misses and overflows among the first findings. Nodes that a person made stay where
/// they are.
async fn repair(client: &Client, canvas: &CanvasSummary, findings: &[Finding]) -> Option<Next> {
    let on = canvas.handle.to_string();
    let mut operations = Vec::new();
    let mut nodes: HashMap<&str, Node> = HashMap::new();
    for finding in findings.iter().take(FINDINGS_MAX).filter(|finding| finding.holds_claim) {
        match (&finding.code, finding.node_handles.as_slice()) {
            (Name::Known(FindingCode::AgentOverlap | FindingCode::FramesTouch), [first, second, ..]) => {
                for handle in [first, second] {
                    if let Entry::Vacant(entry) = nodes.entry(handle)
                        && let Ok(read) = client.get_node(&on, handle).await.and_then(|read| read.value())
                    {
                        entry.insert(read.node);
                    }
                }
                let (Some(a), Some(b)) = (nodes.get(first.as_str()), nodes.get(second.as_str())) else { continue };
                let WritableMetadata { section_id, .. } = a.metadata.read();
                if section_id.as_ref() == Some(&b.id) {
                    if b.metadata.is_by_agent() {
                        operations.push(json!({"type": "section.fit", "nodeId": second}));
                    }
                    continue;
                }
                // One of the two is an agent's.
                let (moved, near) = if b.metadata.is_by_agent() { (second, first) } else { (first, second) };
                operations.push(json!({"type": "layout.arrange", "layout": "row", "nodeIds": [moved], "near": near}));
            }
            // The Section is the last one.
            (Name::Known(FindingCode::SectionOverflow), [.., section]) => {
                operations.push(json!({"type": "section.fit", "nodeId": section}));
            }
            _ => {}
        }
    }
    operations.dedup();
    let edit = json!({"canvas": on, "revision": canvas.revision, "operations": operations});
    (!operations.is_empty()).then(|| {
        Next::new("canvas_edit", edit, "moves apart what overlaps or touches, and fits Sections to their members")
    })
}
