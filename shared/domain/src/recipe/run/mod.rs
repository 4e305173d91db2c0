//! Runs of Recipes: statuses, plans, and the choice of the next step. Rules: `docs/reference/recipes.md#steps`.
//!
//! A run executes its steps one after another, in the order of the outputs. A failed step does not end the run: steps
//! that depend on its output are canceled, the others are executed, and the run fails at the end.

mod document;
#[cfg(test)]
pub(crate) mod tests;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::template::Template;
use super::{InputKind, OutputKind, PortValue, Version};
use crate::graph::{named, part};
use crate::id::{AccountUid, AssetHandle, CanvasHandle, JobId, NodeId, RecipeId};
use crate::job::ChosenModel;
use crate::limits::RECIPE_TEXT_MAX;
use crate::queue::WaitingFor;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;
use crate::{API_ROOT, Timestamp};

pub use document::{RecipeRun, RunDocument, RunInputDocument, RunOutputDocument};

named! {
    /// Status of a Recipe run.
    RunStatus {
        /// Accepted; no step has started.
        Queued = "queued",
        /// At least one step has started.
        Running = "running",
        /// Every output is stored.
        Succeeded = "succeeded",
        /// It ended without all of its outputs.
        Failed = "failed",
        /// It was canceled.
        Canceled = "canceled",
    }
}

part! {
    /// Status of a run that is over.
    TerminalRunStatus of RunStatus: |status| status.is_terminal()
}

impl RunStatus {
    /// Returns `true` if the run is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled)
    }
}

named! {
    /// Status of an output of a run.
    OutputStatus {
        /// The step has not started.
        Pending = "pending",
        /// The step is being executed.
        Running = "running",
        /// The output is stored.
        Succeeded = "succeeded",
        /// The step failed.
        Failed = "failed",
        /// The step was canceled, or depends on an output that does not exist.
        Canceled = "canceled",
    }
}

impl OutputStatus {
    /// Returns `true` if the step is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, OutputStatus::Succeeded | OutputStatus::Failed | OutputStatus::Canceled)
    }
}

named! {
    /// Why a run failed; a stable code.
    RunFailureCode {
        /// An input was deleted or can no longer be read.
        InputInvalid = "recipe_input_invalid",
        /// A step failed or was canceled by itself.
        StepFailed = "recipe_step_failed",
        /// A step succeeded without an output.
        OutputMissing = "recipe_output_missing",
        /// The run was canceled.
        RunCanceled = "recipe_run_canceled",
        /// The token, its session, its account or its role on the canvas is no longer valid.
        DelegationRevoked = "delegation_revoked",
    }
}

/// Why a run or one of its outputs failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// Stable code.
    pub code: RunFailureCode,
    /// Message for people.
    pub message: String,
    /// `true` if a new request may succeed.
    pub retryable: bool,
    /// Key of the first output that is missing for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_key: Option<String>,
}

/// The id of a run: `recipe-<uuid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub Uuid);

impl RunId {
    /// A new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// `run:recipe-<uuid>`.
    pub fn handle(self) -> String {
        format!("run:{self}")
    }

    /// The path of the run.
    pub fn poll_url(self) -> String {
        format!("{API_ROOT}/runs/{self}")
    }

    /// Parses `recipe-<uuid>`, with or without the prefix `run:`.
    pub fn parse(text: &str) -> Option<Self> {
        let uuid = text.strip_prefix("run:").unwrap_or(text).strip_prefix("recipe-")?;
        (uuid.len() == 36).then(|| Uuid::try_parse(uuid).ok()).flatten().map(Self)
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "recipe-{}", self.0)
    }
}

/// An input of a run as it was resolved when the run was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunInput {
    /// Key, as the Recipe declares it.
    pub key: String,
    /// Label, as the Recipe declares it.
    pub label: String,
    /// Type, as the Recipe declares it.
    pub kind: InputKind,
    /// Node of its port.
    pub node: NodeId,
    /// Full handle of the node or asset that the value comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The value.
    pub held: PortValue,
}

