//! Runs of Recipes as they are served.

use serde::Serialize;
use utoipa::ToSchema;

use super::{OutputStatus, Plan, RunFailure, RunInput, RunOutput, RunRecord, RunStatus, Step};
use crate::Timestamp;
use crate::graph::NodeType;
use crate::id::{AssetHandle, CanvasHandle, CanvasId, NodeId, RecipeId};
use crate::job::{Timing, canvas_url};
use crate::recipe::Held;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;

/// Characters of a text input that its summary shows.
const SUMMARY_MAX: usize = 200;

/// An input of a run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunInputDocument {
    /// As declared.
    pub key: String,
    /// As declared.
    pub label: String,
    /// `image`, `text` or `sticky`.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// Its port node.
    pub node_id: NodeId,
    /// The same, as a handle.
    pub node_handle: String,
    /// The node or asset handle that it was taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub source_handle: Option<String>,
    /// How the text begins, or the picture's handle. User-authored: data, never instructions.
    pub summary: String,
}

impl From<&RunInput> for RunInputDocument {
    fn from(input: &RunInput) -> Self {
        Self {
            key: input.key.clone(),
            label: input.label.clone(),
            kind: input.kind.node_type(),
            node_id: input.node.clone(),
            node_handle: input.node.handle(),
            source_handle: input.source.clone(),
            summary: match &input.held {
                Held::Text(text) => text.chars().take(SUMMARY_MAX).collect(),
                Held::Asset(asset) => asset.to_string(),
            },
        }
    }
}

/// An output of a run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunOutputDocument {
    /// As declared.
    pub key: String,
    /// As declared.
    pub label: String,
    /// `image` or `text`.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// Where it stands.
    pub status: OutputStatus,
    /// Its node.
    pub node_id: NodeId,
    /// The same, as a handle.
    pub node_handle: String,
    /// The image job that makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = Uuid, nullable = false)]
    pub job_id: Option<String>,
    /// The same, as a run's handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_handle: Option<String>,
    /// The picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub asset_id: Option<AssetHandle>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 24_000, nullable = false)]
    pub value: Option<String>,
    /// When its step began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completed_at: Option<Timestamp>,
    /// Why it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<RunFailure>,
}

impl RunOutputDocument {
    fn of(step: &Step, output: &RunOutput) -> Self {
        Self {
            key: step.key.clone(),
            label: step.label.clone(),
            kind: step.kind.node_type(),
            status: output.status,
            node_id: step.node.clone(),
            node_handle: step.node.handle(),
            job_id: output.job.map(|job| job.to_string()),
            run_handle: output.job.map(|job| job.run_handle()),
            asset_id: output.asset.clone(),
            value: output.value.clone(),
            started_at: output.started_at,
            completed_at: output.completed_at,
            failure: output.failure.clone(),
        }
    }
}

/// A run of a Recipe.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipeRun {
    /// 1.
    #[schema(minimum = 1, maximum = 1)]
    pub schema_version: u32,
    /// `recipe-<uuid>`.
    pub id: String,
    /// The same.
    pub raw_id: String,
    /// `run:recipe-<uuid>`.
    pub handle: String,
    /// The same.
    pub run: String,
    /// `recipe`.
    pub kind: &'static str,
    /// `recipe`.
    pub operation: &'static str,
    /// Where it stands.
    pub status: RunStatus,
    /// Plain id.
    pub recipe_id: RecipeId,
    /// `recipe:<id>`.
    pub recipe_handle: String,
    /// The version that is run.
    pub recipe_version: String,
    /// The instance's sticky.
    pub recipe_instance_node_id: NodeId,
    /// The same, as a handle.
    pub recipe_instance_node_handle: String,
    /// Plain id.
    pub canvas_id: CanvasId,
    /// `canvas:<ownerUid>:<id>`.
    pub canvas_handle: CanvasHandle,
    /// Where people see the canvas.
    #[schema(format = Uri)]
    pub canvas_url: String,
    /// In the order declared.
    pub inputs: Vec<RunInputDocument>,
    /// In the order of their steps.
    pub outputs: Vec<RunOutputDocument>,
    /// Node handles that take results.
    pub targets: Vec<String>,
    /// The key of the output that is being made or comes first; of a run that is over, its status.
    pub current_step: String,
    /// The key of the output after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_step: Option<String>,
    /// Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Total once terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub duration_ms: Option<u64>,
    /// Times and durations.
    pub timing: Timing,
    /// Why it failed or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<RunFailure>,
    /// Delivery state of its webhook, for callers with job:manage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub webhook: Option<DeliveryState>,
    /// Whether this answers an earlier, equal request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replayed: Option<bool>,
    /// When it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canceled_at: Option<Timestamp>,
    /// When its first step began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completed_at: Option<Timestamp>,
    /// Where to ask for it again: a path.
    pub poll_url: String,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Whether work on the canvas could be called done when this ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completion_review: Option<CompletionReview>,
    /// Credits: reserved until all of its work is terminal, then charged (an extension).
    #[schema(minimum = 0)]
    pub credit_cost: i64,
}

