//! Events: what a webhook delivers at the end of a run or video job. Rules: `docs/reference/webhooks.md#events`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::constant::{EventVersion, RecipeWork};
use crate::graph::named;
use crate::id::{AssetHandle, CanvasHandle, CanvasId, EventId, NodeId, RecipeId, RecipeRunHandle, RecipeRunId};
use crate::job::{FailureCode, ImageJob, JobDocument, JobStatus, VideoJob, VideoStatus};
use crate::recipe::run::{OutputStatus, RunDocument, RunFailure, RunRecord, RunStatus, TerminalRunStatus};

named! {
    /// Type of an event.
    EventType {
        /// An image or Action run succeeded.
        ImageJobSucceeded = "image_job.succeeded",
        /// An image or Action run failed.
        ImageJobFailed = "image_job.failed",
        /// An image or Action run was canceled.
        ImageJobCanceled = "image_job.canceled",
        /// The work was done, but its result could not be stored.
        ImageJobFinalizationFailed = "image_job.finalization_failed",
        /// A video job succeeded.
        VideoJobSucceeded = "video_job.succeeded",
        /// A video job failed.
        VideoJobFailed = "video_job.failed",
        /// A video job was canceled.
        VideoJobCanceled = "video_job.canceled",
        /// A Recipe run succeeded.
        RecipeRunSucceeded = "recipe_run.succeeded",
        /// A Recipe run failed.
        RecipeRunFailed = "recipe_run.failed",
        /// A Recipe run was canceled.
        RecipeRunCanceled = "recipe_run.canceled",
    }
}

impl EventType {
    /// The type of the event at the end of an image or Action run.
    fn of_image_job(job: &ImageJob) -> Self {
        match (job.status, &job.failure) {
            (JobStatus::Succeeded, _) => EventType::ImageJobSucceeded,
            (JobStatus::Canceled, _) => EventType::ImageJobCanceled,
            (_, Some(failure)) if failure.code == FailureCode::OutputFinalizationFailed => {
                EventType::ImageJobFinalizationFailed
            }
            _ => EventType::ImageJobFailed,
        }
    }

    /// The type of the event at the end of a video job.
    fn of_video_job(job: &VideoJob) -> Self {
        match job.status {
            VideoStatus::Succeeded => EventType::VideoJobSucceeded,
            VideoStatus::Canceled => EventType::VideoJobCanceled,
            _ => EventType::VideoJobFailed,
        }
    }
}

/// Body of a delivery. It is serialized once, when the run ends, and is the same in every attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Id of the event, `event:<uuid>`; the same in all attempts.
    #[schema(value_type = EventId)]
    pub id: String,
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Version of the API: always `v1`.
    #[schema(value_type = EventVersion, inline)]
    pub api_version: Cow<'static, str>,
    /// When the run ended.
    pub created_at: Timestamp,
    /// Subject of the event.
    pub data: EventData,
}

/// Subject of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventData {
    /// The run or video job that ended.
    pub run: EventRun,
}

/// What ended. The type of the event says which of them it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum EventRun {
    /// An image or Action run as a read serves it, without preview URLs and delivery state.
    Job(Box<ImageJob>),
    /// A video job as a read serves it, without delivery state.
    Video(Box<VideoJob>),
    /// A Recipe run, without its text values.
    Recipe(Box<EventRecipeRun>),
}

/// A Recipe run in an event. It contains no text values; read the run to get them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventRecipeRun {
    /// Id of the run.
    #[schema(value_type = RecipeRunId)]
    pub id: String,
    /// Handle of the run.
    #[schema(value_type = RecipeRunHandle)]
    pub run: String,
    /// Terminal status of the run.
    #[schema(value_type = TerminalRunStatus)]
    pub status: RunStatus,
    /// Operation of the run: always `recipe`.
    #[schema(value_type = RecipeWork, inline)]
    pub operation: Cow<'static, str>,
    /// Plain id of the Recipe.
    pub recipe_id: RecipeId,
    /// Version of the Recipe.
    pub recipe_version: String,
    /// Plain id of the canvas.
    pub canvas_id: CanvasId,
    /// Handle of the canvas.
    pub canvas_handle: CanvasHandle,
    /// Outputs in the order of their steps.
    pub outputs: Vec<EventOutput>,
    /// Why the run failed or was canceled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunFailure>,
    /// `true` if the embedded runtime makes outputs of the run: they stand in for those of a model.
    pub stand_in: bool,
}

