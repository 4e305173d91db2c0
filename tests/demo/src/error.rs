//! What can go wrong in the demo, one variant a failed step.

use std::path::PathBuf;

use serde_json::Value;

/// A failure of the demo.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client could not be built.
    #[error("the HTTP client could not be built")]
    Client(#[source] reqwest::Error),
    /// A request stayed without a usable answer for as long as the demo is patient.
    #[error("{what} got no answer")]
    NoAnswer {
        /// Method and path.
        what: String,
        /// The last attempt's failure.
        #[source]
        source: reqwest::Error,
    },
    /// The service refused a request.
    #[error("{what} was answered {status}: {body}")]
    Refused {
        /// Method and path.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The error envelope.
        body: String,
    },
    /// An answer lacks what the contract promises.
    #[error("an answer was expected to hold {what}")]
    Missing {
        /// A JSON pointer.
        what: String,
    },
    /// Something else than expected came back.
    #[error("expected {what}")]
    Unexpected {
        /// What was expected.
        what: &'static str,
    },
    /// The run ended without success.
    #[error("the run ended without success: {record}")]
    Run {
        /// The run's record.
        record: String,
    },
    /// A wait took longer than the demo is patient.
    #[error("waited too long for {what}")]
    TooLong {
        /// What was waited for.
        what: &'static str,
    },
    /// The receiver's certificate or key could not be used.
    #[error("the receiver's certificate or key {} cannot be used", path.display())]
    Certificate {
        /// The PEM file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The receiver's address could not be bound.
    #[error("the webhook receiver cannot listen on {address} (is another demo running?)")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A webhook came whose signature is not the secret's.
    #[error("a webhook came whose signature does not verify")]
    Signature,
    /// The receiver stopped.
    #[error("the webhook receiver stopped")]
    ReceiverGone,
    /// A file could not be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// The message of `error` and of everything beneath it, in one line.
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
