//! `POST /recipes/{recipeId}/runs`: an explicit run of a Recipe, on an instance of its own or on one that is there
//! (decisions 13.4 to 13.6).
//!
//! **Guarantee.** Key, instance, reservation of every step, run, pending outputs with the canvas's new revision, webhook and
//! task are committed together or not at all, and once a key; a refused run takes no key and writes nothing.
//!
//! **Mechanism.** One transaction in the one lock order (key, account, canvas, run), as in [`crate::start`]. Everything that a
//! step can be refused for is judged here, by the same rules as a start of image work.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use canvas::{Graph, Options};
use db::canvases::{Change, NewActivity};
use db::recipe_runs::NewRun;
use db::tasks::NewTask;
use domain::Violation;
use domain::canvas::{ActivityType, CanvasRecord, Changes};
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId, RecipeId};
use domain::idempotency::Outcome;
use domain::message::{Queue, TaskKind};
use domain::recipe::run::{Plan, RecipeRun, RunId, RunRecord};
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::fork::{Asked, full, writable};
use super::ports::{Ports, resolve};
use super::sources::Given;
use super::steps::{self, Choice};
use crate::extract::caller::{Caller, GenerateImages};
use crate::extract::canvas::canvas_of;
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::{Input, Unread};
use crate::extract::path::PathText;
use crate::models::malformed_name;
use crate::observe::Trace;
use crate::problem::{ErrorEnvelope, Problem, Result, both};
use crate::reply;
use crate::routes::canvases::write;
use crate::routes::runs::recipe_document;
use crate::start::{checked_webhook, hold, insert_delivery, require_room, target_is_taken, webhook_violation};
use crate::state::{App, retrying};

const PATH: &str = "/recipes/{recipeId}/runs";

/// A Recipe to run.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunRecipe {
    /// Plain id or handle.
    #[schema(min_length = 1, max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    canvas_id: String,
    /// The revision that the run was made for.
    #[schema(min_length = 1, max_length = 200)]
    base_revision: String,
    /// Names this run, so that sending it again starts nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// Exactly this version; the newest, or that of the instance, when left out.
    #[schema(max_length = 80, nullable = false)]
    version: Option<String>,
    /// The sticky of an instance on the canvas; one is made when left out.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    instance_node_id: Option<String>,
    /// By port node id, key or normalized label: plain text, or a node or asset handle.
    #[serde(default)]
    #[schema(schema_with = inputs)]
    inputs: BTreeMap<String, String>,
    /// Who makes the pictures, or else the texts, instead of whom the Recipe names: a model's id or `model:` handle.
    #[schema(max_length = 650, nullable = false)]
    model: Option<String>,
    /// Of the pictures, instead of what the Recipe says.
    #[schema(max_length = 80, nullable = false)]
    size: Option<String>,
    /// Of the pictures, instead of what the Recipe says.
    #[schema(max_length = 80, nullable = false)]
    quality: Option<String>,
    /// Where to announce the end.
    #[schema(nullable = false)]
    webhook: Option<WebhookInput>,
}

impl Input for RunRecipe {}

/// At most 16 entries of 1 to 8000 characters each (specification, Recipes).
fn inputs() -> Object {
    let value = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(8000));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(value))
        .max_properties(Some(domain::limits::RECIPE_INPUTS_MAX))
        .build()
}

/// Run a Recipe
#[utoipa::path(
    post, path = "/recipes/{recipeId}/runs", operation_id = "runRecipe", tag = "Recipes", request_body = RunRecipe,
    security(("bearer" = ["canvas:read", "canvas:write", "asset:read", "image:generate"])),
    params(("recipeId" = String, Path, pattern = "^(recipe:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses(
        (status = 202, body = RecipeRun),
        (status = 402, body = ErrorEnvelope, description = "The account's credit does not cover the work."),
    )
)]
pub async fn run(
    State(app): State<App>,
    caller: Caller<GenerateImages>,
    params: PathText,
    Extension(trace): Extension<Trace>,
    body: Unread,
) -> Result {
    let rules = |body: &Value| malformed_name("model", &body["model"]).into_iter().chain(webhook_violation(&app, body));
    let (request, id) = both(body.json_by::<RunRecipe, _>(rules).await, params.parameter::<RecipeId>("recipeId"))?;
    let canvas = canvas_of(&request.canvas_id, None, &caller.account)?;
    let start = Start::judge(&app, &caller, id, canvas, request, trace)?;
    let record = writable(&app, &caller.account, &start.canvas).await?;
    let turn = app.writers.pass(&start.canvas.to_string()).await?;
    let _room = app.documents.room(record.graph_bytes).await?;
    let (run, replayed) = retrying(|| start.attempt(&app)).await?;
    drop(turn);
    let mut document = recipe_document(&app, caller.scopes, &run);
    match replayed {
        true => document.replayed = Some(true),
        false => app.nudge.nudge(),
    }
    Ok(reply::accepted(&document.poll_url, &document))
}

