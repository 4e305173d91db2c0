//! The interface between the runner and a kind of work.

use std::error::Error;
use std::time::Duration;

use db::tasks::Claim;
use domain::message::TaskKind;
use service::telemetry::TraceContext;
use uuid::Uuid;

use crate::Lease;

/// A claimed task.
#[derive(Clone, Debug)]
pub struct Task {
    /// The id of the record that it works on, such as a job, a webhook delivery or a rendition.
    pub id: Uuid,
    /// The kind of that record.
    pub kind: TaskKind,
    /// The fairness key: an account or a destination.
    pub fairness_key: String,
    /// The account of the task, if its queue has a cap per account.
    pub tenant: Option<String>,
    /// The number of claims, including this one, since the last run that went as planned; from 1.
    pub claims: i32,
    /// `true` if it may have killed its workers (docs/reliability.md#quarantine).
    pub is_quarantined: bool,
    /// The trace context of the work that enqueued it, if known.
    pub traceparent: Option<String>,
    /// The trace context of this run: a child of `traceparent`, or the root of a new trace.
    pub trace: TraceContext,
}

impl Task {
    /// A claimed task, which was claimed as a quarantined one or not.
    pub(crate) fn new(claim: Claim, is_quarantined: bool) -> Self {
        let parent = claim.traceparent.as_deref().and_then(TraceContext::parse);
        Self {
            id: claim.id,
            kind: claim.kind,
            fairness_key: claim.fairness_key,
            tenant: claim.tenant,
            claims: claim.claims,
            is_quarantined,
            traceparent: claim.traceparent,
            trace: parent.map_or_else(TraceContext::new_root, |parent| parent.child()),
        }
    }
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The handler settled or rescheduled the task in its own transaction.
    Done,
    /// The handler rescheduled the task in its own transaction.
    Rescheduled {
        /// The time until the task is due; the runner polls for it then.
        after: Duration,
    },
    /// Like `Done`, and the record ended as failed.
    Fail {
        /// The failure code, for the log and the metrics.
        code: &'static str,
    },
    /// [`db::tasks::settle`] rejected the token: the lease was lost and the result discarded.
    Stale,
    /// The run failed and is retried after this time. It counts towards
    /// [`domain::limits::TASK_CLAIMS_MAX`].
    Retry {
        /// Time until the retry.
        after: Duration,
    },
    /// The run has done nothing, and any worker may take the task at once: the claim does not count, and the task keeps its
    /// position.
    Release,
    /// The run went as planned and continues after this time, as polling does. The number of claims
    /// is reset.
    Snooze {
        /// The time until the task is due.
        after: Duration,
    },
}

/// A decision, or an unexpected error, which is logged once with its causes and retried with backoff like a panic.
pub type HandlerResult = Result<Decision, Box<dyn Error + Send + Sync>>;

/// The handler for one kind of work.
///
/// The future of either method may be dropped at any await: if the lease is lost, if the run
/// exceeds its limit, and if the process must exit. The effect is that of a crash.
pub trait Handler: Send + Sync + 'static {
    /// Runs a task.
    fn run(&self, task: &Task, lease: &Lease) -> impl Future<Output = HandlerResult> + Send;

    /// Maximum number of tasks of a fairness key at once, of which some are in progress; `None`: that of the runner's options.
    /// It is asked often and must answer at once.
    fn fairness_key_cap(&self, _fairness_key: &str) -> Option<usize> {
        None
    }

    /// Ends a task that was claimed more than [`domain::limits::TASK_CLAIMS_MAX`] times, in one
    /// transaction that settles it and makes its record terminal. It must not repeat what may have
    /// crashed the earlier workers.
    fn exhausted(&self, task: &Task, lease: &Lease) -> impl Future<Output = HandlerResult> + Send;
}
