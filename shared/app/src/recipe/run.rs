//! Runs of Recipes: how they start, on a new instance or on an existing one (docs/reference/recipes.md#run-inputs).
//!
//! **Guarantee.** Key, instance, credit reservations of all steps, run, pending outputs with the canvas's new revision, webhook
//! and task are committed together or not at all, and once for each key. A rejected run takes no key and writes nothing.
//!
//! **Mechanism.** One transaction in the common lock order (key, account, canvas, run), as in [`crate::job`]. Every reason for
//! which a step can be rejected is checked here, by the same rules as a start of image work.

use std::collections::BTreeMap;

use ::canvas::instance::{self, Instance};
use ::canvas::placement::Location;
use ::canvas::{Applied, Footprint, Graph, Options};
use db::PgConnection;
use db::accounts::Credential;
use db::canvases::NewActivity;
use db::recipe_runs::NewRun;
use db::tasks::NewTask;
use domain::Violation;
use domain::canvas::ActivityType;
use domain::channel;
use domain::graph::Node;
use domain::id::{AccountUid, CanvasHandle, JobId, NodeId, RecipeId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::job::StartQuote;
use domain::message::{Queue, TaskKind};
use domain::recipe::RecipeRecord;
use domain::recipe::run::{Plan, RunId, RunRecord};
use domain::webhook::WebhookInput;

use super::RequestedRecipe;
use super::ports::{Ports, footprint_of_instance, hold, resolve};
use super::sources::Given;
use crate::canvas::{self, addition_refused};
use crate::command::{Base, CanvasWrite, Command, Key, KnownOutcome, LockedCanvas};
use crate::job::{JobSettings, insert_delivery, require_room, target_is_taken};
use crate::start::{Acceptance, Start, Terms};
use crate::target::{self, Work};
use crate::{Error, Models, Result, storage};

/// The overrides of a run for its images.
pub struct Choice {
    /// Model of the images; in a Recipe without images, of the texts.
    pub model: Option<String>,
    /// Size of the images.
    pub size: Option<String>,
    /// Quality of the images.
    pub quality: Option<String>,
}

/// A run to start.
pub struct NewRecipeRun {
    /// Canvas of the instance.
    pub canvas: CanvasHandle,
    /// Key and maximum price.
    pub terms: Terms,
    /// Canvas revision that the request is based on.
    pub base: Base,
    /// Version of the Recipe; that of the instance, or the newest, when omitted.
    pub version: Option<String>,
    /// Sticky node of an existing instance; a new instance is created when omitted.
    pub instance: Option<NodeId>,
    /// Where a new instance goes.
    pub location: Location,
    /// Input values by port node id, key or normalized label.
    pub inputs: BTreeMap<String, Given>,
    /// The overrides of the request.
    pub choice: Choice,
    /// `true` if an output takes the largest size within its present one that shows its image whole.
    pub fit: bool,
    /// Webhook to notify when the run ends; its URL has been checked.
    pub webhook: Option<WebhookInput>,
}

pub struct StartRun<'a, M> {
    /// The models that the account can run.
    pub models: &'a M,
    pub settings: JobSettings<'a>,
    /// Who starts it.
    pub caller: &'a Credential,
    /// Id of the run, if it is accepted.
    pub id: RunId,
    pub recipe: RecipeId,
    pub run: NewRecipeRun,
    /// Fingerprint that the idempotency key is bound to.
    pub fingerprint: Fingerprint,
    /// W3C trace context of the request.
    pub traceparent: String,
}

/// A checked run on its instance.
pub struct Prepared {
    canvas: LockedCanvas,
    /// The graph, with the instance.
    graph: Graph,
    recipe: RecipeRecord,
    instance: NodeId,
    plan: Plan,
    name: String,
    /// Changes of the canvas that create the instance.
    placed: Applied,
}

impl<M> StartRun<'_, M> {
    fn target(&self) -> CanvasWrite<'_> {
        CanvasWrite {
            account: &self.caller.account,
            canvas: &self.run.canvas,
            base: Some(&self.run.base),
            locks: self.run.terms.locks(),
        }
    }
}