/// An output of a Recipe run in an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOutput {
    /// Key of the output.
    pub key: String,
    /// Status of the output.
    pub status: OutputStatus,
    /// Plain id of its node.
    pub node_id: NodeId,
    /// Handle of the stored image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<AssetHandle>,
    /// `true` if the embedded runtime makes the output: it stands in for that of a model.
    pub stand_in: bool,
}

impl Event {
    /// The event at the end of a job. Previews, delivery state and `replayed` are left out.
    pub fn of_job(id: Uuid, created_at: Timestamp, job: JobDocument) -> Self {
        let (kind, run) = match job {
            JobDocument::Image(mut job) => {
                for image in job.images.iter_mut().flatten() {
                    (image.preview_url, image.markdown) = (None, None);
                }
                (job.webhook, job.replayed) = (None, None);
                (EventType::of_image_job(&job), EventRun::Job(job))
            }
            JobDocument::Video(mut job) => {
                (job.webhook, job.replayed) = (None, None);
                (EventType::of_video_job(&job), EventRun::Video(job))
            }
        };
        Self { id: format!("event:{id}"), kind, api_version: "v1".into(), created_at, data: EventData { run } }
    }

    /// The event at the end of a job, made from its record as a read serves it.
    pub fn of_served_job(id: Uuid, job: JobDocument) -> Self {
        let at = match &job {
            JobDocument::Image(job) => job.timing.completed_at.unwrap_or(job.timing.created_at),
            JobDocument::Video(job) => job.updated_at,
        };
        Self::of_job(id, at, job)
    }

    /// The event at the end of a run, made from its record as a read serves it.
    pub fn of_served_run(id: Uuid, run: RunDocument) -> Self {
        match run {
            RunDocument::Work(job) => Self::of_served_job(id, JobDocument::Image(job)),
            RunDocument::Recipe(run) => {
                let at = run.timing.completed_at.unwrap_or(run.timing.created_at);
                let outputs = run.outputs.into_iter().map(|output| EventOutput {
                    key: output.key,
                    status: output.status,
                    node_id: output.node_id,
                    asset_id: output.asset_id,
                    stand_in: output.stand_in,
                });
                let run = EventRecipeRun {
                    outputs: outputs.collect(),
                    id: run.id,
                    run: run.run,
                    status: run.status,
                    operation: run.operation,
                    recipe_id: run.recipe_id,
                    recipe_version: run.recipe_version,
                    canvas_id: run.canvas_id,
                    canvas_handle: run.canvas_handle,
                    failure: run.failure,
                    stand_in: run.stand_in,
                };
                Self::recipe(id, at, run)
            }
        }
    }

    fn recipe(id: Uuid, created_at: Timestamp, run: EventRecipeRun) -> Self {
        let kind = match run.status {
            RunStatus::Succeeded => EventType::RecipeRunSucceeded,
            RunStatus::Canceled => EventType::RecipeRunCanceled,
            _ => EventType::RecipeRunFailed,
        };
        let data = EventData { run: EventRun::Recipe(Box::new(run)) };
        Self { id: format!("event:{id}"), kind, api_version: "v1".into(), created_at, data }
    }

    /// The event at the end of a Recipe run.
    pub fn recipe_run(id: Uuid, created_at: Timestamp, run: &RunRecord) -> Self {
        let outputs = run.plan.steps.iter().zip(&run.outputs).map(|(step, output)| EventOutput {
            key: step.key.clone(),
            status: output.status,
            node_id: step.node.clone(),
            asset_id: output.asset.clone(),
            stand_in: step.model.is_stand_in(),
        });
        let run = EventRecipeRun {
            id: run.id.to_string(),
            run: run.id.handle(),
            status: run.status,
            operation: "recipe".into(),
            recipe_id: run.recipe.clone(),
            recipe_version: run.recipe_version.to_string(),
            canvas_id: run.canvas.id.clone(),
            canvas_handle: run.canvas.clone(),
            outputs: outputs.collect(),
            failure: run.failure.clone(),
            stand_in: run.plan.is_stand_in(),
        };
        Self::recipe(id, created_at, run)
    }
}
