//! The one public error catalog (docs/reference/errors.md).
//!
//! Whatever fails becomes a [`Problem`]; this file alone decides what a client sees of it. Texts of internal errors are
//! logged here, once, and never reach a client.

use std::error::Error;

use app::error::Shortage;
use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::account::Scopes;
use domain::canvas::CanvasRecord;
use domain::id::NodeId;
use domain::limits::{CONFLICT_NODES_MAX, VIOLATIONS_MAX};
use domain::problem::{ErrorBody, ErrorCode, ErrorDetails, ErrorEnvelope, ErrorReason};
use domain::review::Validation;
use domain::{API_ROOT, Violation};
use http::header::{CACHE_CONTROL, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use service::chain;

use crate::oauth::challenge::NeededScopes;

/// `Retry-After` in seconds for the caps on active jobs and imports.
pub const CAP_RETRY: u64 = 5;

/// What makes room in a full storage.
const REMEDIES: [&str; 3] =
    ["delete assets", "delete canvases in the console", "ask the operator of the service for more storage"];
const REMEDIES_OF_ANOTHER: [&str; 1] = ["ask the owner of the canvas to make room"];

/// Why a request failed.
#[derive(Debug)]
pub enum Problem {
    /// Input that is invalid by itself. Holds every violation.
    Invalid(Vec<Violation>),
    /// A request that is not valid HTTP, or whose head exceeds the limits.
    UnreadableHead,
    /// A body that is not JSON.
    InvalidJson(String),
    /// The credential failed.
    Unauthorized,
    /// The session is of another account than the page that sent the request.
    OtherAccount,
    /// The request, a budget or the account does not cover the work.
    PaymentRequired {
        /// Price of the work.
        credit_cost: i64,
        /// What does not cover it.
        shortage: Shortage,
    },
    /// A role is missing, or the request is not one that the caller may send.
    Forbidden(String),
    /// The session is too old for what it asks.
    SignInAgain,
    /// A scope is missing. Holds the message, and all scopes that the request needs.
    ScopesMissing(String, Scopes),
    /// The resource does not exist or is not visible.
    NotFound(&'static str),
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// No form of the resource satisfies `Accept`.
    NotAcceptable(String),
    /// A retired operation that the operator has not enabled.
    Gone(&'static str),
    /// The stored state is not what the request assumes.
    Conflict(String, Box<ErrorDetails>),
    /// A body over the operation's limit, in bytes.
    PayloadTooLarge(u64),
    /// A body within that limit whose parsed form would exceed the memory that is reserved for it.
    PayloadTooHeavy,
    /// A body of an unsupported media type.
    UnsupportedMediaType(String),
    /// A file in a known format or codec that is not accepted, with what can be done.
    UnsupportedFormat(String, Box<ErrorDetails>),
    /// A byte range outside the resource. Holds the size of the resource.
    RangeNotSatisfiable(u64),
    /// Input that disagrees with what is stored.
    Unprocessable(Vec<Violation>),
    /// What the request names has a known format that is not accepted, with what can be done.
    UnsupportedContent(Violation, Box<ErrorDetails>),
    /// The storage of the account that would own what is added has no room.
    StorageFull {
        /// The member of the request that names where it goes.
        field: Option<String>,
        /// Stored and maximum bytes, if the storage is that of the caller.
        own: Option<(i64, i64)>,
    },
    /// A write that findings of severity error block. Holds the findings and the review.
    Blocked(Box<ErrorDetails>),
    /// A limit on requests or work is reached. Holds the seconds after which to retry.
    RateLimited(String, u64),
    /// The service failed.
    Internal(Box<dyn Error + Send + Sync>),
    /// A server that the request names failed. Holds the cause, for the log.
    Upstream(String),
    /// A server that the request names takes too long.
    UpstreamTimeout,
    /// A dependency is unavailable. Holds the seconds after which to retry, if known.
    Unavailable(Box<dyn Error + Send + Sync>, Option<u64>),
}

/// The result of a handler.
pub type Result<T = Response, E = Problem> = std::result::Result<T, E>;

/// Both values, or the problem. When both are invalid input, the violations of both are reported together.
pub fn combine_violations<A, B>(first: Result<A>, second: Result<B>) -> Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(problem), Err(more)) => Err(problem.and(more.violations())),
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    }
}

