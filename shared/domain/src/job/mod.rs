//! Jobs: states, requests, outcomes, and the served record. Rules: `docs/reference/jobs.md`.

mod document;
mod mask;
mod placement;
mod quote;
mod summary;
mod video;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::graph::{Role, named};
use crate::id::{AccountUid, AssetHandle, CanvasHandle, JobId, NodeId};
use crate::lineage::{InputRole, Parent};
use crate::message::{Queue, TaskKind};
use crate::model::{Capability, ProviderKind};
use crate::origin::AiGenerated;
use crate::queue::WaitingFor;
use crate::review::CompletionReview;
use crate::webhook::DeliveryState;
use crate::{API_ROOT, Timestamp};

pub use document::{
    ActionRuns, ImageJob, ImageReference, ImageReferenceForm, JobDocument, JobImage, ReferenceInput, Timing,
    VideoReference, VideoReferenceForm,
};
pub use mask::{ImageMask, ImageMaskForm, Mask, MaskMode};
pub use placement::{PlacedVideo, Placement, Preview};
pub use quote::{NewTarget, QuotedModel, StartQuote};
pub use summary::{ImageJobKind, OutputCounts, RunKind, RunList, RunSummary, WorkOperation};
pub use video::{
    StoredVideo, VideoDownload, VideoFacts, VideoFailure, VideoFailureCode, VideoImage, VideoJob, VideoModel,
    VideoStatus, video_url,
};

named! {
    /// Status of an image or Action job.
    JobStatus {
        /// Waits for its inputs, as a child of a Recipe run. This service never reports it: a run starts a child when
        /// its inputs are stored.
        Preparing = "preparing",
        /// Accepted; no worker has claimed it.
        Queued = "queued",
        /// A worker holds its lease.
        Running = "running",
        /// The worker is storing its result.
        Finalizing = "finalizing",
        /// A cancel was requested and a worker holds the lease.
        Canceling = "canceling",
        /// Every output is stored.
        Succeeded = "succeeded",
        /// It ended without all of its outputs.
        Failed = "failed",
        /// It was canceled.
        Canceled = "canceled",
        /// It succeeded; the retention of its record is over.
        Expired = "expired",
    }
}

impl JobStatus {
    /// Returns `true` if the work is over.
    pub const fn is_terminal(self) -> bool {
        matches!(self, JobStatus::Succeeded | JobStatus::Failed | JobStatus::Canceled | JobStatus::Expired)
    }

    /// Returns `true` if a job may go from this status to `next`. Every write of a status is conditional on this.
    pub const fn may_become(self, next: JobStatus) -> bool {
        use JobStatus::{Canceled, Canceling, Expired, Failed, Finalizing, Preparing, Queued, Running, Succeeded};
        match self {
            Preparing => matches!(next, Queued | Canceled | Failed),
            Queued => matches!(next, Running | Canceled | Failed),
            Running => matches!(next, Finalizing | Canceling | Succeeded | Failed | Canceled),
            // Back to running: the worker died before the result was committed, and another worker repeats the work.
            Finalizing => matches!(next, Running | Canceling | Succeeded | Failed | Canceled),
            // A cancel that loses the race against success leaves `succeeded`.
            Canceling => matches!(next, Succeeded | Failed | Canceled),
            Succeeded => matches!(next, Expired),
            Failed | Canceled | Expired => false,
        }
    }
}

named! {
    /// Kind of a job.
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
    /// Operation of a job.
    JobOperation {
        /// Makes an image or a video.
        Generate = "generate",
        /// Changes an image.
        Edit = "edit",
        /// Makes variations of an image.
        Variations = "variations",
        /// Transforms an image.
        Action = "action",
    }
}

named! {
    /// Why a job was canceled.
    CancelReason {
        /// It waited too long for its inputs. Never reported: see `preparing`.
        StalePreparing = "stale_preparing",
        /// A client requested it.
        UserRequested = "user_requested",
        /// It could not be set up. Never reported: this service sets up a job in one transaction.
        SetupFailed = "setup_failed",
    }
}

