//! The errors of the demo, one variant for each failed step.

use std::path::PathBuf;

use serde_json::Value;

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client could not be built.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
    /// A request got no usable response within the demo's time limit.
    #[error("no response to {what}")]
    NoAnswer {
        /// The method and the path.
        what: String,
        /// The error of the last attempt.
        #[source]
        source: reqwest::Error,
    },
    /// The service refused a request.
    #[error("{what} failed with status {status}: {body}")]
    Refused {
        /// The method and the path.
        what: String,
        status: u16,
        /// The body of the response, an error envelope.
        body: String,
    },
    /// A response lacks a member that the contract promises.
    #[error("a response lacks {what}")]
    Missing {
        /// The JSON pointer of the member.
        what: String,
    },
    /// A response differs from the expected one.
    #[error("expected {what}")]
    Unexpected {
        /// A description of the expected response.
        what: &'static str,
    },
    /// The run ended without success.
    #[error("the run ended without success: {record}")]
    Run {
        /// The run's record as JSON.
        record: String,
    },
    /// A wait took longer than the demo's time limit.
    #[error("waited too long for {what}")]
    TooLong {
        /// A description of the awaited event.
        what: &'static str,
    },
    /// The receiver's certificate or key could not be used.
    #[error("unusable certificate or key of the receiver: {}", path.display())]
    Certificate {
        /// The path of the PEM file.
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The receiver's address could not be bound.
    #[error("the webhook receiver cannot listen on {address} (is another demo running?)")]
    Bind {
        /// The address, `host:port`.
        address: String,
        #[source]
        source: std::io::Error,
    },
    /// A webhook arrived with a signature that was not made with the secret.
    #[error("received a webhook with an invalid signature")]
    Signature,
    /// The receiver stopped.
    #[error("the webhook receiver stopped")]
    ReceiverGone,
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// The message of `error` and of all its sources, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        line.push_str(": ");
        line.push_str(&error.to_string());
        source = error.source();
    }
    line
}

/// The string at `pointer` (RFC 6901) in `value`.
pub fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str, Error> {
    value.pointer(pointer).and_then(Value::as_str).ok_or_else(|| Error::Missing { what: pointer.to_owned() })
}