impl Problem {
    /// One violation of one field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Violation::new(field, message).into()
    }

    /// One field that does not fit what is stored.
    pub fn unprocessable(field: impl Into<String>, message: impl Into<String>) -> Self {
        Problem::Unprocessable(vec![Violation::new(field, message)])
    }

    /// A revision conflict: names the present revision, the URL of the changes since `base_revision`, and, when they are known, the
    /// first of the changed nodes that the request reads or writes.
    pub fn stale(canvas: &CanvasRecord, base_revision: &str, changed_nodes: Option<&[NodeId]>) -> Self {
        let since = percent_encoding::utf8_percent_encode(base_revision, percent_encoding::NON_ALPHANUMERIC);
        let details = ErrorDetails {
            reason: Some(ErrorReason::Revision),
            current_revision: Some(canvas.revision.clone()),
            changes_url: Some(format!("{API_ROOT}/canvases/{}/changes?since={since}", canvas.handle)),
            changed_node_ids: changed_nodes.map(|nodes| nodes[..nodes.len().min(CONFLICT_NODES_MAX)].to_vec()),
            ..ErrorDetails::default()
        };
        Problem::Conflict("the canvas has changed since baseRevision".into(), Box::new(details))
    }

    /// A conflict that the state of what is addressed makes.
    pub fn conflict(message: impl Into<String>) -> Self {
        Problem::Conflict(message.into(), Box::new(ErrorDetails::of_reason(ErrorReason::State)))
    }

    /// The violations of invalid input; none for any other problem.
    pub fn violations(self) -> Vec<Violation> {
        match self {
            Problem::Invalid(violations) => violations,
            _ => Vec::new(),
        }
    }

    /// Adds violations to invalid input. Any other problem stays as it is.
    pub fn and(self, more: Vec<Violation>) -> Self {
        match self {
            Problem::Invalid(violations) => Problem::Invalid([violations, more].concat()),
            other => other,
        }
    }

    /// A failure of the service.
    pub fn internal(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Problem::Internal(error.into())
    }

    /// Logs what the client is not told.
    pub fn log(&self) {
        match self {
            Problem::Internal(error) => tracing::error!(error = chain(error.as_ref()), "internal error"),
            Problem::Upstream(why) => tracing::info!(why, "a server that the request names failed"),
            Problem::Unavailable(error, _) => {
                tracing::warn!(error = chain(error.as_ref()), "request rejected: a dependency is unavailable");
            }
            _ => {}
        }
    }

    /// Status and envelope, where no handler answers.
    pub fn into_envelope(self) -> (StatusCode, ErrorEnvelope) {
        let (status, code, message, fields, details) = self.parts();
        (status, ErrorEnvelope { error: ErrorBody { code, message, fields, details } })
    }

    fn parts(self) -> (StatusCode, ErrorCode, String, Vec<Violation>, Option<Box<ErrorDetails>>) {
        use ErrorCode as Code;
        fn plain(
            status: StatusCode,
            code: ErrorCode,
            message: impl Into<String>,
        ) -> (StatusCode, ErrorCode, String, Vec<Violation>, Option<Box<ErrorDetails>>) {
            (status, code, message.into(), Vec::new(), None)
        }
        match self {
            Problem::Invalid(mut fields) => {
                let message = summary("invalid input", &fields);
                let more = fields.len().saturating_sub(VIOLATIONS_MAX);
                fields.truncate(VIOLATIONS_MAX);
                let details =
                    (more > 0).then(|| Box::new(ErrorDetails { more: Some(more), ..ErrorDetails::default() }));
                (StatusCode::BAD_REQUEST, Code::InputValidationError, message, fields, details)
            }
            Problem::UnreadableHead => plain(
                StatusCode::BAD_REQUEST,
                Code::InputValidationError,
                "the request is not valid HTTP, or its target and headers exceed 32 KiB or 100 headers",
            ),
            Problem::InvalidJson(message) => {
                plain(StatusCode::BAD_REQUEST, Code::InvalidJson, format!("the body is not valid JSON: {message}"))
            }
            Problem::Unauthorized => {
                plain(StatusCode::UNAUTHORIZED, Code::Unauthorized, "a valid bearer token is required")
            }
            Problem::OtherAccount => {
                plain(StatusCode::UNAUTHORIZED, Code::Unauthorized, "the session belongs to another account")
            }
            Problem::PaymentRequired { credit_cost, shortage } => {
                let mut details = ErrorDetails { credit_cost: Some(credit_cost), ..ErrorDetails::default() };
                let message = match shortage {
                    Shortage::MaxCredits(max) => {
                        details.max_credits = Some(max);
                        format!("the price of the work in credits is {credit_cost}, and maxCredits is {max}")
                    }
                    Shortage::Budget(budget) => {
                        let until = budget.resets_at.map(|at| format!(" until {at}")).unwrap_or_default();
                        let (of, budget_in_words, left) = (&budget.of, budget.in_words(), budget.left);
                        let message = format!(
                            "the budget of the {of}, {budget_in_words}, does not cover this work: {left} left{until}"
                        );
                        details.budget = Some(*budget);
                        message
                    }
                    Shortage::Balance => "the account's credit does not cover this work".into(),
                };
                (StatusCode::PAYMENT_REQUIRED, Code::PaymentRequired, message, Vec::new(), Some(Box::new(details)))
            }
            Problem::Forbidden(message) | Problem::ScopesMissing(message, _) => {
                plain(StatusCode::FORBIDDEN, Code::Forbidden, message)
            }
            Problem::SignInAgain => {
                let message = "sign in again: administering needs a session that began within 12 hours";
                let details = ErrorDetails::of_reason(ErrorReason::SignInAgain);
                (StatusCode::FORBIDDEN, Code::Forbidden, message.into(), Vec::new(), Some(Box::new(details)))
            }
            Problem::NotFound(what) => plain(StatusCode::NOT_FOUND, Code::NotFound, format!("{what} not found")),
            Problem::MethodNotAllowed => plain(
                StatusCode::METHOD_NOT_ALLOWED,
                Code::RequestFailed,
                "the method is not allowed here; see the Allow header",
            ),
            Problem::NotAcceptable(offered) => {
                plain(StatusCode::NOT_ACCEPTABLE, Code::RequestFailed, format!("this resource is served as {offered}"))
            }
            Problem::Conflict(message, details) => {
                (StatusCode::CONFLICT, Code::Conflict, message, Vec::new(), Some(details))
            }
            Problem::Gone(message) => plain(StatusCode::GONE, Code::Gone, message),
            Problem::PayloadTooLarge(limit) => plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                Code::PayloadTooLarge,
                format!("the body has more than {limit} bytes"),
            ),
            Problem::PayloadTooHeavy => plain(
                StatusCode::PAYLOAD_TOO_LARGE,
                Code::PayloadTooLarge,
                "the body has too many small values for its size; send it in several parts",
            ),
            Problem::UnsupportedMediaType(message) => {
                plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::UnsupportedMediaType, message)
            }
            Problem::UnsupportedFormat(message, details) => {
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                (status, Code::UnsupportedMediaType, message, Vec::new(), Some(details))
            }
            Problem::RangeNotSatisfiable(size) => plain(
                StatusCode::RANGE_NOT_SATISFIABLE,
                Code::RequestFailed,
                format!("the range is outside the {size} bytes of the resource"),
            ),
            Problem::Unprocessable(fields) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::UnprocessableEntity,
                summary("the request cannot be processed", &fields),
                fields,
                None,
            ),
            Problem::UnsupportedContent(violation, details) => {
                let fields = vec![violation];
                let message = summary("the request cannot be processed", &fields);
                (StatusCode::UNPROCESSABLE_ENTITY, Code::UnprocessableEntity, message, fields, Some(details))
            }
            Problem::StorageFull { field, own } => {
                let (full, remedies) = match own {
                    Some((bytes, max)) => {
                        (format!("the storage of the account is full: {bytes} of {max} bytes are used"), &REMEDIES[..])
                    }
                    None => ("the storage of the canvas's owner is full".into(), &REMEDIES_OF_ANOTHER[..]),
                };
                let fields: Vec<_> = field.map(|field| Violation::new(field, full.as_str())).into_iter().collect();
                let message =
                    if fields.is_empty() { full } else { summary("the request cannot be processed", &fields) };
                let details = ErrorDetails {
                    bytes: own.map(|(bytes, _)| bytes),
                    max: own.map(|(_, max)| max),
                    remedies: Some(remedies.iter().map(ToString::to_string).collect()),
                    ..ErrorDetails::default()
                };
                (StatusCode::UNPROCESSABLE_ENTITY, Code::UnprocessableEntity, message, fields, Some(Box::new(details)))
            }
            Problem::Blocked(details) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::UnprocessableEntity,
                "findings of severity error block the batch; send `force` to apply it anyway".into(),
                Vec::new(),
                Some(details),
            ),
            Problem::RateLimited(message, _) => plain(StatusCode::TOO_MANY_REQUESTS, Code::RateLimited, message),
            Problem::Internal(_) => {
                plain(StatusCode::INTERNAL_SERVER_ERROR, Code::InternalError, "the service failed; try again")
            }
            Problem::Upstream(_) => {
                plain(StatusCode::BAD_GATEWAY, Code::UpstreamError, "a server that the request depends on failed")
            }
            Problem::UpstreamTimeout => plain(
                StatusCode::GATEWAY_TIMEOUT,
                Code::UpstreamTimeout,
                "a server that the request depends on takes too long; the same idempotency key resumes the request",
            ),
            Problem::Unavailable(..) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                Code::ServiceUnavailable,
                "the service is temporarily unable to answer; try again",
            ),
        }
    }
}