impl<M: Models> Command for StartRun<'_, M> {
    type Subject = RequestedRecipe;
    /// The run, and how it was accepted.
    type Reply = (RunRecord, Acceptance);

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        self.run.terms.key(&self.fingerprint)
    }

    fn known_outcome(&self) -> Option<KnownOutcome> {
        Some(KnownOutcome {
            outcome: StoredOutcome::Job { id: self.id.0, more: Vec::new(), snapshot: None },
            record: None,
        })
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(&self.run.canvas), channel::runs(self.account())]
    }

    async fn authorize(&self, conn: &mut PgConnection) -> Result<RequestedRecipe> {
        RequestedRecipe::find(conn, self.account(), &self.recipe).await
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target())
    }

    async fn execute(
        &self,
        conn: &mut PgConnection,
        requested: RequestedRecipe,
        locked: Option<LockedCanvas>,
    ) -> Result<(RunRecord, Acceptance)> {
        let prepared = self.plan(conn, requested, locked).await?;
        let (account, Prepared { canvas, recipe, plan, .. }) = (self.account(), &prepared);
        let record = &canvas.record;
        self.run.terms.reserve(conn, self.caller, &[(self.id.0, plan.credit_cost())], plan.steps.len() as i64).await?;
        let new = NewRun {
            id: self.id,
            account,
            token_id: self.caller.token,
            recipe: (&recipe.id, recipe.version),
            canvas: (record.key, &record.handle),
            instance: &prepared.instance,
            plan,
        };
        db::recipe_runs::insert(conn, &new).await?;
        self.announce(conn, &prepared).await?;
        let run = db::recipe_runs::get(conn, self.id, account).await?;
        let missing = || Error::Inconsistent("a run that was just accepted is missing".into());
        run.map(|run| (run, Acceptance::on(canvas))).ok_or_else(missing)
    }

    fn outcome(&self, _: &(RunRecord, Acceptance)) -> Option<StoredOutcome> {
        None
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<(RunRecord, Acceptance)> {
        let StoredOutcome::Job { id, .. } = outcome else {
            return Err(Error::Inconsistent("the key of a run holds an outcome of another kind".into()));
        };
        // Runs are kept as long as their account (docs/reference/recipes.md#retention-of-runs).
        let run = db::recipe_runs::get(conn, RunId(id), self.account()).await?;
        run.map(|run| (run, Acceptance::Replayed)).ok_or(Error::NotFound("run"))
    }
}

impl<M: Models> Start for StartRun<'_, M> {
    type Plan = Prepared;

    fn caller(&self) -> &Credential {
        self.caller
    }

    fn terms(&self) -> &Terms {
        &self.run.terms
    }

    async fn plan(
        &self,
        conn: &mut PgConnection,
        requested: RequestedRecipe,
        locked: Option<LockedCanvas>,
    ) -> Result<Prepared> {
        let account = self.account();
        let canvas = self.target().lock_checked(conn, locked, &self.footprint()).await?;
        require_room(conn, self.settings, account, 1).await?;
        let graph = crate::graphs::load(conn, &canvas.record).await?;
        if let Some(instance) = &self.run.instance {
            canvas.admit(&footprint_of_instance(&graph, instance))?;
        }
        let (recipe, ports) = match &self.run.instance {
            Some(instance) => {
                let ports = Ports::of_instance(&graph, instance, &self.recipe)?;
                if self.run.version.as_ref().is_some_and(|version| *version != ports.version) {
                    return Err(Error::unprocessable("version", "is not the version of the instance"));
                }
                let recipe = requested.version(conn, account, Some(&ports.version)).await?;
                (recipe, Some(ports))
            }
            None => (requested.version(conn, account, self.run.version.as_deref()).await?, None),
        };
        let prepared = self.prepare(conn, canvas, graph, recipe, ports).await?;
        let place =
            storage::Place { owner: &prepared.canvas.record.handle.owner, caller: account, field: Some("canvasId") };
        place.require(conn, storage::of_outputs(prepared.plan.steps.len())).await?;
        Ok(prepared)
    }

    fn outputs(&self, Prepared { plan, .. }: &Prepared) -> i64 {
        plan.steps.len() as i64
    }

    fn queue(&self, _: &Prepared) -> Queue {
        Queue::Recipe
    }

    fn quote(&self, Prepared { plan, graph, .. }: &Prepared) -> StartQuote {
        let targets: Vec<NodeId> = plan.steps.iter().map(|step| step.node.clone()).collect();
        let quote = StartQuote::new(plan.credit_cost(), plan.estimated_seconds(), plan.model(), &targets);
        match self.run.instance {
            Some(_) => quote,
            None => quote.with_new(targets.iter().filter_map(|target| graph.node(target))),
        }
    }

    fn is_lenient(&self, prepared: &Prepared) -> bool {
        Acceptance::on(&prepared.canvas) == Acceptance::Lenient
    }
}

