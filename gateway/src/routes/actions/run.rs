//! `POST /actions/{actionKey}/runs`: starts an Action run (docs/reference/actions.md#start-a-run).

use actions::{DefinedAction, Estimate, Frame, Prepared, Source};
use app::job::{Destination, Found, JobPlan, JobStart, Reads, Targets, Work, link, target_is_taken};
use app::{Base, LockedCanvas, Terms};
use axum::Extension;
use axum::extract::State;
use canvas::Footprint;
use canvas::targets::Link;
use db::PgConnection;
use db::accounts::Credential;
use db::assets::InputImage;
use domain::Violation;
use domain::action::Medium;
use domain::asset::AssetKind;
use domain::graph::{Named, Node, NodeType, Purpose};
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId, NodeReference};
use domain::job::{ActionRequest, ImageJob, Input as JobInput, JobOperation, Request, StartQuote};
use domain::webhook::WebhookInput;
use egress::Guard;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::read::action_of;
use crate::extract::caller::{Caller, RunAction};
use crate::extract::canvas::canvas_of;
use crate::extract::check::Check;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::JsonBody;
use crate::extract::path::PathText;
use crate::extract::prefer;
use crate::observe::Trace;
use crate::openapi::errors::WriteErrors;
use crate::place::{TargetPlace, destination, with_destination};
use crate::problem::{Result, combine_violations};
use crate::start::{start, start_request, terms_of, webhook_of, with_cap};
use crate::state::App;

const PATH: &str = "/actions/{actionKey}/runs";
/// Violation of an input that is not a handle.
const NOT_AN_IMAGE: &str = "must be a node or asset handle";

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
    start(&app, &caller, request.start(&caller, action, prefer::lenient(&headers), trace)).await
}

struct Checked {
    canvas: CanvasHandle,
    base_revision: String,
    terms: Terms,
    webhook: Option<WebhookInput>,
    destination: Destination,
    inputs: Vec<Named>,
    params: Map<String, Value>,
}

/// An Action whose input images are not looked up yet.
struct Run {
    action: &'static DefinedAction,
    destination: Destination,
    inputs: Vec<Named>,
    params: Map<String, Value>,
}

impl RunRequest {
    /// The rules that a schema cannot express (docs/reference/actions.md#parameter-checks). Without an Action, those of its inputs
    /// and parameters are left out.
    fn check(
        self,
        guard: &Guard,
        account: &AccountUid,
        action: Option<&&'static DefinedAction>,
    ) -> Result<Checked, Vec<Violation>> {
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
            Some(Checked {
                canvas: canvas?,
                base_revision: self.base_revision,
                terms,
                webhook,
                destination: destination(targets?, self.connect),
                inputs,
                params,
            })
        })
    }
}

impl Checked {
    /// The start of the run. Different spellings of one request have the same fingerprint.
    fn start(self, caller: &Credential, action: &'static DefinedAction, lenient: bool, trace: Trace) -> JobStart {
        let Self { canvas, base_revision, terms, webhook, destination, inputs, params } = self;
        let body = json!({
            "baseRevision": base_revision, "targetNodeId": destination.existing().first(), "params": params,
            "webhook": webhook, "inputs": inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), "action": action.id,
        });
        let body = with_destination(with_cap(body, &terms), &destination);
        JobStart {
            caller: caller.clone(),
            id: JobId::generate(),
            fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
            canvas,
            base: Base { revision: base_revision, lenient },
            terms,
            webhook,
            traceparent: trace.0.to_string(),
            work: Box::new(Run { action, destination, inputs, params }),
        }
    }
}

impl Work for Run {
    fn is_free(&self) -> bool {
        true
    }

    fn destination(&self) -> &Destination {
        &self.destination
    }

    fn footprint(&self) -> Footprint {
        Footprint::of_nodes(self.inputs.iter().filter_map(Named::node))
    }

