//! Whether a canvas is in order.

use std::collections::HashMap;

use client::Client;
use domain::account::Scope;
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
    findings: Vec<Value>,
    more_findings: bool,
    /// Outputs that a person should compare with the product.
    compare_with_product: Vec<Value>,
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
        let read = call.client.review_canvas(&arguments.canvas.handle()).await?.json();
        let (canvas, validation) = (&read["canvas"], &read["validation"]);
        let review = &validation["completionReview"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings: Vec<&Value> = validation["findings"].as_array().into_iter().flatten().collect();
        let mut outputs = review["outputs"].clone();
        if let Some(outputs) = outputs.as_object_mut() {
            outputs.remove("handles");
        }
        let output = Output {
            canvas: text(&canvas["handle"]),
            revision: text(&canvas["revision"]),
            done_claim_allowed: review["doneClaimAllowed"] == true,
            status: text(&review["status"]),
            instruction: text(&review["instruction"]),
            outputs,
            more_findings: validation["truncated"] == true || findings.len() > FINDINGS_MAX,
            compare_with_product: review["productFidelity"]["needsReviewOutputHandles"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
            next: repair(&call.client, canvas, &findings).await.into_iter().collect(),
            findings: findings.into_iter().take(FINDINGS_MAX).map(finding).collect(),
        };
        Ok(Answer::new(output))
    }
}

/// The batch that would end the overlaps and overflows among the first findings. What a person made stays where it is.
async fn repair(client: &Client, canvas: &Value, findings: &[&Value]) -> Option<Next> {
    let on = canvas["handle"].as_str()?;
    let mut operations = Vec::new();
    let mut owners = HashMap::new();
    for finding in findings.iter().take(FINDINGS_MAX) {
        let nodes: Vec<&str> =
            finding["nodeHandles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match (finding["code"].as_str(), nodes.as_slice()) {
            (Some("agent_overlap"), [first, second, ..]) => {
                // One of the two is an agent's.
                if !owners.contains_key(second) {
                    let Ok(read) = client.get_node(on, second).await else { continue };
                    owners.insert(*second, read.json()["node"]["metadata"]["createdBy"] == "user");
                }
                let (moved, near) = if owners[second] { (first, second) } else { (second, first) };
                operations.push(json!({"type": "layout.arrange", "layout": "row", "nodeIds": [moved], "near": near}));
            }
            // The Section is the last one.
            (Some("section_overflow"), [.., section]) => {
                operations.push(json!({"type": "section.fit", "nodeId": section}));
            }
            _ => {}
        }
    }
    operations.dedup();
    let edit = json!({"canvas": on, "revision": canvas["revision"], "operations": operations});
    (!operations.is_empty())
        .then(|| Next::new("canvas_edit", edit, "moves apart what overlaps and fits Sections to their members"))
}
