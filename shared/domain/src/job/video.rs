//! Video jobs: request, stored video, and served record. Rules: `docs/reference/videos.md`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    ChosenModel, Failure, JobKind, JobOperation, JobStatus, Preview, Record, ReferenceInput, VideoRequest, canvas_url,
};
use crate::asset::made_name;
use crate::constant::{Generation, VideoWork};
use crate::graph::{Role, named};
use crate::id::{AssetHandle, CanvasHandle, JobHandle, JobId, JobOutputUrl, JobUrl, ModelKey, NodeHandle, NodeId};
use crate::metadata::{Provenance, ProvenanceKind};
use crate::origin::{self, DigitalSourceType, Work};
use crate::queue::WaitingFor;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;
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

/// What is known of a video besides its file. All of it can be unknown: a video is stored whatever can be read of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VideoFacts {
    /// Width in pixels; 0 if it is not known.
    pub width: u32,
    /// Height in pixels; 0 if it is not known.
    pub height: u32,
    /// Duration in milliseconds.
    pub duration_ms: Option<i64>,
    /// `true` if it has a sound track.
    pub has_audio: Option<bool>,
    /// Where it comes from.
    pub origin: Option<DigitalSourceType>,
}

impl VideoFacts {
    /// Duration in seconds.
    pub fn duration_seconds(&self) -> Option<f64> {
        // Milliseconds are far below the precision of the type.
        self.duration_ms.map(|duration| duration as f64 / 1000.0)
    }
}

/// A video in the object store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredVideo {
    /// Key of the file in the object store.
    pub blob_key: Uuid,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The asset that has it, if it became one. Then the file belongs to the asset, and not to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<AssetHandle>,
    /// What is known of it; nothing in records of earlier releases.
    #[serde(default)]
    pub facts: VideoFacts,
    /// Its poster, for as long as the job has the video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poster: Option<Preview>,
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
    /// Handle of the asset, if the video became one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<AssetHandle>,
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
    /// Canvas that receives the video, if the start named a target.
    pub canvas_id: Option<CanvasHandle>,
    /// Canvas revision of the job's last write.
    pub canvas_revision: Option<String>,
    /// URL of the canvas for people.
    #[schema(format = Uri)]
    pub canvas_url: Option<String>,
    /// Handle of the node that receives the video, if the start named a target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NodeHandle>, required = false, max_items = 1)]
    pub targets: Vec<String>,
    /// Review of the canvas after the job's last write.
    pub completion_review: Option<CompletionReview>,
    /// Why there is no video.
    pub failure: Option<VideoFailure>,
    /// Download of the video, once it is stored.
    pub video: Option<VideoDownload>,
    /// Delivery state of the webhook. Present for callers with `job:manage`.
    pub webhook: Option<DeliveryState>,
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

impl VideoRequest {
    /// The provenance of a node that shows the video.
    pub fn provenance(&self, id: JobId, facts: &VideoFacts) -> Provenance {
        let reference = |it: &VideoImage| ReferenceInput { handle: it.named.clone(), role: it.role };
        Provenance {
            duration_seconds: facts.duration_seconds(),
            model: Some(self.model.id.clone()),
            operation: Some(JobOperation::Generate.into()),
            prompt: Some(self.prompt.clone()),
            provider: Some(self.model.provider),
            references: self.images().filter(|image| image.asset.is_some()).map(reference).collect(),
            run: Some(id.into()),
            stand_in: self.model.is_stand_in().then_some(true),
            ..Provenance::new(ProvenanceKind::Generated)
        }
    }

    /// File name of the asset of the video.
    pub fn file_name(&self) -> String {
        made_name(&self.prompt, "video", 1, "mp4")
    }

    /// The origin of the video of a provider.
    pub fn provider_origin(&self) -> Option<DigitalSourceType> {
        let has_frames = self.first_frame.is_some() || self.last_frame.is_some();
        origin::of_output(if has_frames { Work::Edit } else { Work::Generate }, &[])
    }
}

/// The path of a video job.
pub fn video_url(id: JobId) -> String {
    format!("{API_ROOT}/jobs/{}", id.0)
}

impl Record {
    /// The served form of a video job.
    pub(super) fn video_job(&self, request: &VideoRequest, public_url: &str) -> VideoJob {
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
            canvas_id: self.canvas.clone(),
            canvas_revision: self.canvas_revision.clone(),
            canvas_url: self.canvas.as_ref().map(|canvas| canvas_url(public_url, canvas)),
            targets: self.request.targets().iter().map(NodeId::handle).collect(),
            completion_review: self.outcome.completion_review.clone(),
            video: self
                .outcome
                .video
                .as_ref()
                .map(|video| VideoDownload { download_url: download_url(), asset_id: video.asset.clone() }),
            webhook: self.webhook.clone(),
            replayed: None,
            credit_cost: self.credit_cost,
            stand_in: request.model.is_stand_in(),
            waiting_for: self.waiting_for.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}
