//! Private workflows: a Recipe of the account and its first instance on a canvas. Nothing runs
//! (docs/reference/recipes.md#instance).

use ::canvas::instance::{self, Filling, Ids, Instance};
use ::canvas::placement::Location;
use ::canvas::{Footprint, Graph, Options};
use db::PgConnection;
use db::accounts::Credential;
use db::kept::Kept;
use domain::Violation;
use domain::canvas::ActivityType;
use domain::channel;
use domain::id::{AccountUid, CanvasHandle, NodeId, RecipeId};
use domain::idempotency::{Fingerprint, StoredOutcome};
use domain::recipe::workflow::{NewWorkflow, Workflow, WorkflowInput, WorkflowOutput};
use domain::recipe::{Definition, InputKind, Version};
use domain::recipe::{Input as Port, Output as Step};
use serde::Deserialize;
use serde_json::json;

use super::ports::{hold, readable};
use super::sources::{Given, held, may_feed};
use crate::canvas::{self, CanvasEvent, ChangedCanvas, addition_refused};
use crate::command::{CanvasWrite, Command, Key, LockedCanvas, Locks};
use crate::{Error, Models, Result, storage};

/// Creates a private workflow and its first instance on a canvas.
pub struct CreateWorkflow<'a, M> {
    /// The models that the account can run.
    pub models: &'a M,
    /// Who creates it.
    pub caller: &'a Credential,
    /// The canvas that is written to.
    pub canvas: &'a CanvasHandle,
    pub workflow: NewWorkflow,
    /// Fingerprint that the idempotency key is bound to.
    pub fingerprint: Fingerprint,
}

impl<M: Models> Command for CreateWorkflow<'_, M> {
    type Subject = ();
    type Reply = (ChangedCanvas, Workflow);

    fn account(&self) -> &AccountUid {
        &self.caller.account
    }

    fn key(&self) -> Option<Key<'_>> {
        Some(Key { text: &self.workflow.idempotency_key, fingerprint: &self.fingerprint })
    }

    fn channels(&self) -> Vec<String> {
        vec![channel::canvas(self.canvas)]
    }

    async fn authorize(&self, _: &mut PgConnection) -> Result<()> {
        Ok(())
    }

    fn writes_to(&self) -> Option<CanvasWrite<'_>> {
        Some(self.target())
    }

    async fn execute(&self, conn: &mut PgConnection, (): (), locked: Option<LockedCanvas>) -> Result<Self::Reply> {
        let account = &self.caller.account;
        let locked = self.target().lock_checked(conn, locked, &Footprint::default()).await?;
        let mut graph = crate::graphs::load(conn, &locked.record).await?;
        let (fillings, mut violations) = self.fillings(conn, &graph).await?;
        violations.extend(self.models.unfit(conn, account, &self.workflow.outputs).await?);
        if !violations.is_empty() {
            return Err(Error::Unprocessable(violations));
        }
        storage::require_fewer(conn, account, Kept::Workflows, "name").await?;
        hold(conn, &fillings).await?;
        let (id, ids) = (RecipeId::generate(), Ids::generate(self.workflow.inputs.len(), self.workflow.outputs.len()));
        let definition = self.definition(&ids, &fillings);
        let instance = Instance {
            recipe: &id,
            version: Version(0),
            definition: &definition,
            ids: &ids,
            fillings: &fillings,
            x: self.workflow.x,
            y: self.workflow.y,
            location: &Location::default(),
        };
        let options = Options { agent: self.caller.surface.is_agent(), force: false };
        let applied =
            instance::place(&mut graph, &instance, options).map_err(|refused| addition_refused(refused, ""))?;
        db::recipes::create_private(conn, account, &id, &definition).await?;
        let event = CanvasEvent {
            kind: ActivityType::WorkflowCreated,
            actor: &self.caller.actor(),
            summary: format!("created the workflow {}", definition.name),
        };
        let changed = canvas::write(conn, locked, graph, applied, ("canvasId", event)).await?;
        Ok((changed, self.reported(id, &ids, &fillings)))
    }

    fn outcome(&self, (changed, workflow): &Self::Reply) -> Option<StoredOutcome> {
        let (resolved_ids, changes) = (changed.resolved_ids.clone(), changed.changes.clone());
        Some(StoredOutcome::Workflow { resolved_ids, changes, workflow: json!(workflow) })
    }

    async fn replay(&self, conn: &mut PgConnection, outcome: StoredOutcome) -> Result<Self::Reply> {
        let inconsistent = |what: String| Error::Inconsistent(format!("the outcome of a workflow: {what}"));
        let StoredOutcome::Workflow { workflow, .. } = &outcome else {
            return Err(inconsistent("is of another kind".into()));
        };
        let workflow = Workflow::deserialize(workflow).map_err(|error| inconsistent(error.to_string()))?;
        Ok((canvas::replayed(conn, &self.target(), outcome).await?, workflow))
    }
}