    fn reads(&self) -> Reads<'_> {
        let kind = match self.action.medium {
            Medium::Image => AssetKind::Image,
            Medium::Video => AssetKind::Video,
        };
        Reads { nodes: Vec::new(), images: self.inputs.iter().collect(), kind }
    }

    fn plan<'a>(
        &'a self,
        conn: &'a mut PgConnection,
        caller: &'a Credential,
        canvas: &'a LockedCanvas,
        found: Found,
    ) -> BoxFuture<'a, app::Result<JobPlan>> {
        Box::pin(async move {
            let mut refused = Vec::new();
            for target in &found.targets {
                refused.extend(check_target(target.as_ref())?);
            }
            let graph = self.destination.load(conn, &canvas.record, &mut refused).await?;
            let images = readable(self.action.medium, found.images, &mut refused);
            if !refused.is_empty() {
                return Err(app::Error::Unprocessable(refused));
            }
            let prepared = self.prepare(&images)?;
            within(prepared.frame(), &images).map_err(one_violation)?;
            let Estimate { seconds, output } = prepared.estimate().map_err(one_violation)?;
            let read: Vec<Link> = self.inputs.iter().filter_map(|input| link(input, Purpose::Flow, None)).collect();
            let size = Some((f64::from(output.width), f64::from(output.height)));
            let existing = found.targets.into_iter().flatten().collect();
            let targets = self.destination.prepare(caller, graph, existing, size, (&read, None))?;
            let target = targets.nodes.first().map(|node| node.id.clone());
            let target = target.ok_or_else(|| app::Error::Inconsistent("an Action without a target".into()))?;
            let inputs = self.inputs.iter().zip(images);
            let inputs =
                inputs.map(|(named, image)| JobInput { handle: named.to_string(), asset: image.handle }).collect();
            let request = Request::Action(ActionRequest {
                slug: self.action.slug.to_string(),
                version: self.action.version.to_string(),
                params: self.params.clone(),
                inputs,
                target,
            });
            Ok(JobPlan {
                operation: JobOperation::Action,
                request,
                targets,
                estimated_seconds: seconds,
                credit_cost: 0,
                summary: format!("started {}", self.action.title.to_lowercase()),
            })
        })
    }
}

impl Run {
    fn prepare(&self, inputs: &[InputImage]) -> app::Result<Prepared> {
        let source = |image: &InputImage| Source::stored(&image.mime_type, (image.width, image.height), 0);
        let prepared = Prepared::new(&self.action.slug, &self.params, inputs.iter().map(source).collect());
        prepared.map_err(|error| app::Error::Inconsistent(format!("a checked run cannot be prepared: {error:?}")))
    }
}

/// Requires that a video lasts until the frame that is read of it, if its duration is known.
fn within(frame: Option<Frame>, inputs: &[InputImage]) -> Result<(), Violation> {
    let duration = inputs.first().and_then(|video| video.duration_ms);
    match (frame, duration) {
        (Some(Frame::Seconds(seconds)), Some(duration)) if seconds * 1000.0 >= duration as f64 => {
            let message = format!("must be less than {}, the duration of the video", duration as f64 / 1000.0);
            Err(Violation::new("params.seconds", message))
        }
        _ => Ok(()),
    }
}

fn one_violation(violation: Violation) -> app::Error {
    app::Error::Unprocessable(vec![violation])
}

/// Requires a new, empty image node without an active job (docs/reference/actions.md#target-node). A node with an active job is a
/// conflict, which is reported before all violations.
fn check_target(target: Option<&Node>) -> app::Result<Option<Violation>> {
    let message = match target {
        Some(node) if node.active_job.is_some() => return Err(target_is_taken()),
        None => "is not a node of the canvas",
        Some(node) if node.kind != NodeType::Image => "must be an image node",
        Some(node) if node.asset.is_some() => "must be empty: it shows an asset already",
        Some(node) if node.recipe().is_some() => "is bound to a Recipe",
        Some(_) => return Ok(None),
    };
    Ok(Some(Violation::new("targetNodeId", message)))
}

/// The images or videos that the inputs resolve to now; missing ones are added to `refused`.
fn readable(medium: Medium, found: Vec<Option<InputImage>>, refused: &mut Vec<Violation>) -> Vec<InputImage> {
    let missing = |index| Violation::new(format!("inputs[{index}]"), format!("holds no {medium} that you can read"));
    let unreadable = found.iter().enumerate().filter(|(_, image)| image.is_none());
    refused.extend(unreadable.map(|(index, _)| missing(index)));
    found.into_iter().flatten().collect()
}
