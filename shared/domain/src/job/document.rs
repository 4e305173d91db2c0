//! Jobs as they are served.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    CancelReason, ChosenModel, Failure, FailureCode, JobKind, JobOperation, JobStatus, Output, Record, Request,
    VideoJob, canvas_url, poll_url,
};
use crate::Timestamp;
use crate::action::{ActionHandle, ActionVersion};
use crate::alt;
use crate::asset::{ImageMediaType, Preview};
use crate::channel;
use crate::graph::Role;
use crate::id::{
    AssetHandle, CanvasHandle, ImageHandle, ImageSource, JobHandle, NodeHandle, NodeId, RunHandle, RunUrl,
};
use crate::job::ImageJobKind;
use crate::known;
use crate::model::is_stand_in;
use crate::origin::{self, AiGenerated, Origin, Work};
use crate::queue::WaitingFor;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;

/// Times and durations of a job or run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// When the job was accepted.
    pub created_at: Timestamp,
    /// When the job was queued.
    pub queued_at: Option<Timestamp>,
    /// When a worker first claimed the job.
    pub started_at: Option<Timestamp>,
    /// When the job became terminal.
    pub completed_at: Option<Timestamp>,
    /// Milliseconds from `queuedAt` to `startedAt`.
    #[schema(minimum = 0)]
    pub queue_duration_ms: Option<u64>,
    /// Milliseconds from `startedAt` to `completedAt`.
    #[schema(minimum = 0)]
    pub execution_duration_ms: Option<u64>,
    /// Milliseconds from `createdAt` to `completedAt`.
    #[schema(minimum = 0)]
    pub total_duration_ms: Option<u64>,
}

/// An image that a job made.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobImage {
    /// Handle of the stored image.
    pub asset_id: AssetHandle,
    /// Handle of the target node.
    #[schema(value_type = NodeHandle)]
    pub node_id: String,
    /// Media type of the stored file.
    #[schema(value_type = ImageMediaType)]
    pub media_type: String,
    /// Width in pixels.
    #[schema(minimum = 1)]
    pub width: u32,
    /// Height in pixels.
    #[schema(minimum = 1)]
    pub height: u32,
    /// Size of the stored file, in bytes.
    #[schema(minimum = 1)]
    pub bytes: u64,
    /// Use of AI in the image.
    #[serde(default, deserialize_with = "known::or_default")]
    #[schema(required = true)]
    pub ai_generated: AiGenerated,
    /// Present for an edit with a mask: `true` if what the mask keeps is exactly the source's, `false` if the image is as the model
    /// made it.
    pub masked: Option<bool>,
    /// Short-lived URL of the image. Anyone who has it can read the image. Absent in webhooks.
    #[schema(format = Uri)]
    pub preview_url: Option<String>,
    /// Image link in Markdown. Absent in webhooks.
    pub markdown: Option<String>,
}

/// An image that guides the results, with its role.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageReference {
    /// The image.
    pub handle: ImageHandle,
    /// Use of the image.
    pub role: Option<Role>,
}

/// An image that guides the results, with its role or without.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ImageReferenceForm {
    /// Its handle alone.
    Plain(ImageHandle),
    /// With its role.
    WithRole(ImageReference),
}

/// An image that guides a video, with its role.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoReference {
    /// The image.
    pub handle: ImageSource,
    /// Use of the image.
    pub role: Option<Role>,
}

/// An image that guides a video, with its role or without.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum VideoReferenceForm {
    /// Its handle alone.
    Plain(ImageSource),
    /// With its role.
    WithRole(VideoReference),
}

