//! Reasons for which work stops without a result, and their effect on the task.

use std::time::Duration;

use domain::job::Failure;
use domain::message::TaskKind;
use service::blocking::Panicked;
use taskqueue::{Decision, HandlerResult, Task};

/// Delays in seconds after each claim during which the object store or the database failed; the
/// last one also applies to all later claims. They are short at first, because most outages are the
/// restart of a server, and their sum is longer than any restart takes.
const OUTAGE_PAUSES: [u64; 4] = [1, 5, 30, 120];

/// The reason why the run of a task failed. It is retried a limited number of times
/// (docs/reliability.md#retries).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database failed")]
    Database(#[from] db::Error),
    #[error("the object store failed")]
    Store(#[from] blob::Error),
    /// The engine failed in a decoder.
    #[error("the engine failed: {0}")]
    Engine(String),
    #[error("the engine failed")]
    Panicked(#[from] Panicked),
    #[error("the decoder failed")]
    Decoder(#[from] decoder::Failure),
    /// The result's blob was repeatedly deleted before it was referenced.
    #[error("the stored result was deleted before it was referenced")]
    BlobGone,
    /// This process does not handle tasks of this kind.
    #[error("task of kind {0} in the wrong queue")]
    WrongQueue(TaskKind),
    /// An error that is specific to one kind of work.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns `true` if a dependency was unavailable, as opposed to an error of the work itself.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Store(_) => true,
            Error::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

/// The reason why work stops without a result.
#[derive(Debug)]
pub enum Interrupt {
    /// Cancellation was requested.
    Canceled,
    /// The lease is lost or may be lost.
    Stale,
    /// There will be no result.
    Failed {
        /// The failure to record.
        failure: Failure,
        /// `true` if a provider may have made a result anyway.
        orphan: bool,
    },
    /// An unexpected error; the task is retried.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Interrupt {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl From<Failure> for Interrupt {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, orphan: false }
    }
}

impl Interrupt {
    /// A failure after which the provider may nevertheless have made the result.
    pub fn orphaned(failure: Failure) -> Self {
        Self::Failed { failure, orphan: true }
    }

    /// Sets whether a provider may have made the result nevertheless.
    #[must_use]
    pub fn with_orphan(self, orphan: bool) -> Self {
        match self {
            Self::Failed { failure, .. } => Self::Failed { failure, orphan },
            other => other,
        }
    }
}

/// Turns an outage into a delay. Every other error is reported by the runner.
///
/// # Errors
///
/// Any error that is not an outage.
pub fn wait_out(task: &Task, outcome: Result<Decision, Error>) -> HandlerResult {
    match outcome {
        Err(error) if error.is_outage() => {
            let after = Duration::from_secs(outage_pause(task.claims));
            tracing::warn!(error = &error as &dyn std::error::Error, "{} {} waits for {after:?}", task.kind, task.id);
            Ok(Decision::Retry { after })
        }
        outcome => Ok(outcome?),
    }
}

/// The delay in seconds after an outage during claim `claims`, from 1.
fn outage_pause(claims: i32) -> u64 {
    let index = usize::try_from(claims - 1).unwrap_or(0).min(OUTAGE_PAUSES.len() - 1);
    OUTAGE_PAUSES[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_waited_out_longer_and_longer() {
        assert_eq!([1, 2, 3, 4, 5, 9].map(outage_pause), [1, 5, 30, 120, 120, 120]);
    }

    #[test]
    fn only_what_is_missing_is_waited_for() {
        let missing = Error::Store(blob::Error::Missing(uuid::Uuid::nil()));
        let unreadable = Error::Database(db::Error::Unreadable { column: "jobs.kind", value: "x".into() });
        assert!(missing.is_outage() && Error::Database(db::Error::Timeout).is_outage());
        assert!(!unreadable.is_outage() && !Error::BlobGone.is_outage());
        assert!(!Error::WrongQueue(TaskKind::Image).is_outage());
    }
}