/// A run that is right by itself.
struct Start<'a> {
    caller: &'a Caller<GenerateImages>,
    id: RecipeId,
    canvas: CanvasHandle,
    fingerprint: [u8; 32],
    key: String,
    base_revision: String,
    version: Option<String>,
    instance: Option<NodeId>,
    inputs: BTreeMap<String, Given>,
    choice: Choice,
    webhook: Option<WebhookInput>,
    trace: Trace,
}

/// A run's plan on its instance, as the canvas holds it now.
struct Prepared {
    instance: NodeId,
    plan: Plan,
    name: String,
    /// What making the instance changed of the canvas.
    placed: canvas::Applied,
}

impl<'a> Start<'a> {
    fn judge(
        app: &App,
        caller: &'a Caller<GenerateImages>,
        id: RecipeId,
        canvas: CanvasHandle,
        request: RunRecipe,
        trace: Trace,
    ) -> Result<Self> {
        let instance = request.instance_node_id.as_deref().map(NodeId::parse).transpose();
        let instance = instance.map_err(|error| Problem::invalid("instanceNodeId", error.to_string()))?;
        let webhook = request.webhook.map(|webhook| checked_webhook(app, webhook)).transpose()?;
        let given = |(name, value): (String, String)| (name, Given::parse(&value, &caller.account));
        let inputs: BTreeMap<String, Given> = request.inputs.into_iter().map(given).collect();
        let spelled: BTreeMap<&String, String> = inputs.iter().map(|(name, given)| (name, given.canonical())).collect();
        let body = json!({
            "recipe": id, "version": request.version, "baseRevision": request.base_revision, "inputs": spelled,
            "instanceNodeId": instance, "model": request.model, "size": request.size, "quality": request.quality,
            "webhook": webhook,
        });
        Ok(Self {
            fingerprint: fingerprint(PATH, &canvas.to_string(), &body),
            caller,
            id,
            canvas,
            key: request.idempotency_key,
            base_revision: request.base_revision,
            version: request.version,
            instance,
            inputs,
            choice: Choice { model: request.model, size: request.size, quality: request.quality },
            webhook,
            trace,
        })
    }

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    /// The run, and whether an earlier, equal request started it.
    async fn attempt(&self, app: &App) -> Result<(RunRecord, bool)> {
        let mut transaction = app.transaction().await?;
        let conn = &mut *transaction;
        let asked = Asked::find(conn, self.account(), &self.id).await?;
        let id = RunId::generate();
        let outcome = Outcome::Job { id: id.0, snapshot: None };
        let (key, fingerprint) = (&self.key, &self.fingerprint);
        let taken = db::idempotency::take_for(conn, self.account(), key, fingerprint, &outcome, None).await?;
        if let Some(outcome) = replay(taken)? {
            let Outcome::Job { id, .. } = outcome else {
                return Err(Problem::internal("the outcome of a run is of another kind"));
            };
            // Runs are kept as long as their account (decisions 9.3).
            let run = db::recipe_runs::get(conn, RunId(id), self.account()).await?.ok_or(Problem::NotFound("run"))?;
            return Ok((run, true));
        }
        let record = hold(conn, self.account(), &self.canvas).await?;
        if record.revision != self.base_revision {
            return Err(Problem::stale(&record, &self.base_revision));
        }
        require_room(app, conn, self.account(), 1).await?;
        let mut graph = write::graph(conn, &record).await?;
        let (recipe, ports) = match &self.instance {
            Some(instance) => {
                let ports = Ports::of_instance(&graph, instance, &self.id)?;
                if self.version.as_ref().is_some_and(|version| *version != ports.version) {
                    return Err(Problem::unprocessable("version", "is not the version of the instance"));
                }
                let recipe = asked.version(conn, self.account(), Some(&ports.version)).await?;
                (recipe, Some(ports))
            }
            None => (asked.version(conn, self.account(), self.version.as_deref()).await?, None),
        };
        let prepared = self.prepare(app, conn, &mut graph, &recipe, ports).await?;
        if !db::ledger::reserve(conn, self.account(), JobId(id.0), prepared.plan.credit_cost()).await? {
            return Err(Problem::PaymentRequired);
        }
        let new = NewRun {
            id,
            account: self.account(),
            token_id: self.caller.token,
            recipe: (&recipe.id, recipe.version),
            canvas: (record.key, &record.handle),
            instance: &prepared.instance,
            plan: &prepared.plan,
        };
        db::recipe_runs::insert(conn, &new).await?;
        write::rows(conn, &record, &graph, &prepared.placed).await?;
        self.announce(app, conn, &record, id, &prepared).await?;
        let run = db::recipe_runs::get(conn, id, self.account()).await?;
        let run = run.ok_or_else(|| Problem::internal("a run that was just accepted is not there"))?;
        db::pool::commit(transaction).await?;
        Ok((run, false))
    }

