//! Why the demo fails.

use std::path::PathBuf;

use serde_json::Value;

/// The result of a step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address or the token cannot be used.
    #[error("the address or the token of the service cannot be used")]
    Settings,
    /// The service refused a request, or gave no answer for too long.
    #[error("{request}: {source}")]
    Request {
        /// The method and the path.
        request: String,
        source: client::Error,
    },
    /// A response lacks a member that the contract promises.
    #[error("a response lacks {0}: {1}")]
    Missing(&'static str, Value),
    /// A response differs from the expected one.
    #[error("{0}")]
    Unexpected(String),
    /// Work ended without success.
    #[error("{work} {status}: {code}: {message} (log: {log})")]
    Work {
        /// The handle of the run or job.
        work: String,
        status: String,
        /// `failure.code` of the record.
        code: String,
        message: String,
        /// Where the process that did it writes its log.
        log: String,
    },
    /// A step was not over in time.
    #[error("not over in time: {0}")]
    TooLong(
        /// What the step waited for.
        String,
    ),
    /// The receiver's certificate or key could not be used.
    #[error("unusable certificate or key: {}: {source}", path.display())]
    Certificate { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// The receiver's address could not be bound.
    #[error("the receiver cannot listen on {address}: {source} (is another demo running?)")]
    Bind {
        /// The address, `host:port`.
        address: String,
        source: std::io::Error,
    },
    /// A webhook arrived with a signature that was not made with the secret.
    #[error("received a webhook with an invalid signature")]
    Signature,
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

/// The string at `pointer` (RFC 6901) in `value`.
pub fn text<'a>(value: &'a Value, pointer: &'static str) -> Result<&'a str> {
    value.pointer(pointer).and_then(Value::as_str).ok_or_else(|| Error::Missing(pointer, value.clone()))
}

/// The array at `pointer` in `value`.
pub fn list<'a>(value: &'a Value, pointer: &'static str) -> Result<&'a [Value]> {
    let list =
        value.pointer(pointer).and_then(Value::as_array).ok_or_else(|| Error::Missing(pointer, value.clone()))?;
    Ok(list)
}
