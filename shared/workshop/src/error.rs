//! Why work does not go on, and what becomes of it then.

use std::time::Duration;

use domain::job::Failure;
use domain::message::TaskKind;
use service::blocking::Panicked;
use spine::{Decision, Outcome, Task};

/// Pauses after each claim on which the object store or the database failed, in seconds; the last one serves for all that
/// follow: short at first, because most outages are the restart of a server, and together longer than any restart takes.
const OUTAGE_PAUSES: [u64; 4] = [1, 5, 30, 120];

/// Why a task did not work out this time. It is tried again, a few times (reliability.md 2).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] db::Error),
    /// The object store failed.
    #[error("the object store failed")]
    Store(#[from] blob::Error),
    /// An encoder failed.
    #[error("the picture could not be written")]
    Raster(#[source] raster::Error),
    /// The engine panicked.
    #[error("the engine failed")]
    Panicked(#[from] Panicked),
    /// The result's blob was swept again and again.
    #[error("the result was swept before it was referred to")]
    BlobGone,
    /// The task is not this process's kind of work.
    #[error("a task of kind {0} in the wrong queue")]
    WrongQueue(TaskKind),
    /// What only one kind of work can fail with.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether what the work needs was not there, as against the work being at fault.
    pub fn is_outage(&self) -> bool {
        match self {
            Error::Store(_) => true,
            Error::Database(error) => error.is_outage(),
            _ => false,
        }
    }
}

/// Why work ends before its result.
#[derive(Debug)]
pub enum Stop {
    /// Somebody asked.
    Canceled,
    /// The lease is lost, or may be.
    Stale,
    /// There will be no result.
    Failed {
        /// Why.
        failure: Failure,
        /// Whether a provider may have made one all the same.
        orphan: bool,
    },
    /// What nobody foresaw; to be tried again.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, orphan: false }
    }
}

impl Stop {
    /// A failure in spite of which a provider may have made the result.
    pub fn orphaned(failure: Failure) -> Self {
        Self::Failed { failure, orphan: true }
    }

    /// The same, and whether a provider may have made the result all the same.
    #[must_use]
    pub fn with_orphan(self, orphan: bool) -> Self {
        match self {
            Self::Failed { failure, .. } => Self::Failed { failure, orphan },
            stop => stop,
        }
    }
}

/// Turns an outage into a pause; every other failure is the runner's to report.
///
/// # Errors
/// What is no outage.
pub fn wait_out(task: &Task, outcome: Result<Decision, Error>) -> Outcome {
    match outcome {
        Err(error) if error.is_outage() => {
            let after = Duration::from_secs(outage_pause(task.claims));
            tracing::warn!(error = &error as &dyn std::error::Error, "{} {} waits for {after:?}", task.kind, task.id);
            Ok(Decision::Retry { after })
        }
        outcome => Ok(outcome?),
    }
}

/// How many seconds to wait after an outage on claim `claims`, from 1.
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
