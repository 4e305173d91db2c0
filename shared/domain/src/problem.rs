//! The answer to a request that fails (docs/reference/errors.md).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Violation;
use crate::budget::BudgetState;
use crate::graph::named;
use crate::id::{ChangesUrl, NodeId};
use crate::review::{CompletionReview, Finding};

/// The envelope of every failing response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorEnvelope {
    /// Code, message and details.
    pub error: ErrorBody,
}

/// Code, message and details of a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// Stable. Clients branch on it.
    pub code: ErrorCode,
    /// Text for people. Not part of the contract.
    pub message: String,
    /// Every violation, with the field that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Violation>,
    /// Data for the program that handles the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<ErrorDetails>>,
}

/// Data for the program that handles an error. Which members are present depends on the error.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetails {
    /// Why: of every conflict, and of administering with an old session.
    pub reason: Option<ErrorReason>,
    /// In a revision conflict: the revision that the canvas has now.
    pub current_revision: Option<String>,
    /// In a revision conflict: where to read what has changed since `baseRevision`. A path.
    #[schema(value_type = Option<ChangesUrl>)]
    pub changes_url: Option<String>,
    /// In a revision conflict: plain ids of the first 50 nodes that the request names or uses and that have changed since
    /// `baseRevision`, or have other connections or members since. Absent when `baseRevision` is not one of the last 1000 revisions.
    #[schema(max_items = 50)]
    pub changed_node_ids: Option<Vec<NodeId>>,
    /// With status 402: the credits that the work costs.
    #[schema(minimum = 0)]
    pub credit_cost: Option<i64>,
    /// With status 402, where the work costs more than the request allows: its `maxCredits`.
    #[schema(minimum = 0)]
    pub max_credits: Option<i64>,
    /// With status 402, where a budget does not admit the work: that budget.
    pub budget: Option<BudgetState>,
    /// With invalid input of more than 100 violations: how many `fields` does not list.
    #[schema(minimum = 1)]
    pub more: Option<usize>,
    /// With a full storage of the caller: the bytes that the account stores.
    pub bytes: Option<i64>,
    /// With a full storage of the caller: the maximum bytes that the account may store.
    #[schema(minimum = 1)]
    pub max: Option<i64>,
    /// With a full storage: what makes room, in words.
    pub remedies: Option<Vec<String>>,
    /// With an upload or an import in a format or codec that is not accepted: which, such as `heic`, `quicktime` or `hevc`.
    pub format: Option<String>,
    /// With an upload or an import in a format that is not accepted: what can be done, in words.
    pub remedy: Option<String>,
    /// In a blocked batch: the findings, errors first.
    pub findings: Option<Vec<Finding>>,
    /// In a blocked batch: the review of the canvas as the batch would leave it.
    pub completion_review: Option<CompletionReview>,
}

named! {
    /// Why a request is refused, where the code alone does not tell.
    ErrorReason {
        /// The canvas has changed since `baseRevision`.
        Revision = "revision",
        /// The idempotency key was used for a different request.
        IdempotencyKey = "idempotency_key",
        /// The target node has an active job.
        TargetTaken = "target_taken",
        /// The state of what is addressed forbids it.
        State = "state",
        /// Administering needs a session that began within 12 hours.
        SignInAgain = "sign_in_again",
    }
}

impl ErrorDetails {
    /// Details with a reason alone.
    pub fn of_reason(reason: ErrorReason) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }
}

named! {
    /// The stable error codes of the contract.
    ErrorCode {
        /// 400: missing, malformed or out-of-range input.
        InputValidationError = "input_validation_error",
        /// 400: a body that cannot be parsed.
        InvalidJson = "invalid_json",
        /// 401: the credential failed.
        Unauthorized = "unauthorized",
        /// 402: the work needs more than the request, a budget or the account covers.
        PaymentRequired = "payment_required",
        /// 403: a scope or a role is missing.
        Forbidden = "forbidden",
        /// 404: the resource does not exist or is not visible.
        NotFound = "not_found",
        /// 409: a revision conflict, a reused key, or a state that forbids it.
        Conflict = "conflict",
        /// 410: retired.
        Gone = "gone",
        /// 413: the body is over the limit.
        PayloadTooLarge = "payload_too_large",
        /// 415: the media type of the body is not supported.
        UnsupportedMediaType = "unsupported_media_type",
        /// 422: a semantic rejection.
        UnprocessableEntity = "unprocessable_entity",
        /// 429: too many requests.
        RateLimited = "rate_limited",
        /// 500: the service failed.
        InternalError = "internal_error",
        /// 502: a dependency failed.
        UpstreamError = "upstream_error",
        /// 503: temporarily unable.
        ServiceUnavailable = "service_unavailable",
        /// 504: a dependency took too long.
        UpstreamTimeout = "upstream_timeout",
        /// Any other status.
        // Clients read a code that they do not know as this one.
        #[serde(other)]
        RequestFailed = "request_failed",
    }
}