/// A reference of a job and its role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReferenceInput {
    /// Node or asset handle.
    #[schema(value_type = ImageHandle)]
    pub handle: String,
    /// Role of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// An image or Action job, and its view as a run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageJob {
    /// Handle of the job.
    #[schema(value_type = JobHandle)]
    pub id: String,
    /// Handle of the run.
    #[schema(value_type = RunHandle)]
    pub run: String,
    /// Kind of the job: `image` or `action`.
    #[schema(value_type = ImageJobKind)]
    pub kind: JobKind,
    /// Path at which the job can be read.
    #[schema(value_type = RunUrl)]
    pub poll_url: String,
    /// UUID of the job.
    pub raw_id: Uuid,
    /// Status of the job.
    pub status: JobStatus,
    /// Estimated duration in seconds. Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Milliseconds from acceptance to the terminal status. Present once the job is terminal.
    #[schema(minimum = 0)]
    pub duration_ms: Option<u64>,
    /// Times and durations.
    pub timing: Timing,
    /// Why the job failed.
    pub failure: Option<Failure>,
    /// Delivery state of the webhook. Present for callers with `job:manage`.
    pub webhook: Option<DeliveryState>,
    /// `true` if the response is that of an earlier equal request.
    pub replayed: Option<bool>,
    /// Operation of the job.
    pub operation: JobOperation,
    /// Id of the Action.
    #[schema(value_type = Option<ActionHandle>)]
    pub action_id: Option<String>,
    /// Version of the Action.
    #[schema(value_type = Option<ActionVersion>)]
    pub action_version: Option<String>,
    /// Handle of the canvas.
    pub canvas_id: Option<CanvasHandle>,
    /// Revision of the job's last write to the canvas.
    pub canvas_revision: Option<String>,
    /// URL of the canvas in the browser application.
    #[schema(format = Uri)]
    pub canvas_url: Option<String>,
    /// When the job was canceled.
    pub canceled_at: Option<Timestamp>,
    /// Why the job was canceled.
    pub cancel_reason: Option<CancelReason>,
    /// Handles of the nodes that receive results.
    #[schema(value_type = Vec<NodeHandle>)]
    pub targets: Vec<String>,
    /// Node and asset handles that the job reads, in order.
    #[schema(value_type = Vec<ImageHandle>)]
    pub references: Vec<String>,
    /// The references with their roles. Present for work that takes roles.
    pub reference_inputs: Option<Vec<ReferenceInput>>,
    /// Stored images.
    pub images: Option<Vec<JobImage>>,
    /// Review of the canvas when the job ended.
    pub completion_review: Option<CompletionReview>,
    /// Credits reserved until the job is terminal, then credits charged.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// `true` if the embedded runtime makes the outputs: they stand in for those of a model.
    pub stand_in: bool,
    /// The cause of the wait of work that is neither in progress nor over.
    pub waiting_for: Option<WaitingFor>,
}

/// The runs of Actions in a row, one for each input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ActionRuns {
    /// The runs, in the order of the inputs.
    #[schema(min_items = 1, max_items = 20)]
    pub runs: Vec<ImageJob>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Job, discriminator(property_name = "kind", mapping(
    ("image" = "#/components/schemas/ImageJob"),
    ("action" = "#/components/schemas/ImageJob"),
    ("video" = "#/components/schemas/VideoJob"),
)))]
pub enum JobDocument {
    /// An image or Action job.
    Image(Box<ImageJob>),
    /// A video job.
    Video(Box<VideoJob>),
}

impl JobDocument {
    /// Path at which the job can be read.
    pub fn poll_url(&self) -> &str {
        match self {
            JobDocument::Image(job) => &job.poll_url,
            JobDocument::Video(job) => &job.poll_url,
        }
    }

    /// The form for callers without `job:manage`, who do not learn of the webhook.
    pub fn without_webhook(self) -> Self {
        match self {
            JobDocument::Image(job) => JobDocument::Image(Box::new(ImageJob { webhook: None, ..*job })),
            JobDocument::Video(job) => JobDocument::Video(Box::new(VideoJob { webhook: None, ..*job })),
        }
    }

    /// The short form: no review and no previews.
    pub fn in_short(self) -> Self {
        match self {
            JobDocument::Image(mut job) => {
                job.completion_review = None;
                for image in job.images.iter_mut().flatten() {
                    (image.preview_url, image.markdown) = (None, None);
                }
                JobDocument::Image(job)
            }
            JobDocument::Video(job) => JobDocument::Video(Box::new(VideoJob { completion_review: None, ..*job })),
        }
    }

    /// The form that is served once the record is deleted: no results and no webhook.
    pub fn without_results(self) -> Self {
        match self {
            JobDocument::Image(job) => JobDocument::Image(Box::new(ImageJob { images: None, webhook: None, ..*job })),
            JobDocument::Video(job) => JobDocument::Video(Box::new(VideoJob { video: None, webhook: None, ..*job })),
        }
    }
}

impl Record {
    /// The channels on which a change of the job and of its canvas is announced.
    pub fn channels(&self) -> Vec<String> {
        let own = [channel::job(self.id), channel::runs(&self.account)];
        own.into_iter().chain(self.canvas.as_ref().map(channel::canvas)).collect()
    }

