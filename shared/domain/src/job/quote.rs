//! The quote of a start: the answer to a dry run. Rules: `docs/reference/jobs.md#dry-run-of-a-start`.

use serde::Serialize;
use utoipa::ToSchema;

use super::{ChosenModel, Request};
use crate::id::NodeId;

/// What a start would cost and do. Nothing is started.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartQuote {
    /// Credits that the start would reserve.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// Estimated duration in seconds. Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Model that would run. Absent for Actions, and for a Recipe whose steps of one type use several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<QuotedModel>,
    /// Handles of the nodes that would receive results. Nodes that the start would create are not listed.
    pub targets: Vec<String>,
}

/// The model of a quote, or of an output of a Recipe.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct QuotedModel {
    /// Opaque key of the model: `Model.id`.
    pub id: String,
    /// Name of the model.
    pub name: String,
}

impl From<&ChosenModel> for QuotedModel {
    fn from(model: &ChosenModel) -> Self {
        Self { id: model.key.clone(), name: model.name.clone() }
    }
}

impl StartQuote {
    /// The quote of work with this model and these targets.
    pub fn new(credit_cost: i64, estimated_seconds: i32, model: Option<&ChosenModel>, targets: &[NodeId]) -> Self {
        let model = model.map(Into::into);
        Self { credit_cost, estimated_seconds, model, targets: targets.iter().map(NodeId::handle).collect() }
    }

    /// The quote of a job.
    pub fn of_job(request: &Request, credit_cost: i64, estimated_seconds: i32) -> Self {
        Self::new(credit_cost, estimated_seconds, request.model(), request.targets())
    }
}