impl<M: Models> StartRun<'_, M> {
    /// The nodes that the request names: the instance, those whose content it gives as inputs, and those that determine the place.
    fn footprint(&self) -> Footprint {
        let given = self.run.inputs.values().filter_map(|given| match given {
            Given::Node(node) => Some(node),
            Given::Asset(_) | Given::Text(_) => None,
        });
        Footprint::of_nodes(self.run.instance.iter().chain(given).chain(self.run.location.nodes()))
    }

    /// The plan of the run, on an existing instance or on one that is created on the graph here.
    async fn prepare(
        &self,
        conn: &mut PgConnection,
        canvas: LockedCanvas,
        mut graph: Graph,
        recipe: RecipeRecord,
        ports: Option<Ports>,
    ) -> Result<Prepared> {
        let definition = &recipe.definition;
        let is_new = ports.is_none();
        let ports = match ports {
            Some(ports) => ports.matched(&graph, definition)?,
            None => Ports::fresh(definition, recipe.version),
        };
        let mut refused: Vec<Violation> = Vec::new();
        let (inputs, fillings) =
            resolve(conn, self.account(), &graph, definition, &ports, &self.run.inputs, is_new, &mut refused).await?;
        refused.extend(self.run.location.violations(&graph));
        if !refused.is_empty() {
            return Err(Error::Unprocessable(refused));
        }
        // A dry run reads a snapshot, which locks nothing.
        if is_new && !self.run.terms.is_dry_run() {
            hold(conn, &fillings).await?;
        }
        let outputs = ports.outputs(&graph, definition, is_new)?;
        let (nodes, choice) = (&ports.ids.outputs, &self.run.choice);
        let steps = self.models.steps(conn, self.account(), &outputs, nodes, &inputs, choice).await?;
        let plan = Plan { inputs, steps };
        let mut placed = Applied::default();
        if is_new {
            let instance = Instance {
                recipe: &recipe.id,
                version: recipe.version,
                definition,
                ids: &ports.ids,
                fillings: &fillings,
                x: None,
                y: None,
                location: &self.run.location,
            };
            let options = Options { agent: self.caller.surface.is_agent(), force: false };
            placed =
                instance::place(&mut graph, &instance, options).map_err(|refused| addition_refused(refused, ""))?;
        }
        let (instance, name) = (ports.ids.instance, definition.name.clone());
        Ok(Prepared { canvas, graph, recipe, instance, plan, name, placed })
    }

    /// Marks the outputs, advances the canvas revision and enqueues the run.
    async fn announce(&self, conn: &mut PgConnection, prepared: &Prepared) -> Result<()> {
        let Prepared { canvas: LockedCanvas { record, .. }, graph, plan, placed, .. } = prepared;
        let outputs: Vec<NodeId> = plan.steps.iter().map(|step| step.node.clone()).collect();
        let nodes: Option<Vec<Node>> = outputs.iter().map(|output| graph.node(output).cloned()).collect();
        let mut nodes = nodes.ok_or_else(target_is_taken)?;
        let bound = target::bind(&mut nodes, Work::Run(self.id), self.run.fit).ok_or_else(target_is_taken)?;
        let revision = service::random::revision();
        let actor = self.caller.actor();
        let mut change = canvas::change(&revision, graph, placed);
        change.graph.put_nodes(&nodes);
        change.bytes_delta += bound;
        change.activity = Some(NewActivity {
            kind: ActivityType::RecipeStarted,
            actor: &actor,
            summary: format!("started {}", prepared.name),
            nodes: &outputs,
        });
        db::canvases::write(conn, record.key, &change).await?;
        if let Some(webhook) = &self.run.webhook {
            insert_delivery(conn, self.settings.ring, self.account(), JobId(self.id.0), webhook).await?;
        }
        let task = NewTask {
            id: self.id.0,
            queue: Queue::Recipe,
            kind: TaskKind::Recipe,
            fairness_key: self.account().as_str(),
            due_in: None,
            traceparent: Some(&self.traceparent),
        };
        Ok(db::tasks::enqueue(conn, &task).await?)
    }
}
