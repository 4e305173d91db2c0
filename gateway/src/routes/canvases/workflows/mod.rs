//! `POST /canvases/{canvasId}/workflows`: a private workflow, and its instance on the canvas; nothing runs (decisions 13).

pub mod rules;

use axum::extract::State;
use canvas::instance::{self, Filling, Ids, Instance};
use canvas::{Graph, Options};
use db::canvases::NewActivity;
use domain::Violation;
use domain::canvas::{AccessRole, ActivityType, CanvasRecord, MutationResult};
use domain::id::{CanvasHandle, NodeId, RecipeId};
use domain::idempotency::Outcome;
use domain::recipe::{Category, Definition, InputKind, NewInput, NewOutput, Version};
use domain::recipe::{Input as Port, Output as Step};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::write;
use crate::extract::caller::{Caller, WriteCanvas};
use crate::extract::canvas::{OnCanvas, require_writer};
use crate::extract::idempotency::{fingerprint, replay};
use crate::extract::json::{Input, Unread};
use crate::extract::prefer;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::routes::recipes::fork::full;
use crate::routes::recipes::sources::{Given, held, may_feed};
use crate::routes::recipes::steps::unfit_models;
use crate::state::{App, retrying};

const PATH: &str = "/canvases/{canvasId}/workflows";

/// A workflow to make.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateWorkflow {
    /// For people.
    #[schema(min_length = 1, max_length = 160)]
    name: String,
    /// For people.
    #[schema(max_length = 1200, nullable = false)]
    description: Option<String>,
    /// The shelf.
    #[serde(default = "product_visualization")]
    #[schema(default = "Product Visualization")]
    category: Category,
    /// To be found by.
    #[serde(default)]
    #[schema(max_items = 12)]
    tags: Vec<String>,
    /// What it takes.
    #[schema(min_items = 1, max_items = 16)]
    inputs: Vec<NewInput>,
    /// What it makes, in the order of its steps.
    #[schema(min_items = 1, max_items = 8)]
    outputs: Vec<NewOutput>,
    /// Names this workflow, so that sending it again makes no second one.
    #[schema(min_length = 8, max_length = 200)]
    idempotency_key: String,
    /// The left edge of its instance; right of the content when left out.
    #[schema(minimum = -100_000, maximum = 100_000, nullable = false)]
    x: Option<f64>,
    /// The top edge of its instance; level with the content when left out.
    #[schema(minimum = -100_000, maximum = 100_000, nullable = false)]
    y: Option<f64>,
}

fn product_visualization() -> Category {
    Category::Product
}

impl Input for CreateWorkflow {}

/// The workflow, and what its instance changed.
#[derive(Serialize, ToSchema)]
pub struct WorkflowResult {
    /// The canvas and what changed on it.
    #[serde(flatten)]
    result: MutationResult,
    /// What was made.
    workflow: Workflow,
}

/// A private workflow with the nodes of its first instance.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Plain id.
    id: RecipeId,
    /// `recipe:<id>`.
    #[schema(pattern = "^recipe:[A-Za-z0-9_-]{1,180}$")]
    handle: String,
    /// Its first.
    version: String,
    /// For people.
    name: String,
    /// The sticky that stands for it.
    recipe_node_id: NodeId,
    /// The same: the instance is its own workflow node.
    workflow_node_id: NodeId,
    /// In the order given.
    inputs: Vec<WorkflowInput>,
    /// In the order given.
    outputs: Vec<WorkflowOutput>,
}

/// An input's nodes.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowInput {
    key: String,
    /// The port node.
    port_node_id: NodeId,
    /// Where it begins: the source node, or the port node itself.
    node_id: NodeId,
    label: String,
    use_as_default: bool,
}

/// An output's nodes.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowOutput {
    key: String,
    /// The output node.
    port_node_id: NodeId,
    /// The node that holds its prompt: the output node, too.
    template_node_id: NodeId,
    label: String,
}

