//! `POST /actions/{actionKey}/runs`: starts an Action run (decisions 8.4, 9.2).

use axum::Extension;
use axum::extract::State;
use db::PgConnection;
use db::accounts::Credential;
use domain::Violation;
use domain::action::Action;
use domain::asset::AssetRecord;
use domain::canvas::CanvasRecord;
use domain::graph::{Named, NodeType};
use domain::id::{AccountUid, CanvasRef, NodeId};
use domain::job::{ActionRequest, Input as JobInput, JobOperation, Request};
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::plan::estimate;
use super::read::action_of;
use crate::extract::caller::{Caller, RunAction};
use crate::extract::idempotency::fingerprint;
use crate::extract::json::{Input, Unread};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::start::{Plan, Start, Work, checked_webhook, target_is_taken};
use crate::state::App;

const PATH: &str = "/actions/{actionKey}/runs";

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
    #[serde(default)]
    #[schema(value_type = Object)]
    params: Map<String, Value>,
    /// Where to announce the end.
    #[schema(nullable = false)]
    webhook: Option<WebhookInput>,
}

impl Input for RunRequest {
    fn check_value(body: &Value) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut check = |field: &str, wrong: Option<String>| {
            violations.extend(wrong.map(|message| Violation::new(field, message)));
        };
        let id = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
        check("canvasId", CanvasRef::parse(&id("canvasId")).err().map(|error| error.to_string()));
        check("targetNodeId", NodeId::parse(&id("targetNodeId")).err().map(|error| error.to_string()));
        violations
    }
}

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
    let request: RunRequest = body.json().await?;
    let action = action_of(&params)?;
    let start = judge(&app, &caller.account, action, request, trace).map_err(Problem::Invalid)?;
    start.run(&app, &caller).await
}

/// An Action on pictures that are still to be found.
struct Run {
    action: &'static Action,
    target: NodeId,
    inputs: Vec<Named>,
    params: Map<String, Value>,
}

/// Everything that the request alone can tell, all violations at once.
fn judge(
    app: &App,
    account: &AccountUid,
    action: &'static Action,
    request: RunRequest,
    trace: Trace,
) -> Result<Start<Run>, Vec<Violation>> {
    let mut violations = Vec::new();
    let mut note = |field: &str, message: String| violations.push(Violation::new(field, message));
    let canvas = CanvasRef::parse(&request.canvas_id).map_err(|error| note("canvasId", error.to_string())).ok();
    let target = NodeId::parse(&request.target_node_id).map_err(|error| note("targetNodeId", error.to_string())).ok();
    let mut inputs = Vec::new();
    for (index, text) in request.inputs.iter().enumerate() {
        match Named::parse(text, account) {
            Some(input) => inputs.push(input),
            None => note(&format!("inputs[{index}]"), "must be a node or asset handle".into()),
        }
    }
    if request.inputs.len() != action.inputs.len() {
        let names: Vec<_> = action.inputs.iter().map(|input| input.id).collect();
        note("inputs", format!("must be {}: {}", names.len(), names.join(", ")));
    }
    if inputs.iter().any(|input| matches!((input, &target), (Named::Node(node), Some(target)) if node == target)) {
        note("targetNodeId", "must not be an input as well".into());
    }
    let webhook = request.webhook.map(|webhook| checked_webhook(app, webhook)).transpose();
    let webhook = webhook.map_err(|violation| violations.push(violation)).ok().flatten();
    let params = action.normalize(&request.params).unwrap_or_else(|wrong| {
        violations.extend(wrong);
        Map::new()
    });
    let (Some(canvas), Some(target), true) = (canvas, target, violations.is_empty()) else {
        return Err(violations);
    };
    let canvas = canvas.resolve(account);
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
        self.check_target(conn, canvas).await?;
        let (inputs, estimated_seconds) = self.resolve(conn, caller, canvas).await?;
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
            estimated_seconds,
            credit_cost: 0,
            summary: format!("started {}", self.action.title.to_lowercase()),
        })
    }
}

impl Run {
    /// A new, empty image node that nothing else will fill (decisions 8.4).
    async fn check_target(&self, conn: &mut PgConnection, canvas: &CanvasRecord) -> Result<()> {
        let refuse = |message: &str| Err(Problem::unprocessable("targetNodeId", message));
        match db::canvases::node(conn, canvas.key, &self.target).await? {
            None => refuse("is no node of the canvas"),
            Some(node) if node.kind != NodeType::Image => refuse("must be an image node"),
            Some(node) if node.active_job.is_some() => Err(target_is_taken()),
            Some(node) if node.asset.is_some() => refuse("must be empty: it shows an asset already"),
            Some(node) if node.server.contains_key("recipe") => refuse("is bound to a Recipe"),
            Some(_) => Ok(()),
        }
    }

    /// The pictures that the inputs stand for now, each of which must be there and fit the Action; and how long it will take.
    async fn resolve(
        &self,
        conn: &mut PgConnection,
        caller: &Credential,
        canvas: &CanvasRecord,
    ) -> Result<(Vec<JobInput>, i32)> {
        let mut violations = Vec::new();
        let mut assets: Vec<AssetRecord> = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            match db::assets::named(conn, &caller.account, canvas.key, input).await? {
                Some(asset) => assets.push(asset),
                None => {
                    violations.push(Violation::new(format!("inputs[{index}]"), "holds no picture that you can read"))
                }
            }
        }
        if !violations.is_empty() {
            return Err(Problem::Unprocessable(violations));
        }
        let seconds = estimate(self.action, &self.params, &assets).map_err(Problem::Unprocessable)?;
        let inputs = self.inputs.iter().zip(assets);
        let inputs = inputs.map(|(named, asset)| JobInput { handle: named.to_string(), asset: asset.handle });
        Ok((inputs.collect(), seconds))
    }
}
