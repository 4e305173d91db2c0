//! Jobs of videos: what is asked, what is stored, and how they are served (specification, VideoJob; decisions 11).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use uuid::Uuid;

use super::document::one_of;
use super::{ChosenModel, Failure, JobKind, JobOperation, JobStatus, Record, VideoRequest};
use crate::graph::{Role, named};
use crate::id::{AssetHandle, JobId};
use crate::{API_ROOT, Timestamp};

/// A picture that guides a video: a frame or a reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoPicture {
    /// Node or asset handle in its full form, or a public https URL.
    pub named: String,
    /// The picture that a handle stood for when the job was accepted; none: a URL, fetched by the worker through the egress
    /// guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<AssetHandle>,
    /// What it is for; never of a frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// A video in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredVideo {
    /// Where its bytes are.
    pub blob_key: Uuid,
    /// How many there are.
    pub bytes: u64,
}

named! {
    /// The state of a video job (specification, States and transitions).
    VideoStatus {
        /// Accepted; no worker has it.
        Queued = "queued",
        /// A worker has it; also while it is being stopped (decisions 9.5).
        Running = "running",
        /// The video can be downloaded.
        Succeeded = "succeeded",
        /// There is no video.
        Failed = "failed",
        /// It was stopped.
        Canceled = "canceled",
    }
}

impl From<JobStatus> for VideoStatus {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Preparing | JobStatus::Queued => VideoStatus::Queued,
            JobStatus::Running | JobStatus::Finalizing | JobStatus::Canceling => VideoStatus::Running,
            JobStatus::Succeeded => VideoStatus::Succeeded,
            // A video's record is removed in its time and never expires before.
            JobStatus::Failed | JobStatus::Expired => VideoStatus::Failed,
            JobStatus::Canceled => VideoStatus::Canceled,
        }
    }
}

named! {
    /// Why there is no video.
    VideoFailureCode {
        /// It could not be made; the message begins with the class of the failure (decisions 12.5).
        VideoGenerationFailed = "video_generation_failed",
        /// It was stopped.
        Canceled = "canceled",
    }
}

/// Why there is no video.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct VideoFailure {
    /// To branch on.
    pub code: VideoFailureCode,
    /// For people.
    pub message: String,
    /// Whether a new attempt may help.
    pub retryable: bool,
}

impl From<&Failure> for VideoFailure {
    fn from(failure: &Failure) -> Self {
        Self {
            code: VideoFailureCode::VideoGenerationFailed,
            message: format!("{}: {}", failure.code, failure.message),
            retryable: failure.retryable,
        }
    }
}

/// The model of a video job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct VideoModel {
    /// The opaque key: `Model.id`.
    pub id: String,
    /// For people.
    pub name: String,
}

impl From<&ChosenModel> for VideoModel {
    fn from(model: &ChosenModel) -> Self {
        Self { id: model.key.clone(), name: model.name.clone() }
    }
}

/// Where a video is.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VideoDownload {
    /// `/api/canvas-agent/v1/jobs/<id>/output`.
    pub download_url: String,
}

/// A video job.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VideoJob {
    /// `job:<uuid>`.
    pub id: String,
    /// The uuid.
    pub raw_id: Uuid,
    /// `video`.
    #[schema(schema_with = video_kind)]
    pub kind: JobKind,
    /// `generate`.
    #[schema(schema_with = video_operation)]
    pub operation: JobOperation,
    /// Where to ask for it again: a path.
    pub poll_url: String,
    /// Where it stands.
    pub status: VideoStatus,
    /// What runs it.
    pub model: VideoModel,
    /// In percent; it never decreases, and is 100 on success.
    #[schema(minimum = 0, maximum = 100)]
    pub progress: f64,
    /// Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// What the provider calls its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub provider_run_id: Option<String>,
    /// Why there is no video.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<VideoFailure>,
    /// The video, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub video: Option<VideoDownload>,
    /// Whether this answers an earlier, equal request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replayed: Option<bool>,
    /// Credits: reserved until terminal, then charged (an extension).
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

fn video_kind() -> RefOr<Schema> {
    one_of(&[JobKind::Video.as_str()])
}

fn video_operation() -> RefOr<Schema> {
    one_of(&[JobOperation::Generate.as_str()])
}

/// The path under which a video job is read.
pub fn video_url(id: JobId) -> String {
    format!("{API_ROOT}/jobs/{}", id.0)
}

impl Record {
    /// The served form of a video job.
    pub(super) fn video_job(&self, request: &VideoRequest) -> VideoJob {
        let status = VideoStatus::from(self.status);
        let failure = match status {
            VideoStatus::Canceled => Some(VideoFailure {
                code: VideoFailureCode::Canceled,
                message: "the job was canceled".into(),
                retryable: false,
            }),
            _ => self.outcome.failure.as_ref().map(VideoFailure::from),
        };
        let download_url = || format!("{}/output", video_url(self.id));
        VideoJob {
            id: self.id.job_handle(),
            raw_id: self.id.0,
            kind: self.kind,
            operation: self.operation,
            poll_url: video_url(self.id),
            status,
            model: VideoModel::from(&request.model),
            progress: if status == VideoStatus::Succeeded { 100.0 } else { self.progress },
            estimated_seconds: self.estimated_seconds,
            provider_run_id: self.provider_run.clone(),
            failure,
            video: self.outcome.video.as_ref().map(|_| VideoDownload { download_url: download_url() }),
            replayed: None,
            credit_cost: self.credit_cost,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
