//! Runs of Recipes: their states, what they are asked for, and which step is next (specification, RecipeRun; decisions 13.6).
//!
//! A run carries out its steps one after the other, in the order of the outputs. A step that fails does not end the run:
//! those that are made from its output are canceled, the others go on, and the run fails at the end.

mod document;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::template::Template;
use super::{Held, InputKind, OutputKind, Version};
use crate::graph::named;
use crate::id::{AccountUid, AssetHandle, CanvasHandle, JobId, NodeId, RecipeId};
use crate::job::ChosenModel;
use crate::limits::RECIPE_TEXT_MAX;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;
use crate::{API_ROOT, Timestamp};

pub use document::{RecipeRun, RunInputDocument, RunOutputDocument};

named! {
    /// The state of a Recipe run.
    RunStatus {
        /// Accepted; no step has begun.
        Queued = "queued",
        /// Its steps are being carried out.
        Running = "running",
        /// Every output is there.
        Succeeded = "succeeded",
        /// It ended without all of its outputs.
        Failed = "failed",
        /// It was stopped.
        Canceled = "canceled",
    }
}

impl RunStatus {
    /// Whether nothing more happens to it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled)
    }
}

named! {
    /// The state of one output of a run.
    OutputStatus {
        /// Its step has not begun.
        Pending = "pending",
        /// Its step is being carried out.
        Running = "running",
        /// It is there.
        Succeeded = "succeeded",
        /// Its step failed.
        Failed = "failed",
        /// Its step was stopped, or was made from one that has no output.
        Canceled = "canceled",
    }
}

impl OutputStatus {
    /// Whether nothing more happens to it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, OutputStatus::Succeeded | OutputStatus::Failed | OutputStatus::Canceled)
    }
}

named! {
    /// Why a run failed; stable, to branch on.
    RunFailureCode {
        /// An input is gone or cannot be read any more.
        InputInvalid = "recipe_input_invalid",
        /// A step failed, or was stopped by itself.
        StepFailed = "recipe_step_failed",
        /// A step ended well and left nothing.
        OutputMissing = "recipe_output_missing",
        /// Somebody stopped the run.
        RunCanceled = "recipe_run_canceled",
        /// The token, its session, its account or its role on the canvas no longer holds (decisions 13.7, 3.11).
        DelegationRevoked = "delegation_revoked",
    }
}

/// Why a run, or one of its outputs, failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// To branch on.
    pub code: RunFailureCode,
    /// For people.
    pub message: String,
    /// Whether a new attempt may help.
    pub retryable: bool,
    /// The first output that is missing for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub output_key: Option<String>,
}

/// The id of a run: `recipe-<uuid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(pub Uuid);

impl RunId {
    /// A fresh id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// `run:recipe-<uuid>`.
    pub fn handle(self) -> String {
        format!("run:{self}")
    }

    /// The path under which it is read.
    pub fn poll_url(self) -> String {
        format!("{API_ROOT}/runs/{self}")
    }

    /// Takes `recipe-<uuid>`, with or without `run:` before it.
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

/// An input of a run, resolved when it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunInput {
    /// As declared.
    pub key: String,
    /// As declared.
    pub label: String,
    /// As declared.
    pub kind: InputKind,
    /// Its port node.
    pub node: NodeId,
    /// The node or asset handle that it was taken from, in its full form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What it was.
    pub held: Held,
}

/// A step of a run, resolved when it was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// As declared.
    pub key: String,
    /// As declared.
    pub label: String,
    /// What it makes.
    pub kind: OutputKind,
    /// The node that takes it.
    pub node: NodeId,
    /// The template.
    pub prompt: String,
    /// Inputs, and outputs declared earlier.
    pub input_keys: Vec<String>,
    /// Who makes it.
    pub model: ChosenModel,
    /// Of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    /// Guidance, at least 1.
    pub estimated_seconds: i32,
}

/// What a run was asked for. Stored with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// In the order declared.
    pub inputs: Vec<RunInput>,
    /// In their order.
    pub steps: Vec<Step>,
}

/// What became of an output.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutput {
    /// Where it stands.
    pub status: OutputStatus,
    /// The image job that makes it.
    pub job: Option<JobId>,
    /// The picture.
    pub asset: Option<AssetHandle>,
    /// The text, at most 24000 characters.
    pub value: Option<String>,
    /// Why it is not there.
    pub failure: Option<RunFailure>,
    /// When its step began.
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    pub completed_at: Option<Timestamp>,
}

