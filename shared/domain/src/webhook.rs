//! The webhook of a run and its delivery. Rules: `docs/reference/webhooks.md`. [`event`](crate::event) holds what is delivered.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::graph::named;
use crate::id::WebhookHandle;
use crate::page::Page;

/// Header with the id of the delivery, `webhook:<id>`; the same in all attempts.
pub const ID_HEADER: &str = "service-webhook-id";
/// Header with the time of the attempt, in seconds since the Unix epoch.
pub const TIMESTAMP_HEADER: &str = "service-webhook-timestamp";
/// Header with the signature of the attempt, `v1=<hex>`.
pub const SIGNATURE_HEADER: &str = "service-webhook-signature";

/// The headers of the Standard Webhooks specification, which carry the same id and time, and a signature of their own.
pub mod standard {
    /// Header with the id of the delivery.
    pub const ID_HEADER: &str = "webhook-id";
    /// Header with the time of the attempt, in seconds since the Unix epoch.
    pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
    /// Header with the signatures of the attempt, `v1,<base64>`, separated by spaces.
    pub const SIGNATURE_HEADER: &str = "webhook-signature";
}

named! {
    /// Status of a delivery.
    DeliveryStatus {
        /// Waits for the end of the run or for its next attempt.
        Pending = "pending",
        /// An attempt is under way.
        Delivering = "delivering",
        /// A receiver acknowledged it.
        Delivered = "delivered",
        /// No attempt is left, or no attempt can succeed.
        Failed = "failed",
    }
}

named! {
    /// Why a delivery failed.
    DeliveryError {
        /// The destination is not public.
        InvalidDestination = "invalid_destination",
        /// The last attempt ended with a network failure or a retryable status.
        DeliveryFailed = "delivery_failed",
        /// The receiver answered with a redirect.
        RedirectNotAllowed = "redirect_not_allowed",
        /// The receiver answered with a permanent error.
        EndpointRejected = "endpoint_rejected",
        /// The stored secret cannot be decrypted.
        SecretUnavailable = "secret_unavailable",
        /// The result cannot be stored now. Never reported: this service stores results before it creates their event.
        FinalizationUnavailable = "finalization_unavailable",
        /// The result cannot be stored because the account's authorization is unavailable. Never reported.
        FinalizationAuthUnavailable = "finalization_auth_unavailable",
        /// The result cannot be stored because the account's authorization has expired. Never reported.
        FinalizationAuthExpired = "finalization_auth_expired",
        /// There is no event to deliver because the record of the run cannot be read.
        FinalizationFailed = "finalization_failed",
    }
}

/// Delivery state of a run's webhook. It never contains the endpoint or the secret.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryState {
    /// Id of the delivery.
    #[schema(value_type = WebhookHandle)]
    pub id: String,
    /// Status of the delivery.
    pub status: DeliveryStatus,
    /// Number of attempts so far.
    #[schema(minimum = 0, maximum = 4)]
    pub attempts: i32,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// When the last attempt began.
    pub last_attempt_at: Option<Timestamp>,
    /// When a receiver acknowledged the delivery.
    pub delivered_at: Option<Timestamp>,
    /// HTTP status of the receiver's last response.
    #[schema(minimum = 100, maximum = 599)]
    pub last_status: Option<i32>,
    /// Why the delivery failed.
    pub error_code: Option<DeliveryError>,
}

/// A page of deliveries, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    /// Deliveries of the account's runs and video jobs.
    pub deliveries: Vec<Delivery>,
    /// Position in the list.
    pub page: Page,
}

/// The delivery of a webhook. It contains neither the endpoint nor the secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Handle of the run whose end is announced, or of the video job.
    #[schema(pattern = "^(run:(recipe-)?|job:)[0-9a-f-]{36}$")]
    pub run: String,
    /// State of the delivery, as the run shows it.
    pub webhook: DeliveryState,
    /// When the run was started.
    pub created_at: Timestamp,
}

/// A delivery that is enqueued again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryReplayed {
    /// Id of the delivery.
    #[schema(pattern = "^webhook:[0-9a-f-]{36}$")]
    pub id: String,
    /// Its status now.
    pub status: DeliveryStatus,
}

/// Deliveries that are enqueued again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeliveriesReplayed {
    /// Their ids.
    pub replayed: Vec<String>,
    /// Ids that were not replayed: there is no such delivery, it has not ended, or its run ended without an event.
    pub skipped: Vec<String>,
}

/// A webhook for the end of a run.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookInput {
    /// Public HTTPS endpoint.
    #[schema(min_length = 9, max_length = 2048, pattern = "^https://", format = Uri)]
    pub url: String,
    /// Signing secret of the caller; never returned.
    #[schema(min_length = 32, max_length = 512)]
    pub secret: String,
}