    /// What is to be run, on an instance that is there or on one that is put on the graph here.
    async fn prepare(
        &self,
        app: &App,
        conn: &mut db::PgConnection,
        graph: &mut Graph,
        recipe: &domain::recipe::RecipeRecord,
        ports: Option<Ports>,
    ) -> Result<Prepared> {
        let definition = &recipe.definition;
        let is_new = ports.is_none();
        let ports = match ports {
            Some(ports) => ports.matched(graph, definition)?,
            None => Ports::fresh(definition, recipe.version),
        };
        let mut refused: Vec<Violation> = Vec::new();
        let inputs =
            resolve(conn, self.account(), graph, definition, &ports, &self.inputs, is_new, &mut refused).await?;
        if !refused.is_empty() {
            return Err(Problem::Unprocessable(refused));
        }
        let models = app.runnable(conn, self.account()).await?;
        let outputs = ports.outputs(graph, definition, is_new)?;
        let steps = steps::choose(&models, &outputs, &ports.ids.outputs, &inputs, &self.choice);
        let plan = Plan { inputs, steps: steps.map_err(Problem::Unprocessable)? };
        let placed = match is_new {
            true => {
                let fillings: Vec<_> = plan.inputs.iter().map(super::ports::filling).collect();
                let instance = canvas::instance::Instance {
                    recipe: &recipe.id,
                    version: recipe.version,
                    definition,
                    ids: &ports.ids,
                    fillings: &fillings,
                    x: None,
                    y: None,
                };
                let options = Options { agent: self.caller.surface.is_agent(), force: false };
                canvas::instance::place(graph, &instance, options).map_err(full)?
            }
            false => canvas::Applied::default(),
        };
        Ok(Prepared { instance: ports.ids.instance, plan, name: definition.name.clone(), placed })
    }

    /// Marks the outputs, gives the canvas its next revision and enqueues the run.
    async fn announce(
        &self,
        app: &App,
        conn: &mut db::PgConnection,
        record: &CanvasRecord,
        id: RunId,
        prepared: &Prepared,
    ) -> Result<()> {
        let Prepared { plan, placed, .. } = prepared;
        let outputs: Vec<NodeId> = plan.steps.iter().map(|step| step.node.clone()).collect();
        let marked = db::recipe_runs::mark_outputs(conn, record.key, id, &outputs).await?;
        let marked = marked.ok_or_else(target_is_taken)?;
        let mut changes: Changes = placed.changes.clone();
        changes
            .changed_node_ids
            .extend(outputs.iter().filter(|output| !placed.changes.changed_node_ids.contains(output)).cloned());
        let change = Change {
            revision: &service::random::revision(),
            title: None,
            nodes_delta: placed.nodes_delta,
            connections_delta: placed.connections_delta,
            bytes_delta: placed.bytes_delta + marked,
            changes: &changes,
            activity: Some(NewActivity {
                kind: ActivityType::RecipeStarted,
                actor: &self.caller.actor(),
                summary: format!("started {}", prepared.name),
                nodes: &outputs,
            }),
        };
        db::canvases::commit_change(conn, record.key, &change).await?;
        if let Some(webhook) = &self.webhook {
            insert_delivery(app, conn, self.account(), JobId(id.0), webhook).await?;
        }
        let task = NewTask {
            id: id.0,
            queue: Queue::Recipe,
            kind: TaskKind::Recipe,
            lane: self.account().as_str(),
            due_in: None,
            traceparent: Some(&self.trace.0.to_string()),
        };
        Ok(db::tasks::enqueue(conn, &task).await?)
    }
}
