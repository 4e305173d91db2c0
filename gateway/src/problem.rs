//! The one public error catalogue (specification, Errors; decisions 1.1 to 1.3).
//!
//! Whatever fails becomes a [`Problem`]; this file alone decides what a client sees of it. Texts of internal errors are
//! logged here, once, and never reach a client.

use std::error::Error;

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::canvas::CanvasRecord;
use domain::{API_ROOT, Violation};
use http::header::{CACHE_CONTROL, CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::Value;
use service::chain;
use utoipa::ToSchema;

/// Why a request was not done.
#[derive(Debug)]
pub enum Problem {
    /// Input that is wrong by itself; every violation.
    Invalid(Vec<Violation>),
    /// What is no HTTP, or has a head over the limits.
    UnreadableHead,
    /// A body that is no JSON.
    InvalidJson(String),
    /// The credential failed.
    Unauthorized,
    /// The account cannot fund the work.
    PaymentRequired,
    /// A scope or a role is missing.
    Forbidden(String),
    /// Absent or invisible.
    NotFound(&'static str),
    /// The path is known, the method is not.
    MethodNotAllowed,
    /// Nothing acceptable can be served.
    NotAcceptable(&'static str),
    /// What is retired, and not switched on by the operator.
    Gone(&'static str),
    /// The state is not what the request assumed.
    Conflict(String, Option<Value>),
    /// A body over the operation's limit, in bytes.
    PayloadTooLarge(u64),
    /// A body within that limit that becomes too large for the memory of the service when it is parsed.
    PayloadTooHeavy,
    /// A body of the wrong kind.
    UnsupportedMediaType(String),
    /// A range of bytes that is not there; the size of what is.
    RangeNotSatisfiable(u64),
    /// Input that is wrong with respect to what is stored.
    Unprocessable(Vec<Violation>),
    /// A write that findings of severity error block; the findings and the review.
    Blocked(Value),
    /// Too much of something; when to come back, in seconds.
    RateLimited(String, u64),
    /// The service failed.
    Internal(Box<dyn Error + Send + Sync>),
    /// A server that the request names failed; how, for the log.
    Upstream(String),
    /// A server that the request names takes too long.
    UpstreamTimeout,
    /// Something that the request needs is out of order; when to come back, in seconds.
    Unavailable(Box<dyn Error + Send + Sync>, Option<u64>),
}

/// The result of a handler.
pub type Result<T = Response, E = Problem> = std::result::Result<T, E>;

/// Both, or what is wrong: everything where either is invalid input, so that all of it is told at once; else the first.
pub fn both<A, B>(first: Result<A>, second: Result<B>) -> Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(problem), Err(more)) => Err(problem.and(more.violations())),
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    }
}

/// The envelope of every failing response.
#[derive(Serialize, ToSchema)]
pub struct ErrorEnvelope {
    /// What failed.
    pub error: ErrorBody,
}

/// What failed.
#[derive(Serialize, ToSchema)]
pub struct ErrorBody {
    /// Stable; branch on it.
    pub code: ErrorCode,
    /// For people; not contractual.
    pub message: String,
    /// What is wrong with which field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Violation>,
    /// More to act upon: `currentRevision` and `changesUrl` in a revision conflict, `findings` and `completionReview` of a
    /// blocked batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub details: Option<Value>,
}

/// The stable codes: all of the contract's, whether or not a route of today gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// 400: missing, malformed or out-of-range input.
    InputValidationError,
    /// 400: a body that cannot be parsed.
    InvalidJson,
    /// 401: the credential failed.
    Unauthorized,
    /// 402: the account cannot fund the work.
    PaymentRequired,
    /// 403: a scope or a role is missing.
    Forbidden,
    /// 404: absent or invisible.
    NotFound,
    /// 409: a revision conflict, a reused key, or a state that forbids it.
    Conflict,
    /// 410: retired.
    Gone,
    /// 413: the body is over the limit.
    PayloadTooLarge,
    /// 415: the body is of the wrong kind.
    UnsupportedMediaType,
    /// 422: a semantic rejection.
    UnprocessableEntity,
    /// 429: too many requests.
    RateLimited,
    /// 500: the service failed.
    InternalError,
    /// 502: a dependency failed.
    UpstreamError,
    /// 503: temporarily unable.
    ServiceUnavailable,
    /// 504: a dependency took too long.
    UpstreamTimeout,
    /// Any other status.
    RequestFailed,
}