/// Create a private workflow
#[utoipa::path(
    post, path = "/canvases/{canvasId}/workflows", operation_id = "createWorkflow", tag = "Canvases", request_body = CreateWorkflow,
    security(("bearer" = ["canvas:read", "canvas:write"])),
    params(
        ("canvasId" = String, Path, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle."),
        ("ownerUid" = Option<String>, Query, pattern = "^[A-Za-z0-9_-]{1,180}$", description = "Owner, with a plain id."),
        ("Prefer" = Option<String>, Header, description = "`return=minimal` leaves the lists of nodes and connections out of `canvas` (an extension)."),
    ),
    responses(
        (status = 201, body = WorkflowResult, description = "It was made."),
        (status = 200, body = WorkflowResult, description = "It had been made by an earlier, equal request."),
    )
)]
pub async fn workflows(State(app): State<App>, on: OnCanvas<WriteCanvas>, headers: HeaderMap, body: Unread) -> Result {
    let (request, _) = both(body.json_by::<CreateWorkflow, _>(rules::violations).await, on.named())?;
    let (canvas, record, role) = on.readable()?;
    require_writer(role)?;
    let caller = &on.caller;
    let minimal = prefer::minimal(&headers);
    let fingerprint = fingerprint(PATH, &canvas.to_string(), &canonical(&request, caller));
    let creation = Creation { caller, canvas, request, fingerprint, minimal };
    let turn = app.writers.pass(&canvas.to_string()).await?;
    let room = app.documents.room(record.graph_bytes).await?;
    let made = retrying(|| creation.attempt(&app)).await?;
    drop(turn);
    let reply = reply::private(reply::document(room.house_json(&made)?));
    let reply = match made.result.replayed {
        true => reply,
        false => reply::into_created(reply, &format!("/recipes/{}", made.workflow.id)),
    };
    Ok(if minimal { prefer::applied_minimal(reply) } else { reply })
}

/// The request with its handles in one form (decisions 18.2).
fn canonical(request: &CreateWorkflow, caller: &Caller<WriteCanvas>) -> Value {
    let mut request = request.clone();
    for input in &mut request.inputs {
        if let Some(Ok(node)) = input.source_node_id.as_deref().map(NodeId::parse) {
            input.source_node_id = Some(node.to_string());
        }
        if let Some(value) = input.value.as_mut().filter(|_| input.kind == InputKind::Image) {
            *value = Given::parse(value, &caller.account).canonical();
        }
    }
    json!(request)
}

struct Creation<'a> {
    caller: &'a Caller<WriteCanvas>,
    canvas: &'a CanvasHandle,
    request: CreateWorkflow,
    fingerprint: [u8; 32],
    /// Whether the answer leaves out nodes and connections.
    minimal: bool,
}

