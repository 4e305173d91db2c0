//! Private workflows: a request to create one, and its served form (docs/reference/recipes.md#instance).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Category, NewInput, NewOutput};
use crate::canvas::MutationResult;
use crate::id::{IdempotencyKey, NodeId, RecipeHandle, RecipeId};

/// Request to create a private workflow.
// Its JSON, with the handles in canonical form, is what the idempotency key is bound to.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateWorkflow)]
pub struct NewWorkflow {
    /// Display name.
    #[schema(min_length = 1, max_length = 160)]
    pub name: String,
    /// Description for readers.
    #[schema(max_length = 1200)]
    pub description: Option<String>,
    /// Category in which the workflow is listed.
    #[serde(default = "default_category")]
    #[schema(default = default_category)]
    pub category: Category,
    /// Search tags of 1 to 80 characters.
    #[serde(default)]
    #[schema(max_items = 12)]
    pub tags: Vec<String>,
    /// Inputs of the workflow.
    #[schema(min_items = 1, max_items = 16)]
    pub inputs: Vec<NewInput>,
    /// Outputs of the workflow, in the order of its steps.
    #[schema(min_items = 1, max_items = 8)]
    pub outputs: Vec<NewOutput>,
    /// Idempotency key: an equal request with the same key creates the workflow once.
    #[schema(value_type = IdempotencyKey)]
    pub idempotency_key: String,
    /// Left edge of the instance, in canvas units; right of the content when omitted.
    #[schema(minimum = -100_000, maximum = 100_000)]
    pub x: Option<f64>,
    /// Top edge of the instance, in canvas units; level with the content when omitted.
    #[schema(minimum = -100_000, maximum = 100_000)]
    pub y: Option<f64>,
}

fn default_category() -> Category {
    Category::Product
}

/// A private workflow with the nodes of its first instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Workflow {
    /// Plain id of the workflow.
    pub id: RecipeId,
    /// Handle of the workflow.
    #[schema(value_type = RecipeHandle)]
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
    /// `true` if a run may omit the input.
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
