//! Failures of requests.

use std::time::Duration;

use domain::problem::ErrorDetails;
use domain::{Timestamp, Violation, known};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::time_of;
use crate::transport::Unreachable;

/// The result of a request.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service refused it.
    #[error(transparent)]
    Refused(#[from] Box<Problem>),
    /// It was not answered.
    #[error("the service is not reached: {0}")]
    Unreachable(#[from] Unreachable),
    /// The answer is not what the contract says, for example because something else answered.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
}

impl Error {
    /// The message of the service.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns `true` if the same request may succeed later: 429, a failure of the service, or no answer.
    pub fn is_temporary(&self) -> bool {
        match self {
            Error::Refused(problem) => {
                problem.status == StatusCode::TOO_MANY_REQUESTS || problem.status.is_server_error()
            }
            Error::Unreachable(_) => true,
            Error::Unexpected(_) => false,
        }
    }
}

/// A refusal: the envelope of the contract, with its status and headers (docs/reference/errors.md).
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Problem {
    /// The HTTP status.
    pub status: StatusCode,
    /// The stable code, for example `conflict`.
    pub code: String,
    /// Text for people.
    pub message: String,
    /// Every violation of the request.
    pub fields: Vec<Violation>,
    /// Data that depends on the error.
    pub details: ErrorDetails,
    /// `X-Request-ID` of the answer.
    pub request_id: Option<String>,
    /// The time to wait before the request is repeated.
    pub retry_after: Option<Duration>,
    /// The time of the answer, as [`Answer::time`](crate::Answer::time).
    pub time: Timestamp,
    /// The envelope as it was received.
    pub envelope: Value,
}

impl Problem {
    /// Reads the envelope of a failing answer. An answer without one did not come from the service, but
    /// from a proxy in front of it.
    pub(crate) fn from_response(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        #[derive(Deserialize)]
        struct Envelope {
            error: Inner,
        }
        #[derive(Deserialize)]
        struct Inner {
            code: String,
            message: String,
            #[serde(default)]
            fields: Vec<Violation>,
            #[serde(default, deserialize_with = "known::or_default")]
            details: ErrorDetails,
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let envelope: Value = serde_json::from_slice(body).unwrap_or_default();
        let (code, message, fields, details) = match Envelope::deserialize(&envelope) {
            Ok(Envelope { error }) => (error.code, error.message, error.fields, error.details),
            Err(_) => {
                let said = String::from_utf8_lossy(body);
                let said: String = said.trim().chars().take(200).collect();
                (
                    "request_failed".to_owned(),
                    format!("{status} without the service's envelope: {said}"),
                    Vec::new(),
                    ErrorDetails::default(),
                )
            }
        };
        let seconds = text(RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        Error::Refused(Box::new(Self {
            status,
            code,
            message,
            fields,
            details,
            request_id: text("x-request-id").map(str::to_owned),
            retry_after: seconds.map(Duration::from_secs),
            time: time_of(headers),
            envelope,
        }))
    }
}