impl Creation<'_> {
    /// One transaction: key, canvas row, graph, meaning, rows, revision, workflow, outcome.
    async fn attempt(&self, app: &App) -> Result<WorkflowResult> {
        let account = &self.caller.account;
        let mut transaction = app.transaction().await?;
        let key = &self.request.idempotency_key;
        let taken = db::idempotency::take(&mut transaction, account, key, &self.fingerprint).await?;
        let replayed = replay(taken)?;
        let (record, role) = write::lock(&mut transaction, account, self.canvas).await?;
        let mut graph = write::graph(&mut transaction, &record).await?;
        if let Some(outcome) = replayed {
            return self.replayed(outcome, &record, role, graph);
        }
        let (fillings, mut violations) = self.fillings(&mut transaction, &graph).await?;
        if self.request.outputs.iter().any(|output| output.model.is_some()) {
            let models = app.runnable(&mut transaction, account).await?;
            violations.extend(unfit_models(&models, &self.request.outputs));
        }
        if !violations.is_empty() {
            return Err(Problem::Unprocessable(violations));
        }
        let (id, ids) = (RecipeId::generate(), Ids::generate(self.request.inputs.len(), self.request.outputs.len()));
        let definition = self.definition(&ids, &fillings);
        let instance = Instance {
            recipe: &id,
            version: Version(0),
            definition: &definition,
            ids: &ids,
            fillings: &fillings,
            x: self.request.x,
            y: self.request.y,
        };
        let options = Options { agent: self.caller.surface.is_agent(), force: false };
        let applied = instance::place(&mut graph, &instance, options).map_err(full)?;
        db::recipes::create_private(&mut transaction, account, &id, &definition).await?;
        let activity = NewActivity {
            kind: ActivityType::WorkflowCreated,
            actor: &self.caller.actor(),
            summary: format!("created the workflow {}", definition.name),
            nodes: &applied.changes.changed_node_ids,
        };
        let record = write::commit(&mut transaction, &record, &graph, &applied, activity).await?;
        let workflow = self.told(id, &ids, &fillings);
        let (resolved_ids, changes) = (applied.resolved_ids, applied.changes);
        let outcome = Outcome::Workflow {
            resolved_ids: resolved_ids.clone(),
            changes: changes.clone(),
            workflow: json!(workflow),
        };
        db::idempotency::store(&mut transaction, account, key, &outcome).await?;
        db::pool::commit(transaction).await?;
        let canvas = write::after(self.minimal, &record, role, graph);
        Ok(WorkflowResult { result: MutationResult { canvas, replayed: false, resolved_ids, changes }, workflow })
    }

    fn replayed(
        &self,
        outcome: Outcome,
        record: &CanvasRecord,
        role: AccessRole,
        graph: Graph,
    ) -> Result<WorkflowResult> {
        let Outcome::Workflow { resolved_ids, changes, workflow } = outcome else {
            return Err(Problem::internal("the outcome of a workflow is of another kind"));
        };
        let workflow = serde_json::from_value(workflow).map_err(Problem::internal)?;
        let canvas = write::after(self.minimal, record, role, graph);
        Ok(WorkflowResult { result: MutationResult { canvas, replayed: true, resolved_ids, changes }, workflow })
    }

    /// What each input begins with: its value, or what its source holds now; and all that is wrong with that.
    async fn fillings(&self, conn: &mut db::PgConnection, graph: &Graph) -> Result<(Vec<Filling>, Vec<Violation>)> {
        let mut violations = Vec::new();
        let mut fillings = Vec::new();
        for (at, input) in self.request.inputs.iter().enumerate() {
            let mut note = |field: &str, message: &str| {
                violations.push(Violation::new(format!("inputs[{at}].{field}"), message));
            };
            let mut filling = Filling::default();
            if let Some(Ok(id)) = input.source_node_id.as_deref().map(NodeId::parse) {
                match graph.node(&id) {
                    None => note("sourceNodeId", "is no node of the canvas"),
                    Some(node) if !may_feed(node, input.kind, input.written_reference) => {
                        note("sourceNodeId", "is a node of another kind than the input");
                    }
                    Some(node) => filling = Filling { held: held(node), source: Some(id) },
                }
            }
            if let Some(value) = input.value.as_deref().filter(|value| !value.is_empty()) {
                let given = match input.kind {
                    InputKind::Image => Given::parse(value, &self.caller.account),
                    InputKind::Text | InputKind::Sticky => Given::Text(value.to_owned()),
                };
                match given.resolve(conn, &self.caller.account, graph).await? {
                    Ok(value) => filling.held = Some(value),
                    Err(message) => note("value", message),
                }
            }
            let port = Port::of(input.clone(), String::new(), None);
            match &filling.held {
                Some(held) if port.accepts(held).is_err() => {
                    note("value", port.accepts(held).err().unwrap_or_default())
                }
                None if input.use_as_default && filling.source.is_some() => {
                    note("sourceNodeId", "holds nothing yet that could be saved as the default");
                }
                _ => {}
            }
            fillings.push(filling);
        }
        Ok((fillings, violations))
    }

    /// The workflow's first version: its ports are named after their nodes.
    fn definition(&self, ids: &Ids, fillings: &[Filling]) -> Definition {
        let CreateWorkflow { name, description, category, tags, inputs, outputs, .. } = self.request.clone();
        let ports = inputs.into_iter().zip(&ids.inputs).zip(fillings).map(|((input, id), filling)| {
            let default = filling.held.clone().filter(|_| input.use_as_default);
            Port::of(input, id.to_string(), default)
        });
        let steps = outputs.into_iter().zip(&ids.outputs).map(|(output, id)| Step::of(output, id.to_string()));
        Definition {
            name,
            summary: None,
            description: description.filter(|text| !text.is_empty()),
            category,
            tags,
            inputs: ports.collect(),
            outputs: steps.collect(),
        }
    }

    fn told(&self, id: RecipeId, ids: &Ids, fillings: &[Filling]) -> Workflow {
        let inputs =
            self.request.inputs.iter().zip(&ids.inputs).zip(fillings).map(|((input, port), filling)| WorkflowInput {
                key: input.key.clone(),
                port_node_id: port.clone(),
                node_id: filling.source.clone().unwrap_or_else(|| port.clone()),
                label: input.label.clone(),
                use_as_default: input.use_as_default,
            });
        let outputs = self.request.outputs.iter().zip(&ids.outputs).map(|(output, port)| WorkflowOutput {
            key: output.key.clone(),
            port_node_id: port.clone(),
            template_node_id: port.clone(),
            label: output.label.clone(),
        });
        Workflow {
            handle: id.handle(),
            id,
            version: Version(0).to_string(),
            name: self.request.name.clone(),
            recipe_node_id: ids.instance.clone(),
            workflow_node_id: ids.instance.clone(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }
}