/// A step of a run as it was resolved when the run was accepted.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Key, as the Recipe declares it.
    pub key: String,
    /// Label, as the Recipe declares it.
    pub label: String,
    /// Type of the output.
    pub kind: OutputKind,
    /// The node that receives the output.
    pub node: NodeId,
    /// Template of the prompt.
    pub prompt: String,
    /// Keys of inputs and of outputs declared earlier.
    pub input_keys: Vec<String>,
    /// The model that runs the step.
    pub model: ChosenModel,
    /// Size of the image.
    pub size: Option<String>,
    /// Quality of the image.
    pub quality: Option<String>,
    /// Estimated seconds, at least 1. Guidance.
    pub estimated_seconds: i32,
}

/// Inputs and steps of a run. Stored with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Inputs in the order declared.
    pub inputs: Vec<RunInput>,
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// State of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutput {
    /// Status of the output.
    pub status: OutputStatus,
    /// The image job that makes it.
    pub job: Option<JobId>,
    /// The stored image.
    pub asset: Option<AssetHandle>,
    /// The text, at most 24000 characters.
    pub value: Option<String>,
    /// Why there is no output.
    pub failure: Option<RunFailure>,
    /// When the step started.
    pub started_at: Option<Timestamp>,
    /// When the step became terminal.
    pub completed_at: Option<Timestamp>,
}

/// An input or earlier output that a step uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepText<'a> {
    /// Key, as the Recipe declares it.
    pub key: &'a str,
    /// Label, as the Recipe declares it.
    pub label: &'a str,
    /// The text; `None` for an image.
    pub text: Option<&'a str>,
    /// `true` if an earlier step made it.
    pub is_made: bool,
}

/// Row of a run, with its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Id of the run.
    pub id: RunId,
    /// The account that started the run and pays for it.
    pub account: AccountUid,
    /// Status of the run.
    pub status: RunStatus,
    /// Grows with every visible change.
    pub version: i32,
    pub recipe: RecipeId,
    /// Version of the Recipe.
    pub recipe_version: Version,
    /// The canvas that the run writes to.
    pub canvas: CanvasHandle,
    /// The sticky note of the instance.
    pub instance: NodeId,
    /// Inputs and steps.
    pub plan: Plan,
    /// State of each output, in the order of the steps.
    pub outputs: Vec<RunOutput>,
    /// Why the run failed or was canceled.
    pub failure: Option<RunFailure>,
    /// Review of the canvas after the run's last write.
    pub completion_review: Option<CompletionReview>,
    /// Credits reserved until all work of the run is terminal, then credits charged.
    pub credit_cost: i64,
    /// When the run was accepted.
    pub created_at: Timestamp,
    /// When the first step started.
    pub started_at: Option<Timestamp>,
    /// When the run became terminal.
    pub completed_at: Option<Timestamp>,
    /// When the run last changed.
    pub updated_at: Timestamp,
    /// State of the webhook.
    pub webhook: Option<DeliveryState>,
    /// The cause of the wait. The gateway determines it when it serves a record that is not over.
    pub waiting_for: Option<WaitingFor>,
}

/// The next action of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this step.
    Begin(usize),
    /// This step is running: check on it.
    Follow(usize),
    /// Cancel this step: an output that it depends on does not exist.
    Cancel(usize),
    /// End the run: every output is terminal.
    End,
}

impl Plan {
    /// The action for the first step that is not terminal.
    pub fn next(&self, outputs: &[RunOutput]) -> Next {
        let Some(at) = outputs.iter().position(|output| !output.status.is_terminal()) else { return Next::End };
        let is_missing = |key: &String| {
            let source = self.steps.iter().position(|step| step.key == *key);
            source.and_then(|source| outputs.get(source)).is_some_and(|output| output.status != OutputStatus::Succeeded)
        };
        match outputs[at].status {
            OutputStatus::Running => Next::Follow(at),
            _ if self.steps[at].input_keys.iter().any(is_missing) => Next::Cancel(at),
            _ => Next::Begin(at),
        }
    }

