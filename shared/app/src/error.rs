//! Why a command was rejected or failed.

use ::canvas::Refused;
use db::storage::Storage;
use domain::Violation;
use domain::budget::BudgetState;
use domain::canvas::CanvasRecord;
use domain::id::NodeId;
use domain::problem::ErrorReason;
use domain::review::Validation;

/// The result of a command.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a command was rejected or failed. A rejected command has written nothing and its key can be used again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request contradicts rules that depend on the request alone.
    #[error("the request is invalid")]
    Invalid(Vec<Violation>),
    /// The account may not do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// The resource does not exist or is not visible to the account.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The stored state is not what the request assumes.
    #[error("{1}")]
    Conflict(ErrorReason, &'static str),
    /// The canvas has a newer revision than the request is based on.
    #[error("the canvas has changed since the base revision")]
    Stale {
        /// The canvas as it is now.
        canvas: Box<CanvasRecord>,
        /// The revision that the request is based on.
        base_revision: String,
        /// The changed nodes that the request is known to read or write; `None` when it is not known what changed.
        changed_nodes: Option<Vec<NodeId>>,
    },
    /// The request disagrees with what is stored.
    #[error("the request does not fit what is stored")]
    Unprocessable(Vec<Violation>),
    /// Findings of severity error block the write.
    #[error("findings block the write")]
    Blocked(Box<Validation>),
    /// The request, a budget or the account does not cover the work.
    #[error("the work needs more than the request, a budget or the account covers")]
    PaymentRequired {
        /// Price of the work.
        credit_cost: i64,
        /// What does not cover it.
        shortage: Shortage,
    },
    /// The storage of the account that would own the result is full.
    #[error("the storage of the account is full")]
    StorageFull {
        /// The member of the request that names where the result goes.
        field: Option<&'static str>,
        /// The storage, if it is that of the caller.
        own: Option<Storage>,
    },
    /// A cap on the account's active work is reached; it may be retried soon.
    #[error("{0}")]
    TooMuchWork(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] db::Error),
    /// Stored data contradicts itself.
    #[error("{0}")]
    Inconsistent(String),
}

/// What does not cover a start.
#[derive(Debug)]
pub enum Shortage {
    /// The `maxCredits` of the request.
    MaxCredits(i64),
    /// A budget of the caller.
    Budget(Box<BudgetState>),
    /// The credit of the account.
    Balance,
}

impl Error {
    /// One field that does not fit what is stored.
    pub fn unprocessable(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Unprocessable(vec![Violation::new(field, message)])
    }

    /// Returns `true` if the same transaction may succeed when it is run again: the database resolved a deadlock against it.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(violations) => Self::Invalid(violations),
            Refused::Unprocessable(violations) => Self::Unprocessable(violations),
        }
    }
}
