//! Jobs as they are served.

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use uuid::Uuid;

use super::{
    CancelReason, Failure, FailureCode, JobKind, JobOperation, JobStatus, Output, Record, Request, VideoJob,
    canvas_url, poll_url,
};
use crate::Timestamp;
use crate::asset::Preview;
use crate::graph::Role;
use crate::id::{AssetHandle, CanvasHandle, NodeId};
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;

/// Times and durations of a job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it was queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queued_at: Option<Timestamp>,
    /// When a worker first took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completed_at: Option<Timestamp>,
    /// From queued to started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub queue_duration_ms: Option<u64>,
    /// From started to completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub execution_duration_ms: Option<u64>,
    /// From created to completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub total_duration_ms: Option<u64>,
}

/// One picture that a job made.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobImage {
    /// `asset:<ownerUid>:<id>`.
    pub asset_id: AssetHandle,
    /// `node:<id>`.
    pub node_id: String,
    /// Media type.
    pub media_type: String,
    /// Pixels.
    #[schema(minimum = 1)]
    pub width: u32,
    /// Pixels.
    #[schema(minimum = 1)]
    pub height: u32,
    /// Of the stored file.
    #[schema(minimum = 1)]
    pub bytes: u64,
    /// A capability for this one picture; not part of webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = Uri, nullable = false)]
    pub preview_url: Option<String>,
    /// An image link; not part of webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub markdown: Option<String>,
}

/// A reference of a job and what it is for.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ReferenceInput {
    /// Node or asset handle.
    pub handle: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub role: Option<Role>,
}

/// An image or Action job, and the shared Run view of it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageJob {
    /// `job:<uuid>`.
    pub id: String,
    /// `run:<uuid>`.
    pub run: String,
    /// `image` or `action`.
    #[schema(schema_with = kinds)]
    pub kind: JobKind,
    /// Where to ask for it again: a path.
    pub poll_url: String,
    /// The uuid.
    pub raw_id: Uuid,
    /// Where it stands.
    pub status: JobStatus,
    /// Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// Total once terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, nullable = false)]
    pub duration_ms: Option<u64>,
    /// Times and durations.
    pub timing: Timing,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<Failure>,
    /// Delivery state of its webhook, for callers with job:manage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub webhook: Option<DeliveryState>,
    /// Whether this answers an earlier, equal request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replayed: Option<bool>,
    /// What was asked for.
    pub operation: JobOperation,
    /// `action:<slug>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub action_id: Option<String>,
    /// The Action's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub action_version: Option<String>,
    /// Canvas handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canvas_id: Option<CanvasHandle>,
    /// The revision of the job's last write to the canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canvas_revision: Option<String>,
    /// Where people see the canvas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = Uri, nullable = false)]
    pub canvas_url: Option<String>,
    /// When it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub canceled_at: Option<Timestamp>,
    /// Why it was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cancel_reason: Option<CancelReason>,
    /// Node handles that take results.
    pub targets: Vec<String>,
    /// Node and asset handles that were read, in order.
    pub references: Vec<String>,
    /// The same with what each is for, where the work takes roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reference_inputs: Option<Vec<ReferenceInput>>,
    /// What it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub images: Option<Vec<JobImage>>,
    /// Whether work on the canvas could be called done when this ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub completion_review: Option<CompletionReview>,
    /// Credits: reserved until terminal, then charged (an extension).
    #[schema(minimum = 0)]
    pub credit_cost: i64,
}

/// A job as it is served.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum JobDocument {
    /// An image or Action job.
    Image(Box<ImageJob>),
    /// A video job.
    Video(Box<VideoJob>),
}

impl JobDocument {
    /// Where to ask for it again: a path.
    pub fn poll_url(&self) -> &str {
        match self {
            JobDocument::Image(job) => &job.poll_url,
            JobDocument::Video(job) => &job.poll_url,
        }
    }

    /// What is told of it when its record is gone: no results, and no webhook.
    pub fn without_results(self) -> Self {
        match self {
            JobDocument::Image(job) => JobDocument::Image(Box::new(ImageJob { images: None, webhook: None, ..*job })),
            JobDocument::Video(job) => JobDocument::Video(Box::new(VideoJob { video: None, ..*job })),
        }
    }
}

/// The schema of a text that is one of a few of its type's.
pub(super) fn one_of(names: &[&str]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.to_vec())).into()
}

fn kinds() -> RefOr<Schema> {
    one_of(&[JobKind::Image.as_str(), JobKind::Action.as_str()])
}

impl Record {
    /// The served form. `public_url` is the origin of `canvasUrl`; `preview` gives an asset's preview, or nothing in a
    /// webhook. Who may not see the webhook is the caller's to take away.
    pub fn document(&self, public_url: &str, preview: impl Fn(&AssetHandle) -> Option<Preview>) -> JobDocument {
        match &self.request {
            Request::Action(_) | Request::Image(_) => JobDocument::Image(Box::new(self.image_job(public_url, preview))),
            Request::Video(video) => JobDocument::Video(Box::new(self.video_job(video))),
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
            _ => self.outcome.images.iter().map(|output| job_image(output, preview(&output.asset))).collect(),
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
            action_id: action.map(|action| format!("action:{}", action.slug)),
            action_version: action.map(|action| action.version.clone()),
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
        }
    }
}

fn job_image(output: &Output, preview: Option<Preview>) -> JobImage {
    JobImage {
        asset_id: output.asset.clone(),
        node_id: output.node.handle(),
        media_type: output.media_type.clone(),
        width: output.width,
        height: output.height,
        bytes: output.bytes,
        markdown: preview.as_ref().map(|preview| format!("![{}]({})", output.node.handle(), preview.url)),
        preview_url: preview.map(|preview| preview.url),
    }
}
