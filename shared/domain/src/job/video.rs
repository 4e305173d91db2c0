//! Video jobs: request, stored video, and served record. Rules: `docs/reference/videos.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ChosenModel, Failure, JobKind, JobOperation, JobStatus, Record, VideoRequest};
use crate::constant::{Generation, VideoWork};
use crate::graph::{Role, named};
use crate::id::{AssetHandle, JobHandle, JobId, JobOutputUrl, JobUrl, ModelKey};
use crate::queue::WaitingFor;
use crate::{API_ROOT, Timestamp};

/// An image that guides a video: a frame or a reference.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoImage {
    /// Full node or asset handle, or a public https URL.
    pub named: String,
    /// The image that the handle meant when the job was accepted. `None` for a URL, which the worker fetches through
    /// the egress guard.
    pub asset: Option<AssetHandle>,
    /// Role of the reference; never present for a frame.
    pub role: Option<Role>,
}

/// A video in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredVideo {
    /// Key of the file in the object store.
    pub blob_key: Uuid,
    /// Size of the file, in bytes.
    pub bytes: u64,
}

named! {
    /// Status of a video job.
    VideoStatus {
        /// Accepted; no worker has claimed it.
        Queued = "queued",
        /// A worker holds its lease. A video stays `running` while it is being canceled.
        Running = "running",
        /// The video can be downloaded.
        Succeeded = "succeeded",
        /// The video could not be made.
        Failed = "failed",
        /// It was canceled.
        Canceled = "canceled",
    }
}

impl From<JobStatus> for VideoStatus {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Preparing | JobStatus::Queued => VideoStatus::Queued,
            JobStatus::Running | JobStatus::Finalizing | JobStatus::Canceling => VideoStatus::Running,
            JobStatus::Succeeded => VideoStatus::Succeeded,
            // The record of a video is deleted after its retention and is never `expired` before.
            JobStatus::Failed | JobStatus::Expired => VideoStatus::Failed,
            JobStatus::Canceled => VideoStatus::Canceled,
        }
    }
}

named! {
    /// Why there is no video; a stable code.
    VideoFailureCode {
        /// The video could not be made. The message begins with the failure code of the job.
        VideoGenerationFailed = "video_generation_failed",
        /// The job was canceled.
        Canceled = "canceled",
    }
}

/// Why there is no video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VideoFailure {
    /// Stable code.
    pub code: VideoFailureCode,
    /// Message for people.
    pub message: String,
    /// `true` if a new request may succeed.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VideoModel {
    /// Opaque key of the model: `Model.id`.
    #[schema(value_type = ModelKey)]
    pub id: String,
    /// Name of the model.
    pub name: String,
}

impl From<&ChosenModel> for VideoModel {
    fn from(model: &ChosenModel) -> Self {
        Self { id: model.key.clone(), name: model.name.clone() }
    }
}

/// Location of a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VideoDownload {
    /// Path of the download.
    #[schema(value_type = JobOutputUrl)]
    pub download_url: String,
}

/// A video job.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VideoJob {
    /// Handle of the job.
    #[schema(value_type = JobHandle)]
    pub id: String,
    /// UUID of the job.
    pub raw_id: Uuid,
    /// Kind of the job: always `video`.
    #[schema(value_type = VideoWork, inline)]
    pub kind: JobKind,
    /// Operation of the job: always `generate`.
    #[schema(value_type = Generation, inline)]
    pub operation: JobOperation,
    /// Path at which the job can be read.
    #[schema(value_type = JobUrl)]
    pub poll_url: String,
    /// Status of the job.
    pub status: VideoStatus,
    /// Model that makes the video.
    pub model: VideoModel,
    /// Progress in percent. It never decreases and is 100 on success.
    #[schema(minimum = 0, maximum = 100)]
    pub progress: f64,
    /// Estimated duration in seconds. Guidance, not a deadline.
    #[schema(minimum = 1)]
    pub estimated_seconds: i32,
    /// The provider's id of its run.
    pub provider_run_id: Option<String>,
    /// Why there is no video.
    pub failure: Option<VideoFailure>,
    /// Download of the video, once it is stored.
    pub video: Option<VideoDownload>,
    /// `true` if the response is that of an earlier equal request.
    pub replayed: Option<bool>,
    /// Credits reserved until the job is terminal, then credits charged.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
    /// `true` if the embedded runtime makes the video: it stands in for that of a model.
    pub stand_in: bool,
    /// The cause of the wait of work that is neither in progress nor over.
    pub waiting_for: Option<WaitingFor>,
    /// When the job was accepted.
    pub created_at: Timestamp,
    /// When the job last changed.
    pub updated_at: Timestamp,
}

/// The path of a video job.
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
            stand_in: request.model.is_stand_in(),
            waiting_for: self.waiting_for.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