/// A run's row, with its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Who started it and pays for it.
    pub account: AccountUid,
    /// Where it stands.
    pub status: RunStatus,
    /// Grows with every visible change.
    pub version: i32,
    /// What is run.
    pub recipe: RecipeId,
    /// In which version.
    pub recipe_version: Version,
    /// Where.
    pub canvas: CanvasHandle,
    /// The instance's sticky.
    pub instance: NodeId,
    /// What was asked for.
    pub plan: Plan,
    /// What became of each step, in their order.
    pub outputs: Vec<RunOutput>,
    /// Why it failed or was stopped.
    pub failure: Option<RunFailure>,
    /// The review of its canvas as its end left it.
    pub completion_review: Option<CompletionReview>,
    /// Credits: reserved until all of its work is terminal, then charged (decisions 18.18).
    pub credit_cost: i64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When its first step began.
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    pub completed_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Its webhook.
    pub webhook: Option<DeliveryState>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Begin this step.
    Begin(usize),
    /// This step is under way.
    Follow(usize),
    /// An output that this step is made from is not there: cancel it.
    Cancel(usize),
    /// Nothing: every output is terminal.
    End,
}

impl Plan {
    /// The first step that is not over, and what is to be done about it.
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

    /// The prompt of a step: its template with the texts that it is made from, and the labels of the pictures, which go
    /// along as [`references`](Plan::references). It is cut at `max` UTF-16 code units, which is how models count, between two
    /// letters: what was inserted may be long.
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

    /// What stands for an input or an earlier output in a prompt.
    fn text<'a>(&'a self, key: &str, outputs: &'a [RunOutput]) -> Option<&'a str> {
        if let Some(input) = self.inputs.iter().find(|input| input.key == key) {
            return Some(match &input.held {
                Held::Text(text) => text,
                Held::Asset(_) => &input.label,
            });
        }
        let (step, output) = self.steps.iter().zip(outputs).find(|(step, _)| step.key == key)?;
        Some(output.value.as_deref().unwrap_or(&step.label))
    }

    /// The pictures that a step is made from, in the order of its `inputKeys`: the handle of each, and the picture.
    pub fn references(&self, at: usize, outputs: &[RunOutput]) -> Vec<(String, AssetHandle)> {
        let picture = |key: &String| {
            let input = self.inputs.iter().find(|input| input.key == *key);
            if let Some(RunInput { held: Held::Asset(asset), source, .. }) = input {
                return Some((source.clone().unwrap_or_else(|| asset.to_string()), asset.clone()));
            }
            let (step, output) = self.steps.iter().zip(outputs).find(|(step, _)| step.key == *key)?;
            Some((step.node.handle(), output.asset.clone()?))
        };
        self.steps[at].input_keys.iter().filter_map(picture).collect()
    }

    /// Credits that all of its steps take at most.
    pub fn credit_cost(&self) -> i64 {
        self.steps.iter().map(|step| step.model.credit_cost).sum()
    }
}