impl<M> CreateWorkflow<'_, M> {
    fn target(&self) -> CanvasWrite<'_> {
        let account = &self.caller.account;
        CanvasWrite { account, canvas: self.canvas, base: None, locks: Locks::AccountAndCanvas }
    }

    /// The initial content of each input: its value, or what its source holds now; and all violations.
    async fn fillings(&self, conn: &mut PgConnection, graph: &Graph) -> Result<(Vec<Filling>, Vec<Violation>)> {
        let mut violations = Vec::new();
        let mut fillings = Vec::new();
        for (at, input) in self.workflow.inputs.iter().enumerate() {
            let mut note = |field: &str, message: &str| {
                violations.push(Violation::new(format!("inputs[{at}].{field}"), message));
            };
            let mut filling = Filling::default();
            if let Some(Ok(id)) = input.source_node_id.as_deref().map(NodeId::parse) {
                match graph.node(&id) {
                    None => note("sourceNodeId", "is not a node of the canvas"),
                    Some(node) if !may_feed(node, input.kind, input.written_reference) => {
                        note("sourceNodeId", "is a node of another kind than the input");
                    }
                    Some(node) => {
                        let content = readable(conn, &self.caller.account, held(node)).await?;
                        filling = Filling { source: Some(id), ..content };
                    }
                }
            }
            let value = input.value.as_deref().filter(|value| !value.is_empty());
            let has_value = value.is_some();
            if let Some(value) = value {
                let given = match input.kind {
                    InputKind::Image => Given::parse(value, &self.caller.account),
                    InputKind::Text | InputKind::Sticky => Given::Text(value.to_owned()),
                };
                match given.resolve(conn, &self.caller.account, graph).await? {
                    Ok(value) => {
                        let content = readable(conn, &self.caller.account, Some(value)).await?;
                        if content.held.is_none() {
                            note("value", "shows an image that was deleted or that you cannot read");
                        }
                        filling = Filling { source: filling.source, ..content };
                    }
                    Err(message) => note("value", message),
                }
            }
            let port = Port::from_new(input.clone(), String::new(), None);
            match &filling.held {
                Some(held) if port.accepts(held).is_err() => {
                    let field = if has_value { "value" } else { "sourceNodeId" };
                    note(field, port.accepts(held).err().unwrap_or_default());
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

    /// The workflow's first version; its ports are named after their nodes.
    fn definition(&self, ids: &Ids, fillings: &[Filling]) -> Definition {
        let NewWorkflow { name, description, category, tags, inputs, outputs, .. } = self.workflow.clone();
        let ports = inputs.into_iter().zip(&ids.inputs).zip(fillings).map(|((input, id), filling)| {
            let default = filling.held.clone().filter(|_| input.use_as_default);
            Port::from_new(input, id.to_string(), default)
        });
        let steps = outputs.into_iter().zip(&ids.outputs).map(|(output, id)| Step::from_new(output, id.to_string()));
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

    fn reported(&self, id: RecipeId, ids: &Ids, fillings: &[Filling]) -> Workflow {
        let inputs =
            self.workflow.inputs.iter().zip(&ids.inputs).zip(fillings).map(|((input, port), filling)| WorkflowInput {
                key: input.key.clone(),
                port_node_id: port.clone(),
                node_id: filling.source.clone().unwrap_or_else(|| port.clone()),
                label: input.label.clone(),
                use_as_default: input.use_as_default,
            });
        let outputs = self.workflow.outputs.iter().zip(&ids.outputs).map(|(output, port)| WorkflowOutput {
            key: output.key.clone(),
            port_node_id: port.clone(),
            template_node_id: port.clone(),
            label: output.label.clone(),
        });
        Workflow {
            handle: id.handle(),
            id,
            version: Version(0).to_string(),
            name: self.workflow.name.clone(),
            recipe_node_id: ids.instance.clone(),
            workflow_node_id: ids.instance.clone(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
        }
    }
}
