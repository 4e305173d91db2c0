//! Jobs: their states, what was asked, what came of it, and the record that is served.

mod document;
mod video;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::graph::{Role, named};
use crate::id::{AccountUid, AssetHandle, CanvasHandle, JobId, NodeId};
use crate::message::{Queue, TaskKind};
use crate::model::{Capability, ProviderKind};
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;
use crate::{API_ROOT, Timestamp};

pub use document::{ImageJob, JobDocument, JobImage, ReferenceInput, Timing};
pub use video::{
    StoredVideo, VideoDownload, VideoFailure, VideoFailureCode, VideoJob, VideoModel, VideoPicture, VideoStatus,
    video_url,
};

named! {
    /// The state of an image or Action job (specification, States and transitions).
    JobStatus {
        /// A Recipe's child whose inputs are not there yet. Not told by this service, whose runs start a child when its inputs are
        /// there.
        Preparing = "preparing",
        /// Accepted; no worker has it.
        Queued = "queued",
        /// A worker has it under a lease.
        Running = "running",
        /// Its result is being made durable.
        Finalizing = "finalizing",
        /// Somebody asked to stop it and a worker has it.
        Canceling = "canceling",
        /// Every output is durable.
        Succeeded = "succeeded",
        /// It ended without all of its outputs.
        Failed = "failed",
        /// It was stopped.
        Canceled = "canceled",
        /// It had succeeded; its record has passed its time.
        Expired = "expired",
    }
}

impl JobStatus {
    /// Whether nothing more happens to the work.
    pub const fn is_terminal(self) -> bool {
        matches!(self, JobStatus::Succeeded | JobStatus::Failed | JobStatus::Canceled | JobStatus::Expired)
    }

    /// Whether a job may go from this state to `next`; every write of a state is conditional on this.
    pub const fn may_become(self, next: JobStatus) -> bool {
        use JobStatus::{Canceled, Canceling, Expired, Failed, Finalizing, Preparing, Queued, Running, Succeeded};
        match self {
            Preparing => matches!(next, Queued | Canceled | Failed),
            Queued => matches!(next, Running | Canceled | Failed),
            Running => matches!(next, Finalizing | Canceling | Succeeded | Failed | Canceled),
            // Back to running: its worker died before the result was shown, and another one makes it again.
            Finalizing => matches!(next, Running | Canceling | Succeeded | Failed | Canceled),
            // A cancel that loses the race against success leaves `succeeded` (decisions 9.5).
            Canceling => matches!(next, Succeeded | Failed | Canceled),
            Succeeded => matches!(next, Expired),
            Failed | Canceled | Expired => false,
        }
    }
}

named! {
    /// What kind of work a job is.
    JobKind {
        /// Image generation, edit or variations.
        Image = "image",
        /// An Image Action.
        Action = "action",
        /// Video generation.
        Video = "video",
    }
}

named! {
    /// What was asked for.
    JobOperation {
        /// Make an image or a video.
        Generate = "generate",
        /// Change an image.
        Edit = "edit",
        /// Vary an image.
        Variations = "variations",
        /// Transform an image.
        Action = "action",
    }
}

named! {
    /// Why a job was stopped.
    CancelReason {
        /// It waited too long for its inputs, which none does here: see [`JobStatus::Preparing`].
        StalePreparing = "stale_preparing",
        /// Somebody asked.
        UserRequested = "user_requested",
        /// It could not be set up. Not told by this service, where what sets a job up is one transaction.
        SetupFailed = "setup_failed",
    }
}

named! {
    /// Why a job failed; stable, to branch on.
    FailureCode {
        /// The provider refused the credential.
        ProviderAuthenticationFailed = "provider_authentication_failed",
        /// The provider did not answer in time.
        ProviderTimeout = "provider_timeout",
        /// The provider limited us.
        ProviderRateLimited = "provider_rate_limited",
        /// The provider refused the request.
        ProviderRejected = "provider_rejected",
        /// The provider was out of order.
        ProviderUnavailable = "provider_unavailable",
        /// The service itself failed.
        RuntimeFailed = "runtime_failed",
        /// An input picture cannot be read or the result would be too large.
        ActionInputInvalid = "action_input_invalid",
        /// The record's time is over.
        ResultExpired = "result_expired",
        /// The work was done, its result could not be made durable.
        OutputFinalizationFailed = "output_finalization_failed",
    }
}

