//! How a job is completed, what this requires of the process, and the result of the attempt.

use std::time::Duration;

use db::jobs::Windows;
use domain::job::{CancelReason, Failure, JobStatus, Placement, Preview, Record, VideoFacts};
use domain::message::ReadyTasks;
use uuid::Uuid;

use super::review::PreparedReview;

/// A video that was put.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoOutput {
    /// Key of the blob that was put: an MP4.
    pub blob_key: Uuid,
    /// SHA-256 of the stored file.
    pub sha256: [u8; 32],
    /// Size of the stored file in bytes.
    pub bytes: u64,
    /// What is known of it.
    pub facts: VideoFacts,
    /// Its poster, which was put, too.
    pub poster: Option<Preview>,
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Completion {
    /// The job succeeded with every output: images, or a video that becomes an asset.
    Succeeded(Vec<Placement>),
    /// The video job without a target succeeded with this video.
    SucceededVideo(VideoOutput),
    /// The job failed. Some outputs may have been made all the same.
    Failed(Failure, Vec<Placement>),
    /// The job was canceled.
    Canceled(CancelReason),
}

impl Completion {
    /// The status of a job that ends like this, unless its result cannot be stored.
    pub fn status(&self) -> JobStatus {
        match self {
            Self::Succeeded(_) | Self::SucceededVideo(_) => JobStatus::Succeeded,
            Self::Failed(..) => JobStatus::Failed,
            Self::Canceled(_) => JobStatus::Canceled,
        }
    }
}

/// Settings of the process that completing a job or a Recipe run needs.
#[derive(Clone, Copy, Debug)]
pub struct CompletionContext<'a> {
    /// The origin of `canvasUrl` in the event.
    pub public_url: &'a str,
    /// How long records are kept.
    pub windows: &'a Windows,
    /// W3C trace context of the work that ends the job, passed on to the webhook.
    pub traceparent: Option<&'a str>,
    /// Receives the tasks that the transaction makes ready, which the caller announces after the commit.
    pub ready: &'a ReadyTasks,
    /// A queue whose workers were not seen for this long is silent: nobody carries out a cancel.
    pub worker_silent: Duration,
    /// The review that the end of the job leaves on a large canvas.
    pub review: Option<&'a PreparedReview>,
}

/// Result of an attempt to end a job.
#[derive(Clone, Debug, PartialEq)]
pub enum CompletionResult {
    /// The job has ended; this is its new record. The caller commits the transaction and announces what it made ready.
    Done(Box<Record>),
    /// The lease is no longer current: another worker has the task or has ended it. The job was left as it is.
    Stale,
    /// A blob was removed after it was put: those of the transaction must be put again, and the caller rolls back.
    BlobGone,
    /// The canvas is large and no review of its present revision was prepared ([`Reviews`](super::Reviews)). The job was left as it is.
    ReviewNeeded,
}
