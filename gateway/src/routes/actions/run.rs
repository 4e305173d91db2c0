//! `POST /actions/{actionKey}/runs`: starts an Action run (docs/reference/actions.md#start-a-run).

use actions::DefinedAction;
use app::job::{JobStart, Targets};
use axum::Extension;
use axum::extract::State;
use db::accounts::Credential;
use domain::Violation;
use domain::graph::{Named, NodeType};
use domain::id::{AccountUid, NodeId, NodeReference};
use domain::job::{ImageJob, StartQuote};
use domain::webhook::WebhookInput;
use egress::Guard;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::plan::{Checked, Form, NOT_AN_IMAGE, Run, Step};
use super::read::action_of;
use crate::extract::caller::{Caller, RunAction};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::json::JsonBody;
use crate::extract::path::PathText;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::place::{TargetPlace, destination};
use crate::problem::{Result, combine_violations};
use crate::start::{Accepted, start, start_request, terms_of, webhook_of};
use crate::state::App;

const PATH: &str = "/actions/{actionKey}/runs";

start_request! {
    /// Request to run an Action. One of `targetNodeId` and `place` is required.
    #[schema(as = RunAction)]
    pub struct RunRequest on a canvas {
        /// New, empty image node that receives the result; excludes `place`.
        #[schema(value_type = Option<NodeReference>)]
        target_node_id: Option<String>,
        /// Adds the target in place of `targetNodeId`.
        place: Option<TargetPlace>,
        /// `true` if a `flow` connection leads from each input that is a node to the target. Default: `true` with `place`.
        connect: Option<bool>,
        /// `true` if the target takes the largest size within its present box that shows its result whole; one that was resized meanwhile
        /// keeps its size. Implied by `place`.
        #[serde(default)]
        fit: bool,
        /// Node or asset handles, in the order that the Action declares.
        #[schema(min_items = 1, max_items = 2)]
        inputs: Vec<String>,
        /// Parameters of the Action; omitted ones take their defaults.
        #[schema(value_type = Object)]
        params: Map<String, Value>,
        /// Webhook to notify when the run ends.
        webhook: Option<WebhookInput>,
    }
}

/// Run an Image Action
///
/// Queues a transformation of one or two images, or makes an image of a frame of a video. Use it to resize, crop,
/// combine, label or grade images without a model. The result is stored as an asset and shown in the target: a new, empty image node, or one that
/// `place` adds. Actions cost no credit and never change their inputs. Follow the run with the returned `pollUrl` or a
/// webhook.
#[utoipa::path(
    post, path = "/actions/{actionKey}/runs", operation_id = "runAction", tag = "Image Actions", request_body = RunRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    params(
        ("actionKey" = String, Path, pattern = "^(action:)?[A-Za-z0-9_-]{1,180}$", description = "Slug, or `action:<slug>`."),
        ("Prefer" = Option<String>, Header, description = "`handling=lenient` accepts a stale `baseRevision` where nothing that the request reads or writes has changed since."),
    ),
    responses(
        WriteErrors,
        (status = 200, description = "The quote, with `validateOnly: true`; nothing is started.", body = StartQuote),
        (status = 202, description = "The run is queued, or is a replay of an earlier start.", body = ImageJob),
    )
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller<RunAction>,
    Extension(trace): Extension<Trace>,
    params: PathText,
    headers: HeaderMap,
    body: JsonBody,
) -> Result {
    let action = action_of(&params);
    let check = |request: RunRequest| request.check(&app.guard, &caller.account, action.as_ref().ok());
    let (request, action) = combine_violations(body.checked(check).await, action)?;
    let job = request.start(&caller, action, prefer::lenient(&headers), trace);
    start(&app, &caller, job, Accepted::Job).await
}

impl RunRequest {
    /// The rules that a schema cannot express (docs/reference/actions.md#parameter-checks). Without an Action, those of its inputs
    /// and parameters are left out.
    fn check(
        self,
        guard: &Guard,
        account: &AccountUid,
        action: Option<&&'static DefinedAction>,
    ) -> Result<CheckedRun, Vec<Violation>> {
        let mut check = Check::default();
        let webhook = webhook_of(&mut check, guard, self.webhook);
        let terms = terms_of(&mut check, self.idempotency_key, self.max_credits, self.validate_only);
        let canvas = canvas_of(&mut check, &self.canvas_id, None, account);
        check.at_most_one(&[("targetNodeId", self.target_node_id.is_some()), ("place", self.place.is_some())], true);
        let target = self.target_node_id.and_then(|target| check.parsed("targetNodeId", NodeId::parse(&target)));
        let place = self.place.map(|place| {
            check.note_if(place.count().is_some_and(|count| count != 1), "place.count", "must be 1 for an Action");
            place.check(&mut check, NodeType::Image, 1)
        });
        let mut inputs = Vec::new();
        for (index, text) in self.inputs.iter().enumerate() {
            let input = check.parsed(format!("inputs[{index}]"), Named::parse(text, account).ok_or(NOT_AN_IMAGE));
            let is_target = matches!((&input, &target), (Some(Named::Node(node)), Some(target)) if node == target);
            check.note_if(is_target, "targetNodeId", "must not be an input as well");
            inputs.extend(input);
        }
        let mut params = self.params;
        if let Some(action) = action {
            let names: Vec<_> = action.inputs.iter().map(|input| &*input.id).collect();
            let is_other = self.inputs.len() != names.len();
            check.note_if(is_other, "inputs", format!("must be {}: {}", names.len(), names.join(", ")));
            match action.normalize(&params) {
                Ok(normalized) => params = normalized,
                Err(violations) => check.extend(violations),
            }
        }
        check.finish(|| {
            let targets = place.map(Targets::Place).or(target.map(|target| Targets::Nodes(vec![target])));
            Some(CheckedRun {
                checked: Checked {
                    canvas: canvas?,
                    base_revision: self.base_revision,
                    terms,
                    webhook,
                    destination: destination(targets?, self.connect, self.fit),
                },
                inputs,
                params,
            })
        })
    }
}

struct CheckedRun {
    checked: Checked,
    inputs: Vec<Named>,
    params: Map<String, Value>,
}

impl CheckedRun {
    /// The start of the run. Different spellings of one request have the same fingerprint.
    fn start(self, caller: &Credential, action: &'static DefinedAction, lenient: bool, trace: Trace) -> JobStart {
        let Self { checked, inputs, params } = self;
        let Checked { base_revision, webhook, destination, .. } = &checked;
        let body = json!({
            "baseRevision": base_revision, "targetNodeId": destination.existing().first(), "params": params,
            "webhook": webhook, "inputs": inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), "action": action.id,
        });
        let mut inputs = inputs.into_iter();
        let first = inputs.by_ref().take(1).collect();
        let steps = vec![Step { action, params, with: inputs.next() }];
        let run = Run { form: Form::One, steps, inputs: first, destination: checked.destination.clone() };
        checked.start(caller, PATH, body, run, lenient, trace)
    }
}
