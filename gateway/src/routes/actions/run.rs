//! `POST /actions/{actionKey}/runs`: accepts an Action run in one transaction (decisions 8.4, 9.2).

use axum::Extension;
use axum::extract::State;
use db::canvases::{Change, NewActivity};
use db::deliveries::NewDelivery;
use db::idempotency::Taken;
use db::jobs::NewJob;
use db::tasks::NewTask;
use domain::Violation;
use domain::action::Action;
use domain::asset::AssetRecord;
use domain::canvas::{ActivityType, CanvasRecord, Changes};
use domain::graph::NodeType;
use domain::id::{AssetHandle, AssetRef, CanvasHandle, CanvasRef, JobId, NodeId};
use domain::idempotency::Outcome;
use domain::job::{ActionRequest, Input as JobInput, JobKind, JobOperation, Record, Request};
use domain::message::{Queue, TaskKind};
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::plan::refuse;
use super::read::action_of;
use crate::extract::caller::{Caller, RunAction};
use crate::extract::canvas::require_writer;
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::{Input, Unread};
use crate::extract::path::PathText;
use crate::observe::Trace;
use crate::problem::{Problem, Result};
use crate::reply;
use crate::routes::runs::document;
use crate::state::{App, retrying};

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
    let start = Start::judge(&app, &caller, action, request, trace).map_err(Problem::Invalid)?;
    let turn = app.writers.pass(&start.canvas.to_string()).await?;
    let (record, replayed) = retrying(|| start.attempt(&app, &caller)).await?;
    drop(turn);
    let mut job = match record {
        Started::Record(record) => {
            serde_json::to_value(document(&app, caller.scopes, &record)).map_err(Problem::internal)?
        }
        Started::Snapshot(snapshot) => snapshot,
    };
    if replayed {
        job["replayed"] = json!(true);
    } else {
        app.nudge.nudge();
    }
    let poll_url = job["pollUrl"].as_str().unwrap_or_default().to_owned();
    Ok(reply::accepted(&poll_url, &job))
}

/// An input as the request names it.
#[derive(Clone)]
enum Named {
    Node(NodeId),
    Asset(AssetHandle),
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Named::Node(node) => f.write_str(&node.handle()),
            Named::Asset(asset) => asset.fmt(f),
        }
    }
}

/// A start that is right by itself.
struct Start {
    action: &'static Action,
    canvas: CanvasHandle,
    base_revision: String,
    key: String,
    target: NodeId,
    inputs: Vec<Named>,
    params: Map<String, Value>,
    webhook: Option<WebhookInput>,
    fingerprint: [u8; 32],
    traceparent: String,
}

enum Started {
    Record(Box<Record>),
    /// What is left of a job whose record is gone (decisions 1.12).
    Snapshot(Value),
}

