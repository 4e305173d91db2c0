//! `POST /actions/{actionKey}/runs`: starts an Action run (decisions 8.4, 9.2).

use axum::Extension;
use axum::extract::State;
use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::action::Action;
use domain::asset::AssetRecord;
use domain::canvas::CanvasRecord;
use domain::graph::{Named, Node, NodeType};
use domain::id::{AccountUid, NodeId};
use domain::job::{ActionRequest, Input as JobInput, JobOperation, Request};
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::plan::estimate;
use super::read::action_of;
use crate::extract::caller::{Caller, RunAction};
use crate::extract::canvas::canvas_of;
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, Unread, items};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::problem::{Problem, Result, both};
use crate::start::{Plan, Start, Work, checked_webhook, target_is_taken, webhook_violation};
use crate::state::App;

const PATH: &str = "/actions/{actionKey}/runs";
/// What an input that names nothing should have been.
const NOT_A_PICTURE: &str = "must be a node or asset handle";

/// An Action to run.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRequest {
    /// Plain id or handle.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// The revision that the run was made for.
    #[schema(min_length = 1, max_length = 200)]
    base_revision: String,
    /// Names this run, so that sending it again starts nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// A new, empty image node that takes the result.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$")]
    target_node_id: String,
    /// Node or asset handles, in the order that the Action declares.
    #[schema(min_items = 1, max_items = 2)]
    inputs: Vec<String>,
    /// The Action's parameters; those left out take their defaults.
    #[schema(value_type = Object)]
    params: Map<String, Value>,
    /// Where to announce the end.
    #[schema(nullable = false)]
    webhook: Option<WebhookInput>,
}

impl Input for RunRequest {}

/// Queue an Image Action
#[utoipa::path(
    post, path = "/actions/{actionKey}/runs", operation_id = "runAction", tag = "Image Actions", request_body = RunRequest,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read"])),
    params(("actionKey" = String, Path, pattern = "^(action:)?[A-Za-z0-9_-]{1,180}$", description = "Slug, or `action:<slug>`.")),
    responses((status = 202, body = domain::job::ImageJob))
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller<RunAction>,
    Extension(trace): Extension<Trace>,
    params: PathText,
    body: Unread,
) -> Result {
    let action = action_of(&params);
    let rules = |body: &Value| violations(&app, &caller.account, action.as_ref().ok(), body);
    let (request, action) = both(body.json_by(rules).await, action)?;
    judge(&app, &caller.account, action, request, trace)?.run(&app, &caller).await
}

/// Everything that the request alone can tell and its schema cannot, of a body as it came (decisions 8.4).
fn violations(app: &App, account: &AccountUid, action: Option<&&'static Action>, body: &Value) -> Vec<Violation> {
    let mut violations: Vec<Violation> = webhook_violation(app, body).into_iter().collect();
    let mut note = |field: &str, message: String| violations.push(Violation::new(field, message));
    let target = body["targetNodeId"].as_str().and_then(|text| NodeId::parse(text).ok());
    let inputs = items(&body["inputs"]);
    for (index, text) in inputs.iter().enumerate().filter_map(|(index, item)| Some((index, item.as_str()?))) {
        match (Named::parse(text, account), &target) {
            (None, _) => note(&format!("inputs[{index}]"), NOT_A_PICTURE.into()),
            (Some(Named::Node(node)), Some(target)) if node == *target => {
                note("targetNodeId", "must not be an input as well".into());
            }
            _ => {}
        }
    }
    let Some(action) = action else { return violations };
    if body["inputs"].is_array() && inputs.len() != action.inputs.len() {
        let names: Vec<_> = action.inputs.iter().map(|input| input.id).collect();
        note("inputs", format!("must be {}: {}", names.len(), names.join(", ")));
    }
    let none = Map::new();
    if let Some(params) = body.get("params").map_or(Some(&none), Value::as_object) {
        violations.extend(action.normalize(params).err().into_iter().flatten());
    }
    violations
}

