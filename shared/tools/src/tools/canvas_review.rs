//! The review of a canvas.

use client::answers;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::{Answer, Next};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::finding;
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

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    canvas: String,
    revision: String,
    done_claim_allowed: bool,
    status: String,
    instruction: String,
    outputs: Value,
    // Outputs that are pending, failed or not stored, and why.
    delivery: Value,
    // Empty nodes to fill, to delete, or to mark as placeholders.
    empty_slots: Vec<String>,
    // Work that owes outputs, with what can be done: `retry` is the body of a start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    works: Vec<Value>,
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
        let mut outputs = json!(review.outputs);
        if let Some(outputs) = outputs.as_object_mut() {
            outputs.remove("handles");
        }
        let delivery = review.delivery;
        let is_work = |handle: &&String| !handle.starts_with("node:");
        let waits = delivery.pending_output_handles.iter().filter(is_work).map(|handle| Next::wait(handle));
        let repairs = repairs.unwrap_or_default();
        let edit = (!repairs.operations.is_empty()).then(|| {
            let edit = json!({"canvas": canvas.handle, "revision": canvas.revision, "operations": repairs.operations});
            Next::new(
                "canvas_edit",
                edit,
                "fits Sections and texts, moves apart what overlaps or touches, lines up Sections",
            )
        });
        let mut next: Vec<Next> = edit.into_iter().chain(waits).collect();
        for step in &mut next {
            resubmit::shorten(call, step).await;
        }
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
            empty_slots: repairs.deletions.iter().map(|node| node.handle()).collect(),
            works: repairs.works.iter().map(|work| json!(work)).collect(),
            findings: findings.iter().take(FINDINGS_MAX).map(finding).collect(),
            revision: canvas.revision,
        };
        Ok(Answer::new(output))
    }
}