/// What the owner of a HEIC can do.
pub fn heic_details() -> Box<ErrorDetails> {
    let remedy = "Convert it to JPEG first, on a Mac with `sips -s format jpeg IN.heic --out OUT.jpg`, elsewhere with \
                  `heif-dec IN.heic OUT.jpg` of libheif. The console does so where the browser can.";
    Box::new(ErrorDetails { format: Some("heic".into()), remedy: Some(remedy.into()), ..ErrorDetails::default() })
}

/// `text`, and the first violation as an example, so that the message alone is useful.
fn summary(text: &str, fields: &[Violation]) -> String {
    match fields {
        [] => text.to_owned(),
        [only] => format!("{text}: {} {}", only.field, only.message),
        [first, rest @ ..] => format!("{text}: {} {}; and {} more", first.field, first.message, rest.len()),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.log();
        let needed = match &self {
            Problem::ScopesMissing(_, needed) => Some(NeededScopes(*needed)),
            _ => None,
        };
        let retry_after = match &self {
            Problem::RateLimited(_, seconds) | Problem::Unavailable(_, Some(seconds)) => Some(*seconds),
            _ => None,
        };
        let content_range = match &self {
            Problem::RangeNotSatisfiable(size) => HeaderValue::from_str(&format!("bytes */{size}")).ok(),
            _ => None,
        };
        let (status, envelope) = self.into_envelope();
        let mut response = (status, Json(envelope)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(needed) = needed {
            response.extensions_mut().insert(needed);
        }
        let headers = response.headers_mut();
        if let Some(range) = content_range {
            headers.insert(CONTENT_RANGE, range);
        }
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl From<Violation> for Problem {
    fn from(violation: Violation) -> Self {
        Problem::Invalid(vec![violation])
    }
}

impl From<blob::Error> for Problem {
    fn from(error: blob::Error) -> Self {
        match error {
            blob::Error::Missing(_) => Problem::internal(error),
            other => Problem::Unavailable(other.into(), Some(1)),
        }
    }
}

impl From<app::Error> for Problem {
    fn from(error: app::Error) -> Self {
        use app::Error;
        match error {
            Error::Invalid(violations) => Problem::Invalid(violations),
            Error::Forbidden(message) => Problem::Forbidden(message.into()),
            Error::NotFound(what) => Problem::NotFound(what),
            Error::Conflict(reason, message) => {
                Problem::Conflict(message.into(), Box::new(ErrorDetails::of_reason(reason)))
            }
            Error::Stale { canvas, base_revision, changed_nodes } => {
                Problem::stale(&canvas, &base_revision, changed_nodes.as_deref())
            }
            Error::Unprocessable(violations) => Problem::Unprocessable(violations),
            Error::Blocked(validation) => {
                let Validation { findings, completion_review, .. } = *validation;
                Problem::Blocked(Box::new(ErrorDetails {
                    findings: Some(findings),
                    completion_review: Some(completion_review),
                    ..ErrorDetails::default()
                }))
            }
            Error::PaymentRequired { credit_cost, shortage } => Problem::PaymentRequired { credit_cost, shortage },
            Error::StorageFull { field, own } => Problem::StorageFull {
                field: field.map(str::to_owned),
                own: own.map(|storage| (storage.bytes, storage.max)),
            },
            Error::TooMuchWork(message) => Problem::RateLimited(message, CAP_RETRY),
            Error::Database(error) => error.into(),
            Error::Inconsistent(message) => Problem::internal(message),
        }
    }
}

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        if error.is_outage() { Problem::Unavailable(error.into(), Some(1)) } else { Problem::internal(error) }
    }
}

/// The response to an unknown method on a known path; the router adds `Allow`.
pub async fn unknown_method() -> Problem {
    Problem::MethodNotAllowed
}