impl FailureCode {
    /// Whether the same request may succeed later (decisions 12.5; specification, Events).
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            FailureCode::ProviderTimeout
                | FailureCode::ProviderRateLimited
                | FailureCode::ProviderUnavailable
                | FailureCode::OutputFinalizationFailed
        )
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// To branch on.
    pub code: FailureCode,
    /// For people.
    pub message: String,
    /// Whether a new attempt may help.
    pub retryable: bool,
    /// The provider's HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 400, maximum = 599, nullable = false)]
    pub provider_status: Option<u16>,
}

impl Failure {
    /// A failure of `code`.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code.is_retryable(), provider_status: None }
    }
}

/// An input of a job: what the request named, and the asset that it stood for when the job was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Node or asset handle in its full form.
    pub handle: String,
    /// The picture.
    pub asset: AssetHandle,
}

/// What was asked of a job, resolved and normalized. Stored with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Request {
    /// An Image Action.
    Action(ActionRequest),
    /// Generation, edit or variations of images.
    Image(ImageRequest),
    /// Generation of a video.
    Video(VideoRequest),
}

impl Request {
    /// What kind of job it makes, where that waits, and what its task is.
    pub const fn route(&self) -> (JobKind, Queue, TaskKind) {
        match self {
            Request::Action(_) => (JobKind::Action, Queue::Image, TaskKind::Action),
            Request::Image(_) => (JobKind::Image, Queue::Generation, TaskKind::Image),
            Request::Video(_) => (JobKind::Video, Queue::Video, TaskKind::Video),
        }
    }

    /// Nodes that take results.
    pub fn targets(&self) -> &[NodeId] {
        match self {
            Request::Action(action) => std::slice::from_ref(&action.target),
            Request::Image(image) => &image.targets,
            Request::Video(_) => &[],
        }
    }

    /// What is asked for, in a word, for an activity.
    pub fn title(&self, operation: JobOperation) -> &str {
        match self {
            Request::Action(action) => &action.slug,
            Request::Image(_) | Request::Video(_) => operation.as_str(),
        }
    }

    /// Node and asset handles that are read, in order.
    pub fn handles(&self) -> Vec<String> {
        match self {
            Request::Action(action) => action.inputs.iter().map(|input| input.handle.clone()).collect(),
            Request::Image(image) => image.references.iter().map(|reference| reference.handle.clone()).collect(),
            Request::Video(video) => video.pictures().map(|picture| picture.named.clone()).collect(),
        }
    }
}

/// What an Image Action was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionRequest {
    /// The Action's slug.
    pub slug: String,
    /// The Action's version.
    pub version: String,
    /// Every parameter, defaults filled in.
    pub params: Map<String, Value>,
    /// In the order that the Action declares.
    pub inputs: Vec<Input>,
    /// The node that takes the result.
    pub target: NodeId,
}

/// What generation, edit or variations were asked for (decisions 10). The job's operation tells which of the three.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageRequest {
    /// Who makes it.
    pub model: ChosenModel,
    /// As asked, with the guidelines of the Elements (decisions 10.4). Empty only in variations.
    pub prompt: String,
    /// One of those that the model offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// One of those that the model offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    /// References, source and the Elements' pictures, in this order; at most 16.
    pub references: Vec<Reference>,
    /// `element:<id>@v<n>` of each Element version.
    pub elements: Vec<String>,
    /// Empty image nodes or such as show something; each takes one output, in this order.
    pub targets: Vec<NodeId>,
}

/// What generation of a video was asked for (decisions 11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoRequest {
    /// Who makes it.
    pub model: ChosenModel,
    /// What of the model is asked for: the frames decide, or, without frames, the references.
    pub capability: Capability,
    /// As asked.
    pub prompt: String,
    /// One of those that the model offers; none: the model's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<u32>,
    /// One of those that the model offers; none: the model's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspect_ratio: Option<String>,
    /// One of those that the model offers; none: the model's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// Only of models that can leave sound out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_audio: Option<bool>,
    /// What it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_frame: Option<VideoPicture>,
    /// What it ends with; only together with a first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_frame: Option<VideoPicture>,
    /// At most 9. Together with frames only for the embedded runtime.
    pub references: Vec<VideoPicture>,
}

impl VideoRequest {
    /// Frames and references, in this order.
    pub fn pictures(&self) -> impl Iterator<Item = &VideoPicture> {
        self.first_frame.iter().chain(&self.last_frame).chain(&self.references)
    }
}

