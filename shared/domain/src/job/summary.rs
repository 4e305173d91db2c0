//! Summaries of jobs and Recipe runs, as they are listed. Rules: `docs/reference/jobs.md#list-runs`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{JobOperation, JobStatus};
use crate::Timestamp;
use crate::graph::{named, part};
use crate::id::{AssetHandle, CanvasHandle};
use crate::page::Page;
use crate::queue::WaitingFor;

named! {
    /// Kind of a run or job.
    RunKind {
        /// Image generation, edit or variations.
        Image = "image",
        /// An Image Action.
        Action = "action",
        /// Video generation.
        Video = "video",
        /// A Recipe run.
        Recipe = "recipe",
    }
}

part! {
    /// Kind of an image or Action job.
    ImageJobKind of RunKind: |kind| matches!(kind, RunKind::Image | RunKind::Action)
}

named! {
    /// Operation of the work.
    WorkOperation {
        /// Makes an image or a video.
        Generate = "generate",
        /// Changes an image.
        Edit = "edit",
        /// Makes variations of an image.
        Variations = "variations",
        /// Transforms an image.
        Action = "action",
        /// Runs a Recipe.
        Recipe = "recipe",
    }
}

impl From<JobOperation> for WorkOperation {
    fn from(operation: JobOperation) -> Self {
        match operation {
            JobOperation::Generate => Self::Generate,
            JobOperation::Edit => Self::Edit,
            JobOperation::Variations => Self::Variations,
            JobOperation::Action => Self::Action,
        }
    }
}

/// Number of outputs of a job or run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputCounts {
    /// Outputs that the work was accepted for.
    #[schema(minimum = 1)]
    pub total: u32,
    /// Outputs that are stored.
    pub done: u32,
    /// Outputs that will not be made because they failed.
    pub failed: u32,
}

/// A job or Recipe run in a list.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// Id: a UUID, or `recipe-<uuid>` of a Recipe run.
    #[schema(pattern = "^(recipe-)?[0-9a-f-]{36}$")]
    pub id: String,
    /// Handle: `run:<id>`, or `job:<id>` of a video, which is read as a job.
    #[schema(pattern = "^(run:(recipe-)?|job:)[0-9a-f-]{36}$")]
    pub handle: String,
    /// Kind of the work.
    pub kind: RunKind,
    /// Operation of the work.
    pub operation: WorkOperation,
    /// Beginning of the prompt, title of the Action (of a chain, of each), or name of the Recipe; the operation if there is none.
    #[schema(max_length = 120)]
    pub title: String,
    /// The provider's id of the model. Absent for Actions and Recipes.
    pub model: Option<String>,
    /// Status, as a read of the record shows it.
    pub status: JobStatus,
    /// Handle of the canvas, `canvas:<ownerUid>:<id>`. Absent for work without a canvas.
    pub canvas_id: Option<CanvasHandle>,
    /// When the work was accepted.
    pub created_at: Timestamp,
    /// When the record last changed.
    pub updated_at: Timestamp,
    /// Credits reserved until the work is terminal, then credits charged.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// Number of outputs.
    pub outputs: OutputCounts,
    /// Handles of the first outputs that are assets and that the caller can read.
    #[schema(max_items = 4)]
    pub results: Vec<AssetHandle>,
    /// `true` if the embedded runtime makes outputs of the work: stand-ins for those of a model.
    pub stand_in: bool,
    /// The cause of the wait of work that is neither in progress nor over.
    pub waiting_for: Option<WaitingFor>,
}

/// A page of jobs and Recipe runs, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    /// Summaries; a read of the handle has the rest.
    pub runs: Vec<RunSummary>,
    /// Position in the list.
    pub page: Page,
}
