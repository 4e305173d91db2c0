//! The quote of a start: the answer to a dry run. Rules: `docs/reference/jobs.md#dry-run-of-a-start`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ChosenModel, Request};
use crate::graph::{Node, NodeType, Position};
use crate::id::{ModelKey, NodeHandle, NodeId};
use crate::known;
use crate::queue::WaitingFor;

/// The cost and the effects that a start would have. Nothing is started.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartQuote {
    /// Credits that the start would reserve.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// Estimated duration in seconds. Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Model that would run. Absent for Actions, and for a Recipe whose steps of one type use several.
    pub model: Option<QuotedModel>,
    /// Handles of the nodes that would receive results. Nodes that the start would create are in `newTargets`.
    #[schema(value_type = Vec<NodeHandle>)]
    pub targets: Vec<String>,
    /// The nodes that the start would create for results. They get their ids when it is accepted.
    pub new_targets: Option<Vec<NewTarget>>,
    /// `worker` if no worker of its queue was seen lately: the work would wait.
    #[serde(default, deserialize_with = "known::or_default")]
    pub waiting_for: Option<WaitingFor>,
}

/// A node that a start would create for a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewTarget {
    /// Type of the node.
    #[serde(rename = "type")]
    pub kind: NodeType,
    /// Title.
    pub title: String,
    /// Position of the top left corner, in canvas units, if nothing else is placed before the start.
    pub position: Position,
    /// Width in canvas units.
    pub width: f64,
    /// Height in canvas units.
    pub height: f64,
    /// Plain id of the Section that the node would belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_id: Option<NodeId>,
}

/// The model of a quote, or of an output of a Recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuotedModel {
    /// Opaque key of the model: `Model.id`.
    #[schema(value_type = ModelKey)]
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
        let targets = targets.iter().map(NodeId::handle).collect();
        Self {
            credit_cost,
            estimated_seconds,
            model: model.map(Into::into),
            targets,
            new_targets: None,
            waiting_for: None,
        }
    }

    /// The quote of work that creates its targets.
    pub fn with_new<'a>(self, targets: impl IntoIterator<Item = &'a Node>) -> Self {
        let new_targets = targets.into_iter().map(|node| NewTarget {
            kind: node.kind,
            title: node.title.clone(),
            position: node.position,
            width: node.width,
            height: node.height,
            section_id: node.section_id().map(|section| NodeId::from_stored(section.to_owned())),
        });
        Self { targets: Vec::new(), new_targets: Some(new_targets.collect()), ..self }
    }

    /// The quote of jobs that one request starts, which use one model.
    pub fn of_jobs<'a>(
        requests: impl IntoIterator<Item = &'a Request>,
        credit_cost: i64,
        estimated_seconds: i32,
    ) -> Self {
        let requests: Vec<&Request> = requests.into_iter().collect();
        let targets: Vec<NodeId> = requests.iter().flat_map(|request| request.targets()).cloned().collect();
        Self::new(credit_cost, estimated_seconds, requests.first().and_then(|request| request.model()), &targets)
    }
}