named! {
    /// Why a job failed; a stable code.
    FailureCode {
        /// The provider refused the credential.
        ProviderAuthenticationFailed = "provider_authentication_failed",
        /// The provider did not answer in time.
        ProviderTimeout = "provider_timeout",
        /// The provider limited the rate of requests.
        ProviderRateLimited = "provider_rate_limited",
        /// The provider refused the request.
        ProviderRejected = "provider_rejected",
        /// The provider was unavailable.
        ProviderUnavailable = "provider_unavailable",
        /// The service failed.
        RuntimeFailed = "runtime_failed",
        /// An input image cannot be read, or the result would be too large.
        ActionInputInvalid = "action_input_invalid",
        /// The retention of the record is over.
        ResultExpired = "result_expired",
        /// The work was done, but its result could not be stored.
        OutputFinalizationFailed = "output_finalization_failed",
    }
}

impl FailureCode {
    /// Returns `true` if an equal request may succeed later (`docs/reference/jobs.md#failure-codes`).
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
    /// Stable code.
    pub code: FailureCode,
    /// Message for people.
    pub message: String,
    /// `true` if a new request may succeed.
    pub retryable: bool,
    /// HTTP status of the provider's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 400, maximum = 599)]
    pub provider_status: Option<u16>,
}

impl Failure {
    /// A failure of `code`.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: code.is_retryable(), provider_status: None }
    }
}

/// An input of a job: what the request named, and the asset that it meant when the job was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Full node or asset handle.
    pub handle: String,
    /// The image.
    pub asset: AssetHandle,
}

/// The request of a job, resolved and normalized. Stored with the job.
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
    /// The kind of job, its queue and the kind of its task.
    pub const fn route(&self) -> (JobKind, Queue, TaskKind) {
        match self {
            Request::Action(_) => (JobKind::Action, Queue::Image, TaskKind::Action),
            Request::Image(_) => (JobKind::Image, Queue::Generation, TaskKind::Image),
            Request::Video(_) => (JobKind::Video, Queue::Video, TaskKind::Video),
        }
    }

    /// The nodes that receive results.
    pub fn targets(&self) -> &[NodeId] {
        match self {
            Request::Action(action) => std::slice::from_ref(&action.target),
            Request::Image(image) => &image.targets,
            Request::Video(video) => video.target.as_slice(),
        }
    }

    /// The model that does the work; Actions use none.
    pub fn model(&self) -> Option<&ChosenModel> {
        match self {
            Request::Action(_) => None,
            Request::Image(image) => Some(&image.model),
            Request::Video(video) => Some(&video.model),
        }
    }

    /// A word for the work, used in activity entries.
    pub fn title(&self, operation: JobOperation) -> &str {
        match self {
            Request::Action(action) => &action.last.slug,
            Request::Image(_) | Request::Video(_) => operation.as_str(),
        }
    }

    /// The node and asset handles that the job reads, in order.
    pub fn handles(&self) -> Vec<String> {
        match self {
            Request::Action(action) => action.inputs.iter().map(|input| input.handle.clone()).collect(),
            Request::Image(image) => {
                let mut handles: Vec<String> = image.references.iter().map(|it| it.handle.clone()).collect();
                let mask = image.mask.iter().map(|mask| &mask.handle);
                handles.extend(mask.filter(|mask| image.references.iter().all(|it| it.handle != **mask)).cloned());
                handles
            }
            Request::Video(video) => video.images().map(|image| image.named.clone()).collect(),
        }
    }

    /// The assets that the job reads, in order.
    pub fn parents(&self) -> Vec<Parent> {
        let parent = |asset: &AssetHandle, role| Parent { asset: asset.clone(), role };
        match self {
            Request::Action(action) => action.inputs.iter().map(|input| parent(&input.asset, None)).collect(),
            Request::Image(image) => {
                let references = image.references.iter().map(|it| parent(&it.asset, it.role.map(InputRole::from)));
                let mask = image.mask.iter().map(|mask| parent(&mask.asset, Some(InputRole::Mask)));
                references.chain(mask).collect()
            }
            Request::Video(video) => video.parents(),
        }
    }
}

/// An Action with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionStep {
    /// The Action's slug.
    pub slug: String,
    /// The Action's version.
    pub version: String,
    /// Every parameter, including defaults.
    pub params: Map<String, Value>,
}

/// Request of an Image Action, or of several, each of which reads what the one before it made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionRequest {
    /// The last Action. Its parameters are empty if there are several, which no release without `steps` understands.
    #[serde(flatten)]
    pub last: ActionStep,
    /// All of several Actions; empty for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<ActionStep>,
    /// The image that the first Action reads, and the second images of all, in order.
    pub inputs: Vec<Input>,
    /// The node that receives the result.
    pub target: NodeId,
}