/// The model that a job runs, as it was resolved at its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChosenModel {
    /// The opaque key (decisions 12.3).
    pub key: String,
    /// The provider's own id.
    pub id: String,
    /// For people.
    pub name: String,
    /// Who runs it.
    pub provider: ProviderKind,
    /// The saved connection that it is run with; none for managed models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Credits an output; 0 with a saved connection (decisions 12.4).
    pub credit_cost: i64,
}

/// A picture that guides an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Node or asset handle in its full form, as the request named it.
    pub handle: String,
    /// The picture that it stood for when the job was accepted.
    pub asset: AssetHandle,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// A durable result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The stored picture.
    pub asset: AssetHandle,
    /// The node that shows it (or, deleted meanwhile, would have).
    pub node: NodeId,
    /// Its media type.
    pub media_type: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Of the stored file.
    pub bytes: u64,
}

/// What came of a job. Stored with it when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The durable outputs; with a failure, those that were made all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Output>,
    /// The stored video of a video job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<StoredVideo>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The review of its canvas as its end left it (decisions 5.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_review: Option<CompletionReview>,
}

/// A job's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its id.
    pub id: JobId,
    /// Who started it and pays for it.
    pub account: AccountUid,
    /// What kind of work it is.
    pub kind: JobKind,
    /// What was asked for.
    pub operation: JobOperation,
    /// Where it stands.
    pub status: JobStatus,
    /// Grows with every visible change.
    pub version: i32,
    /// The canvas that it writes to.
    pub canvas: Option<CanvasHandle>,
    /// The revision of its last write to the canvas.
    pub canvas_revision: Option<String>,
    /// What was asked.
    pub request: Request,
    /// What came of it.
    pub outcome: Outcome,
    /// Guidance, at least 1.
    pub estimated_seconds: i32,
    /// What is reserved until it is terminal, then what was charged (decisions 18.18).
    pub credit_cost: i64,
    /// How far a video is, in percent below 100; success is told by the state.
    pub progress: f64,
    /// What the provider calls the run of a video.
    pub provider_run: Option<String>,
    /// Why it was stopped.
    pub cancel_reason: Option<CancelReason>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was queued.
    pub queued_at: Option<Timestamp>,
    /// When a worker first took it.
    pub started_at: Option<Timestamp>,
    /// When it became terminal.
    pub completed_at: Option<Timestamp>,
    /// When its terminal record was first shown.
    pub finalized_at: Option<Timestamp>,
    /// Its webhook.
    pub webhook: Option<DeliveryState>,
}

/// The ETag of a job's or a Recipe run's record: it changes with every visible change. Its version counts those of the record itself;
/// its webhook's delivery goes on after it, and so may what a run cost, by a job that settles later.
pub fn etag(id: Uuid, version: i32, credit_cost: i64, delivery: Option<&DeliveryState>) -> String {
    let of_record = format!("{}-{version}-{credit_cost}", id.simple());
    match delivery {
        Some(delivery) => {
            let last = delivery.last_attempt_at.map_or(0, |at| at.get().timestamp_millis());
            format!("W/\"{of_record}-{}-{}-{last}\"", delivery.status, delivery.attempts)
        }
        None => format!("W/\"{of_record}\""),
    }
}

/// The path under which a run is read.
pub fn poll_url(id: JobId) -> String {
    format!("{API_ROOT}/runs/{}", id.0)
}

/// Where people see a canvas (decisions 3.6).
pub fn canvas_url(public_url: &str, canvas: &CanvasHandle) -> String {
    format!("{public_url}/c/{}/{}", canvas.owner, canvas.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_state_but_success_is_ever_left() {
        for from in JobStatus::ALL.iter().filter(|status| status.is_terminal()) {
            for to in JobStatus::ALL {
                assert_eq!(
                    from.may_become(*to),
                    (*from, *to) == (JobStatus::Succeeded, JobStatus::Expired),
                    "{from} → {to}"
                );
            }
        }
    }

    #[test]
    fn nothing_goes_back_to_queued() {
        for from in JobStatus::ALL {
            assert_eq!(from.may_become(JobStatus::Queued), *from == JobStatus::Preparing, "{from}");
        }
    }

    #[test]
    fn every_unfinished_state_can_end() {
        for from in JobStatus::ALL.iter().filter(|status| !status.is_terminal()) {
            assert!(from.may_become(JobStatus::Failed) && from.may_become(JobStatus::Canceled), "{from}");
            assert!(!from.may_become(JobStatus::Expired), "{from}");
        }
    }
}