    /// The prompt of a step: its template with texts inserted, and with labels in place of images, which are passed
    /// as [`references`](Plan::references). Inserted texts can be long, so the prompt is cut after at most `max` UTF-16
    /// code units, the unit in which models count, and never inside a character.
    pub fn prompt(&self, at: usize, outputs: &[RunOutput], max: usize) -> String {
        let text = Template::parse(&self.steps[at].prompt).render(|key| self.text(key, outputs));
        let mut room = max;
        let fits = |letter: &char| match room.checked_sub(letter.len_utf16()) {
            Some(rest) => {
                room = rest;
                true
            }
            None => false,
        };
        text.chars().take_while(fits).collect()
    }

    /// The text that replaces an input or earlier output in a prompt.
    fn text<'a>(&'a self, key: &str, outputs: &'a [RunOutput]) -> Option<&'a str> {
        if let Some(input) = self.inputs.iter().find(|input| input.key == key) {
            return Some(match &input.held {
                PortValue::Text(text) => text,
                PortValue::Asset(_) => &input.label,
            });
        }
        let (step, output) = self.steps.iter().zip(outputs).find(|(step, _)| step.key == key)?;
        Some(output.value.as_deref().unwrap_or(&step.label))
    }

    /// The images that a step uses, in the order of its `inputKeys`: handle and asset of each.
    pub fn references(&self, at: usize, outputs: &[RunOutput]) -> Vec<(String, AssetHandle)> {
        let image = |key: &String| {
            let input = self.inputs.iter().find(|input| input.key == *key);
            if let Some(RunInput { held: PortValue::Asset(asset), source, .. }) = input {
                return Some((source.clone().unwrap_or_else(|| asset.to_string()), asset.clone()));
            }
            let (step, output) = self.steps.iter().zip(outputs).find(|(step, _)| step.key == *key)?;
            Some((step.node.handle(), output.asset.clone()?))
        };
        self.steps[at].input_keys.iter().filter_map(image).collect()
    }

    /// The texts that a step uses, in the order of its `inputKeys`: key, label and text of each. Without a text, it is an
    /// image.
    pub fn texts<'a>(&'a self, at: usize, outputs: &'a [RunOutput]) -> Vec<StepText<'a>> {
        let text = |key: &String| {
            if let Some(input) = self.inputs.iter().find(|input| input.key == *key) {
                let text = match &input.held {
                    PortValue::Text(text) => Some(text.as_str()),
                    PortValue::Asset(_) => None,
                };
                return Some(StepText { key: &input.key, label: &input.label, text, is_made: false });
            }
            let (step, output) = self.steps.iter().zip(outputs).find(|(step, _)| step.key == *key)?;
            Some(StepText { key: &step.key, label: &step.label, text: output.value.as_deref(), is_made: true })
        };
        self.steps[at].input_keys.iter().filter_map(text).collect()
    }

    /// Returns `true` if the embedded runtime runs a step.
    pub fn is_stand_in(&self) -> bool {
        self.steps.iter().any(|step| step.model.is_stand_in())
    }

    /// Credits of all steps together.
    pub fn credit_cost(&self) -> i64 {
        self.steps.iter().map(|step| step.model.credit_cost).sum()
    }

    /// Estimated duration of all steps, which run one after another, in seconds; at least 1.
    pub fn estimated_seconds(&self) -> i32 {
        self.steps.iter().map(|step| step.estimated_seconds).sum::<i32>().max(1)
    }

    /// The model of the images, or, without images, of the texts; `None` when these steps use several.
    pub fn model(&self) -> Option<&ChosenModel> {
        let makes_images = self.steps.iter().any(|step| step.kind == OutputKind::Image);
        let mut models = self.steps.iter().filter(|step| (step.kind == OutputKind::Image) == makes_images);
        let first = &models.next()?.model;
        models.all(|step| step.model.key == first.key).then_some(first)
    }
}

/// The text of a step, cut to the length of an output and without NUL characters.
pub fn text_value(text: &str) -> String {
    text.chars().filter(|letter| *letter != '\0').take(RECIPE_TEXT_MAX).collect()
}
