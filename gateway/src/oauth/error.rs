//! Failures of the routes of clients, in the form of RFC 6749, section 5.2.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

use crate::problem::Problem;

/// Why a client's request failed.
#[derive(Debug)]
pub struct OauthError {
    status: StatusCode,
    error: &'static str,
    description: String,
    /// Seconds after which to retry.
    retry_after: Option<u64>,
}

/// The result of a route of clients.
pub type Result<T = Response> = std::result::Result<T, OauthError>;

#[derive(Serialize)]
struct Body {
    error: &'static str,
    error_description: String,
}

impl OauthError {
    /// A failure that is the client's.
    pub fn new(error: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, description: description.into(), retry_after: None }
    }

    pub fn invalid_request(description: impl Into<String>) -> Self {
        Self::new("invalid_request", description)
    }

    /// What was presented grants nothing. Why is not said.
    pub fn invalid_grant() -> Self {
        Self::new(
            "invalid_grant",
            "the code or refresh token is unknown, expired, used, ended, or not of this client and request",
        )
    }

    /// The service has no room for what is asked now.
    pub fn busy(description: &str, seconds: u64) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry_after: Some(seconds),
            ..Self::new("temporarily_unavailable", description)
        }
    }

    /// The client is not known, or not admitted here.
    pub fn invalid_client() -> Self {
        let description = "the client is unknown; register it again";
        Self { status: StatusCode::UNAUTHORIZED, ..Self::new("invalid_client", description) }
    }
}

impl From<Problem> for OauthError {
    fn from(problem: Problem) -> Self {
        let retry_after = match &problem {
            Problem::RateLimited(_, seconds) => Some(*seconds),
            Problem::Unavailable(_, seconds) => Some(seconds.unwrap_or(1)),
            _ => None,
        };
        problem.log();
        let (status, envelope) = problem.into_envelope();
        let error = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request",
        };
        Self { status, error, description: envelope.error.message, retry_after }
    }
}

impl From<db::Error> for OauthError {
    fn from(error: db::Error) -> Self {
        Problem::from(error).into()
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        let body = Body { error: self.error, error_description: self.description };
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

/// The response to another method than `POST`; the router adds `Allow`.
pub async fn unknown_method() -> OauthError {
    Problem::MethodNotAllowed.into()
}