impl Start {
    /// Everything that the request alone can tell, all violations at once.
    fn judge(
        app: &App,
        caller: &Caller<RunAction>,
        action: &'static Action,
        request: RunRequest,
        trace: Trace,
    ) -> Result<Self, Vec<Violation>> {
        let mut violations = Vec::new();
        let mut note = |field: &str, message: String| violations.push(Violation::new(field, message));
        let canvas = CanvasRef::parse(&request.canvas_id).map_err(|error| note("canvasId", error.to_string())).ok();
        let target =
            NodeId::parse(&request.target_node_id).map_err(|error| note("targetNodeId", error.to_string())).ok();
        let mut inputs = Vec::new();
        for (index, text) in request.inputs.iter().enumerate() {
            match named(text, caller) {
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
        let webhook = request.webhook.map(|webhook| match app.guard.check_url(&webhook.url) {
            Ok(url) => WebhookInput { url: url.into(), ..webhook },
            Err(refusal) => {
                note("webhook.url", refusal.to_string());
                webhook
            }
        });
        let params = action.normalize(&request.params).unwrap_or_else(|wrong| {
            violations.extend(wrong);
            Map::new()
        });
        let (Some(canvas), Some(target), true) = (canvas, target, violations.is_empty()) else {
            return Err(violations);
        };
        let canvas = canvas.resolve(&caller.account);
        let body = json!({
            "baseRevision": request.base_revision, "targetNodeId": target, "params": params, "webhook": webhook,
            "inputs": inputs.iter().map(ToString::to_string).collect::<Vec<_>>(), "action": action.id,
        });
        Ok(Self {
            fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
            action,
            canvas,
            base_revision: request.base_revision,
            key: request.idempotency_key,
            target,
            inputs,
            params,
            webhook,
            traceparent: trace.0.to_string(),
        })
    }

    /// One transaction: key, account, canvas, revision, meaning, job, target, revision, delivery, task, outcome.
    async fn attempt(&self, app: &App, caller: &Caller<RunAction>) -> Result<(Started, bool)> {
        let mut transaction = app.transaction().await?;
        let conn = &mut *transaction;
        // Who has no access is told so before the key is looked at (decisions 1.2).
        let (_, role) =
            db::canvases::find(conn, &caller.account, &self.canvas).await?.ok_or(Problem::NotFound("canvas"))?;
        require_writer(role)?;
        let taken = db::idempotency::take(conn, &caller.account, &self.key, &self.fingerprint).await?;
        if let Some(outcome) = replay(taken)? {
            return Ok((replayed(conn, caller, (&self.key, &self.fingerprint), outcome).await?, true));
        }
        db::accounts::lock(conn, &caller.account).await?;
        let (canvas, role) =
            db::canvases::lock(conn, &caller.account, &self.canvas).await?.ok_or(Problem::NotFound("canvas"))?;
        require_writer(role)?;
        self.check_state(app, conn, caller, &canvas).await?;
        let inputs = self.resolve(conn, caller, &canvas).await?;
        let id = JobId::generate();
        self.accept(app, conn, caller, &canvas, id, inputs).await?;
        let record = db::jobs::get(conn, id, &caller.account)
            .await?
            .ok_or_else(|| Problem::internal("a job that was just accepted is not there"))?;
        db::pool::commit(transaction).await?;
        spine::failpoint!("start.committed");
        Ok((Started::Record(Box::new(record)), false))
    }

    /// Revision, target and the cap on active jobs: 409, 422 and 429.
    async fn check_state(
        &self,
        app: &App,
        conn: &mut db::PgConnection,
        caller: &Caller<RunAction>,
        canvas: &CanvasRecord,
    ) -> Result<()> {
        if canvas.revision != self.base_revision {
            return Err(Problem::stale(canvas, &self.base_revision));
        }
        let cap = i64::from(app.config.active_jobs);
        if db::jobs::count_active(conn, &caller.account, cap).await? >= cap {
            return Err(Problem::RateLimited(format!("the account has {cap} active jobs"), 5));
        }
        let refuse = |message: &str| Err(Problem::unprocessable("targetNodeId", message));
        match db::canvases::node(conn, canvas.key, &self.target).await? {
            None => refuse("is no node of the canvas"),
            Some(node) if node.kind != NodeType::Image => refuse("must be an image node"),
            Some(node) if node.active_job.is_some() => {
                Err(Problem::Conflict("the target node has an active job".into(), None))
            }
            Some(node) if node.asset.is_some() => refuse("must be empty: it shows an asset already"),
            Some(node) if node.server.contains_key("recipe") => refuse("is bound to a Recipe"),
            Some(_) => Ok(()),
        }
    }

    /// The pictures that the inputs stand for now; each must be there, and fit the Action.
    async fn resolve(
        &self,
        conn: &mut db::PgConnection,
        caller: &Caller<RunAction>,
        canvas: &CanvasRecord,
    ) -> Result<Vec<JobInput>> {
        let mut violations = Vec::new();
        let mut assets: Vec<AssetRecord> = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            let asset = match input {
                Named::Node(node) => db::assets::of_node(conn, canvas.key, node).await?,
                Named::Asset(asset) => {
                    db::assets::get_readable(conn, &caller.account, asset).await?.map(|(asset, _)| asset)
                }
            };
            match asset {
                Some(asset) => assets.push(asset),
                None => {
                    violations.push(Violation::new(format!("inputs[{index}]"), "holds no picture that you can read"))
                }
            }
        }
        if violations.is_empty() {
            violations = refuse(self.action, &self.params, &assets);
        }
        if !violations.is_empty() {
            return Err(Problem::Unprocessable(violations));
        }
        Ok(self
            .inputs
            .iter()
            .zip(assets)
            .map(|(named, asset)| JobInput { handle: named.to_string(), asset: asset.handle })
            .collect())
    }

    async fn accept(
        &self,
        app: &App,
        conn: &mut db::PgConnection,
        caller: &Caller<RunAction>,
        canvas: &CanvasRecord,
        id: JobId,
        inputs: Vec<JobInput>,
    ) -> Result<()> {
        let revision = service::random::revision();
        let request = Request::Action(ActionRequest {
            slug: self.action.slug.into(),
            version: self.action.version.into(),
            params: self.params.clone(),
            inputs,
            target: self.target.clone(),
        });
        db::jobs::insert(
            conn,
            &NewJob {
                id,
                account: &caller.account,
                token_id: caller.token,
                kind: JobKind::Action,
                operation: JobOperation::Action,
                canvas: Some((canvas.key, &canvas.handle)),
                canvas_revision: Some(&revision),
                request: &request,
                estimated_seconds: self.action.estimated_seconds,
                credit_cost: 0,
            },
        )
        .await?;
        let bytes_delta = db::jobs::mark_target(conn, canvas.key, &self.target, id, JobOperation::Action)
            .await?
            .ok_or_else(|| Problem::Conflict("the target node has an active job".into(), None))?;
        let nodes = [self.target.clone()];
        let change = Change {
            revision: &revision,
            title: None,
            nodes_delta: 0,
            connections_delta: 0,
            bytes_delta,
            changes: &Changes { changed_node_ids: nodes.to_vec(), ..Changes::default() },
            activity: Some(NewActivity {
                kind: ActivityType::JobStarted,
                actor: &caller.actor(),
                summary: format!("started {}", self.action.title.to_lowercase()),
                nodes: &nodes,
            }),
        };
        db::canvases::commit_change(conn, canvas.key, &change).await?;
        if let Some(webhook) = &self.webhook {
            insert_delivery(app, conn, caller, id, webhook).await?;
        }
        db::tasks::enqueue(
            conn,
            &NewTask {
                id: id.0,
                queue: Queue::Image,
                kind: TaskKind::Action,
                lane: caller.account.as_str(),
                due_in: None,
                traceparent: Some(&self.traceparent),
            },
        )
        .await?;
        let outcome = Outcome::Job { id: id.0, snapshot: None };
        db::idempotency::store(conn, &caller.account, &self.key, &outcome, Some(id.0)).await?;
        Ok(())
    }
}

async fn insert_delivery(
    app: &App,
    conn: &mut db::PgConnection,
    caller: &Caller<RunAction>,
    job_id: JobId,
    webhook: &WebhookInput,
) -> Result<(), db::Error> {
    let id = Uuid::now_v7();
    let sealed = app.ring.seal(&db::deliveries::handle(id), webhook.secret.as_bytes());
    let delivery = NewDelivery { id, account: &caller.account, job_id, url: &webhook.url, sealed_secret: &sealed };
    db::deliveries::insert(conn, &delivery).await
}

/// The original job as it is now, or what is left of it.
async fn replayed(
    conn: &mut db::PgConnection,
    caller: &Caller<RunAction>,
    (key, fingerprint): (&str, &[u8; 32]),
    outcome: Outcome,
) -> Result<Started> {
    let Outcome::Job { id, snapshot } = outcome else {
        return Err(Problem::internal("the outcome of a start is of another kind"));
    };
    match (db::jobs::get(conn, JobId(id), &caller.account).await?, snapshot) {
        (Some(record), _) => Ok(Started::Record(Box::new(record))),
        (None, Some(snapshot)) => Ok(Started::Snapshot(snapshot)),
        // Removed since the key was looked at: what is left of it is stored with the key now.
        (None, None) => match db::idempotency::look_up(conn, &caller.account, key, fingerprint).await? {
            Some(Taken::Replay(Outcome::Job { snapshot: Some(snapshot), .. })) => Ok(Started::Snapshot(snapshot)),
            _ => Err(Problem::internal("a replayed job is gone and left no snapshot")),
        },
    }
}

/// A node or asset handle; a plain id would not tell which.
fn named(text: &str, caller: &Caller<RunAction>) -> Option<Named> {
    if text.starts_with("node:") {
        return NodeId::parse(text).ok().map(Named::Node);
    }
    let asset = text.starts_with("asset:").then(|| AssetRef::parse(text).ok()).flatten()?;
    Some(Named::Asset(asset.resolve(&caller.account)))
}