impl ActionRequest {
    /// The request of these Actions. `None` if there is none.
    pub fn new(steps: Vec<ActionStep>, inputs: Vec<Input>, target: NodeId) -> Option<Self> {
        let last = steps.last()?.clone();
        Some(match steps.len() {
            1 => Self { last, steps: Vec::new(), inputs, target },
            _ => Self { last: ActionStep { params: Map::new(), ..last }, steps, inputs, target },
        })
    }

    /// The Actions, at least one.
    pub fn steps(&self) -> &[ActionStep] {
        if self.steps.is_empty() { std::slice::from_ref(&self.last) } else { &self.steps }
    }
}

/// Request of a generation, an edit or variations; the operation of the job says which. Rules:
/// `docs/reference/images.md`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageRequest {
    /// The model that makes the images.
    pub model: ChosenModel,
    /// The prompt with the guidelines of the Elements. Empty only in variations.
    pub prompt: String,
    /// The text that a stand-in writes into the image instead of the prompt: the texts that a Recipe step is given.
    pub caption: Option<String>,
    /// A size that the model offers.
    pub size: Option<String>,
    /// A quality that the model offers.
    pub quality: Option<String>,
    /// References, source and the images of the Elements, in this order; at most 16. With a mask, the source is the first.
    pub references: Vec<Reference>,
    /// The mask of an edit.
    pub mask: Option<Mask>,
    /// Handle of each Element version.
    pub elements: Vec<String>,
    /// Image nodes, empty or not; each receives one output, in this order.
    pub targets: Vec<NodeId>,
}

/// Request of a video generation. Rules: `docs/reference/videos.md`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoRequest {
    /// The model that makes the video.
    pub model: ChosenModel,
    /// The required capability: determined by the frames or, without frames, by the references.
    pub capability: Capability,
    /// The prompt as requested.
    pub prompt: String,
    /// A duration that the model offers; `None`: the model's default.
    pub duration_seconds: Option<u32>,
    /// An aspect ratio that the model offers; `None`: the model's default.
    pub aspect_ratio: Option<String>,
    /// A resolution that the model offers; `None`: the model's default.
    pub resolution: Option<String>,
    /// `true` if the video has sound. Only for models that can omit it.
    pub generate_audio: Option<bool>,
    pub first_frame: Option<VideoImage>,
    /// The last frame; only together with a first frame.
    pub last_frame: Option<VideoImage>,
    /// At most 9. Only the embedded runtime takes references together with frames.
    pub references: Vec<VideoImage>,
    /// Video node that receives the video as an asset; `None`: the job alone has it.
    #[serde(default)]
    pub target: Option<NodeId>,
}

impl VideoRequest {
    /// Frames and references, in this order.
    pub fn images(&self) -> impl Iterator<Item = &VideoImage> {
        self.first_frame.iter().chain(&self.last_frame).chain(&self.references)
    }

    /// The assets that the job reads, in order.
    pub fn parents(&self) -> Vec<Parent> {
        let first = self.first_frame.iter().map(|it| (it, Some(InputRole::FirstFrame)));
        let last = self.last_frame.iter().map(|it| (it, Some(InputRole::LastFrame)));
        let references = self.references.iter().map(|it| (it, it.role.map(InputRole::from)));
        let images = first.chain(last).chain(references);
        images.filter_map(|(image, role)| Some(Parent { asset: image.asset.clone()?, role })).collect()
    }
}

/// The model of a job as it was resolved when the job was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChosenModel {
    /// Opaque key of the model (`docs/reference/models.md#model-keys`).
    pub key: String,
    /// The provider's own id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// The provider that runs it.
    pub provider: ProviderKind,
    /// The saved connection that runs it; `None` for managed models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Credits for each output; 0 with a saved connection.
    pub credit_cost: i64,
}

/// An image that guides an output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// Full node or asset handle, as the request named it.
    pub handle: String,
    /// The image that the handle meant when the job was accepted.
    pub asset: AssetHandle,
    /// Role of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
}

/// A stored output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The stored image.
    pub asset: AssetHandle,
    /// The node that shows it; of a deleted node, its former id.
    pub node: NodeId,
    pub media_type: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Size of the stored file, in bytes.
    pub bytes: u64,
    /// Use of AI in it; `None` in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ai_generated: Option<AiGenerated>,
    /// Alternative text of the node when the job ended; `None` in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
    /// `true` if a mask was applied, `false` if there is one that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked: Option<bool>,
}

