//! Private workflows: a request to create one, and its served form (docs/reference/recipes.md#instance).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Category, NewInput, NewOutput};
use crate::canvas::MutationResult;
use crate::id::{NodeId, RecipeId};

/// A workflow to create. Its JSON, with the handles in canonical form, is what the idempotency key is bound to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewWorkflow {
    /// Display name.
    pub name: String,
    /// Description for readers.
    pub description: Option<String>,
    /// Category in which the workflow is listed.
    pub category: Category,
    /// Search tags.
    pub tags: Vec<String>,
    /// Inputs of the workflow.
    pub inputs: Vec<NewInput>,
    /// Outputs of the workflow, in the order of its steps.
    pub outputs: Vec<NewOutput>,
    pub idempotency_key: String,
    /// Left edge of the instance, in canvas units; right of the content when omitted.
    pub x: Option<f64>,
    /// Top edge of the instance, in canvas units; level with the content when omitted.
    pub y: Option<f64>,
}

/// A private workflow with the nodes of its first instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Plain id of the workflow.
    pub id: RecipeId,
    /// Handle of the workflow, `recipe:<id>`.
    #[schema(pattern = "^recipe:[A-Za-z0-9_-]{1,180}$")]
    pub handle: String,
    /// Number of the first version.
    pub version: String,
    /// Display name.
    pub name: String,
    /// Node of the sticky that represents the instance.
    pub recipe_node_id: NodeId,
    /// Same node as `recipeNodeId`.
    pub workflow_node_id: NodeId,
    /// Inputs, in the order of the request.
    pub inputs: Vec<WorkflowInput>,
    /// Outputs, in the order of the request.
    pub outputs: Vec<WorkflowOutput>,
}

/// The workflow, and the changes on the canvas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowResult {
    /// The canvas and its changes.
    #[serde(flatten)]
    pub result: MutationResult,
    /// The created workflow.
    pub workflow: Workflow,
}

/// Nodes of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowInput {
    /// Key of the input.
    pub key: String,
    /// Port node of the input.
    pub port_node_id: NodeId,
    /// Node that feeds the input: the source node, or the port node itself.
    pub node_id: NodeId,
    /// Label for people.
    pub label: String,
    /// Whether a run may omit the input.
    pub use_as_default: bool,
}

/// Nodes of an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowOutput {
    /// Key of the output.
    pub key: String,
    /// Output node.
    pub port_node_id: NodeId,
    /// Node that holds the prompt: the same node.
    pub template_node_id: NodeId,
    /// Label for people.
    pub label: String,
}