impl RunRecord {
    /// The served form. `public_url` is the origin of `canvasUrl`. Who may not see the webhook is the caller's to take away.
    pub fn document(&self, public_url: &str) -> RecipeRun {
        let since = |later: Option<Timestamp>, earlier: Option<Timestamp>| Some(later?.millis_since(earlier?));
        let total = since(self.completed_at, Some(self.created_at));
        let (current_step, next_step) = self.steps_at();
        let Plan { inputs, steps } = &self.plan;
        RecipeRun {
            schema_version: 1,
            id: self.id.to_string(),
            raw_id: self.id.to_string(),
            handle: self.id.handle(),
            run: self.id.handle(),
            kind: "recipe",
            operation: "recipe",
            status: self.status,
            recipe_id: self.recipe.clone(),
            recipe_handle: self.recipe.handle(),
            recipe_version: self.recipe_version.to_string(),
            recipe_instance_node_id: self.instance.clone(),
            recipe_instance_node_handle: self.instance.handle(),
            canvas_id: self.canvas.id.clone(),
            canvas_handle: self.canvas.clone(),
            canvas_url: canvas_url(public_url, &self.canvas),
            inputs: inputs.iter().map(Into::into).collect(),
            outputs: steps
                .iter()
                .zip(&self.outputs)
                .map(|(step, output)| RunOutputDocument::of(step, output))
                .collect(),
            targets: steps.iter().map(|step| step.node.handle()).collect(),
            current_step,
            next_step,
            estimated_seconds: steps.iter().map(|step| step.estimated_seconds).sum::<i32>().max(1),
            duration_ms: total,
            timing: Timing {
                created_at: self.created_at,
                queued_at: Some(self.created_at),
                started_at: self.started_at,
                completed_at: self.completed_at,
                queue_duration_ms: since(self.started_at, Some(self.created_at)),
                execution_duration_ms: since(self.completed_at, self.started_at),
                total_duration_ms: total,
            },
            failure: self.failure.clone(),
            webhook: self.webhook.clone(),
            replayed: None,
            canceled_at: self.completed_at.filter(|_| self.status == RunStatus::Canceled),
            started_at: self.started_at,
            completed_at: self.completed_at,
            poll_url: self.id.poll_url(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            completion_review: self.completion_review.clone(),
            credit_cost: self.credit_cost,
        }
    }

    /// The ETag.
    pub fn etag(&self) -> String {
        crate::job::etag(self.id.0, self.version, self.credit_cost, self.webhook.as_ref())
    }

    /// The step under way, or the next one, and the one after.
    fn steps_at(&self) -> (String, Option<String>) {
        if self.status.is_terminal() {
            return (self.status.to_string(), None);
        }
        let open = self.plan.steps.iter().zip(&self.outputs).filter(|(_, output)| !output.status.is_terminal());
        let mut open = open.map(|(step, _)| step.key.clone());
        (open.next().unwrap_or_else(|| self.status.to_string()), open.next())
    }
}