/// Outcome of a job. Stored with the job when it ends.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOutcome {
    /// Stored outputs. A failed job can have some as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Output>,
    /// The stored video of a video job.
    pub video: Option<StoredVideo>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Review of its canvas after the job's last write.
    pub completion_review: Option<CompletionReview>,
}

/// Row of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Id of the job.
    pub id: JobId,
    /// The account that started the job and pays for it.
    pub account: AccountUid,
    /// Kind of the job.
    pub kind: JobKind,
    /// Operation of the job.
    pub operation: JobOperation,
    /// Status of the job.
    pub status: JobStatus,
    /// Grows with every visible change.
    pub version: i32,
    /// The canvas that it writes to.
    pub canvas: Option<CanvasHandle>,
    /// The revision of its last write to the canvas.
    pub canvas_revision: Option<String>,
    /// Request of the job.
    pub request: Request,
    /// Outcome of the job.
    pub outcome: JobOutcome,
    /// Estimated seconds, at least 1. Guidance.
    pub estimated_seconds: i32,
    /// Credits reserved until the job is terminal, then credits charged.
    pub credit_cost: i64,
    /// Progress of a video in percent, below 100. Success is a status.
    pub progress: f64,
    /// The provider's id of the run of a video.
    pub provider_run: Option<String>,
    /// Why it was canceled.
    pub cancel_reason: Option<CancelReason>,
    /// When the job was accepted.
    pub created_at: Timestamp,
    /// When the job last changed.
    pub updated_at: Timestamp,
    /// When the job was queued.
    pub queued_at: Option<Timestamp>,
    /// When a worker first claimed the job.
    pub started_at: Option<Timestamp>,
    /// When the job became terminal.
    pub completed_at: Option<Timestamp>,
    /// When its terminal record was first served (`docs/reference/jobs.md#first-finalization`).
    pub finalized_at: Option<Timestamp>,
    /// State of its webhook.
    pub webhook: Option<DeliveryState>,
    /// The cause of the wait. The gateway determines it when it serves a record that is not over.
    pub waiting_for: Option<WaitingFor>,
    /// Preview epochs of its outputs. The gateway determines them when it serves the record.
    pub preview_epochs: HashMap<AssetHandle, i64>,
}

/// The ETag of the record of a job or Recipe run. It changes with every visible change. `version` counts changes of the
/// record itself. Webhook deliveries continue after the last of them, and the credits of a Recipe run can change when a
/// child job settles later.
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

/// The path of a run.
pub fn poll_url(id: JobId) -> String {
    format!("{API_ROOT}/runs/{}", id.0)
}

/// URL of a canvas in the browser application.
pub fn canvas_url(public_url: &str, canvas: &CanvasHandle) -> String {
    format!("{public_url}/c/{}/{}", canvas.owner, canvas.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(slugs: &[&str]) -> Value {
        let params = Map::from_iter([("width".to_owned(), json!(2))]);
        let step =
            |slug: &&str| ActionStep { slug: (*slug).to_owned(), version: "1.0.0".to_owned(), params: params.clone() };
        let target = NodeId::from_stored("t".to_owned());
        let request = ActionRequest::new(slugs.iter().map(step).collect(), Vec::new(), target).expect("has a step");
        let written = json!(Request::Action(request.clone()));
        assert_eq!(serde_json::from_value::<Request>(written.clone()).expect("reads back"), Request::Action(request));
        written
    }

    #[test]
    fn a_single_action_is_stored_as_releases_without_chains_store_it() {
        let request = json!({
            "kind": "action", "slug": "resize", "version": "1.0.0", "params": {"width": 2}, "inputs": [], "target": "t",
        });
        assert_eq!(stored(&["resize"]), request);
        let Request::Action(read) = serde_json::from_value(request).expect("reads") else { panic!("is no Action") };
        assert_eq!(read.steps(), std::slice::from_ref(&read.last));
    }

    #[test]
    fn a_release_without_chains_finds_no_parameters_in_one() {
        let chain = stored(&["crop", "resize"]);
        assert_eq!((&chain["slug"], &chain["params"]), (&json!("resize"), &json!({})));
        let Request::Action(read) = serde_json::from_value(chain).expect("reads") else { panic!("is no Action") };
        let slugs: Vec<&str> = read.steps().iter().map(|step| step.slug.as_str()).collect();
        assert_eq!(slugs, ["crop", "resize"]);
        assert_eq!(read.steps()[1].params["width"], 2);
    }

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
