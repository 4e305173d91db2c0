//! `POST /actions/runs`: starts several Actions in a row on each of several images (docs/reference/actions.md#chains).

use std::collections::HashSet;

use app::job::{JobStart, Targets};
use axum::Extension;
use axum::extract::State;
use db::accounts::Credential;
use domain::Violation;
use domain::action::Medium;
use domain::graph::{Named, NodeType};
use domain::id::{AccountUid, ImageHandle, NodeId, NodeReference};
use domain::job::{ActionRuns, StartQuote};
use domain::webhook::WebhookInput;
use egress::Guard;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::plan::{Checked, Form, NOT_AN_IMAGE, Run, Step};
use crate::extract::caller::{Caller, RunAction};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::json::JsonBody;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::place::{TargetPlace, destination};
use crate::problem::Result;
use crate::start::{Accepted, start, start_request, terms_of, webhook_of};
use crate::state::App;

const PATH: &str = "/actions/runs";

start_request! {
    /// Request to run Actions in a row on each of several images. One of `targetNodeIds` and `place` is required.
    #[schema(as = RunActions)]
    pub struct ChainRequest on a canvas {
        /// New, empty image nodes that receive the results, one for each input; excludes `place`.
        #[schema(value_type = Option<Vec<NodeReference>>, min_items = 1, max_items = 20)]
        target_node_ids: Option<Vec<String>>,
        /// Adds a target for each input in place of `targetNodeIds`.
        place: Option<TargetPlace>,
        /// `true` if a `flow` connection leads from each input that is a node, and from each `with`, to its target. Default: `true`
        /// with `place`.
        connect: Option<bool>,
        /// `true` if each target takes the largest size within its present box that shows its result whole; one that was resized meanwhile
        /// keeps its size. Implied by `place`.
        #[serde(default)]
        fit: bool,
        /// Node or asset handles. Each is the input of a run of its own.
        #[schema(value_type = Vec<ImageHandle>, min_items = 1, max_items = 20)]
        inputs: Vec<String>,
        /// The Actions. The first one reads the input, each other one what the one before it made.
        #[schema(min_items = 1, max_items = 4)]
        steps: Vec<StepRequest>,
        /// Webhook to notify when a run ends.
        webhook: Option<WebhookInput>,
    }
}

/// An Action in a row.
#[derive(Deserialize, ToSchema)]
#[schema(as = ActionInRow)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// Slug, or `action:<slug>`.
    #[schema(pattern = "^(action:)?[A-Za-z0-9_-]{1,180}$")]
    action: String,
    /// Parameters of the Action; omitted ones take their defaults. `format` and `quality` count in the last step alone.
    #[schema(value_type = Object)]
    params: Map<String, Value>,
    /// Second image of an Action that reads two.
    #[schema(value_type = Option<ImageHandle>)]
    with: Option<String>,
}

/// Run Image Actions in a row
///
/// Queues a run for each input: all of them, or none. In a run, each Action reads what the one before it made, and only the last
/// result is encoded, stored and shown in the target of that input. Use it to do the same to several images, or several things to
/// one. A run whose input does not fit a step fails with `action_input_invalid` and names the step; the others go on. Actions cost
/// no credit and never change their inputs.
#[utoipa::path(
    post, path = "/actions/runs", operation_id = "runActions", tag = "Image Actions", request_body = ChainRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    params(
        ("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(
        WriteErrors,
        (status = 200, description = "The quote of all runs, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The runs are queued, or are a replay of an earlier start.", body = ActionRuns),
    )
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller<RunAction>,
    Extension(trace): Extension<Trace>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let request = body.checked(|request: ChainRequest| request.check(&app.guard, &caller.account)).await?;
    let jobs = request.start(&caller, prefer::lenient(&headers), trace);
    start(&app, &caller, jobs, Accepted::Runs).await
}

struct CheckedChain {
    checked: Checked,
    inputs: Vec<Named>,
    steps: Vec<Step>,
}