/// A text that a step made, within what an output may hold.
pub fn text_value(text: &str) -> String {
    text.chars().filter(|letter| *letter != '\0').take(RECIPE_TEXT_MAX).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::ProviderKind;

    fn asset(id: &str) -> AssetHandle {
        AssetHandle::try_from(format!("asset:me:{id}")).expect("a handle")
    }

    fn given(key: &str, held: Held) -> RunInput {
        let node = NodeId::parse(&format!("node-{key}")).expect("an id");
        RunInput { key: key.into(), label: format!("The {key}"), kind: InputKind::Text, node, source: None, held }
    }

    fn step(key: &str, kind: OutputKind, prompt: &str, keys: &[&str]) -> Step {
        Step {
            key: key.into(),
            label: format!("The {key}"),
            kind,
            node: NodeId::parse(&format!("node-{key}")).expect("an id"),
            prompt: prompt.into(),
            input_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            model: ChosenModel {
                key: "key-of-model".into(),
                id: "sketch".into(),
                name: "Sketch".into(),
                provider: ProviderKind::Managed,
                connection: None,
                credit_cost: 2,
            },
            size: None,
            quality: None,
            estimated_seconds: 3,
        }
    }

    fn outputs(statuses: &[OutputStatus]) -> Vec<RunOutput> {
        let output = |status: &OutputStatus| RunOutput {
            status: *status,
            job: None,
            asset: None,
            value: None,
            failure: None,
            started_at: None,
            completed_at: None,
        };
        statuses.iter().map(output).collect()
    }

    /// Two inputs; a text of the first, a picture of the text, and a text of the second.
    fn plan() -> Plan {
        Plan {
            inputs: vec![
                given("brief", Held::Text("{{pack}} & {{copy}}".into())),
                given("pack", Held::Asset(asset("a"))),
            ],
            steps: vec![
                step("copy", OutputKind::Text, "Write of {{brief}}", &["brief"]),
                step("hero", OutputKind::Image, "{{copy}} with {{pack}}", &["copy", "pack"]),
                step("note", OutputKind::Text, "Note {{pack}}", &["pack"]),
            ],
        }
    }

    use OutputStatus::{Canceled, Failed, Pending, Running, Succeeded};

    #[test]
    fn steps_follow_each_other() {
        for (statuses, next) in [
            ([Pending, Pending, Pending], Next::Begin(0)),
            ([Running, Pending, Pending], Next::Follow(0)),
            ([Succeeded, Pending, Pending], Next::Begin(1)),
            ([Succeeded, Running, Pending], Next::Follow(1)),
            ([Succeeded, Succeeded, Succeeded], Next::End),
        ] {
            assert_eq!(plan().next(&outputs(&statuses)), next, "{statuses:?}");
        }
    }

    #[test]
    fn what_depends_on_a_missing_output_is_canceled_and_the_rest_goes_on() {
        for missing in [Failed, Canceled] {
            assert_eq!(plan().next(&outputs(&[missing, Pending, Pending])), Next::Cancel(1));
            assert_eq!(plan().next(&outputs(&[missing, Canceled, Pending])), Next::Begin(2));
            assert_eq!(plan().next(&outputs(&[missing, Canceled, Succeeded])), Next::End);
        }
    }

    #[test]
    fn a_prompt_holds_texts_as_they_are_and_names_pictures() {
        let mut outputs = outputs(&[Succeeded, Pending, Pending]);
        outputs[0].value = Some("A {{brief}}".into());
        // What an input holds is data, also where it looks like a place.
        assert_eq!(plan().prompt(0, &outputs, 100), "Write of {{pack}} & {{copy}}");
        assert_eq!(plan().prompt(1, &outputs, 100), "A {{brief}} with The pack");
    }

    #[test]
    fn a_prompt_is_cut_at_its_limit_between_two_letters() {
        let mut outputs = outputs(&[Succeeded, Pending, Pending]);
        outputs[0].value = Some("🪁ä🪁".into());
        let whole = "🪁ä🪁 with The pack";
        for (max, cut) in
            [(0, ""), (1, ""), (2, "🪁"), (3, "🪁ä"), (4, "🪁ä"), (5, "🪁ä🪁"), (18, &whole[..23]), (19, whole)]
        {
            assert_eq!(plan().prompt(1, &outputs, max), cut, "{max}");
        }
    }

    #[test]
    fn pictures_go_along_in_the_order_of_the_input_keys() {
        let mut plan = plan();
        plan.steps[2].input_keys = vec!["hero".into(), "pack".into(), "brief".into()];
        plan.inputs[1].source = Some("node:photo".into());
        let mut outputs = outputs(&[Succeeded, Succeeded, Pending]);
        outputs[1].asset = Some(asset("b"));
        let wanted = [("node:node-hero".to_owned(), asset("b")), ("node:photo".to_owned(), asset("a"))];
        assert_eq!(plan.references(2, &outputs), wanted);
    }

    #[test]
    fn a_run_costs_what_its_steps_cost() {
        assert_eq!(plan().credit_cost(), 6);
    }

    #[test]
    fn a_run_is_named_with_and_without_its_kind() {
        let id = RunId::generate();
        for named in [id.to_string(), id.handle()] {
            assert_eq!(RunId::parse(&named), Some(id), "{named}");
        }
        for wrong in
            ["", "recipe-", "recipe-x", &id.0.to_string(), &format!("run:{}", id.0), &id.to_string().to_uppercase()]
        {
            assert_eq!(RunId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_text_value_has_at_most_24000_characters() {
        assert_eq!(text_value(&"ä".repeat(24_001)).chars().count(), 24_000);
        assert_eq!(text_value("a\0b"), "ab");
    }
}
