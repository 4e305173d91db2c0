//! The one signed webhook at the end of a run (specification, Events; decisions 15).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Timestamp;
use crate::graph::named;
use crate::id::{AssetHandle, CanvasHandle, CanvasId, NodeId, RecipeId};
use crate::job::{FailureCode, ImageJob, JobStatus};
use crate::recipe::run::{OutputStatus, RunFailure, RunRecord, RunStatus};

/// The header of an attempt that names the delivery, `webhook:<id>`: the same in all attempts (decisions 15.1).
pub const ID_HEADER: &str = "service-webhook-id";
/// The header of an attempt that says when it was made, in seconds of the epoch.
pub const TIMESTAMP_HEADER: &str = "service-webhook-timestamp";
/// The header of an attempt that signs it: `v1=<hex>`.
pub const SIGNATURE_HEADER: &str = "service-webhook-signature";

named! {
    /// Where a delivery stands.
    DeliveryStatus {
        /// Waiting for the run's end or its next attempt.
        Pending = "pending",
        /// An attempt is under way.
        Delivering = "delivering",
        /// A receiver acknowledged it.
        Delivered = "delivered",
        /// No attempt is left, or none would help.
        Failed = "failed",
    }
}

named! {
    /// Why a delivery failed.
    DeliveryError {
        /// The address is not public.
        InvalidDestination = "invalid_destination",
        /// Network failures or retryable statuses to the end.
        DeliveryFailed = "delivery_failed",
        /// The receiver redirected.
        RedirectNotAllowed = "redirect_not_allowed",
        /// The receiver refused for good.
        EndpointRejected = "endpoint_rejected",
        /// The secret cannot be opened.
        SecretUnavailable = "secret_unavailable",
        /// The result cannot be made durable now. Not told by this service, which makes results durable before their event.
        FinalizationUnavailable = "finalization_unavailable",
        /// The same for want of the account's authority.
        FinalizationAuthUnavailable = "finalization_auth_unavailable",
        /// The same because that authority has expired.
        FinalizationAuthExpired = "finalization_auth_expired",
        /// There is no event to deliver, because the record of the run cannot be read.
        FinalizationFailed = "finalization_failed",
    }
}

/// Delivery state of a run's webhook. Endpoint and secret are never part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryState {
    /// `webhook:<id>`.
    pub id: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Attempts so far.
    #[schema(minimum = 0, maximum = 4)]
    pub attempts: i32,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_attempt_at: Option<Timestamp>,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_attempt_at: Option<Timestamp>,
    /// When it was acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub delivered_at: Option<Timestamp>,
    /// The receiver's last HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 599, nullable = false)]
    pub last_status: Option<i32>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error_code: Option<DeliveryError>,
}

/// A webhook to announce a run's end with, as requests carry it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookInput {
    /// A public HTTPS endpoint.
    #[schema(min_length = 9, max_length = 2048, pattern = "^https://", format = Uri)]
    pub url: String,
    /// The caller's own; never returned.
    #[schema(min_length = 32, max_length = 512)]
    pub secret: String,
}

named! {
    /// The type of an event (decisions 15.2).
    EventType {
        /// An image or Action run succeeded.
        ImageJobSucceeded = "image_job.succeeded",
        /// An image or Action run failed.
        ImageJobFailed = "image_job.failed",
        /// An image or Action run was stopped.
        ImageJobCanceled = "image_job.canceled",
        /// The work was done, its result could not be made durable.
        ImageJobFinalizationFailed = "image_job.finalization_failed",
        /// A Recipe run succeeded.
        RecipeRunSucceeded = "recipe_run.succeeded",
        /// A Recipe run failed.
        RecipeRunFailed = "recipe_run.failed",
        /// A Recipe run was stopped.
        RecipeRunCanceled = "recipe_run.canceled",
    }
}

impl EventType {
    /// The event that announces the end of an image or Action run.
    pub fn of_image_job(job: &ImageJob) -> Self {
        match (job.status, &job.failure) {
            (JobStatus::Succeeded, _) => EventType::ImageJobSucceeded,
            (JobStatus::Canceled, _) => EventType::ImageJobCanceled,
            (_, Some(failure)) if failure.code == FailureCode::OutputFinalizationFailed => {
                EventType::ImageJobFinalizationFailed
            }
            _ => EventType::ImageJobFailed,
        }
    }
}

/// What is sent. The bytes are made once, when the run ends, and are the same in every attempt.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// `event:<uuid>`; the same in all attempts.
    pub id: String,
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// `v1`.
    pub api_version: &'static str,
    /// When the run ended.
    pub created_at: Timestamp,
    /// The run.
    pub data: EventData,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct EventData {
    /// The run that ended.
    pub run: EventRun,
}

/// A run that ended.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum EventRun {
    /// An image or Action run as a read would show it, without preview URLs and delivery state.
    Job(Box<ImageJob>),
    /// A Recipe run: what became of it, without its texts.
    Recipe(Box<EventRecipeRun>),
}

/// A Recipe run in an event (specification, Events). Text values are not part of it: read the run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventRecipeRun {
    /// `recipe-<uuid>`.
    pub id: String,
    /// `run:recipe-<uuid>`.
    pub run: String,
    /// How it ended.
    pub status: RunStatus,
    /// `recipe`.
    pub operation: &'static str,
    /// Plain id.
    pub recipe_id: RecipeId,
    /// The version that was run.
    pub recipe_version: String,
    /// Plain id.
    pub canvas_id: CanvasId,
    /// `canvas:<ownerUid>:<id>`.
    pub canvas_handle: CanvasHandle,
    /// In the order of their steps.
    pub outputs: Vec<EventOutput>,
    /// Why it failed or was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<RunFailure>,
}

/// An output in an event.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOutput {
    /// As declared.
    pub key: String,
    /// What became of it.
    pub status: OutputStatus,
    /// Its node.
    pub node_id: NodeId,
    /// The picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub asset_id: Option<AssetHandle>,
}

impl Event {
    /// The event of `run`'s end.
    pub fn image_job(id: Uuid, created_at: Timestamp, run: ImageJob) -> Self {
        let run = ImageJob { webhook: None, replayed: None, ..run };
        Self {
            id: format!("event:{id}"),
            kind: EventType::of_image_job(&run),
            api_version: "v1",
            created_at,
            data: EventData { run: EventRun::Job(Box::new(run)) },
        }
    }

    /// The event of a Recipe run's end.
    pub fn recipe_run(id: Uuid, created_at: Timestamp, run: &RunRecord) -> Self {
        let kind = match run.status {
            RunStatus::Succeeded => EventType::RecipeRunSucceeded,
            RunStatus::Canceled => EventType::RecipeRunCanceled,
            _ => EventType::RecipeRunFailed,
        };
        let outputs = run.plan.steps.iter().zip(&run.outputs).map(|(step, output)| EventOutput {
            key: step.key.clone(),
            status: output.status,
            node_id: step.node.clone(),
            asset_id: output.asset.clone(),
        });
        let run = EventRecipeRun {
            id: run.id.to_string(),
            run: run.id.handle(),
            status: run.status,
            operation: "recipe",
            recipe_id: run.recipe.clone(),
            recipe_version: run.recipe_version.to_string(),
            canvas_id: run.canvas.id.clone(),
            canvas_handle: run.canvas.clone(),
            outputs: outputs.collect(),
            failure: run.failure.clone(),
        };
        let data = EventData { run: EventRun::Recipe(Box::new(run)) };
        Self { id: format!("event:{id}"), kind, api_version: "v1", created_at, data }
    }
}