/// An Action on pictures that are still to be found.
struct Run {
    action: &'static Action,
    target: NodeId,
    inputs: Vec<Named>,
    params: Map<String, Value>,
}

/// A request whose form and rules hold, as it can be started. Two spellings of one request have one fingerprint.
fn judge(
    app: &App,
    account: &AccountUid,
    action: &'static Action,
    request: RunRequest,
    trace: Trace,
) -> Result<Start<Run>> {
    let canvas = canvas_of(&request.canvas_id, None, account)?;
    let target = NodeId::parse(&request.target_node_id);
    let target = target.map_err(|error| Problem::invalid("targetNodeId", error.to_string()))?;
    let inputs: Option<Vec<Named>> = request.inputs.iter().map(|text| Named::parse(text, account)).collect();
    let inputs = inputs.ok_or_else(|| Problem::invalid("inputs", NOT_A_PICTURE))?;
    let params = action.normalize(&request.params).map_err(Problem::Invalid)?;
    let webhook = request.webhook.map(|webhook| checked_webhook(app, webhook)).transpose()?;
    let body = json!({
        "baseRevision": request.base_revision, "targetNodeId": target, "params": params, "webhook": webhook,
        "inputs": inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), "action": action.id,
    });
    Ok(Start {
        fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
        canvas,
        base_revision: request.base_revision,
        key: request.idempotency_key,
        webhook,
        traceparent: trace.0.to_string(),
        work: Run { action, target, inputs, params },
    })
}

impl Work for Run {
    async fn plan(&self, _: &App, conn: &mut PgConnection, caller: &Credential, canvas: &CanvasRecord) -> Result<Plan> {
        let target = db::canvases::node(conn, canvas.key, &self.target).await?;
        let mut refused: Vec<Violation> = check_target(target.as_ref())?.into_iter().collect();
        let assets = self.find_inputs(conn, caller, canvas, &mut refused).await?;
        if !refused.is_empty() {
            return Err(Problem::Unprocessable(refused));
        }
        let estimated_seconds = estimate(self.action, &self.params, &assets).map_err(Problem::Unprocessable)?;
        let inputs = self.inputs.iter().zip(assets);
        let inputs = inputs.map(|(named, asset)| JobInput { handle: named.to_string(), asset: asset.handle }).collect();
        let request = Request::Action(ActionRequest {
            slug: self.action.slug.into(),
            version: self.action.version.into(),
            params: self.params.clone(),
            inputs,
            target: self.target.clone(),
        });
        Ok(Plan {
            operation: JobOperation::Action,
            request,
            targets: target.into_iter().collect(),
            estimated_seconds,
            credit_cost: 0,
            summary: format!("started {}", self.action.title.to_lowercase()),
        })
    }
}

/// A new, empty image node that nothing else will fill (decisions 8.4): one that a job fills is refused before all else, as
/// state comes before meaning (decisions 1.2).
fn check_target(target: Option<&Node>) -> Result<Option<Violation>> {
    let message = match target {
        Some(node) if node.active_job.is_some() => return Err(target_is_taken()),
        None => "is no node of the canvas",
        Some(node) if node.kind != NodeType::Image => "must be an image node",
        Some(node) if node.asset.is_some() => "must be empty: it shows an asset already",
        Some(node) if node.server.contains_key("recipe") => "is bound to a Recipe",
        Some(_) => return Ok(None),
    };
    Ok(Some(Violation::new("targetNodeId", message)))
}

impl Run {
    /// The pictures that the inputs stand for now; those that are not there go into `refused`.
    async fn find_inputs(
        &self,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
        refused: &mut Vec<Violation>,
    ) -> Result<Vec<AssetRecord>> {
        let mut assets = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            match db::assets::named(conn, &caller.account, canvas.key, input).await? {
                Some(asset) => assets.push(asset),
                None => refused.push(Violation::new(format!("inputs[{index}]"), "holds no picture that you can read")),
            }
        }
        Ok(assets)
    }
}