impl ChainRequest {
    /// The rules that a schema cannot express (docs/reference/actions.md#chains).
    fn check(self, guard: &Guard, account: &AccountUid) -> Result<CheckedChain, Vec<Violation>> {
        let mut check = Check::default();
        let webhook = webhook_of(&mut check, guard, self.webhook);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        let inputs = self.inputs.iter().enumerate();
        let inputs: Vec<Option<Named>> = inputs
            .map(|(index, text)| {
                check.parsed(format!("inputs[{index}]"), Named::parse(text, account).ok_or(NOT_AN_IMAGE))
            })
            .collect();
        let steps = checked_steps(&mut check, self.steps, account);
        check.at_most_one(&[("targetNodeIds", self.target_node_ids.is_some()), ("place", self.place.is_some())], true);
        let (count, message) = (inputs.len(), format!("must be {}, as many as the inputs", inputs.len()));
        let place = self.place.map(|place| {
            check.note_if(place.count().is_some_and(|places| places as usize != count), "place.count", &*message);
            Targets::Place(place.check(&mut check, NodeType::Image, count as u32))
        });
        let read: Vec<&Named> =
            inputs.iter().flatten().chain(steps.iter().filter_map(|step| step.with.as_ref())).collect();
        let targets = self.target_node_ids.map(|targets| {
            check.note_if(targets.len() != count, "targetNodeIds", &*message);
            Targets::Nodes(checked_targets(&mut check, &targets, &read))
        });
        check.finish(|| {
            let destination = destination(place.or(targets)?, self.connect, self.fit);
            let checked = Checked { canvas: canvas?, base_revision: self.base_revision, terms, webhook, destination };
            Some(CheckedChain { checked, inputs: inputs.into_iter().collect::<Option<_>>()?, steps })
        })
    }
}

/// The targets, which are different nodes, and none of what the steps read.
fn checked_targets(check: &mut Check, targets: &[String], read: &[&Named]) -> Vec<NodeId> {
    let (mut nodes, mut known) = (Vec::with_capacity(targets.len()), HashSet::new());
    for (index, text) in targets.iter().enumerate() {
        let field = format!("targetNodeIds[{index}]");
        let Some(node) = check.parsed(field.clone(), NodeId::parse(text)) else { continue };
        check.note_if(!known.insert(node.clone()), field.clone(), "is named twice");
        let is_read = read.iter().any(|named| named.node() == Some(&node));
        check.note_if(is_read, field, "must not be an input as well");
        nodes.push(node);
    }
    nodes
}

/// The steps without violations of their own.
fn checked_steps(check: &mut Check, steps: Vec<StepRequest>, account: &AccountUid) -> Vec<Step> {
    let reads_video =
        steps.first().and_then(|step| actions::find(&step.action)).is_some_and(|it| it.medium == Medium::Video);
    let mut checked = Vec::with_capacity(steps.len());
    for (index, StepRequest { action, params, with }) in steps.into_iter().enumerate() {
        let field = |member: &str| format!("steps[{index}].{member}");
        let with = with.map(|text| check.parsed(field("with"), Named::parse(&text, account).ok_or(NOT_AN_IMAGE)));
        let Some(action) = actions::find(&action) else {
            check.note(field("action"), "is not an Action");
            continue;
        };
        let second = action.inputs.get(1);
        check.note_if(
            index > 0 && action.medium == Medium::Video,
            field("action"),
            "reads a video: it must be the first step",
        );
        check.note_if(
            second.is_some() && reads_video,
            field("action"),
            "reads a second image: the inputs must be images",
        );
        match (second, &with) {
            (Some(second), None) => {
                check.note(field("with"), format!("is required: the second image of this Action, `{}`", second.id));
            }
            (None, Some(_)) => check.note(field("with"), "must be omitted: this Action reads one image"),
            _ => {}
        }
        match action.normalize(&params) {
            Ok(params) => checked.push(Step { action, params, with: with.flatten() }),
            Err(violations) => {
                check.extend(violations.into_iter().map(|it| Violation::new(field(&it.field), it.message)))
            }
        }
    }
    checked
}

impl CheckedChain {
    /// The start of the runs. Different spellings of one request have the same fingerprint.
    fn start(self, caller: &Credential, lenient: bool, trace: Trace) -> JobStart {
        let Self { checked, inputs, steps } = self;
        let Checked { base_revision, webhook, destination, .. } = &checked;
        let spelled = steps.iter().map(|Step { action, params, with }| {
            json!({"action": action.id, "params": params, "with": with.as_ref().map(ToString::to_string)})
        });
        let body = json!({
            "baseRevision": base_revision, "targetNodeIds": destination.existing(), "webhook": webhook,
            "inputs": inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), "steps": spelled.collect::<Vec<_>>(),
        });
        let run = Run { form: Form::Chain, steps, inputs, destination: checked.destination.clone() };
        checked.start(caller, PATH, body, run, lenient, trace)
    }
}