impl Problem {
    /// One violation of one field.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Problem::Invalid(vec![Violation::new(field, message)])
    }

    /// One field that does not fit what is stored.
    pub fn unprocessable(field: impl Into<String>, message: impl Into<String>) -> Self {
        Problem::Unprocessable(vec![Violation::new(field, message)])
    }

    /// A canvas that has changed since `base_revision`: what it is at now, and where the changes since are told.
    pub fn stale(canvas: &CanvasRecord, base_revision: &str) -> Self {
        let since = percent_encoding::utf8_percent_encode(base_revision, percent_encoding::NON_ALPHANUMERIC);
        let details = serde_json::json!({
            "currentRevision": canvas.revision,
            "changesUrl": format!("{API_ROOT}/canvases/{}/changes?since={since}", canvas.handle),
        });
        Problem::Conflict("the canvas has changed since baseRevision".into(), Some(details))
    }

    /// What is wrong with invalid input; nothing of any other problem.
    pub fn violations(self) -> Vec<Violation> {
        match self {
            Problem::Invalid(violations) => violations,
            _ => Vec::new(),
        }
    }

    /// Invalid input with `more` that is wrong; any other problem as it is.
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

    /// Status and envelope, where no handler answers.
    pub fn into_envelope(self) -> (StatusCode, ErrorEnvelope) {
        let (status, code, message, fields, details) = self.parts();
        (status, ErrorEnvelope { error: ErrorBody { code, message, fields, details } })
    }

    fn parts(self) -> (StatusCode, ErrorCode, String, Vec<Violation>, Option<Value>) {
        use ErrorCode as Code;
        fn plain(
            status: StatusCode,
            code: ErrorCode,
            message: impl Into<String>,
        ) -> (StatusCode, ErrorCode, String, Vec<Violation>, Option<Value>) {
            (status, code, message.into(), Vec::new(), None)
        }
        match self {
            Problem::Invalid(fields) => {
                (StatusCode::BAD_REQUEST, Code::InputValidationError, summary("invalid input", &fields), fields, None)
            }
            Problem::UnreadableHead => plain(
                StatusCode::BAD_REQUEST,
                Code::InputValidationError,
                "the request is no HTTP, or its address and headers are more than 32 KiB or 100 headers",
            ),
            Problem::InvalidJson(message) => {
                plain(StatusCode::BAD_REQUEST, Code::InvalidJson, format!("the body is not valid JSON: {message}"))
            }
            Problem::Unauthorized => {
                plain(StatusCode::UNAUTHORIZED, Code::Unauthorized, "a valid bearer token is required")
            }
            Problem::PaymentRequired => plain(
                StatusCode::PAYMENT_REQUIRED,
                Code::PaymentRequired,
                "the account's credit does not cover this work",
            ),
            Problem::Forbidden(message) => plain(StatusCode::FORBIDDEN, Code::Forbidden, message),
            Problem::NotFound(what) => plain(StatusCode::NOT_FOUND, Code::NotFound, format!("{what} not found")),
            Problem::MethodNotAllowed => plain(
                StatusCode::METHOD_NOT_ALLOWED,
                Code::RequestFailed,
                "the method is not allowed here; see the Allow header",
            ),
            Problem::NotAcceptable(offered) => {
                plain(StatusCode::NOT_ACCEPTABLE, Code::RequestFailed, format!("this resource is served as {offered}"))
            }
            Problem::Conflict(message, details) => (StatusCode::CONFLICT, Code::Conflict, message, Vec::new(), details),
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
            Problem::RangeNotSatisfiable(size) => plain(
                StatusCode::RANGE_NOT_SATISFIABLE,
                Code::RequestFailed,
                format!("the range lies outside of {size} bytes"),
            ),
            Problem::Unprocessable(fields) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::UnprocessableEntity,
                summary("the request cannot be done", &fields),
                fields,
                None,
            ),
            Problem::Blocked(details) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                Code::UnprocessableEntity,
                "findings of severity error block the batch; `force` applies it all the same".into(),
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
        match &self {
            Problem::Internal(error) => tracing::error!(error = chain(error.as_ref()), "request failed inside"),
            Problem::Upstream(why) => tracing::info!(why, "a server that the request names failed"),
            Problem::Unavailable(error, _) => {
                tracing::warn!(error = chain(error.as_ref()), "request refused: a dependency is out of order");
            }
            _ => {}
        }
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
        if let Some(range) = content_range {
            headers.insert(CONTENT_RANGE, range);
        }
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
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

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        if error.is_outage() { Problem::Unavailable(error.into(), Some(1)) } else { Problem::internal(error) }
    }
}

/// What an unknown path answers.
pub async fn unknown_path() -> Problem {
    Problem::NotFound("path")
}

/// What an unknown method on a known path answers; the router adds `Allow`.
pub async fn unknown_method() -> Problem {
    Problem::MethodNotAllowed
}