    /// The served form. `public_url` is the origin of `canvasUrl`. `preview` returns the preview of an asset, or `None`
    /// for a webhook. The caller must remove the webhook for readers who may not see it.
    pub fn document(&self, public_url: &str, preview: impl Fn(&AssetHandle) -> Option<Preview>) -> JobDocument {
        match &self.request {
            Request::Action(_) | Request::Image(_) => JobDocument::Image(Box::new(self.image_job(public_url, preview))),
            Request::Video(video) => JobDocument::Video(Box::new(self.video_job(video, public_url))),
        }
    }

    fn image_job(&self, public_url: &str, preview: impl Fn(&AssetHandle) -> Option<Preview>) -> ImageJob {
        let (action, references) = match &self.request {
            Request::Action(action) => (Some(action), None),
            Request::Image(image) => (None, Some(&image.references)),
            Request::Video(_) => (None, None),
        };
        let since = |later: Option<Timestamp>, earlier: Option<Timestamp>| Some(later?.millis_since(earlier?));
        let total = since(self.completed_at, Some(self.created_at));
        let failure = match self.status {
            JobStatus::Expired => Some(Failure::new(FailureCode::ResultExpired, "the result's record has expired")),
            _ => self.outcome.failure.clone(),
        };
        let images: Vec<JobImage> = match self.status {
            JobStatus::Expired => Vec::new(),
            _ => self.outcome.images.iter().map(|output| self.job_image(output, preview(&output.asset))).collect(),
        };
        ImageJob {
            id: self.id.job_handle(),
            run: self.id.run_handle(),
            kind: self.kind,
            poll_url: poll_url(self.id),
            raw_id: self.id.0,
            status: self.status,
            estimated_seconds: self.estimated_seconds,
            duration_ms: total,
            timing: Timing {
                created_at: self.created_at,
                queued_at: self.queued_at,
                started_at: self.started_at,
                completed_at: self.completed_at,
                queue_duration_ms: since(self.started_at, self.queued_at),
                execution_duration_ms: since(self.completed_at, self.started_at),
                total_duration_ms: total,
            },
            failure,
            webhook: self.webhook.clone(),
            replayed: None,
            operation: self.operation,
            action_id: action.map(|action| format!("action:{}", action.last.slug)),
            action_version: action.map(|action| action.last.version.clone()),
            canvas_id: self.canvas.clone(),
            canvas_revision: self.canvas_revision.clone(),
            canvas_url: self.canvas.as_ref().map(|canvas| canvas_url(public_url, canvas)),
            canceled_at: self.completed_at.filter(|_| self.status == JobStatus::Canceled),
            cancel_reason: self.cancel_reason,
            targets: self.request.targets().iter().map(NodeId::handle).collect(),
            references: self.request.handles(),
            reference_inputs: references.filter(|them| !them.is_empty()).map(|them| {
                them.iter().map(|it| ReferenceInput { handle: it.handle.clone(), role: it.role }).collect()
            }),
            images: (!images.is_empty()).then_some(images),
            completion_review: match self.status {
                JobStatus::Expired => None,
                _ => self.outcome.completion_review.clone(),
            },
            credit_cost: self.credit_cost,
            stand_in: self.request.model().is_some_and(ChosenModel::is_stand_in),
            waiting_for: self.waiting_for.clone(),
        }
    }

    fn job_image(&self, output: &Output, preview: Option<Preview>) -> JobImage {
        // The origin of outputs of earlier releases follows from the request, as that of the assets does (0036_origins.sql).
        let ai_generated = output.ai_generated.unwrap_or_else(|| match &self.request {
            Request::Image(image) if !image.model.is_stand_in() => {
                AiGenerated::from_origin(origin::of_output(Work::of_model(self.operation), &[]).map(Origin::service))
            }
            _ => AiGenerated::Unknown,
        });
        JobImage {
            asset_id: output.asset.clone(),
            node_id: output.node.handle(),
            media_type: output.media_type.clone(),
            width: output.width,
            height: output.height,
            bytes: output.bytes,
            ai_generated,
            masked: output.masked,
            markdown: preview
                .as_ref()
                .map(|preview| alt::markdown(output.alt.as_deref().unwrap_or(alt::WITHOUT_DESCRIPTION), &preview.url)),
            preview_url: preview.map(|preview| preview.url),
        }
    }
}

impl ChosenModel {
    /// Returns `true` if the embedded runtime runs it.
    pub fn is_stand_in(&self) -> bool {
        is_stand_in(self.provider, &self.id)
    }
}
